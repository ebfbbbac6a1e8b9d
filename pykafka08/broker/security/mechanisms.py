"""Server side of the SASL mechanisms: PLAIN (RFC 4616), SCRAM (RFC 5802) and OAUTHBEARER (RFC 7628)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from pykafka08.broker.scram_users import Credential, ScramUsers
from pykafka08.error_codes import ErrorCode
from pykafka08.security.secret import Secret

__all__ = [
    "OAuthExchange",
    "PlainExchange",
    "Principal",
    "Refused",
    "SaslExchange",
    "ScramExchange",
    "TokenCheck",
    "scram_credential",
]

INVALID = "Authentication failed: Invalid username or password"
SCRAM_HASHES = {"SCRAM-SHA-256": (1, "sha256"), "SCRAM-SHA-512": (2, "sha512")}
"""Number in AlterUserScramCredentials, and hash."""
ITERATIONS = 4096
NONCE_BYTES = 18
INVALID_TOKEN = b'{"status":"invalid_token"}'


class Refused(Exception):
    """The client is not who it says; the text goes to the client, as Kafka's does, with the error code."""

    def __init__(self, text: str, code: ErrorCode = ErrorCode.SASL_AUTHENTICATION_FAILED) -> None:
        super().__init__(text)
        self.code = code


class Principal(NamedTuple):
    """Who has authenticated; ``expires_at`` is Unix time in seconds, None if the credentials do not expire."""

    name: str
    expires_at: float | None = None


class SaslExchange(Protocol):
    """One exchange; ``principal`` is set at its end."""

    principal: Principal | None

    def respond(self, token: bytes) -> bytes:
        """The answer to the client's token; Refused if it is wrong."""


class PlainExchange:
    """User and password in one token."""

    def __init__(self, passwords: Mapping[str, Secret]) -> None:
        self._passwords = passwords
        self.principal: Principal | None = None

    def respond(self, token: bytes) -> bytes:
        parts = token.decode("utf-8", "replace").split("\0")
        if len(parts) != 3:
            raise Refused("Invalid SASL/PLAIN response: expected 3 tokens, got " + str(len(parts)))
        authorization_id, user, password = parts
        for name, value in (("username", user), ("password", password)):
            if not value:
                raise Refused(f"Authentication failed: {name} not specified")
        expected = self._passwords.get(user)
        if expected is None or expected != Secret(password):
            raise Refused(INVALID)
        if authorization_id not in ("", user):
            raise Refused("Authentication failed: Client requested an authorization id that is different from username")
        self.principal = Principal(user)
        return b""


def scram_credential(mechanism: str, password: Secret, iterations: int = ITERATIONS) -> Credential:
    """The credential of a user with this password, and a salt of its own."""
    salt = secrets.token_bytes(NONCE_BYTES)
    hash_name = SCRAM_HASHES[mechanism][1]
    return Credential(iterations, salt, hashlib.pbkdf2_hmac(hash_name, password.reveal().encode(), salt, iterations))


class ScramExchange:
    """Client-first, server-first, client-final, server-final."""

    def __init__(self, mechanism: str, users: ScramUsers) -> None:
        self._mechanism = mechanism
        self._number, self._hash = SCRAM_HASHES[mechanism]
        self._users = users
        self._user = ""
        self._credential: Credential | None = None
        self._nonce = ""
        self._signed: tuple[str, str] | None = None
        self.principal: Principal | None = None

    def respond(self, token: bytes) -> bytes:
        try:
            text = token.decode()
        except UnicodeDecodeError:
            raise self._refused() from None
        return self._first(text) if self._signed is None else self._final(text)

    def _first(self, text: str) -> bytes:
        header, fields = text[:3], text[3:].split(",")
        if header != "n,," or len(fields) < 2 or not fields[0].startswith("n="):
            raise self._refused()
        self._user = fields[0][2:].replace("=2C", ",").replace("=3D", "=")
        self._credential = self._users.credentials(self._user).get(self._number)
        if self._credential is None or not fields[1].startswith("r=") or not fields[1][2:]:
            raise self._refused()
        self._nonce = fields[1][2:] + base64.b64encode(secrets.token_bytes(NONCE_BYTES)).decode()
        salt = base64.b64encode(self._credential.salt).decode()
        answer = f"r={self._nonce},s={salt},i={self._credential.iterations}"
        self._signed = (",".join(fields), answer)
        return answer.encode()

    def _final(self, text: str) -> bytes:
        assert self._credential is not None
        assert self._signed is not None
        without_proof, separator, proof = text.rpartition(",p=")
        expected = f"c={base64.b64encode(b'n,,').decode()},r={self._nonce}"
        if not separator or without_proof != expected:
            raise self._refused()
        signed = ",".join((*self._signed, without_proof)).encode()
        salted = self._credential.salted_password
        stored_key = hashlib.new(self._hash, hmac.digest(salted, b"Client Key", self._hash)).digest()
        signature = hmac.digest(stored_key, signed, self._hash)
        client_key = bytes(a ^ b for a, b in zip(self._decoded(proof), signature, strict=False))
        if not hmac.compare_digest(hashlib.new(self._hash, client_key).digest(), stored_key):
            raise self._refused()
        self.principal = Principal(self._user)
        server_signature = hmac.digest(hmac.digest(salted, b"Server Key", self._hash), signed, self._hash)
        return b"v=" + base64.b64encode(server_signature)

    def _decoded(self, text: str) -> bytes:
        try:
            return base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            raise self._refused() from None

    def _refused(self) -> Refused:
        return Refused(
            f"Authentication failed during authentication due to invalid credentials with SASL mechanism "
            f"{self._mechanism}"
        )


TokenCheck = Callable[[str], Principal]
"""Takes a token and returns whom it names; Refused if it is not valid."""


class OAuthExchange:
    """One token; a wrong one is answered with an error in JSON, and refused after the client's next byte."""

    def __init__(self, check: TokenCheck) -> None:
        self._check = check
        self._refusal: Refused | None = None
        self.principal: Principal | None = None

    def respond(self, token: bytes) -> bytes:
        if self._refusal is not None:
            raise self._refusal
        try:
            fields = token.decode().split("\x01")
            bearer = next(field[len("auth=Bearer ") :] for field in fields if field.startswith("auth=Bearer "))
            if not fields[0].startswith("n,") or fields[-2:] != ["", ""]:
                raise StopIteration
        except (UnicodeDecodeError, StopIteration):
            raise Refused("Authentication failed: Invalid OAUTHBEARER initial response") from None
        try:
            self.principal = self._check(bearer)
        except Refused as refused:
            self._refusal = Refused(f"Authentication failed: {refused}")
            return INVALID_TOKEN
        return b""
