"""What the machine of transactions asks its driver to do, and what the driver tells of the answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import ClassVar

from pykafka08.error_codes import ErrorCode
from pykafka08.errors import KafkaError
from pykafka08.group.metadata import GroupMetadata
from pykafka08.group.requests import OffsetAndMetadata
from pykafka08.producer.sequences import Identity
from pykafka08.records.record import TopicPartition

__all__ = [
    "AddOffsets",
    "AddPartitions",
    "Answer",
    "Call",
    "CommitOffsets",
    "EndTransaction",
    "FindCoordinator",
    "IdentityGiven",
    "InitProducer",
    "KeyType",
    "OffsetsOrder",
    "PartitionsAdded",
    "StateChanged",
    "TransactionAction",
    "TransactionStalled",
]


class KeyType(IntEnum):
    """Of FindCoordinator."""

    GROUP = 0
    TRANSACTION = 1


@dataclass(frozen=True, slots=True)
class FindCoordinator:
    api: ClassVar[str] = "FindCoordinator"
    key_type: KeyType
    key: str


@dataclass(frozen=True, slots=True)
class InitProducer:
    """``expected``: the identity that the producer has (KIP-360); None fences whoever has one."""

    api: ClassVar[str] = "InitProducerId"
    node_id: int
    expected: Identity | None


@dataclass(frozen=True, slots=True)
class AddPartitions:
    api: ClassVar[str] = "AddPartitionsToTxn"
    node_id: int
    identity: Identity
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class AddOffsets:
    api: ClassVar[str] = "AddOffsetsToTxn"
    node_id: int
    identity: Identity
    group_id: str


@dataclass(eq=False, slots=True)
class OffsetsOrder:
    """Offsets to be committed in the transaction; ``left`` shrinks as the group's coordinator takes them."""

    member: GroupMetadata
    left: dict[TopicPartition, OffsetAndMetadata]

    @property
    def is_done(self) -> bool:
        return not self.left


@dataclass(frozen=True, slots=True)
class CommitOffsets:
    api: ClassVar[str] = "TxnOffsetCommit"
    node_id: int
    identity: Identity
    order: OffsetsOrder
    is_v2: bool


@dataclass(frozen=True, slots=True)
class EndTransaction:
    api: ClassVar[str] = "EndTxn"
    node_id: int
    identity: Identity
    is_commit: bool
    is_v2: bool


Call = FindCoordinator | InitProducer | AddPartitions | AddOffsets | CommitOffsets | EndTransaction
"""One at a time is under way."""


@dataclass(frozen=True, slots=True)
class IdentityGiven:
    """What the producer's batches are numbered under from now on, for the log."""

    identity: Identity


@dataclass(frozen=True, slots=True)
class PartitionsAdded:
    """Records for more partitions may be sent."""


@dataclass(frozen=True, slots=True)
class StateChanged:
    """The state is another, or offsets were taken: tell those who wait."""


@dataclass(frozen=True, slots=True)
class TransactionStalled:
    """Warn that a request has not completed for some time; ``coordinator`` is None if any broker can answer."""

    error: KafkaError
    seconds: float
    api: str
    coordinator: str | None


TransactionAction = Call | IdentityGiven | PartitionsAdded | StateChanged | TransactionStalled


@dataclass(frozen=True, slots=True)
class Answer:
    """What a broker answered; ``codes`` where it answers for each partition."""

    code: int = ErrorCode.NONE
    codes: Mapping[TopicPartition, int] = field(default_factory=dict)
    message: str | None = None
    identity: Identity | None = None
    node_id: int = -1
    broker: str | None = None
    """Name of the broker that answered, for error texts."""
