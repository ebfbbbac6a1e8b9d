"""A Spark Connect server on this machine, from the jars of the installed pyspark."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyspark

from pykafka08.spark.java import provide_java
from tests.spark.queries import INTERPRETED, SHORT_LIVED

SPARK_HOME = Path(pyspark.__file__).parent
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
STARTED = r"Spark Connect server started at: \S+:(\d+)"
CONF = {
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "700m",
    "spark.driver.extraJavaOptions": SHORT_LIVED,
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    **INTERPRETED,
}


@contextmanager
def connect_server(folder: Path, conf: Mapping[str, str] | None = None) -> Iterator[str]:
    """The address (``sc://…``) of a server with two task slots, whose Python is this one; its log is in ``folder``."""
    provide_java()
    log = folder / "server.log"
    options = [word for name, value in {**CONF, **(conf or {})}.items() for word in ("--conf", f"{name}={value}")]
    command = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", "local[2]", "--class", SERVER, *options]
    environment = {**os.environ, "SPARK_HOME": str(SPARK_HOME), "PYSPARK_PYTHON": sys.executable}
    with (
        log.open("wb") as file,
        subprocess.Popen(
            [*command, "spark-internal"], env=environment, stdout=file, stderr=file, cwd=folder
        ) as process,
    ):
        try:
            while (found := re.search(STARTED, log.read_text(errors="replace"))) is None:
                assert process.poll() is None, log.read_text(errors="replace")
                time.sleep(0.1)
            yield f"sc://127.0.0.1:{found[1]}"
        finally:
            process.terminate()
