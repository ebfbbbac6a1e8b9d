"""Offsets of old groups: set, deleted, carried away and brought back, while nobody of the group is alive.

Sources: AdminUtils of 0.9, ExportZkOffsets, ImportZkOffsets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from pykafka08.config import client_settings
from pykafka08.consumer.consumer import Consumer
from pykafka08.errors import (
    AdminRefusedError,
    ConfigError,
    KafkaError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
)
from pykafka08.records.record import TopicPartition
from pykafka08.zookeeper import paths, reading
from pykafka08.zookeeper.admin.guarded import Guarded
from pykafka08.zookeeper.admin.release import bootstrap_servers
from pykafka08.zookeeper.nodes.brokers import Topic
from pykafka08.zookeeper.nodes.consumers import Offset

__all__ = ["GroupAdministration", "offset_lines", "parse_offset_lines"]

_LINE = re.compile(r"/consumers/([^/]+)/offsets/([^/]+)/(?:\d{1,10}-)?(\d{1,10}):(\d{1,19})", re.ASCII)

Offsets = Mapping[TopicPartition, int] | Mapping[tuple[str, int], int]


class GroupAdministration(Guarded):
    """Old groups."""

    async def group_offsets(self, group: str) -> dict[TopicPartition, int]:
        """What the group reads next, as ZooKeeper has it; AdminRefusedError if there is no such group."""
        await self._check_known(group)
        return await reading.group_offsets(self.zk, group)

    async def reset_group_offsets(self, group: str, offsets: Offsets) -> dict[TopicPartition, int | None]:
        """Set what the group reads next, while none of its members is alive; what was there before (None: nothing).

        AdminRefusedError while members live, for a partition that is not there, and for an offset that lies outside of
        the log or cannot be compared with it; the latter two not with ``force``.
        """
        wanted = {TopicPartition(*each): offset for each, offset in offsets.items()}
        if not wanted:
            raise ConfigError("there is no offset to set")
        await self._check_writable(f"no offset of group {group!r} is set", None)
        await self._check_idle(group)
        for tp, offset in wanted.items():
            if isinstance(offset, bool) or not isinstance(offset, int) or not 0 <= offset < 1 << 63:
                raise ConfigError(f"{offset!r} is no offset", topic=tp.topic, partition=tp.partition)
        await self._check_partitions_exist(wanted)
        if not self.is_forced:
            await self._check_within_logs(wanted)
        before = await reading.group_offsets(self.zk, group, topics=sorted({tp.topic for tp in wanted}))
        await self._check_idle(group)
        for tp, offset in sorted(wanted.items()):
            await self._set(paths.offset(group, tp.topic, tp.partition), Offset(offset).encode())
        await self._check_idle(group, "a member came while offsets were set, and may have begun at the old ones")
        return {tp: before.get(tp) for tp in wanted}

    async def _set(self, path: str, data: bytes) -> None:
        try:
            await self.zk.write(path, data)
        except NoNodeError:
            try:
                await self.zk.create(path, data, make_parents=True)
            except NodeExistsError:
                await self.zk.write(path, data)

    async def delete_group(self, group: str) -> None:
        """Delete all that ZooKeeper has of a group, while none of its members is alive.

        The owners go first and the members' place last: who comes meanwhile keeps every node, and is told of.
        """
        await self._check_writable(f"group {group!r} is not deleted", None)
        await self._check_known(group)
        await self._check_idle(group)
        root, ids = paths.consumer_group(group), paths.consumer_ids(group)
        below = [f"{root}/{name}" for name in await reading.children(self.zk, root)]
        for path in sorted(below, key=lambda path: path != paths.group_owners(group)):
            if path != ids:
                await self._delete_all(path)
        await self._delete(ids)
        await self._delete(root)

    async def delete_group_offsets(self, group: str, topic: str) -> None:
        """Delete the offsets that a group has of one topic, while none of its members is alive."""
        await self._check_writable(f"no offset of group {group!r} is deleted", None)
        await self._check_known(group)
        await self._check_idle(group)
        if await self.zk.exists(paths.offsets(group, topic)) is None:
            raise AdminRefusedError(f"group {group!r} has no offsets of {topic!r}", path=paths.offsets(group, topic))
        await self._delete_all(paths.offsets(group, topic))

    async def _delete_all(self, path: str) -> None:
        stat = await self.zk.exists(path)
        if stat is not None and stat.ephemeral_owner:
            raise AdminRefusedError(
                "a member of the group is alive, this node is its own: it is left, what was deleted before it is not "
                "brought back; stop the member first",
                path=path,
            )
        for name in await reading.children(self.zk, path):
            await self._delete_all(f"{path}/{name}")
        await self._delete(path)

    async def _delete(self, path: str) -> None:
        try:
            await self.zk.delete(path)
        except NoNodeError:
            return
        except NotEmptyError:
            raise AdminRefusedError(
                "a member of the group came, or somebody else wrote below the node, while it was deleted: what came is "
                "left; a member that came may begin where auto.offset.reset says",
                path=path,
            ) from None

    async def export_offsets(self, groups: Iterable[str] | None = None) -> str:
        """The offsets of these groups, or all, a line each, as Kafka's ExportZkOffsets writes them."""
        names = await reading.group_names(self.zk) if groups is None else list(groups)
        lines: list[str] = []
        for name in names:
            await self._check_known(name)
            lines += offset_lines(name, await reading.group_offsets(self.zk, name))
        return "".join(f"{line}\n" for line in lines)

    async def import_offsets(self, text: str) -> dict[str, dict[TopicPartition, int | None]]:
        """Set the offsets of lines that were exported; what was there before, by group.  All is checked first."""
        wanted = parse_offset_lines(text)
        for group in wanted:
            await self._check_idle(group)
        return {group: await self.reset_group_offsets(group, offsets) for group, offsets in wanted.items()}

    # --- refusals ---------------------------------------------------------------------------------------------------

    async def _check_known(self, group: str) -> None:
        if await self.zk.exists(paths.consumer_group(group)) is None:
            raise AdminRefusedError(f"ZooKeeper has no group {group!r}", path=paths.consumer_group(group))

    async def _check_idle(self, group: str, what: str = "it would not heed what is changed, and overwrite it") -> None:
        """Never lifted, not by force either."""
        members = await reading.children(self.zk, paths.consumer_ids(group))
        if members:
            others = f" and {len(members) - 1} more" if len(members) > 1 else ""
            raise AdminRefusedError(
                f"group {group!r} has a member that is alive, {members[0]}{others}: {what}; stop it first",
                path=paths.consumer_ids(group),
            )

    async def _check_partitions_exist(self, partitions: Iterable[TopicPartition]) -> None:
        for tp in partitions:
            topic = await reading.node(self.zk, Topic, paths.topic(tp.topic))
            if (topic is None or tp.partition not in topic.partitions) and not self.is_forced:
                raise AdminRefusedError(
                    f"topic {tp.topic!r} has no partition {tp.partition}"
                    if topic
                    else f"there is no topic {tp.topic!r}",
                    path=paths.topic(tp.topic),
                )

    async def _check_within_logs(self, offsets: Mapping[TopicPartition, int]) -> None:
        first, end = await self._log_ends(list(offsets))
        for tp, offset in sorted(offsets.items()):
            if not first[tp] <= offset <= end[tp]:
                raise AdminRefusedError(
                    f"offset {offset} is outside of the log of partition {tp.partition} of topic {tp.topic!r}, which "
                    f"has {first[tp]} to {end[tp]}: members would begin where auto.offset.reset says",
                    path=paths.topic(tp.topic),
                )

    async def _log_ends(
        self, partitions: Sequence[TopicPartition]
    ) -> tuple[Mapping[TopicPartition, int], Mapping[TopicPartition, int]]:
        protocol = self._client_config.security.security_protocol
        servers = bootstrap_servers(await reading.brokers(self.zk), protocol)
        if not servers:
            raise AdminRefusedError("no broker can be asked how far its log goes", path=paths.BROKER_IDS)
        settings = {**client_settings(self._client_config), "bootstrap_servers": servers}
        try:
            async with Consumer(**settings) as consumer:
                first = await consumer.beginning_offsets(partitions)
                return first, await consumer.end_offsets(partitions)
        except KafkaError as error:
            raise AdminRefusedError(
                f"the brokers did not tell how far their logs go: {error}", path=paths.BROKER_IDS
            ) from error


def offset_lines(group: str, offsets: Offsets) -> list[str]:
    """``/consumers/GROUP/offsets/TOPIC/PARTITION:OFFSET`` for each."""
    return [f"{paths.offset(group, topic, number)}:{offset}" for (topic, number), offset in sorted(offsets.items())]


def parse_offset_lines(text: str) -> dict[str, dict[TopicPartition, int]]:
    """By group.  The old form ``BROKER-PARTITION`` is read too.  ConfigError for any other line, and a double one."""
    found: dict[str, dict[TopicPartition, int]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        match = _LINE.fullmatch(line.strip())
        if not match:
            raise ConfigError(
                f"line {number} is not /consumers/GROUP/offsets/TOPIC/PARTITION:OFFSET: {line.strip():.100}"
            )
        group, topic, partition, offset = match.groups()
        offsets = found.setdefault(group, {})
        tp = TopicPartition(topic, int(partition))
        if tp in offsets:
            raise ConfigError(f"line {number}: partition {partition} of {topic!r} comes twice for group {group!r}")
        offsets[tp] = int(offset)
    return found
