"""Where the ingest of a source begins, when it has no checkpoint yet."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import fields

from pykafka08 import Admin, TopicPartition
from pykafka08.errors import ConfigError
from pykafka08.spark.options import read_options
from pykafka08.spark.pipeline.settings import Source
from pykafka08.zookeeper import reading
from pykafka08.zookeeper.bridge import ZooKeeper

__all__ = ["admin_of", "offsets_document", "start_options"]

GROUP = "group:"
EARLIEST = -2
"""As Spark's offsets JSON has it."""


def start_options(source: Source) -> dict[str, str]:
    """Options of the data source for `starting`.

    Raises:
        ConfigError: none of the forms, or the group has no offset of these topics.
    """
    starting = source.starting
    if starting.startswith(GROUP):
        return {"startingOffsets": asyncio.run(_of_group(source, starting.removeprefix(GROUP)))}
    if starting.isdigit():
        return {"startingTimestamp": starting}
    if starting in ("earliest", "latest") or starting.startswith("{"):
        return {"startingOffsets": starting}
    raise ConfigError(
        f"sources.{source.name}.starting: {starting!r} is neither earliest, latest, a time in ms, offsets as JSON "
        "nor group:NAME"
    )


def offsets_document(committed: Mapping[TopicPartition, int], partitions: Iterable[TopicPartition]) -> str:
    """Spark's offsets JSON: every partition, at its committed offset, without one at the earliest."""
    offsets: dict[str, dict[str, int]] = {}
    for tp in sorted(partitions):
        offsets.setdefault(tp.topic, {})[str(tp.partition)] = committed.get(tp, EARLIEST)
    return json.dumps(offsets, separators=(",", ":"), sort_keys=True)


def admin_of(source: Source) -> Admin:
    """A client of the source's cluster, with the same settings as the data source."""
    options = {"subscribe": ",".join(source.topics) or "x", **source.options}
    options["kafka.bootstrap.servers"] = source.bootstrap_servers
    client = read_options(options, streaming=True).settings.client
    return Admin(**{one.name: getattr(client, one.name) for one in fields(client)})


async def _of_group(source: Source, group: str) -> str:
    if not source.topics:
        raise ConfigError(f"sources.{source.name}.starting: the offsets of a group are taken for topics, not a pattern")
    async with AsyncExitStack() as stack:
        admin = await stack.enter_async_context(admin_of(source))
        described = await admin.describe_topics(source.topics)
        partitions = [TopicPartition(name, number) for name, topic in described.items() for number in topic.partitions]
        if source.zookeeper:
            zk = await stack.enter_async_context(ZooKeeper(source.zookeeper))
            known = await reading.group(zk, group, lambda error: None)
            committed = dict(known.offsets) if known is not None else {}
        else:
            found = await admin.list_group_offsets(group, partitions)
            committed = {tp: each.offset for tp, each in found.items()}
    if not any(tp in committed for tp in partitions):
        raise ConfigError(
            f"sources.{source.name}.starting: group {group!r} has no offset of {', '.join(source.topics)}"
        )
    return offsets_document(committed, partitions)
