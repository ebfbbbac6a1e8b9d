"""How a run ends, without Spark: what it says to Spark and to people."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from deltalake.exceptions import DeltaError
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pykafka08.spark.pipeline import running, session
from pykafka08.spark.pipeline.leasing import Lease
from pykafka08.spark.pipeline.settings import read
from pykafka08.spark.pipeline.stages import BatchError, Stage, told_briefly
from pykafka08.spark.pipeline.tables.table import LeaseLostError
from tests.spark.pipeline import orders


class Query:
    """Active until it is stopped, or ends by itself after some looks."""

    lastProgress = None

    def __init__(self, looks: int, error: str = "") -> None:
        self.looks = looks
        self.is_started = self.is_stopped = False
        self._error = PySparkException(error) if error else None

    def started(self, *_: object) -> Query:
        self.is_started = True
        return self

    def exception(self) -> PySparkException | None:
        return self._error

    @property
    def isActive(self) -> bool:
        return self.looks > 0

    def stop(self) -> None:
        self.is_stopped = True


class Streams:
    def __init__(self, queries: list[Query]) -> None:
        self._queries = queries

    def awaitAnyTermination(self, timeout: float) -> bool:
        started = [one for one in self._queries if one.is_started]
        for one in started:
            one.looks -= 1
        return not all(one.isActive for one in started)

    def resetTerminated(self) -> None:
        """Nothing: the queries tell."""


def followed(
    tmp_path: Path, looks: int, told_after: int, errors: Sequence[str] = ("",)
) -> tuple[list[str], list[Query]]:
    """The lines of a run with two stages; the second ends by itself after some looks, with each error in turn."""
    queries = [Query(1000), *(Query(looks, error) for error in errors)]
    later = iter(queries[1:])
    levels: list[str] = []
    context = SimpleNamespace(setLogLevel=levels.append)
    spark = cast(SparkSession, SimpleNamespace(streams=Streams(queries), sparkContext=context))
    starts = {"a": queries[0].started, "b": lambda *_: next(later).started()}
    stages = [SimpleNamespace(name=name, start=start) for name, start in starts.items()]
    said: list[str] = []
    pipeline = read(orders.written_config(tmp_path, "nobody:1"))
    asked = iter(range(told_after))
    try:
        running.follow(
            spark, pipeline, cast("list[Stage]", stages), said.append, lambda: next(asked, None) is None, compacts=False
        )
    finally:
        assert all(one.is_stopped for one in queries if one.is_started and (one is queries[0] or one.isActive))
    return said, queries


def test_a_stage_that_ends_by_itself_is_a_failure(tmp_path: Path) -> None:
    with pytest.raises(PySparkException, match="b ended without an error, though it was not stopped"):
        followed(tmp_path, looks=3, told_after=100)


def test_a_stage_whose_python_process_starts_too_slowly_is_started_again(tmp_path: Path) -> None:
    slow = f"Query b terminated with exception: {running.NOT_STARTED}"
    said, _ = followed(tmp_path, looks=3, told_after=10, errors=[slow, slow, ""])
    assert said[2:] == [f"b: {running.NOT_STARTED}; begun again"] * 2


@pytest.mark.parametrize("errors", [[f"Query b: {running.NOT_STARTED}"] * 3, ["Query b: the disk is full"]])
def test_a_stage_that_fails_otherwise_or_too_often_is_a_failure(tmp_path: Path, errors: list[str]) -> None:
    with pytest.raises(PySparkException, match=f"^{errors[-1]}$"):
        followed(tmp_path, looks=3, told_after=100, errors=errors)


def test_a_run_that_is_told_ends_well(tmp_path: Path) -> None:
    said, queries = followed(tmp_path, looks=1000, told_after=6)
    assert said == ["a: started", "b: started"]
    assert all(one.is_stopped for one in queries)


def test_a_run_that_is_told_before_it_has_begun_starts_nothing(tmp_path: Path) -> None:
    said, queries = followed(tmp_path, looks=1000, told_after=0)
    assert said == []
    assert not any(one.is_stopped for one in queries)


def test_the_handler_of_interrupts_stays_the_runs_own() -> None:
    before = signal.getsignal(signal.SIGINT)
    with session._own_interrupt():
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # as PySpark does
    assert signal.getsignal(signal.SIGINT) is before


def test_a_compaction_that_fails_beside_the_stages_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors: list[Exception | None] = [DeltaError("the store is busy\n  caused by: 503"), None]

    def compact(*_: object, **__: object) -> dict[str, Any]:
        error = errors.pop(0)
        if error is not None:
            raise error
        return {}

    monkeypatch.setattr(running, "compact", compact)
    monkeypatch.setattr(running, "versions", lambda pipeline: {})
    said: list[str] = []
    rounds = running._Rounds(cast(SparkSession, None), read(orders.written_config(tmp_path, "x:1")), None, said.append)
    while errors:
        rounds._last = float("-inf")
        rounds.go_on()
    assert said == ["compaction failed, and will be tried again: the store is busy"]


class Lost:
    """A lease that another process has taken."""

    def check(self) -> None:
        raise LeaseLostError("taken")


def test_a_run_that_lost_its_lease_ends_and_stops_its_stages(tmp_path: Path) -> None:
    query = Query(1000)
    stage = cast(Stage, SimpleNamespace(name="a", start=query.started))
    context = SimpleNamespace(setLogLevel=lambda level: None)
    spark = cast(SparkSession, SimpleNamespace(streams=Streams([query]), sparkContext=context))
    pipeline = read(orders.written_config(tmp_path, "nobody:1"))
    with pytest.raises(LeaseLostError):
        running.follow(spark, pipeline, [stage], print, lambda: False, compacts=False, lease=cast(Lease, Lost()))
    assert query.is_stopped


class Java:
    """An exception of Java's, as py4j shows it."""

    def __init__(self, message: str | None, cause: Java | None = None) -> None:
        self._message = message
        self._cause = cause
        self._target_id = "o1"

    def getMessage(self) -> str | None:
        return self._message

    def getCause(self) -> Java | None:
        return self._cause

    def __str__(self) -> str:
        return "java.lang.Error"


def test_spark_is_told_briefly_what_java_said_at_length() -> None:
    stack = "".join(f"\n\tat org.apache.spark.One.two(One.scala:{line})" for line in range(2000))
    innermost = Java("the disk is full", Java(None))
    error = Py4JJavaError("An error occurred while calling o1.count", Java(f"Job aborted{stack}", innermost))

    def take(batch: Any, number: int) -> None:
        raise error

    with pytest.raises(BatchError) as caught:
        told_briefly(take)(cast(Any, None), 3)
    assert str(caught.value) == "Job aborted; the disk is full; java.lang.Error"
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    other = PySparkException(f"Job aborted due to stage failure: {running.NOT_STARTED}{stack}\n" + "x" * 5000)
    assert session.brief(other).startswith(f"Job aborted due to stage failure: {running.NOT_STARTED}; xxx")
    assert len(session.brief(other)) == session.LONGEST


def test_conf_that_the_stages_rely_on_is_not_for_the_settings(tmp_path: Path) -> None:
    config = orders.written_config(tmp_path, "nobody:1")
    config.write_text(config.read_text() + '"spark.sql.ansi.enabled" = "true"\n')
    with pytest.raises(session.ConfigError, match=r"spark\.conf\.spark\.sql\.ansi\.enabled: .* rely on 'false'"):
        session.session(read(config))
