"""Errors for workers that cannot run the stages."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline import workers


def test_an_interpreter_that_is_not_there(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "/nowhere/python3")
    with pytest.raises(ConfigError) as caught:
        workers.try_workers(spark)
    assert str(caught.value).startswith("spark.master: no worker of local[2] can run the stages with Python /nowhere/")
    assert "No such file or directory; PYSPARK_PYTHON names another" in str(caught.value)


def test_a_module_that_is_not_there(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    def without(_: int) -> str:
        import no_such_module

        return str(no_such_module)

    monkeypatch.setattr(workers, "_interpreter", without)
    with pytest.raises(ConfigError, match="ModuleNotFoundError: No module named 'no_such_module'; PYSPARK_PYTHON"):
        workers.try_workers(spark)


def test_a_master_without_executors(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(_: int) -> str:
        import time

        while True:
            time.sleep(0.01)

    monkeypatch.setattr(workers, "_interpreter", endless)
    monkeypatch.setattr(workers, "NO_EXECUTOR_S", 1.0)
    with pytest.raises(ConfigError, match="no executor within 1 s"):
        workers.try_workers(spark)
