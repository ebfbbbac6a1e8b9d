"""The process that checks aggregates for Spark Connect: its modules, and its time."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline import local_check


def test_modules_of_the_working_directory_are_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process imports PySpark, which imports ``queue``, and then finds no such question."""
    (tmp_path / "queue.py").write_text("raise RuntimeError('not the one of the standard library')")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"could not be checked on this machine: KeyError: 'unknown'$"):
        local_check._asked("unknown")


def test_a_process_that_does_not_answer_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_check, "TIMEOUT_S", 0.01)
    with pytest.raises(ConfigError, match=r"could not be checked on this machine in 0\.01 s"):
        local_check._asked("unknown")
