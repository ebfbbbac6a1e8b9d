"""SASL on one connection as pure state: what is sent when, what the broker's answers mean, and renewals."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pykafka08.connection.actions import Action, Authenticate, Close, Redial
from pykafka08.connection.authentication import Authentication
from pykafka08.connection.handshake import Handshake
from pykafka08.connection.machine import ConnectionMachine, State
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import AuthenticationError, KafkaError, RemoteProtocolError, TransportError
from pykafka08.protocol.messages.metadata import MetadataRequest
from pykafka08.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from pykafka08.protocol.messages.sasl_handshake import SaslHandshakeResponse
from pykafka08.protocol.versions import BrokerVersions
from tests.connection.answers import Asked, answer_to, api_versions, framed, metadata, read_requests

BROKER = "h:9093"
FIRST, SECOND = b"client-first", b"client-final"


class Ended:
    """The outcome of one call."""

    def __init__(self) -> None:
        self.results: list[Any] = []
        self.error: BaseException | None = None

    def set_result(self, result: Any) -> None:
        self.results.append(result)

    def set_exception(self, error: BaseException) -> None:
        self.error = error


class Peer:
    """A machine with a broker that a test plays; the test plays the mechanism too."""

    def __init__(
        self,
        release: str | None = "4.3",
        mechanism: str = "SCRAM-SHA-256",
        *,
        may_pass: bool = False,
        setting: str | None = None,
        uses_tls: bool = False,
        source: str | None = None,
        was_served: bool = False,
        is_delegation_token: bool = False,
    ) -> None:
        known = BrokerVersions.of_release(release) if release is not None else None
        self.machine = ConnectionMachine(
            BROKER,
            "me",
            Handshake(BROKER, "1.0", known=known, mechanism=mechanism),
            Authentication(
                mechanism,
                BROKER,
                setting=setting,
                uses_tls=uses_tls,
                credentials_source=source,
                was_served=was_served,
                is_delegation_token=is_delegation_token,
            ),
            may_pass=may_pass,
            now=0,
            setup_deadline=10,
            request_timeout=30,
            renewal_timeout=10,
            max_idle=540,
        )
        self.machine.opened(0)

    def sent(self) -> list[Asked]:
        return read_requests(self.written())

    def written(self) -> bytes:
        stream = b"".join(self.machine.data_to_send())
        self.machine.data_sent()
        return stream

    def names(self) -> list[str]:
        return [each.name for each in self.sent()]

    def answers(self, asked: Asked, response: Any, now: float = 0) -> None:
        self.machine.frame_received(answer_to(asked, response)[4:], now)

    def polled(self, now: float = 0) -> list[Action]:
        return self.machine.poll(now)

    def submit(self, now: float = 0, timeout: float = 5) -> Ended:
        ended = Ended()
        self.machine.submit(MetadataRequest(topics=[]), None, ended, now + timeout, now)
        return ended

    def authenticate(self, now: float = 0, *, lifetime_ms: int = 0) -> None:
        """Play an exchange of one token to its end."""
        (handshake,) = self.sent()
        self.answers(handshake, SaslHandshakeResponse(mechanisms=["SCRAM-SHA-256"]), now)
        assert self.polled(now) == [Authenticate(None)]
        self.machine.token_made(FIRST, now)
        (token,) = self.sent()
        self.answers(token, SaslAuthenticateResponse(auth_bytes=b"ok", session_lifetime_ms=lifetime_ms), now)
        assert self.polled(now) == [Authenticate(b"ok")]
        self.machine.token_made(None, now)
        assert self.machine.state is State.READY


def closing_error(peer: Peer, now: float = 0) -> KafkaError:
    (action,) = [each for each in peer.polled(now) if isinstance(each, Close)]
    return action.error


def renewing() -> tuple[Peer, Ended, Asked, float]:
    """A connection whose SASL session is being renewed.

    With it a held call, the first SaslAuthenticate, which has no answer yet, and the time.
    """
    peer = Peer()
    peer.authenticate(lifetime_ms=100_000)
    now = peer.machine.next_wakeup() or 0
    peer.polled(now)
    peer.machine.token_made(FIRST, now)
    held = peer.submit(now=now)
    handshake, first = peer.sent()
    peer.answers(handshake, SaslHandshakeResponse(mechanisms=["SCRAM-SHA-256"]), now)
    return peer, held, first, now


def test_api_versions_is_the_first_request_to_a_sasl_listener() -> None:
    peer = Peer(None)
    (asked,) = peer.sent()
    assert (asked.name, asked.header.api_version) == ("ApiVersions", 3)
    peer.answers(asked, api_versions("4.3"))
    assert peer.names() == ["SaslHandshake"]
    assert peer.machine.state is State.AUTHENTICATING


def test_tokens_travel_in_sasl_authenticate_until_the_mechanism_has_succeeded() -> None:
    peer = Peer()
    call = peer.submit()
    (handshake,) = peer.sent()
    assert (handshake.request.mechanism, handshake.header.api_version) == ("SCRAM-SHA-256", 1)
    assert peer.polled() == [Authenticate(None)]
    peer.machine.token_made(FIRST, 0)
    assert peer.sent() == [], "a token waits for the answer to SaslHandshake"
    peer.answers(handshake, SaslHandshakeResponse(mechanisms=["SCRAM-SHA-256"]))
    (first,) = peer.sent()
    assert (first.name, first.header.api_version, first.request.auth_bytes) == ("SaslAuthenticate", 2, FIRST)
    peer.answers(first, SaslAuthenticateResponse(auth_bytes=b"challenge"))
    assert peer.polled() == [Authenticate(b"challenge")]
    peer.machine.token_made(SECOND, 0)
    (second,) = peer.sent()
    peer.answers(second, SaslAuthenticateResponse(auth_bytes=b"proof"))
    assert peer.polled() == [Authenticate(b"proof")]
    assert peer.sent() == [], "calls wait for the end of the exchange"
    peer.machine.token_made(None, 0)
    assert peer.machine.state is State.READY
    (asked,) = peer.sent()
    peer.answers(asked, metadata())
    assert call.results


def test_bare_tokens_follow_sasl_handshake_0() -> None:
    peer = Peer("0.10.2")
    (handshake,) = peer.sent()
    assert handshake.header.api_version == 0
    peer.polled()
    peer.answers(handshake, SaslHandshakeResponse(mechanisms=["SCRAM-SHA-256"]))
    peer.machine.token_made(FIRST, 0)
    assert peer.written() == framed(FIRST)
    peer.machine.frame_received(b"challenge", 0)
    assert peer.polled() == [Authenticate(b"challenge")]
    peer.machine.token_made(SECOND, 0)
    assert peer.written() == framed(SECOND)
    peer.machine.frame_received(b"", 0)  # an empty token is an answer too
    assert peer.polled() == [Authenticate(b"")]
    peer.machine.token_made(None, 0)
    assert peer.machine.state is State.READY


def test_the_last_bare_token_of_gssapi_is_not_answered() -> None:
    peer = Peer("0.9.0", "GSSAPI")
    assert peer.written() == b""
    assert peer.polled() == [Authenticate(None)]
    peer.machine.token_made(FIRST, 0)
    assert peer.written() == framed(FIRST)
    peer.machine.frame_received(b"challenge", 0)
    assert peer.polled() == [Authenticate(b"challenge")]
    peer.machine.token_made(SECOND, 0, is_answered=False)
    assert peer.written() == framed(SECOND)
    assert peer.machine.state is State.READY


def test_a_peer_that_closes_on_every_api_versions_is_0_9_for_gssapi_alone() -> None:
    for mechanism in ("GSSAPI", "PLAIN"):
        peer = Peer(None, mechanism)
        assert [each.header.api_version for each in peer.sent()] == [3]
        peer.machine.connection_lost(TransportError("closed"), 0)
        assert peer.polled() == [Redial()]
        peer.machine.opened(0)
        assert [each.header.api_version for each in peer.sent()] == [0]
        peer.machine.connection_lost(TransportError("closed"), 0)
        if mechanism == "PLAIN":
            assert isinstance(closing_error(peer), TransportError)
            continue
        assert peer.polled() == [Redial()]
        peer.machine.opened(0)
        assert peer.polled() == [Authenticate(None)]
        peer.machine.token_made(FIRST, 0)
        assert peer.written() == framed(FIRST)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (SaslHandshakeResponse(error_code=33, mechanisms=["PLAIN", "GSSAPI"]), "it offers GSSAPI, PLAIN"),
        (SaslHandshakeResponse(error_code=33), "it offers none"),
        (SaslHandshakeResponse(error_code=34), "the listener does not use SASL: set security_protocol"),
        (SaslHandshakeResponse(error_code=-1), "refused SaslHandshake: UNKNOWN_SERVER_ERROR"),
    ],
)
def test_a_refused_mechanism_says_what_to_change(answer: SaslHandshakeResponse, text: str) -> None:
    peer = Peer()
    call = peer.submit()
    peer.answers(peer.sent()[0], answer)
    assert isinstance(call.error, AuthenticationError)
    assert text in str(call.error)
    assert call.error.mechanism == "SCRAM-SHA-256"
    assert call.error.broker == BROKER


@pytest.mark.parametrize(("uses_tls", "protocol"), [(False, "PLAINTEXT"), (True, "SSL")])
def test_a_listener_without_sasl_needs_the_protocol_without_sasl(uses_tls: bool, protocol: str) -> None:
    peer = Peer(uses_tls=uses_tls)
    peer.answers(peer.sent()[0], SaslHandshakeResponse(error_code=34))
    assert f"set security_protocol to {protocol}, or connect" in str(closing_error(peer))


def test_a_mechanism_of_another_name_is_named_as_the_setting_has_it() -> None:
    peer = Peer(mechanism="OAUTHBEARER", setting="AWS_MSK_IAM")
    peer.answers(peer.sent()[0], SaslHandshakeResponse(error_code=33, mechanisms=["SCRAM-SHA-512"]))
    text = str(closing_error(peer))
    assert "does not offer OAUTHBEARER, which sasl_mechanism='AWS_MSK_IAM' uses; it offers SCRAM-SHA-512" in text


@pytest.mark.parametrize("message", [None, "", "Authentication failed", "x" * 30_000])
def test_refused_credentials_carry_the_brokers_reason(message: str | None) -> None:
    peer = Peer()
    call = peer.submit()
    peer.polled()
    peer.answers(peer.sent()[0], SaslHandshakeResponse(mechanisms=["SCRAM-SHA-256"]))
    peer.machine.token_made(FIRST, 0)
    (token,) = peer.sent()
    code = ErrorCode.SASL_AUTHENTICATION_FAILED
    peer.answers(token, SaslAuthenticateResponse(error_code=code, error_message=message))
    assert isinstance(call.error, AuthenticationError)
    assert "check sasl_plain_username and sasl_plain_password" in str(call.error)
    assert (message or code.meaning)[:500] in str(call.error)
    assert len(str(call.error)) < 1000


def test_a_refused_delegation_token_may_have_expired() -> None:
    peer = Peer(is_delegation_token=True)
    peer.answers(peer.sent()[0], SaslHandshakeResponse(mechanisms=["SCRAM-SHA-256"]))
    peer.machine.token_made(FIRST, 0)
    code = ErrorCode.SASL_AUTHENTICATION_FAILED
    peer.answers(peer.sent()[0], SaslAuthenticateResponse(error_code=code))
    text = str(closing_error(peer))
    assert "the id and the HMAC of a delegation token that has not expired" in text


@pytest.mark.parametrize("may_pass", [False, True])
def test_a_broker_before_1_0_refuses_by_closing(may_pass: bool) -> None:
    """Calls repeat themselves for a while where the cluster has taken the credentials before."""
    peer = Peer("0.10.2", may_pass=may_pass)
    peer.polled()
    peer.answers(peer.sent()[0], SaslHandshakeResponse(mechanisms=["SCRAM-SHA-256"]))
    peer.machine.token_made(FIRST, 0)
    peer.written()
    peer.machine.connection_lost(TransportError("closed"), 0)
    error = closing_error(peer)
    assert type(error) is (TransportError if may_pass else AuthenticationError)
    assert peer.machine.is_refused
    assert isinstance(error if not may_pass else error.__cause__, AuthenticationError)


def test_a_close_before_the_token_is_no_refusal() -> None:
    peer = Peer()
    peer.sent()
    peer.machine.connection_lost(TransportError("the peer closed the connection"), 0)
    error = closing_error(peer)
    assert type(error) is TransportError
    assert "during SASL authentication" in str(error)


def test_silence_during_authentication_ends_with_the_set_up_time() -> None:
    peer = Peer()
    call = peer.submit(timeout=60)
    peer.sent()
    assert peer.machine.next_wakeup() == 10
    error = closing_error(peer, 10)
    assert call.error is error
    assert "the broker did not answer within 10 s, during SASL authentication" in str(error)


@pytest.mark.parametrize("is_token_sent", [False, True])
def test_silence_is_told_once_with_bare_tokens(is_token_sent: bool) -> None:
    """Without a token it is the mechanism, not the broker, that takes too long."""
    peer = Peer("0.10.2")
    peer.polled()
    peer.answers(peer.sent()[0], SaslHandshakeResponse(mechanisms=["SCRAM-SHA-256"]))
    if is_token_sent:
        peer.machine.token_made(FIRST, 0)
        peer.written()
    text = str(closing_error(peer, 10))
    assert text.count("SASL authentication") == 1
    assert ("the broker did not answer in time" in text) is is_token_sent


@pytest.mark.parametrize("was_served", [False, True])
@pytest.mark.parametrize("is_challenged", [False, True])
def test_credentials_that_are_not_there_in_time(was_served: bool, is_challenged: bool) -> None:
    """PLAIN waits for a password before its first token, SCRAM before the second; a client that worked tries again."""
    peer = Peer(source="the vault", was_served=was_served)
    call = peer.submit(timeout=60)
    peer.polled()
    assert peer.machine.credentials_error("within 1 s") is None, "SaslHandshake is not answered yet"
    peer.answers(peer.sent()[0], SaslHandshakeResponse(mechanisms=["SCRAM-SHA-256"]))
    if is_challenged:
        peer.machine.token_made(FIRST, 0)
        (token,) = peer.sent()
        assert peer.machine.credentials_error("within 1 s") is None, "the token is not answered yet"
        peer.answers(token, SaslAuthenticateResponse(auth_bytes=b"challenge"))
        peer.polled()
    kind = TransportError if was_served else AuthenticationError
    early = peer.machine.credentials_error("within 1 s")
    assert type(early) is kind
    error = closing_error(peer, 10)
    assert type(error) is kind
    assert error.message == "the vault returned no credentials within socket_connection_setup_timeout_ms"
    assert call.error is error
    assert peer.machine.credentials_error("within 1 s") is None


@pytest.mark.parametrize("was_served", [False, True])
def test_a_source_of_credentials_that_cannot_be_reached(was_served: bool) -> None:
    peer = Peer(source="the vault", was_served=was_served)
    call = peer.submit()
    peer.answers(peer.sent()[0], SaslHandshakeResponse(mechanisms=["SCRAM-SHA-256"]))
    unreachable = TransportError("the vault does not answer")
    assert peer.machine.authentication_failed(unreachable, 0)
    assert call.error is not None
    assert type(call.error) is (TransportError if was_served else AuthenticationError)
    assert unreachable in (call.error, call.error.__cause__)
    assert peer.machine.is_refused is not was_served


def test_the_reason_of_a_refused_bearer_token_is_told_once() -> None:
    peer = Peer(mechanism="OAUTHBEARER")
    peer.polled()
    peer.answers(peer.sent()[0], SaslHandshakeResponse(mechanisms=["OAUTHBEARER"]))
    peer.machine.token_made(b"n,,", 0)
    peer.answers(peer.sent()[0], SaslAuthenticateResponse(auth_bytes=b'{"status":"invalid_token"}'))
    peer.polled()
    peer.machine.token_made(b"\x01", 0, refusal="status=invalid_token; the token expired at noon")
    code = ErrorCode.SASL_AUTHENTICATION_FAILED
    answer = SaslAuthenticateResponse(error_code=code, error_message='{"status":"invalid_token"}')
    peer.answers(peer.sent()[0], answer)
    text = str(closing_error(peer))
    assert text.count("invalid_token") == 1
    assert "refused the credentials: status=invalid_token; the token expired at noon; check the token" in text


@pytest.mark.parametrize("then", ["the answer", "no answer", "the end of the connection", "a refusal"])
def test_a_mechanism_that_fails_closes_the_connection(then: str) -> None:
    """If the broker answers that it does not offer the mechanism, the error says that, even if the answer is late."""
    peer = Peer()
    call = peer.submit(timeout=60)
    (handshake,) = peer.sent()
    failure = AuthenticationError("there is no ticket")
    assert peer.machine.authentication_failed(failure, 0)
    assert call.error is None
    if then == "the answer":
        peer.answers(handshake, SaslHandshakeResponse(mechanisms=["SCRAM-SHA-256"]))
    elif then == "no answer":
        peer.polled(10)
    elif then == "the end of the connection":
        peer.machine.connection_lost(TransportError("the broker closed the connection"), 0)
    else:
        code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
        peer.answers(handshake, SaslHandshakeResponse(error_code=code, mechanisms=["PLAIN"]))
        assert "it offers PLAIN" in str(call.error)
        return
    assert call.error is failure


@pytest.mark.parametrize("release", ["0.10.2", "4.3"])
def test_a_token_that_was_not_due_is_refused(release: str) -> None:
    peer = Peer(release)
    peer.polled()
    peer.answers(peer.sent()[0], SaslHandshakeResponse(mechanisms=["SCRAM-SHA-256"]))
    peer.machine.token_made(FIRST, 0)
    asked = peer.written()
    frame = b"challenge"
    if release == "4.3":
        frame = answer_to(read_requests(asked)[0], SaslAuthenticateResponse(auth_bytes=frame))[4:]
    peer.machine.frame_received(frame, 0)
    peer.machine.frame_received(frame, 0)
    assert isinstance(closing_error(peer), RemoteProtocolError)


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
    peer = Peer()
    peer.authenticate(lifetime_ms=100_000)
    now = peer.machine.next_wakeup() or 0
    peer.submit(now=now, timeout=60)
    (asked,) = peer.sent()
    throttled = metadata()
    throttled.throttle_time_ms = 3000
    peer.answers(asked, throttled, now)
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
    assert call.error is failure


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
    peer = Peer()
    peer.authenticate(lifetime_ms=100_000)
    now = peer.machine.next_wakeup() or 0
    peer.submit(now=now, timeout=60)
    (asked,) = peer.sent()
    throttled = metadata()
    throttled.throttle_time_ms = 60_000
    peer.answers(asked, throttled, now)
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


def test_tokens_appear_in_no_representation() -> None:
    assert "secret" not in repr(Authenticate(b"secret"))


def test_an_empty_frame_is_no_answer_to_a_request() -> None:
    peer = Peer()
    peer.authenticate()
    peer.submit()
    peer.machine.frame_received(b"", 0)
    assert isinstance(closing_error(peer), RemoteProtocolError)


@pytest.mark.parametrize(
    ("mechanism", "tokens", "secret"),
    [
        ("PLAIN", [b"\0alice\0alice-secret"], "alice-secret"),
        ("SCRAM-SHA-256", [b"n,,n=alice,r=abc", b"c=biws,r=abcdef,p=c2VjcmV0"], "c2VjcmV0"),
        ("OAUTHBEARER", [b"n,,\x01auth=Bearer a.secret.token\x01\x01"], "a.secret.token"),
        ("OAUTHBEARER", [b"n,,\x01auth=Bearer a.secret.token\x01logicalCluster=x\x01\x01", b"\x01"], "a.secret.token"),
    ],
)
@pytest.mark.parametrize("before", ["alice may not log in with ", "x" * 490], ids=["short", "cut"])
def test_a_secret_that_the_broker_repeats_is_not_shown(
    mechanism: str, tokens: list[bytes], secret: str, before: str
) -> None:
    authentication = Authentication(mechanism, "broker:9092")
    for token in tokens:
        authentication.token_made(token)
        authentication.next_messages()
    with pytest.raises(AuthenticationError, match=re.escape(f"{before}***")) as caught:
        authentication.token_answered(SaslAuthenticateResponse(error_code=58, error_message=before + secret))
    assert secret[:6] not in str(caught.value)
