"""The transaction coordinator: transactional ids, what their producers may do, the markers that end transactions.

Transactional ids survive the broker that coordinates them, as groups do.  Answers are error codes.  Source: KIP-98,
KIP-360, KIP-588, KIP-890; ``TransactionCoordinator`` as the releases behave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from pykafka08.broker.append import append_marker
from pykafka08.broker.groups import Groups
from pykafka08.broker.journal import Note, keep_nothing
from pykafka08.broker.state import NO_LEADER, Topics
from pykafka08.broker.timers import Timers
from pykafka08.broker.transaction import NO_IDENTITY, Identity, Transaction, TransactionState
from pykafka08.error_codes import ErrorCode

__all__ = ["Transactions", "as_told"]

LONGEST_TIMEOUT_MS = 900_000  # transaction.max.timeout.ms
LEADERLESS_RETRY_S = 0.05
TopicPartitionKey = tuple[str, int]


def as_told(code: int, version: int, *, fenced: int, abortable: int) -> int:
    """The code as a client of that version knows it: the first ones with the two newer codes are given."""
    if code == ErrorCode.PRODUCER_FENCED and version < fenced:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code == ErrorCode.TRANSACTION_ABORTABLE and version < abortable:
        return ErrorCode.INVALID_TXN_STATE
    return code


class Transactions:
    """Every transactional id of the cluster.

    ``marker_delay``: how many seconds after its end is decided a transaction gets its markers; CONCURRENT_TRANSACTIONS
    till then.
    """

    def __init__(
        self,
        topics: Topics,
        groups: Groups,
        timers: Timers,
        *,
        new_producer_id: Callable[[], int],
        now_ms: Callable[[], int],
    ) -> None:
        self._topics = topics
        self._groups = groups
        self._timers = timers
        self._new_producer_id = new_producer_id
        self._now_ms = now_ms
        self._transactions: dict[str, Transaction] = {}
        self.marker_delay = 0.0
        self.note: Note = keep_nothing

    def __iter__(self) -> Iterator[Transaction]:
        return iter(tuple(self._transactions.values()))

    def find(self, transactional_id: str) -> Transaction | None:
        return self._transactions.get(transactional_id)

    # -- identity

    def init_producer(
        self, transactional_id: str, timeout_ms: int, expected: Identity = NO_IDENTITY
    ) -> tuple[Identity, ErrorCode]:
        """An epoch that fences all before it.  ``expected`` is what the producer has (KIP-360)."""
        if not transactional_id:
            return NO_IDENTITY, ErrorCode.INVALID_REQUEST
        if not 0 < timeout_ms <= LONGEST_TIMEOUT_MS:
            return NO_IDENTITY, ErrorCode.INVALID_TRANSACTION_TIMEOUT
        known = self._transactions.get(transactional_id)
        if known is None:
            known = self._transactions[transactional_id] = Transaction(
                transactional_id, self._new_producer_id(), timeout_ms
            )
        if not self._may_go_on(known, expected):
            return NO_IDENTITY, ErrorCode.PRODUCER_FENCED
        if known.is_ending:
            return NO_IDENTITY, ErrorCode.CONCURRENT_TRANSACTIONS
        if known.is_ongoing:
            self._fence(known)
            return NO_IDENTITY, ErrorCode.CONCURRENT_TRANSACTIONS
        known.timeout_ms = timeout_ms
        if expected != known.previous or expected == NO_IDENTITY:
            known.bump(self._new_producer_id)
            if expected == NO_IDENTITY:
                known.previous = NO_IDENTITY
        self._changed(known)
        return known.identity, ErrorCode.NONE

    @staticmethod
    def _may_go_on(known: Transaction, expected: Identity) -> bool:
        return expected == NO_IDENTITY or known.identity.epoch < 0 or expected in (known.identity, known.previous)

    def _check(self, transactional_id: str | None, identity: Identity) -> tuple[Transaction | None, ErrorCode]:
        """The transactional id of a request whose producer is the current one and not between two transactions."""
        if not transactional_id:
            return None, ErrorCode.INVALID_REQUEST
        known = self._transactions.get(transactional_id)
        if known is None or known.identity.producer_id != identity.producer_id:
            return None, ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if known.identity.epoch != identity.epoch:
            return None, ErrorCode.PRODUCER_FENCED
        return (None, ErrorCode.CONCURRENT_TRANSACTIONS) if known.is_ending else (known, ErrorCode.NONE)

    # -- what belongs to a transaction

    def add(
        self,
        transactional_id: str | None,
        identity: Identity,
        *,
        partitions: Iterable[TopicPartitionKey] = (),
        groups: Iterable[str] = (),
        is_v2: bool = False,
    ) -> ErrorCode:
        """Make partitions and groups part of the transaction, which starts with the first; ``is_v2``: by KIP-890."""
        known, code = self._check(transactional_id, identity)
        if known is None:
            return code
        is_new = not known.is_ongoing
        if is_new:
            expiry = self._timers.call_after(known.timeout_ms / 1000, partial(self.expire, known.transactional_id))
            known.start(self._now_ms(), expiry, is_v2=is_v2)
        parts = len(known.partitions), len(known.groups)
        known.partitions.update(partitions)
        known.groups.update(groups)
        if is_new or parts != (len(known.partitions), len(known.groups)):
            self._changed(known)
        return code

    def verify(
        self,
        transactional_id: str | None,
        identity: Identity,
        *,
        partition: TopicPartitionKey | None = None,
        group: str | None = None,
    ) -> ErrorCode:
        """Is it part of the transaction?  TRANSACTION_ABORTABLE if not."""
        known, code = self._check(transactional_id, identity)
        if known is None:
            return code
        is_part = known.is_ongoing and (partition in known.partitions or group in known.groups)
        return ErrorCode.NONE if is_part else ErrorCode.TRANSACTION_ABORTABLE

    # -- the end

    def end(
        self, transactional_id: str, identity: Identity, *, is_commit: bool, is_v2: bool
    ) -> tuple[Identity, ErrorCode]:
        """Commit or abort; the identity to go on with."""
        known = self._transactions.get(transactional_id)
        is_retry = is_v2 and known is not None and known.is_v2 and identity == known.previous
        if known is None or (known.identity.producer_id != identity.producer_id and not is_retry):
            return NO_IDENTITY, ErrorCode.INVALID_PRODUCER_ID_MAPPING if transactional_id else ErrorCode.INVALID_REQUEST
        if known.identity != identity and not (is_retry and not known.is_ongoing):
            return NO_IDENTITY, ErrorCode.PRODUCER_FENCED
        code = self._end_code(known, is_commit=is_commit, is_v2=is_v2, is_retry=is_retry)
        if code is None:
            self._end(known, is_commit=is_commit, is_v2=is_v2)
        return (NO_IDENTITY, code) if code else (known.identity, ErrorCode.NONE)

    @staticmethod
    def _end_code(known: Transaction, *, is_commit: bool, is_v2: bool, is_retry: bool) -> ErrorCode | None:
        """What to answer, or None to end it.  A producer of KIP-890 may abort a transaction that has nothing in it."""
        if known.is_ongoing:
            return None
        was_commit = known.state in (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)
        if is_v2 and not is_retry:
            if known.is_ending:
                return ErrorCode.PRODUCER_FENCED
            return ErrorCode.INVALID_TXN_STATE if is_commit else None
        if known.state is TransactionState.EMPTY or is_commit is not was_commit:
            return ErrorCode.INVALID_TXN_STATE
        return ErrorCode.CONCURRENT_TRANSACTIONS if known.is_ending else ErrorCode.NONE

    def _fence(self, known: Transaction, *, may_go_on: bool = False) -> None:
        """End the transaction of a producer that has been replaced or has timed out.

        ``may_go_on``: its abort gives it the next epoch; otherwise it gets a fencing error.
        """
        if not known.is_v2:  # by KIP-890 the end itself raises the epoch
            known.fence()
        self._end(known, is_commit=False, is_v2=known.is_v2)
        if not may_go_on:
            known.previous = NO_IDENTITY

    def expire(self, transactional_id: str) -> bool:
        """The time-out of its transaction has passed; False if none is open."""
        known = self._transactions.get(transactional_id)
        if known is None or not known.is_ongoing:
            return False
        self._fence(known, may_go_on=known.is_v2)
        return True

    def _end(self, known: Transaction, *, is_commit: bool, is_v2: bool) -> None:
        known.prepare(is_commit=is_commit, is_v2=is_v2, new_producer_id=self._new_producer_id)
        self._changed(known)
        if self.marker_delay:
            self._timers.call_after(self.marker_delay, partial(self._write_markers, known))
        else:
            self._write_markers(known)

    def _write_markers(self, known: Transaction) -> None:
        """To all partitions that have a leader, and again until none is left."""
        is_commit = known.state is TransactionState.PREPARE_COMMIT
        producer_id, epoch = known.marked_as
        for key in sorted(known.partitions):
            found = self._topics.find_partition(*key)
            if found is not None and found.leader == NO_LEADER:
                continue
            known.partitions.discard(key)
            if found is not None:
                append_marker(found, producer_id, epoch, is_commit=is_commit, now_ms=self._now_ms())
        for group in sorted(known.groups):
            self._groups.end_transaction(group, producer_id, epoch, is_commit=is_commit)
        known.groups.clear()
        if known.partitions:
            self._timers.call_after(LEADERLESS_RETRY_S, partial(self._write_markers, known))
        else:
            known.complete()
            self._changed(known)

    # -- restoring state

    def _changed(self, known: Transaction) -> None:
        self.note("transaction", *known.facts())

    def restore(self, known: Transaction) -> None:
        """Restore a transactional id; an open transaction keeps its time-out."""
        self._transactions[known.transactional_id] = known
        if known.is_ongoing:
            left_ms = max(0, known.started_at_ms + known.timeout_ms - self._now_ms())
            known.expiry = self._timers.call_after(left_ms / 1000, partial(self.expire, known.transactional_id))

    def resume(self) -> None:
        """Write the markers of restored transactions in PrepareCommit or PrepareAbort."""
        for known in self:
            if known.is_ending:
                self._write_markers(known)

    def close(self) -> None:
        """Let go of all timers."""
        for known in self._transactions.values():
            if known.expiry is not None:
                known.expiry.cancel()
