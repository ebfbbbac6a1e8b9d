"""aiokafka: ``send``, ``create_batch``/``send_batch``, ``send_and_wait``; ``getmany``, ``async for``."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from typing import Any

import anyio
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.helpers import create_ssl_context
from aiokafka.record.default_records import DefaultRecordBatch

from benchmarks.jobs import (
    ACKS,
    BATCH_BYTES,
    FETCH_BYTES,
    LINGER_MS,
    PARTITION_FETCH_BYTES,
    Measured,
    Missing,
    Stopwatch,
    Task,
)

VERSION = version("aiokafka")
EXTENSIONS = "C extensions" if DefaultRecordBatch.__module__.startswith("aiokafka.record._crecords") else "pure Python"
SETTINGS = (
    f"{EXTENSIONS}; acks={ACKS} linger_ms={LINGER_MS} max_batch_size={BATCH_BYTES}; "
    f"max_partition_fetch_bytes={PARTITION_FETCH_BYTES} fetch_max_bytes={FETCH_BYTES} getmany(max_records=None)"
)
MEANINGS = {
    "getmany": "await getmany(), for record in records, 4 fields",
    "getmany_values": "await getmany(), for record in records, the value",
    "iterate": "async for record in consumer, 4 fields",
    "send": "await send(), await flush()",
    "send_batch": "create_batch(), append(), await send_batch(), five under way",
    "send_and_wait": "100 tasks, each: await send_and_wait()",
    "send_one": "linger_ms=0, await send_and_wait() one after the other",
    "end_to_end": "linger_ms=0, await send(), async for record in a consumer",
}
SENDERS = 100
IN_FLIGHT = 5


def security(task: Task) -> dict[str, Any]:
    return {"security_protocol": "SSL", "ssl_context": create_ssl_context(cafile=task.ca_file)} if task.ca_file else {}


def producer(task: Task) -> AIOKafkaProducer:
    codec = task.profile.codec
    return AIOKafkaProducer(
        bootstrap_servers=task.bootstrap,
        acks=ACKS,
        linger_ms=LINGER_MS,
        max_batch_size=task.profile.batch_bytes,
        compression_type=None if codec == "none" else codec,
        **security(task),
    )


async def send_all(task: Task, sender: AIOKafkaProducer, values: list[bytes], keys: list[bytes] | None) -> None:
    send, topic = sender.send, task.topic
    if keys is None:
        for value in values:
            await send(topic, value)
    else:
        for value, key in zip(values, keys, strict=True):
            await send(topic, value, key)
    await sender.flush()


async def send_batches(task: Task, sender: AIOKafkaProducer, values: list[bytes], keys: list[bytes] | None) -> None:
    """The partitions take turns; a few batches under way, as aiokafka's own example leaves them to the event loop."""
    waiting: list[asyncio.Future[object]] = []
    number, batch, topic = 0, sender.create_batch(), task.topic
    for value, key in zip(values, keys or [None] * len(values), strict=True):
        if batch.append(key=key, value=value, timestamp=None) is None:
            waiting.append(await sender.send_batch(batch, topic, partition=number % task.profile.partitions))
            number += 1
            if len(waiting) == IN_FLIGHT:
                await waiting.pop(0)
            batch = sender.create_batch()
            batch.append(key=key, value=value, timestamp=None)
    waiting.append(await sender.send_batch(batch, topic, partition=number % task.profile.partitions))
    await asyncio.gather(*waiting)


async def send_each(task: Task, sender: AIOKafkaProducer, values: list[bytes], keys: list[bytes] | None) -> None:
    pairs = iter(zip(values, keys or [None] * len(values), strict=True))

    async def send_next() -> None:
        for value, key in pairs:
            await sender.send_and_wait(task.topic, value, key)

    await asyncio.gather(*(send_next() for _ in range(SENDERS)))


Sending = Callable[[Task, AIOKafkaProducer, "list[bytes]", "list[bytes] | None"], Awaitable[None]]


async def produce(task: Task, send: Sending) -> Measured:
    values, keys = task.produced(task.records)
    async with producer(task) as sender:
        await send(task, sender, values[: task.warm_up], keys and keys[: task.warm_up])
        size = sum(map(len, values))
        watch = Stopwatch()
        await send(task, sender, values, keys)
        return watch.stop(len(values), size)


async def read_many(consumer: AIOKafkaConsumer, records: int) -> tuple[int, int]:
    count = size = 0
    while count < records:
        for taken in (await consumer.getmany(timeout_ms=1000)).values():
            for record in taken:
                record.offset  # noqa: B018
                record.timestamp  # noqa: B018
                record.key  # noqa: B018
                size += len(record.value)
            count += len(taken)
    return count, size


async def read_values(consumer: AIOKafkaConsumer, records: int) -> tuple[int, int]:
    count = size = 0
    while count < records:
        for taken in (await consumer.getmany(timeout_ms=1000)).values():
            for record in taken:
                size += len(record.value)
            count += len(taken)
    return count, size


async def read_each(consumer: AIOKafkaConsumer, records: int) -> tuple[int, int]:
    count = size = 0
    async for record in consumer:
        record.offset  # noqa: B018
        record.timestamp  # noqa: B018
        record.key  # noqa: B018
        size += len(record.value)
        count += 1
        if count == records:
            break
    return count, size


Reading = Callable[[AIOKafkaConsumer, int], Awaitable["tuple[int, int]"]]


async def consume_topic(task: Task, topic: str, records: int, read: Reading) -> Measured:
    partitions = [TopicPartition(topic, index) for index in task.partitions(topic)]
    async with AIOKafkaConsumer(
        bootstrap_servers=task.bootstrap,
        max_partition_fetch_bytes=PARTITION_FETCH_BYTES,
        fetch_max_bytes=FETCH_BYTES,
        **security(task),
    ) as consumer:
        watch = Stopwatch()
        consumer.assign(partitions)
        for partition in partitions:
            consumer.seek(partition, 0)
        count, size = await read(consumer, records)
        return watch.stop(count, size)


async def consume(task: Task, read: Reading) -> Measured:
    await consume_topic(task, task.warm_topic, task.warm_topic_records, read)
    return await consume_topic(task, task.topic, task.records, read)


READINGS: dict[str, Reading] = {"getmany": read_many, "getmany_values": read_values, "iterate": read_each}
SENDINGS: dict[str, Sending] = {"send": send_all, "send_batch": send_batches, "send_and_wait": send_each}


async def turn(task: Task) -> Measured:
    if task.way in READINGS:
        return await consume(task, READINGS[task.way])
    if task.way in SENDINGS:
        return await produce(task, SENDINGS[task.way])
    raise Missing(f"the way {task.way}")


def run(task: Task) -> Measured:
    return anyio.run(turn, task, backend_options={"use_uvloop": task.loop == "uvloop"})
