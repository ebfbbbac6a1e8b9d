"""Does memory stay flat?

    python -m benchmarks.memory consume|produce [--gib 10] [--partitions 64] [--size 100] [--records keys]

One client of ours consumes or produces so many GiB against the replaying server; its memory is looked at as it goes,
from when another client has read one batch: the libraries that decode (interpreted, numpy and pyarrow) are loaded then.
Prints a line for each tenth, and at the end whether what it holds beyond its start stayed within 1.5 times the bound:
``fetch_buffer_bytes`` or ``buffer_memory``, both at their defaults.  Exit code 1 if not.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.brokers import REPOSITORY
from benchmarks.limits import told
from benchmarks.servers import replay
from benchmarks.topics import Profile, ReadTopic

GIB, MIB = 1 << 30, 1 << 20
SLACK = 1.5
STEPS = 10


def rss() -> int:
    """Bytes of memory that this process has now."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))


class Steps:
    """Tells the memory at each tenth of the way, and remembers the most."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._next = 1
        self.start = self.most = rss()

    def reached(self, size: int) -> None:
        now = rss()
        self.most = max(self.most, now)
        if size * STEPS >= self._next * self._total:
            self._next = size * STEPS // self._total + 1
            print(f"  {size / GIB:6.2f} GiB  {now >> 20:5} MiB", file=sys.stderr, flush=True)


async def consume(bootstrap: str, topic: ReadTopic, total: int) -> tuple[Steps, int]:
    from pykafka08 import Consumer, TopicPartition

    one = ReadTopic(Profile(size=topic.profile.size), 1)
    async with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(one.name, 0)])
        (await anext(aiter(consumer.batches()))).values()
    async with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        bound = consumer._config.fetch_buffer_bytes
        consumer.assign([TopicPartition(topic.name, index) for index in range(topic.profile.partitions)])
        steps, size, count = Steps(total), 0, 0
        async for batch in consumer.batches():
            size += sum(map(len, batch.values()))
            count += len(batch)
            steps.reached(size)
            if count >= topic.records:
                return steps, bound
    raise RuntimeError("the consumer ended before its topic")


async def produce(bootstrap: str, topic: ReadTopic, total: int, records: str = "values") -> tuple[Steps, int]:
    from pykafka08 import BufferFullError, Producer

    has_keys, headers = records == "keys", [("trace", b"0123456789abcdef")] if records == "headers" else ()
    async with Producer(bootstrap_servers=bootstrap, acks=1) as producer:
        bound, name = producer._config.buffer_memory, topic.profile.written_name()
        values, _ = topic.profile.pool()
        await producer.send_many(name, values[:1000])
        steps, size = Steps(total), 0
        while size < total:
            for each in values:
                value = bytes(bytearray(each))  # one of its own, as an application's records are
                key = value[:16] if has_keys else None
                try:
                    producer.enqueue(name, value, key, None, headers)
                except BufferFullError:
                    await producer.ready()
                    producer.enqueue(name, value, key, None, headers)
            size += sum(map(len, values))
            steps.reached(size)
        await producer.flush()
        return steps, bound


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("consume", "produce"))
    parser.add_argument("--gib", type=float, default=10)
    parser.add_argument("--partitions", type=int, default=64)
    parser.add_argument("--size", type=int, default=100, help="bytes of a value")
    parser.add_argument("--records", choices=("values", "keys", "headers"), default="values", help="what is produced")
    parser.add_argument("--tree", help="a compiled tree")
    parser.add_argument("--json", action="store_true", help="print what was measured as JSON")
    parser.add_argument("--bootstrap", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.bootstrap is None:
        return _in_a_process_of_its_own()
    if options.tree is not None:
        sys.path.insert(0, options.tree)
    import anyio

    total = int(options.gib * GIB)
    profile = Profile(size=options.size, partitions=options.partitions)
    topic = ReadTopic.holding(profile, total // options.size)
    run: Callable[..., object] = {"consume": consume, "produce": partial(produce, records=options.records)}[
        options.what
    ]
    steps, bound = anyio.run(run, options.bootstrap, topic, total)  # type: ignore[arg-type, misc]
    held = steps.most - steps.start
    is_flat = held <= SLACK * bound
    what = f"{profile}, {options.records}" if options.records != "values" else str(profile)
    if options.json:
        print(told(f"memory: {options.what} {options.gib:g} GiB, {what}", "MiB", SLACK * bound / MIB, held / MIB))
        return 0 if is_flat else 1
    figures = {"start_mib": steps.start >> 20, "most_mib": steps.most >> 20, "bound_mib": bound >> 20}
    verdict = "flat" if is_flat else f"NOT within {SLACK} times its bound"
    print(f"{options.what} {options.gib:g} GiB, {what}: {json.dumps(figures)}: {verdict}")
    return 0 if is_flat else 1


def _in_a_process_of_its_own() -> int:
    with replay() as server:
        command = [sys.executable, "-m", "benchmarks.memory", *sys.argv[1:], "--bootstrap", server.bootstrap]
        return subprocess.run(command, cwd=REPOSITORY, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
