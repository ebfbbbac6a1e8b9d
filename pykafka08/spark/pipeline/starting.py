"""Where the ingest of a source begins, and what its topics hold: asked of the cluster before Spark is.

The start is resolved once and kept in ``starts/SOURCE.json``: a first batch that is replayed begins at the same offsets
though its topics have grown or lost records meanwhile, and ``verify`` knows where the rows must begin.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from pykafka08 import Admin, TopicPartition
from pykafka08.cluster.client import Client
from pykafka08.config import client_settings
from pykafka08.errors import ConfigError, NoBrokersError, UnknownTopicError
from pykafka08.spark.locating import OffsetsMismatchError, find_partitions, offsets_of_limit
from pykafka08.spark.offsets_json import EARLIEST, LATEST, read_offsets, write_offsets
from pykafka08.spark.options import Limit, ReadOptions, read_options
from pykafka08.spark.pipeline.checkpoints import offset_text
from pykafka08.spark.pipeline.refusals import REFUSALS, refusal_at
from pykafka08.spark.pipeline.settings import Pipeline, Source
from pykafka08.spark.pipeline.stores import Folder
from pykafka08.spark.pipeline.tables.model import State
from pykafka08.spark.pipeline.tables.table import Table
from pykafka08.zookeeper import reading
from pykafka08.zookeeper.bridge import ZooKeeper

__all__ = [
    "Offsets",
    "check_options",
    "committed_offsets",
    "extent",
    "find",
    "kafka_options",
    "opened",
    "read_options_of",
    "start_of",
    "start_options",
    "started",
]

GROUP = "group:"
Offsets = dict[TopicPartition, int]


def kafka_options(source: Source) -> dict[str, str]:
    """What the data source is told, but for where it starts."""
    options = {"kafka.bootstrap.servers": source.bootstrap_servers, "includeHeaders": "true"}
    options.update({"subscribePattern": source.pattern} if source.pattern else {"subscribe": ",".join(source.topics)})
    if source.max_offsets_per_trigger:
        options["maxOffsetsPerTrigger"] = str(source.max_offsets_per_trigger)
    if source.target_records_per_task:
        options["targetRecordsPerTask"] = str(source.target_records_per_task)
    return {**options, **source.options}


def read_options_of(source: Source, start: Mapping[str, str] | None = None) -> ReadOptions:
    """What the data source makes of its options, without asking anybody; ConfigError names the source."""
    try:
        return read_options({**kafka_options(source), **(start or {})}, streaming=True)
    except ConfigError as error:
        where = "starting" if start else "options" if source.options else "pattern" if source.pattern else "topics"
        raise ConfigError(f"sources.{source.name}.{where}: {error}") from error


def start_options(pipeline: Pipeline, source: Source) -> dict[str, str]:
    """The option that says where the stream begins; the cluster is asked the first time only.

    Raises:
        ConfigError: `starting` has none of the forms, or the group has no offset of these topics.
    """
    path = _path(pipeline, source)
    if not path.exists():
        path.write_once(write_offsets(start_of(source)))  # that of another run may be first, and counts then
    return {"startingOffsets": path.read_text()}


def started(pipeline: Pipeline, source: Source) -> Offsets | None:
    """Where the ingest began; None if it never did."""
    path = _path(pipeline, source)
    return read_offsets(path.read_text()) if path.exists() else None


def committed_offsets(pipeline: Pipeline, source: Source, bronze: State | None = None) -> Offsets | None:
    """The offset behind the last one that bronze holds, by the checkpoint; None if there is no batch yet.

    ``bronze``: a version of the table; by default the newest.
    """
    query = f"ingest-{source.name}"
    batch = Table(pipeline.bronze(source.name)).newest(query) if bronze is None else bronze.newest.get(query, -1)
    return None if batch < 0 else read_offsets(offset_text(pipeline.checkpoint(query), batch))


def start_of(source: Source) -> Offsets:
    """The offsets that `starting` means now."""
    if source.starting.startswith(GROUP):
        return asyncio.run(_of_group(source, source.starting.removeprefix(GROUP)))
    return asyncio.run(_offsets(source, _start(source)))


def check_options(source: Source) -> None:
    """Raises ConfigError for an option or a start that means nothing; nobody is asked."""
    read_options_of(source)
    if not source.starting.startswith(GROUP):
        read_options_of(source, _start(source))


def _start(source: Source) -> dict[str, str]:
    starting = source.starting
    if starting.isdigit():
        return {"startingTimestamp": starting}
    if starting.startswith("{") or starting in ("earliest", "latest"):
        return {"startingOffsets": starting}
    raise ConfigError(
        f"sources.{source.name}.starting: {starting!r} is neither earliest, latest, a time in ms, offsets as JSON "
        "nor group:NAME"
    )


def extent(source: Source) -> tuple[Offsets, Offsets]:
    """The first and the end offset of each partition, now."""
    return asyncio.run(_extent(source))


def _path(pipeline: Pipeline, source: Source) -> Folder:
    return pipeline.root / "starts" / f"{source.name}.json"


@asynccontextmanager
async def opened(source: Source, options: ReadOptions) -> AsyncIterator[Client]:
    """A client of the source's cluster.  Errors raised in the block name the key or the source."""
    where = f"sources.{source.name}"
    try:
        async with Client(options.settings.client, allow_auto_topic_creation=False) as client:
            yield client
    except UnknownTopicError as error:
        raise ConfigError(f"{where}.topics: {error.message}") from error
    except OffsetsMismatchError as error:
        raise ConfigError(f"{where}.starting: {error}") from error
    except NoBrokersError as error:
        raise NoBrokersError(f"{where}.bootstrap_servers: {error.message}", error.causes) from error
    except REFUSALS as error:
        raise refusal_at(where, error) from error


async def find(client: Client, options: ReadOptions) -> Collection[TopicPartition]:
    """The partitions that the options choose."""
    retries, interval_ms = options.num_retries, options.retry_interval_ms
    found = await find_partitions(client, options.selection, retries=retries, interval_ms=interval_ms)
    return found.partitions


async def _offsets(source: Source, start: Mapping[str, str]) -> Offsets:
    options = read_options_of(source, start)
    async with opened(source, options) as client:
        partitions = await find(client, options)
        return await offsets_of_limit(client, partitions, options.starting, options, side="starting")


async def _extent(source: Source) -> tuple[Offsets, Offsets]:
    options = read_options_of(source)
    async with opened(source, options) as client:
        partitions = await find(client, options)
        first = await offsets_of_limit(client, partitions, Limit(point=EARLIEST), options, side="starting")
        return first, await offsets_of_limit(client, partitions, Limit(point=LATEST), options, side="ending")


async def _of_group(source: Source, group: str) -> Offsets:
    """Partitions without an offset begin at their first one."""
    first, _ = await _extent(source)
    async with AsyncExitStack() as stack:
        if source.zookeeper:
            zk = await stack.enter_async_context(ZooKeeper(source.zookeeper))
            known = await reading.group(zk, group, lambda error: None)
            committed = dict(known.offsets) if known is not None else {}
        else:
            client = read_options_of(source).settings.client
            admin = await stack.enter_async_context(Admin(**client_settings(client)))
            found = await admin.list_group_offsets(group, first)
            committed = {tp: each.offset for tp, each in found.items()}
    _check_any(source, group, committed, first)
    return {tp: committed.get(tp, at) for tp, at in first.items()}


def _check_any(
    source: Source, group: str, committed: Mapping[TopicPartition, int], wanted: Iterable[TopicPartition]
) -> None:
    if not any(tp in committed for tp in wanted):
        raise ConfigError(f"sources.{source.name}.starting: group {group!r} has no offset of what is read")
