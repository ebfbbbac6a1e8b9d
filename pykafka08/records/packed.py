"""The records of one batch of magic 2 as they lie in its bytes: unpacked from the codec, not yet read.

What is here is what every decoder needs to know of a batch, and the one way to say that it is damaged.  The decoders
are ``decode_loop``, ``decode_numpy`` and ``decode_native``; ``batch_records`` chooses between them.
"""

from __future__ import annotations

from typing import Any, Final

from pykafka08.errors import CorruptRecordError, RemoteProtocolError
from pykafka08.records.record import TimestampType
from pykafka08.wire import read_varint, read_varlong

__all__ = ["CHUNK", "OFFSET_DISAGREES", "PackedRecords", "long_length", "long_sum", "not_negative"]

#: Records are made so many at a time: small enough for the cache, large enough to hide the call.
CHUNK: Final = 256

#: Offsets of a batch increase from record to record.
OFFSET_DISAGREES: Final = "an offset is outside the batch, or not above the offset before it"

#: Length, attributes, two deltas, two lengths, header count: a byte each.
_SMALLEST_RECORD: Final = 7


class PackedRecords:
    """``data[start:end]`` holds ``count`` records, those from the asked offset on.

    ``fixed_timestamp`` replaces the records' own where the log's append time rules.
    ``ahead`` is a ReadAhead for small batches that have neighbours, else None.
    """

    __slots__ = (
        "ahead",
        "base_offset",
        "base_timestamp",
        "count",
        "data",
        "end",
        "fixed_timestamp",
        "last_offset",
        "leader_epoch",
        "partition",
        "start",
        "timestamp_type",
        "topic",
    )

    ahead: Any
    data: bytes
    start: int
    end: int
    count: int
    topic: str
    partition: int
    base_offset: int
    last_offset: int
    base_timestamp: int
    fixed_timestamp: int | None
    timestamp_type: TimestampType | int
    leader_epoch: int

    def __init__(
        self,
        data: bytes,
        start: int,
        end: int,
        count: int,
        *,
        topic: str,
        partition: int,
        base_offset: int,
        last_offset: int,
        base_timestamp: int,
        fixed_timestamp: int | None,
        timestamp_type: TimestampType | int,
        leader_epoch: int,
    ) -> None:
        # No count makes a decoder loop, or set memory aside, further than the bytes allow.
        if count < 0 or count * _SMALLEST_RECORD > end - start:
            raise CorruptRecordError(f"batch claims {count} records in {end - start} bytes")
        if not count and start != end:
            raise CorruptRecordError(f"batch claims no records in {end - start} bytes")
        self.ahead = None
        self.data = data
        self.start = start
        self.end = end
        self.count = count
        self.topic = topic
        self.partition = partition
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.base_timestamp = base_timestamp
        self.fixed_timestamp = fixed_timestamp
        self.timestamp_type = timestamp_type
        self.leader_epoch = leader_epoch

    def __len__(self) -> int:
        return self.count

    def drop_below(self, offset: int) -> None:
        """Pass over the records below ``offset``; ``count`` shrinks."""
        data, position = self.data, self.start
        try:
            while self.count:
                size, after = read_varint(data, position)
                _, delta_at = read_varlong(data, after + 1)
                delta, _ = read_varint(data, delta_at)
                if self.base_offset + delta >= offset:
                    break
                position = after + not_negative(size)
                self.count -= 1
        except (IndexError, RemoteProtocolError) as error:
            raise self.damaged(error) from error
        if position > self.end:
            raise self.damaged("a record runs past the end of its batch")
        if not self.count:
            self.check_end(position)
        self.start = position

    def check_end(self, position: int) -> None:
        """CorruptRecordError unless the records end where the batch does."""
        if position != self.end:
            raise self.damaged(f"its records end {self.end - position} bytes before the batch does")

    def damaged(self, reason: Exception | str) -> CorruptRecordError:
        """The error that says that this batch is damaged, and where reading can go on."""
        text = reason if isinstance(reason, str) else "a length runs past the end"
        if isinstance(reason, RemoteProtocolError):
            text = reason.message
        return CorruptRecordError(
            f"record batch is damaged: {text}",
            topic=self.topic,
            partition=self.partition,
            offset=self.base_offset,
            next_offset=self.last_offset + 1,
        )


def not_negative(size: int) -> int:
    """``size``; RemoteProtocolError if it is below zero."""
    if size < 0:
        raise RemoteProtocolError(f"negative length {size}")
    return size


def long_length(data: bytes, position: int) -> tuple[int, int]:
    """A length whose varint may have up to five bytes, and the position after it."""
    size, position = read_varint(data, position)
    return not_negative(size), position


def long_sum(data: bytes, position: int, base: int) -> tuple[int, int]:
    """``base`` and a delta whose varint may have up to ten bytes, and the position after it."""
    delta, position = read_varlong(data, position)
    total = base + delta
    if not -(1 << 63) <= total < 1 << 63:
        raise RemoteProtocolError("an offset or timestamp does not fit 64 bits")
    return total, position
