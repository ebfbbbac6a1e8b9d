"""A connection machine with a broker that a test plays, which authenticates its clients with SASL."""

from __future__ import annotations

from typing import Any

from pykafka08.connection.actions import Action, Authenticate, Close
from pykafka08.connection.authentication import Authentication
from pykafka08.connection.handshake import Handshake
from pykafka08.connection.machine import ConnectionMachine, State
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import KafkaError
from pykafka08.protocol.messages.metadata import MetadataRequest
from pykafka08.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from pykafka08.protocol.messages.sasl_handshake import SaslHandshakeResponse
from pykafka08.protocol.versions import BrokerVersions
from tests.connection.answers import Asked, answer_to, metadata, read_requests

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

    def renew(self, now: float, *, lifetime_ms: int) -> None:
        """Play a renewal that is due, of one token, to its end."""
        assert self.polled(now) == [Authenticate(None)]
        self.machine.token_made(FIRST, now)
        handshake, token = self.sent()
        self.answers(handshake, SaslHandshakeResponse(mechanisms=["SCRAM-SHA-256"]), now)
        self.answers(token, SaslAuthenticateResponse(auth_bytes=b"ok", session_lifetime_ms=lifetime_ms), now)
        assert self.polled(now) == [Authenticate(b"ok")]
        self.machine.token_made(None, now)


def closing_error(peer: Peer, now: float = 0) -> KafkaError:
    (action,) = [each for each in peer.polled(now) if isinstance(each, Close)]
    return action.error


def renewing(error_code: int = ErrorCode.NONE) -> tuple[Peer, Ended, Asked, float]:
    """A connection whose SASL session is being renewed; ``error_code`` answers SaslHandshake.

    With it a held call, the first SaslAuthenticate, which has no answer yet, and the time.
    """
    peer = Peer()
    peer.authenticate(lifetime_ms=100_000)
    now = peer.machine.next_wakeup() or 0
    peer.polled(now)
    peer.machine.token_made(FIRST, now)
    held = peer.submit(now=now)
    handshake, first = peer.sent()
    peer.answers(handshake, SaslHandshakeResponse(error_code=error_code, mechanisms=["SCRAM-SHA-256"]), now)
    return peer, held, first, now


def throttled(milliseconds: int) -> tuple[Peer, float]:
    """A connection that the broker has begun to throttle as the renewal of its session is due, and the time."""
    peer = Peer()
    peer.authenticate(lifetime_ms=100_000)
    now = peer.machine.next_wakeup() or 0
    peer.submit(now=now, timeout=60)
    (asked,) = peer.sent()
    answer = metadata()
    answer.throttle_time_ms = milliseconds
    peer.answers(asked, answer, now)
    return peer, now
