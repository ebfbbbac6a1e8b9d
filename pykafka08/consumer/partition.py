"""What the consumer knows about one partition: where it reads, what is fetched and not handed out, what it waits for.

Only bookkeeping is here; ``machine`` decides what happens when.
"""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from pykafka08.consumer.actions import FetchAsk
from pykafka08.errors import KafkaError
from pykafka08.records.record import TopicPartition

if TYPE_CHECKING:  # looking offsets up needs no decoders
    from pykafka08.consumer.chunk import Chunk

__all__ = ["EARLIEST", "LATEST", "Halt", "LogName", "Lookup", "PartitionState", "Purpose"]

#: Timestamps with a meaning of their own in ListOffsets.
LATEST, EARLIEST = -1, -2


class Purpose(Enum):
    """Why offsets are looked up."""

    START = "read on from the offset found"
    BOUNDS = "tell the application both ends of the log"
    COMMITTED = "read on from the group's committed offset, which others ask for"


class Lookup:
    """Offsets to be found, one after the other: ``found`` grows until it is as long as ``timestamps``."""

    __slots__ = ("found", "lost_offset", "purpose", "timestamps")

    def __init__(self, purpose: Purpose, timestamps: tuple[int, ...], lost_offset: int | None = None) -> None:
        self.purpose = purpose
        self.timestamps = timestamps
        self.lost_offset = lost_offset
        self.found: list[int] = []

    @property
    def timestamp(self) -> int:
        """The next one to ask for."""
        return self.timestamps[len(self.found)]

    @property
    def is_complete(self) -> bool:
        return len(self.found) == len(self.timestamps)


class LogName(str):
    """A topic's name as records carry it that come from a later log of the partition than the first.

    Whether a record is of the log that is read now is asked of its name's identity, which costs nothing per record.
    """

    __slots__ = ()

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str.__str__(self),)


class Halt(NamedTuple):
    """Stands in the buffer where the stream of a partition cannot go on.

    With an error: the application is to see it.  Without: the offset was out of range, and the reset policy is applied
    when everything before has been read.
    """

    error: KafkaError | None = None


class PartitionState:
    """One assigned partition.

    ``position`` is the offset after the last batch handed out, ``fetch_offset`` after the last one fetched; both are
    None while ``lookup`` runs.  ``position_epoch`` and ``fetch_epoch`` are the leader epochs of the records before
    these, -1 if unknown.  ``epoch`` changes whenever what is in flight must not be used any more.
    """

    __slots__ = (
        "buffer",
        "buffered_bytes",
        "damaged_at",
        "doubted_in",
        "earlier_logs",
        "end_offset",
        "epoch",
        "failures",
        "fetch_epoch",
        "fetch_offset",
        "follower",
        "follower_until",
        "has_been_away",
        "has_been_seen",
        "is_held",
        "is_in_flight",
        "is_new",
        "is_paused",
        "is_ready",
        "is_unvalidated",
        "is_where_committed",
        "leader",
        "leader_epoch",
        "lookup",
        "max_bytes",
        "position",
        "position_epoch",
        "resets",
        "retry_at",
        "topic_id",
        "tp",
        "trouble",
        "troubled_since",
    )

    def __init__(self, tp: TopicPartition, epoch: int, max_bytes: int) -> None:
        self.tp = tp
        """Its topic may be a LogName."""
        self.earlier_logs: list[tuple[str, int]] = []
        """Names of this log before it was cut, and where each was."""
        self.epoch = epoch
        self.max_bytes = max_bytes
        self.position: int | None = None
        self.position_epoch = -1
        self.fetch_offset: int | None = None
        self.fetch_epoch = -1
        self.lookup: Lookup | None = None
        self.buffer: deque[Chunk | Halt] = deque()
        self.buffered_bytes = 0
        self.is_paused = False
        self.is_held = False
        """A rebalance is under way: nothing is read, though the application did not ask for that."""
        self.is_in_flight = False
        self.is_new = False
        """True if the partition did not exist when it was assigned: all its records are new."""
        self.is_ready = False
        """It stands in the machine's queue of partitions to hand out from."""
        self.is_where_committed = False
        """The position is the committed offset, and nothing was fetched there yet."""
        self.is_unvalidated = False
        """The leader is to be asked whether its log still holds the record before ``fetch_offset``."""
        self.doubted_in: int | None = None
        """Since that generation of metadata the leader is not told our epoch: it found the position out of range."""
        self.has_been_away = False
        """Without topic ids: the topic was unknown since something of it was seen, and may be another by now."""
        self.has_been_seen = False
        """A broker has told offsets of it."""
        self.end_offset = -1
        """The end of what may be read, as the newest fetch told; -1 before."""
        self.leader: int | None = None
        self.leader_epoch = -1
        self.follower: int | None = None
        """The replica to fetch from until ``follower_until``; everything else is asked of the leader."""
        self.follower_until = 0.0
        self.topic_id: UUID | None = None
        self.failures = 0
        self.resets = 0
        """Positions in a row that the leader called out of range."""
        self.retry_at = 0.0
        self.troubled_since: float | None = None
        self.trouble: KafkaError | None = None
        """The last failure, for as long as nothing has succeeded."""
        self.damaged_at: int | None = None
        """The offset of damaged records that were fetched again."""

    @property
    def is_quiet(self) -> bool:
        """Neither fetched nor handed out."""
        return self.is_paused or self.is_held

    @property
    def is_being_located(self) -> bool:
        """Where it is read from is looked up, or compared with the leader's log."""
        return self.lookup is not None or self.is_unvalidated

    @property
    def awaits_commit(self) -> bool:
        """The group's committed offset is to be looked up."""
        return self.lookup is not None and self.lookup.purpose is Purpose.COMMITTED

    @property
    def source(self) -> int | None:
        """The broker that the next request of this partition goes to."""
        if self.follower is None or self.lookup is not None or self.is_unvalidated:
            return self.leader
        return self.follower

    @property
    def is_halted(self) -> bool:
        return bool(self.buffer) and isinstance(self.buffer[-1], Halt)

    def begin_log(self, cut_at: int = 0) -> None:
        """What is read from now on is of another log, or of what came after this one was cut."""
        old = [(name, min(end, cut_at)) for name, end in self.earlier_logs]
        self.earlier_logs = [*old, (self.tp.topic, cut_at)] if cut_at else []
        self.tp = TopicPartition(LogName(self.tp.topic), self.tp.partition)

    def has_log_of(self, topic: str, offset: int) -> bool:
        """True if a record with that very name object, and this offset, is of the log that is read now."""
        own = self.tp.topic
        if topic is own or not isinstance(own, LogName):
            return True
        return any(topic is name and offset < end for name, end in self.earlier_logs)

    def move_to(self, offset: int, epoch: int, leader_epoch: int = -1) -> None:
        """Read on at ``offset``, before which is a record of ``leader_epoch``; what was fetched before is forgotten."""
        self._forget(epoch)
        self.lookup = None
        self.position = self.fetch_offset = offset
        self.position_epoch = self.fetch_epoch = leader_epoch
        self._compare_epochs()

    def locate(self, lookup: Lookup, epoch: int) -> None:
        """Have no position until ``lookup`` is complete."""
        self._forget(epoch)
        self.lookup = lookup
        self.position = self.fetch_offset = None
        self.position_epoch = self.fetch_epoch = -1

    def led_in(self, leader_epoch: int) -> None:
        """The leader's epoch, -1 if unknown.  A new one may have begun with less than we have read."""
        if leader_epoch != self.leader_epoch:
            self.leader_epoch = leader_epoch
            self.retry_at = 0.0
            self.doubted_in = None
            self._compare_epochs()

    def _compare_epochs(self) -> None:
        self.is_unvalidated = self.fetch_epoch >= 0 and self.leader_epoch not in (-1, self.fetch_epoch)

    def doubts(self, ask: FetchAsk, generation: int) -> bool:
        """True if ``ask``, found out of range, is to be put again, after metadata newer than ``generation``.

        It is also said of an epoch that the leader has no note of; and the topic may be another by now.
        """
        if self.doubted_in is None:
            self.doubted_in = generation
            return ask.last_epoch >= 0 or ask.topic_id is not None
        return ask.topic_id is not None and generation == self.doubted_in

    def refetch(self, epoch: int) -> bool:
        """Forget what is fetched and not handed out, and ask for it again; False if nothing is."""
        if self.fetch_offset == self.position:
            return False
        assert self.position is not None
        self.move_to(self.position, epoch, self.position_epoch)
        return True

    def disown_flight(self, epoch: int) -> None:
        """Whatever is in flight is not waited for, and dropped when it comes."""
        self.epoch = epoch
        self.is_in_flight = False

    def _forget(self, epoch: int) -> None:
        self.disown_flight(epoch)
        self.buffer.clear()
        self.buffered_bytes = 0
        self.is_where_committed = False
        self.is_unvalidated = False
        self.doubted_in = None
        self.be_healthy()

    def be_healthy(self) -> None:
        """An answer was good: the next failure is the first one again."""
        self.failures = 0
        self.retry_at = 0.0
        self.troubled_since = None
        self.trouble = None

    def is_served(self, end_offset: int) -> None:
        """A fetch was answered well; ``end_offset`` -1 where that is no news."""
        self.is_where_committed = False
        self.resets = 0
        self.be_healthy()
        self.has_been_seen = True
        if end_offset >= 0:
            self.end_offset = end_offset
        if self.leader is not None:
            self.has_been_away = False  # and what it may have been replaced by has our position too

    def goes_away(self) -> None:
        """The topic is not known; where none of it was seen before, a broker may only not know it yet."""
        self.has_been_away |= self.has_been_seen

    def append_chunk(self, chunk: Chunk) -> None:
        self.buffer.append(chunk)
        self.buffered_bytes += chunk.size
        self.fetch_offset = chunk.next_offset
        self.fetch_epoch = chunk.leader_epoch

    def drop_first_chunk(self, chunk: Chunk) -> None:
        """``chunk``, the first of the buffer, is read to its end."""
        self.buffer.popleft()
        self.buffered_bytes -= chunk.size
        self.position = chunk.next_offset
        self.position_epoch = chunk.leader_epoch
