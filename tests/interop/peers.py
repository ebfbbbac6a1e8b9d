"""Other people's clients, each as two calls: write these records to a topic, read that many from it.

They run in a process of their own (`run`): their threads, their warnings and their open sockets are not the test's.
"""

from __future__ import annotations

import asyncio
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import anyio

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_S = 120


class Sample(NamedTuple):
    """A record as every client knows it; headers need magic 2 (0.11), timestamps magic 1 (0.10)."""

    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: tuple[tuple[str, bytes | None], ...] = ()


class Read(NamedTuple):
    partition: int
    offset: int
    sample: Sample


class Peer(NamedTuple):
    """A client; `write` returns the partition of each record, chosen by the client's partitioner.

    `oldest` is the first release whose brokers take what it writes.
    """

    write: Callable[[str, str, str, Sequence[Sample]], list[int]]
    read: Callable[[str, str, int], list[Read]]
    oldest: tuple[int, ...] = (0, 10)


def _confluent_write(bootstrap: str, topic: str, codec: str, samples: Sequence[Sample]) -> list[int]:
    import confluent_kafka

    settings = {"bootstrap.servers": bootstrap, "compression.type": codec, "partitioner": "murmur2_random"}
    producer = confluent_kafka.Producer(settings)
    placed: dict[int, int] = {}
    failures: list[str] = []

    def delivered(number: int) -> Callable[[Any, Any], None]:
        def note(error: Any, message: Any) -> None:
            if error is not None:
                failures.append(str(error))
            else:
                placed[number] = message.partition()

        return note

    for number, one in enumerate(samples):
        words: dict[str, Any] = {"timestamp": one.timestamp_ms, "on_delivery": delivered(number)}
        if one.headers:
            words["headers"] = list(one.headers)
        producer.produce(topic, value=one.value, key=one.key, **words)
    assert producer.flush(DEADLINE_S) == 0, "librdkafka did not deliver in time"
    assert not failures, failures[:3]
    return [placed[number] for number in range(len(samples))]


def _confluent_read(bootstrap: str, topic: str, count: int) -> list[Read]:
    import confluent_kafka

    errors: list[str] = []
    consumer: Any = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"reads-{topic}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "error_cb": lambda error: errors.append(str(error)),
        }
    )
    got: list[Read] = []
    end = time.monotonic() + DEADLINE_S
    try:
        while True:
            known = consumer.list_topics(topic, timeout=DEADLINE_S).topics[topic]
            if known.partitions and known.error is None:
                break
            errors.append(f"metadata: {known.error}, {len(known.partitions)} partitions")
            assert time.monotonic() < end, errors
            time.sleep(0.1)
        first = confluent_kafka.OFFSET_BEGINNING
        consumer.assign([confluent_kafka.TopicPartition(topic, number, first) for number in known.partitions])
        while len(got) < count and time.monotonic() < end:
            for message in consumer.consume(count - len(got), timeout=1.0):
                assert message.error() is None, message.error()
                sample = Sample(message.key(), message.value(), message.timestamp()[1], tuple(message.headers() or ()))
                got.append(Read(message.partition(), message.offset(), sample))
        assert len(got) == count, f"librdkafka read {len(got)} of {count}; it told: {errors}"
    finally:
        consumer.close()
    return got


def _kafka_python_write(bootstrap: str, topic: str, codec: str, samples: Sequence[Sample]) -> list[int]:
    import kafka

    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, compression_type=None if codec == "none" else codec)
    try:
        futures = [
            producer.send(topic, one.value, one.key, headers=list(one.headers), timestamp_ms=one.timestamp_ms)
            for one in samples
        ]
        return [future.get(timeout=DEADLINE_S).partition for future in futures]
    finally:
        producer.close(timeout=DEADLINE_S)


def _kafka_python_read(bootstrap: str, topic: str, count: int) -> list[Read]:
    import kafka

    consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False)
    try:
        consumer.assign([kafka.TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic)])
        got: list[Read] = []
        end = time.monotonic() + DEADLINE_S
        while len(got) < count:
            assert time.monotonic() < end, f"kafka-python read {len(got)} of {count}"
            for records in consumer.poll(timeout_ms=1000).values():
                got += [_read_of(one) for one in records]
        return got
    finally:
        consumer.close()


def _read_of(record: Any) -> Read:
    """From kafka-python's and aiokafka's records, which have the same fields."""
    sample = Sample(record.key, record.value, record.timestamp, tuple(record.headers))
    return Read(record.partition, record.offset, sample)


def _aiokafka_write(bootstrap: str, topic: str, codec: str, samples: Sequence[Sample]) -> list[int]:
    import aiokafka

    async def run() -> list[int]:
        compression = None if codec == "none" else codec
        async with aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap, compression_type=compression) as producer:
            futures = []
            for one in samples:
                headers = list(one.headers) or None
                futures.append(await producer.send(topic, one.value, one.key, None, one.timestamp_ms, headers))
            return [metadata.partition for metadata in await asyncio.gather(*futures)]

    return asyncio.run(asyncio.wait_for(run(), DEADLINE_S))


def _aiokafka_read(bootstrap: str, topic: str, count: int) -> list[Read]:
    import aiokafka

    async def run() -> list[Read]:
        async with aiokafka.AIOKafkaConsumer(
            topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest"
        ) as consumer:
            return [_read_of(await consumer.getone()) for _ in range(count)]

    return asyncio.run(asyncio.wait_for(run(), DEADLINE_S))


PEERS = {
    "librdkafka": Peer(_confluent_write, _confluent_read),
    "kafka-python": Peer(_kafka_python_write, _kafka_python_read),
    "aiokafka": Peer(_aiokafka_write, _aiokafka_read, oldest=(0, 11)),
}


async def run(name: str, action: str, jobs: Sequence[tuple[Any, ...]]) -> list[Any]:
    """The results of `write` or `read` of the named client, one for each tuple of arguments, from a new process."""

    def call() -> list[Any]:
        command = [sys.executable, "-m", "tests.interop.peers", name, action]
        done = subprocess.run(command, input=pickle.dumps(list(jobs)), capture_output=True, cwd=ROOT, check=False)
        assert done.returncode == 0, done.stderr[-3000:].decode(errors="replace")
        results: list[Any] = pickle.loads(done.stdout)
        return results

    return await anyio.to_thread.run_sync(call)


def main() -> None:
    name, action = sys.argv[1:]
    call = getattr(PEERS[name], action)
    jobs = pickle.loads(sys.stdin.buffer.read())
    sys.stdout.buffer.write(pickle.dumps([call(*arguments) for arguments in jobs]))


if __name__ == "__main__":
    from tests.interop import peers  # the same module under the name that the test knows its types by

    peers.main()
