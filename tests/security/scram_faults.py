"""An honest SCRAM server (scramp), and what a hostile one may send in place of each of its messages."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass

from scramp import ScramMechanism
from scramp.core import ScramServer as Oracle

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
ITERATIONS = 4096
SALT = bytes(range(24))
WRONG_PASSWORD = "not-the-password"


@dataclass(frozen=True)
class StoredPassword:
    """What a broker keeps of a password, from the text's UTF-8 bytes: scramp's own function does SASLprep first."""

    mechanism: str
    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    @classmethod
    def of(cls, mechanism: str, password: str, *, salt: bytes = SALT, iterations: int = ITERATIONS) -> StoredPassword:
        name = HASHES[mechanism]
        salted = hashlib.pbkdf2_hmac(name, password.encode(), salt, iterations)
        client_key = hmac.digest(salted, b"Client Key", name)
        stored_key = hashlib.new(name, client_key).digest()
        return cls(mechanism, salt, stored_key, hmac.digest(salted, b"Server Key", name), iterations)


class ScramServer:
    """One exchange; ``users`` are all that exist.  ScramException for a client that does not know the password."""

    def __init__(self, mechanism: str, users: dict[str, StoredPassword]) -> None:
        self.user: str | None = None
        self.client_first = self.client_final = ""
        self._users = users
        self._oracle: Oracle = ScramMechanism(mechanism).make_server(self._stored)

    def _stored(self, user: str) -> tuple[bytes, bytes, bytes, int]:
        self.user = user
        stored = self._users[user]
        return stored.salt, stored.stored_key, stored.server_key, stored.iterations

    @property
    def client_nonce(self) -> str:
        return self.client_first.split(",r=")[1].split(",")[0]

    @property
    def proof(self) -> str:
        """The client's proof, as base64."""
        return self.client_final.split(",p=")[1]

    def first(self, token: bytes) -> bytes:
        self.client_first = token.decode()
        self._oracle.set_client_first(self.client_first)
        return str(self._oracle.get_server_first()).encode()

    def final(self, token: bytes) -> bytes:
        self.client_final = token.decode()
        self._oracle.set_client_final(self.client_final)
        return str(self._oracle.get_server_final()).encode()


Tamper = Callable[[bytes, ScramServer], bytes]
"""A hostile message out of the honest one."""


@dataclass(frozen=True)
class Fault:
    """One hostile message, and a part of the error's text."""

    name: str
    tamper: Tamper
    says: str


def instead(message: bytes | str) -> Tamper:
    """A message of its own."""
    return lambda honest, server: message.encode() if isinstance(message, str) else message


def field(name: str, value: str) -> Tamper:
    """The honest message with another value of one field."""
    return lambda honest, server: re.sub(rf"(^|,){name}=[^,]*", rf"\1{name}={value}", honest.decode()).encode()


def without(name: str) -> Tamper:
    return lambda honest, server: ",".join(
        each for each in honest.decode().split(",") if not each.startswith(f"{name}=")
    ).encode()


def twice(name: str) -> Tamper:
    return lambda honest, server: b",".join(
        [honest, *(each for each in honest.split(b",") if each.startswith(f"{name}=".encode()))]
    )


def before(text: str) -> Tamper:
    return lambda honest, server: text.encode() + honest


def after(text: str) -> Tamper:
    return lambda honest, server: honest + text.encode()


def backwards(honest: bytes, server: ScramServer) -> bytes:
    return b",".join(reversed(honest.split(b",")))


def nonce(make: Callable[[str], str]) -> Tamper:
    """The server's nonce, made out of the client's."""
    return lambda honest, server: field("r", make(server.client_nonce))(honest, server)


def flipped(honest: bytes, server: ScramServer) -> bytes:
    """The signature with one bit changed."""
    signature = bytearray(base64.b64decode(honest[2:]))
    signature[-1] ^= 1
    return b"v=" + base64.b64encode(signature)


def shortened(honest: bytes, server: ScramServer) -> bytes:
    """The first half of the signature."""
    signature = base64.b64decode(honest[2:])
    return b"v=" + base64.b64encode(signature[: len(signature) // 2])


def echo(start: str) -> Tamper:
    """The client's own proof, sent back."""
    return lambda honest, server: f"{start}{server.proof}".encode()


NOT_BASE64 = ("!!!!", "QUJD*", "QUI", "QUJD====", "QUJDRB==", "QUI=QUI=", "Ä")
"""Foreign characters, missing and excess padding, bits that are too many, padding within."""

NO_NUMBERS = (
    "many",
    "-4096",
    "+4096",
    "4096.0",
    "4_096",
    " 4096",
    "4096\n",
    "04096",
    "\u0664\u0660\u0669\u0666",
    "4\u00b3",
)

FORM = "does not consist of fields of the form name=value"

EITHER: tuple[Fault, ...] = (
    Fault("no-field", instead("nonsense"), FORM),
    Fault("field-without-name", after(",=x"), FORM),
    Fault("field-with-strange-name", after(",1=x"), FORM),
    Fault("field-with-nul", after(",x=\0"), FORM),
    Fault("comma-at-the-end", after(","), FORM),
    Fault("extension-twice", after(",x=1,x=2"), "more than one field of one name"),
    Fault("mandatory-extension", before("m=ext,"), "demands an extension"),
    Fault("mandatory-extension-behind", after(",m=ext"), "demands an extension"),
    Fault("not-utf-8", instead(b"r=\xff\xfe"), "not UTF-8"),
    Fault("oversized", instead(b"x=" + b"a" * 8191), "has 8193 bytes; at most 8192"),
    Fault("oversized-by-far", instead(b"x" * 900_000), "has 900000 bytes; at most 8192"),
    Fault("error", instead("e=no-resources"), "the broker refused: 'no-resources'"),
    Fault("error-behind", after(",e=other-error"), "the broker refused: 'other-error'"),
    Fault("error-with-controls", instead("e=\x1b[31m\u202e\n"), r"the broker refused: '\x1b[31m\u202e\n'"),
    Fault("error-of-thousands", instead("e=" + "no " * 2000), "the broker refused: 'no no"),
)
"""Faults of either message."""

FIRST: tuple[Fault, ...] = (
    *EITHER,
    Fault("empty", instead(b""), FORM),
    Fault("nonce-missing", without("r"), "no nonce"),
    Fault("nonce-empty", field("r", ""), "no nonce"),
    Fault("nonce-twice", twice("r"), "more than one nonce"),
    Fault("nonce-foreign", nonce(lambda ours: "A" * 40), "does not continue the client's"),
    Fault("nonce-other-case", nonce(lambda ours: ours.swapcase() + "more"), "does not continue the client's"),
    Fault("nonce-not-longer", nonce(lambda ours: ours), "does not continue the client's"),
    Fault("nonce-cut", nonce(lambda ours: ours[:-1]), "does not continue the client's"),
    Fault("nonce-with-space", nonce(lambda ours: f"{ours} a"), "not printable ASCII"),
    Fault("nonce-with-newline", nonce(lambda ours: f"{ours}a\n"), "not printable ASCII"),
    Fault("nonce-not-ascii", nonce(lambda ours: f"{ours}ä"), "not printable ASCII"),
    Fault("salt-missing", without("s"), "no salt"),
    Fault("salt-empty", field("s", ""), "no salt"),
    Fault("salt-twice", twice("s"), "more than one salt"),
    *(Fault(f"salt-not-base64-{at}", field("s", text), "salt is not base64") for at, text in enumerate(NOT_BASE64)),
    Fault("iterations-missing", without("i"), "no number of iterations"),
    Fault("iterations-empty", field("i", ""), "no number of iterations"),
    Fault("iterations-twice", twice("i"), "more than one number of iterations"),
    *(Fault(f"iterations-no-number-{at}", field("i", text), "is not a number") for at, text in enumerate(NO_NUMBERS)),
    *(
        Fault(f"iterations-{number}", field("i", str(number)), f"asks for {number} iterations; 4096 to 1000000")
        for number in (0, 1, 4095, 1_000_001, 10**9)
    ),
    Fault("iterations-of-5000-digits", field("i", "9" * 5000), "asks for a number of 5000 digits of iterations"),
    Fault("backwards", backwards, "wrong order"),
    Fault("signature-too-early", instead("v=QUJD"), "no nonce"),
)
"""In place of the server's first message."""

FINAL: tuple[Fault, ...] = (
    *EITHER,
    Fault("empty", instead(b""), "final message is empty: it has not proved"),
    Fault("signature-missing", instead("x=1"), "no signature"),
    Fault("signature-empty", instead("v="), "no signature"),
    Fault("signature-behind", before("x=1,"), "no signature"),
    Fault("signature-twice", twice("v"), "more than one signature"),
    *(
        Fault(f"signature-not-base64-{at}", field("v", text), "signature is not base64")
        for at, text in enumerate(NOT_BASE64)
    ),
    Fault("signature-flipped", flipped, "signature is wrong: it has not proved"),
    Fault("signature-shortened", shortened, "signature is wrong"),
    Fault("signature-of-zeros", instead("v=" + base64.b64encode(bytes(32)).decode()), "signature is wrong"),
    Fault("signature-echo", echo("v="), "signature is wrong"),
    Fault("challenge-again", lambda honest, server: f"r={server.client_nonce}x,s=QUJD,i=4096".encode(), "no signature"),
    Fault("error-echo", echo("e="), "the broker refused: '***'"),
    Fault("name-echo", echo(""), FORM),
)
"""In place of the server's final message."""
