"""One transactional id: its producer's id and epoch, and the transaction that it has open.

    EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT -> ONGOING   a partition or a group is added
    ONGOING -> PREPARE_COMMIT, PREPARE_ABORT            its producer, a new producer or the time-out ends it
    PREPARE_COMMIT -> COMPLETE_COMMIT                   every partition and group has its marker
    PREPARE_ABORT -> COMPLETE_ABORT

What each request may do in which state is ``transactions``'s.  Source: KIP-98, KIP-360, KIP-890;
``TransactionMetadata``.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

from pykafka08.broker.timers import Timer

__all__ = ["LARGEST_EPOCH", "NO_IDENTITY", "Identity", "Transaction", "TransactionState"]

LARGEST_EPOCH = 32767


class TransactionState(Enum):
    """Names as DescribeTransactions gives them."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"


class Identity(NamedTuple):
    """A producer id and its epoch; -1 and -1 for none."""

    producer_id: int
    epoch: int

    @property
    def is_exhausted(self) -> bool:
        """True if the epoch can only be raised to fence: the largest one is for that."""
        return self.epoch >= LARGEST_EPOCH - 1


NO_IDENTITY = Identity(-1, -1)


class Transaction:
    """``previous`` is the identity before the last one, by which a producer that lost an answer is known again."""

    def __init__(self, transactional_id: str, producer_id: int, timeout_ms: int) -> None:
        self.transactional_id = transactional_id
        self.identity = Identity(producer_id, -1)
        self.previous = NO_IDENTITY
        self.marked_as = NO_IDENTITY
        """Of the markers that are being written."""
        self.timeout_ms = timeout_ms
        self.state = TransactionState.EMPTY
        self.is_v2 = False
        """Its producer ends transactions by KIP-890."""
        self.started_at_ms = -1
        self.partitions: set[tuple[str, int]] = set()
        self.groups: set[str] = set()
        self.expiry: Timer | None = None

    @property
    def is_ending(self) -> bool:
        return self.state in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)

    @property
    def is_ongoing(self) -> bool:
        return self.state is TransactionState.ONGOING

    def start(self, now_ms: int, expiry: Timer, *, is_v2: bool) -> None:
        self.state = TransactionState.ONGOING
        self.is_v2 = is_v2
        self.started_at_ms = now_ms
        self.expiry = expiry

    def bump(self, new_producer_id: Callable[[], int]) -> None:
        """The next epoch, or a new id where there is none; who had the last one is still known."""
        self.previous = self.identity
        if self.identity.is_exhausted:
            self.identity = Identity(new_producer_id(), 0)
        else:
            self.identity = self.identity._replace(epoch=self.identity.epoch + 1)

    def fence(self) -> None:
        """Raise the epoch so that nobody has it."""
        if self.identity.epoch < LARGEST_EPOCH:
            self.identity = self.identity._replace(epoch=self.identity.epoch + 1)
        self.previous = NO_IDENTITY

    def prepare(self, *, is_commit: bool, is_v2: bool, new_producer_id: Callable[[], int]) -> None:
        """Decide the end.  By KIP-890 the markers have the next epoch, and the producer goes on with it."""
        self.state = TransactionState.PREPARE_COMMIT if is_commit else TransactionState.PREPARE_ABORT
        self.is_v2 = is_v2
        if self.expiry is not None:
            self.expiry.cancel()
            self.expiry = None
        self.marked_as = self.identity
        if is_v2:
            self.marked_as = self.identity._replace(epoch=min(LARGEST_EPOCH, self.identity.epoch + 1))
            self.bump(new_producer_id)

    def complete(self) -> None:
        """The markers are written."""
        is_commit = self.state is TransactionState.PREPARE_COMMIT
        self.state = TransactionState.COMPLETE_COMMIT if is_commit else TransactionState.COMPLETE_ABORT
        self.started_at_ms = -1

    def facts(self) -> tuple[object, ...]:
        """All state except the timer, as JSON values; ``of_facts`` restores it."""
        return (
            self.transactional_id,
            self.timeout_ms,
            self.state.value,
            self.identity,
            self.previous,
            self.marked_as,
            self.is_v2,
            self.started_at_ms,
            sorted(self.partitions),
            sorted(self.groups),
        )

    @classmethod
    def of_facts(cls, transactional_id: str, timeout_ms: int, state: str, *facts: Any) -> Transaction:
        made = cls(transactional_id, -1, timeout_ms)
        made.state = TransactionState(state)
        identity, previous, marked_as, made.is_v2, made.started_at_ms, partitions, groups = facts
        made.identity, made.previous, made.marked_as = (Identity(*each) for each in (identity, previous, marked_as))
        made.partitions = {(topic, partition) for topic, partition in partitions}
        made.groups = set(groups)
        return made
