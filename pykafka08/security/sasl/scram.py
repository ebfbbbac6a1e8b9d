"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677, KIP-84).

The password never leaves this side, and the broker proves that it knows it too.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from dataclasses import dataclass
from functools import partial

import anyio.to_thread

from pykafka08.errors import AuthenticationError
from pykafka08.security.sasl.password import Credentials
from pykafka08.security.secret import Secret
from pykafka08.security.settings import SecurityConfig

__all__ = ["ScramLogin", "login_of"]

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
LEAST_ITERATIONS = 4_096
"""Kafka's own least value, so that a broker cannot ask for a proof that is easy to crack."""
MOST_ITERATIONS = 1_000_000
"""About a second of work; more would be an attack on this process."""
LONGEST_CHALLENGE = 8_192
NONCE_BYTES = 24
NO_CHANNEL_BINDING = "n,,"


class ScramLogin:
    """User and password of one client.

    The salted password of the last exchange is kept: PBKDF2 is slow on purpose, and each connection and renewal would
    repeat it.  It is worth as much as the password, which this object holds as well.
    """

    def __init__(self, config: SecurityConfig, name: str) -> None:
        self.name = name
        self.hash_name = HASHES[name]
        self.credentials = Credentials(config, name)
        self._salted: tuple[Secret, bytes, int, bytes] | None = None

    def mechanism(self, host: str) -> _Scram:
        return _Scram(self)

    async def salted_password(self, password: Secret, salt: bytes, iterations: int) -> bytes:
        """PBKDF2 of the password, in a thread."""
        known = self._salted
        if known is not None and known[:3] == (password, salt, iterations):
            return known[3]
        text = password.reveal().encode()
        salted = await anyio.to_thread.run_sync(
            partial(hashlib.pbkdf2_hmac, self.hash_name, text, salt, iterations), abandon_on_cancel=True
        )
        self._salted = (password, salt, iterations, salted)
        return salted


def login_of(config: SecurityConfig) -> ScramLogin:
    """The login for ``sasl_mechanism``; ConfigError if user or password is missing."""
    assert config.sasl_mechanism is not None
    return ScramLogin(config, config.sasl_mechanism)


@dataclass(frozen=True)
class _Challenge:
    """The broker's first message."""

    nonce: str
    salt: bytes
    iterations: int


class _Scram:
    is_last_token_answered = True

    def __init__(self, login: ScramLogin) -> None:
        self.name = login.name
        self.is_complete = False
        self._login = login
        self._nonce = base64.b64encode(secrets.token_bytes(NONCE_BYTES)).decode()
        self._bare = f"n={quoted(login.credentials.username)},r={self._nonce}"
        self._signature: bytes | None = None
        self._has_begun = False

    async def respond(self, challenge: bytes | None) -> bytes | None:
        if not self._has_begun:
            self._has_begun = True
            return f"{NO_CHANNEL_BINDING}{self._bare}".encode()
        message = self._text_of(challenge)
        if self.is_complete:
            raise self._wrong("a message came after the exchange")
        if self._signature is None:
            return await self._proof(message)
        self._check_signature(message)
        self.is_complete = True
        return None

    async def _proof(self, message: str) -> bytes:
        """The final message of the client, for the broker's first one."""
        server = self._challenge(message)
        password = await self._login.credentials.password()
        salted = await self._login.salted_password(password, server.salt, server.iterations)
        without_proof = f"c={base64.b64encode(NO_CHANNEL_BINDING.encode()).decode()},r={server.nonce}"
        signed = ",".join((self._bare, message, without_proof)).encode()
        client_key = self._hmac(salted, b"Client Key")
        signature = self._hmac(hashlib.new(self._login.hash_name, client_key).digest(), signed)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self._signature = self._hmac(self._hmac(salted, b"Server Key"), signed)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._login.hash_name)

    def _challenge(self, message: str) -> _Challenge:
        fields = message.split(",")
        if fields[0].startswith("e="):
            raise self._wrong(f"the broker refused: {fields[0][2:100]!r}")
        if fields[0].startswith("m="):
            raise self._wrong("the broker demands an extension that this client does not have")
        if len(fields) < 3 or [field[:2] for field in fields[:3]] != ["r=", "s=", "i="]:
            raise self._wrong("the broker's first message does not consist of a nonce, a salt and iterations")
        nonce, salt, iterations = (field[2:] for field in fields[:3])
        if not nonce.startswith(self._nonce) or len(nonce) == len(self._nonce):
            raise self._wrong("the broker's nonce does not continue this client's")
        return _Challenge(nonce, self._decoded(salt, "salt"), self._iterations(iterations))

    def _iterations(self, text: str) -> int:
        is_number = text.isascii() and text.isdigit() and len(text) < 20
        if not is_number or not LEAST_ITERATIONS <= int(text) <= MOST_ITERATIONS:
            raise self._wrong(
                f"the broker asks for {text[:30]!r} iterations; accepted are {LEAST_ITERATIONS} to {MOST_ITERATIONS}"
            )
        return int(text)

    def _check_signature(self, message: str) -> None:
        first = message.split(",")[0]
        if first.startswith("e="):
            raise self._wrong(f"the broker refused the credentials: {first[2:100]!r}")
        if not first.startswith("v="):
            raise self._wrong("the broker's last message has no signature")
        assert self._signature is not None
        if not hmac.compare_digest(self._decoded(first[2:], "signature"), self._signature):
            raise self._wrong("the broker's signature is wrong: it does not know the password")

    def _text_of(self, challenge: bytes | None) -> str:
        if challenge is None or len(challenge) > LONGEST_CHALLENGE:
            size = "no" if challenge is None else len(challenge)
            raise self._wrong(f"the broker's message has {size} bytes; at most {LONGEST_CHALLENGE} are accepted")
        try:
            return challenge.decode()
        except UnicodeDecodeError:
            raise self._wrong("the broker's message is not UTF-8") from None

    def _decoded(self, text: str, what: str) -> bytes:
        try:
            decoded = base64.b64decode(text.encode(), validate=True)
        except (binascii.Error, ValueError):
            decoded = b""
        if not decoded:
            raise self._wrong(f"the broker's {what} is not base64")
        return decoded

    def _wrong(self, text: str) -> AuthenticationError:
        return AuthenticationError(f"{self.name}: {text}", mechanism=self.name)


def quoted(name: str) -> str:
    """A user name as SCRAM writes it."""
    return name.replace("=", "=3D").replace(",", "=2C")
