"""What the producer's machine asks its driver to do, and the counters that it shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from pykafka08.errors import KafkaError
from pykafka08.producer.batch import Batch
from pykafka08.producer.transactions.actions import TransactionAction

__all__ = [
    "Action",
    "AskIdentity",
    "BatchFailed",
    "CheckCreation",
    "Counters",
    "IdempotenceOff",
    "RefreshMetadata",
    "RoomFreed",
    "Send",
    "UseTopics",
]


@dataclass(frozen=True, slots=True, eq=False)
class Send:
    """Send these batches, of different partitions, to their leader in one request."""

    node_id: int
    generation: int
    """Of the metadata that named the leader."""
    batches: list[Batch]


@dataclass(frozen=True, slots=True)
class UseTopics:
    """Ask for the metadata of these topics too."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CheckCreation:
    """Ask why the cluster does not create this topic, for which records wait."""

    topic: str


@dataclass(frozen=True, slots=True)
class RefreshMetadata:
    """The metadata of this generation does not serve."""

    generation: int


@dataclass(frozen=True, slots=True)
class RoomFreed:
    """Records have ended: those who wait for room may have it."""


@dataclass(frozen=True, slots=True)
class AskIdentity:
    """Ask this broker for a producer id."""

    node_id: int


@dataclass(frozen=True, slots=True)
class IdempotenceOff:
    """Warn that records, some or all, are sent without numbers: a retry may write one twice."""

    error: KafkaError
    """Why."""


@dataclass(frozen=True, slots=True)
class BatchFailed:
    """Warn that records ended with an error: maybe nobody awaits their deliveries."""

    topic: str
    partition: int
    """-1 if none was chosen."""
    records: int
    error: KafkaError


@dataclass(frozen=True, slots=True)
class RecordsStalled:
    """Warn that records have not been sent for some time."""

    error: KafkaError
    """The cause; it names topic and partition."""
    seconds: float


Action = (
    Send
    | UseTopics
    | CheckCreation
    | RefreshMetadata
    | RoomFreed
    | AskIdentity
    | IdempotenceOff
    | BatchFailed
    | RecordsStalled
    | TransactionAction
)


class Counters(NamedTuple):
    """What became of all records so far: ``enqueued == acknowledged + failed + in_buffer`` at any time."""

    enqueued: int
    acknowledged: int
    failed: int
    in_buffer: int
    buffered_bytes: int
    """Of keys, values and headers, with a bound for their framing."""
    requests: int
    retries: int
    """Batches that were put back to be sent again."""
