"""Certificates and private keys from JKS, PKCS #12 and PEM, as PEM.

Kafka's Java clients take these formats under ``ssl.truststore.*`` and ``ssl.keystore.*``; PEM since KIP-651.  JKS and
PKCS #12 need the extra ``keystores``.
"""

from __future__ import annotations

import base64
import textwrap
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from pykafka08.errors import ConfigError
from pykafka08.security.secret import Secret

__all__ = ["KeyAndChain", "kind_of", "read_key_and_chain", "read_trusted"]

TYPES = ("JKS", "PKCS12", "PEM")
_JKS, _JCEKS = b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce"
_DER_SEQUENCE = b"\x30"
_PEM = b"-----BEGIN "


class KeyAndChain(NamedTuple):
    """A private key and its certificates, the own one first; both PEM.  ``password`` unlocks the key."""

    key: bytes
    chain: bytes
    password: Secret | None

    def __repr__(self) -> str:
        return "KeyAndChain(***)"


def kind_of(data: bytes) -> str | None:
    """JKS, PKCS12 or PEM by the content; None for anything else."""
    if data.startswith((_JKS, _JCEKS)):
        return "JKS"
    if data.startswith(_DER_SEQUENCE):
        return "PKCS12"
    return "PEM" if _PEM in data else None


def read_trusted(path: str, setting: str, kind: str | None, password: Secret | None) -> str:
    """The trusted certificates of a store, as PEM; ConfigError naming ``setting`` if it has none or cannot be read."""
    data, kind = _content(path, setting, kind)
    if kind == "PEM":
        return data.decode("ascii", "replace")
    if kind == "JKS":
        store = _opened_jks(data, path, setting, password)
        trusted = [entry.cert for entry in store.certs.values()]
    else:
        _, certificate, others = _opened_pkcs12(data, path, setting, password)
        trusted = [each for each in (certificate, *others) if each is not None]
    if not trusted:
        raise ConfigError(f"{setting}={path!r} has no trusted certificate")
    return "".join(map(_pem_certificate, trusted))


def read_key_and_chain(
    path: str, setting: str, kind: str | None, password: Secret | None, key_password: Secret | None
) -> KeyAndChain:
    """The private key of a store and its certificates; ConfigError naming ``setting`` if it has none."""
    data, kind = _content(path, setting, kind)
    if kind == "PEM":
        return KeyAndChain(data, b"", key_password or password)
    if kind == "JKS":
        store = _opened_jks(data, path, setting, password)
        entry = next(iter(store.private_keys.values()), None)
        if entry is None:
            raise ConfigError(f"{setting}={path!r} has no private key")
        _unlocked(entry, path, setting, key_password or password)
        key = _pem("PRIVATE KEY", entry.pkey_pkcs8)
        chain = "".join(_pem("CERTIFICATE", der) for _, der in entry.cert_chain)
        return KeyAndChain(key.encode(), chain.encode(), None)
    private, certificate, others = _opened_pkcs12(data, path, setting, password)
    if private is None or certificate is None:
        raise ConfigError(f"{setting}={path!r} has no private key with a certificate")
    serialization = _library("cryptography.hazmat.primitives.serialization", setting)
    key_pem = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return KeyAndChain(key_pem, "".join(map(_pem_certificate, (certificate, *others))).encode(), None)


def _content(path: str, setting: str, kind: str | None) -> tuple[bytes, str]:
    """The bytes of the file, and what they are.  A PKCS #12 file under the type JKS is read as Java 9 and later do."""
    if kind is not None and kind.upper() not in TYPES:
        named = setting.replace("_location", "_type")
        raise ConfigError(f"{named}={kind!r:.100} is not one of {', '.join(TYPES)}")
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"{setting}={path!r} cannot be read: {error.strerror or error}") from error
    found = kind_of(data)
    if found is None:
        raise ConfigError(f"{setting}={path!r} is neither JKS nor PKCS #12 nor PEM")
    if kind is not None and (kind.upper() == "PEM") != (found == "PEM"):
        raise ConfigError(f"{setting}={path!r} is {found}, not {kind.upper()}")
    return data, found


def _opened_jks(data: bytes, path: str, setting: str, password: Secret | None) -> Any:
    jks = _library("jks", setting)
    if password is None:
        raise ConfigError(f"{setting}={path!r} needs {_password_setting(setting)}")
    try:
        return jks.KeyStore.loads(data, password.reveal(), try_decrypt_keys=False)
    except Exception as error:  # noqa: BLE001 - the library raises errors of many kinds for damaged files
        raise ConfigError(
            f"{setting}={path!r} cannot be opened ({type(error).__name__}): damaged, or a wrong "
            f"{_password_setting(setting)}"
        ) from None


def _unlocked(entry: Any, path: str, setting: str, password: Secret | None) -> None:
    assert password is not None
    try:
        if not entry.is_decrypted():
            entry.decrypt(password.reveal())
    except Exception as error:  # noqa: BLE001 - as above
        raise ConfigError(
            f"the key in {setting}={path!r} cannot be opened ({type(error).__name__}): a wrong ssl_key_password?"
        ) from None


def _opened_pkcs12(data: bytes, path: str, setting: str, password: Secret | None) -> tuple[Any, Any, list[Any]]:
    pkcs12 = _library("cryptography.hazmat.primitives.serialization.pkcs12", setting)
    key = password.reveal().encode() if password is not None else None
    try:
        private, certificate, others = pkcs12.load_key_and_certificates(data, key)
    except ValueError:
        raise ConfigError(
            f"{setting}={path!r} cannot be opened: damaged, or {_password_setting(setting)} is wrong or missing"
        ) from None
    return private, certificate, list(others)


def _password_setting(setting: str) -> str:
    return setting.replace("_location", "_password")


def _library(name: str, setting: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise ConfigError(
            f"{setting} in this format needs the extra 'keystores': pip install pykafka08[keystores]"
        ) from None


def _pem_certificate(certificate: Any) -> str:
    """PEM of DER bytes, or of cryptography's object."""
    if isinstance(certificate, bytes):
        return _pem("CERTIFICATE", certificate)
    serialization = import_module("cryptography.hazmat.primitives.serialization")
    return str(certificate.public_bytes(serialization.Encoding.PEM).decode())


def _pem(what: str, der: bytes) -> str:
    lines = "\n".join(textwrap.wrap(base64.b64encode(der).decode(), 64))
    return f"-----BEGIN {what}-----\n{lines}\n-----END {what}-----\n"
