"""Renewals of the SASL session of one connection as pure state (KIP-368)."""

from __future__ import annotations

from math import inf

import pytest

from pykafka08.connection.actions import Authenticate, Close
from pykafka08.connection.machine import State
from pykafka08.connection.session import RENEWAL_INTERVAL, Session
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import AuthenticationError, TransportError
from pykafka08.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from pykafka08.protocol.messages.sasl_handshake import SaslHandshakeResponse
from tests.connection.answers import metadata
from tests.connection.sasl_peer import FIRST, SECOND, Ended, Peer, closing_error, renewing, throttled


def test_a_limited_session_is_renewed_in_time_with_one_flight() -> None:
    peer = Peer()
    peer.authenticate(lifetime_ms=100_000)
    renewed_at = peer.machine.next_wakeup()
    assert renewed_at is not None
    assert 75 <= renewed_at <= 85
    before = peer.submit(now=renewed_at)
    (pending,) = peer.sent()
    assert peer.polled(renewed_at) == [Authenticate(None)]
    free = peer.submit(now=renewed_at)
    (answered_late,) = peer.sent()  # until there is a token nothing is held
    peer.machine.token_made(FIRST, renewed_at)
    held = peer.submit(now=renewed_at)
    handshake, token = peer.sent()
    assert [handshake.name, token.name] == ["SaslHandshake", "SaslAuthenticate"]
    peer.answers(pending, metadata(), renewed_at)
    peer.answers(answered_late, metadata(), renewed_at)
    assert before.results
    assert free.results
    peer.answers(handshake, SaslHandshakeResponse(mechanisms=["SCRAM-SHA-256"]), renewed_at)
    peer.answers(token, SaslAuthenticateResponse(auth_bytes=b"ok", session_lifetime_ms=100_000), renewed_at)
    assert peer.polled(renewed_at) == [Authenticate(b"ok")]
    assert peer.sent() == []
    peer.machine.token_made(None, renewed_at)
    (asked,) = peer.sent()
    peer.answers(asked, metadata(), renewed_at)
    assert held.results
    peer.polled(renewed_at + 5)  # the deadlines of the calls
    assert peer.machine.next_wakeup() == pytest.approx(2 * renewed_at)


@pytest.mark.parametrize(
    ("tokens", "may_be_followed", "round_trips_held"), [(1, False, 1), (2, True, 1), (2, False, 2), (3, True, 2)]
)
def test_requests_wait_for_a_renewal_no_longer_than_its_tokens_travel(
    tokens: int, may_be_followed: bool, round_trips_held: int
) -> None:
    """None is lost, doubled or reordered; SaslHandshake takes no round trip, and the last token of several none."""
    peer = Peer()
    peer.authenticate(lifetime_ms=100_000)
    renewed_at = peer.machine.next_wakeup()
    assert renewed_at is not None
    before = [peer.submit(now=renewed_at) for _ in range(50)]
    flight = peer.sent()
    assert peer.polled(renewed_at) == [Authenticate(None)]
    peer.machine.token_made(FIRST, renewed_at)
    flight += peer.sent()
    during, now, made, sent_after = [], renewed_at, 1, 0
    for round_trips in range(1, tokens + 2):
        now += 1.0
        during.append(peer.submit(now=now - 0.5, timeout=60))
        for asked in flight:
            if asked.name == "SaslHandshake":
                peer.answers(asked, SaslHandshakeResponse(mechanisms=["SCRAM-SHA-256"]), now)
            elif asked.name == "SaslAuthenticate":
                peer.answers(asked, SaslAuthenticateResponse(auth_bytes=b"t", session_lifetime_ms=100_000), now)
                assert peer.polled(now)[0] == Authenticate(b"t")
                made += 1
                token = SECOND if made <= tokens else None
                peer.machine.token_made(token, now, may_be_followed=may_be_followed and made == tokens)
            else:
                peer.answers(asked, metadata(), now)
        flight = peer.sent()
        if not sent_after and any(each.name == "Metadata" for each in flight):
            sent_after = round_trips
    for asked in flight:
        peer.answers(asked, metadata(), now)
    assert sent_after == round_trips_held
    assert all(len(call.results) == 1 and call.error is None for call in (*before, *during))


def test_a_refused_last_token_fails_the_requests_behind_it() -> None:
    """The broker has not served them; the next connection tells whether the credentials are wrong."""
    peer, held, first, now = renewing()
    peer.answers(first, SaslAuthenticateResponse(auth_bytes=b"challenge"), now)
    assert peer.polled(now) == [Authenticate(b"challenge")]
    peer.machine.token_made(SECOND, now, may_be_followed=True)
    free = peer.submit(now=now)
    token, *behind = peer.sent()
    assert [token.name, *(each.name for each in behind)] == ["SaslAuthenticate", "Metadata", "Metadata"]
    peer.answers(token, SaslAuthenticateResponse(error_code=ErrorCode.SASL_AUTHENTICATION_FAILED), now)
    for call in (held, free):
        assert type(call.error) is TransportError
        assert isinstance(call.error.__cause__, AuthenticationError)


def test_a_renewal_of_a_throttled_connection_sends_nothing_before_the_pause_is_over() -> None:
    peer, now = throttled(3000)
    assert Authenticate(None) in peer.polled(now)
    peer.machine.token_made(FIRST, now)
    peer.sent()
    held = peer.submit(now=now, timeout=60)
    peer.machine.token_made(SECOND, now, may_be_followed=True)
    assert peer.names() == ["SaslAuthenticate"]
    assert peer.machine.next_wakeup() == now + 3
    peer.polled(now + 3)
    assert peer.names() == ["Metadata"]
    assert held.error is None


def test_a_session_without_a_limit_is_not_renewed() -> None:
    peer = Peer()
    peer.authenticate()
    assert peer.machine.next_wakeup() == 540  # idle


def test_renewals_do_not_keep_an_idle_connection_open() -> None:
    peer = Peer()
    peer.authenticate(lifetime_ms=100_000)
    now = 0.0
    for _ in range(20):
        now = peer.machine.next_wakeup() or now
        actions = peer.polled(now)
        if not actions or isinstance(actions[0], Close):
            break
        peer.machine.token_made(FIRST, now)
        handshake, token = peer.sent()
        peer.answers(handshake, SaslHandshakeResponse(mechanisms=["SCRAM-SHA-256"]), now)
        peer.answers(token, SaslAuthenticateResponse(session_lifetime_ms=100_000), now)
        assert peer.polled(now) == [Authenticate(b"")]
        peer.machine.token_made(None, now)
    assert now == 540
    assert peer.machine.was_idle


def test_a_token_that_cannot_be_had_is_asked_for_again_while_the_session_lasts() -> None:
    peer = Peer()
    peer.authenticate(lifetime_ms=100_000)
    now = peer.machine.next_wakeup() or 0
    peer.polled(now)
    failure = AuthenticationError("the token endpoint is away")
    assert not peer.machine.authentication_failed(failure, now)
    assert peer.machine.state is State.READY
    again = peer.machine.next_wakeup()
    assert again == now + 5
    assert peer.polled(again) == [Authenticate(None)]
    call = peer.submit(now=100)
    assert peer.machine.authentication_failed(failure, 100)
    assert isinstance(call.error, TransportError), "the next connection tells whether the credentials are wrong"
    assert call.error.__cause__ is failure


def test_calls_of_a_connection_that_cannot_renew_may_be_sent_on_another() -> None:
    peer, held, token, now = renewing()
    peer.answers(token, SaslAuthenticateResponse(error_code=ErrorCode.SASL_AUTHENTICATION_FAILED), now)
    assert type(held.error) is TransportError
    assert isinstance(held.error.__cause__, AuthenticationError)


@pytest.mark.parametrize("step", ["SaslHandshake", "SaslAuthenticate", "last SaslAuthenticate"])
def test_silence_in_a_renewal_ends_the_connection_with_the_calls_it_holds(step: str) -> None:
    peer = Peer()
    peer.authenticate(lifetime_ms=100_000)
    now = peer.machine.next_wakeup() or 0
    peer.polled(now)
    peer.machine.token_made(FIRST, now)
    call = peer.submit(now=now, timeout=60)
    handshake, token = peer.sent()
    if step != "SaslHandshake":
        now += 9
        peer.answers(handshake, SaslHandshakeResponse(mechanisms=["SCRAM-SHA-256"]), now)
    if step.startswith("last"):
        now += 9
        peer.answers(token, SaslAuthenticateResponse(auth_bytes=b"challenge"), now)
        peer.polled(now)
        peer.machine.token_made(SECOND, now, may_be_followed=True)
        assert peer.names() == ["SaslAuthenticate", "Metadata"]
    assert not [each for each in peer.polled(now + 9.9) if isinstance(each, Close)]
    assert peer.machine.suspects_before(now + 10.1)
    assert closing_error(peer, now + 10) is call.error
    assert type(call.error) is TransportError
    assert f"could not be renewed: no answer to {step.split()[-1]} within 10 s" in str(call.error)


def test_the_time_of_a_renewal_begins_after_the_answers_that_are_due_before() -> None:
    """A broker may keep those back for longer, as the answers to Fetch and JoinGroup."""
    peer = Peer()
    peer.authenticate(lifetime_ms=100_000)
    now = peer.machine.next_wakeup() or 0
    before = peer.submit(now=now, timeout=60)
    (asked,) = peer.sent()
    peer.polled(now)
    peer.machine.token_made(FIRST, now)
    peer.sent()
    assert not [each for each in peer.polled(now + 25) if isinstance(each, Close)]
    peer.answers(asked, metadata(), now + 25)
    assert before.results
    assert peer.machine.suspects_before(now + 35.1)
    assert not [each for each in peer.polled(now + 34.9) if isinstance(each, Close)]
    assert isinstance(closing_error(peer, now + 35), TransportError)


def test_the_time_of_a_renewal_begins_after_throttling() -> None:
    peer, now = throttled(60_000)
    peer.polled(now)
    peer.machine.token_made(FIRST, now)
    for seconds in (30, 60, 69.9):
        assert not [each for each in peer.polled(now + seconds) if isinstance(each, Close)]
    assert isinstance(closing_error(peer, now + 70), TransportError)


def test_a_mechanism_that_is_late_in_a_renewal_does_not_hold_calls_longer_than_a_broker() -> None:
    peer = Peer(source="the vault")
    peer.authenticate(lifetime_ms=100_000)
    now = peer.machine.next_wakeup() or 0
    assert peer.polled(now) == [Authenticate(None)]
    assert peer.polled(now + 20) == [], "no call is held before the first token"
    peer.machine.token_made(FIRST, now)
    held = peer.submit(now=now, timeout=60)
    handshake, token = peer.sent()
    peer.answers(handshake, SaslHandshakeResponse(mechanisms=["SCRAM-SHA-256"]), now)
    peer.answers(token, SaslAuthenticateResponse(auth_bytes=b"challenge"), now)
    assert peer.polled(now) == [Authenticate(b"challenge")]
    assert peer.machine.next_wakeup() == now + 10
    closing_error(peer, now + 10)
    assert type(held.error) is TransportError
    assert "could not be renewed: the vault returned no credentials within 10 s" in str(held.error)


def test_a_renewal_follows_the_one_before_after_a_second() -> None:
    """Earlier the broker would refuse it; so calls are held where the session is shorter, and no longer than that."""
    peer = Peer()
    peer.authenticate(lifetime_ms=400)
    first_at = peer.machine.next_wakeup()
    assert first_at is not None
    assert 0.3 <= first_at <= 0.34, "the first renewal needs no interval"
    peer.renew(first_at, lifetime_ms=400)
    hold_at = peer.machine.next_wakeup()
    assert hold_at == pytest.approx(2 * first_at)
    sent_before = peer.submit(now=first_at)
    (asked,) = peer.sent()
    peer.answers(asked, metadata(), first_at)
    assert sent_before.results
    assert peer.polled(hold_at) == []
    held = peer.submit(now=hold_at)
    assert peer.sent() == []
    second_at = peer.machine.next_wakeup()
    assert second_at == first_at + RENEWAL_INTERVAL
    assert peer.polled(second_at - 0.001) == []
    peer.renew(second_at, lifetime_ms=100_000)
    (asked,) = peer.sent()
    peer.answers(asked, metadata(), second_at)
    assert held.results


def test_no_renewal_is_early_where_the_session_outlives_the_interval() -> None:
    session = Session(0.5)
    session.token_sent_at, session.is_renewing = 10.0, True
    session.begun(2.0, 10.1)
    assert (session.renew_at, session.hold_at, session.ends_at) == (11.6, inf, 12.0)


def test_a_session_begins_when_the_token_was_sent() -> None:
    """The broker's session begins when it has checked the token, and the requests travel as long as the token did."""
    peer = Peer()
    (handshake,) = peer.sent()
    peer.answers(handshake, SaslHandshakeResponse(mechanisms=["SCRAM-SHA-256"]), 1)
    peer.polled(1)
    peer.machine.token_made(FIRST, 2)
    (token,) = peer.sent()
    peer.answers(token, SaslAuthenticateResponse(auth_bytes=b"ok", session_lifetime_ms=10_000), 9)
    peer.polled(9)
    peer.machine.token_made(None, 9)
    assert peer.machine.next_wakeup() == 2 + 8


def test_a_renewed_session_may_have_no_limit() -> None:
    peer = Peer()
    peer.authenticate(lifetime_ms=10_000)
    peer.renew(8, lifetime_ms=0)
    peer.submit(now=100, timeout=0)
    assert [each.name for each in peer.sent()] == ["Metadata"]
    assert peer.polled(100) == []


def holding(timeout: float = 60) -> tuple[Peer, Ended]:
    """A connection that holds a call, because its session ends before the broker takes the next renewal."""
    peer = Peer()
    peer.authenticate(lifetime_ms=400)
    peer.renew(0.33, lifetime_ms=400)
    held = peer.submit(now=0.66, timeout=timeout)
    assert peer.sent() == [], "submit may come before poll"
    assert peer.polled(0.67) == []
    assert peer.submit(now=0.67).error is None
    assert peer.sent() == []
    return peer, held


def test_a_token_that_is_late_in_the_hold_ends_the_connection() -> None:
    peer, held = holding()
    assert peer.polled(1.33) == [Authenticate(None)]
    gives_up_at = 1.33 + 10
    assert peer.polled(gives_up_at - 0.001) == []
    assert peer.machine.next_wakeup() == pytest.approx(gives_up_at)
    peer.polled(gives_up_at + 0.001)
    assert isinstance(held.error, TransportError)
    assert "could not be renewed: SASL authentication was not finished within 10 s" in str(held.error)


def test_a_token_that_cannot_be_had_in_the_hold_ends_the_connection_at_once() -> None:
    """Calls are repeated on the next connection, which tells whether the credentials are wrong."""
    peer, held = holding()
    peer.polled(1.33)
    assert peer.machine.authentication_failed(AuthenticationError("the token endpoint is away"), 1.4)
    assert isinstance(held.error, TransportError)
    assert "could not be renewed: the token endpoint is away" in str(held.error)


def test_a_call_whose_time_ends_in_the_hold_says_why() -> None:
    peer, held = holding(timeout=0.1)
    peer.polled(0.77)
    assert "was not sent before its deadline: the SASL session must be renewed first" in str(held.error)


def test_a_connection_that_holds_calls_is_not_idle() -> None:
    peer, held = holding(timeout=2000)
    peer.machine.last_activity = -1000.0
    assert peer.polled(1.0) == []
    assert (peer.machine.state, held.error) == (State.READY, None)


def test_calls_are_held_from_the_end_of_a_session_until_there_is_a_token() -> None:
    peer = Peer()
    peer.authenticate(lifetime_ms=10_000)
    assert peer.polled(8.5) == [Authenticate(None)]
    before = peer.submit(now=9.9)
    (asked,) = peer.sent()
    peer.answers(asked, metadata(), 9.9)
    assert before.results
    held = peer.submit(now=10)
    peer.polled(10)
    assert peer.sent() == []
    peer.machine.token_made(FIRST, 11)
    handshake, token = peer.sent()
    peer.answers(handshake, SaslHandshakeResponse(mechanisms=["SCRAM-SHA-256"]), 11)
    peer.answers(token, SaslAuthenticateResponse(auth_bytes=b"ok", session_lifetime_ms=10_000), 11)
    peer.polled(11)
    peer.machine.token_made(None, 11)
    (asked,) = peer.sent()
    peer.answers(asked, metadata(), 11)
    assert held.results


def test_held_calls_wait_for_the_end_of_throttling_too() -> None:
    peer = Peer()
    peer.authenticate(lifetime_ms=400)
    peer.renew(0.33, lifetime_ms=400)
    first = peer.submit(now=0.5)
    (asked,) = peer.sent()
    held = peer.submit(now=0.66, timeout=60)
    answer = metadata()
    answer.throttle_time_ms = 5000
    peer.answers(asked, answer, 0.66)
    assert first.results
    peer.polled(0.67)
    peer.renew(1.33, lifetime_ms=100_000)
    assert peer.sent() == []
    peer.polled(5.67)
    (asked,) = peer.sent()
    peer.answers(asked, metadata(), 5.67)
    assert held.results


def test_the_error_of_a_refused_renewal_names_the_error_code() -> None:
    _, held, _, _ = renewing(ErrorCode.ILLEGAL_SASL_STATE)
    assert isinstance(held.error, TransportError)
    assert "could not be renewed: the broker refused SaslHandshake: ILLEGAL_SASL_STATE" in str(held.error)
