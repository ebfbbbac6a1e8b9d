"""kafka-python in a process of its own: it warns of its own names, and may leave a socket open when it is closed.

    python -m tests.broker.kafka_python produce|consume SERVERS RELEASE TOPIC PARTITIONS

Lines to produce are read from standard input; as many as are named there are consumed, and written to standard output.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

__all__ = ["run"]

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 45


def run(action: str, servers: str, release: str, topic: str, partitions: int, lines: Iterable[str]) -> list[str]:
    """What the client read, or nothing, from a new process."""
    words = [action, servers, release, topic, str(partitions)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.broker.kafka_python", *words],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        timeout=3 * PATIENCE_S,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


def _version(release: str) -> dict[str, Any]:
    """What it finds out by itself of releases that it still knows."""
    if not release.startswith(("0.8", "0.9")):
        return {}
    return {"api_version": tuple(int(part) for part in release.split("."))}


def _produce(servers: str, release: str, topic: str, _: int, lines: list[str]) -> list[str]:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=servers, compression_type="gzip", **_version(release))
    sent = [producer.send(topic, line.encode(), key=line.encode()) for line in lines]
    for future in sent:
        future.get(PATIENCE_S)
    producer.close(PATIENCE_S)
    return []


def _consume(servers: str, release: str, topic: str, partitions: int, lines: list[str]) -> list[str]:
    """As a group where the release has groups."""
    from kafka import KafkaConsumer, TopicPartition

    has_group = not release.startswith("0.8")
    consumer = KafkaConsumer(
        bootstrap_servers=servers,
        group_id="readers" if has_group else None,
        auto_offset_reset="earliest",
        enable_auto_commit=has_group,
        consumer_timeout_ms=PATIENCE_S * 1000,
        session_timeout_ms=10_000,
        **_version(release),
    )
    if has_group:
        consumer.subscribe([topic])
    else:
        consumer.assign([TopicPartition(topic, partition) for partition in range(partitions)])
    read = [record.value.decode() for record in islice(consumer, len(lines))]
    consumer.close()
    return read


def main() -> None:
    action, servers, release, topic, partitions = sys.argv[1:]
    call = {"produce": _produce, "consume": _consume}[action]
    for line in call(servers, release, topic, int(partitions), sys.stdin.read().splitlines()):
        print(line)


if __name__ == "__main__":
    main()
