"""The records of one batch of magic 2, read when they are asked for, by the decoder that suits.

In the compiled form that is ``decode_native``, else ``decode_loop``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
                records, position = decode_loop.read_records(self, position, size)
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
            values, position = decode_loop.read_values(self)
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


def columns_of(batches: Sequence[BatchRecords]) -> Columns:
    """The records of batches that lie in the same bytes; CorruptRecordError for the first that is damaged."""
    return decode_loop.read_columns(batches)
