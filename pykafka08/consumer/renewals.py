"""Renewal of committed offsets: an unchanged offset is committed again before ``offsets.retention.minutes`` expires it.

Brokers before 2.1 count the retention of every group from the last commit, and all releases do so for a consumer that
uses ``assign``.  With auto-commit the committed positions are renewed, without it the offsets that the application has
committed through this consumer.  Each renewal first looks up the offsets, and leaves out those that another client has
changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import anyio

from pykafka08.consumer.commits import Commits
from pykafka08.errors import ClosedError, KafkaError
from pykafka08.group.requests import OffsetAndMetadata
from pykafka08.records.record import TopicPartition

__all__ = ["CLOSE_AGE", "MAX_AGE", "Renewals"]

MAX_AGE = 30.0
"""Seconds after which an unchanged offset is committed again: half of the shortest retention that brokers allow."""
CLOSE_AGE = 5.0
"""Seconds after which a consumer that closes commits an unchanged offset again."""
LOOK_SECONDS = 5.0
"""Seconds between two checks for offsets that are due."""


class Renewals:
    """Commits unchanged offsets of ``commits`` again; ``is_allowed()`` is called before each renewal."""

    def __init__(self, commits: Commits, *, is_auto: bool, is_allowed: Callable[[], bool]) -> None:
        self._commits = commits
        self._is_auto = is_auto
        self._is_allowed = is_allowed

    async def run(self, timeout: float) -> None:
        """Renew offsets until cancelled; each renewal takes at most ``timeout`` seconds."""
        while True:
            await anyio.sleep(LOOK_SECONDS)
            await self.renew(None, max_age=MAX_AGE, timeout=timeout)

    async def renew(self, partitions: Iterable[TopicPartition] | None, *, max_age: float, timeout: float) -> None:
        """Commit the offsets of these partitions, or of all, again if older than ``max_age``; failures are logged."""
        now = anyio.current_time()
        due = self._due(partitions, now - max_age)
        if not due:
            return
        self._commits.checked(due, now)
        try:
            committed = await self._commits.committer.committed(due, timeout=timeout)
        except ClosedError:
            return  # the member is leaving its group
        except KafkaError as error:
            self._commits.log.warning("commit.not_renewed", partitions=len(due), cause=str(error))
            return
        still_due = self._due(due, now)
        offsets = {
            tp: committed[tp] or still_due[tp]
            for tp in due
            if tp in still_due and _is_unchanged(committed[tp], due[tp], still_due[tp])
        }
        left = timeout - (anyio.current_time() - now)
        if offsets and left > 0:
            await self._commits.renew(offsets, left)

    def _due(
        self, partitions: Iterable[TopicPartition] | None, before: float
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Offsets last committed, or looked up for a renewal, at ``before`` or earlier."""
        if not self._is_allowed():
            return {}
        wanted = None if partitions is None else set(partitions)
        return {
            tp: offset
            for tp, (offset, committed_at) in self._commits.renewable(is_auto=self._is_auto).items()
            if (wanted is None or tp in wanted) and (committed_at is None or committed_at <= before)
        }


def _is_unchanged(found: OffsetAndMetadata | None, before: OffsetAndMetadata, now: OffsetAndMetadata) -> bool:
    """True if no other client has committed another offset; None stands for an expired offset."""
    return before.offset == now.offset and (found is None or found.offset == now.offset)
