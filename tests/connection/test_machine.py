"""One connection as pure state: order, deadlines, poison.  Times are plain numbers; there is no loop."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka08.connection import machine as machine_module
from pykafka08.connection.actions import Close, Redial, Suspect, Throttled
from pykafka08.connection.call import SYNC_HELD
from pykafka08.connection.handshake import Handshake
from pykafka08.connection.machine import ConnectionMachine, State
from pykafka08.connection.silence import SILENCE
from pykafka08.connection.throttle import FIRST_TO_HOLD_BACK
from pykafka08.errors import (
    ClosedError,
    KafkaError,
    RemoteProtocolError,
    RequestTimeoutError,
    TransportError,
    UnsupportedVersionError,
)
from pykafka08.protocol.messages import REGISTRY, ApiKey
from pykafka08.protocol.messages.fetch import FetchRequest
from pykafka08.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from pykafka08.protocol.messages.join_group import JoinGroupRequest
from pykafka08.protocol.messages.metadata import MetadataRequest, MetadataResponse
from pykafka08.protocol.messages.produce import ProduceRequest
from pykafka08.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from pykafka08.protocol.schema import Request
from pykafka08.protocol.versions import BrokerVersions
from tests.connection.answers import Asked, answer_to, api_versions, list_groups, metadata, read_requests

BROKER = "h:9092 (id 1)"


class Ended:
    """Takes the outcome of a call and insists that there is only one."""

    def __init__(self) -> None:
        self.results: list[Any] = []
        self.error: BaseException | None = None

    def set_result(self, result: Any) -> None:
        assert not self.is_done
        self.results.append(result)

    def set_exception(self, error: BaseException) -> None:
        assert not self.is_done
        self.error = error

    @property
    def is_done(self) -> bool:
        return bool(self.results) or self.error is not None


def new(release: str | None = "4.3", *, setup: float = 10, request: float = 30, idle: float = 540) -> ConnectionMachine:
    known = BrokerVersions.of_release(release) if release is not None else None
    return ConnectionMachine(
        BROKER,
        "me",
        Handshake(BROKER, "1.0", known=known),
        now=0,
        setup_deadline=setup,
        request_timeout=request,
        renewal_timeout=setup,
        max_idle=idle,
    )


def ready(release: str = "4.3", **times: float) -> ConnectionMachine:
    machine = new(release, **times)
    machine.opened(0)
    assert machine.state is State.READY
    return machine


def submit(
    machine: ConnectionMachine, request: Any = None, *, now: float = 0, timeout: float = 5, version: int | None = None
) -> Ended:
    ended = Ended()
    machine.submit(request or MetadataRequest(topics=[]), version, ended, now + timeout, now)
    return ended


def sent(machine: ConnectionMachine) -> list[Asked]:
    stream = b"".join(machine.data_to_send())
    machine.data_sent()
    return read_requests(stream)


def receive(machine: ConnectionMachine, frame: bytes, now: float = 0) -> None:
    """``frame`` with its size."""
    machine.frame_received(frame[4:], now)


def error_of(ended: Ended, kind: type[KafkaError]) -> KafkaError:
    assert isinstance(ended.error, kind)
    return ended.error


def test_answers_go_to_their_requests_in_order() -> None:
    machine = ready()
    calls = [submit(machine) for _ in range(3)]
    requests = sent(machine)
    assert [asked.header.correlation_id for asked in requests] == [0, 1, 2]
    assert {asked.header.client_id for asked in requests} == {"me"}
    assert {asked.header.api_version for asked in requests} == {MetadataRequest.versions.max}
    for index, asked in enumerate(requests):
        receive(machine, answer_to(asked, metadata([(index, "h", 1)])))
    assert [call.results[0].brokers[0].node_id for call in calls] == [0, 1, 2]
    assert machine.open_calls == 0
    assert machine.data_to_send() == []


@pytest.mark.parametrize("wrong_id", [1, 2, -1, 7])
def test_a_wrong_correlation_id_poisons_with_one_cause(wrong_id: int) -> None:
    machine = ready()
    calls = [submit(machine) for _ in range(3)]
    asked = sent(machine)[0]
    asked = asked._replace(header=asked.header._replace(correlation_id=wrong_id))
    receive(machine, answer_to(asked, metadata()))
    causes = {id(call.error) for call in calls}
    assert len(causes) == 1
    error = error_of(calls[0], RemoteProtocolError)
    assert error.broker == BROKER
    assert f"correlation id {wrong_id}" in str(error)
    assert machine.poll(0) == [Close(error)]
    assert machine.state is State.CLOSED
    assert submit(machine).error is error


def test_an_answer_that_comes_twice_poisons() -> None:
    machine = ready()
    call = submit(machine)
    frame = answer_to(sent(machine)[0], metadata())
    receive(machine, frame)
    receive(machine, frame)
    assert call.results
    assert isinstance(machine.error, RemoteProtocolError)
    assert "nobody asked for" in str(machine.error)


@pytest.mark.parametrize("frame", [b"\0", b"\0\0", b"\0\0\0", b"\0\0\0\0", b"\0\0\0\0\0\0\0\0\0"])
def test_a_frame_too_short_or_wrong_poisons(frame: bytes) -> None:
    machine = ready()
    call = submit(machine)
    sent(machine)
    machine.frame_received(frame, 0)
    assert error_of(call, RemoteProtocolError).broker == BROKER
    assert machine.state is State.CLOSED


def test_a_truncated_body_poisons_all_calls() -> None:
    whole = None
    for cut in range(1, 60):
        machine = ready()
        calls = [submit(machine), submit(machine)]
        frame = answer_to(sent(machine)[0], metadata())[4:]
        whole = len(frame)
        if cut >= whole:
            break
        machine.frame_received(frame[:-cut], 0)
        assert calls[0].error is calls[1].error is machine.error
        assert isinstance(machine.error, RemoteProtocolError)
    assert whole is not None


def test_a_produce_without_acks_ends_when_written_and_awaits_no_answer() -> None:
    machine = ready()
    silent = submit(machine, ProduceRequest(acks=0, timeout_ms=1))
    after = submit(machine)
    assert not silent.is_done
    produced, asked = sent(machine)
    assert produced.name == "Produce"
    assert silent.results == [None]
    receive(machine, answer_to(asked, metadata()))
    assert isinstance(after.results[0], MetadataResponse)


def test_a_produce_without_acks_that_cannot_be_written_in_time_closes() -> None:
    machine = ready()
    silent = submit(machine, ProduceRequest(acks=0, timeout_ms=1), timeout=5)
    assert machine.poll(4.9) == []
    (close,) = machine.poll(5)
    assert isinstance(close, Close)
    assert "takes no more bytes" in str(error_of(silent, RequestTimeoutError))
    assert "takes no more bytes" in str(close.error)


def test_a_callers_deadline_ends_the_wait_alone_and_its_late_answer_is_dropped() -> None:
    machine = ready(request=30)
    short = submit(machine, timeout=1)
    long = submit(machine, timeout=20)
    requests = sent(machine)
    assert machine.next_wakeup() == 1
    assert machine.poll(1) == []
    assert not machine.is_silent(1)
    error = error_of(short, RequestTimeoutError)
    assert (error.broker, error.api) == (BROKER, "Metadata")
    assert isinstance(error, TimeoutError)
    receive(machine, answer_to(requests[0], metadata([(1, "late", 1)])), 2)
    receive(machine, answer_to(requests[1], metadata([(2, "right", 1)])), 3)
    assert long.results[0].brokers[0].host == "right"
    assert machine.state is State.READY


def test_the_dropped_late_answer_is_not_even_decoded() -> None:
    machine = ready()
    submit(machine, timeout=1)
    asked = sent(machine)[0]
    machine.poll(1)
    frame = answer_to(asked, metadata())[4:]
    machine.frame_received(frame + b"\xff" * 9, 2)
    assert machine.state is State.READY


def test_an_answer_overdue_for_the_request_timeout_closes_with_one_cause() -> None:
    machine = ready(request=30)
    short, long = submit(machine, timeout=1), submit(machine, timeout=100)
    sent(machine)
    assert machine.poll(29.9) == [Suspect()]
    (close,) = machine.poll(30)
    assert isinstance(close, Close)
    assert isinstance(short.error, RequestTimeoutError)
    error = error_of(long, TransportError)
    assert error is close.error
    assert "no answer to Metadata within 30 s; the connection is closed" in str(error)


def test_a_long_poll_may_take_longer_than_the_request_timeout() -> None:
    machine = ready(request=30)
    call = submit(machine, timeout=300)
    asked = sent(machine)[0]
    assert machine.poll(299) == [Suspect()]
    receive(machine, answer_to(asked, metadata()), 299.5)
    assert call.results


def test_calls_are_held_until_the_broker_is_known() -> None:
    machine = new(None)
    call = submit(machine, lambda versions: FindCoordinatorRequest(key=versions.release_guess))
    assert machine.data_to_send() == []
    machine.opened(1)
    (asked,) = sent(machine)
    assert (asked.name, asked.header.api_version) == ("Metadata", 1)
    receive(machine, answer_to(asked, metadata()))
    (asked,) = sent(machine)
    assert asked.name == "ApiVersions"
    assert not machine.was_ready
    receive(machine, answer_to(asked, api_versions("2.8")))
    assert machine.was_ready
    (asked,) = sent(machine)
    assert asked.request.coordinator_keys == [] or asked.request.key == "2.8"
    receive(machine, answer_to(asked, FindCoordinatorResponse()))
    assert isinstance(call.results[0], FindCoordinatorResponse)


def test_a_held_calls_deadline_runs() -> None:
    machine = new(None)
    call, later = submit(machine, timeout=2), submit(machine, timeout=3)
    assert machine.next_wakeup() == 2
    machine.poll(2)
    assert "still in state connecting" in str(error_of(call, RequestTimeoutError))
    machine.opened(2)
    receive(machine, answer_to(sent(machine)[0], metadata()), 2)
    receive(machine, answer_to(sent(machine)[0], api_versions()), 2)
    assert [asked.name for asked in sent(machine)] == ["Metadata"], "the call that timed out is not sent"
    assert not later.is_done


def test_0_8_is_dialled_again_and_nothing_is_lost() -> None:
    machine = new(None)
    call = submit(machine)
    machine.opened(0)
    receive(machine, answer_to(sent(machine)[0], metadata(), version=0))
    assert [asked.name for asked in sent(machine)] == ["ListGroups"]
    machine.connection_lost(TransportError("the peer closed the connection"), 1)
    assert machine.poll(1) == [Redial()]
    assert machine.state is State.CONNECTING
    machine.opened(2)
    (asked,) = sent(machine)
    assert (asked.name, asked.header.api_version) == ("Metadata", 0)
    receive(machine, answer_to(asked, metadata(), version=0))
    assert call.results
    assert machine.versions is not None
    assert machine.versions.release_guess == "0.8"


def test_0_9_is_known_by_its_answer() -> None:
    machine = new(None)
    machine.opened(0)
    receive(machine, answer_to(sent(machine)[0], metadata(), version=0))
    receive(machine, answer_to(sent(machine)[0], list_groups()))
    assert machine.versions == BrokerVersions.of_release("0.9.0")


@pytest.mark.parametrize("is_opened", [False, True])
def test_a_setup_that_takes_too_long_fails_the_held_calls(is_opened: bool) -> None:
    machine = new(None, setup=10)
    call = submit(machine, timeout=60)
    if is_opened:
        machine.opened(1)
    assert machine.next_wakeup() == 10
    (close,) = machine.poll(10)
    assert isinstance(close, Close)
    error = error_of(call, TransportError)
    assert ("ZooKeeper" in str(error)) is is_opened
    assert error.broker == BROKER


def test_a_lost_connection_fails_open_and_held_calls_with_one_cause() -> None:
    machine = new(None)
    calls = [submit(machine), submit(machine)]
    lost = TransportError("cannot connect")
    machine.connection_lost(lost, 1)
    assert [call.error for call in calls] == [lost, lost]
    assert lost.broker == BROKER
    machine = ready()
    calls = [submit(machine), submit(machine, ProduceRequest(acks=0))]
    machine.connection_lost(lost, 1)
    assert [call.error for call in calls] == [lost, lost]
    machine.connection_lost(TransportError("again"), 2)
    assert machine.error is lost


def test_closing_from_this_side_fails_open_calls_as_closed() -> None:
    machine = ready()
    call = submit(machine)
    machine.close()
    assert error_of(call, ClosedError).broker == BROKER
    assert machine.next_wakeup() is None


def test_a_peer_that_owes_an_answer_and_says_nothing_is_suspected_now_and_again() -> None:
    machine = ready()
    submit(machine, now=10, timeout=30)
    asked = sent(machine)[0]
    assert machine.next_wakeup() == 10 + SILENCE
    assert machine.poll(10 + SILENCE - 0.1) == []
    assert not machine.is_silent(12)
    for turn in (1, 2, 3):
        assert machine.poll(10 + turn * SILENCE) == [Suspect()]
        assert machine.is_silent(10 + turn * SILENCE)
        assert machine.poll(10 + turn * SILENCE + 0.1) == []
    submit(machine, now=20, timeout=30)
    receive(machine, answer_to(asked, metadata()), 20)
    assert not machine.is_silent(20 + SILENCE - 0.1), "it speaks: the next answer may take its time"
    assert machine.next_wakeup() == 20 + SILENCE
    receive(machine, answer_to(sent(machine)[0], metadata()), 21)
    assert not machine.is_silent(100)
    assert machine.poll(100) == []


@pytest.mark.parametrize(
    ("request_", "held"),
    [
        (FetchRequest(max_wait_ms=20_000, min_bytes=1), 20),
        (JoinGroupRequest(group_id="g", session_timeout_ms=10_000, rebalance_timeout_ms=60_000, member_id=""), 60),
        (JoinGroupRequest(group_id="g", session_timeout_ms=10_000, member_id=""), 10),
        (SyncGroupRequest(group_id="g", member_id="m"), SYNC_HELD),
        (SyncGroupRequest(group_id="g", member_id="m", assignments=[SyncGroupRequestAssignment(member_id="m")]), 0),
    ],
    ids=["long poll", "join", "join in version 0", "sync", "the leader's sync"],
)
def test_an_answer_that_may_be_held_back_is_not_missed_before(request_: Any, held: float) -> None:
    machine = ready()
    first = submit(machine, now=10, timeout=100)
    submit(machine, request_, now=10, timeout=100)
    receive(machine, answer_to(sent(machine)[0], metadata()), 12)
    assert first.results
    due = 12 + held + SILENCE
    assert machine.next_wakeup() == due
    assert machine.poll(due - 0.1) == []
    assert not machine.is_silent(due - 0.1)
    assert machine.poll(due) == [Suspect()]
    assert machine.is_silent(due)
    assert machine.next_wakeup() == due + SILENCE


def test_an_unused_connection_is_closed_and_a_used_one_is_not() -> None:
    machine = ready(idle=100, request=1000)
    call = submit(machine, now=10, timeout=1000)
    asked = sent(machine)[0]
    assert machine.poll(500) == [Suspect()]
    receive(machine, answer_to(asked, metadata()), 500)
    assert call.results
    assert machine.next_wakeup() == 600
    assert machine.poll(599) == []
    (close,) = machine.poll(600)
    assert isinstance(close, Close)
    assert machine.was_idle


def test_a_version_that_the_broker_lacks_fails_that_call_alone() -> None:
    machine = ready("0.8.0")
    call = submit(machine, FindCoordinatorRequest(key="g"))
    other = submit(machine)
    error = error_of(call, UnsupportedVersionError)
    assert (error.broker, error.api) == (BROKER, "FindCoordinator")
    assert not other.is_done
    assert len(sent(machine)) == 1


def test_a_version_asked_for_is_used() -> None:
    machine = ready()
    submit(machine, version=4)
    assert sent(machine)[0].header.api_version == 4


def test_what_the_callers_own_code_raises_comes_back_to_the_caller() -> None:
    def broken(versions: BrokerVersions) -> Request[Any]:
        raise ZeroDivisionError("no")

    machine = new(None)
    call, other = submit(machine, broken), submit(machine)
    machine.opened(0)
    receive(machine, answer_to(sent(machine)[0], metadata()))
    receive(machine, answer_to(sent(machine)[0], api_versions()))
    assert isinstance(call.error, ZeroDivisionError)
    assert [asked.name for asked in sent(machine)] == ["Metadata"]
    assert not other.is_done


def test_correlation_ids_start_again_at_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_module, "LAST_CORRELATION_ID", 2)
    machine = ready()
    for _ in range(5):
        submit(machine)
    assert [asked.header.correlation_id for asked in sent(machine)] == [0, 1, 2, 0, 1]


def test_answered_calls_do_not_pile_up() -> None:
    machine = ready()
    for number in range(2_000):
        submit(machine, now=number / 1000)
        receive(machine, answer_to(sent(machine)[0], metadata()))
    assert len(machine._deadlines) < 100


@given(st.lists(st.sampled_from(["submit", "acks0", "answer", "wait", "write"]), max_size=60), st.booleans())
def test_every_call_ends_once_whatever_happens(steps: list[str], is_lost: bool) -> None:
    """Answers in order, time-outs and writes in any mix: nothing is answered twice, wrongly, or not at all."""
    machine = ready(request=30)
    now, made, due = 0.0, [], []
    for step in steps:
        now += 0.5
        if step == "submit":
            made.append(submit(machine, now=now, timeout=3))
        elif step == "acks0":
            made.append(submit(machine, ProduceRequest(acks=0), now=now, timeout=40))
        elif step == "wait":
            now += 3
            machine.poll(now)
        elif step == "write":
            due += [asked for asked in sent(machine) if asked.name != "Produce"]
        elif due:
            receive(machine, answer_to(due.pop(0), metadata()), now)
        if machine.state is State.CLOSED:
            break
    if is_lost:
        machine.connection_lost(TransportError("gone"), now)
    machine.poll(now + 100)
    machine.poll(now + 200)
    assert all(call.is_done for call in made)
    if machine.error is not None:
        assert not isinstance(machine.error, RemoteProtocolError)


# --- throttling (KIP-219) ---


def throttle(machine: ConnectionMachine, milliseconds: int, now: float, version: int = 9) -> None:
    """A Metadata call whose answer throttles."""
    call = submit(machine, now=now, version=version)
    (asked,) = sent(machine)
    response = metadata()
    response.throttle_time_ms = milliseconds
    receive(machine, answer_to(asked, response), now)
    assert call.is_done


def test_a_throttled_connection_holds_its_calls_back_and_sends_them_in_order() -> None:
    machine = ready()
    throttle(machine, 1500, 10)
    assert machine.poll(10) == [Throttled(1.5)]
    assert machine.next_wakeup() == 11.5
    calls = [submit(machine, now=now, version=version) for now, version in ((10, 9), (11, 10), (11.4, 11))]
    assert sent(machine) == []
    assert machine.poll(11.4) == []
    assert machine.next_wakeup() == 11.5
    machine.poll(11.5)
    assert [asked.header.api_version for asked in sent(machine)] == [9, 10, 11]
    assert not any(call.is_done for call in calls)
    submit(machine, now=11.6)
    assert len(sent(machine)) == 1


def test_a_call_made_as_throttling_ends_goes_behind_those_that_were_held() -> None:
    machine = ready()
    throttle(machine, 1000, 0)
    submit(machine, now=0.5, version=9)
    submit(machine, now=1.0, version=10)
    assert [asked.header.api_version for asked in sent(machine)] == [9, 10]


def test_a_call_that_is_held_until_its_deadline_says_why() -> None:
    machine = ready()
    throttle(machine, 9000, 0)
    call = submit(machine, now=1, timeout=2)
    machine.poll(3)
    assert "the broker throttles this client" in str(error_of(call, RequestTimeoutError))
    machine.poll(9)
    assert sent(machine) == []


def test_a_broker_that_has_waited_itself_is_not_waited_for_again() -> None:
    machine = ready()
    throttle(machine, 9000, 0, version=5)
    assert machine.poll(0) == []
    submit(machine, now=0)
    assert len(sent(machine)) == 1


def test_the_versions_that_throttle_are_those_that_are_declared() -> None:
    for key, first in FIRST_TO_HOLD_BACK.items():
        request, response = REGISTRY[ApiKey(key)].load()
        assert first in request.versions
        assert hasattr(response(), "throttle_time_ms")
