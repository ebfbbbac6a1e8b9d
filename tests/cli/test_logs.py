"""The log that -v shows."""

from __future__ import annotations

import logging
import sys

from pykafka08.cli.logs import FactsFormatter


def test_facts_stand_behind_the_event() -> None:
    record = logging.LogRecord("pykafka08.cluster", logging.INFO, "", 0, "metadata.new", (), None)
    record.generation = 2
    record.topics = ["a", "b"]
    shown = FactsFormatter().format(record)
    assert shown.endswith(" pykafka08.cluster metadata.new generation=2 topics=['a', 'b']")


def test_a_traceback_follows() -> None:
    try:
        raise ValueError("why")
    except ValueError:
        record = logging.LogRecord("pykafka08", logging.ERROR, "", 0, "failed", (), sys.exc_info())
    shown = FactsFormatter().format(record).splitlines()
    assert shown[0].endswith(" pykafka08 failed")
    assert shown[-1] == "ValueError: why"
