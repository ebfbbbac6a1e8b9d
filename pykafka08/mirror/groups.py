"""Carrying groups over: each committed offset of the source becomes the offset of the same record's copy.

From a point that the mirror has kept, records are counted on both sides: offsets differ where compaction, transactions
or other writers have left gaps, the number of records between two offsets does not.  What was found is checked: the
record there must be the copy.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from contextlib import aclosing

from pykafka08.admin import Admin
from pykafka08.errors import KafkaError, MalformedNodeError, MirrorError
from pykafka08.mirror.checkpoint import around
from pykafka08.mirror.columns import content_of
from pykafka08.mirror.copy_state import CopyState, GroupMove
from pykafka08.mirror.ranges import Ranges
from pykafka08.records.record import Record, TopicPartition
from pykafka08.zookeeper import reading
from pykafka08.zookeeper.bridge import ZooKeeper

__all__ = ["Offsets", "commit_moves", "kafka_offsets", "translate", "zookeeper_offsets"]

Offsets = dict[TopicPartition, int]


async def kafka_offsets(source: Admin, group_id: str, partitions: Sequence[TopicPartition]) -> Offsets:
    """What the group has committed to Kafka in the mirrored partitions."""
    found = await source.list_group_offsets(group_id, partitions)
    if not found:
        raise MirrorError(
            f"group {group_id!r} has no offsets in the source's Kafka for the mirrored topics; "
            "if they are in ZooKeeper, name it as one of zookeeper_groups (--zookeeper-group)"
        )
    return {tp: each.offset for tp, each in found.items()}


async def zookeeper_offsets(zookeeper: ZooKeeper, group_id: str, partitions: Sequence[TopicPartition]) -> Offsets:
    """What the group has in ZooKeeper for the mirrored partitions."""

    def raise_it(error: MalformedNodeError) -> None:
        raise error

    told = await reading.group_offsets(zookeeper, group_id, raise_it, sorted({tp.topic for tp in partitions}))
    found = {tp: told[tp] for tp in partitions if told.get(tp, -1) >= 0}
    if not found:
        raise MirrorError(
            f"group {group_id!r} has no offsets in ZooKeeper for the mirrored topics; "
            "if they are in Kafka, name it as one of groups (--group)"
        )
    return found


async def commit_moves(group_id: str, moves: Sequence[GroupMove], admin: Admin) -> list[GroupMove]:
    """Commit translated offsets in the target, forward only; MirrorError while the group has members there."""
    done = list(moves)
    present = await admin.list_group_offsets(group_id, [move.target for move in moves])
    wanted: Offsets = {}
    for number, move in enumerate(moves):
        if move.target_offset is None:
            continue
        known = present.get(move.target)
        if known is not None and known.offset > move.target_offset:
            done[number] = move._replace(why_not=f"the group is at {known.offset} there, further on")
        elif known is None or known.offset != move.target_offset:
            wanted[move.target] = move.target_offset
    refused = await _commit(admin, group_id, wanted) if wanted else {}
    return [
        move._replace(target_offset=None, why_not=refused[move.target].message) if move.target in refused else move
        for move in done
    ]


async def _commit(admin: Admin, group_id: str, wanted: Offsets) -> dict[TopicPartition, KafkaError]:
    described = None
    try:
        return await admin.alter_group_offsets(group_id, wanted)
    except KafkaError as error:
        try:
            described = (await admin.describe_groups([group_id]))[group_id]
        except KafkaError:
            raise error from None
        if not described.has_members:
            raise
        raise MirrorError(
            f"group {group_id!r} has {len(described.members)} member(s) in the target, who alone may commit: "
            "stop them, move the group, then start them"
        ) from error


async def translate(state: CopyState, offset: int, source: Ranges, target: Ranges) -> tuple[int | None, str | None]:
    """The target's offset for the source's, or why there is none yet.  MirrorError where it cannot be known."""
    before, after = around(state.points, offset)
    if after is None:
        return None, f"offset {offset} is not copied yet; the mirror is at {state.next}"
    if before is None:
        before = min(state.points)
        if offset < before[0]:
            return before[1], None  # the records before it were deleted in the source before the mirror began
    if offset == after[0]:
        return after[1], None
    if offset == before[0]:
        return before[1], None
    left, original = 0, None
    async with aclosing(source.records(state.source, offset, after[0])) as records:
        async for record in records:
            original = original or record
            left += 1
    if original is None:
        return after[1], None
    return await _place_of_copy(state, original, left, (before[1], after[1]), target), None


async def _place_of_copy(state: CopyState, original: Record, left: int, bounds: tuple[int, int], target: Ranges) -> int:
    """Where the copy is: ``left`` records from it on are before the end of ``bounds``, or no other has its content."""
    wanted = content_of(original)
    offsets, same = array("q"), array("q")  # not the records: a group far behind has millions before the next point
    async with aclosing(target.records(state.target, *bounds)) as records:
        async for record in records:
            offsets.append(record.offset)
            if content_of(record) == wanted:
                same.append(record.offset)
    if left <= len(offsets) and offsets[-left] in same:
        return offsets[-left]
    if len(same) == 1:
        return same[0]
    if left > len(offsets):
        raise state.error(
            f"{left} records were copied from offset {original.offset} of the source on, and {len(offsets)} are here: "
            "copies were deleted, and the group's place cannot be known"
        )
    raise state.error(
        f"the copy of the record at offset {original.offset} is not where it should be, or not the only one"
    )
