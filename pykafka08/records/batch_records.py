"""The records of one batch of magic 2, read when they are asked for, by the decoder that suits.

In the compiled form that is ``decode_native``, else ``decode_loop``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import FunctionType
from typing import NamedTuple

from pykafka08.errors import RemoteProtocolError
from pykafka08.records import decode_loop
from pykafka08.records.columns import Columns
from pykafka08.records.packed import CHUNK, PackedRecords
from pykafka08.records.record import Record

__all__ = ["BatchRecords", "columns_of"]


class BatchRecords(PackedRecords):
    """Packed records that can be asked for; CorruptRecordError where the bytes are no records."""

    __slots__ = ()

    @property
    def unpacked_bytes(self) -> int:
        """Bytes that the records take out of their codec."""
        return self.end - self.start

    def chunks(self) -> Iterator[list[Record]]:
        """All records, at most CHUNK in a list."""
        position, left = self.start, self.count
        while left:
            size = min(left, CHUNK)
            try:
                records, position = _read_records(self, position, size)
            except (IndexError, RemoteProtocolError) as error:
                raise self.damaged(error) from error
            left -= size
            if records[0].offset < self.base_offset or records[-1].offset > self.last_offset:
                raise self.damaged("an offset is outside the batch")
            if not left:
                self.check_end(position)
            yield records

    def values(self) -> list[bytes | None]:
        """The values alone, at about half the price of records."""
        try:
            values, position = _read_values(self)
        except (IndexError, RemoteProtocolError) as error:
            raise self.damaged(error) from error
        self.check_end(position)
        return values

    def keys(self) -> list[bytes | None]:
        """The keys alone."""
        return [record.key for chunk in self.chunks() for record in chunk]

    def columns(self) -> Columns:
        """All fields as columns."""
        return columns_of([self])


def columns_of(batches: list[PackedRecords]) -> Columns:
    """The records of batches that lie in the same bytes; CorruptRecordError for the first that is damaged."""
    return _read_columns(list(batches))


class _Decoder(NamedTuple):
    read_records: Callable[[PackedRecords, int, int], tuple[list[Record], int]]
    read_values: Callable[[PackedRecords], tuple[list[bytes | None], int]]
    read_columns: Callable[[list[PackedRecords]], Columns]


def _chosen_form() -> _Decoder:
    """Decided once: which decoder is faster depends on what this module runs as."""
    if isinstance(columns_of, FunctionType):
        return _Decoder(decode_loop.read_records, decode_loop.read_values, decode_loop.read_columns)
    from pykafka08.records import decode_native

    return _Decoder(decode_native.read_records, decode_native.read_values, decode_native.read_columns)


_read_records, _read_values, _read_columns = _chosen_form()
