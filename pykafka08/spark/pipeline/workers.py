"""Check of a master's workers before a run: their Python must import this package and its dependencies."""

from __future__ import annotations

import platform
import sys
from importlib import import_module
from threading import Event, Timer

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline.session import cause_of

__all__ = ["try_workers"]

NO_EXECUTOR_S = 120.0
"""The longest wait for an executor of the master."""
GROUP = "pykafka08: trying a worker"
LOCAL = ("pyarrow",)
ON_STORES = ("deltalake",)
"""Packages that the stages import in a worker."""


def try_workers(spark: SparkSession, *, is_local: bool = True) -> str:
    """Import the packages of the stages in a worker; a line with its interpreter.

    ``is_local``: the pipeline's folder is not on a store.

    Raises:
        ConfigError: an import failed, the interpreter is missing or of another minor version, or the master gave no
            executor within two minutes.
    """
    context = spark.sparkContext
    python = context.pythonExec
    is_late = Event()

    def give_up() -> None:
        is_late.set()
        context.cancelJobGroup(GROUP)

    timer = Timer(NO_EXECUTOR_S, give_up)
    timer.daemon = True
    timer.start()
    try:
        found = _ask(context, LOCAL if is_local else (*LOCAL, *ON_STORES))
    except (PySparkException, Py4JJavaError) as error:
        why = f"no executor within {NO_EXECUTOR_S:g} s" if is_late.is_set() else cause_of(error)
        raise ConfigError(
            f"spark.master: no worker of {context.master} can run the stages with Python {python}: {why}; "
            "PYSPARK_PYTHON names another"
        ) from error
    finally:
        timer.cancel()
    return f"workers: {found}, started as {python}; PYSPARK_PYTHON names another"


def _ask(context: SparkContext, packages: tuple[str, ...]) -> str:
    context.setJobGroup(GROUP, GROUP, interruptOnCancel=True)
    try:
        return context.parallelize([packages], 1).map(_interpreter).collect()[0]
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]


def _interpreter(packages: tuple[str, ...]) -> str:
    """The interpreter of a worker, which has imported this module to find the function."""
    for name in packages:
        import_module(name)
    return f"Python {platform.python_version()} at {sys.executable}"
