"""What a consumer that has nothing to read costs.

    python -m benchmarks.idle [--partitions 2000] [--seconds 10]

Processor time of this process, in per cent of a core, while one consumer waits on an embedded broker that runs as
another process.  Exit code 1 if it is more than 2 %.  ``--tree`` names a compiled tree.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import anyio

from benchmarks.limits import told

ALLOWED = 2.0
TOPIC = "idle"
SETTLING_S = 3.0
"""For metadata and the first fetches."""


@contextmanager
def broker_with(partitions: int) -> Iterator[str]:
    command = [sys.executable, "-m", "pykafka08", "broker", "--port", "0", "--topic", f"{TOPIC}:{partitions}"]
    # Its input ends with this process, and it with its input: not with ours, which may have none.
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as broker:
        assert broker.stdout is not None
        try:
            yield broker.stdout.readline().strip().partition("=")[2]
        finally:
            broker.terminate()


async def per_cent_of_a_core(bootstrap: str, seconds: float) -> float:
    from pykafka08 import Consumer

    async with Consumer(TOPIC, bootstrap_servers=bootstrap) as consumer:
        with anyio.move_on_after(SETTLING_S):
            await consumer.getone()
        begin, begin_cpu = time.perf_counter(), time.process_time()
        with anyio.move_on_after(seconds):
            await consumer.getone()
        return 100 * (time.process_time() - begin_cpu) / (time.perf_counter() - begin)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--tree", help="a compiled tree")
    parser.add_argument("--json", action="store_true", help="print what was measured as JSON")
    options = parser.parse_args()
    if options.tree is not None:
        sys.path.insert(0, options.tree)
    import pykafka08

    with broker_with(options.partitions) as bootstrap:
        spent = anyio.run(per_cent_of_a_core, bootstrap, options.seconds)
    if options.json:
        print(told(f"a consumer of {options.partitions:,} partitions, idle", "% of a core", ALLOWED, spent))
        return spent > ALLOWED
    form = "compiled" if pykafka08.compiled else "pure"
    print(f"{form}, {options.partitions} partitions: {spent:.2f} % of a core, allowed {ALLOWED:.0f} %")
    return spent > ALLOWED


if __name__ == "__main__":
    sys.exit(main())
