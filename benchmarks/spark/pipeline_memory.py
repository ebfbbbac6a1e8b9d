"""Memory of a pipeline over a long backlog, which should stay flat.

    python -m benchmarks.spark.pipeline_memory [--gib 100] [--size 10240] [--per-batch 500000]

The replaying server (``benchmarks.replay``) serves this number of GiB of JSON in six partitions, and ``pykafka08
pipeline run`` takes them with ``Trigger.AvailableNow`` through bronze, silver and windows.  The benchmark samples the
memory of its processes ten times a second: the driver's Python, the JVM with its executor, and the largest Python
worker.  It prints the peak of each in each tenth of the time, in MiB, and the size of the tables.  Exit code 1 if rows
are missing, or if a peak of the last three tenths is more than a tenth above that of the three before them.

The run needs room on the disk for bronze: about a fifth of ``--gib``.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from deltalake import DeltaTable

from benchmarks.servers import replay
from benchmarks.spark.memory import descendants, tenths
from benchmarks.spark.reading import PARTITIONS
from benchmarks.topics import Profile, ReadTopic

GIB, MIB = 1 << 30, 1 << 20
SLACK = 1.1
KINDS = {"driver": b"pipeline\0run", "JVM": b"SparkSubmit", "worker": b"pyspark.daemon"}
CONFIG = """
name = "backlog"
folder = "out"

[sources.replay]
bootstrap_servers = "SERVERS"
topics = ["TOPIC"]
max_offsets_per_trigger = PER_BATCH

[decode]
format = "json"
schema = "id BIGINT, event STRING, amount DOUBLE"
event_time = "timestamp_millis(1704067200000 + id * 100)"
rules = { "the event is known" = "event <> 'logout'" }

[aggregates.hourly]
window = "1 hour"
watermark = "30 days"
group_by = ["event"]
measures = { events = "count(*)", amount = "sum(amount)" }

[limits]
bytes = 1_000_000_000

[spark]
master = "local[2]"

[spark.conf]
"spark.driver.memory" = "2g"
"spark.ui.enabled" = "false"
"spark.sql.shuffle.partitions" = "2"
"""


def main() -> int:
    """Run the pipeline, sample its memory, and print the peaks."""
    parser = argparse.ArgumentParser(description="Memory of a pipeline over a long backlog.")
    parser.add_argument("--gib", type=float, default=100)
    parser.add_argument("--size", type=int, default=10240, help="bytes of a value")
    parser.add_argument("--per-batch", type=int, default=500_000)
    options = parser.parse_args()
    topic = ReadTopic.holding(Profile(size=options.size, partitions=PARTITIONS), int(options.gib * GIB) // options.size)
    with replay() as server, tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "pipeline.toml"
        text = CONFIG.replace("SERVERS", server.bootstrap).replace("TOPIC", topic.name)
        config.write_text(text.replace("PER_BATCH", str(options.per_batch)))
        started = time.perf_counter()
        command = [sys.executable, "-m", "pykafka08", "pipeline", "run", str(config)]
        with subprocess.Popen(command) as process:
            seen = _watched(process)
        seconds = time.perf_counter() - started
        rows = {name: _table(Path(folder) / "out" / name) for name in ("bronze/replay", "silver", "rejects")}
    print(f"{options.gib:g} GiB, {topic.records:,} records in {seconds:.0f} s; exit code {process.returncode}")
    for name, (count, size) in rows.items():
        print(f"{name}: {count:,} rows, {size / GIB:.1f} GiB")
    grew = [not _is_flat(name, sizes) for name, sizes in seen.items()]
    read, accepted, refused = (count for count, _ in rows.values())
    return 1 if process.returncode or any(grew) or not read == accepted + refused == topic.records else 0


def _watched(process: subprocess.Popen[bytes]) -> dict[str, list[int]]:
    """The bytes of the largest process of each kind, ten times a second, until the run ends."""
    seen: dict[str, list[int]] = {name: [] for name in KINDS}
    while process.poll() is None:
        found = dict.fromkeys(KINDS, 0)
        for pid in (process.pid, *descendants(process.pid)):
            try:
                command = Path(f"/proc/{pid}/cmdline").read_bytes()
                pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
            except OSError:  # the process has ended meanwhile
                continue
            kind = next((name for name, marker in KINDS.items() if marker in command), None)
            if kind is not None:
                found[kind] = max(found[kind], pages * 4096)
        for name, size in found.items():
            seen[name].append(size)
        time.sleep(0.1)
    return seen


def _table(folder: Path) -> tuple[int, int]:
    """Rows and bytes of the live files."""
    actions = DeltaTable(str(folder)).get_add_actions(flatten=True)
    return sum(actions["num_records"].to_pylist()), sum(actions["size_bytes"].to_pylist())


def _is_flat(name: str, sizes: list[int]) -> bool:
    peaks = [max(each) // MIB for each in tenths(sizes)]
    is_flat = max(peaks[-3:]) <= SLACK * max(peaks[-6:-3])
    print(f"{name}: peaks of the tenths {peaks} MiB{'' if is_flat else ', GREW'}")
    return is_flat


if __name__ == "__main__":
    sys.exit(main())
