"""What a partition remembers of idempotent producers: the last batches of each, to know duplicates and gaps.

Source: KIP-98 (exactly once), KIP-360 (a producer that the log has forgotten may start anywhere).  Which transactions
are open is in ``open_transactions``.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from pykafka08.error_codes import ErrorCode

__all__ = ["Appended", "SequenceError", "Sequences"]

REMEMBERED_BATCHES = 5
SEQUENCE_END = 2**31


class Appended(NamedTuple):
    """One batch in the log, as its producer numbered it."""

    base_sequence: int
    last_sequence: int
    base_offset: int
    timestamp_ms: int


class SequenceError(Exception):
    """The batch does not follow its producer's last one; ``code`` is what the broker answers."""

    def __init__(self, code: ErrorCode, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class _Producer:
    __slots__ = ("batches", "epoch")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.batches: deque[Appended] = deque(maxlen=REMEMBERED_BATCHES)


class Sequences:
    """The producers of one partition, by producer id."""

    def __init__(self) -> None:
        self._producers: dict[int, _Producer] = {}

    def check(self, producer_id: int, epoch: int, base_sequence: int, count: int) -> Appended | None:
        """The earlier batch if this one is its duplicate, None if it may be appended; SequenceError if neither."""
        producer = self._producers.get(producer_id)
        if producer is None:
            return None
        if epoch < producer.epoch:
            raise SequenceError(
                ErrorCode.INVALID_PRODUCER_EPOCH, f"producer {producer_id} is at epoch {producer.epoch}, not {epoch}"
            )
        if epoch > producer.epoch or not producer.batches:
            if base_sequence != 0:
                raise SequenceError(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, f"a new epoch starts at sequence 0, not {base_sequence}"
                )
            return None
        last_sequence = (base_sequence + count - 1) % SEQUENCE_END
        for batch in producer.batches:
            if batch.base_sequence == base_sequence and batch.last_sequence == last_sequence:
                return batch
        expected = (producer.batches[-1].last_sequence + 1) % SEQUENCE_END
        if base_sequence != expected:
            raise SequenceError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, f"expected sequence {expected}, got {base_sequence}"
            )
        return None

    def appended(
        self, producer_id: int, epoch: int, base_sequence: int, count: int, base_offset: int, timestamp_ms: int
    ) -> None:
        """Remember a batch that is in the log now."""
        producer = self._producers.get(producer_id)
        if producer is None or producer.epoch != epoch:
            producer = self._producers[producer_id] = _Producer(epoch)
        last_sequence = (base_sequence + count - 1) % SEQUENCE_END
        producer.batches.append(Appended(base_sequence, last_sequence, base_offset, timestamp_ms))

    def epoch_ended(self, producer_id: int, epoch: int) -> None:
        """A marker of that epoch is in the log: what the producer sent at a lower one is refused from now on."""
        producer = self._producers.get(producer_id)
        if producer is None or producer.epoch < epoch:
            self._producers[producer_id] = _Producer(epoch)

    def latest(self) -> list[tuple[int, int, Appended | None]]:
        """Id, epoch and last batch of each producer; None if it has written nothing at that epoch."""
        return [
            (producer_id, producer.epoch, producer.batches[-1] if producer.batches else None)
            for producer_id, producer in self._producers.items()
        ]

    def truncated(self, end_offset: int) -> None:
        """The log ends here now: what its producers wrote behind it was never written."""
        for producer in self._producers.values():
            while producer.batches and producer.batches[-1].base_offset >= end_offset:
                producer.batches.pop()

    def forget(self) -> None:
        """Drop all producers, as a log does whose records are all deleted."""
        self._producers.clear()
