"""How long an embedded cluster takes to be up: the best of many starts, in milliseconds.

    python benchmarks/start.py [BROKERS]

In a process that has imported it already; the import itself is told apart.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import anyio

STARTS = 30


async def starts(brokers: int) -> list[float]:
    from pykafka08 import EmbeddedCluster

    taken = []
    for _ in range(STARTS):
        begin = time.perf_counter()
        async with EmbeddedCluster(brokers=brokers, topics={"t": 6}):
            taken.append((time.perf_counter() - begin) * 1000)
    return taken


def main() -> None:
    brokers = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    begin = time.perf_counter()
    from pykafka08 import EmbeddedCluster

    imported = (time.perf_counter() - begin) * 1000
    taken = anyio.run(starts, brokers)
    print(f"{EmbeddedCluster.__name__} of {brokers} brokers: imported in {imported:.0f} ms")
    print(f"up in {min(taken):.1f} ms at best, {median(taken):.1f} ms in the middle, of {STARTS} starts")


if __name__ == "__main__":
    main()
