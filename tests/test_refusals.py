"""Refusals of brokers, and the errors of calls whose deadline passes after one."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka08 import AuthenticationError, CertificateError, RequestTimeoutError, TransportError
from pykafka08.cluster.refusals import Refusals
from pykafka08.config import ClientConfig
from pykafka08.connection.handshake import Handshake
from pykafka08.connection.machine import ConnectionMachine
from pykafka08.driver import Waiter
from pykafka08.errors.deadline import at_deadline, with_refusal
from pykafka08.producer.failures import in_doubt
from pykafka08.protocol.messages.metadata import MetadataRequest

REFUSAL = CertificateError("refused", reason="expired", broker="b:1")
BROKER_1 = ("b", 1)


def test_the_error_has_the_facts_of_the_call_and_the_type_of_the_refusal() -> None:
    late = RequestTimeoutError("late", broker="c:1", api="Fetch", topic="t", partition=0)
    late.group = "g"
    raised = at_deadline(with_refusal(late, REFUSAL))
    assert isinstance(raised, CertificateError)
    assert str(raised) == "refused [broker b:1, api Fetch, group 'g', topic 't', partition 0]"
    assert (raised.reason, raised.__cause__, late.__cause__) == ("expired", late, REFUSAL)
    assert REFUSAL.topic is None
    assert at_deadline(raised) is raised
    assert at_deadline(REFUSAL) is REFUSAL
    plain = RequestTimeoutError("late")
    assert at_deadline(plain) is plain


def test_a_cause_stays_unless_a_refusal_is_behind_it() -> None:
    present, former = AuthenticationError("present"), AuthenticationError("former")
    late = RequestTimeoutError("late")
    late.__cause__ = TransportError("lost")
    late.__cause__.__cause__ = former
    assert with_refusal(late, present).__cause__.__cause__ is former
    assert at_deadline(late, present).args == ("present",)
    assert at_deadline(late).args == ("former",)


def test_doubt_is_said_once() -> None:
    error = in_doubt(in_doubt(REFUSAL))
    assert error.message == "refused; the records may or may not be in the log"
    assert error.may_be_written


def test_a_refusal_is_forgotten_after_a_while() -> None:
    refusals = Refusals(
        ClientConfig(
            bootstrap_servers=(BROKER_1,), socket_connection_setup_timeout_ms=2000, reconnect_backoff_max_ms=1000
        )
    )
    refusals.refused(BROKER_1, REFUSAL, 100.0)
    assert [refusals.at(BROKER_1, now) for now in (100.0, 102.9, 103.0)] == [REFUSAL, REFUSAL, None]
    refusals.refused(BROKER_1, REFUSAL, 104.0)
    refusals.accepted(BROKER_1)
    assert refusals.at(BROKER_1, 104.0) is None


@pytest.mark.parametrize("is_told_later", [False, True])
def test_a_request_that_waits_for_its_connection_names_the_last_refusal(is_told_later: bool) -> None:
    machine = ConnectionMachine(
        "b:1", "me", Handshake("b:1", "1"), now=0.0, setup_deadline=10.0, request_timeout=30.0,
        renewal_timeout=10.0, max_idle=60.0, last_refusal=None if is_told_later else REFUSAL,
    )  # fmt: skip
    waiter: Waiter[Any] = Waiter()
    machine.submit(MetadataRequest(topics=[]), None, waiter, 1.0, 0.0)
    if is_told_later:
        machine.last_refusal = REFUSAL
    machine.poll(1.0)
    assert isinstance(waiter.error, RequestTimeoutError)
    assert waiter.error.message == "Metadata was not sent before its deadline: refused"
    assert waiter.error.__cause__ is REFUSAL
