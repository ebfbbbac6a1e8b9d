"""The clock of sessions, in virtual time."""

from __future__ import annotations

from pykafka08.zookeeper.events import Connected, SessionLost, Suspended
from pykafka08.zookeeper.session import DropConnection, Heartbeat, Renew, SessionClock, State, Tell

TIMEOUT = 6.0
ID = 77


def connected_clock() -> SessionClock:
    clock = SessionClock(TIMEOUT)
    clock.connected(ID, TIMEOUT, 0.0)
    assert clock.poll(0.0) == [Tell(Connected(ID, is_new=True))]
    return clock


def test_nothing_is_sure_before_there_is_a_session() -> None:
    clock = SessionClock(TIMEOUT)
    assert clock.session_id is None
    assert clock.delivery_deadline < -1e9
    assert clock.poll(100.0) == []
    assert clock.next_wakeup() is None


def test_the_server_decides_the_time_out() -> None:
    clock = SessionClock(TIMEOUT)
    clock.connected(ID, 4.0, 10.0)
    assert clock.timeout == 4.0
    assert clock.delivery_deadline == 13.0


def test_a_silent_session_is_asked_once_and_answers_count_from_when_they_were_asked_for() -> None:
    clock = connected_clock()
    assert clock.poll(0.9) == []
    assert clock.next_wakeup() == 1.0
    assert clock.poll(1.0) == [Heartbeat()]
    assert clock.poll(1.5) == []
    assert clock.delivery_deadline == 4.5
    clock.answered(1.0, 1)
    assert clock.delivery_deadline == 5.5
    assert clock.poll(1.9) == []
    assert clock.poll(2.0) == [Heartbeat()]


def test_any_answer_is_a_sign_of_life() -> None:
    clock = connected_clock()
    for at in range(1, 50):
        clock.answered(at * 0.5, 1)
        assert clock.poll(at * 0.5 + 0.4) == []


def test_an_older_answer_changes_nothing() -> None:
    clock = connected_clock()
    clock.answered(3.0, 1)
    clock.answered(2.0, 1)
    assert clock.delivery_deadline == 7.5


def test_a_connection_that_does_not_answer_is_dropped_before_the_session_can_end() -> None:
    clock = connected_clock()
    assert clock.poll(1.0) == [Heartbeat()]
    assert clock.next_wakeup() == 4.0
    assert clock.poll(4.0) == [DropConnection(), Tell(Suspended(4.0))]
    assert clock.state is State.SUSPENDED
    assert clock.next_wakeup() == TIMEOUT


def test_the_session_is_lost_when_the_server_may_have_ended_it_and_delivery_ends_before() -> None:
    clock = connected_clock()
    clock.disconnected(2.0)
    assert clock.poll(2.0) == [Tell(Suspended(2.0))]
    assert clock.delivery_deadline == 4.5
    assert clock.poll(5.9) == []
    assert clock.session_id == ID
    assert clock.poll(6.0) == [Tell(SessionLost(6.0))]
    assert clock.session_id is None
    assert clock.number == 2
    assert clock.delivery_deadline < -1e9


def test_the_same_session_in_time_goes_on() -> None:
    clock = connected_clock()
    clock.disconnected(2.0)
    clock.connected(ID, TIMEOUT, 3.0)
    assert clock.poll(3.1) == [Tell(Suspended(2.0)), Tell(Connected(ID, is_new=False))]
    assert clock.number == 1
    assert clock.delivery_deadline == 7.5


def test_a_session_that_was_counted_as_lost_is_ended_when_it_is_found_alive() -> None:
    clock = connected_clock()
    clock.disconnected(2.0)
    clock.poll(6.0)
    clock.connected(ID, TIMEOUT, 7.0)
    assert clock.poll(7.0) == [Renew()]
    assert clock.session_id is None
    clock.connected(ID + 1, TIMEOUT, 8.0)
    assert clock.poll(8.0) == [Tell(Connected(ID + 1, is_new=True))]


def test_the_server_ends_a_session() -> None:
    clock = connected_clock()
    clock.expired(3.0)
    assert clock.poll(3.0) == [Tell(SessionLost(3.0))]
    clock.expired(3.1)
    assert clock.poll(3.1) == []
    clock.connected(ID + 1, TIMEOUT, 4.0)
    assert clock.poll(4.0) == [Tell(Connected(ID + 1, is_new=True))]


def test_an_answer_from_the_session_before_proves_nothing() -> None:
    clock = connected_clock()
    clock.expired(3.0)
    clock.connected(ID + 1, TIMEOUT, 4.0)
    clock.answered(5.0, 1)
    assert clock.delivery_deadline == 8.5


def test_a_loop_that_stood_still_knows_nothing_until_it_has_asked() -> None:
    clock = connected_clock()
    # Nothing was polled for ten seconds; kazoo's thread may have kept the session, or may not.
    assert clock.delivery_deadline < 10.0
    assert clock.poll(10.0) == [Heartbeat()]
    clock.answered(10.0, 1)
    assert clock.delivery_deadline == 14.5
