"""pykafka08: ``enqueue`` and ``send_many``; ``async for record`` and ``batches()``."""

from __future__ import annotations

from collections.abc import Callable

import anyio

from benchmarks.jobs import ACKS, BATCH_BYTES, LINGER_MS, PARTITION_FETCH_BYTES, Measured, Stopwatch, Task, values_of
from pykafka08 import BufferFullError, Consumer, Producer, TopicPartition, __version__

VERSION = __version__
SETTINGS = (
    f"acks={ACKS} linger_ms={LINGER_MS} batch_size={BATCH_BYTES} max_partition_fetch_bytes={PARTITION_FETCH_BYTES}"
)
WAYS = {
    "produce": "producer.enqueue(), await flush()",
    "produce-batch": "await producer.send_many()",
    "consume": "async for record in consumer",
    "consume-batch": "async for batch in consumer.batches(), for record in batch",
}


def producer(task: Task) -> Producer:
    return Producer(
        bootstrap_servers=task.bootstrap,
        acks=ACKS,
        linger_ms=LINGER_MS,
        batch_size=BATCH_BYTES,
        compression_type="none",
    )


async def produce(task: Task) -> Measured:
    values, topic = values_of(task.records, task.size), task.topic
    async with producer(task) as sender:
        await sender.send_many(topic, values[: task.warm_up])
        watch, enqueue = Stopwatch(), sender.enqueue
        for value in values:
            try:
                enqueue(topic, value)
            except BufferFullError:
                await sender.ready()
                enqueue(topic, value)
        await sender.flush()
        return watch.stop(len(values), task.size * len(values))


async def produce_batch(task: Task) -> Measured:
    values = values_of(task.records, task.size)
    async with producer(task) as sender:
        await sender.send_many(task.topic, values[: task.warm_up])
        watch = Stopwatch()
        await sender.send_many(task.topic, values)
        return watch.stop(len(values), task.size * len(values))


async def consume(task: Task) -> Measured:
    partition = TopicPartition(task.topic, 0)
    async with Consumer(bootstrap_servers=task.bootstrap, max_partition_fetch_bytes=PARTITION_FETCH_BYTES) as consumer:
        watch, count, size = Stopwatch(), 0, 0
        consumer.assign([partition])
        await consumer.seek(partition, 0)
        async for record in consumer:
            count += 1
            size += len(record.value or b"")
            if count == task.records:
                break
        return watch.stop(count, size)


async def consume_batch(task: Task) -> Measured:
    partition = TopicPartition(task.topic, 0)
    async with Consumer(bootstrap_servers=task.bootstrap, max_partition_fetch_bytes=PARTITION_FETCH_BYTES) as consumer:
        watch, count, size = Stopwatch(), 0, 0
        consumer.assign([partition])
        await consumer.seek(partition, 0)
        async for batch in consumer.batches():
            for record in batch:
                count += 1
                size += len(record.value or b"")
            if count >= task.records:
                break
        return watch.stop(count, size)


def run(job: str, task: Task) -> Measured:
    jobs: dict[str, Callable[[Task], object]] = {
        "produce": produce,
        "produce-batch": produce_batch,
        "consume": consume,
        "consume-batch": consume_batch,
    }
    return anyio.run(jobs[job], task)  # type: ignore[arg-type]
