"""The groups that a mirror carries over, while it runs: which have moved, which could not, what is not asked anew.

How one offset is translated and committed is in ``groups``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

from pykafka08.admin import Admin
from pykafka08.errors import AuthorizationError, KafkaError, MalformedNodeError, MirrorError
from pykafka08.mirror.copy_state import CopyState, GroupMove
from pykafka08.mirror.groups import Offsets, commit_moves, kafka_offsets, translate, zookeeper_offsets
from pykafka08.mirror.ranges import Ranges
from pykafka08.records.record import TopicPartition
from pykafka08.zookeeper.bridge import ZooKeeper
from pykafka08.zookeeper.same_cluster import why_two_clusters

__all__ = ["GroupCarrier"]

OF_ONE_GROUP = (AuthorizationError, MalformedNodeError, MirrorError)
"""What is wrong with one group alone: no reason to end a mirror that follows."""

Key = tuple[str, TopicPartition]


class GroupCarrier:
    """``groups`` have their offsets in the source's Kafka, ``zookeeper_groups`` in its ``zookeeper``."""

    def __init__(
        self,
        groups: Sequence[str],
        zookeeper_groups: Sequence[str],
        zookeeper: str | None,
        zookeeper_settings: Mapping[str, Any],
        *,
        is_forced: bool = False,
    ) -> None:
        self._groups = groups
        self._zookeeper_groups = zookeeper_groups
        self._zookeeper = None if zookeeper is None else partial(ZooKeeper, zookeeper, **zookeeper_settings)
        self._is_compared = is_forced
        if self._zookeeper is not None:
            self._zookeeper()  # what is wrong with the settings shows at once
        self._moved_from: dict[Key, int] = {}
        self._translated: dict[Key, GroupMove] = {}
        self.moves: dict[Key, GroupMove] = {}
        self.is_lenient = False
        """True once all groups have been looked at: from then on trouble with one is told of in its moves."""

    async def offsets(self, source: Admin, partitions: Sequence[TopicPartition]) -> dict[str, Offsets]:
        """Where the groups are in the source; MirrorError for one that has no offset."""
        return await self._look(source, partitions, _raise)

    async def changed(self, source: Admin, partitions: Sequence[TopicPartition]) -> dict[str, Offsets]:
        """Those offsets that are not in the target yet."""
        found = await self._look(source, partitions, self._is_gone if self.is_lenient else _raise)
        changed = {
            group: {tp: offset for tp, offset in offsets.items() if self._moved_from.get((group, tp)) != offset}
            for group, offsets in found.items()
        }
        return {group: offsets for group, offsets in changed.items() if offsets}

    async def carry(
        self,
        group: str,
        offsets: Offsets,
        states: Mapping[TopicPartition, CopyState],
        *,
        source: Ranges,
        target: Ranges,
        admin: Admin,
    ) -> None:
        """Move one group; what is not done is tried again when it is called again."""
        moves = [await self._translate(group, tp, offset, states[tp], source, target) for tp, offset in offsets.items()]
        try:
            moves = await commit_moves(group, moves, admin)
        except OF_ONE_GROUP as error:
            if not self.is_lenient:
                raise
            moves = [
                move if move.target_offset is None else move._replace(target_offset=None, why_not=error.message)
                for move in moves
            ]
        for move in moves:
            self.moves[group, move.source] = move
            if move.target_offset is not None:
                self._moved_from[group, move.source] = move.source_offset

    def forget_translations(self) -> None:
        """The points that they were made from may be others now."""
        self._translated.clear()

    async def _look(
        self, source: Admin, partitions: Sequence[TopicPartition], failed: Callable[[str, KafkaError], None]
    ) -> dict[str, Offsets]:
        asked = {group: partial(kafka_offsets, source, group) for group in self._groups}
        found: dict[str, Offsets] = {}
        async with AsyncExitStack() as opened:
            if self._zookeeper is not None:
                session = await opened.enter_async_context(self._zookeeper())
                await self._compare(session, source)
                asked |= {group: partial(zookeeper_offsets, session, group) for group in self._zookeeper_groups}
            for group, ask in asked.items():
                try:
                    found[group] = await ask(partitions)
                except OF_ONE_GROUP as error:  # noqa: PERF203 - each group for itself
                    failed(group, error)
        return found

    async def _compare(self, session: ZooKeeper, source: Admin) -> None:
        """MirrorError if ZooKeeper belongs to another cluster: its offsets would be those of other records."""
        if self._is_compared:
            return
        why = await why_two_clusters(session, source)
        if why is not None:
            raise MirrorError(
                f"zookeeper is not the source's: {why}; use force if a proxy only gives the brokers other addresses"
            )
        self._is_compared = True

    async def _translate(
        self, group: str, tp: TopicPartition, offset: int, state: CopyState, source: Ranges, target: Ranges
    ) -> GroupMove:
        """Once for an offset: both logs are read for it while copying waits."""
        known = self._translated.get((group, tp))
        if known is not None and known.source_offset == offset:
            return known
        try:
            translated, why_not = await translate(state, offset, source, target)
            is_final = translated is not None
        except MirrorError as error:
            translated, why_not, is_final = None, error.message, True
        move = GroupMove(group, tp, offset, state.target, translated, why_not)
        if is_final:
            self._translated[group, tp] = move
        return move

    def _is_gone(self, group: str, error: KafkaError) -> None:
        """The source has no offset of it any more; where it was moved to counts."""
        for key, move in self.moves.items():
            if key[0] == group:
                self.moves[key] = move._replace(why_not=error.message)
                self._moved_from.pop(key, None)


def _raise(_: str, error: KafkaError) -> None:
    raise error
