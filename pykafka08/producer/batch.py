"""Records of one partition on their way, as columns, and what became of them.

Pure.  A batch is filled by ``accumulator``, encoded by ``request`` and awaited through ``delivery``.  It ends once: all
of it acknowledged, all of it failed, or *forwarded*: its records went on into other batches (a split, or records that
waited for their topic's metadata), and each index says where to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from pykafka08.errors import KafkaError, LocalProtocolError
from pykafka08.records.record import Headers
from pykafka08.records.writer import packed, unpacked
from pykafka08.wire import Buffer

__all__ = ["BATCH_OVERHEAD", "RECORD_OVERHEAD", "Batch", "Listener", "Span", "headers_size"]

RECORD_OVERHEAD = 36
"""Most bytes that a record adds to a batch beside its key, value and headers, in every format (magic 0 to 2)."""

BATCH_OVERHEAD = 61
"""Header of a batch of magic 2; the wrapper of the older formats is smaller."""

OPEN_SHARE = 1 / 8
"""A batch takes records for this share of its time to the deadline, so that none has much less time than its own."""

FEWEST_PACKED = 32
"""Fewer records stay columns until they are encoded."""

UNKNOWN = -1

Span = tuple["Batch", int, int]
"""A run of records: their batch, the index of the first in it, how many."""


class Listener(Protocol):
    """Told when a batch has ended; a :class:`pykafka08.driver.Waiter` is one."""

    def set_result(self, result: None, /) -> object: ...


class Batch:
    """One batch: columns ``values``, ``timestamps`` and, once a record has one, ``keys`` and ``headers``.

    Once it is packed, and of rows from the start, ``packed`` has who gives the records as bytes of magic 2, in place of
    those columns but ``timestamps``.
    ``partition`` is -1 while the records wait for metadata; ``chosen`` then holds the partitions that the application
    asked for.  ``created`` and ``deadline`` are monotonic seconds; ``size`` is a bound of the encoded bytes.
    ``producer_id``, ``producer_epoch`` and ``base_sequence`` are those of an idempotent producer, else -1, as they are
    before the batch is written for the first time.
    """

    __slots__ = (
        "_encoded",
        "_encoded_magic",
        "_error",
        "_record_errors",
        "_routes",
        "attempts",
        "base_offset",
        "base_sequence",
        "chosen",
        "closes_at",
        "created",
        "deadline",
        "headers",
        "is_closed",
        "is_done",
        "is_in_doubt",
        "keys",
        "last_error",
        "listener",
        "log_append_time_ms",
        "magic",
        "packed",
        "partition",
        "producer_epoch",
        "producer_id",
        "size",
        "timestamps",
        "topic",
        "values",
    )

    def __init__(self, topic: str, partition: int, created: float, deadline: float) -> None:
        self.topic = topic
        self.partition = partition
        self.created = created
        self.deadline = deadline
        self.closes_at = created + (deadline - created) * OPEN_SHARE
        self.values: list[bytes | None] = []
        self.timestamps: list[int] = []
        self.keys: list[bytes | None] | None = None
        self.headers: list[Headers] | None = None
        self.chosen: list[int | None] | None = None
        self.packed: list[Callable[[], Sequence[Buffer]]] | None = None
        self.size = BATCH_OVERHEAD
        self.is_closed = False
        """No record may be added any more."""
        self.is_done = False
        """Acknowledged or failed."""
        self.attempts = 0
        self.is_in_doubt = False
        """An attempt ended without a word on whether it is in the log."""
        self.last_error: KafkaError | None = None
        self.listener: Listener | None = None
        self.base_offset = UNKNOWN
        self.log_append_time_ms = UNKNOWN
        self.magic = UNKNOWN
        self.producer_id = self.producer_epoch = self.base_sequence = UNKNOWN
        self._error: KafkaError | None = None
        self._record_errors: dict[int, KafkaError] | None = None
        self._routes: Sequence[tuple[Batch, int]] | None = None
        self._encoded: list[Buffer] | None = None
        self._encoded_magic = UNKNOWN

    def __len__(self) -> int:
        return len(self.timestamps)

    def __repr__(self) -> str:
        return f"<Batch {self.topic}[{self.partition}] of {len(self)} records, {self.size} bytes>"

    # --- filling ------------------------------------------------------------------------------------------------------

    def append(self, value: bytes | None, key: bytes | None, headers: Headers, timestamp_ms: int, size: int) -> None:
        """Add a record; ``size`` is its bound of encoded bytes."""
        self.values.append(value)
        self.timestamps.append(timestamp_ms)
        if key is not None or self.keys is not None:
            self.append_key(key)
        if headers or self.headers is not None:
            self.append_headers(headers)
        self.size += size

    def extend(self, values: Sequence[bytes | None], timestamp_ms: int, size: int) -> None:
        """Add records without keys and headers; ``size`` is the bound of all of them."""
        self.values.extend(values)
        self.timestamps.extend([timestamp_ms] * len(values))
        if self.keys is not None:
            self.keys.extend([None] * len(values))
        if self.headers is not None:
            self.headers.extend([()] * len(values))
        self.size += size

    def extend_columns(
        self,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None] | None,
        headers: Sequence[Headers] | None,
        timestamps: Sequence[int],
        size: int,
    ) -> None:
        """Add records as columns of one length; ``size`` is the bound of all of them."""
        if keys is not None or self.keys is not None:
            if self.keys is None:
                self.keys = [None] * len(self.values)
            self.keys.extend(keys if keys is not None else [None] * len(values))
        if headers is not None or self.headers is not None:
            if self.headers is None:
                self.headers = [()] * len(self.values)
            self.headers.extend(headers if headers is not None else [()] * len(values))
        self.values.extend(values)
        self.timestamps.extend(timestamps)
        self.size += size

    def append_key(self, key: bytes | None) -> None:
        if self.keys is None:
            self.keys = [None] * (len(self.values) - 1)
        self.keys.append(key)

    def append_headers(self, headers: Headers) -> None:
        if self.headers is None:
            self.headers = [()] * (len(self.values) - 1)
        self.headers.append(headers)

    def take(self, source: Batch, index: int, size: int) -> int:
        """Add the record ``index`` of another batch; its index in this one."""
        source.unpack()
        self.append(
            source.values[index],
            source.keys[index] if source.keys is not None else None,
            source.headers[index] if source.headers is not None else (),
            source.timestamps[index],
            size,
        )
        return len(self.values) - 1

    def record_bytes(self, index: int) -> int:
        """Bound of the encoded bytes of one record."""
        self.unpack()
        size = RECORD_OVERHEAD + len(self.values[index] or b"")
        if self.keys is not None:
            size += len(self.keys[index] or b"")
        if self.headers is not None:
            size += headers_size(self.headers[index])
        return size

    def unpack(self) -> None:
        """Make columns of what is packed: for the other formats, and for records that go their own ways."""
        if self.packed is not None:
            self.keys, self.values, self.headers = unpacked(self.timestamps, self.packed_records() or [])
            self.packed = None

    def pack(self) -> None:
        """Make bytes of the columns, which nothing joins any more: they are fresh, and as objects take more memory."""
        if self.packed is not None or len(self.timestamps) < FEWEST_PACKED:
            return
        try:
            pieces = packed(self.timestamps, self.keys, self.values, self.headers)
        except LocalProtocolError:
            return  # told when it is encoded, and of which records
        self.packed = [lambda: pieces]
        self.keys, self.headers, self.values = None, None, []

    def packed_records(self) -> list[Buffer] | None:
        """The records as bytes of magic 2, in pieces; None before they are packed."""
        return None if self.packed is None else [piece for records in self.packed for piece in records()]

    # --- encoding -----------------------------------------------------------------------------------------------------

    def encoded(self, magic: int) -> list[Buffer] | None:
        """The pieces kept by :meth:`keep_encoded` for that format."""
        return self._encoded if magic == self._encoded_magic else None

    def keep_encoded(self, magic: int, data: list[Buffer]) -> None:
        """Keep the encoded pieces for further attempts."""
        self._encoded, self._encoded_magic, self.magic = data, magic, magic

    @property
    def end_sequence(self) -> int:
        """The number behind its last record's."""
        return self.base_sequence + len(self)

    def drop_numbers(self) -> None:
        """It is not in the log, and will be numbered again, or sent without numbers."""
        self.producer_id = self.producer_epoch = self.base_sequence = UNKNOWN
        self.is_in_doubt = False
        self._encoded, self._encoded_magic = None, UNKNOWN

    # --- the end ------------------------------------------------------------------------------------------------------

    def acknowledge(self, base_offset: int, log_append_time_ms: int) -> None:
        self.base_offset = base_offset
        self.log_append_time_ms = log_append_time_ms
        self._end()

    def fail(self, error: KafkaError, record_errors: dict[int, KafkaError] | None = None) -> None:
        """End with ``error`` for every record, save those that have one of their own."""
        self._error = error
        self._record_errors = record_errors
        self._end()

    def _end(self) -> None:
        self.is_done = True
        self._let_go()
        self._tell()

    def forward(self, routes: Sequence[tuple[Batch, int]]) -> None:
        """The record of each index goes on as ``routes[index]``."""
        self._routes = routes
        self._let_go()
        self._tell()

    def _let_go(self) -> None:
        """Drop what only sending needs: the application may hold its deliveries for long."""
        self.is_closed = True
        self.values = []
        self.keys = self.headers = self.chosen = self.packed = None
        self._encoded = None

    def _tell(self) -> None:
        listener, self.listener = self.listener, None
        if listener is not None:
            listener.set_result(None)

    def follow(self, index: int) -> tuple[Batch, int]:
        """Where the record is now."""
        batch = self
        while batch._routes is not None:
            batch, index = batch._routes[index]
        return batch, index

    @property
    def is_forwarded(self) -> bool:
        return self._routes is not None

    def forwarded_to(self) -> list[Batch]:
        """The batches that its records went on into."""
        return list(dict.fromkeys(batch for batch, _ in self._routes or ()))

    @property
    def error(self) -> KafkaError | None:
        """What the batch failed with; None before the end and after an acknowledgement."""
        return self._error

    def error_of(self, index: int) -> KafkaError | None:
        if self._record_errors is not None and index in self._record_errors:
            return self._record_errors[index]
        return self._error

    def offset_of(self, index: int) -> int:
        """-1 where the broker tells none (acks=0)."""
        return UNKNOWN if self.base_offset < 0 else self.base_offset + index

    def timestamp_of(self, index: int) -> int:
        """Milliseconds as they stand in the log, -1 where the broker's format has none (before 0.10)."""
        if self.magic == 0:
            return UNKNOWN
        return self.timestamps[index] if self.log_append_time_ms < 0 else self.log_append_time_ms


def headers_size(headers: Headers) -> int:
    """Bound of the encoded bytes of a record's headers."""
    return sum([10 + len(name.encode()) + len(value or b"") for name, value in headers])
