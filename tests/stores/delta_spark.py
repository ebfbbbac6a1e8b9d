"""Run a Spark job with Delta Lake's own connector in a separate JVM, without code of this project.

Its Spark is the newest release that Delta Lake supports; the one of the installed PySpark may be newer.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pykafka08.spark.java import provide_java
from tests.brokers.jars import java_command, quick_flags
from tests.stores.jars import delta_spark_jars, s3a_jars

SOURCE = Path(__file__).with_name("DeltaJob.java")
JVM = (*quick_flags(), "-Xmx700m", "-Djava.net.preferIPv4Stack=true")
OPENED = ("java.lang", "java.lang.invoke", "java.net", "java.nio", "java.util", "sun.nio.ch", "sun.util.calendar")
"""Packages that Spark asks Java to open."""
TIMEOUT_S = 500


def read_by_spark(
    tables: Mapping[str, str], streamed: Mapping[str, str], hadoop: Mapping[str, str], folder: Path
) -> dict[str, pa.Table]:
    """Read tables with the job, in one query (``tables``) or as a stream (``streamed``); return their rows by name."""
    provide_java()
    words = [f"read={name}={address}" for name, address in tables.items()]
    words += [f"stream={name}={address}" for name, address in streamed.items()]
    words += [f"conf=spark.hadoop.{name}={value}" for name, value in hadoop.items()]
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
    jars = os.pathsep.join(map(str, [*delta_spark_jars(), *s3a_jars()]))
    command = [java_command(), *JVM, *opened, "-cp", jars, str(SOURCE), str(folder), *words]
    done = subprocess.run(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
    )
    assert done.returncode == 0, "\n".join(line for line in done.stderr.splitlines() if not line.startswith("\tat "))
    return {name: _rows(folder / name) for name in (*tables, *streamed)}


def _rows(folder: Path) -> pa.Table:
    return pa.concat_tables([pq.read_table(path) for path in sorted(folder.glob("*.parquet"))])
