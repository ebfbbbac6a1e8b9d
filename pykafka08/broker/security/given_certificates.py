"""Certificates that the user of an embedded cluster gives, in PEM files."""

from __future__ import annotations

import os
import ssl

from pykafka08.errors import ConfigError

__all__ = ["GivenCertificates", "given_certificates"]

File = str | os.PathLike[str]


class GivenCertificates:
    """The brokers' certificate with its private key, and the CA's certificate.

    ``keyfile`` is by default ``certfile``.  The CA may be missing if it is one that clients trust anyway.
    """

    def __init__(self, certfile: File, keyfile: File | None = None, cafile: File | None = None) -> None:
        self._certfile, self._keyfile = os.fspath(certfile), None if keyfile is None else os.fspath(keyfile)
        self.ca_file = None if cafile is None else os.fspath(cafile)
        """Trusted by clients, and for clients' certificates."""
        self.server_context()

    def server_context(self) -> ssl.SSLContext:
        """A context with the brokers' certificate; the files are read again, so that they can be replaced."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(self._certfile, self._keyfile, password="")
        except (OSError, ValueError) as error:  # an SSLError is an OSError
            raise ConfigError(
                f"ssl_certfile={self._certfile!r:.300}, ssl_keyfile={self._keyfile!r:.300}: no certificate with its "
                f"private key, without a passphrase, in PEM form ({_text(error)})"
            ) from None
        if self.ca_file is not None:
            try:
                context.load_verify_locations(self.ca_file)
            except OSError as error:
                raise ConfigError(f"ssl_cafile={self.ca_file!r:.300}: no certificate ({_text(error)})") from None
        return context

    def client_file(self, user: str) -> None:
        """None: clients have certificates of their own."""

    def close(self) -> None:
        """The files stay."""


def given_certificates(
    certfile: File | None,
    keyfile: File | None,
    cafile: File | None,
) -> GivenCertificates | None:
    """The certificates of a cluster's arguments; None if none are given."""
    if certfile is not None:
        return GivenCertificates(certfile, keyfile, cafile)
    for name, value in (("ssl_keyfile", keyfile), ("ssl_cafile", cafile)):
        if value is not None:
            raise ConfigError(f"{name}={os.fspath(value)!r:.300} needs ssl_certfile")
    return None


def _text(error: OSError | ValueError) -> str:
    if isinstance(error, ssl.SSLError):
        return error.reason or str(error)
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
