"""The producer's machine where records are sent in transactions.  Pure.

A batch waits until its partition is part of the transaction, and one that fails spoils the transaction.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from pykafka08.config import ClientConfig, ProducerConfig
from pykafka08.errors import KafkaError
from pykafka08.producer.actions import Action
from pykafka08.producer.batch import Batch
from pykafka08.producer.machine import ProducerMachine
from pykafka08.producer.queues import PartitionQueue, QueueState
from pykafka08.producer.transactions.actions import TransactionStalled
from pykafka08.producer.transactions.machine import TransactionMachine
from pykafka08.producer.transactions.states import TransactionState
from pykafka08.producer.transactions.trouble import TransactionTrouble
from pykafka08.producer.trouble import Trouble
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

    def __init__(self, config: ProducerConfig, client: ClientConfig, *, transactional_id: str, **named: Any) -> None:
        super().__init__(config, client, is_transactional=True, **named)
        self.transactions = TransactionMachine(transactional_id, self._backoff, config.setting_names)
        self._outcomes.on_failed = self.transactions.batch_failed

    def poll(self, now: float) -> list[Action]:
        identity = self.transactions.identity
        if identity is not None and identity != self.identity:
            self.identity_given(identity, now)  # before anything is sent of the transaction that it is for
        actions = super().poll(now)
        if self.transactions.state in DEAD_ENDS and self._deadlines.next() is not None:
            self.transaction_aborted(self._outcomes.abandoned or self.transactions.refusal(), now)
            actions += super().poll(now)  # what became of them
        return actions + self.transactions.poll(now, self) + self._warnings(now)

    def next_wakeup(self) -> float | None:
        transactions = self.transactions
        wakeups = (super().next_wakeup(), transactions.next_wakeup(), transactions.trouble.look_at)
        return min((time for time in wakeups if time is not None), default=None)

    def _is_held(self, queue: PartitionQueue, head: Batch) -> bool:
        if super()._is_held(queue, head):
            return True
        return not self.transactions.admits(TopicPartition(queue.topic.name, queue.partition))

    # --- trouble ------------------------------------------------------------------------------------------------------

    def trouble(self, now: float) -> Trouble | None:
        records, transaction = super().trouble(now), self.transactions.trouble.of(now)
        if transaction is None or (records is not None and records.since < transaction.since):
            return records
        error, _ = self._placed(transaction)
        return Trouble(error, transaction.since)

    def _warnings(self, now: float) -> list[Action]:
        trouble = self.transactions.trouble.look(now)
        if trouble is None:
            return []
        error, coordinator = self._placed(trouble)
        return [TransactionStalled(error, now - trouble.since, trouble.api, coordinator)]

    def _placed(self, trouble: TransactionTrouble) -> tuple[KafkaError, str | None]:
        """The error with its request and coordinator, and the coordinator's name."""
        broker = None if trouble.node_id is None else self.accumulator.snapshot.brokers.get(trouble.node_id)
        name = None if broker is None else broker.name
        error = copy.copy(trouble.error)
        error.broker, error.api = error.broker or name, error.api or trouble.api
        return error, name

    def _queues_that_wait(self) -> Iterable[PartitionQueue]:
        """All queues but those held by the transaction, whose trouble is reported on its own."""
        return [queue for queue in self._active if queue.state is not QueueState.HELD]

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
