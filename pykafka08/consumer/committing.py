"""What a consumer's group is told, and tells: finished records, commits, committed offsets.

The rest of the public class is in ``positions`` and ``consumer``; membership is ``member``'s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import anyio.lowlevel

from pykafka08.consumer.checks import check_offset, checked
from pykafka08.consumer.member import ConsumerMember
from pykafka08.consumer.positions import Positions
from pykafka08.consumer.tables import is_table
from pykafka08.errors import ConfigError, KafkaError
from pykafka08.errors.deadline import raising_refusals
from pykafka08.group.metadata import GroupMetadata
from pykafka08.group.requests import OffsetAndMetadata
from pykafka08.group.settings import GroupConfig
from pykafka08.records.reader import FetchedBatch
from pykafka08.records.record import Record, TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Committing"]


class Committing(Positions):
    """The part of a consumer that needs a group."""

    _group_config: GroupConfig | None
    _member: ConsumerMember | None

    @property
    def _coordinator(self) -> int | None:
        return None if self._member is None else self._member.coordinator.node_id

    def acknowledge(self, what: Record | FetchedBatch | pa.RecordBatch) -> None:
        """This record, batch or table, and all before it, is finished, though nothing more is asked for.

        It is the one that was handed out; ConfigError for a table that is a part or copy of one, or another consumer's,
        and for a batch that is another's.  Without effect once the partition has gone to another member, or
        the record's log is lost: its topic was made again, or its log was cut before it.
        """
        self._reader.check_affinity()
        if not isinstance(what, (Record, FetchedBatch)):
            if not is_table(what):
                raise ConfigError(f"{what!r:.100} is neither a record, nor a batch, nor a table")
            self._reader.acknowledge_table(what)
            return
        if isinstance(what, FetchedBatch) and what.taken_from is not self._reader.stamp:
            raise ConfigError(f"{what!r:.100} was not handed out by this consumer: acknowledge it where it was")
        tp = TopicPartition(what.topic, what.partition)
        end = what.next_offset if isinstance(what, FetchedBatch) else what.offset + 1
        state = self._assignment.states.get(tp)
        if state is not None and state.has_log_of(what.topic, end - 1):
            self._reader.acknowledge(tp, end)

    async def commit(
        self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None, *, timeout: float | None = None
    ) -> dict[TopicPartition, KafkaError]:
        """Commit where to read on, or these offsets; the answer has what was refused, and why: empty if nothing was.

        Without ``offsets`` all that was handed out is committed, also the record in hand; while :meth:`process` runs,
        what is finished.  PartitionRevokedError is the outcome of a partition that is not, or no longer, this member's.
        A rebalance is waited for; RequestTimeoutError after ``timeout`` seconds (``default_api_timeout_ms``), or the
        SecurityError of a broker that refuses this consumer.
        """
        member = self._open_member()
        if offsets is None:
            with raising_refusals():
                return await member.commit(None, timeout=self._seconds(timeout))
        wanted = {
            checked(tp): each if isinstance(each, OffsetAndMetadata) else OffsetAndMetadata(each)
            for tp, each in offsets.items()
        }
        for tp, each in wanted.items():
            check_offset(tp, each.offset)
        with raising_refusals():
            return await member.commit(wanted, timeout=self._seconds(timeout))

    async def committed(
        self, partitions: Iterable[TopicPartition], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """The group's committed offsets, None where there is none."""
        member = self._open_member()
        with raising_refusals():
            return await member.committed([checked(tp) for tp in partitions], timeout=self._seconds(timeout))

    async def seek_to_committed(self, *partitions: TopicPartition) -> None:
        """Read on where the group has committed, else at ``auto_offset_reset``, in these partitions or all.

        For what is to be read again after a transaction that was aborted.  Only reading waits for the positions.
        """
        member = self._open_member()
        wanted = [checked(each) for each in partitions]
        for tp in wanted or self.assignment():
            self._assignment.seek_to_committed(tp)
            self._reader.forget(tp)
        member.sent.taken_back(wanted)
        member.assigned()
        self._pump()
        await anyio.lowlevel.checkpoint()

    def group_offsets(self) -> tuple[GroupMetadata, dict[TopicPartition, OffsetAndMetadata]]:
        """What :meth:`pykafka08.Producer.send_offsets` commits: this member, and where it would read on.

        All that was handed out counts, as in :meth:`commit`.  PartitionRevokedError if a partition has gone since
        records of it were handed out: what came of them must be aborted.  ConfigError while :meth:`process` runs.
        """
        return self._open_member().group_offsets()

    def offsets_sent(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> Callable[[bool], None]:
        """For :meth:`pykafka08.Producer.send_offsets`: what its transaction has of this consumer.

        It calls what is returned at its end, with True if it was committed.
        """
        return self._open_member().sent.sent(offsets)

    def _open_member(self) -> ConsumerMember:
        if self._group_config is None:
            raise ConfigError(f"committed offsets need a consumer group: set {self._config.setting_names['group_id']}")
        self._reader.open_fetcher(to_read=False)
        assert self._member is not None
        return self._member
