"""How far a consumer has read, for a producer that commits it in its transactions.

Records of a partition that has gone meanwhile are another member's to process: a transaction with what came of them
must not be committed, though this member may own the partition again by then.  Handed out counts from where the
application went last (``Reader.began_at``) until a transaction, or a commit, that has it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from pykafka08.consumer.commits import Commits
from pykafka08.consumer.in_hand import wait_for_news
from pykafka08.consumer.reader import Reader
from pykafka08.driver import Waiter
from pykafka08.errors import PartitionRevokedError
from pykafka08.group.requests import OffsetAndMetadata
from pykafka08.records.record import TopicPartition

__all__ = ["SentOffsets"]


class SentOffsets:
    """Remembers which partitions went with records that were handed out and not committed."""

    def __init__(self, commits: Commits, reader: Reader) -> None:
        self._commits = commits
        self._reader = reader
        self.is_used = False
        """True once a transaction has sent offsets of this consumer."""
        self._sent: dict[TopicPartition, int] = {}
        """In the transaction that is open."""
        self._end: Waiter[None] = Waiter()
        self._gone: list[TopicPartition] = []
        self._gone_if_aborted: list[TopicPartition] = []

    def partitions_go(self, partitions: Iterable[TopicPartition]) -> None:
        """Before they do."""
        for tp in partitions:
            position, began_at = self._reader.position(tp), self._reader.began_at.get(tp)
            sent = self._sent.pop(tp, None)
            if began_at is None or position == began_at:
                continue
            # What the transaction has counts if it is committed: until then the next owner is told no offset.
            (self._gone if position != sent else self._gone_if_aborted).append(tp)

    def take(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Where to read on; PartitionRevokedError, once, if records were handed out of what is gone."""
        self.is_used = True
        gone, self._gone = self._gone, []
        if gone:
            raise PartitionRevokedError(
                f"records of {len(gone)} partitions were handed out, and then the partitions went: abort, and read on",
                topic=gone[0].topic,
                partition=gone[0].partition,
            )
        return self._commits.positions()

    def sent(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> Callable[[bool], None]:
        """A transaction has these; what is returned is to be told, once or more often, if it was committed."""
        self._sent.update((tp, each.offset) for tp, each in offsets.items())
        if self._end.is_done:
            self._end = Waiter()
        return self._ended

    async def wait_ended(self, deadline: float) -> None:
        """Until the transaction that has offsets of this consumer, if there is one, has ended, or the deadline."""
        if self._sent:
            await wait_for_news(self._end, deadline)

    def _ended(self, is_committed: bool) -> None:
        sent, self._sent = self._sent, {}
        went, self._gone_if_aborted = self._gone_if_aborted, []
        if is_committed:
            self._begin_at(sent)
        else:
            self._gone += went
        self._end.set_result(None)

    def committed(self, partitions: Iterable[TopicPartition]) -> None:
        """The application has committed in these, without a transaction."""
        found = {tp: self._commits.known(tp) for tp in partitions}
        self._begin_at({tp: offset for tp, offset in found.items() if offset is not None})

    def _begin_at(self, offsets: Mapping[TopicPartition, int]) -> None:
        began_at = self._reader.began_at
        began_at.update((tp, offset) for tp, offset in offsets.items() if tp in began_at)

    def taken_back(self, partitions: Collection[TopicPartition]) -> None:
        """What was handed out of these, or all if there are none, is to be read again, by whoever has them."""
        self._gone = [tp for tp in self._gone if partitions and tp not in partitions]
