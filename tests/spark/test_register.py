"""``register``, where Spark has found the format by itself."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from pykafka08 import spark as module
from pykafka08.spark import register


def session(condition: str) -> Any:
    """One whose registrations end with that error."""

    def refuse(_: type) -> None:
        raise AnalysisException(message="no", errorClass=condition, messageParameters={})

    return SimpleNamespace(dataSource=SimpleNamespace(register=refuse))


def test_what_spark_has_found_already_is_registered() -> None:
    register(session("DATA_SOURCE_ALREADY_EXISTS"))  # PySpark 4.0


def test_an_archive_is_named_to_processes_that_spark_does_not_tell_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "sent.zip"
    archive.touch()
    of_session = session("DATA_SOURCE_ALREADY_EXISTS")
    of_session.sparkContext = SimpleNamespace(environment={"PYTHONPATH": "/given"})
    register(of_session)
    assert of_session.sparkContext.environment == {"PYTHONPATH": "/given"}
    monkeypatch.setattr(module, "__file__", str(archive / "pykafka08" / "spark" / "__init__.py"))
    for _ in range(2):
        register(of_session)
        assert of_session.sparkContext.environment == {"PYTHONPATH": f"/given{os.pathsep}{archive}"}


def test_other_errors_are_raised() -> None:
    with pytest.raises(AnalysisException, match="no"):
        register(session("SOMETHING_ELSE"))
