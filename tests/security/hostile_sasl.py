"""A hostile SASL server: it speaks just enough Kafka to authenticate, and misbehaves at one step.

``CASES`` is the table of what it may do, with the error that a client must raise.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import anyio

from pykafka08.error_codes import ErrorCode
from pykafka08.errors import (
    AuthenticationError,
    KafkaError,
    RemoteProtocolError,
    ResponseTooLargeError,
    TransportError,
)
from pykafka08.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from pykafka08.protocol.messages.sasl_handshake import SaslHandshakeResponse
from pykafka08.protocol.schema import Response
from tests.connection.answers import Asked, answer_to, framed, read_request, usual_answer
from tests.connection.peers import Caller
from tests.security.scram_faults import FINAL, FIRST, ScramServer, StoredPassword, Tamper

MIB = 1024 * 1024
USER = "alice"
PASSWORD = "alice-secret"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
BARE = "0.10.2"
"""A release with SaslHandshake v0, after which tokens are frames of their own."""
SESSION_MS = 40
"""Lifetime of the sessions that are renewed."""


Errors = type[KafkaError] | tuple[type[KafkaError], ...]


BEFORE_2_MIB = "a frame of 2097152 bytes is announced, more than the 1048576 bytes that are accepted before auth"


class Step(Enum):
    """What the client has just sent."""

    API_VERSIONS = "versions"
    HANDSHAKE = "handshake"
    FIRST = "first"
    """Its first token."""
    FINAL = "final"
    """Its second token, in SCRAM."""
    AFTER = "after"
    """The first request after authentication."""


@dataclass
class Turn:
    """One step of one connection: what the client sent, and what an honest broker answers."""

    caller: Caller
    asked: Asked | None
    """None for a bare token."""
    honest: bytes
    """The honest answer's whole frame."""
    token: bytes
    """The token in it."""
    scram: ScramServer | None

    def with_token(self, token: bytes, **fields: Any) -> bytes:
        """The answer's frame with another token."""
        if self.asked is None:
            return framed(token)
        return answer_to(self.asked, SaslAuthenticateResponse(auth_bytes=token, **fields))

    def with_response(self, response: Response) -> bytes:
        assert self.asked is not None
        return answer_to(self.asked, response)


class Ended(Exception):
    """The server closes the connection."""


Behaviour = Callable[[Turn], Awaitable[None]]


async def honest(turn: Turn) -> None:
    await turn.caller.send(turn.honest)


async def silent(turn: Turn) -> None:
    """Read on, and never answer."""


async def hangs(turn: Turn) -> None:
    """Read no more."""
    await anyio.sleep_forever()


async def closes(turn: Turn) -> None:
    raise Ended


async def closes_within_a_frame(turn: Turn) -> None:
    await turn.caller.send(struct.pack(">i", 100) + b"cut")
    raise Ended


async def drips(turn: Turn) -> None:
    """A frame whose bytes come one by one and never end."""
    await turn.caller.send(struct.pack(">i", 100_000))
    while True:
        await turn.caller.send(b"\0")
        await anyio.sleep(0.01)


async def twice(turn: Turn) -> None:
    await turn.caller.send(2 * turn.honest)


async def answers_another_request(turn: Turn) -> None:
    """The answer has another correlation id."""
    frame = bytearray(turn.honest)
    frame[7] ^= 1
    await turn.caller.send(bytes(frame))


async def cuts_the_body(turn: Turn) -> None:
    """A whole frame whose content ends early."""
    await turn.caller.send(framed(turn.honest[4:-3]))


async def speaks_http(turn: Turn) -> None:
    await turn.caller.send(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


def announces(size: int) -> Behaviour:
    """The size of a frame, and its first bytes."""

    async def behave(turn: Turn) -> None:
        await turn.caller.send(struct.pack(">i", size) + bytes(64))

    return behave


def floods(size: int) -> Behaviour:
    """A frame of zeros of this size, sent whole."""

    async def behave(turn: Turn) -> None:
        await turn.caller.send(struct.pack(">i", size))
        for _ in range(size // 65536):
            await turn.caller.send(bytes(65536))

    return behave


def tampers(tamper: Tamper) -> Behaviour:
    """One SCRAM message of the server, changed."""

    async def behave(turn: Turn) -> None:
        assert turn.scram is not None
        await turn.caller.send(turn.with_token(tamper(turn.token, turn.scram)))

    return behave


def sends_token(token: bytes) -> Behaviour:
    async def behave(turn: Turn) -> None:
        await turn.caller.send(turn.with_token(token))

    return behave


def lives(milliseconds: int) -> Behaviour:
    """The honest token, in a session of this length."""

    async def behave(turn: Turn) -> None:
        await turn.caller.send(turn.with_token(turn.token, session_lifetime_ms=milliseconds))

    return behave


def refuses_mechanism(code: int, *mechanisms: str) -> Behaviour:
    async def behave(turn: Turn) -> None:
        await turn.caller.send(turn.with_response(SaslHandshakeResponse(error_code=code, mechanisms=list(mechanisms))))

    return behave


def refuses_token(code: int, message: str | None = None) -> Behaviour:
    async def behave(turn: Turn) -> None:
        await turn.caller.send(turn.with_response(SaslAuthenticateResponse(error_code=code, error_message=message)))
        raise Ended

    return behave


@dataclass(frozen=True)
class Case:
    """A script: what the server does at the steps where it is not honest, and the client's error.

    ``errors``: its type, or one of several; None if there is no error.  ``says``: a part of its text.

    ``waits``: the client gives up when its set-up time-out has passed, and not before.
    """

    name: str
    script: Mapping[Step, Behaviour]
    errors: Errors | None
    says: str = ""
    mechanism: str = "SCRAM-SHA-256"
    release: str = "4.3"
    waits: bool = False
    is_renewal: bool = False
    """The script is played when a session is renewed."""

    @property
    def credentials(self) -> dict[str, Any]:
        """Settings of a client that authenticates with the server."""
        return {
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": self.mechanism,
            "sasl_plain_username": USER,
            "sasl_plain_password": PASSWORD,
        }


class Server:
    """Plays one case; ``play`` is for :func:`tests.connection.peers.peer`.

    ``seen`` has all steps, and ``played`` those of the script.  A script for renewals is played once, on the first
    connection.
    """

    def __init__(self, case: Case) -> None:
        self.case = case
        self.seen: list[Step] = []
        self.played: list[Step] = []
        self.renewed = 0
        self._users = {} if case.mechanism == "PLAIN" else {USER: StoredPassword.of(case.mechanism, PASSWORD)}

    async def play(self, caller: Caller) -> None:
        try:
            await _Session(self, caller).run()
        except Ended:
            return

    def scram(self) -> ScramServer | None:
        return ScramServer(self.case.mechanism, self._users) if self._users else None


class _Session:
    """One connection."""

    def __init__(self, server: Server, caller: Caller) -> None:
        self.server = server
        self.caller = caller
        self.scram = server.scram()
        self.are_tokens_bare = False
        self.tokens = 0
        self.is_authenticated = False
        self.is_renewal = False

    async def run(self) -> None:
        while (frame := await self.caller.frame()) is not None:
            is_bare = self.are_tokens_bare and not self.is_authenticated
            asked = None if is_bare else read_request(frame)
            step = self._step(asked)
            self.server.seen.append(step)
            turn = Turn(self.caller, asked, *self._honest(asked, frame), self.scram)
            await self._behaviour(step)(turn)

    def _behaviour(self, step: Step) -> Behaviour:
        server = self.server
        is_last = self.is_authenticated and step in TOKENS
        server.renewed += is_last and self.is_renewal
        is_due = not server.case.is_renewal or (self.is_renewal and self.caller.number == 1)
        if is_due and step in server.case.script:
            server.played.append(step)
            return server.case.script[step]
        return lives(SESSION_MS) if is_last and server.case.is_renewal else honest

    def _step(self, asked: Asked | None) -> Step:
        if asked is None or asked.name == "SaslAuthenticate":
            return Step.FINAL if self.tokens == 1 and self.scram is not None else Step.FIRST
        named = {"ApiVersions": Step.API_VERSIONS, "SaslHandshake": Step.HANDSHAKE}
        return named.get(asked.name, Step.AFTER)

    def _honest(self, asked: Asked | None, frame: bytes) -> tuple[bytes, bytes]:
        """The honest answer, and the token in it."""
        if asked is None:
            token = self._token(frame)
            return framed(token), token
        if asked.name == "SaslAuthenticate":
            token = self._token(asked.request.auth_bytes)
            return answer_to(asked, SaslAuthenticateResponse(auth_bytes=token)), token
        if asked.name == "SaslHandshake":
            self.is_renewal = self.is_authenticated
            self.are_tokens_bare = asked.header.api_version == 0
            self.tokens, self.is_authenticated = 0, False
            self.scram = self.server.scram()
            return answer_to(asked, SaslHandshakeResponse(mechanisms=[self.server.case.mechanism])), b""
        answer = usual_answer(asked, self.server.case.release, self.caller.address)
        assert answer is not None
        return answer, b""

    def _token(self, token: bytes) -> bytes:
        self.tokens += 1
        if self.scram is None:
            self.is_authenticated = True
            assert token == f"\0{USER}\0{PASSWORD}".encode()
            return b""
        if self.tokens == 1:
            return self.scram.first(token)
        self.is_authenticated = True
        return self.scram.final(token)


RELEASES = ("4.3", BARE)
STEPS = (Step.API_VERSIONS, Step.HANDSHAKE, Step.FIRST, Step.FINAL)
TOKENS = (Step.FIRST, Step.FINAL)


def each_step(
    name: str,
    behaviour: Behaviour,
    errors: Errors,
    says: str = "",
    *,
    steps: Iterable[Step] = STEPS,
    release: str = "4.3",
    **more: Any,
) -> list[Case]:
    """A case for each step."""
    return [
        Case(f"{name}-at-{step.value}-of-{release}", {step: behaviour}, errors, says, release=release, **more)
        for step in steps
    ]


HONEST = (
    *(
        Case(f"honest-{mechanism}-of-{release}", {}, None, mechanism=mechanism, release=release)
        for mechanism in MECHANISMS
        for release in RELEASES
    ),
    *(
        Case(f"session-of-{milliseconds}-ms", {Step.FINAL: lives(milliseconds)}, None)
        for milliseconds in (-(2**63), -1, 2**63 - 1)
    ),
)
"""No error: a test that uses the table must be able to succeed."""

MESSAGES = (
    *(Case(f"first-{each.name}", {Step.FIRST: tampers(each.tamper)}, AuthenticationError, each.says) for each in FIRST),
    *(Case(f"final-{each.name}", {Step.FINAL: tampers(each.tamper)}, AuthenticationError, each.says) for each in FINAL),
    Case("first-empty-bare", {Step.FIRST: sends_token(b"")}, AuthenticationError, "does not consist", release=BARE),
    Case("final-empty-bare", {Step.FINAL: sends_token(b"")}, AuthenticationError, "message is empty", release=BARE),
    *(
        Case(
            f"plain-challenge-of-{release}",
            {Step.FIRST: sends_token(PASSWORD.encode())},
            AuthenticationError,
            "PLAIN: the broker sent a challenge",
            "PLAIN",
            release,
        )
        for release in RELEASES
    ),
)
"""Tokens that break the mechanism's rules."""

REFUSALS = (
    Case(
        "mechanism-refused",
        {Step.HANDSHAKE: refuses_mechanism(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "GSSAPI", "PLAIN")},
        AuthenticationError,
        "does not offer sasl_mechanism='SCRAM-SHA-256'; it offers GSSAPI, PLAIN",
    ),
    Case(
        "mechanism-refused-for-hundreds-of-long-names",
        {Step.HANDSHAKE: refuses_mechanism(ErrorCode.UNSUPPORTED_SASL_MECHANISM, *["M" * 2000] * 200)},
        AuthenticationError,
        "does not offer sasl_mechanism='SCRAM-SHA-256'",
    ),
    Case(
        "handshake-in-illegal-state",
        {Step.HANDSHAKE: refuses_mechanism(ErrorCode.ILLEGAL_SASL_STATE)},
        AuthenticationError,
        "does not use SASL",
    ),
    Case(
        "handshake-with-unknown-error",
        {Step.HANDSHAKE: refuses_mechanism(-1)},
        AuthenticationError,
        "refused SaslHandshake",
    ),
    *(
        Case(f"token-refused-at-{step.value}-{name}", {step: refuses_token(code, message)}, AuthenticationError, says)
        for step in TOKENS
        for name, code, message, says in (
            (
                "with-reason",
                ErrorCode.SASL_AUTHENTICATION_FAILED,
                "wrong user",
                "wrong user; check sasl_plain_username",
            ),
            (
                "without-reason",
                ErrorCode.SASL_AUTHENTICATION_FAILED,
                None,
                "sasl_plain_username and sasl_plain_password",
            ),
            ("with-long-reason", ErrorCode.SASL_AUTHENTICATION_FAILED, "long " * 5000, "credentials: long long"),
            ("illegal-state", ErrorCode.ILLEGAL_SASL_STATE, None, "the broker refused the credentials"),
            ("mechanism", ErrorCode.UNSUPPORTED_SASL_MECHANISM, None, "the broker refused the credentials"),
            ("unknown-code", 32_000, None, "the broker refused the credentials"),
        )
    ),
)
"""Errors 33, 34, 58 and others, at each step that can have them."""

ENDS = (
    *each_step("close", closes, TransportError, "closed the connection"),
    *each_step("close", closes, TransportError, "closed the connection", steps=STEPS[:2], release=BARE),
    # These releases have no other way to refuse credentials.
    *each_step("close", closes, AuthenticationError, "check sasl_plain_username", steps=TOKENS, release=BARE),
    *each_step("cut-frame", closes_within_a_frame, TransportError, "closed the connection"),
    Case(
        "close-at-plain-of-0.10.2",
        {Step.FIRST: closes},
        AuthenticationError,
        "check sasl_plain_username",
        "PLAIN",
        BARE,
    ),
)
"""The server closes the connection."""

WAITS = (
    *each_step("silence", silent, TransportError, "did not answer", steps=STEPS[:1], waits=True),
    *each_step("silence", silent, TransportError, "during SASL authentication", steps=STEPS[1:], waits=True),
    *each_step("silence", silent, TransportError, "SASL authentication", steps=TOKENS, release=BARE, waits=True),
    *each_step("dripping", drips, TransportError, "did not answer", steps=STEPS[:1], waits=True),
    *each_step("dripping", drips, TransportError, "during SASL authentication", steps=STEPS[1:], waits=True),
    *each_step("dripping", drips, TransportError, "SASL authentication", steps=TOKENS, release=BARE, waits=True),
    Case("silence-at-plain", {Step.FIRST: silent}, TransportError, "during SASL authentication", "PLAIN", waits=True),
)
"""The client's set-up time-out ends these."""

FRAMES = (
    *each_step("other-correlation-id", answers_another_request, RemoteProtocolError, "correlation id"),
    *each_step("body-too-short", cuts_the_body, RemoteProtocolError, "Response version"),
    # The second answer at the last step is one after success.
    *each_step("answer-twice", twice, RemoteProtocolError),
    *each_step("answer-twice", twice, (RemoteProtocolError, AuthenticationError), steps=STEPS[1:], release=BARE),
    *each_step("http", speaks_http, RemoteProtocolError, "speaks HTTP"),
    *each_step("negative-size", announces(-1), RemoteProtocolError, "a frame of -1 bytes"),
    *each_step("size-0", announces(0), RemoteProtocolError),
    *each_step("size-of-2-gib", announces(2**31 - 1), ResponseTooLargeError, "2147483647 bytes"),
    *each_step("size-of-2-mib", announces(2 * MIB), ResponseTooLargeError, BEFORE_2_MIB),
    *each_step("size-of-2-mib", announces(2 * MIB), ResponseTooLargeError, BEFORE_2_MIB, steps=TOKENS, release=BARE),
    *each_step("zeros", floods(MIB), RemoteProtocolError),
    *each_step("zeros", floods(MIB), AuthenticationError, "at most 8192", steps=TOKENS, release=BARE),
)
"""Bytes that are no answer."""

RENEWALS = tuple(
    dataclasses.replace(case, name=f"renewal-{case.name}", is_renewal=True)
    for case in (
        Case("honest", {}, None),
        Case("honest-plain", {}, None, mechanism="PLAIN"),
        *each_step(
            "silence", hangs, TransportError, "could not be renewed: no answer to Sasl", steps=STEPS[1:], waits=True
        ),
        *each_step("dripping", drips, TransportError, "could not be renewed: no answer", steps=STEPS[1:], waits=True),
        Case("silence-at-plain", {Step.FIRST: hangs}, TransportError, "no answer to SaslAuth", "PLAIN", waits=True),
        *each_step("answer-twice", twice, RemoteProtocolError, steps=STEPS[1:]),
        *each_step(
            "other-correlation-id", answers_another_request, RemoteProtocolError, "correlation", steps=STEPS[1:]
        ),
        *each_step("size-of-2-gib", announces(2**31 - 1), TransportError, "2147483647 bytes", steps=STEPS[1:]),
        *each_step("zeros", floods(MIB), RemoteProtocolError, steps=STEPS[1:]),
        *each_step("close", closes, TransportError, "closed the connection", steps=STEPS[1:]),
        *each_step("token", sends_token(bytes(MIB)), TransportError, "at most 8192", steps=TOKENS),
        *each_step(
            "refusal",
            refuses_token(ErrorCode.SASL_AUTHENTICATION_FAILED, "wrong user"),
            TransportError,
            "could not be renewed: the broker refused the credentials: wrong user",
            steps=TOKENS,
        ),
        Case(
            "refusal-at-handshake",
            {Step.HANDSHAKE: refuses_mechanism(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "GSSAPI")},
            TransportError,
            "could not be renewed: the broker does not offer sasl_mechanism",
        ),
    )
)
"""Attacks of a server on a renewal; its next connection is honest."""

CASES: tuple[Case, ...] = (*HONEST, *MESSAGES, *REFUSALS, *ENDS, *WAITS, *FRAMES)
