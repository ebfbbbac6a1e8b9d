"""Where a partition is read from: looked up, reset by policy, compared with a new leader's log, ended by an error.

This is the part of ``assignment`` that answers of brokers move.  Pure.
"""

from __future__ import annotations

from collections import deque
from itertools import count
from typing import TypedDict

from pykafka08.config import ConsumerConfig
from pykafka08.consumer.actions import CutOff, EpochEnd, Note, StartAnew
from pykafka08.consumer.partition import EARLIEST, LATEST, Halt, Lookup, PartitionState, Purpose
from pykafka08.errors import CorruptRecordError, KafkaError, LogTruncationError, NoOffsetError
from pykafka08.records.record import TopicPartition

__all__ = ["COMMITTED", "Locating", "Place", "place"]

RESET_TO = {"earliest": EARLIEST, "latest": LATEST}
COMMITTED = "committed"


class Place(TypedDict):
    topic: str
    partition: int


def place(state: PartitionState) -> Place:
    """The partition as keywords of an error."""
    return {"topic": state.tp.topic, "partition": state.tp.partition}


def _truncated(state: PartitionState, position: int, end: int | None) -> LogTruncationError:
    lost = "records before the position" if end is None else f"the records from {end} to {position - 1}"
    text = f"an unclean election lost {lost}, which were read; auto_offset_reset is 'none': seek to read on"
    return LogTruncationError(text, **place(state), offset=position, end_offset=end)


class Locating:
    """Positions; the attributes are described at ``Assignment``."""

    def __init__(self, config: ConsumerConfig) -> None:
        self.states: dict[TopicPartition, PartitionState] = {}
        self.ready: deque[PartitionState] = deque()
        self.denied: set[TopicPartition] = set()
        """What the user may not read, as the application was told; partition -1 stands for a hidden topic."""
        self.notes: list[Note | StartAnew | CutOff] = []
        self.is_dirty = False
        self.is_shaken = False
        self._config = config
        self._epochs = count(1)

    def locate(self, state: PartitionState, policy: str, lost: int | None = None) -> None:
        """Find a position by the policy: earliest, latest, or none, which ends in an error with both bounds.

        ``lost`` is the offset that is not in the log.
        """
        if policy == COMMITTED:
            lookup = Lookup(Purpose.COMMITTED, ())
        elif policy in RESET_TO:
            lookup = Lookup(Purpose.START, (RESET_TO[policy],), lost)
        else:
            lookup = Lookup(Purpose.BOUNDS, (EARLIEST, LATEST), lost)
        state.locate(lookup, next(self._epochs))
        self.shake()

    def offset_found(self, state: PartitionState, offset: int) -> None:
        """An answer to the state's lookup."""
        lookup = state.lookup
        assert lookup is not None
        state.has_been_seen = True
        lookup.found.append(offset)
        if not lookup.is_complete:
            return
        if lookup.purpose is Purpose.START:
            state.move_to(offset, next(self._epochs))
            if lookup.lost_offset is not None:
                self.note("position.reset", state, lost=lookup.lost_offset, to=offset)
                if offset < lookup.lost_offset:
                    self._cut_off(state, offset)
            return
        earliest, latest = lookup.found
        lookup.found.clear()
        text = f"no position, and auto_offset_reset is 'none'; the log reaches from {earliest} to {latest}: seek there"
        error = NoOffsetError(text, **place(state), offset=lookup.lost_offset, earliest=earliest, latest=latest)
        self.halt(state, error)

    def halt(self, state: PartitionState, error: KafkaError | None) -> None:
        """The stream ends here for now: in an error, or (None) with an offset that is out of range."""
        if error is None and not state.buffer:
            self._reset(state, state.fetch_offset)
            return
        if error is not None:
            self._config.setting_names.in_error(error)
        state.buffer.append(Halt(error))
        self.is_shaken = True
        self.mark_ready(state)

    def _reset(self, state: PartitionState, lost: int | None) -> None:
        """The position ``lost`` is not in the log any more.

        "latest" is where a group begins: one that has begun passes over nothing.  Nor does anybody where the topic may
        be another by now.
        """
        policy = self._config.auto_offset_reset
        if policy == "latest" and (self._config.group_id is not None or state.has_been_away):
            policy = "earliest"
        state.has_been_away = False
        self.locate(state, policy, lost=lost)

    def _cut_off(self, state: PartitionState, end_offset: int) -> None:
        self.notes.append(CutOff(state.tp, end_offset))
        state.begin_log(end_offset)

    def go_back(self, state: PartitionState, offset: int) -> None:
        """Fetch again from ``offset``."""
        state.move_to(offset, next(self._epochs), state.position_epoch)
        self.shake()

    def is_first_damage(self, state: PartitionState, offset: int, error: CorruptRecordError) -> bool:
        """True if the records at ``offset`` are to be fetched once more: they may have been damaged on the way."""
        if state.damaged_at == offset:
            return False
        state.damaged_at = offset
        self.note("records.damaged", state, error=str(error))
        self.shake()
        return True

    def compare_logs(self, state: PartitionState, end: EpochEnd) -> None:
        """The leader has said where the epoch of the record before ``fetch_offset`` ends, or the last one before it.

        If that is before what we have read, the log was cut: its records of the range are lost, others may follow.
        """
        state.is_unvalidated = False
        self.is_shaken = True
        assert state.fetch_offset is not None
        if end.end_offset >= state.fetch_offset:
            state.fetch_epoch = min(state.fetch_epoch, end.leader_epoch)
            if not state.buffer:
                state.position_epoch = state.fetch_epoch
            return
        if state.refetch(next(self._epochs)):
            return  # what the application has not seen yet: what it has seen is compared next
        position = state.position
        assert position is not None
        is_known = end.end_offset >= 0
        if self._config.auto_offset_reset == "none":
            state.is_unvalidated = True
            self.halt(state, _truncated(state, position, end.end_offset if is_known else None))
        elif is_known:
            self.note("log.truncated", state, position=position, to=end.end_offset)
            state.move_to(end.end_offset, next(self._epochs), end.leader_epoch)
            state.is_unvalidated = False  # the leader has just said so
            self._cut_off(state, end.end_offset)
        else:
            self.note("log.truncated", state, position=position, to=None)
            self._reset(state, position)

    def shake(self) -> None:
        """More has changed than answers and readers change: all is to be planned anew."""
        self.is_dirty = self.is_shaken = True

    def mark_ready(self, state: PartitionState) -> None:
        if state.buffer and not state.is_ready:
            state.is_ready = True
            self.ready.append(state)

    def take_notes(self) -> list[Note | StartAnew | CutOff]:
        """What waits to be performed; it waits no more."""
        notes, self.notes = self.notes, []
        return notes

    def note(self, event: str, state: PartitionState, **facts: object) -> None:
        """Leave something for the log."""
        self.notes.append(Note(event, {**place(state), **facts}))
