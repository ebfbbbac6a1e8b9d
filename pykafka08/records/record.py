"""What an application holds: Record (consumed), NewRecord (to produce), TopicPartition.

Not here: how records are laid out in bytes (``batch`` for magic 2, ``message_set`` for magic 0 and 1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import IntEnum
from types import FunctionType
from typing import NamedTuple

from mypy_extensions import mypyc_attr

from pykafka08.errors import CorruptRecordError, RemoteProtocolError
from pykafka08.wire import read_varint, take

__all__ = [
    "Header",
    "Headers",
    "NewRecord",
    "Record",
    "TimestampType",
    "TopicPartition",
    "new_record",
    "parse_headers",
    "records_of_rows",
]

Header = tuple[str, bytes | None]
Headers = tuple[Header, ...]


class TopicPartition(NamedTuple):
    """One partition of one topic."""

    topic: str
    partition: int


class TimestampType(IntEnum):
    """Who set a record's timestamp."""

    NONE = -1
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class NewRecord(NamedTuple):
    """A record to produce; a bare ``value`` of None deletes the key in a compacted topic.

    ``timestamp_ms`` None means the time of sending; ``partition`` None leaves the choice to the partitioner.
    """

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    timestamp_ms: int | None = None
    partition: int | None = None


# Compiled, no record is looked at by the garbage collector, or makes it run: none of its fields can lead back to it.
@mypyc_attr(acyclic=True)
class Record:
    """One consumed record.

    ``timestamp_ms`` is -1 and ``timestamp_type`` NONE in magic 0; headers and ``leader_epoch`` exist since Kafka 0.11.
    Equal records are equal in every field.  Not hashable: ``(topic, partition, offset)`` identifies a record.
    """

    # The decoders fill the slots themselves: a call of __init__ for each record would cost a third of the decoding.
    __slots__ = (
        "_headers",
        "key",
        "leader_epoch",
        "offset",
        "partition",
        "timestamp_ms",
        "timestamp_type",
        "topic",
        "value",
    )

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    timestamp_type: TimestampType | int
    key: bytes | None
    value: bytes | None
    leader_epoch: int
    _headers: Headers | bytes

    def __init__(
        self,
        topic: str,
        partition: int,
        offset: int,
        timestamp_ms: int = -1,
        timestamp_type: TimestampType | int = TimestampType.NONE,
        key: bytes | None = None,
        value: bytes | None = None,
        headers: Headers = (),
        leader_epoch: int = -1,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.timestamp_ms = timestamp_ms
        self.timestamp_type = timestamp_type
        self.key = key
        self.value = value
        self._headers = headers
        self.leader_epoch = leader_epoch

    @property
    def headers(self) -> Headers:
        """Names and values in the order they were written; CorruptRecordError where the bytes are no headers."""
        headers = self._headers
        if isinstance(headers, bytes):
            # Decoders leave the bytes as they are; most readers never ask.
            try:
                headers = self._headers = parse_headers(headers)
            except CorruptRecordError as error:
                error.topic, error.partition, error.offset = self.topic, self.partition, self.offset
                error.next_offset = self.offset + 1
                raise
        return headers

    def _fields(self) -> tuple[object, ...]:
        return (
            self.topic,
            self.partition,
            self.offset,
            self.timestamp_ms,
            self.timestamp_type,
            self.key,
            self.value,
            self.headers,
            self.leader_epoch,
        )

    def __eq__(self, other: object) -> bool:
        return self._fields() == other._fields() if type(other) is Record else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[object, ...]:
        # Headers that nobody asked for stay bytes, damaged or not.
        fields = (self.topic, self.partition, self.offset, self.timestamp_ms, self.timestamp_type, self.key, self.value)
        return _restored, (*fields, self._headers, self.leader_epoch)

    def __repr__(self) -> str:
        parts = [f"{self.topic}[{self.partition}]@{self.offset}"]
        if self.timestamp_type != TimestampType.NONE:
            parts.append(f"timestamp_ms={self.timestamp_ms} {TimestampType(self.timestamp_type).name}")
        parts.append(f"key={_brief(self.key)}")
        parts.append(f"value={_brief(self.value)}")
        if self._headers:
            parts.append(f"headers={self.headers!r}")
        if self.leader_epoch >= 0:
            parts.append(f"leader_epoch={self.leader_epoch}")
        return f"Record({', '.join(parts)})"


def _made_by_init(kind: type[Record]) -> Record:
    return kind("", -1, -1)


_IS_INTERPRETED = isinstance(_made_by_init, FunctionType)

#: Makes a record whose slots its caller fills; called with Record.  Compiled classes have no way around __init__.
new_record: Callable[[type[Record]], Record] = object.__new__ if _IS_INTERPRETED else _made_by_init


def records_of_rows(
    topic: str,
    partition: int,
    timestamp_type: TimestampType | int,
    leader_epoch: int,
    rows: Iterable[tuple[int, int, bytes | None, bytes | None, Headers | bytes]],
) -> list[Record]:
    """Records of one partition from rows of offset, timestamp, key, value and headers (parsed, or bytes)."""
    records: list[Record] = []
    append = records.append
    if not _IS_INTERPRETED:
        for offset, timestamp, key, value, headers in rows:
            record = Record(topic, partition, offset, timestamp, timestamp_type, key, value, (), leader_epoch)
            record._headers = headers
            append(record)
        return records
    new = new_record
    for offset, timestamp, key, value, headers in rows:
        record = new(Record)
        record.topic = topic
        record.partition = partition
        record.offset = offset
        record.timestamp_ms = timestamp
        record.timestamp_type = timestamp_type
        record.key = key
        record.value = value
        record._headers = headers
        record.leader_epoch = leader_epoch
        append(record)
    return records


def _restored(
    topic: str,
    partition: int,
    offset: int,
    timestamp_ms: int,
    timestamp_type: TimestampType | int,
    key: bytes | None,
    value: bytes | None,
    headers: Headers | bytes,
    leader_epoch: int,
) -> Record:
    """A record out of its pickled fields."""
    record = Record(topic, partition, offset, timestamp_ms, timestamp_type, key, value, (), leader_epoch)
    record._headers = headers
    return record


def _brief(data: bytes | None) -> str:
    if data is None or len(data) <= 64:
        return repr(data)
    return f"{data[:48]!r}... ({len(data)} bytes)"


def parse_headers(data: bytes) -> Headers:
    """Headers from ``data``: a count, then for each a name (UTF-8) and a value; nothing may follow.

    Bytes in a name that are no UTF-8 become U+FFFD, as Java clients read them.
    """
    end = len(data)
    headers: list[Header] = []
    try:
        count, position = read_varint(data, 0)
        if count < 0 or count * 2 > end - position:
            raise CorruptRecordError(f"header count {count} does not fit the record")
        for _ in range(count):
            size, position = read_varint(data, position)
            after = take(data, position, size, end)
            name = data[position:after].decode("utf-8", "replace")
            size, position = read_varint(data, after)
            if size == -1:
                headers.append((name, None))
                continue
            after = take(data, position, size, end)
            headers.append((name, data[position:after]))
            position = after
    except CorruptRecordError:
        raise
    except RemoteProtocolError as error:
        raise CorruptRecordError(f"headers of a record are damaged: {error.message}") from error
    if position != end:
        raise CorruptRecordError(f"{end - position} bytes are left after the last header")
    return tuple(headers)
