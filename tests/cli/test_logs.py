"""The log that -v shows."""

from __future__ import annotations

import logging

import pytest

from pykafka08.cli.logs import log_shown
from pykafka08.driver import library_logger


@pytest.mark.parametrize(("verbosity", "lines"), [(1, 1), (2, 2)])
def test_facts_stand_behind_the_event(verbosity: int, lines: int, capsys: pytest.CaptureFixture[str]) -> None:
    log = library_logger("cluster")
    with log_shown(verbosity):
        log.info("metadata.new", generation=2, topics=["a", "b"])
        log.debug("a.step")
    log.info("nobody.listens")
    shown = capsys.readouterr().err.splitlines()
    assert len(shown) == lines
    assert shown[0].endswith(""" pykafka08.cluster metadata.new generation=2 topics="['a', 'b']\"""")


def test_a_traceback_follows(capsys: pytest.CaptureFixture[str]) -> None:
    with log_shown(1):
        try:
            raise ValueError("why")
        except ValueError:
            logging.getLogger("pykafka08").exception("failed")
    shown = capsys.readouterr().err.splitlines()
    assert shown[0].endswith(" pykafka08 failed")
    assert shown[-1] == "ValueError: why"
