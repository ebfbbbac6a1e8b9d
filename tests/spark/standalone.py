"""A standalone Spark cluster on this machine, from the jars of the installed pyspark: a master and its workers."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from pykafka08.spark.java import provide_java
from tests.spark.queries import SHORT_LIVED

SPARK_HOME = Path(pyspark.__file__).parent
MASTER, WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"
QUICK = {"SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": SHORT_LIVED}


@contextmanager
def standalone(folder: Path, environment: dict[str, str], *, workers: int) -> Iterator[str]:
    """The address (``spark://…``) of a master whose workers, of one core each, have registered."""
    provide_java()
    with ExitStack() as stack:
        master = stack.enter_context(_daemon(folder / "master.log", environment, MASTER, "--port", "0"))
        address = _told(master, folder / "master.log", r"Starting Spark master at (spark://\S+)")
        for number in range(workers):
            log = folder / f"worker{number}.log"
            options = ["--cores", "1", "--memory", "1100m", "--work-dir", str(folder / f"work{number}"), address]
            worker = stack.enter_context(_daemon(log, environment, WORKER, *options))
            _told(worker, log, r"(Successfully registered) with master")
        yield address


@contextmanager
def _daemon(log: Path, environment: dict[str, str], name: str, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [str(SPARK_HOME / "bin" / "spark-class"), name, "--host", "127.0.0.1", "--webui-port", "0", *options]
    settings = {**environment, **QUICK, "SPARK_HOME": str(SPARK_HOME)}
    with log.open("wb") as file, subprocess.Popen(command, env=settings, stdout=file, stderr=file) as process:
        try:
            yield process
        finally:
            process.terminate()


def _told(process: subprocess.Popen[bytes], log: Path, pattern: str) -> str:
    """Wait for a line of the daemon's log, within the test's time-out, and return what the pattern captures."""
    while (found := re.search(pattern, log.read_text())) is None:
        assert process.poll() is None, log.read_text()
        time.sleep(0.1)
    return found[1]
