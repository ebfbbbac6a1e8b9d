"""The client's certificate and private key in a TLS context.

OpenSSL, as Python offers it, reads keys from files alone.  A key that comes from a store or from a setting is given to
it in a file in memory, or, where the system has none, in an encrypted file that is removed at once.
"""

from __future__ import annotations

import os
import secrets
import ssl
import tempfile
from typing import NamedTuple

from pykafka08.errors import ConfigError
from pykafka08.security.keystores import KeyAndChain, has_certificate, has_private_key, library, read_file
from pykafka08.security.secret import Secret

__all__ = ["KeySettings", "load_key_files", "load_key_in_memory"]


class KeySettings(NamedTuple):
    """Names of the settings, for errors."""

    certificate: str = "ssl_certfile"
    key: str = "ssl_keyfile"
    password: str = "ssl_password"  # noqa: S105 - a setting's name


class Passphrase:
    """Called by OpenSSL for the passphrase, only if the key is encrypted."""

    def __init__(self, secret: Secret | None) -> None:
        self._secret = secret
        self.was_asked = False

    def __call__(self) -> str:
        self.was_asked = True
        return self._secret.reveal() if self._secret is not None else ""  # without one it would ask at the terminal

    @property
    def is_known(self) -> bool:
        return self._secret is not None


def load_key_files(
    context: ssl.SSLContext,
    certfile: str,
    keyfile: str | None,
    password: Secret | None,
    names: KeySettings = KeySettings(),  # noqa: B008 - immutable
) -> None:
    """Load a certificate and its key; ConfigError that names the file that cannot be used."""
    named = f"{names.certificate}={certfile!r}"
    if not has_certificate(read_file(certfile, names.certificate)):
        raise ConfigError(f"{named} has no certificate in PEM")
    named_key = named if keyfile is None else f"{names.key}={keyfile!r}"
    if not has_private_key(read_file(keyfile or certfile, names.key if keyfile else names.certificate)):
        advice = "" if keyfile else f"; give it in {names.key}"
        raise ConfigError(f"{named_key} has no private key in PEM{advice}")
    _load(context, certfile, keyfile, password, named if keyfile is None else f"{named}, {named_key}", names.password)


def load_key_in_memory(context: ssl.SSLContext, own: KeyAndChain, named: str, setting: str) -> None:
    """Load a key of a store or a setting; ``named`` shows it in errors without its text."""
    if _loaded_from_memory(context, own, named):
        return
    if b"ENCRYPTED" not in own.key:
        own = _encrypted(own, Secret(secrets.token_urlsafe(32)), named, setting)
    descriptor, path = tempfile.mkstemp(prefix="pykafka08-", suffix=".pem")  # this user alone may read it
    try:
        with open(descriptor, "wb") as file:
            file.write(own.pem)
        _load(context, path, None, own.password, named, own.password_setting)
    finally:
        os.unlink(path)


def _loaded_from_memory(context: ssl.SSLContext, own: KeyAndChain, named: str) -> bool:
    """False if the system has no files in memory, or does not show them to OpenSSL."""
    try:
        descriptor = os.memfd_create("pykafka08")
    except (AttributeError, OSError):
        return False
    with open(descriptor, "wb") as file:
        path = f"/proc/self/fd/{descriptor}"
        if not os.path.exists(path):
            return False
        file.write(own.pem)
        file.flush()
        _load(context, path, None, own.password, named, own.password_setting)
    return True


def _encrypted(own: KeyAndChain, password: Secret, named: str, setting: str) -> KeyAndChain:
    serialization = library("cryptography.hazmat.primitives.serialization", setting)
    lock = serialization.BestAvailableEncryption(password.reveal().encode())
    try:
        private = serialization.load_pem_private_key(own.key, None)
        encrypted: bytes = private.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, lock)
    except Exception as error:  # noqa: BLE001 - keys that are damaged or of an unknown kind raise errors of many kinds
        raise ConfigError(f"{named} has a private key that cannot be read ({type(error).__name__})") from None
    return KeyAndChain(encrypted, own.chain, password)


def _load(
    context: ssl.SSLContext, certfile: str, keyfile: str | None, password: Secret | None, named: str, setting: str
) -> None:
    passphrase = Passphrase(password)
    try:
        context.load_cert_chain(certfile, keyfile, passphrase)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or "damaged"
        if "MISMATCH" in reason:
            text = "the private key does not belong to the certificate"
        elif passphrase.was_asked and not passphrase.is_known:
            text = f"the private key is encrypted: set {setting}"
        elif passphrase.was_asked and setting.endswith("store_password"):
            text = f"{setting} does not open the private key: set ssl_key_password"
        elif passphrase.was_asked:
            text = f"the private key cannot be opened: {setting} is wrong, or the key is damaged"
        else:
            text = f"the certificate or the private key is damaged or of an unknown kind ({reason})"
        raise ConfigError(f"{named}: {text}") from None
