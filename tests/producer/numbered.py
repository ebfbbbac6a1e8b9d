"""A world whose producer is idempotent: ids are given when asked for, and batches numbered as they are written."""

from __future__ import annotations

from typing import Any

from pykafka08.error_codes import ErrorCode
from pykafka08.errors import KafkaError, broker_error
from pykafka08.producer.actions import Action, AskIdentity, IdempotenceOff, Send
from pykafka08.producer.batch import Batch
from pykafka08.producer.sequences import Identity

from .world import OK, World

MODERN = 9
"""A version of Produce."""


class NumberedWorld(World):
    """``refusal`` is what a broker that is asked for a producer id answers, in place of ids 1, 2, 3 ..."""

    def __init__(
        self,
        *leaders: int,
        produce_version: int = MODERN,
        refusal: KafkaError | None = None,
        is_invalid: bool = False,
        is_transactional: bool = False,
        **settings: Any,
    ) -> None:
        self.produce_version = produce_version
        self.refusal = refusal
        self.is_invalid = is_invalid
        self.asked: list[int] = []
        self.warnings: list[KafkaError] = []
        self.ids = 0
        super().__init__(
            {"t": list(leaders or (0,))},
            is_transactional=is_transactional,
            **{"linger_ms": 0, "batch_size": 0, "enable_idempotence": None, **settings},
        )

    def poll(self, after: float = 0.0) -> list[Action]:
        actions = super().poll(after)
        for action in actions:
            if isinstance(action, AskIdentity):
                self.asked.append(action.node_id)
                if self.refusal is not None:
                    self.machine.identity_failed(self.refusal, self.now, is_invalid=self.is_invalid)
                else:
                    self.ids += 1
                    self.machine.identity_given(Identity(self.ids, 0), self.now)
            elif isinstance(action, IdempotenceOff):
                self.warnings.append(action.error)
            elif isinstance(action, Send):
                self.write(action)
        if any(isinstance(action, AskIdentity) for action in actions):
            actions += self.poll()
        return actions

    def write(self, send: Send) -> None:
        """The connection is open: the request is made."""
        self.machine.broker_known(send.node_id, self.produce_version)
        for batch in send.batches:
            if self.machine.is_numbered(batch):
                self.machine.number(batch)

    def warm(self, partition: int = 0) -> None:
        """One record is written, so that more batches may be in flight."""
        self.add(partition=partition)
        self.answer(self.one(), OK)

    def in_flight(self, many: int) -> list[Send]:
        """So many records to partition 0, each in a batch and a request of its own."""
        for i in range(many):
            self.add(value=b"%d" % i, partition=0)
        sends = self.sends()
        assert len(sends) == many
        return sends


def numbers(batch: Batch) -> tuple[int, int, int]:
    return batch.producer_id, batch.producer_epoch, batch.base_sequence


def sent(sends: list[Send]) -> list[tuple[bytes | None, int, int]]:
    """Value, epoch and number of each, where requests have one record."""
    return [(batch.values[0], batch.producer_epoch, batch.base_sequence) for send in sends for batch in send.batches]


def refused(code: ErrorCode) -> KafkaError:
    return broker_error(code, broker="b0:9092", api="InitProducerId")
