"""Names that a broker sends may have 32,767 characters: errors and log lines show 300 of them."""

from __future__ import annotations

import logging

import pytest

from pykafka08.cluster.metadata import Broker
from pykafka08.errors import KafkaError, UnknownTopicError
from pykafka08.logs import library_logger
from pykafka08.short_names import MOST_SHOWN, address_text, shortened

LONG = "x" * 32_767
SHORT_ENOUGH = 2 * MOST_SHOWN


def test_a_cut_name_has_a_mark() -> None:
    assert shortened("a" * MOST_SHOWN) == "a" * MOST_SHOWN
    assert shortened(LONG) == "x" * MOST_SHOWN + "... (32767 characters)"
    assert address_text("h", 9092) == "h:9092"
    assert len(address_text(LONG, 9092)) < SHORT_ENOUGH


def test_names_of_hosts_and_topics_are_cut_in_errors() -> None:
    assert len(Broker(1, LONG, 9092).name) < SHORT_ENOUGH
    error = UnknownTopicError(3, f"the topic {LONG!r} is not there", topic=LONG, broker=Broker(1, LONG, 9092).name)
    assert len(str(error)) < 3 * SHORT_ENOUGH
    assert error.topic == LONG
    assert len(str(KafkaError("no", topic=LONG))) < SHORT_ENOUGH


@pytest.mark.parametrize("fact", ["broker", "topic", "topics", "host"])
def test_names_are_cut_in_log_lines(fact: str, caplog: pytest.LogCaptureFixture) -> None:
    value = (LONG, LONG) if fact == "topics" else LONG
    with caplog.at_level(logging.INFO, "pykafka08.test"):
        library_logger("test").info("an.event", **{fact: value})
    (record,) = caplog.records
    assert len(record.getMessage()) < SHORT_ENOUGH
