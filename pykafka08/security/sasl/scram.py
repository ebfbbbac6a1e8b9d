"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677, KIP-84), and delegation tokens (KIP-48).

The password is never sent, and the broker proves that it knows the password.

User name and password are plain UTF-8, without SASLprep (RFC 4013).  RFC 5802 asks for it, Kafka does not do it: on
4.3.1 the tool that sets passwords, the brokers and the Java client all use the bytes of the text as they are, and with
SASLprep a password with a soft hyphen or a full-width digit would be refused.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from enum import Enum, auto
from typing import NamedTuple

import anyio
import anyio.to_thread

from pykafka08.errors import AuthenticationError, ConfigError
from pykafka08.logs import library_logger
from pykafka08.security.sasl.password import Credentials
from pykafka08.security.secret import Secret
from pykafka08.security.settings import SecurityConfig

__all__ = ["ScramLogin", "login_of"]

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
LEAST_ITERATIONS = 4_096
"""Kafka's own minimum, so that a broker cannot ask for a proof that is easy to crack."""
MOST_ITERATIONS = 1_000_000
"""About a second of work.  More would let a broker keep this process busy; Kafka's own brokers allow 16,384."""
LONGEST_CHALLENGE = 8_192
NONCE_BYTES = 24
NO_CHANNEL_BINDING = "n,,"
FIELDS = {"r": "nonce", "s": "salt", "i": "number of iterations", "v": "signature"}
LONGEST_REASON = 100

log = library_logger("security")


class ScramLogin:
    """User and password of one client, or id and HMAC of a delegation token.

    The salted password of the last exchange is kept, because PBKDF2 is slow on purpose and each connection and renewal
    would repeat it.  That gives nothing away: this object holds the password as well, which is worth more.  A salted
    password is used only for the same password, salt and iterations, so that no broker can make the client use another.
    """

    def __init__(self, config: SecurityConfig, name: str) -> None:
        self.name = name
        self.hash_name = HASHES[name]
        self.credentials = Credentials(config, name)
        self.source = self.credentials.source
        self.is_delegation_token = config.sasl_scram_tokenauth
        if not isinstance(self.is_delegation_token, bool):
            raise ConfigError("sasl_scram_tokenauth is neither True nor False")
        if not self.credentials.username.isascii():
            # Kafka 4.3.1 lets such a user be created and then refuses it as "invalid credentials".
            log.warning(
                "security.user_name_not_ascii",
                sasl_mechanism=name,
                advice="Kafka's brokers refuse the user names of SCRAM that are not ASCII",
            )
        self._cached: tuple[Secret, bytes, int, _SaltedPassword] | None = None
        self._lock: anyio.Lock | None = None

    def mechanism(self, host: str) -> _Scram:
        return _Scram(self)

    async def salted_password(self, salt: bytes, iterations: int) -> _SaltedPassword:
        """PBKDF2 of the password, in a thread.

        One computation at a time: many connections open at once, and one result serves them all.
        """
        password = await self.credentials.password()
        if (known := self._known(password, salt, iterations)) is not None:
            return known
        if self._lock is None:
            self._lock = anyio.Lock()
        async with self._lock:
            if (known := self._known(password, salt, iterations)) is not None:
                return known
            salted = await anyio.to_thread.run_sync(
                _SaltedPassword, self.hash_name, password, salt, iterations, abandon_on_cancel=True
            )
            self._cached = (password, salt, iterations, salted)
            return salted

    def _known(self, *key: Secret | bytes | int) -> _SaltedPassword | None:
        return self._cached[3] if self._cached is not None and self._cached[:3] == key else None


def login_of(config: SecurityConfig) -> ScramLogin:
    """The login for ``sasl_mechanism``; ConfigError if user or password is missing."""
    assert config.sasl_mechanism is not None
    return ScramLogin(config, config.sasl_mechanism)


class _SaltedPassword:
    """The key that proofs are made with; it has no printable form."""

    __slots__ = ("_hash_name", "_key")

    def __init__(self, hash_name: str, password: Secret, salt: bytes, iterations: int) -> None:
        self._hash_name = hash_name
        self._key = hashlib.pbkdf2_hmac(hash_name, password.reveal().encode(), salt, iterations)

    def __repr__(self) -> str:
        return "***"

    def proof(self, signed: bytes) -> bytes:
        """The client proof (RFC 5802)."""
        client_key = self._hmac(self._key, b"Client Key")
        signature = self._hmac(hashlib.new(self._hash_name, client_key).digest(), signed)
        return bytes(a ^ b for a, b in zip(client_key, signature, strict=True))

    def server_signature(self, signed: bytes) -> bytes:
        """What the broker answers if it knows the password, or what is derived from it."""
        return self._hmac(self._hmac(self._key, b"Server Key"), signed)

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._hash_name)


class _Challenge(NamedTuple):
    """The broker's first message."""

    nonce: str
    salt: bytes
    iterations: int


class _Step(Enum):
    """What comes next."""

    CLIENT_FIRST = auto()
    SERVER_FIRST = auto()
    SERVER_FINAL = auto()
    NOTHING = auto()


class _Scram:
    is_last_token_answered = True

    def __init__(self, login: ScramLogin) -> None:
        self.name = login.name
        self.is_complete = False
        self._login = login
        self._step = _Step.CLIENT_FIRST
        self._nonce = base64.b64encode(secrets.token_bytes(NONCE_BYTES)).decode()
        extension = ",tokenauth=true" if login.is_delegation_token else ""
        self._bare = f"n={quoted(login.credentials.username)},r={self._nonce}{extension}"
        self._signature = b""

    @property
    def may_be_followed(self) -> bool:
        return self._step is _Step.SERVER_FINAL

    async def respond(self, challenge: bytes | None) -> bytes | None:
        # Nothing is accepted after an error either.
        step, self._step = self._step, _Step.NOTHING
        if step is _Step.NOTHING:
            raise self._wrong("the broker sent a message after the exchange had ended")
        if step is _Step.CLIENT_FIRST:
            if challenge is not None:
                raise self._wrong("the broker sent a challenge before the client's first message")
            self._step = _Step.SERVER_FIRST
            return f"{NO_CHANNEL_BINDING}{self._bare}".encode()
        message = self._text_of(challenge)
        if step is _Step.SERVER_FIRST:
            token = await self._proof(message)
            self._step = _Step.SERVER_FINAL
            return token
        self._check_signature(message)
        self.is_complete = True
        return None

    async def _proof(self, message: str) -> bytes:
        """The client's final message, for the broker's first one."""
        server = self._challenge(message)
        salted = await self._login.salted_password(server.salt, server.iterations)
        without_proof = f"c={base64.b64encode(NO_CHANNEL_BINDING.encode()).decode()},r={server.nonce}"
        signed = ",".join((self._bare, message, without_proof)).encode()
        self._signature = salted.server_signature(signed)
        return f"{without_proof},p={base64.b64encode(salted.proof(signed)).decode()}".encode()

    def _challenge(self, message: str) -> _Challenge:
        fields = self._fields(message)
        for name in "rsi":
            if not fields.get(name):
                raise self._wrong(f"the broker's first message has no {FIELDS[name]}")
        if list(fields)[:3] != ["r", "s", "i"]:
            raise self._wrong("the fields of the broker's first message are in the wrong order")
        nonce = fields["r"]
        if not nonce.startswith(self._nonce) or len(nonce) == len(self._nonce):
            raise self._wrong("the broker's nonce does not continue the client's")
        if not re.fullmatch(r"[!-~]+", nonce):
            raise self._wrong("the broker's nonce has characters that are not printable ASCII")
        return _Challenge(nonce, self._decoded(fields["s"], "salt"), self._iterations(fields["i"]))

    def _iterations(self, text: str) -> int:
        if not re.fullmatch(r"[1-9][0-9]*|0", text):
            raise self._wrong("the broker's number of iterations is not a number")
        # The length is checked first: Python takes long for a number of thousands of digits, or refuses it.
        if len(text) > len(str(MOST_ITERATIONS)) or not LEAST_ITERATIONS <= int(text) <= MOST_ITERATIONS:
            number = text if len(text) < 20 else f"a number of {len(text)} digits of"
            raise self._wrong(
                f"the broker asks for {number} iterations; {LEAST_ITERATIONS} to {MOST_ITERATIONS} are accepted"
            )
        return int(text)

    def _check_signature(self, message: str) -> None:
        if not message:
            raise self._wrong("the broker's final message is empty: it has not proved that it knows the password")
        fields = self._fields(message)
        if next(iter(fields)) != "v" or not fields["v"]:
            raise self._wrong("the broker's final message has no signature")
        if not hmac.compare_digest(self._decoded(fields["v"], "signature"), self._signature):
            raise self._wrong("the broker's signature is wrong: it has not proved that it knows the password")

    def _fields(self, message: str) -> dict[str, str]:
        """The fields of a message; AuthenticationError if the broker sends an error, or extensions that must be known.

        Texts of the broker are not quoted in errors, apart from numbers and its reason: it may repeat the proof.
        """
        fields: dict[str, str] = {}
        for each in message.split(","):
            name, separator, value = each.partition("=")
            if not separator or not re.fullmatch(r"[A-Za-z]+", name) or "\0" in value:
                raise self._wrong("the broker's message does not consist of fields of the form name=value")
            if name in fields:
                raise self._wrong(f"the broker's message has more than one {FIELDS.get(name, 'field of one name')}")
            fields[name] = value
        if "e" in fields:
            raise self._wrong(f"the broker refused: {shown_reason(fields['e'])}")
        if "m" in fields:
            raise self._wrong("the broker demands an extension that this client does not have")
        return fields

    def _text_of(self, challenge: bytes | None) -> str:
        if challenge is None:
            raise self._wrong("the broker's message is missing")
        if len(challenge) > LONGEST_CHALLENGE:
            raise self._wrong(
                f"the broker's message has {len(challenge)} bytes; at most {LONGEST_CHALLENGE} are accepted"
            )
        try:
            return challenge.decode()
        except UnicodeDecodeError:
            pass  # its traceback would hold the message
        raise self._wrong("the broker's message is not UTF-8")

    def _decoded(self, text: str, what: str) -> bytes:
        try:
            decoded = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            decoded = b""
        # The decoder ignores padding and bits that are too many; encoding again shows them.
        if base64.b64encode(decoded).decode() != text:
            raise self._wrong(f"the broker's {what} is not base64")
        return decoded

    def _wrong(self, text: str) -> AuthenticationError:
        return AuthenticationError(f"{self.name}: {text}", mechanism=self.name)


def quoted(name: str) -> str:
    """A user name as SCRAM writes it."""
    return name.replace("=", "=3D").replace(",", "=2C")


def shown_reason(text: str) -> str:
    """The broker's reason for an error, cut to a maximum length.

    Runs of characters that are as long as a key in base64 or hexadecimal are left out: they may repeat the proof.
    """
    reason = re.sub(r"[A-Za-z0-9+/=]{24,}", "***", text)
    return ascii(reason[:LONGEST_REASON])
