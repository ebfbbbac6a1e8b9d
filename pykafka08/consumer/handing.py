"""What was fetched, as the reader takes it: chunks in fair turns, errors where they stand, damage fetched once more.

This is the part of ``machine`` that answers do not come to.  Pure; ``now`` is monotonic seconds.
"""

from __future__ import annotations

from typing import NamedTuple, NoReturn

from pykafka08.config import ClientConfig, ConsumerConfig
from pykafka08.consumer.assignment import Assignment
from pykafka08.consumer.chunk import Chunk
from pykafka08.consumer.partition import Halt, PartitionState
from pykafka08.errors import CorruptRecordError, KafkaError, RecordTooLargeError
from pykafka08.records.reader import FetchedBatch
from pykafka08.records.record import TopicPartition

__all__ = ["HandedOut", "Handing"]


class HandedOut(NamedTuple):
    """A batch, and the position it was read from: no record in it is before that."""

    tp: TopicPartition
    batch: FetchedBatch
    start: int


class Handing:
    """The reader's side of a machine."""

    def __init__(self, config: ConsumerConfig, client: ClientConfig) -> None:
        self.assignment = Assignment(config)
        self._client = client

    def next_batch(self, now: float) -> HandedOut | None:
        """A batch of the partition whose turn it is, None if nothing is there; raises what stands in its stream.

        A turn is what one fetch brought of it: many chunks read side by side would all be copied and held at once.
        """
        ready = self.assignment.ready
        while ready:
            state = ready[0]
            if state.is_quiet or not state.buffer:
                ready.popleft()
                state.is_ready = False
                continue
            item = state.buffer[0]
            if isinstance(item, Halt):
                error = self._pass_halt(state, item, now)
                if error is not None:
                    raise error
                continue
            try:
                batch = item.next_batch()
            except CorruptRecordError as error:
                self._damage_met(state, error, now)
                continue
            except RecordTooLargeError as error:
                self.assignment.go_back(state, state.position or 0)
                self._refuse(state, error, now)
            if batch is None:
                self._drained(state, item)
                ready.rotate(-1)
                continue
            assert state.position is not None
            handed_out = HandedOut(state.tp, batch, state.position)
            state.position = batch.next_offset
            state.position_epoch = batch.leader_epoch
            return handed_out
        return None

    def position(self, tp: TopicPartition) -> int | None:
        """The offset after the last batch handed out and what is hidden behind it; None while it is looked up."""
        state = self.assignment.state(tp)
        while state.buffer and isinstance(chunk := state.buffer[0], Chunk):
            try:
                if not chunk.is_drained():
                    break
            except (CorruptRecordError, RecordTooLargeError):
                break  # raised again when it is to be handed out
            self._drained(state, chunk)
        return state.position

    def take_error(self, tp: TopicPartition, now: float) -> KafkaError | None:
        """The error that stands next in the partition's stream, if one does."""
        state = self.assignment.state(tp)
        if state.buffer and isinstance(halt := state.buffer[0], Halt) and halt.error is not None:
            return self._pass_halt(state, halt, now)
        return None

    def records_damaged(self, tp: TopicPartition, offset: int, error: CorruptRecordError, now: float) -> None:
        """A batch handed out cannot be unpacked at ``offset``: fetch it once more, or raise ``error``."""
        state = self.assignment.state(tp)
        self.assignment.go_back(state, offset)
        self._damage_met(state, error, now)

    def _drained(self, state: PartitionState, chunk: Chunk) -> None:
        state.drop_first_chunk(chunk)
        self.assignment.is_dirty = True

    def _pass_halt(self, state: PartitionState, halt: Halt, now: float) -> KafkaError | None:
        """The reader has come to the halt at the head of the buffer."""
        state.buffer.popleft()
        self.assignment.shake()
        if halt.error is None:
            self.assignment.halt(state, None)
        else:
            state.retry_at = now + self._client.retry_backoff_max_ms / 1000
        return halt.error

    def _damage_met(self, state: PartitionState, error: CorruptRecordError, now: float) -> None:
        position = state.position
        assert position is not None
        self.assignment.go_back(state, position)
        if self.assignment.is_first_damage(state, position, error):
            return
        self._refuse(state, error, now)

    def _refuse(self, state: PartitionState, error: CorruptRecordError | RecordTooLargeError, now: float) -> NoReturn:
        state.retry_at = now + self._client.retry_backoff_max_ms / 1000
        error.broker = self.assignment.broker_name(state)
        self._client.setting_names.in_error(error)
        raise error
