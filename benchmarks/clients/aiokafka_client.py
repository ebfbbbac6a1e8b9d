"""aiokafka: ``send`` and ``create_batch``/``send_batch``; ``async for`` and ``getmany``."""

from __future__ import annotations

import asyncio
from importlib.metadata import version

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from benchmarks.jobs import ACKS, BATCH_BYTES, LINGER_MS, PARTITION_FETCH_BYTES, Measured, Stopwatch, Task, values_of

VERSION = version("aiokafka")
SETTINGS = (
    f"acks={ACKS} linger_ms={LINGER_MS} max_batch_size={BATCH_BYTES} max_partition_fetch_bytes={PARTITION_FETCH_BYTES}"
)
WAYS = {
    "produce": "await producer.send(), await flush()",
    "produce-batch": "create_batch(), append(), await send_batch()",
    "consume": "async for record in consumer",
    "consume-batch": "await consumer.getmany(), for record in records",
}


def producer(task: Task) -> AIOKafkaProducer:
    return AIOKafkaProducer(
        bootstrap_servers=task.bootstrap, acks=ACKS, linger_ms=LINGER_MS, max_batch_size=BATCH_BYTES
    )


async def produce(task: Task) -> Measured:
    values, topic = values_of(task.records, task.size), task.topic
    async with producer(task) as sender:
        for value in values[: task.warm_up]:
            await sender.send(topic, value)
        await sender.flush()
        watch, send = Stopwatch(), sender.send
        for value in values:
            await send(topic, value)
        await sender.flush()
        return watch.stop(len(values), task.size * len(values))


async def send_batches(sender: AIOKafkaProducer, topic: str, values: list[bytes]) -> None:
    """Up to five batches under way, as aiokafka's own example of batches leaves them to the event loop."""
    waiting = []
    batch = sender.create_batch()
    for value in values:
        if batch.append(key=None, value=value, timestamp=None) is None:
            waiting.append(await sender.send_batch(batch, topic, partition=0))
            batch = sender.create_batch()
            batch.append(key=None, value=value, timestamp=None)
    waiting.append(await sender.send_batch(batch, topic, partition=0))
    await asyncio.gather(*waiting)


async def produce_batch(task: Task) -> Measured:
    values = values_of(task.records, task.size)
    async with producer(task) as sender:
        await send_batches(sender, task.topic, values[: task.warm_up])
        watch = Stopwatch()
        await send_batches(sender, task.topic, values)
        return watch.stop(len(values), task.size * len(values))


def consumer_of(task: Task) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(bootstrap_servers=task.bootstrap, max_partition_fetch_bytes=PARTITION_FETCH_BYTES)


async def consume(task: Task) -> Measured:
    partition = TopicPartition(task.topic, 0)
    async with consumer_of(task) as consumer:
        watch, count, size = Stopwatch(), 0, 0
        consumer.assign([partition])
        consumer.seek(partition, 0)
        async for record in consumer:
            count += 1
            size += len(record.value)
            if count == task.records:
                break
        return watch.stop(count, size)


async def consume_batch(task: Task) -> Measured:
    partition = TopicPartition(task.topic, 0)
    async with consumer_of(task) as consumer:
        watch, count, size = Stopwatch(), 0, 0
        consumer.assign([partition])
        consumer.seek(partition, 0)
        while count < task.records:
            for records in (await consumer.getmany(timeout_ms=1000)).values():
                for record in records:
                    count += 1
                    size += len(record.value)
        return watch.stop(count, size)


def run(job: str, task: Task) -> Measured:
    jobs = {"produce": produce, "produce-batch": produce_batch, "consume": consume, "consume-batch": consume_batch}
    return asyncio.run(jobs[job](task))
