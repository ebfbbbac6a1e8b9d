"""Turns declared messages into code, on first use of each class and version, and its failures into our errors.

``decoder`` and ``encoder`` write the source; here it is compiled, and registered with linecache so that tracebacks and
debuggers show it.  When generated code fails, the line that failed tells the field: the happy path pays nothing.
"""

from __future__ import annotations

import linecache
import struct
from collections.abc import Callable
from types import TracebackType
from typing import Any, NoReturn

from pykafka08.errors import LocalProtocolError, RemoteProtocolError, UnsupportedVersionError
from pykafka08.protocol.decoder import DecoderSource
from pykafka08.protocol.encoder import EncoderSource
from pykafka08.protocol.fields import Field
from pykafka08.protocol.source import LONGEST_TEXT, SourceText
from pykafka08.wire import Buffer

__all__ = ["Decoder", "Encoder", "compile_decoder", "compile_encoder"]

_MALFORMED = (struct.error, IndexError, UnicodeDecodeError, RemoteProtocolError)
_MISUSED = (struct.error, AttributeError, TypeError, ValueError, OverflowError, LocalProtocolError)

Encoder = Callable[[list[Buffer], Any], None]
"""Appends the pieces of a message to a list."""

Decoder = Callable[[Buffer, int], tuple[Any, int]]
"""The message that begins at an offset of a buffer, and how many bytes are left after it."""


def _load(source: SourceText, root: str, filename: str) -> Callable[..., Any]:
    text = source.text()
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    exec(compile(text, filename, "exec"), source.scope)
    function: Callable[..., Any] = source.scope[root]
    return function


def compile_decoder(message: Any, version: int, is_flexible: bool) -> Decoder:
    """The decoder of ``message``, a class that the ``schema`` decorators made; it raises RemoteProtocolError."""
    made = DecoderSource(message, version, is_flexible)
    filename = f"<pykafka08 decoder of {message.__name__} version {version}>"
    read = _load(made.source, made.root, filename)
    keeps_views = _has_records(message)

    def decode(buffer: Buffer, offset: int) -> tuple[Any, int]:
        start = 0
        if not keeps_views and type(buffer) is not bytes:
            start, offset, buffer = offset, 0, bytes(memoryview(buffer)[offset:])
        end = len(buffer)
        try:
            items, at = read(buffer, offset, end, 1)
        except _MALFORMED as error:
            path, at = _where(error.__traceback__, filename, made.source, offset)
            cause = error.message if isinstance(error, RemoteProtocolError) else _reason(error)
            raise RemoteProtocolError(
                f"{message.__name__} version {version}: {path}: {cause} (byte {start + at} of {start + end})",
                api=message.name,
            ) from error
        return items[0], end - at

    return decode


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "text that is not UTF-8"
    return "the bytes end too early"


def _has_records(cls: Any) -> bool:
    return any(
        field.kind == "records" or (field.struct is not None and _has_records(field.struct)) for field in cls.schema
    )


def _frames(traceback: TracebackType | None, filename: str) -> list[TracebackType]:
    """The frames of generated code, outermost first."""
    frames = []
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == filename:
            frames.append(traceback)
        traceback = traceback.tb_next
    return frames


def _where(traceback: TracebackType | None, filename: str, source: SourceText, offset: int) -> tuple[str, int]:
    """The path of the field that was being read, and how far the reading had come."""
    path = ""
    for frame in _frames(traceback, filename):
        scope = frame.tb_frame.f_locals
        if path.endswith("[]"):
            path = f"{path[:-1]}{len(scope['items'])}]"
        offset = scope.get("at", offset)
        path = _longer(path, source.fields[frame.tb_lineno - 1])
    return path.removesuffix("[]") or "tagged fields", offset


def _longer(path: str, fields: tuple[Field, ...]) -> str:
    """``path`` and the first of ``fields``; "[]" says that an index follows."""
    if not fields:
        return path
    marker = "[]" if fields[0].kind == "array" and fields[0].element == "struct" else ""
    return f"{path}{'.' if path else ''}{fields[0].name}{marker}"


def compile_encoder(message: Any, version: int, is_flexible: bool) -> Encoder:
    """The encoder of ``message``; it raises LocalProtocolError or UnsupportedVersionError."""
    made = EncoderSource(message, version, is_flexible)
    filename = f"<pykafka08 encoder of {message.__name__} version {version}>"
    write = _load(made.source, made.root, filename)

    def encode(parts: list[Buffer], item: Any) -> None:
        try:
            write(parts.append, (item,))
        except _MISUSED as error:
            _refuse(error, filename, made.source, message, version)

    return encode


def _refuse(error: Exception, filename: str, source: SourceText, message: Any, version: int) -> NoReturn:
    """Names the field that could not be written."""
    head = f"{message.__name__} version {version}"
    owner = message.__name__
    fields: tuple[Field, ...] = ()
    item: Any = None
    for frame in _frames(error.__traceback__, filename):
        item = frame.tb_frame.f_locals.get("item")
        if not hasattr(item, "schema"):
            kind = type(item).__name__ if item is not None else "None"
            raise LocalProtocolError(f"{head}: {owner} needs a struct, not {kind}", api=message.name) from error
        fields = source.fields[frame.tb_lineno - 1]
        owner = f"{type(item).__name__}.{fields[0].name}" if fields else type(item).__name__
    for field in fields:
        value = getattr(item, field.name)
        text = f"{head}: {type(item).__name__}.{field.name}"
        if value is None and field.nullable is not None and version < field.nullable.min:
            raise UnsupportedVersionError(
                f"{text} must not be None before version {field.nullable.min}", api=message.name
            ) from error
        misfit = _misfit(field, value, field.is_nullable(version))
        if misfit:
            raise LocalProtocolError(f"{text} {misfit}", api=message.name) from error
    raise LocalProtocolError(f"{head}: {owner}: {error}", api=message.name) from error


def _misfit(field: Field, value: object, is_nullable: bool) -> str | None:
    """What is wrong with ``value``, None if nothing can be said about it."""
    if value is None:
        return None if is_nullable else "must not be None"
    if field.kind == "array":
        return _array_misfit(field, value)
    return _kind_misfit(field.kind, value)


def _array_misfit(field: Field, value: object) -> str | None:
    if not isinstance(value, (list, tuple)):
        return f"must be a list, not {type(value).__name__}"
    if field.element is None or field.element == "struct":
        return None
    for index, element in enumerate(value):
        misfit = _kind_misfit(field.element, element)
        if misfit:
            return f"at index {index} {misfit}"
    return None


def _kind_misfit(kind: str, value: object) -> str | None:
    if kind in _INTEGER_BITS:
        bits, is_signed = _INTEGER_BITS[kind]
        low = -(1 << (bits - 1)) if is_signed else 0
        high = low + (1 << bits) - 1
        if not isinstance(value, int):
            return f"must be an int, not {type(value).__name__}"
        return None if low <= value <= high else f"must be between {low} and {high}, not {value}"
    if kind == "string":
        if not isinstance(value, str):
            return f"must be a str, not {type(value).__name__}"
        size = len(value.encode("utf-8", "replace"))
        if size > LONGEST_TEXT:
            return f"is {size} bytes of UTF-8; at most {LONGEST_TEXT} are possible"
        return "holds surrogates, which UTF-8 has not" if value.encode("utf-8", "ignore").decode() != value else None
    if kind in _WANTED and not isinstance(value, _WANTED[kind][0]):
        return f"must be {_WANTED[kind][1]}, not {type(value).__name__}"
    return None


_WANTED: dict[str, tuple[Any, str]] = {
    "bytes": ((bytes, bytearray, memoryview), "bytes-like"),
    "records": ((bytes, bytearray, memoryview, list), "bytes-like"),
    "float64": ((float, int), "a float"),
}
_INTEGER_BITS = {
    "int8": (8, True),
    "int16": (16, True),
    "uint16": (16, False),
    "int32": (32, True),
    "uint32": (32, False),
    "int64": (64, True),
}
