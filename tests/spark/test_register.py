"""``register``, where Spark has found the format by itself."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from pykafka08 import spark as module
from pykafka08.security.settings import SECRETS
from pykafka08.spark import local_python, register


def session(condition: str) -> Any:
    """One whose registrations end with that error."""

    def refuse(_: type) -> None:
        raise AnalysisException(message="no", errorClass=condition, messageParameters={})

    return SimpleNamespace(dataSource=SimpleNamespace(register=refuse), conf=Conf())


def context(master: str, **given: Any) -> Any:
    """Of a session on that master."""
    return SimpleNamespace(**{"master": master, "environment": {}, "pythonExec": "python3", "_conf": Conf(), **given})


class Conf(dict[str, str]):
    """Of a session, or of its context."""

    set = dict.__setitem__
    setIfMissing = dict.setdefault


def test_what_spark_has_found_already_is_registered() -> None:
    register(session("DATA_SOURCE_ALREADY_EXISTS"))  # PySpark 4.0


def test_an_archive_is_named_to_processes_that_spark_does_not_tell_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "sent.zip"
    archive.touch()
    of_session = session("DATA_SOURCE_ALREADY_EXISTS")
    of_session.sparkContext = context("local[2]", environment={"PYTHONPATH": "/given"})
    register(of_session)
    assert of_session.sparkContext.environment == {"PYTHONPATH": "/given"}
    monkeypatch.setattr(module, "__file__", str(archive / "pykafka08" / "spark" / "__init__.py"))
    for _ in range(2):
        register(of_session)
        assert of_session.sparkContext.environment == {"PYTHONPATH": f"/given{os.pathsep}{archive}"}


@pytest.mark.parametrize(
    ("master", "python"), [("local[2]", local_python()), ("local", local_python()), ("spark://h:7077", sys.executable)]
)
def test_workers_have_the_python_of_the_driver(monkeypatch: pytest.MonkeyPatch, master: str, python: str) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    of_session = session("DATA_SOURCE_ALREADY_EXISTS")
    of_session.sparkContext = context(master)
    register(of_session)
    assert of_session.sparkContext.pythonExec == python
    assert of_session.sparkContext._conf == ({module.UNIX_SOCKETS: "true"} if master.startswith("local") else {})


def test_what_a_user_chose_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    of_session = session("DATA_SOURCE_ALREADY_EXISTS")
    of_session.sparkContext = context("local[2]", pythonExec="/mine")
    of_session.sparkContext._conf.set(module.UNIX_SOCKETS, "false")
    monkeypatch.setenv("PYSPARK_PYTHON", "/mine")
    register(of_session)
    monkeypatch.delenv("PYSPARK_PYTHON")
    of_session.sparkContext._conf.set("spark.pyspark.python", "/mine")
    register(of_session)
    assert of_session.sparkContext.pythonExec == "/mine"
    assert of_session.sparkContext._conf[module.UNIX_SOCKETS] == "false"


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
