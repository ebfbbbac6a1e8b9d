"""``register``, where Spark has found the format by itself."""

from __future__ import annotations

import os
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from pykafka08 import spark as module
from pykafka08.security.settings import SECRETS
from pykafka08.spark import register


def session(condition: str) -> Any:
    """One whose registrations end with that error."""

    def refuse(_: type) -> None:
        raise AnalysisException(message="no", errorClass=condition, messageParameters={})

    return SimpleNamespace(dataSource=SimpleNamespace(register=refuse), conf=Conf())


class Conf(dict[str, str]):
    """Of a session."""

    set = dict.__setitem__


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


def test_plans_show_no_secrets_and_hide_what_they_hid() -> None:
    of_session = session("DATA_SOURCE_ALREADY_EXISTS")
    of_session.conf.set(module.REDACTION, "mine")
    for _ in range(2):
        register(of_session)
        assert of_session.conf == {module.REDACTION: f"(?:mine)|{module.HIDDEN_OPTIONS}"}
    assert module.session_conf()[module.REDACTION] == f"(?:{module.SPARKS_DEFAULT})|{module.HIDDEN_OPTIONS}"
    hidden = re.compile(module.HIDDEN_OPTIONS)
    assert all(hidden.search(f"kafka.{name.replace('_', '.')}") for name in SECRETS)
    assert not hidden.search("kafka.bootstrap.servers")
