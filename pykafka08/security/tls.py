"""TLS contexts of a client, and its handshake errors."""

from __future__ import annotations

import ssl

from pykafka08.errors import CertificateError, ConfigError, TlsError
from pykafka08.security.secret import Secret
from pykafka08.security.settings import SecurityConfig

__all__ = ["TlsContexts", "tls_error"]

REASONS = {
    9: "not yet valid",
    10: "expired",
    18: "self-signed",
    19: "unknown CA",
    20: "unknown CA",
    21: "unknown CA",
    23: "revoked",
    26: "wrong purpose",
    62: "wrong host",
    64: "wrong host",
}
"""OpenSSL's verify codes (X509_V_ERR_...)."""


class TlsContexts:
    """Makes the context for each connection."""

    def __init__(self, config: SecurityConfig) -> None:
        self._config = config
        self._context = config.ssl_context or self._made()
        self.is_current = True
        """True if :meth:`current` will read no file."""

    def current(self) -> ssl.SSLContext:
        """The context for the next connection."""
        return self._context

    def _made(self) -> ssl.SSLContext:
        config = self._config
        password = config.ssl_password.reveal() if isinstance(config.ssl_password, Secret) else None
        try:
            context = ssl.create_default_context(cafile=config.ssl_cafile, cadata=config.ssl_cadata)
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            if config.ssl_certfile:
                context.load_cert_chain(config.ssl_certfile, config.ssl_keyfile, password)
        except OSError as error:
            raise ConfigError(
                f"ssl_cafile={config.ssl_cafile!r}, ssl_certfile={config.ssl_certfile!r}: {error}"
            ) from error
        return context


def tls_error(error: BaseException, host: str, address: str) -> TlsError:
    """The error of a TLS handshake that failed."""
    inner: BaseException | None = error
    while inner is not None and not isinstance(inner, ssl.SSLError):
        inner = inner.__cause__ or inner.__context__
    if isinstance(inner, ssl.SSLCertVerificationError):
        reason = REASONS.get(inner.verify_code, "other")
        return CertificateError(
            f"the certificate of {address} is not accepted ({reason}): {inner.verify_message}; see ssl_cafile",
            reason=reason,
        )
    if isinstance(inner, ssl.SSLError) and inner.reason and not isinstance(inner, ssl.SSLEOFError):
        return TlsError(f"the TLS handshake with {address} failed: {inner.reason}; see security_protocol")
    closed = TlsError(f"{address} closed the connection in the TLS handshake: no TLS listener? See security_protocol")
    closed.may_pass = True
    return closed
