"""Java's properties files.

``=``, ``:`` or blanks after the key, ``#`` and ``!`` comments, a backslash at the end of a line to go on, ``\\n``,
``\\t`` and ``\\uXXXX``.  What the properties mean is said where they are used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from pykafka08.errors import ConfigError

__all__ = ["read_properties"]

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_KEY = re.compile(r"((?:\\.|[^\\=:\s])*)\s*[=:]?\s*", re.DOTALL)


def read_properties(path: str) -> dict[str, str]:
    """The pairs of a Java properties file."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the properties file {path} cannot be read: {error}") from error
    pairs = {}
    for line in _logical_lines(text):
        match = _KEY.match(line)
        if match is not None and match.group(1):
            pairs[_unescape(match.group(1))] = _unescape(line[match.end() :])
    return pairs


def _logical_lines(text: str) -> Iterable[str]:
    kept = ""
    for raw in re.split(r"\r\n|\r|\n", text):
        line = raw.lstrip(" \t\f")
        if not kept and line.startswith(("#", "!")):
            continue
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            kept += line[:-1]
        else:
            yield kept + line
            kept = ""
    if kept:
        yield kept


def _unescape(text: str) -> str:
    return _ESCAPE.sub(lambda match: _escaped(match.group(1)), text)


def _escaped(text: str) -> str:
    if len(text) == 5:
        return chr(int(text[1:], 16))
    return _ESCAPES.get(text, text)
