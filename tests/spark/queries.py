"""What tests with streams share: runs of a query to its end, and the Python processes that Spark starts for it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tests.brokers.jars import quick_flags

SHORT_LIVED = " ".join(quick_flags())
"""Options of a JVM that lives too briefly for its best compiler to pay."""
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""A session that compiles no query: the code of one with a few rows costs more than its rows."""
WAIT_S = 240
"""For a query that ends by itself: the machine may be busy."""
STARTS = 5
TOO_SLOW = "Python worker failed to connect back"
"""Spark's words and its limit, not ours: ten seconds for a stream's Python process to begin; nothing is planned yet."""


@contextmanager
def with_conf(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """The session with other settings, which are put back."""
    before = {name: spark.conf.get(name) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield spark
    for name, given in before.items():
        assert given is not None
        spark.conf.set(name, given)


def finish(start: Callable[[], StreamingQuery], starts: int = STARTS) -> set[int]:
    """Run a query to its end, and tell which batches had rows; started again where Spark's Python process was late."""
    query = start()
    try:
        assert query.awaitTermination(WAIT_S)
        return {each["batchId"] for each in query.recentProgress if each["numInputRows"]}
    except PySparkException as error:
        if TOO_SLOW not in str(error) or starts == 1:
            raise
    finally:
        query.stop()
    return finish(start, starts - 1)


def failure_of(start: Callable[[], StreamingQuery]) -> PySparkException:
    """What a query ended with that must fail; AssertionError if it does not."""
    try:
        finish(start)
    except PySparkException as error:
        return error
    raise AssertionError("the query ended well")


def python_processes(module: str) -> dict[int, int]:
    """Python processes of this session that were started with a module's name, with their parents' ids."""
    commands, parents = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state = (folder / "stat").read_text().rpartition(")")[2].split()
            if state[0] != "Z":
                commands[int(folder.name)] = (folder / "cmdline").read_text()
                parents[int(folder.name)] = int(state[1])
        except OSError:  # it has ended meanwhile
            continue
    ours = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return {pid: parents[pid] for pid in ours & commands.keys() if module in commands[pid]}


def kill_workers(module: str) -> list[int]:
    """SIGKILL to this session's Python workers of a kind: forks of a daemon that is started with the module's name."""
    processes = python_processes(module)
    found = [pid for pid, parent in processes.items() if parent in processes]
    for pid in found:
        os.kill(pid, signal.SIGKILL)
    return found
