"""Values of small batches, read together: numpy takes its time for each call, so it is asked once for many batches.

Batches that were not handed out yet are only looked at here.  What is found in one counts when ``reader`` has checked
it and hands it out with the very bounds that its header had here.
"""

from __future__ import annotations

from typing import Any

from pykafka08.records.batch import HEADER, HEADER_SIZE
from pykafka08.records.packed import PackedRecords
from pykafka08.records.record import TimestampType

__all__ = ["ReadAhead"]

_MOST_BYTES = 256 * 1024  # looked at in one go
_FEW = 400  # records in all: no quicker than a loop
_CODEC_BITS = 7
_HEAD = 12  # offset and size


class ReadAhead:
    """The batches of one buffer of record bytes; ``decoder`` is the module ``decode_numpy``."""

    __slots__ = ("_data", "_decoder", "_found", "_unusual_until")

    def __init__(self, data: bytes, decoder: Any) -> None:
        self._data = data
        self._decoder = decoder
        self._found: dict[tuple[int, int, int], list[bytes | None]] = {}
        self._unusual_until = 0

    def values_of(self, packed: PackedRecords) -> list[bytes | None] | None:
        """The values of a batch in these bytes; None if they are better read alone."""
        found = self._found.pop((packed.start, packed.end, packed.count), None)
        if found is None and packed.start >= self._unusual_until:
            self._read_from(packed)
            found = self._found.pop((packed.start, packed.end, packed.count), None)
        return found

    def _read_from(self, packed: PackedRecords) -> None:
        self._found.clear()
        batches = self._neighbours(packed)
        is_worth_it = sum([each.count for each in batches]) >= _FEW
        columns = self._decoder.read_columns(batches) if is_worth_it else None
        if columns is None:
            self._unusual_until = batches[-1].end
            return
        values = self._decoder.slices(columns, columns.value_edges, columns.value_nulls) or columns.values()
        row = 0
        for each in batches:
            self._found[each.start, each.end, each.count] = values[row : row + each.count]
            row += each.count

    def _neighbours(self, packed: PackedRecords) -> list[PackedRecords]:
        """The batch and those behind it, as far as they are whole, not compressed and claim what can be."""
        data, batches, position = self._data, [packed], packed.end
        while position - packed.start < _MOST_BYTES and len(data) - position >= HEADER_SIZE:
            head = HEADER.unpack_from(data, position)
            end = position + _HEAD + head[1]
            start = position + HEADER_SIZE
            if head[3] != 2 or head[5] & _CODEC_BITS or end > len(data) or not 0 < head[12] * 7 <= end - start:
                break
            batches.append(
                PackedRecords(
                    data,
                    start,
                    end,
                    head[12],
                    topic="",
                    partition=-1,
                    base_offset=head[0],
                    last_offset=head[0] + head[6],
                    base_timestamp=head[7],
                    fixed_timestamp=packed.fixed_timestamp,
                    timestamp_type=TimestampType.NONE,
                    leader_epoch=-1,
                )
            )
            position = end
        return batches
