"""The records of one batch of magic 2, read when they are asked for, by the decoder that suits.

In the compiled form that is ``decode_native``.  Interpreted, batches of many records are read by ``decode_numpy`` where
numpy is installed; all others, and those in which it finds something unusual, by ``decode_loop``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from itertools import repeat
from types import FunctionType, ModuleType
from typing import Any

from pykafka08.errors import RemoteProtocolError
from pykafka08.records import decode_loop
from pykafka08.records.columns import Columns
from pykafka08.records.packed import CHUNK, OFFSET_DISAGREES, PackedRecords
from pykafka08.records.record import Headers, Record, records_of_rows

__all__ = [
    "BatchRecords",
    "ahead_of",
    "columns_of",
    "field_slices",
    "has_columns_decoder",
    "is_prepared",
    "load_columns_decoder",
    "prepare",
]

#: Fewer records than these are read sooner one by one: numpy takes its time for each call.
_MANY = 200
_MANY_BYTES = 32 * 1024  # of small batches, likewise


class BatchRecords(PackedRecords):
    """Packed records that can be asked for; CorruptRecordError where the bytes are no records.

    What the quick readers find wrong, ``decode_loop.read_columns`` judges: Java's consumer too takes a null whose
    length, -1, is written in more bytes than one.
    """

    __slots__ = ()

    @property
    def unpacked_bytes(self) -> int:
        """Bytes that the records take out of their codec."""
        return self.end - self.start

    def slice(self, data: bytes, start: int, end: int, count: int) -> BatchRecords:
        """The ``count`` records of this batch that lie in ``data[start:end]``."""
        return BatchRecords(
            data,
            start,
            end,
            count,
            topic=self.topic,
            partition=self.partition,
            base_offset=self.base_offset,
            last_offset=self.last_offset,
            base_timestamp=self.base_timestamp,
            fixed_timestamp=self.fixed_timestamp,
            timestamp_type=self.timestamp_type,
            leader_epoch=self.leader_epoch,
        )

    def chunks(self) -> Iterator[list[Record]]:
        """All records, at most CHUNK in a list."""
        columns = _vectorised([self])
        return self._read_chunks() if columns is None else self._chunks_of(columns)

    def _read_chunks(self) -> Iterator[list[Record]]:
        position, left = self.start, self.count
        previous = -1
        while left:
            size = min(left, CHUNK)
            try:
                records, position = _decoder.read_records(self, position, size)
            except (IndexError, RemoteProtocolError):
                yield from self._chunks_of(decode_loop.read_columns([self]), self.count - left)
                return
            if records[0].offset <= previous:
                raise self.damaged(OFFSET_DISAGREES)
            previous = records[-1].offset
            left -= size
            if not left:
                self.check_end(position)
            yield records

    def _chunks_of(self, columns: Columns, first: int = 0) -> Iterator[list[Record]]:
        keys = field_slices(columns, columns.key_edges, columns.key_nulls)
        values = field_slices(columns, columns.value_edges, columns.value_nulls)
        pieces = columns.headers_in_bytes()
        headers = None if pieces is None else [piece or () for piece in pieces]
        for start in range(first, self.count, CHUNK):
            stop = start + CHUNK
            some: Iterable[Headers | bytes] = repeat(()) if headers is None else headers[start:stop]
            rows = zip(
                columns.offsets[start:stop].tolist(),
                columns.timestamps_ms[start:stop].tolist(),
                keys[start:stop],
                values[start:stop],
                some,
                strict=False,
            )
            yield records_of_rows(self.topic, self.partition, self.timestamp_type, self.leader_epoch, rows)

    def values(self) -> list[bytes | None]:
        """The values alone, at about half the price of records."""
        if self.ahead is not None:
            found: list[bytes | None] | None = self.ahead.values_of(self)
            if found is not None:
                return found
        columns = _vectorised([self])
        if columns is not None:
            return field_slices(columns, columns.value_edges, columns.value_nulls)
        values: list[bytes | None]
        try:
            values, position = _decoder.read_values(self)
        except (IndexError, RemoteProtocolError):
            return decode_loop.read_columns([self]).values()
        self.check_end(position)
        return values

    def keys(self) -> list[bytes | None]:
        """The keys alone."""
        columns = _vectorised([self])
        if columns is not None:
            return field_slices(columns, columns.key_edges, columns.key_nulls)
        if _IS_INTERPRETED:  # columns of few records cost more than the records
            return [record.key for chunk in self._read_chunks() for record in chunk]
        columns = self.columns()
        return columns.fields(columns.key_edges, columns.key_nulls)

    def columns(self) -> Columns:
        """All fields as columns."""
        return columns_of([self])


def columns_of(batches: list[PackedRecords]) -> Columns:
    """The records of batches that lie in the same bytes; CorruptRecordError for the first that is damaged."""
    columns = _vectorised(batches)
    return _decoder.read_columns(batches) if columns is None else columns


def _vectorised(batches: list[PackedRecords]) -> Columns | None:
    """The records as columns, where numpy is quicker than a loop and finds nothing unusual."""
    if not _IS_INTERPRETED or sum([packed.count for packed in batches]) < _MANY:
        return None
    decoder = _numpy_decoder()
    columns: Columns | None = None if decoder is None else decoder.read_columns(batches)
    return columns


def field_slices(columns: Columns, edges: memoryview | None, nulls: memoryview | None) -> list[bytes | None]:
    """The keys or the values as bytes: by pyarrow where it is and there are many, else by Python."""
    decoder = _numpy_decoder() if columns.count >= _MANY else None
    fields: list[bytes | None] | None = None if decoder is None else decoder.slices(columns, edges, nulls)
    return columns.fields(edges, nulls) if fields is None else fields


def ahead_of(data: bytes) -> Any:
    """A ReadAhead over the batches of one buffer; None where it is of no use."""
    decoder = _numpy_decoder() if _IS_INTERPRETED and len(data) > _MANY_BYTES else None
    if decoder is None:
        return None
    return import_module("pykafka08.records.read_ahead").ReadAhead(data, decoder)


@cache
def _numpy_decoder() -> Any:
    """The module ``decode_numpy``, imported when there is work for it; None without numpy."""
    try:
        return import_module("pykafka08.records.decode_numpy")
    except ImportError:
        return None


def is_prepared() -> bool:
    """True if :func:`prepare` has nothing to do."""
    return not _IS_INTERPRETED or prepare.cache_info().currsize > 0


def has_columns_decoder() -> bool:
    """True if :func:`load_columns_decoder` has nothing to do."""
    return not _IS_INTERPRETED or _numpy_decoder.cache_info().currsize > 0


def load_columns_decoder() -> None:
    """Import the modules with which :func:`columns_of` decodes large batches; call it in a thread."""
    if _IS_INTERPRETED:
        _numpy_decoder()


@cache
def prepare() -> None:
    """Load what large batches are decoded with; it may take tenths of a second, so call it in a thread."""
    decoder = _numpy_decoder()
    if decoder is not None:
        decoder.prepare()


_IS_INTERPRETED = isinstance(columns_of, FunctionType)


def _chosen_decoder() -> ModuleType:
    # Decided once: which is faster depends on what this module runs as.  The compiled one needs the package librt.
    return decode_loop if _IS_INTERPRETED else import_module("pykafka08.records.decode_native")


_decoder: Any = _chosen_decoder()
