"""kafka-python: ``send``; iteration and ``poll``.  It has no call that takes many records to produce."""

from __future__ import annotations

from importlib.metadata import version

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from benchmarks.jobs import ACKS, BATCH_BYTES, LINGER_MS, PARTITION_FETCH_BYTES, Measured, Stopwatch, Task, values_of

VERSION = version("kafka-python")
SETTINGS = (
    f"acks={ACKS} linger_ms={LINGER_MS} batch_size={BATCH_BYTES} enable_idempotence=False "
    f"max_partition_fetch_bytes={PARTITION_FETCH_BYTES}"
)
WAYS = {
    "produce": "producer.send(), flush()",
    "consume": "for record in consumer",
    "consume-batch": "consumer.poll(max_records=10000), for record in records",
}


def produce(task: Task) -> Measured:
    values, topic = values_of(task.records, task.size), task.topic
    sender = KafkaProducer(
        bootstrap_servers=task.bootstrap,
        acks=ACKS,
        linger_ms=LINGER_MS,
        batch_size=BATCH_BYTES,
        enable_idempotence=False,
    )
    try:
        for value in values[: task.warm_up]:
            sender.send(topic, value)
        sender.flush()
        watch, send = Stopwatch(), sender.send
        for value in values:
            send(topic, value)
        sender.flush()
        return watch.stop(len(values), task.size * len(values))
    finally:
        sender.close()


def consumer_of(task: Task) -> KafkaConsumer:
    return KafkaConsumer(bootstrap_servers=task.bootstrap, max_partition_fetch_bytes=PARTITION_FETCH_BYTES)


def consume(task: Task) -> Measured:
    consumer, partition = consumer_of(task), TopicPartition(task.topic, 0)
    watch, count, size = Stopwatch(), 0, 0
    consumer.assign([partition])
    consumer.seek(partition, 0)
    for record in consumer:
        count += 1
        size += len(record.value)
        if count == task.records:
            break
    measured = watch.stop(count, size)
    consumer.close()
    return measured


def consume_batch(task: Task) -> Measured:
    consumer, partition = consumer_of(task), TopicPartition(task.topic, 0)
    watch, count, size = Stopwatch(), 0, 0
    consumer.assign([partition])
    consumer.seek(partition, 0)
    while count < task.records:
        for records in consumer.poll(timeout_ms=1000, max_records=10_000).values():
            for record in records:
                count += 1
                size += len(record.value)
    measured = watch.stop(count, size)
    consumer.close()
    return measured


def run(job: str, task: Task) -> Measured:
    jobs = {"produce": produce, "consume": consume, "consume-batch": consume_batch}
    return jobs[job](task)
