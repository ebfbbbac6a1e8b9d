"""confluent-kafka: ``produce``, ``produce_batch``; ``consume``, ``poll``; and its asyncio classes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import anyio
import confluent_kafka
from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks.jobs import (
    ACKS,
    BATCH_BYTES,
    BUFFER_BYTES,
    FETCH_BYTES,
    LINGER_MS,
    PARTITION_FETCH_BYTES,
    UNACKNOWLEDGED,
    Measured,
    Missing,
    Stopwatch,
    Task,
)

VERSION = f"{confluent_kafka.__version__} with librdkafka {confluent_kafka.libversion()[0]}"
SETTINGS = (
    f"acks={ACKS} linger.ms={LINGER_MS} batch.size={BATCH_BYTES} batch.num.messages={UNACKNOWLEDGED} "
    f"queue.buffering.max.messages={UNACKNOWLEDGED} delivery.report.only.error=true, no callback; "
    f"max.partition.fetch.bytes={PARTITION_FETCH_BYTES} fetch.max.bytes={FETCH_BYTES} "
    f"queued.min.messages={UNACKNOWLEDGED} queued.max.messages.kbytes={BUFFER_BYTES // 1024}, "
    "check.crcs=false (its default)"
)
MEANINGS = {
    "consume": "consume(1000), for message in messages, 4 fields",
    "consume_values": "consume(1000), for message in messages, the value",
    "poll": "poll() for each, 4 fields",
    "aio_consume": "AIOConsumer: await consume(1000), 4 fields",
    "produce": "produce(), poll() where it is full, flush()",
    "produce_batch": "produce_batch() of 10,000, flush()",
    "aio_produce": "AIOProducer: await produce(), await gather() of what it returned",
    "send_one": "linger.ms=0, produce() and poll() until it is delivered",
    "aio_send_one": "AIOProducer(batch_size=1), linger.ms=0: await produce(), await poll() until it is delivered",
    "end_to_end": "linger.ms=0, produce() in a thread, poll() for each",
}
MESSAGES = 1000
AT_ONCE = 10_000


def security(task: Task) -> dict[str, Any]:
    return {"security.protocol": "ssl", "ssl.ca.location": task.ca_file} if task.ca_file else {}


def producer_settings(task: Task) -> dict[str, Any]:
    return {
        "bootstrap.servers": task.bootstrap,
        "acks": ACKS,
        "linger.ms": LINGER_MS,
        "batch.size": task.profile.batch_bytes,
        "batch.num.messages": UNACKNOWLEDGED,
        "queue.buffering.max.messages": UNACKNOWLEDGED,
        "compression.type": task.profile.codec,
        **security(task),
    }


def produce_all(sender: Producer, topic: str, values: list[bytes], keys: list[bytes] | None) -> None:
    put = sender.produce
    for value, key in zip(values, keys or [None] * len(values), strict=True):
        try:
            put(topic, value, key)
        except BufferError:
            sender.poll(0.1)
            put(topic, value, key)
    sender.flush()


def produce_batches(sender: Producer, topic: str, values: list[bytes], keys: list[bytes] | None) -> None:
    for start in range(0, len(values), AT_ONCE):
        part = values[start : start + AT_ONCE]
        if keys is None:
            messages = [{"value": value} for value in part]
        else:
            messages = [{"value": v, "key": k} for v, k in zip(part, keys[start : start + AT_ONCE], strict=True)]
        while sender.produce_batch(topic, messages) < len(messages):
            messages = [message for message in messages if "_error" in message]
            for message in messages:
                del message["_error"]
            sender.poll(0.1)
    sender.flush()


def produce(task: Task, send: Callable[[Producer, str, list[bytes], list[bytes] | None], None]) -> Measured:
    values, keys = task.produced(task.records)
    sender = Producer({**producer_settings(task), "delivery.report.only.error": True})
    send(sender, task.topic, values[: task.warm_up], keys and keys[: task.warm_up])
    size = sum(map(len, values))
    watch = Stopwatch()
    send(sender, task.topic, values, keys)
    return watch.stop(len(values), size)


async def aio_produce_all(sender: Any, topic: str, values: list[bytes], keys: list[bytes] | None) -> None:
    waiting = []
    for value, key in zip(values, keys or [None] * len(values), strict=True):
        waiting.append(await sender.produce(topic, value, key))
    await sender.flush()
    await asyncio.gather(*waiting)


async def aio_produce(task: Task) -> Measured:
    from confluent_kafka.aio import AIOProducer

    values, keys = task.produced(task.records)
    async with AIOProducer(producer_settings(task), batch_size=MESSAGES) as sender:
        await aio_produce_all(sender, task.topic, values[: task.warm_up], keys and keys[: task.warm_up])
        size = sum(map(len, values))
        watch = Stopwatch()
        await aio_produce_all(sender, task.topic, values, keys)
        return watch.stop(len(values), size)


def consumer_settings(task: Task) -> dict[str, Any]:
    return {
        "bootstrap.servers": task.bootstrap,
        "group.id": "benchmark",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "max.partition.fetch.bytes": PARTITION_FETCH_BYTES,
        "fetch.max.bytes": FETCH_BYTES,
        "queued.min.messages": UNACKNOWLEDGED,
        "queued.max.messages.kbytes": BUFFER_BYTES // 1024,
        **security(task),
    }


# No more is asked for than there is: for what does not come consume() waits its whole second.


def read_many(consumer: Consumer, records: int) -> tuple[int, int]:
    count = size = 0
    while count < records:
        messages = consumer.consume(min(MESSAGES, records - count), 1.0)
        for message in messages:
            message.offset()
            message.timestamp()
            message.key()
            size += len(message.value())
        count += len(messages)
    return count, size


def read_values(consumer: Consumer, records: int) -> tuple[int, int]:
    count = size = 0
    while count < records:
        messages = consumer.consume(min(MESSAGES, records - count), 1.0)
        for message in messages:
            size += len(message.value())
        count += len(messages)
    return count, size


def read_each(consumer: Consumer, records: int) -> tuple[int, int]:
    count = size = 0
    while count < records:
        message = consumer.poll(1.0)
        if message is not None:
            message.offset()
            message.timestamp()
            message.key()
            size += len(message.value())
            count += 1
    return count, size


Reading = Callable[[Consumer, int], "tuple[int, int]"]


def consume_topic(task: Task, topic: str, records: int, read: Reading) -> Measured:
    consumer = Consumer(consumer_settings(task))
    consumer.list_topics(topic, timeout=10)  # so that it is connected, as the others are when their clocks begin
    watch = Stopwatch()
    consumer.assign([TopicPartition(topic, index, 0) for index in task.partitions(topic)])
    count, size = read(consumer, records)
    measured = watch.stop(count, size)
    consumer.close()
    return measured


def consume(task: Task, read: Reading) -> Measured:
    consume_topic(task, task.warm_topic, task.warm_topic_records, read)
    return consume_topic(task, task.topic, task.records, read)


async def aio_consume_topic(task: Task, topic: str, records: int) -> Measured:
    from confluent_kafka.aio import AIOConsumer

    consumer = AIOConsumer(consumer_settings(task))
    await consumer.list_topics(topic, timeout=10)  # as above
    watch, count, size = Stopwatch(), 0, 0
    await consumer.assign([TopicPartition(topic, index, 0) for index in task.partitions(topic)])
    while count < records:
        messages = await consumer.consume(min(MESSAGES, records - count), 1.0)
        for message in messages:
            message.offset()
            message.timestamp()
            message.key()
            size += len(message.value())
        count += len(messages)
    measured = watch.stop(count, size)
    await consumer.close()
    return measured


async def aio_consume(task: Task) -> Measured:
    await aio_consume_topic(task, task.warm_topic, task.warm_topic_records)
    return await aio_consume_topic(task, task.topic, task.records)


READINGS: dict[str, Reading] = {"consume": read_many, "consume_values": read_values, "poll": read_each}
SENDINGS = {"produce": produce_all, "produce_batch": produce_batches}


def run(task: Task) -> Measured:
    if task.way in READINGS:
        return consume(task, READINGS[task.way])
    if task.way in SENDINGS:
        if task.way == "produce_batch" and not hasattr(Producer, "produce_batch"):
            raise Missing("Producer.produce_batch")
        return produce(task, SENDINGS[task.way])
    try:
        import confluent_kafka.aio  # noqa: F401
    except ImportError:
        raise Missing("confluent_kafka.aio") from None
    return anyio.run(aio_consume if task.way == "aio_consume" else aio_produce, task)
