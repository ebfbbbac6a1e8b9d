"""How a producer is doing, in figures that it has at hand: nothing is asked of a broker."""

from __future__ import annotations

from dataclasses import dataclass, fields

from pykafka08.cluster.health import ClientHealth
from pykafka08.errors import KafkaError
from pykafka08.producer.actions import Counters
from pykafka08.producer.machine import ProducerMachine
from pykafka08.producer.transactions.states import TransactionState

__all__ = ["ProducerHealth", "producer_health"]


@dataclass(frozen=True, kw_only=True)
class ProducerHealth(ClientHealth):
    """What :meth:`pykafka08.Producer.health` gives."""

    counters: Counters
    """What became of all records so far; its ``buffered_bytes`` are bounded by ``buffer_memory``."""
    producer_id: int | None
    """What the broker knows an idempotent producer by; None without one, or before the first record."""
    producer_epoch: int | None
    trouble: KafkaError | None
    """The error for which the oldest unsent record is not sent, or that keeps a transactional request from completing;
    None if all records are being sent."""
    trouble_age: float | None
    """Seconds since that record was added, or the transactional request was first sent."""
    transaction: str | None
    """What a transactional producer is at, in words; None for others."""


def producer_health(
    client: ClientHealth, machine: ProducerMachine, state: TransactionState | None, now: float
) -> ProducerHealth:
    identity, trouble = machine.identity, machine.trouble(now)
    return ProducerHealth(
        **{field.name: getattr(client, field.name) for field in fields(client)},
        counters=machine.counters,
        producer_id=None if identity is None else identity.producer_id,
        producer_epoch=None if identity is None else identity.epoch,
        trouble=None if trouble is None else trouble.error,
        trouble_age=None if trouble is None else max(0.0, now - trouble.since),
        transaction=None if state is None else state.value,
    )
