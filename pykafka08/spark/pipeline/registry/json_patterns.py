"""Patterns of JSON Schemas: regular expressions of ECMA-262.  ``\\p{L}``, ``\\d`` and ``\\/`` differ in Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from jsonschema import FormatChecker
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend
from regress import Regex, RegressError

__all__ = ["PATTERNS", "RegressError", "with_patterns"]

PATTERNS = FormatChecker(())
"""The checker of the patterns in a schema."""


def with_patterns(kind: Any) -> Any:
    """Extend a class of validators, so that it reads patterns as ECMA-262 defines them."""
    keywords = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
    }
    return extend(kind, keywords)


def _is_pattern(value: object) -> bool:
    return not isinstance(value, str) or _compiled(value) is not None


PATTERNS.checks("regex", raises=RegressError)(_is_pattern)


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Regex:
    """Compile with the flag ``u``, as JSON Schema says, or without it if ``u`` does not allow its escapes."""
    try:
        return Regex(pattern, "u")
    except RegressError:
        return Regex(pattern)


def _has(pattern: str, text: str) -> bool:
    return _compiled(pattern).find(text) is not None


def _pattern(validator: Any, pattern: str, value: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(value, str) and not _has(pattern, value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _pattern_properties(
    validator: Any, schemas: Mapping[str, Any], value: Any, schema: Any
) -> Iterator[ValidationError]:
    for pattern, one in schemas.items() if isinstance(value, dict) else ():
        for name, each in value.items():
            if _has(pattern, name):
                yield from validator.descend(each, one, path=name, schema_path=pattern)


def _additional_properties(validator: Any, allowed: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
    patterns = schema.get("patternProperties", {})
    others = [
        name
        for name in (value if isinstance(value, dict) else ())
        if name not in schema.get("properties", {}) and not any(_has(one, name) for one in patterns)
    ]
    if isinstance(allowed, dict):
        for name in others:
            yield from validator.descend(value[name], allowed, path=name)
    elif not allowed and others:
        names = ", ".join(map(repr, others))
        yield ValidationError(f"Additional properties are not allowed ({names})")
