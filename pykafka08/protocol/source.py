"""What the two source generators share: a text that knows which fields each line is about, and facts about kinds."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pykafka08.protocol.fields import MISSING, Field

__all__ = ["FIXED", "LONGEST_TEXT", "ManyFixed", "SourceText", "default_source", "is_literal", "smallest_size"]

FIXED = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
"""Kinds of one size, with their letters of the struct module."""

LONGEST_TEXT = 0x7FFF
"""Bytes of a string; Kafka refuses longer ones in compact form too."""


class SourceText:
    """Generated lines with their indentation, the names they refer to, and the fields behind each line."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.fields: list[tuple[Field, ...]] = []
        self.scope: dict[str, Any] = {}
        self.about: tuple[Field, ...] = ()
        self._depth = 0

    def add(self, *lines: str) -> None:
        """Lines about the fields of ``about``."""
        for line in lines:
            self.lines.append("    " * self._depth + line)
            self.fields.append(self.about)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """``head``, and what is added inside one level deeper."""
        self.add(head)
        self._depth += 1
        yield
        self._depth -= 1

    def name(self, prefix: str, value: Any) -> str:
        """A global name of the generated code for ``value``; the same object gets the same name."""
        for known, other in self.scope.items():
            if other is value and known.startswith(prefix):
                return known
        name = f"{prefix}_{len(self.scope)}"
        self.scope[name] = value
        return name

    def text(self) -> str:
        """All lines as one module."""
        return "\n".join(self.lines) + "\n"


class ManyFixed(dict[int, Callable[..., Any]]):
    """Count to the pack or unpack_from method of that many values of one struct letter.

    Small counts are kept: replica lists have a handful of members and there are thousands of them.
    """

    _LARGEST_KEPT = 64

    def __init__(self, letter: str, method: str) -> None:
        super().__init__()
        self._letter = letter
        self._method = method

    def __missing__(self, count: int) -> Callable[..., Any]:
        made: Callable[..., Any] = getattr(struct.Struct(f">{count}{self._letter}"), self._method)
        if count <= self._LARGEST_KEPT:
            self[count] = made
        return made


def is_literal(default: object) -> bool:
    """True if the repr of a field's default is its Python source."""
    return default is None or isinstance(default, (bool, int, str, bytes))


def smallest_size(fields: tuple[Field, ...], version: int, is_flexible: bool) -> int:
    """The fewest bytes that a struct of these fields can take in that version."""
    size = 1 if is_flexible else 0
    for field in fields:
        if not field.is_in(version) or field.is_tagged(version):
            continue
        if field.kind in FIXED:
            size += struct.calcsize(">" + FIXED[field.kind])
        elif field.kind == "struct":
            nested: Any = field.struct
            size += 1 if field.is_nullable(version) else smallest_size(nested.schema, version, is_flexible)
        elif is_flexible:
            size += 1
        else:
            size += 2 if field.kind == "string" else 4
    return size


def default_source(source: SourceText, field: Field) -> str:
    """An expression for the field's default; for changeable ones, a new object."""
    if field.default is MISSING:
        return "[]" if field.kind == "array" else source.name("Struct", field.struct) + "()"
    return repr(field.default) if is_literal(field.default) else source.name("default", field.default)
