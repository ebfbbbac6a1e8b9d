"""Does the memory of Spark's Python workers stay flat?

    python -m benchmarks.spark.memory [--gib 20] [--size 1024]

One query counts so many GiB that the replaying server (``benchmarks.replay``) serves, in six partitions on two slots.
The memory of the largest worker is looked at ten times a second.  Prints its peak in each tenth of the time, and at the
end whether what it holds, beyond a worker that has read one small topic, stayed within 1.5 times the bound of
``docs/spark.md``: three fetches and an Arrow batch.  Exit code 1 if not.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.memory import SLACK
from benchmarks.servers import replay
from benchmarks.spark.reading import PARTITIONS, session
from benchmarks.topics import Profile, ReadTopic
from pykafka08.spark.ranges import ReadSettings
from pykafka08.spark.rows import MAX_BYTES

GIB, MIB = 1 << 30, 1 << 20
TENTHS = 10
WORKER = b"pyspark.daemon\0pyspark.worker"


def main() -> int:
    """Read, watch, tell; 1 if memory grew or rows are missing."""
    parser = argparse.ArgumentParser(description="Memory of Spark's Python workers over a long read.")
    parser.add_argument("--gib", type=float, default=20)
    parser.add_argument("--size", type=int, default=1024, help="bytes of a value")
    options = parser.parse_args()
    profile = Profile(size=options.size, partitions=PARTITIONS)
    topic = ReadTopic.holding(profile, int(options.gib * GIB) // options.size)
    with replay() as server:
        spark = session()
        small = ReadTopic(profile, 2)
        wrong = int(count(spark, server.bootstrap, small) != small.records)
        start = largest()
        with Watch() as watch:
            wrong += count(spark, server.bootstrap, topic) != topic.records
        spark.stop()
    bound = 3 * ReadSettings.fetch_bytes + MAX_BYTES
    held = max(watch.seen) - start
    peaks = [max(each) // MIB for each in tenths(watch.seen)]
    print(f"{options.gib:g} GiB, {profile}: {start // MIB} MiB at the start, peaks of the tenths {peaks} MiB")
    print(
        f"held {held // MIB} MiB beyond the start, the bound is {bound // MIB} MiB", "" if not wrong else "ROWS MISSING"
    )
    return 1 if wrong or held > SLACK * bound else 0


def count(spark: SparkSession, servers: str, topic: ReadTopic) -> int:
    """All rows of the topic."""
    reader = spark.read.format("pykafka08").option("kafka.bootstrap.servers", servers)
    return reader.option("subscribe", topic.name).load().count()


class Watch:
    """Looks at the memory of Python processes, in a thread, while its block runs."""

    def __init__(self, marker: bytes = WORKER) -> None:
        self.seen: list[int] = []
        self._marker = marker
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._is_over.wait(0.1):
            self.seen.append(largest(self._marker))


def largest(marker: bytes = WORKER) -> int:
    """Bytes of the largest of this session's processes whose command line contains ``marker``; 0 if there is none."""
    sizes = [0]
    for process in descendants(os.getpid()):
        try:
            if marker in Path(f"/proc/{process}/cmdline").read_bytes():
                lines = Path(f"/proc/{process}/status").read_text().splitlines()
                sizes += [int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:")]
        except OSError:  # it has ended meanwhile
            continue
    return max(sizes)


def descendants(pid: int) -> list[int]:
    """The processes that this one has started, and those that they have."""
    try:
        tasks = [path.read_text().split() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:
        return []
    children = [int(child) for words in tasks for child in words]
    return children + [below for child in children for below in descendants(child)]


def tenths(seen: list[int]) -> list[list[int]]:
    """The samples in ten parts of about the same length."""
    size = max(1, -(-len(seen) // TENTHS))
    return [seen[at : at + size] for at in range(0, len(seen), size)]


if __name__ == "__main__":
    sys.exit(main())
