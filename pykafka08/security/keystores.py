"""Certificates and private keys from JKS, PKCS #12 and PEM, as PEM.

Kafka's Java clients take these formats under ``ssl.truststore.*`` and ``ssl.keystore.*``; PEM since KIP-651.  PKCS #12
needs the extra ``keystores``.
"""

from __future__ import annotations

import base64
import textwrap
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from pykafka08.errors import ConfigError
from pykafka08.security import jks
from pykafka08.security.pem import with_line_breaks
from pykafka08.security.secret import Secret

__all__ = [
    "KeyAndChain",
    "Store",
    "has_certificate",
    "has_private_key",
    "key_in",
    "library",
    "read_file",
    "read_store",
    "trusted_in",
]

TYPES = ("JKS", "PKCS12", "PEM")
_JCEKS = b"\xce\xce\xce\xce"
_DER_SEQUENCE = b"\x30"
_PEM = b"-----BEGIN "


class KeyAndChain(NamedTuple):
    """A private key and its certificates, the own one first; both PEM.

    ``password`` unlocks the key; ``password_setting`` has it, or would have it.
    """

    key: bytes
    chain: bytes
    password: Secret | None
    password_setting: str = "ssl_key_password"  # noqa: S105 - a setting's name

    def __repr__(self) -> str:
        return "KeyAndChain(***)"

    @property
    def pem(self) -> bytes:
        """Both, for OpenSSL.  Keep no variable of it: tracebacks may show local variables."""
        return self.chain + b"\n" + self.key  # a text from a properties file may lack its last line feed


class Store(NamedTuple):
    """The bytes of a store; ``kind`` is JKS, PKCS12 or PEM, and ``setting`` gave its path."""

    kind: str
    data: bytes
    setting: str
    path: str

    def __repr__(self) -> str:
        return f"Store({self.named})"

    @property
    def named(self) -> str:
        return f"{self.setting}={self.path!r}"

    @property
    def password_setting(self) -> str:
        return self.setting.replace("_location", "_password")


def read_file(path: str, setting: str) -> bytes:
    """The bytes of a file; ConfigError that names the setting if it cannot be read."""
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"{setting}={path!r} cannot be read: {reason}") from error


def read_store(path: str, setting: str, kind: str | None) -> Store:
    """A store of this kind, or of the kind that its content shows.

    As in Java 9 and later, a PKCS #12 file may have the type JKS, and a JKS file the type PKCS12.
    """
    if kind is not None and kind.upper() not in TYPES:
        named = setting.replace("_location", "_type")
        raise ConfigError(f"{named}={kind!r:.100} is not one of {', '.join(TYPES)}")
    data = read_file(path, setting)
    found = _kind_of(data)
    if found is None:
        advice = " (convert JCEKS with keytool -importkeystore -deststoretype PKCS12)" * data.startswith(_JCEKS)
        raise ConfigError(f"{setting}={path!r} is neither JKS nor PKCS #12 nor PEM{advice}")
    if kind is not None and (kind.upper() == "PEM") != (found == "PEM"):
        raise ConfigError(f"{setting}={path!r} is {found}, not {kind.upper()}")
    return Store(found, data, setting, path)


def trusted_in(store: Store, password: Secret | None) -> str:
    """The certificates of a trust store, as PEM; ConfigError if it has none or cannot be opened.

    As in Java, the own certificate of a private key counts as trusted.  PKCS #12 stores made by OpenSSL lack Java's
    mark of trusted certificates; all certificates in them count.
    """
    if store.kind == "PEM":
        if not has_certificate(store.data):
            raise ConfigError(f"{store.named} has no certificate")
        return with_line_breaks(store.data).decode("ascii", "ignore")  # comments may have other letters
    if store.kind == "JKS":
        opened = _opened_jks(store, password)
        trusted: list[Any] = opened.certificates + [key.chain[0] for key in opened.keys if key.chain]
    else:
        _, certificate, others = _opened_pkcs12(store, password)
        trusted = [each for each in (certificate, *others) if each is not None]
    if not trusted:
        raise ConfigError(f"{store.named} has no trusted certificate")
    return "".join(map(_pem_certificate, trusted))


def key_in(store: Store, password: Secret | None, key_password: Secret | None) -> KeyAndChain:
    """The private key of a store and its certificates; ConfigError if it has none or cannot be opened.

    The key of a PEM store may still be locked; others are not.
    """
    if store.kind == "PEM":
        if not (has_private_key(store.data) and has_certificate(store.data)):
            raise ConfigError(f"{store.named} lacks a private key or its certificate")
        if key_password is None and password is not None:
            return KeyAndChain(with_line_breaks(store.data), b"", password, store.password_setting)
        return KeyAndChain(with_line_breaks(store.data), b"", key_password)
    if store.kind == "JKS":
        opened = _opened_jks(store, password)
        return _key_of_jks(opened, store, password, key_password)
    private, certificate, others = _opened_pkcs12(store, password)
    if private is None or certificate is None:
        raise ConfigError(f"{store.named} has no private key with a certificate")
    serialization = library("cryptography.hazmat.primitives.serialization", store.setting)
    key_pem = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return KeyAndChain(key_pem, "".join(map(_pem_certificate, (certificate, *others))).encode(), None)


def has_certificate(pem: bytes) -> bool:
    return any(f"-----BEGIN {kind}CERTIFICATE-----".encode() in pem for kind in ("", "TRUSTED ", "X509 "))


def has_private_key(pem: bytes) -> bool:
    return b"PRIVATE KEY-----" in pem


def library(name: str, setting: str) -> Any:
    """A module of the extra ``keystores``; ConfigError that names the extra if it is not installed."""
    try:
        return import_module(name)
    except ImportError:
        raise ConfigError(
            f"{setting} in this format needs the extra 'keystores': pip install 'pykafka08[keystores]'"
        ) from None


def _kind_of(data: bytes) -> str | None:
    if data.startswith(jks.MAGIC):
        return "JKS"
    if data.startswith(_DER_SEQUENCE):
        return "PKCS12"
    return "PEM" if _PEM in data else None


def _opened_jks(store: Store, password: Secret | None) -> jks.JksStore:
    try:
        return jks.parse_jks(store.data, password)
    except ValueError as error:
        raise ConfigError(f"{store.named} cannot be opened: {error}; see {store.password_setting}") from None


def _key_of_jks(
    opened: jks.JksStore, store: Store, password: Secret | None, key_password: Secret | None
) -> KeyAndChain:
    entry = next((key for key in opened.keys if key.chain), None)
    if entry is None:
        raise ConfigError(f"{store.named} has no private key with a certificate")
    password_of_key = password if key_password is None else key_password
    if password_of_key is None:
        raise ConfigError(f"the private key in {store.named} needs {store.password_setting} or ssl_key_password")
    try:
        key = _pem("PRIVATE KEY", jks.unlocked_key(entry, password_of_key))
    except jks.WrongPasswordError:
        text = (
            "ssl_key_password does not open the private key"
            if key_password is not None
            else f"{store.password_setting} does not open the private key: set ssl_key_password"
        )
        raise ConfigError(f"{store.named}: {text}") from None
    except ValueError as error:
        raise ConfigError(f"{store.named}: {error}") from None
    return KeyAndChain(key.encode(), "".join(map(_pem_certificate, entry.chain)).encode(), None)


def _opened_pkcs12(store: Store, password: Secret | None) -> tuple[Any, Any, list[Any]]:
    pkcs12 = library("cryptography.hazmat.primitives.serialization.pkcs12", store.setting)
    try:
        private, certificate, others = pkcs12.load_key_and_certificates(
            store.data, password.reveal().encode() if password is not None else None
        )
    except Exception as error:  # noqa: BLE001 - damaged files and old ciphers raise errors of many kinds
        reason = "" if isinstance(error, ValueError) else f" ({type(error).__name__})"
        raise ConfigError(
            f"{store.named} cannot be opened{reason}: damaged, or {store.password_setting} is wrong or missing"
        ) from None
    return private, certificate, list(others)


def _pem_certificate(certificate: Any) -> str:
    """PEM of DER bytes, or of cryptography's object."""
    if isinstance(certificate, bytes):
        return _pem("CERTIFICATE", certificate)
    serialization = import_module("cryptography.hazmat.primitives.serialization")
    return str(certificate.public_bytes(serialization.Encoding.PEM).decode())


def _pem(what: str, der: bytes) -> str:
    lines = "\n".join(textwrap.wrap(base64.b64encode(der).decode(), 64))
    return f"-----BEGIN {what}-----\n{lines}\n-----END {what}-----\n"
