"""Checks of aggregates for Spark Connect, whose clients cannot read an analysed plan.

A Python process on this machine, with a classic session of its own, reads the plans.  It connects to no cluster.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from pykafka08.errors import ConfigError
from pykafka08.spark import session_conf
from pykafka08.spark.pipeline.definitions import Definition, definition_of
from pykafka08.spark.pipeline.gold_sql import resolved_aggregates
from pykafka08.spark.pipeline.session import ALWAYS, WITHOUT_CALL_SITES
from pykafka08.spark.pipeline.settings import Aggregate, Decode

__all__ = ["local_definition_of", "main", "resolved_locally"]

OF_CONNECT = ("SPARK_CONNECT_MODE_ENABLED", "SPARK_REMOTE", "SPARK_LOCAL_REMOTE")
"""Environment variables by which PySpark would start no classic session."""
ERROR, ANSWER = "error", "answer"
TIMEOUT_S = 300
"""The longest time that the process may need; on an idle machine it needs some seconds."""
SHORT_SESSION = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""Settings of a session that lives for seconds, and that listens on this machine only."""


def resolved_locally(decode: Decode, aggregates: Mapping[str, Aggregate]) -> dict[str, Aggregate]:
    """The result of :func:`gold_sql.resolved_aggregates`, from another process.

    Raises:
        ConfigError: as :func:`gold_sql.resolved`, or the process has failed or not answered in time.
    """
    if not any(one.sql for one in aggregates.values()):
        return dict(aggregates)
    columns = _asked(COLUMNS, decode, dict(aggregates))
    return {
        name: replace(one, group_by=tuple(columns[name][0]), measures=columns[name][1])
        for name, one in aggregates.items()
    }


def local_definition_of(silver: StructType, aggregate: Aggregate) -> Definition:
    """The result of :func:`definitions.definition_of`, from another process.  Results are cached.

    Raises:
        ConfigError: the process has failed or not answered in time.
    """
    key = silver.json(), repr(aggregate)
    if key not in _definitions:
        _definitions[key] = Definition.of(_asked(DEFINITION, silver, aggregate))
    return _definitions[key]


_definitions: dict[tuple[str, str], Definition] = {}


def _asked(question: str, *arguments: Any) -> Any:
    """Run :func:`main` in another process with the same ``sys.path``, and return its answer."""
    # By itself, -c would put the working directory first, whose modules would hide those of the standard library.
    code = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import main; main()"
    command = [sys.executable, "-c", code]
    environment = {name: value for name, value in os.environ.items() if name not in OF_CONNECT}
    given = pickle.dumps((question, arguments))
    try:
        done = subprocess.run(  # noqa: S603  (the command is written here)
            command, input=given, env=environment, capture_output=True, check=False, timeout=TIMEOUT_S
        )
    except subprocess.TimeoutExpired as error:
        raise ConfigError(
            f"aggregates: the queries could not be checked on this machine in {TIMEOUT_S:g} s: a Spark session for "
            f"the check did not answer; try `{sys.executable} -c 'from pyspark.sql import SparkSession; "
            'SparkSession.builder.master("local").getOrCreate()\'` here'
        ) from error
    *_, last = ["", *done.stdout.decode(errors="replace").splitlines()]
    if done.returncode or not last.startswith("{"):
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise ConfigError(f"aggregates: the queries could not be checked on this machine: {said[-1] if said else last}")
    found: dict[str, Any] = json.loads(last)
    if ERROR in found:
        raise ConfigError(found[ERROR])
    return found[ANSWER]


def main() -> None:
    """Read a question from standard input, and write the answer, or an error, to standard output."""
    question, arguments = pickle.load(sys.stdin.buffer)  # noqa: S301  (written by the process that started this one)
    answer_to = QUESTIONS[question]
    conf: dict[str, Any] = {**session_conf(), **WITHOUT_CALL_SITES, **SHORT_SESSION, **ALWAYS}
    spark = SparkSession.builder.master("local[1]").config(map=conf).getOrCreate()
    try:
        spark.sparkContext.setLogLevel("OFF")
        answer = {ANSWER: answer_to(spark, *arguments)}
    except ConfigError as error:
        answer = {ERROR: error.message}
    finally:
        spark.stop()
    sys.stdout.write("\n" + json.dumps(answer) + "\n")


def _columns(spark: SparkSession, decode: Decode, aggregates: Mapping[str, Aggregate]) -> dict[str, Any]:
    found = resolved_aggregates(spark, decode, aggregates)
    return {name: (one.group_by, dict(one.measures)) for name, one in found.items()}


def _definition(spark: SparkSession, silver: StructType, aggregate: Aggregate) -> str:
    return definition_of(spark, silver, aggregate).text()


COLUMNS, DEFINITION = "columns", "definition"
QUESTIONS: dict[str, Callable[..., Any]] = {COLUMNS: _columns, DEFINITION: _definition}
