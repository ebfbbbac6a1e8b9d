"""How far one partition is, while a mirror runs; what is told of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pykafka08.errors import MirrorError
from pykafka08.mirror.checkpoint import Checkpoint, Point, thinned
from pykafka08.mirror.plan import TopicPlan
from pykafka08.records.record import TopicPartition

__all__ = ["CopyState", "GroupMove", "MirrorReport", "PartitionReport"]


class PartitionReport(NamedTuple):
    """``copied``: by this run; ``position``: the source's next offset to copy; ``lag``: how many offsets to its end.

    ``duplicates`` are records that stand in the target twice, since an answer of its brokers was lost before Kafka
    0.11; ``lost`` are offsets that the source had deleted before they could be copied.
    """

    source: TopicPartition
    target: TopicPartition
    copied: int
    size: int
    duplicates: int
    lost: int
    position: int
    lag: int


class GroupMove(NamedTuple):
    """A group's offset in one partition, and what it is in the target; ``why_not`` says why it was not committed.

    ``target_offset`` is None where the group could not be moved; with it ``why_not`` says that there was no need.
    """

    group_id: str
    source: TopicPartition
    source_offset: int
    target: TopicPartition
    target_offset: int | None
    why_not: str | None = None


@dataclass(frozen=True)
class MirrorReport:
    """Where a mirror is."""

    partitions: Sequence[PartitionReport] = ()
    groups: Sequence[GroupMove] = ()
    trouble: str | None = None
    """What it is waiting for to be mended, if it is."""

    @property
    def records(self) -> int:
        """Copied by this run."""
        return sum(each.copied for each in self.partitions)

    @property
    def size(self) -> int:
        """Bytes of keys and values copied by this run."""
        return sum(each.size for each in self.partitions)

    @property
    def lag(self) -> int:
        return sum(each.lag for each in self.partitions)

    @property
    def duplicates(self) -> int:
        return sum(each.duplicates for each in self.partitions)

    @property
    def lost(self) -> int:
        return sum(each.lost for each in self.partitions)


@dataclass
class CopyState:
    """``next``: the source's next offset; ``to``: the target's after the last copy; ``end``: how far to copy.

    ``by`` is the run's mark.  Before ``seen`` the target has nothing but copies, markers and what was aborted.
    """

    plan: TopicPlan
    source: TopicPartition
    target: TopicPartition
    cluster: str | None
    by: str | None = None
    next: int = 0
    to: int = 0
    seen: int = 0
    end: int = 0
    points: list[Point] = field(default_factory=list)
    copied: int = 0
    size: int = 0
    duplicates: int = 0
    lost: int = 0

    @property
    def lag(self) -> int:
        return max(0, self.end - self.next)

    def checkpoint(self, next_offset: int, to: int, points: Sequence[Point] = ()) -> Checkpoint:
        """What is kept when the target has all before ``next_offset``, and ends at ``to``."""
        plan = self.plan
        every = (*self.points, *points, (next_offset, to))
        return Checkpoint(next_offset, to, plan.source, self.cluster, plan.source_id, plan.target_id, every, self.by)

    def is_at(self, kept: Checkpoint) -> None:
        """That checkpoint counts now."""
        self.next, self.to = kept.offset, kept.to
        self.points = thinned(kept.points)

    def check(self, kept: Checkpoint, source_end: int, target_end: int) -> None:
        """MirrorError unless the checkpoint is of these very topics: to go on would lose or mix records."""
        plan = self.plan
        if kept.topic != plan.source or (kept.cluster and self.cluster and kept.cluster != self.cluster):
            of_cluster = f" of cluster {kept.cluster}" if kept.cluster else ""
            raise self.error(f"it holds copies of topic {kept.topic!r}{of_cluster}, by a mirror of the same name")
        if kept.source_id and plan.source_id and kept.source_id != plan.source_id:
            raise self.error(f"topic {plan.source!r} of the source was deleted and made anew since it was copied here")
        if kept.target_id and plan.target_id and kept.target_id != plan.target_id:
            raise self.error("it was deleted and made anew; what was copied before is gone")
        if kept.to > target_end:
            raise self.error(
                f"it ends at offset {target_end}, and had copies up to {kept.to}: it was made anew, or has lost records"
            )
        if kept.offset > source_end:
            raise self.error(
                f"the source ends at offset {source_end}, and was copied up to {kept.offset}: "
                "it was made anew, or has lost records"
            )

    def error(self, why: str) -> MirrorError:
        """About the target's partition."""
        advice = "restart copies all that the source has, behind what is there"
        return MirrorError(f"{why}; {advice}", topic=self.target.topic, partition=self.target.partition)

    def report(self) -> PartitionReport:
        return PartitionReport(
            self.source, self.target, self.copied, self.size, self.duplicates, self.lost, self.next, self.lag
        )
