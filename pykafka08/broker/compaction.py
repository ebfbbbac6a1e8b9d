"""Compaction: only the latest record of each key stays in a log.

Offsets do not change, so they have gaps afterwards.  Tombstones are deleted once ``delete.retention.ms`` has passed
since they were first compacted, and so are markers of transactions without remaining records.  Records of aborted
transactions are deleted at once.  Source: ``Cleaner``; KIP-98, KIP-534 (the delete horizon).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pykafka08.broker.log import StoredBatch
from pykafka08.broker.open_transactions import AbortedRange
from pykafka08.records.reader import FetchedBatch, read_produced
from pykafka08.records.record import Record
from pykafka08.records.rewrite import retain
from pykafka08.wire import Buffer

__all__ = ["Compaction"]


class Compaction:
    """One compaction of the batches of one log; none of them belongs to an open transaction.

    ``last_batches``: base offsets of the last batch of each idempotent producer; these stay, even without records.
    """

    def __init__(
        self,
        *,
        aborted: Sequence[AbortedRange],
        last_batches: frozenset[int],
        now_ms: int,
        delete_retention_ms: int,
    ) -> None:
        self._aborted = aborted
        self._last_batches = last_batches
        self._now_ms = now_ms
        self._delete_retention_ms = delete_retention_ms
        self._latest: dict[bytes, int] = {}
        self._unmarked: set[int] = set()
        """Producers with records before the next marker."""

    def run(self, batches: Sequence[StoredBatch], dirty_from: int) -> list[StoredBatch]:
        """The batches that stay; those from offset ``dirty_from`` on are new, and their keys replace earlier ones."""
        for stored in batches:
            if stored.last_offset >= dirty_from:
                self._note_keys(stored)
        kept = map(self._compacted, batches)
        return [stored for stored in kept if stored is not None]

    def _note_keys(self, stored: StoredBatch) -> None:
        for _, _, batch in read_produced(stored.data):
            if batch.is_control or self._is_aborted(batch):
                continue
            for record in batch:
                if record.key is not None:
                    self._latest[record.key] = record.offset

    def _is_aborted(self, batch: FetchedBatch) -> bool:
        return batch.is_transactional and any(
            each.covers(batch.producer_id, batch.base_offset) for each in self._aborted
        )

    def _compacted(self, stored: StoredBatch) -> StoredBatch | None:
        is_past_horizon = 0 <= stored.delete_horizon_ms <= self._now_ms
        needs_horizon = is_changed = False
        parts: list[Buffer] = []
        greatest = -1
        for start, end, batch in read_produced(stored.data):
            records = list(self._retained(batch, is_past_horizon=is_past_horizon))
            needs_horizon = needs_horizon or batch.is_control or any(record.value is None for record in records)
            if batch.is_transactional and records and not batch.is_control:
                self._unmarked.add(batch.producer_id)
            if records and len(records) == len(batch):
                parts.append(stored.data[start:end])
            else:
                is_changed = True
                if records or (batch.magic == 2 and batch.base_offset in self._last_batches):
                    parts.append(retain(batch, records))
            greatest = max(greatest, max((record.timestamp_ms for record in records), default=-1))
        if not parts:
            return None
        if needs_horizon and stored.delete_horizon_ms < 0:
            stored.delete_horizon_ms = self._now_ms + self._delete_retention_ms
        if not is_changed:
            return stored
        return StoredBatch(
            stored.base_offset,
            stored.last_offset,
            b"".join(parts),
            max_timestamp_ms=greatest,
            appended_at_ms=stored.appended_at_ms,
            leader_epoch=stored.leader_epoch,
            delete_horizon_ms=stored.delete_horizon_ms,
        )

    def _retained(self, batch: FetchedBatch, *, is_past_horizon: bool) -> Iterator[Record]:
        if batch.is_control:
            has_records = batch.producer_id in self._unmarked
            self._unmarked.discard(batch.producer_id)
            if has_records or not is_past_horizon:
                yield from batch
            return
        if self._is_aborted(batch):
            return
        for record in batch:
            if record.key is None or record.offset < self._latest.get(record.key, -1):
                continue
            if record.value is not None or not is_past_horizon:
                yield record
