"""What is measured against: the replaying server, or a real broker whose topics are filled here.

Fills and counts with librdkafka, which is asked nothing else while a turn runs.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.brokers import REPOSITORY, Broker, broker_for
from benchmarks.payload import repeated
from benchmarks.topics import Profile, ReadTopic

__all__ = ["Kafka", "Replay", "Server", "kafka", "replay", "replay_tls"]

LONGEST = {100: 1_500_000, 1024: 200_000}
"""Records of the longest topic that a real broker is filled with, by the size of their values."""


class Server:
    """An address; what answers there; and how its topics come to hold what they should."""

    def __init__(self, broker: Broker) -> None:
        self.bootstrap = broker.bootstrap
        self.what = broker.what
        self.ca_file = ""
        """PEM file of the CA of a server that speaks TLS."""

    def read_topic(self, profile: Profile, records: int) -> ReadTopic:
        """A topic of at least one batch and about ``records`` records, ready to be consumed."""
        return ReadTopic.holding(profile, records)

    def written_topic(self, profile: Profile) -> str:
        return profile.written_name()

    def end_offset(self, topic: str, partitions: int) -> int:
        """Records that were ever written to the topic."""
        from confluent_kafka import Consumer, KafkaException, TopicPartition

        tls = {"security.protocol": "ssl", "ssl.ca.location": self.ca_file} if self.ca_file else {}
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "benchmark", "log_level": 0, **tls})
        try:
            return sum(
                int(consumer.get_watermark_offsets(TopicPartition(topic, index), timeout=20)[1])
                for index in range(partitions)
            )
        except KafkaException:
            return 0  # a topic that is not there yet
        finally:
            consumer.close()


class Replay(Server):
    """The replaying server: any topic is there, of any length."""


class Kafka(Server):
    """A real broker.  Topics that are read are written once for each kind of records and length."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker)
        self._created: set[str] = set()

    def read_topic(self, profile: Profile, records: int) -> ReadTopic:
        longest = ReadTopic.holding(profile, LONGEST[profile.size])
        topic = min(ReadTopic.holding(profile, records), longest, key=lambda each: each.batches)
        # Few lengths, each a power of two of batches: a topic each.
        topic = ReadTopic(profile, min(1 << (topic.batches - 1).bit_length(), longest.batches))
        if topic.name not in self._created:
            self._create(topic.name, profile.partitions)
            self._fill(topic)
        return topic

    def written_topic(self, profile: Profile) -> str:
        name = profile.written_name()
        if name not in self._created:
            self._create(name, profile.partitions, {"retention.bytes": str(256 << 20), "segment.bytes": str(64 << 20)})
        return name

    def _create(self, name: str, partitions: int, config: dict[str, str] | None = None) -> None:
        from confluent_kafka.admin import AdminClient, NewTopic

        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        new = NewTopic(name, num_partitions=partitions, replication_factor=1, config=config or {})
        for future in admin.create_topics([new]).values():
            future.result(30)
        self._created.add(name)

    def _fill(self, topic: ReadTopic) -> None:
        from confluent_kafka import Producer

        profile = topic.profile
        values, keys = profile.pool()
        values = repeated(values, topic.partition_records)
        keys = None if keys is None else repeated(keys, len(values))
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "linger.ms": 1000,
                "batch.size": profile.batch_bytes,
                "batch.num.messages": profile.records_per_batch,
                "queue.buffering.max.messages": 1_000_000,
                "compression.type": profile.codec,
            }
        )
        for partition in range(profile.partitions):
            for index, value in enumerate(values):
                producer.produce(topic.name, value, keys[index] if keys else None, partition=partition)
                if index % 100_000 == 99_999:
                    producer.flush()
            producer.flush()
        if self.end_offset(topic.name, profile.partitions) != topic.records:
            raise RuntimeError(f"{topic.name} was not filled with {topic.records} records")


@contextmanager
def replay(certificate: str | None = None) -> Iterator[Server]:
    """The replaying server, in a process of its own that ends with this block."""
    command = [sys.executable, "-m", "benchmarks.replay", *([certificate] if certificate else [])]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=REPOSITORY) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            line = process.stdout.readline().decode().strip()
            if not line.startswith("REPLAY="):
                raise RuntimeError("the replaying server did not start")
            over = " over TLS" if certificate else ""
            yield Replay(Broker(line.removeprefix("REPLAY="), f"replaying server on this machine{over}"))
        finally:
            process.stdin.close()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


@contextmanager
def replay_tls() -> Iterator[Server]:
    """The replaying server over TLS, with a certificate of its own making."""
    import trustme

    ca = trustme.CA()
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        ca_file, certificate = Path(folder) / "ca.pem", Path(folder) / "server.pem"
        ca.cert_pem.write_to_path(str(ca_file))
        ca.issue_cert("127.0.0.1", "localhost").private_key_and_cert_chain_pem.write_to_path(str(certificate))
        with replay(str(certificate)) as server:
            server.ca_file = str(ca_file)
            yield server


@contextmanager
def kafka(bootstrap: str | None, release: str) -> Iterator[Server]:
    """A real broker, started here unless ``bootstrap`` names one."""
    with broker_for(bootstrap, release) as broker:
        yield Kafka(broker)
