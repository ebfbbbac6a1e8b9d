"""SASL on one connection as pure state: what is sent when, and what the broker's answers mean."""

from __future__ import annotations

import re

import pytest

from pykafka08.connection.actions import Authenticate, Redial
from pykafka08.connection.authentication import Authentication
from pykafka08.connection.machine import State
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import AuthenticationError, RemoteProtocolError, TransportError
from pykafka08.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from pykafka08.protocol.messages.sasl_handshake import SaslHandshakeResponse
from tests.connection.answers import answer_to, api_versions, framed, metadata, read_requests
from tests.connection.sasl_peer import BROKER, FIRST, SECOND, Peer, closing_error


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
