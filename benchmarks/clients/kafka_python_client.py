"""kafka-python: ``send``; ``poll`` and iteration.  It has no call that takes many records to produce."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

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

VERSION = version("kafka-python")
MAX_POLL_RECORDS = 10_000
SETTINGS = (
    f"acks={ACKS} linger_ms={LINGER_MS} batch_size={BATCH_BYTES} "
    f"enable_idempotence=False; max_partition_fetch_bytes={PARTITION_FETCH_BYTES} fetch_max_bytes={FETCH_BYTES} "
    f"max_records={MAX_POLL_RECORDS}"
)
MEANINGS = {
    "poll": f"poll(max_records={MAX_POLL_RECORDS}), for record in records, 4 fields",
    "iterate": "for record in consumer, 4 fields",
    "send": "send(), flush()",
    "send_one": "linger_ms=0, send().get()",
    "end_to_end": "linger_ms=0, send() in a thread, for record in a consumer",
}


def send_all(sender: KafkaProducer, topic: str, values: list[bytes], keys: list[bytes] | None) -> None:
    send = sender.send
    for value, key in zip(values, keys or [None] * len(values), strict=True):
        send(topic, value, key)
    sender.flush()


def produce(task: Task) -> Measured:
    values, keys = task.produced(task.records)
    codec = task.profile.codec
    sender = KafkaProducer(
        bootstrap_servers=task.bootstrap,
        acks=ACKS,
        linger_ms=LINGER_MS,
        batch_size=task.profile.batch_bytes,
        enable_idempotence=False,
        compression_type=None if codec == "none" else codec,
    )
    try:
        send_all(sender, task.topic, values[: task.warm_up], keys and keys[: task.warm_up])
        size = sum(map(len, values))
        watch = Stopwatch()
        send_all(sender, task.topic, values, keys)
        return watch.stop(len(values), size)
    finally:
        sender.close()


def read_many(consumer: KafkaConsumer, records: int) -> tuple[int, int]:
    count = size = 0
    while count < records:
        for taken in consumer.poll(timeout_ms=1000, max_records=MAX_POLL_RECORDS).values():
            for record in taken:
                record.offset  # noqa: B018
                record.timestamp  # noqa: B018
                record.key  # noqa: B018
                size += len(record.value)
            count += len(taken)
    return count, size


def read_each(consumer: KafkaConsumer, records: int) -> tuple[int, int]:
    count = size = 0
    for record in consumer:
        record.offset  # noqa: B018
        record.timestamp  # noqa: B018
        record.key  # noqa: B018
        size += len(record.value)
        count += 1
        if count == records:
            break
    return count, size


Reading = Callable[[KafkaConsumer, int], "tuple[int, int]"]


def consume_topic(task: Task, topic: str, records: int, read: Reading) -> Measured:
    partitions = [TopicPartition(topic, index) for index in task.partitions(topic)]
    consumer = KafkaConsumer(
        bootstrap_servers=task.bootstrap,
        max_partition_fetch_bytes=PARTITION_FETCH_BYTES,
        fetch_max_bytes=FETCH_BYTES,
    )
    try:
        watch = Stopwatch()
        consumer.assign(partitions)
        for partition in partitions:
            consumer.seek(partition, 0)
        count, size = read(consumer, records)
        return watch.stop(count, size)
    finally:
        consumer.close()


READINGS: dict[str, Reading] = {"poll": read_many, "iterate": read_each}


def run(task: Task) -> Measured:
    if task.way in READINGS:
        read = READINGS[task.way]
        consume_topic(task, task.warm_topic, task.warm_topic_records, read)
        return consume_topic(task, task.topic, task.records, read)
    if task.way == "send":
        return produce(task)
    raise Missing(f"the way {task.way}")
