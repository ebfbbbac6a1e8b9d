"""What becomes of batches: acknowledged, failed, split, or back in their queue to be sent again, with which numbers.

Pure.  When anything is sent is decided in ``machine``; which code leads to what stands in ``reactions``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from pykafka08.error_codes import ErrorCode
from pykafka08.errors import BrokerError, KafkaError
from pykafka08.producer.accumulator import Accumulator
from pykafka08.producer.actions import Action, BatchFailed, Counters, Send
from pykafka08.producer.batch import Batch
from pykafka08.producer.failures import (
    in_doubt,
    invalid_acknowledgement,
    placed,
    possibly_written,
    produce_error,
    refused_as_too_large,
)
from pykafka08.producer.identity import IdentityKeeper
from pykafka08.producer.queues import Deadlines, PartitionQueue
from pykafka08.producer.reactions import Outcome, Reaction, is_repeated, leaves_doubt, reaction_to_code
from pykafka08.producer.sequences import Identity, Restart

__all__ = ["Outcomes"]

NUMBERS_ONLY = (Reaction.RENUMBER, Reaction.NEW_IDENTITY, Reaction.SEND_PLAIN)
"""Reactions for numbered batches."""


class Outcomes:
    """Changes queues and batches; the machine settles the queue afterwards.

    While ``abandoned`` is set nothing is sent again: what would be, fails with it.  ``on_failed`` hears of every batch
    that fails.
    """

    def __init__(
        self,
        accumulator: Accumulator,
        deadlines: Deadlines,
        keeper: IdentityKeeper,
        backoff: Callable[[int], float],
        transactional_id: str | None = None,
    ) -> None:
        self.acknowledged = self.failed = self.retries = 0
        self.is_refresh_wanted = False
        self.abandoned: KafkaError | None = None
        self.on_failed: Callable[[KafkaError], None] = lambda _: None
        self._failures: list[Action] = []
        self._accumulator = accumulator
        self._deadlines = deadlines
        self._keeper = keeper
        self._backoff = backoff
        self._transactional_id = transactional_id

    def counters(self, requests: int) -> Counters:
        """``requests`` were sent."""
        enqueued, ended = self._accumulator.enqueued, self.acknowledged + self.failed
        return Counters(
            enqueued,
            self.acknowledged,
            self.failed,
            enqueued - ended,
            self._accumulator.buffered_bytes,
            requests,
            self.retries,
        )

    def failures(self) -> list[Action]:
        """What failed since the last call."""
        failures, self._failures = self._failures, []
        return failures

    # --- an answer ----------------------------------------------------------------------------------------------------

    def answered(self, queue: PartitionQueue, batch: Batch, outcome: Outcome, send: Send, now: float) -> None:
        """The broker said this of the batch, which may have ended by its deadline."""
        reaction = reaction_to_code(outcome.code)
        if outcome.invalid is not None:
            if not batch.is_done:
                batch.is_in_doubt = True
                self._give_up(
                    queue,
                    batch,
                    invalid_acknowledgement(self._accumulator.snapshot, send.node_id, batch, outcome.invalid),
                )
            return
        if reaction is Reaction.ACKNOWLEDGE:
            self._acknowledge(queue, batch, outcome, now)
            return
        if batch.is_done:
            return
        snapshot, node_id = self._accumulator.snapshot, send.node_id
        error = produce_error(snapshot, node_id, batch, outcome.code, outcome.message, self._transactional_id)
        if outcome.record_errors and reaction is Reaction.FAIL:
            errors: dict[int, KafkaError] = {
                index: produce_error(snapshot, node_id, batch, outcome.code, text or outcome.message)
                for index, text in outcome.record_errors
            }
            self._give_up(queue, batch, error, errors)
            return
        is_forgotten = queue.sequences.acknowledged_to <= outcome.log_start_offset and not batch.is_in_doubt
        if error.code == ErrorCode.UNKNOWN_PRODUCER_ID and is_forgotten and not self._keeper.is_given:
            # All that was acknowledged is deleted by now, and the broker's memory of the producer with it (KIP-360).
            queue.sequences.missing(batch)
        self.react(queue, batch, reaction, error, send, now)

    def _acknowledge(self, queue: PartitionQueue, batch: Batch, outcome: Outcome, now: float) -> None:
        queue.failed_leader = None
        if batch.base_sequence >= 0:
            queue.sequences.acknowledged(batch, outcome.base_offset, now)
        if not batch.is_done:
            self.acknowledged += len(batch)
            self._accumulator.released(batch)
            queue.ended(batch)
            batch.acknowledge(outcome.base_offset, outcome.log_append_time_ms)

    def react(
        self,
        queue: PartitionQueue,
        batch: Batch,
        reaction: Reaction,
        error: KafkaError,
        send: Send,
        now: float,
        *,
        was_written: bool = True,
    ) -> None:
        """To anything but an acknowledgement of a batch that has not ended; ``was_written``: its request was made."""
        batch.is_in_doubt = batch.is_in_doubt or (was_written and leaves_doubt(error))
        if self.abandoned is not None:
            self._give_up(queue, batch, placed(self.abandoned, batch))
            return
        if reaction in NUMBERS_ONLY:
            reaction = self._react_to_numbers(queue, batch, reaction, error)
        if reaction is Reaction.SPLIT:
            self._split(queue, batch, error)
        elif reaction is Reaction.FAIL or (reaction is Reaction.RETRY_ONCE and is_repeated(error, batch.last_error)):
            self._give_up(queue, batch, error)
        else:
            self._retry(queue, batch, error, now)
            if reaction is Reaction.REFRESH_AND_RETRY:
                self._suspect_leader(queue, send, now)
            elif reaction is Reaction.SEND_PLAIN:
                queue.backoff_until = now

    def _react_to_numbers(self, queue: PartitionQueue, batch: Batch, reaction: Reaction, error: KafkaError) -> Reaction:
        """The same reaction, or FAIL where it makes no sense for this producer or batch."""
        is_numbered = batch.base_sequence >= 0
        if reaction is Reaction.SEND_PLAIN:
            # An error of our own says that the request could not be made: the batch may have no numbers yet.
            if self._keeper.is_demanded or (isinstance(error, BrokerError) and not is_numbered):
                return Reaction.FAIL
            queue.is_plain = True
            self._keeper.records_go_plain(error)
        elif not is_numbered:
            return Reaction.FAIL
        elif self._keeper.is_given:
            # Its numbers are the transaction's: they go on, or it ends.
            is_lost = queue.is_first(batch) and is_repeated(error, batch.last_error)
            return Reaction.FAIL if is_lost or reaction is Reaction.NEW_IDENTITY else reaction
        elif reaction is Reaction.NEW_IDENTITY:
            self._keeper.renew(batch.producer_id)
            queue.sequences.restart = Restart.IDENTITY
            return Reaction.FAIL if batch.is_in_doubt else reaction
        elif queue.is_first(batch) and is_repeated(error, batch.last_error):
            # Said twice, a backoff apart: what was still on its way to the broker has come by now.
            if batch.is_in_doubt:
                return Reaction.FAIL  # a broker that has forgotten it, or lost it after others read it, says so too
            queue.sequences.missing(batch)
        return reaction

    def _retry(self, queue: PartitionQueue, batch: Batch, error: KafkaError, now: float) -> None:
        batch.attempts += 1
        batch.last_error = error
        queue.sequences.retried()
        queue.backoff_until = now + self._backoff(batch.attempts)
        queue.failed_leader = None
        self.retries += 1

    def _suspect_leader(self, queue: PartitionQueue, send: Send, now: float) -> None:
        if queue.leader is not None and queue.leader[0] != send.node_id:
            queue.backoff_until = now  # metadata has named another one while the request was under way
            return
        queue.failed_leader = queue.leader
        if send.generation == self._accumulator.snapshot.generation:
            self.is_refresh_wanted = True

    # --- the end of batches -------------------------------------------------------------------------------------------

    def _give_up(
        self, queue: PartitionQueue, batch: Batch, error: KafkaError, record_errors: dict[int, KafkaError] | None = None
    ) -> None:
        """It failed, and will not be sent again."""
        self.end(queue, batch, in_doubt(error) if batch.is_in_doubt else error, record_errors)

    def end(
        self, queue: PartitionQueue, batch: Batch, error: KafkaError, record_errors: dict[int, KafkaError] | None = None
    ) -> None:
        """Take it out of its queue, failed."""
        queue.ended(batch)
        if batch.base_sequence >= 0:
            queue.sequences.given_up(batch, is_in_doubt=error.may_be_written)
        self.fail(batch, error, record_errors)

    def fail(self, batch: Batch, error: KafkaError, record_errors: dict[int, KafkaError] | None = None) -> None:
        self.failed += len(batch)
        self._failures.append(BatchFailed(batch.topic, batch.partition, len(batch), error))
        self._accumulator.released(batch)
        batch.fail(error, record_errors)
        self.on_failed(error)

    def _split(self, queue: PartitionQueue, batch: Batch, error: KafkaError) -> None:
        """Send it again as two halves, in order; later batches of the queue are made no larger than these."""
        if len(batch) == 1:
            self._give_up(queue, batch, refused_as_too_large(batch, error))
            return
        if batch.is_in_doubt and batch.base_sequence >= 0:
            self._give_up(queue, batch, error)  # it is known by its numbers, of which the halves' are others
            return
        halves = [Batch(batch.topic, batch.partition, batch.created, batch.deadline) for _ in range(2)]
        middle = len(batch) // 2
        routes = []
        for index in range(len(batch)):
            half = halves[index >= middle]
            routes.append((half, half.take(batch, index, batch.record_bytes(index))))
        for half in halves:
            half.is_closed = True
            half.attempts, half.last_error, half.is_in_doubt = batch.attempts, error, batch.is_in_doubt
            self._deadlines.add(half)
        if batch.base_sequence >= 0:
            # The numbers that the batch had: those behind it have theirs already.
            for half, base in zip(halves, (batch.base_sequence, batch.base_sequence + middle), strict=True):
                half.producer_id, half.producer_epoch, half.base_sequence = (
                    batch.producer_id,
                    batch.producer_epoch,
                    base,
                )
            queue.sequences.retried()
        place = queue.batches.index(batch)
        queue.batches[place] = halves[1]
        queue.batches.insert(place, halves[0])
        queue.limit = queue.largest = min(queue.largest, max(half.size for half in halves))
        batch.forward(routes)

    def refuse(self, queue: PartitionQueue, batch: Batch, indices: Collection[int], error: KafkaError) -> Batch | None:
        """Fail these records of a batch that has no numbers yet; the batch of the others, None if there are none."""
        kept, refused = (Batch(batch.topic, batch.partition, batch.created, batch.deadline) for _ in range(2))
        routes = []
        for index in range(len(batch)):
            target = refused if index in indices else kept
            routes.append((target, target.take(batch, index, batch.record_bytes(index))))
        kept.is_closed = True
        kept.attempts, kept.last_error, kept.is_in_doubt = batch.attempts, batch.last_error, batch.is_in_doubt
        if len(kept):
            self._deadlines.add(kept)
            queue.batches[queue.batches.index(batch)] = kept
        else:
            queue.ended(batch)
        batch.forward(routes)
        self.fail(refused, in_doubt(error) if batch.is_in_doubt else error)
        return kept if len(kept) else None

    # --- numbers ------------------------------------------------------------------------------------------------------

    def start_numbers(self, queue: PartitionQueue, identity: Identity) -> None:
        """Start the numbers of a partition anew, with nothing in flight, or see that another identity comes."""
        if queue.sequences.start(identity, may_bump=not self._keeper.is_given):
            self.drop_numbers(queue)
        elif not self._keeper.is_given:
            self._keeper.renew(identity.producer_id)

    def drop_numbers(self, queue: PartitionQueue) -> None:
        """Of all its batches, with nothing in flight.  One that may be in the log ends: by its numbers it was known."""
        for batch in [batch for batch in queue.batches if batch.base_sequence >= 0]:
            if batch.is_in_doubt:
                queue.ended(batch)
                self.fail(batch, possibly_written(batch))
            else:
                batch.drop_numbers()
