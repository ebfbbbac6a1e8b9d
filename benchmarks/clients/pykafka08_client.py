"""pykafka08: ``enqueue``, ``send_many``, ``send_arrow``, ``send``; ``batches()``, ``async for``, ``arrow()``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio

import pykafka08
from benchmarks.jobs import (
    ACKS,
    BATCH_BYTES,
    BUFFER_BYTES,
    FETCH_BYTES,
    LINGER_MS,
    PARTITION_FETCH_BYTES,
    Measured,
    Missing,
    Stopwatch,
    Task,
)
from pykafka08 import BufferFullError, Consumer, Producer, TopicPartition, __version__
from pykafka08.records import batch_records

VERSION = __version__
SETTINGS = (
    f"acks={ACKS} linger_ms={LINGER_MS} batch_size={BATCH_BYTES} buffer_memory={BUFFER_BYTES}; "
    f"max_partition_fetch_bytes={PARTITION_FETCH_BYTES} fetch_max_bytes={FETCH_BYTES}"
)
MEANINGS = {
    "batches": "async for batch in batches(), for record in batch, 4 fields",
    "iterate": "async for record in consumer, 4 fields",
    "values": "async for batch in batches(), batch.values()",
    "arrow": "async for table in arrow(), lengths of the value column",
    "enqueue": "enqueue(), await ready() where it is full, await flush()",
    "send_many": "await send_many(values), or send_many(values, keys)",
    "send_arrow": "await send_arrow(table)",
    "send": "100 tasks, each: await send()",
    "send_one": "linger_ms=0, await send() one after the other",
    "end_to_end": "linger_ms=0, enqueue(), async for record in a consumer",
}
SENDERS = 100
READS = ("batches", "iterate", "values", "arrow", "end_to_end")


def prepare(way: str) -> None:
    """Import what a consumer imports beside its first fetch."""
    if way in READS:
        batch_records.prepare()
    if way in ("arrow", "send_arrow"):
        import pyarrow.compute  # noqa: F401


def is_compiled() -> bool:
    return bool(getattr(pykafka08, "compiled", False))


def security(task: Task) -> dict[str, Any]:
    return {"security_protocol": "SSL", "ssl_cafile": task.ca_file} if task.ca_file else {}


def producer(task: Task) -> Producer:
    return Producer(
        bootstrap_servers=task.bootstrap,
        acks=ACKS,
        linger_ms=LINGER_MS,
        batch_size=task.profile.batch_bytes,
        buffer_memory=BUFFER_BYTES,
        compression_type=task.profile.codec,
        **security(task),
    )


async def enqueue_all(sender: Producer, topic: str, values: list[bytes], keys: list[bytes] | None) -> None:
    enqueue = sender.enqueue
    if keys is None:
        for value in values:
            try:
                enqueue(topic, value)
            except BufferFullError:
                await sender.ready()
                enqueue(topic, value)
    else:
        for value, key in zip(values, keys, strict=True):
            try:
                enqueue(topic, value, key)
            except BufferFullError:
                await sender.ready()
                enqueue(topic, value, key)
    await sender.flush()


async def send_many(sender: Producer, topic: str, values: list[bytes], keys: list[bytes] | None) -> None:
    await sender.send_many(topic, values, keys)


async def send_each(sender: Producer, topic: str, values: list[bytes], keys: list[bytes] | None) -> None:
    pairs = iter(zip(values, keys or [None] * len(values), strict=True))

    async def send_next() -> None:
        for value, key in pairs:
            await sender.send(topic, value, key)

    async with anyio.create_task_group() as senders:
        for _ in range(SENDERS):
            senders.start_soon(send_next)


Sending = Callable[[Producer, str, "list[bytes]", "list[bytes] | None"], Awaitable[None]]


async def produce(task: Task, send: Sending) -> Measured:
    values, keys = task.produced(task.records)
    async with producer(task) as sender:
        await send(sender, task.topic, values[: task.warm_up], keys and keys[: task.warm_up])
        size = sum(map(len, values))
        watch = Stopwatch()
        await send(sender, task.topic, values, keys)
        return watch.stop(len(values), size)


async def produce_arrow(task: Task) -> Measured:
    if not hasattr(Producer, "send_arrow"):
        raise Missing("Producer.send_arrow")
    import pyarrow

    # The pool again and again, as in the lists of the other ways: the table has no memory of its own for each record.
    pool, keys = task.profile.pool()
    columns = {"value": pyarrow.array(pool, pyarrow.binary())}
    if keys is not None:
        columns["key"] = pyarrow.array(keys, pyarrow.binary())
    batch = pyarrow.RecordBatch.from_pydict(columns)

    def table(count: int) -> Any:
        return pyarrow.Table.from_batches([batch] * (count // len(pool) + 1)).slice(0, count)

    values, _ = task.produced(task.records)
    warm, whole = table(task.warm_up), table(len(values))
    async with producer(task) as sender:
        await sender.send_arrow(task.topic, warm)
        size = sum(map(len, values))
        watch = Stopwatch()
        await sender.send_arrow(task.topic, whole)
        return watch.stop(len(values), size)


async def read_batches(consumer: Consumer, records: int) -> tuple[int, int]:
    count = size = 0
    async for batch in consumer.batches():
        for record in batch:
            record.offset  # noqa: B018
            record.timestamp_ms  # noqa: B018
            record.key  # noqa: B018
            size += len(record.value)  # type: ignore[arg-type]
        count += len(batch)
        if count >= records:
            break
    return count, size


async def read_each(consumer: Consumer, records: int) -> tuple[int, int]:
    count = size = 0
    async for record in consumer:
        record.offset  # noqa: B018
        record.timestamp_ms  # noqa: B018
        record.key  # noqa: B018
        size += len(record.value)  # type: ignore[arg-type]
        count += 1
        if count == records:
            break
    return count, size


async def read_values(consumer: Consumer, records: int) -> tuple[int, int]:
    count = size = 0
    async for batch in consumer.batches():
        values = batch.values()
        size += sum(map(len, values))  # type: ignore[arg-type]
        count += len(values)
        if count >= records:
            break
    return count, size


async def read_arrow(consumer: Consumer, records: int) -> tuple[int, int]:
    if not hasattr(consumer, "arrow"):
        raise Missing("Consumer.arrow")
    import pyarrow.compute

    count = size = 0
    async for table in consumer.arrow():
        size += pyarrow.compute.sum(pyarrow.compute.binary_length(table.column("value"))).as_py()
        count += table.num_rows
        if count >= records:
            break
    return count, size


Reading = Callable[[Consumer, int], Awaitable["tuple[int, int]"]]


async def consume_topic(task: Task, topic: str, records: int, read: Reading) -> Measured:
    partitions = [TopicPartition(topic, index) for index in task.partitions(topic)]
    async with Consumer(
        bootstrap_servers=task.bootstrap,
        max_partition_fetch_bytes=PARTITION_FETCH_BYTES,
        fetch_max_bytes=FETCH_BYTES,
        **security(task),
    ) as consumer:
        watch = Stopwatch()
        consumer.assign(partitions)
        for partition in partitions:
            await consumer.seek(partition, 0)
        count, size = await read(consumer, records)
        return watch.stop(count, size)


async def consume(task: Task, read: Reading) -> Measured:
    await consume_topic(task, task.warm_topic, task.warm_topic_records, read)
    return await consume_topic(task, task.topic, task.records, read)


READINGS: dict[str, Reading] = {
    "batches": read_batches,
    "iterate": read_each,
    "values": read_values,
    "arrow": read_arrow,
}
SENDINGS: dict[str, Sending] = {"enqueue": enqueue_all, "send_many": send_many, "send": send_each}


async def turn(task: Task) -> Measured:
    if task.tree is not None and not is_compiled():
        raise Missing(f"a compiled package in {task.tree}")
    if task.way in READINGS:
        return await consume(task, READINGS[task.way])
    if task.way in SENDINGS:
        return await produce(task, SENDINGS[task.way])
    if task.way == "send_arrow":
        return await produce_arrow(task)
    raise Missing(f"the way {task.way}")


def run(task: Task) -> Measured:
    return anyio.run(turn, task, backend_options={"use_uvloop": task.loop == "uvloop"})
