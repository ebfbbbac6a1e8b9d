"""What the size of a cluster costs: metadata of 10,000 partitions, decoded and made into a snapshot.

    python -m benchmarks.scale [--rounds N] [--shape TOPICSxPARTITIONS] [--tree DIRECTORY]

Milliseconds of processor time with the garbage collector on, as an application has it; medians over the rounds.  "same
again" is a second answer that says what the first one said, as a refresh mostly does.  Memory is what a snapshot holds.
Sending among many topics is measured as nanoseconds per look-up of a leader, which is what depends on the cluster.
Exit code 1 if metadata of 10,000 partitions takes longer to decode than 80 ms, or 30 compiled.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
import tracemalloc
from collections.abc import Callable
from statistics import median
from typing import Any
from uuid import UUID

from benchmarks.brokers import REPOSITORY
from benchmarks.limits import told

SHAPES = ((100, 100), (1000, 10), (10_000, 1))
ALLOWED_MS = {"pure": 80.0, "compiled": 30.0}
VERSIONS = (1, 7, 12)
BROKERS = 12
LOOKUPS = 100_000

Case = tuple[tuple[int, int], int]
"""A shape and a version."""


def frame(topics: int, partitions: int, version: int) -> bytes:
    from pykafka08.protocol.messages import metadata as kafka

    made = []
    for number in range(topics):
        parts = []
        for index in range(partitions):
            replicas = [(number + index + step) % BROKERS for step in range(3)]
            parts.append(
                kafka.MetadataResponsePartition(
                    partition_index=index, leader_id=replicas[0], replica_nodes=replicas, isr_nodes=replicas
                )
            )
        topic = kafka.MetadataResponseTopic(name=f"a.topic.of.some.length.{number}", partitions=parts)
        if version >= 10:
            topic.topic_id = UUID(int=number + 1)
        made.append(topic)
    brokers = [
        kafka.MetadataResponseBroker(node_id=each, host=f"broker-{each}.cluster", port=9092) for each in range(BROKERS)
    ]
    return kafka.MetadataResponse(brokers=brokers, topics=made, controller_id=1).encode(version)


def spent(work: Callable[[], Any]) -> tuple[float, Any]:
    gc.collect()
    begin = time.process_time()
    result = work()
    return (time.process_time() - begin) * 1000, result


def turn(data: bytes, version: int) -> dict[str, float]:
    from pykafka08.cluster.metadata import Snapshot
    from pykafka08.protocol.messages.metadata import MetadataResponse

    def learned(before: Snapshot) -> Snapshot:
        return before.next(MetadataResponse.decode(data, version), now=1.0, wanted=lambda _: True)

    found = {}
    found["decoded"], _ = spent(lambda: MetadataResponse.decode(data, version))
    found["and a snapshot"], snapshot = spent(lambda: learned(Snapshot(0)))
    found["same again"], snapshot = spent(lambda: learned(snapshot))
    name = next(reversed(snapshot.topics))
    taken, _ = spent(lambda: [snapshot.leader(name, 0) for _ in range(LOOKUPS)])
    found["ns/leader"] = taken * 1e6 / LOOKUPS
    return found


def held(data: bytes, version: int) -> float:
    """MiB of one snapshot."""
    from pykafka08.cluster.metadata import Snapshot
    from pykafka08.protocol.messages.metadata import MetadataResponse

    tracemalloc.start()
    response = MetadataResponse.decode(data, version)
    snapshot = Snapshot(0).next(response, now=1.0, wanted=lambda _: True)
    del response
    gc.collect()
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert snapshot.topics
    return size / 2**20


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--shape", type=shape_of, help="that shape only, such as 1000x10")
    parser.add_argument("--tree", default=str(REPOSITORY), help="an older checkout, or a compiled tree")
    parser.add_argument("--json", action="store_true", help="print how long decoding takes as JSON")
    options = parser.parse_args()
    sys.path.insert(0, options.tree)
    import pykafka08

    allowed = ALLOWED_MS["compiled" if pykafka08.compiled else "pure"]
    shapes = SHAPES if options.shape is None else (options.shape,)
    cases = {(shape, version): frame(*shape, version) for shape in shapes for version in VERSIONS}
    rounds = [{case: turn(data, case[1]) for case, data in cases.items()} for _ in range(options.rounds)]
    decoded = {case: median(each[case]["decoded"] for each in rounds) for case in cases}
    if options.json:
        worst = max(decoded, key=lambda case: decoded[case])
        (topics, partitions), version = worst
        what = f"metadata of {topics:,} topics of {partitions} partitions, version {version}, decoded"
        print(told(what, "ms", allowed, decoded[worst]))
    else:
        show(cases, rounds)
    return int(max(decoded.values()) > allowed)


def shape_of(text: str) -> tuple[int, int]:
    topics, partitions = map(int, text.split("x"))
    return topics, partitions


def show(cases: dict[Case, bytes], rounds: list[dict[Case, dict[str, float]]]) -> None:
    columns = list(next(iter(rounds[0].values())))
    print(f"{'topics x partitions':24}" + "".join(f"{column:>18}" for column in columns) + f"{'MiB held':>12}")
    for case, data in cases.items():
        (topics, partitions), version = case
        line = f"{topics:6} x {partitions:<4} v{version:<10}"
        for column in columns:
            line += f"{median(each[case][column] for each in rounds):18.1f}"
        print(line + f"{held(data, version):12.1f}")


if __name__ == "__main__":
    sys.exit(main())
