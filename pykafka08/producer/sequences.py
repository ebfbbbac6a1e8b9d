"""The numbers of one partition's batches: by them a broker knows a batch that it has already, and one that is missing.

Pure.  Numbers are given once, when a batch is first written, in the order of the batches; they start anew with the next
epoch of the producer wherever one may be missing from the log.  Sources: KIP-98, KIP-360.

A partition has its own epoch: brokers compare epochs within a partition only, and the first batch of a newer epoch
makes them refuse every copy of an older one that is still on its way.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from pykafka08.producer.batch import Batch

__all__ = ["NO_IDENTITY", "Identity", "Restart", "Sequences"]

LAST_EPOCH = 2**15 - 1

PROVEN_S = 60.0
"""How long after an acknowledgement the leader surely remembers this producer.

A broker that does not accepts any number: a second batch could be written though the first one, before it, was refused.
"""


class Identity(NamedTuple):
    """What InitProducerId gave."""

    producer_id: int
    epoch: int

    @property
    def is_valid(self) -> bool:
        """True for a possible producer id and epoch; brokers answer -1 if they give none."""
        return self.producer_id >= 0 and self.epoch >= 0


NO_IDENTITY = Identity(-1, -1)


class Restart(Enum):
    """Why the numbers must start anew, once nothing of the partition is in flight."""

    NO = "they need not"
    MISSING = "a number is missing, so that no batch behind it is in the log; those before it may be"
    IDENTITY = "the producer's id is refused: a batch whose answer was lost may be in the log or not"


class Sequences:
    """Numbers count on beyond 2**31; the wire has the lower 31 bits."""

    __slots__ = ("acknowledged_to", "doubtful_to", "identity", "missing_from", "next", "proven_until", "restart")

    def __init__(self) -> None:
        self.identity: Identity | None = None
        self.next = 0
        self.doubtful_to = 0
        """Numbers below this one may be missing from the log; 0 if none is."""
        self.restart = Restart.NO
        self.missing_from = 0
        """The number from which on none is in the log, where ``restart`` is MISSING."""
        self.proven_until = 0.0
        self.acknowledged_to = 0
        """The offset behind the last acknowledged record."""

    def number(self, batch: Batch) -> None:
        """Give ``batch`` the next numbers."""
        assert self.identity is not None
        batch.producer_id, batch.producer_epoch = self.identity
        batch.base_sequence = self.next
        self.next += len(batch)

    def take_back(self, batch: Batch) -> None:
        """The numbers that ``batch`` was given last: it cannot be written, and the next one has them."""
        self.next = batch.base_sequence
        batch.drop_numbers()

    # --- what became of them ------------------------------------------------------------------------------------------

    def acknowledged(self, batch: Batch, base_offset: int, now: float) -> None:
        """It is in the log, and so is every batch of its epoch before it."""
        if batch.end_sequence >= self.doubtful_to:
            self.doubtful_to = 0
        self.proven_until = now + PROVEN_S
        self.acknowledged_to = max(self.acknowledged_to, base_offset + len(batch))

    def given_up(self, batch: Batch, *, is_in_doubt: bool) -> None:
        """It will not be sent again; ``is_in_doubt``: it may be in the log all the same."""
        self.proven_until = 0.0
        if is_in_doubt:
            self.doubtful_to = max(self.doubtful_to, batch.end_sequence)
        elif batch.end_sequence == self.next:
            self.next = batch.base_sequence  # the broker has refused it, and none was numbered after it
        else:
            self.missing(batch)

    def missing(self, batch: Batch) -> None:
        """Neither it nor any batch behind it is in the log."""
        if self.restart is Restart.NO:
            self.restart, self.missing_from = Restart.MISSING, batch.base_sequence
        else:
            self.missing_from = min(self.missing_from, batch.base_sequence)

    def retried(self) -> None:
        """One at a time until the next acknowledgement."""
        self.proven_until = 0.0

    @property
    def may_go_on(self) -> bool:
        """No number is missing, as far as is known."""
        return self.restart is Restart.NO and not self.doubtful_to

    # --- starting anew ------------------------------------------------------------------------------------------------

    def is_outdated(self, identity: Identity) -> bool:
        """``identity`` is another producer id than that of the numbers, or a later epoch."""
        mine = self.identity
        return mine is None or mine.producer_id != identity.producer_id or mine.epoch < identity.epoch

    def must_start(self, head: Batch, identity: Identity) -> bool:
        """Before ``head``, with nothing in flight, the numbers have to start anew."""
        if self.restart is Restart.MISSING and 0 <= head.base_sequence < self.missing_from:
            return False  # what becomes of it is to be learned under the number it has
        if self.restart is not Restart.NO:
            return True
        return head.base_sequence < 0 and (self.doubtful_to > 0 or self.is_outdated(identity))

    def start(self, identity: Identity, *, may_bump: bool) -> bool:
        """Start at 0 in a new epoch; False if ``identity`` is not one, and this id has none left that we may take.

        The id of an idempotent producer is its own, so that it takes the next epoch by itself.
        """
        if self.is_outdated(identity):
            self.identity = identity
        else:
            assert self.identity is not None
            if not may_bump or self.identity.epoch >= LAST_EPOCH:
                return False
            self.identity = Identity(self.identity.producer_id, self.identity.epoch + 1)
        self.next = self.doubtful_to = 0
        self.restart = Restart.NO
        self.proven_until = 0.0
        return True
