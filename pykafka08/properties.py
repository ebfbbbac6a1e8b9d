"""Java's properties files.

``=``, ``:`` or blanks after the key, ``#`` and ``!`` comments, a backslash at the end of a line to go on, ``\\n``,
``\\t`` and ``\\uXXXX``.  What the properties mean is said where they are used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from pykafka08.errors import ConfigError

__all__ = ["properties_text", "read_properties", "text_of_file"]

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE_OF = {"\\": "\\\\", **{character: f"\\{letter}" for letter, character in _ESCAPES.items()}}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_KEY = re.compile(r"((?:\\.|[^\\=:\s])*)\s*[=:]?\s*", re.DOTALL)


def read_properties(path: str) -> dict[str, str]:
    """The pairs of a Java properties file, in UTF-8 or, as Java reads it, in ISO-8859-1."""
    text = _properties_text_of(Path(path), f"the properties file {path} cannot be read")
    pairs = {}
    for line in _logical_lines(text):
        match = _KEY.match(line)
        if match is not None and match.group(1):
            pairs[_unescape(match.group(1))] = _unescape(line[match.end() :])
    return pairs


def _properties_text_of(path: Path, failure: str) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{failure}: {error.strerror or error}") from error
    if b"\0" in data:
        raise ConfigError(f"{failure}: it is not text in UTF-8 or ISO-8859-1")
    for encoding in ("utf-8-sig", "iso-8859-1"):
        with suppress(UnicodeDecodeError):
            return data.decode(encoding)
    raise AssertionError("each byte is a letter of ISO-8859-1")


def text_of_file(path: Path, failure: str) -> str:
    """The text of a UTF-8 file; ConfigError, whose text begins with ``failure``, if it cannot be read.

    The error has no UnicodeDecodeError as its cause or context: that would hold the bytes, which may be a secret.
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{failure}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        reason = f"byte {error.start} is not UTF-8"
    raise ConfigError(f"{failure}: {reason}")


def properties_text(pairs: Mapping[str, str]) -> str:
    """The text of a Java properties file, in ASCII, as Java reads it whatever its encoding."""
    return "".join(f"{_escape(name, ' =:')}={_escape(value)}\n" for name, value in pairs.items())


def _escape(text: str, more: str = "") -> str:
    escaped = []
    for position, character in enumerate(text):
        if character in _ESCAPE_OF:
            escaped.append(_ESCAPE_OF[character])
        elif character in more or (position == 0 and character in " #!"):
            escaped.append(f"\\{character}")
        elif " " <= character <= "~":
            escaped.append(character)
        else:
            units = character.encode("utf-16-be", "surrogatepass")
            escaped += [f"\\u{high << 8 | low:04x}" for high, low in zip(units[::2], units[1::2], strict=True)]
    return "".join(escaped)


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
    units = _ESCAPE.sub(lambda match: _escaped(match.group(1)), text)
    # Java's files have two escapes for a character beyond U+FFFF.
    return units.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _escaped(text: str) -> str:
    if len(text) == 5:
        return chr(int(text[1:], 16))
    return _ESCAPES.get(text, text)
