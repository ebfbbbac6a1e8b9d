"""A whole pipeline beside the same work written by hand with Structured Streaming and Delta Lake's connector.

    python -m venv build/spark-4.2; build/spark-4.2/bin/pip install '.[pipeline]' 'pyspark==4.2.*'
    python -m benchmarks.spark.pipeline --servers HOST:PORT --python build/spark-4.2/bin/python [--records 3000000]

Both take a topic of JSON through bronze, silver with rejects, and windows of an hour; each run is a process of its own
(``pykafka08 pipeline run``, and ``benchmarks.spark.hand_written``), from its start to its end, with two slots and 2 GiB
for the driver.  They take turns; ratios are medians over the rounds.  ``--python`` runs both: Delta Lake's connector
supports Spark 4.2, and has no release for 4.3 yet.  Exit code 1 if rows are missing.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.compute as pc
from deltalake import DeltaTable

from benchmarks.spark.memory import descendants
from benchmarks.spark.reading import filled
from tests.spark.connector import connector_jars
from tests.stores.jars import delta_spark_jars

CONFIG = '''
name = "pipeline"
folder = "out"

[sources.kafka]
bootstrap_servers = "SERVERS"
topics = ["TOPIC"]

[decode]
format = "json"
schema = "id BIGINT, user STRING, amount BIGINT"
event_time = "timestamp_millis(1704067200000 + id * 100)"
rules = { "the amount is positive" = "amount >= 0" }

[aggregates.hourly]
sql = """
SELECT window, id % 10 AS kind, count(*) AS orders, sum(amount) AS amount
FROM silver GROUP BY window(event_time, '1 hour'), id % 10
"""
watermark = "30 days"

[spark]
master = "local[2]"

[spark.conf]
"spark.driver.memory" = "2g"
"spark.sql.shuffle.partitions" = "2"
"spark.ui.enabled" = "false"
'''
WAYS = ("pipeline", "by hand")
FIELDS = ("seconds", "processor_seconds")
"""The fields of a turn."""


@dataclass(frozen=True)
class Turn:
    """The time of one run."""

    seconds: float
    processor_seconds: float


def main() -> int:
    """Fill a topic, run both ways in turn, and print a line for each; 1 if rows are missing."""
    parser = argparse.ArgumentParser(description="A pipeline beside Structured Streaming and Delta Lake by hand.")
    parser.add_argument("--servers", required=True)
    parser.add_argument("--records", type=int, default=3_000_000)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    topic = filled(options.servers, "zstd", options.records)
    turns: dict[str, list[Turn]] = {way: [] for way in WAYS}
    wrong = 0
    for round_ in range(options.rounds):
        for way in WAYS if round_ % 2 else reversed(WAYS):
            with tempfile.TemporaryDirectory() as folder:
                command = [options.python, *_words(way, Path(folder), options.servers, topic)]
                turns[way].append(_timed(command))
                wrong += _rows(Path(folder)) != [options.records, options.records]
    for way in WAYS:
        seconds, used = (statistics.median(getattr(one, name) for one in turns[way]) for name in FIELDS)
        rate = options.records / seconds / 1000
        print(f"{way:9} {seconds:6.1f} s, {used:6.1f} s of the processors, {rate:5.0f} k rows/s")
    pairs = list(zip(*(turns[way] for way in WAYS), strict=True))
    ratios = [statistics.median(getattr(b, name) / getattr(a, name) for a, b in pairs) for name in FIELDS]
    print(f"by hand to pipeline: {ratios[0]:.2f} x, by the processors {ratios[1]:.2f} x; load {os.getloadavg()[0]:.1f}")
    return 1 if wrong else 0


def _words(way: str, folder: Path, servers: str, topic: str) -> list[str]:
    if way == "by hand":
        needed = [*connector_jars(), *(jar for jar in delta_spark_jars() if jar.name.startswith("delta-"))]
        jars = ",".join(map(str, needed))
        return ["-m", "benchmarks.spark.hand_written", servers, topic, str(folder / "out"), jars]
    config = folder / "pipeline.toml"
    config.write_text(CONFIG.replace("SERVERS", servers).replace("TOPIC", topic))
    return ["-m", "pykafka08", "pipeline", "run", str(config), "--no-charts"]


def _timed(command: Sequence[str]) -> Turn:
    """Run a command.  The processor time is that of its process and all descendants, sampled every 0.2 s."""
    used: dict[int, float] = {}
    is_over = threading.Event()
    started = time.perf_counter()
    with tempfile.TemporaryFile("w+") as output, subprocess.Popen(command, stdout=output, stderr=output) as process:
        watch = threading.Thread(target=_watch, args=(process.pid, used, is_over))
        watch.start()
        code = process.wait()
        is_over.set()
        watch.join()
        if code:
            output.seek(0)
            raise RuntimeError(f"{command[1:4]} ended with {code}: {output.read()[-3000:]}")
    return Turn(time.perf_counter() - started, sum(used.values()))


def _watch(pid: int, used: dict[int, float], is_over: threading.Event) -> None:
    while not is_over.wait(0.2):
        for each in (pid, *descendants(pid)):
            try:
                words = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
            except OSError:  # the process has ended meanwhile
                continue
            used[each] = sum(map(int, words[11:13])) / os.sysconf("SC_CLK_TCK")


def _rows(folder: Path) -> list[int]:
    """The rows of silver, and the records in the windows of gold, by the newest row of each window."""
    out = folder / "out"
    silver = DeltaTable(str(out / "silver")).to_pyarrow_dataset().count_rows()
    [gold] = out.glob("gold/hourly") if (out / "gold" / "hourly").exists() else [out / "gold"]
    rows = DeltaTable(str(gold)).to_pyarrow_table()
    starts = pc.struct_field(rows["window"], "start") if "window" in rows.column_names else rows["window_start"]
    newest = {}
    columns = (starts, rows["kind"], rows["orders"], rows["_batch"])
    for start, kind, orders, batch in zip(*(one.to_pylist() for one in columns), strict=True):
        newest[start, kind] = max(newest.get((start, kind), (-1, 0)), (batch, orders))
    return [silver, sum(orders for _, orders in newest.values())]


if __name__ == "__main__":
    sys.exit(main())
