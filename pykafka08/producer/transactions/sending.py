"""The producer's machine where records are sent in transactions.  Pure.

A batch waits until its partition is part of the transaction, and one that fails spoils the transaction.
"""

from __future__ import annotations

from typing import Any

from pykafka08.config import ClientConfig, ProducerConfig
from pykafka08.errors import KafkaError
from pykafka08.producer.actions import Action
from pykafka08.producer.batch import Batch
from pykafka08.producer.machine import ProducerMachine
from pykafka08.producer.queues import PartitionQueue
from pykafka08.producer.transactions.machine import TransactionMachine
from pykafka08.producer.transactions.states import TransactionState
from pykafka08.records.record import TopicPartition

__all__ = ["TransactionalSending", "machine_of"]


DEAD_ENDS = (TransactionState.ABORTABLE_ERROR, TransactionState.ABORTING, TransactionState.FATAL_ERROR)
"""Nothing is sent any more."""


def machine_of(config: ProducerConfig, client: ClientConfig, **named: Any) -> ProducerMachine:
    """The machine of a producer with these settings."""
    if config.transactional_id is None:
        return ProducerMachine(config, client, **named)
    return TransactionalSending(config, client, transactional_id=config.transactional_id, **named)


class TransactionalSending(ProducerMachine):
    """Polls ``transactions`` too, so that both have one driver."""

    def __init__(self, *args: Any, transactional_id: str, **named: Any) -> None:
        super().__init__(*args, is_transactional=True, **named)
        self.transactions = TransactionMachine(transactional_id, self._backoff)
        self._outcomes.on_failed = self.transactions.batch_failed

    def poll(self, now: float) -> list[Action]:
        identity = self.transactions.identity
        if identity is not None and identity != self.identity:
            self.identity_given(identity, now)  # before anything is sent of the transaction that it is for
        actions = super().poll(now)
        if self.transactions.state in DEAD_ENDS and self._deadlines.next() is not None:
            self.transaction_aborted(self._outcomes.abandoned or self.transactions.refusal(), now)
            actions += super().poll(now)  # what became of them
        return actions + self.transactions.poll(now, self)

    def next_wakeup(self) -> float | None:
        times = [time for time in (super().next_wakeup(), self.transactions.next_wakeup()) if time is not None]
        return min(times, default=None)

    def _is_held(self, queue: PartitionQueue, head: Batch) -> bool:
        if super()._is_held(queue, head):
            return True
        return not self.transactions.admits(TopicPartition(queue.topic.name, queue.partition))

    # --- what the transaction needs to know ---------------------------------------------------------------------------

    @property
    def is_idle(self) -> bool:
        """No batch is in flight."""
        return self._lines.is_idle

    @property
    def has_gaps(self) -> bool:
        """Batches were given up whose numbers a broker may wait for, or have."""
        return any(
            queue.sequences.identity == self._keeper.identity and not queue.sequences.may_go_on
            for topic in self.accumulator.topics.values()
            for queue in topic.queues.values()
        )

    def gate_opened(self, now: float) -> None:
        """More partitions are part of the transaction."""
        self._settle_all(now)

    def transaction_began(self) -> None:
        self._outcomes.abandoned = None

    def transaction_aborted(self, error: KafkaError, now: float) -> None:
        """Fail what is not in flight, and what is when it would be sent again."""
        self._outcomes.abandoned = error
        self.fail_unsent(error, now)
        self.wants_poll = True
