"""CPU time of a stage's calls to a table, by the number of files.  Runs without Spark and without files of rows.

    python -m benchmarks.spark.table_growth [--files 1000,10000,100000] [--calls 20] [--format delta]

Ten commits add the files of 365 days to each table, and Delta writes one checkpoint.  The catalog of Iceberg tables is
a SQLite file.  For each number of files the command prints one line with the memory of the process and the median CPU
milliseconds of these calls: open the table in a new process, look for new commits, look for a batch, commit one file,
list the files of one day, list all files.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

from deltalake import DeltaTable

from pykafka08.spark.pipeline.addresses import FORMATS, Catalog, Storage
from pykafka08.spark.pipeline.stores import local_folder
from pykafka08.spark.pipeline.tables.model import NEW_ROWS, Commit, DataFile
from pykafka08.spark.pipeline.tables.table import Table

COMMITS = 10
DAYS = [(date(2024, 1, 1) + timedelta(days=one)).isoformat() for one in range(365)]
SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in (("id", "long"), ("day", "date"))
    ],
}
STATS = json.dumps({"numRecords": 10, "minValues": {"id": 1}, "maxValues": {"id": 9}, "nullCount": {"id": 0}})


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure calls to tables with a growing number of files.")
    parser.add_argument("--files", default="1000,10000,100000")
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("--format", choices=FORMATS, default="delta")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(measured(table_in(options.measure, options.format), options.calls))
        return 0
    for count in map(int, options.files.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            fill(table_in(Path(folder), options.format), count)
            if options.format == "delta":
                DeltaTable(f"{folder}/table").create_checkpoint()
            again = [
                "-m",
                "benchmarks.spark.table_growth",
                "--calls",
                str(options.calls),
                "--format",
                options.format,
                "--measure",
                folder,
            ]
            text = subprocess.run([sys.executable, *again], check=True, text=True, stdout=subprocess.PIPE).stdout
            print(f"{count:7,} files: {text.strip()}", flush=True)
    return 0


def table_in(folder: Path, form: str) -> Table:
    """The table in a folder."""
    root = local_folder(folder)
    if form == "iceberg":
        catalog = Catalog("sql", f"sqlite:///{folder}/catalog.db", namespace="growth")
        root = dataclasses.replace(root, storage=Storage(format=form, catalog=catalog))
    return Table(root / "table")


def fill(table: Table, count: int) -> None:
    """Create a table with ``count`` files."""
    table.prepare(json.dumps(SCHEMA), ["day"])
    for batch in range(COMMITS):
        files = [one_file(number) for number in range(batch, count, COMMITS)]
        assert table.commit(Commit(batch + 1, NEW_ROWS, "decode-shop", batch, tuple(files), (), {"read": 10}))


def one_file(number: int) -> DataFile:
    day = DAYS[number % len(DAYS)]
    path = f"data/decode-shop-{number:012d}-0123abcd/day={day}/part-00000-{number:032d}.c000.snappy.parquet"
    return DataFile(path, 10, 2_000, {"day": day}, STATS)


def measured(table: Table, calls: int) -> str:
    """Measure the calls to a table; one line of figures."""
    batch = 1_000_000

    def commit() -> None:
        nonlocal batch
        batch += 1
        new = Commit(table.version + 1, NEW_ROWS, "decode-shop", batch, (one_file(batch),), (), {"read": 10})
        assert table.commit(new)

    first = _median(lambda: table.version, 1)
    parts = {
        "first look": first,
        "look": _median(lambda: table.version, calls),
        "batch": _median(lambda: table.newest("decode-shop"), calls),
        "commit": _median(commit, calls),
        "a day": _median(lambda: table.live(days=DAYS[7:8]), calls),
        "all files": _median(table.live, min(calls, 5)),
    }
    mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return ", ".join(f"{name} {value:.1f}" for name, value in parts.items()) + f" ms; {mib:.0f} MiB"


def _median(call: Callable[[], object], calls: int) -> float:
    found = []
    for _ in range(calls):
        began = time.process_time()
        call()
        found.append((time.process_time() - began) * 1000)
    return statistics.median(found)


if __name__ == "__main__":
    sys.exit(main())
