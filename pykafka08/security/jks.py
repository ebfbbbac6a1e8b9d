"""Java's key store format JKS: certificates and private keys.

Read here and not by a library: the only one that does needs a C compiler to install.  The format has not changed since
JDK 1.2: entries, then a SHA-1 of the store's password and all bytes before it.  Every private key has a password of its
own, usually the store's.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from typing import NamedTuple

from pykafka08.security.secret import Secret

__all__ = ["MAGIC", "JksKey", "JksStore", "WrongPasswordError", "parse_jks", "unlocked_key"]

MAGIC = b"\xfe\xed\xfe\xed"
_VERSIONS = (1, 2)
_PRIVATE_KEY, _TRUSTED_CERTIFICATE = 1, 2
_INTEGRITY_SALT = b"Mighty Aphrodite"
_DIGEST_BYTES = 20
_PROTECTION = bytes.fromhex("060a2b060104012a02110101")  # the object identifier 1.3.6.1.4.1.42.2.17.1.1
_SEQUENCE, _OCTET_STRING = 0x30, 0x04


class WrongPasswordError(ValueError):
    """The password does not open the private key, or the key is damaged."""


class JksKey(NamedTuple):
    """A locked private key and its certificates (DER), the own one first."""

    locked: bytes
    chain: list[bytes]


class JksStore(NamedTuple):
    """The content of a store; certificates are DER."""

    certificates: list[bytes]
    keys: list[JksKey]


def parse_jks(data: bytes, password: Secret | None) -> JksStore:
    """The entries of a store; ValueError if it is damaged or the password is wrong.

    Without a password the digest is not checked, as in Java.
    """
    reader = _Reader(data)
    if reader.take(4) != MAGIC or (version := reader.number()) not in _VERSIONS:
        raise ValueError("it is not a JKS store")
    store = JksStore([], [])
    for _ in range(reader.number()):
        kind = reader.number()
        reader.text()  # alias
        reader.take(8)  # time of creation
        if kind == _TRUSTED_CERTIFICATE:
            store.certificates.append(reader.certificate(version))
        elif kind == _PRIVATE_KEY:
            locked = reader.block()
            store.keys.append(JksKey(locked, [reader.certificate(version) for _ in range(reader.number())]))
        else:
            raise ValueError("it is damaged")
    content, digest = data[: reader.at], reader.take(_DIGEST_BYTES)
    if password is not None and not hmac.compare_digest(_sha1(_utf_16(password) + _INTEGRITY_SALT + content), digest):
        raise ValueError("it is damaged, or the password is wrong")
    return store


def unlocked_key(key: JksKey, password: Secret) -> bytes:
    """The private key, PKCS #8 in DER; WrongPasswordError if the password is wrong, ValueError for unknown locks."""
    outer = _Reader(_Reader(key.locked).element(_SEQUENCE))
    if not outer.element(_SEQUENCE).startswith(_PROTECTION):
        raise ValueError("the private key is encrypted with an unknown algorithm")
    plain = _unlocked(outer.element(_OCTET_STRING), password)
    if plain is None:
        raise WrongPasswordError("the key's password is wrong")
    return plain


def _unlocked(protected: bytes, password: Secret) -> bytes | None:
    """None if the password is wrong.  Nothing is raised here, as a traceback would hold the password."""
    previous, hidden, check = (
        protected[:_DIGEST_BYTES],
        protected[_DIGEST_BYTES:-_DIGEST_BYTES],
        protected[-_DIGEST_BYTES:],
    )
    text = _utf_16(password)
    stream = b""
    while len(stream) < len(hidden):
        previous = _sha1(text + previous)
        stream += previous
    plain = bytes(a ^ b for a, b in zip(hidden, stream, strict=False))
    return plain if hmac.compare_digest(_sha1(text + plain), check) else None


def _utf_16(password: Secret) -> bytes:
    return password.reveal().encode("utf-16-be", "surrogatepass")


def _sha1(data: bytes) -> bytes:
    # The format prescribes SHA-1; TLS does not rest on it.
    return hashlib.sha1(data, usedforsecurity=False).digest()


class _Reader:
    """Fields of a store, and DER elements; ValueError if there are too few bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def take(self, count: int) -> bytes:
        taken = self._data[self.at : self.at + count]
        if len(taken) < count:
            raise ValueError("it is cut off")
        self.at += count
        return taken

    def number(self) -> int:
        return int.from_bytes(self.take(4), "big")

    def text(self) -> bytes:
        (length,) = struct.unpack(">H", self.take(2))
        return self.take(length)

    def block(self) -> bytes:
        return self.take(self.number())

    def certificate(self, version: int) -> bytes:
        if version > 1:
            self.text()  # always "X.509"
        return self.block()

    def element(self, tag: int) -> bytes:
        """The content of the next DER element."""
        found, length = self.take(2)
        if found != tag:
            raise ValueError("the private key is damaged")
        if length & 0x80:
            length = int.from_bytes(self.take(length & 0x7F), "big")
        return self.take(length)
