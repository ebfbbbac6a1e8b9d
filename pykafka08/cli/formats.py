"""From records to the bytes on standard output, as Kafka's own console consumer writes them.

A format is made once from the ``print.*`` properties and then applied to whole batches.  Nothing here reads or writes.
Source: the properties that ``kafka-console-consumer --help`` lists; the fields' order and texts were observed on 2.8.2
and 4.3.1 and are the same on both.  ``print.epoch`` and ``print.delivery`` came later; the tool drops both facts before
it prints, and so says NOT_PRESENT for every record.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Literal, Protocol

from pykafka08.cli.deserializers import Deserializer, deserializer
from pykafka08.cli.properties import bytes_of

if TYPE_CHECKING:
    from pykafka08.records.record import Record

__all__ = ["Batch", "RecordFormat", "Renderer", "format_properties", "visible", "visible_bytes"]

# Characters that move the cursor, change colours or reverse the writing direction; newlines and tabs stay.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    """The text with escape sequences, such as ``\\x1b``, in place of control characters."""
    return _CONTROLS.sub(lambda found: repr(found[0])[1:-1], text)


def visible_bytes(data: bytes) -> bytes:
    """The same for UTF-8 bytes; invalid bytes become escape sequences too."""
    return visible(data.decode("utf-8", "backslashreplace")).encode()


class Batch(Protocol):
    """What a format needs of the consumer's batches."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Record]: ...

    def values(self) -> Sequence[bytes | None]: ...


@dataclass(frozen=True, kw_only=True)
class RecordFormat:
    """Which fields are printed and what stands between them; :meth:`compile` makes it a function."""

    timestamp: bool = False
    partition: bool = False
    offset: bool = False
    delivery: bool = False
    epoch: bool = False
    headers: bool = False
    key: bool = False
    value: bool = True
    key_separator: bytes = b"\t"
    line_separator: bytes = b"\n"
    headers_separator: bytes = b","
    null_literal: bytes = b"null"
    key_deserializer: Deserializer | None = None
    value_deserializer: Deserializer | None = None
    headers_deserializer: Deserializer | None = None

    def compile(self, *, for_terminal: bool = False) -> Renderer:
        """The functions that format keys and values, created once for all records.

        ``for_terminal``: control characters are escaped, because a terminal would execute them.
        """
        fields = self._fields()
        if for_terminal:
            return Renderer([_visible_field(field) for field in fields], self)
        is_value_alone = self.value and len(fields) == 1 and self.value_deserializer is None
        return Renderer(fields, self, batch=self._values_only if is_value_alone else None)

    def _fields(self) -> list[Field]:
        table: list[tuple[bool, Field]] = [
            (self.timestamp, _timestamp),
            (self.partition, lambda record: b"Partition:%d" % record.partition),
            (self.offset, lambda record: b"Offset:%d" % record.offset),
            (self.delivery, lambda record: b"Delivery:NOT_PRESENT"),
            (self.epoch, lambda record: b"Epoch:NOT_PRESENT"),
            (self.headers, self._headers),
            (self.key, self._column("key", self.key_deserializer)),
            (self.value, self._column("value", self.value_deserializer)),
        ]
        return [field for is_printed, field in table if is_printed]

    def _values_only(self, batch: Batch, limit: int) -> bytes:
        values = batch.values()
        if limit < len(values):
            values = values[:limit]
        null = self.null_literal
        lines = [null if value is None else value for value in values]
        lines.append(b"")
        return self.line_separator.join(lines)

    def _show(self, data: bytes | None, convert: Deserializer | None) -> bytes:
        if data is None:
            return self.null_literal
        return data if convert is None else convert(data)

    def _column(self, name: Literal["key", "value"], convert: Deserializer | None) -> Field:
        null = self.null_literal
        if convert is not None:
            return lambda record: self._show(getattr(record, name), convert)
        if name == "key":
            return lambda record: null if record.key is None else record.key
        return lambda record: null if record.value is None else record.value

    def _headers(self, record: Record) -> bytes:
        if not record.headers:
            return b"NO_HEADERS"
        convert = self.headers_deserializer
        shown = [b"%b:%b" % (name.encode(), self._show(value, convert)) for name, value in record.headers]
        return self.headers_separator.join(shown)


Field = Callable[["Record"], bytes]


def _visible_field(field: Field) -> Field:
    return lambda record: visible_bytes(field(record))


class Renderer:
    """A compiled format.

    ``batch(batch, limit)`` is the text of the first ``limit`` records, ``line(record)`` that of one; they raise
    :class:`KafkaError` where a deserializer refuses a record.
    """

    def __init__(
        self, fields: list[Field], settings: RecordFormat, batch: Callable[[Batch, int], bytes] | None = None
    ) -> None:
        self._fields = fields
        self._separator = settings.key_separator
        self._end = settings.line_separator
        self.batch = batch or self._batch

    def line(self, record: Record) -> bytes:
        if not self._fields:
            return b""
        return self._separator.join([field(record) for field in self._fields]) + self._end

    def _batch(self, batch: Batch, limit: int) -> bytes:
        fields, separator = self._fields, self._separator
        if not fields:
            return b""
        lines = [separator.join([field(record) for field in fields]) for record in islice(batch, limit)]
        lines.append(b"")
        return self._end.join(lines)


_TIMESTAMP_TYPES = {0: b"CreateTime:%d", 1: b"LogAppendTime:%d"}


def _timestamp(record: Record) -> bytes:
    text = _TIMESTAMP_TYPES.get(record.timestamp_type)
    return b"NO_TIMESTAMP" if text is None else text % record.timestamp_ms


def _is_true(text: str) -> bool:
    return text.strip().lower() == "true"


_KEYWORDS: dict[str, tuple[str, Callable[[str], object]]] = {
    **{
        f"print.{name}": (name, _is_true)
        for name in ("timestamp", "partition", "offset", "delivery", "epoch", "headers", "key", "value")
    },
    "key.separator": ("key_separator", bytes_of),
    "line.separator": ("line_separator", bytes_of),
    "headers.separator": ("headers_separator", bytes_of),
    "null.literal": ("null_literal", bytes_of),
    "key.deserializer": ("key_deserializer", deserializer),
    "value.deserializer": ("value_deserializer", deserializer),
    "headers.deserializer": ("headers_deserializer", deserializer),
}


def format_properties(properties: Mapping[str, str]) -> tuple[RecordFormat, list[str]]:
    """The format that the formatter properties ask for, and the names that mean nothing to it."""
    known = {_KEYWORDS[name][0]: _KEYWORDS[name][1](text) for name, text in properties.items() if name in _KEYWORDS}
    unknown = [name for name in properties if name not in _KEYWORDS]
    return RecordFormat(**known), unknown  # type: ignore[arg-type]
