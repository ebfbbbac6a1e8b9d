"""Errors of TLS handshakes: what was wrong, and which setting to change."""

from __future__ import annotations

import re
import ssl

from pykafka08.errors import CertificateError, TlsError
from pykafka08.security.peer_names import names_in
from pykafka08.short_names import shortened

__all__ = ["alert_error", "tls_error"]

GIVE_CA = "give the certificate of the broker's CA in ssl_cafile or ssl_truststore_location"
WRONG_HOST = "connect by a name in the certificate, or give the broker a certificate for this one"
WRONG_ADDRESS = (
    "connect by a name in the certificate, or give the broker a certificate that has this IP address as an 'IP' entry "
    "of its subject alternative names"
)
CLOCKS = "check the clocks of this machine and of the broker"
WEAK = "the broker needs a certificate with a longer key and SHA-256"

VERIFY_CODES = {
    3: ("other", "ssl_crlfile has no revocation list of the certificate's CA"),
    8: ("other", "ssl_crlfile was not signed by the certificate's CA"),
    9: ("not yet valid", CLOCKS),
    10: ("expired", "the broker needs a new certificate"),
    11: ("other", f"the revocation list in ssl_crlfile is not yet valid: {CLOCKS}"),
    12: ("other", "the revocation list in ssl_crlfile has expired: get the CA's present one"),
    18: ("self-signed", f"{GIVE_CA}, or this very certificate"),
    19: ("unknown CA", GIVE_CA),
    20: ("unknown CA", GIVE_CA),
    21: ("unknown CA", f"{GIVE_CA}; the broker may have to send its intermediate certificates too"),
    23: ("revoked", "ssl_crlfile lists it: the broker needs a new certificate"),
    26: ("wrong purpose", "the broker's certificate is not for servers: it needs extendedKeyUsage serverAuth"),
    62: ("wrong host", WRONG_HOST),
    64: ("wrong host", WRONG_ADDRESS),
    66: ("other", WEAK),
    67: ("other", WEAK),
    68: ("other", WEAK),
}
"""Reason and advice for OpenSSL's verify codes (X509_V_ERR_...)."""

OWN = "ssl_certfile or ssl_keystore_location"
NO_TLS = "the peer does not speak TLS: check the port, or set security_protocol to PLAINTEXT or SASL_PLAINTEXT"

REASONS = {
    "CERTIFICATE_REQUIRED": f"the broker demands a client certificate: set {OWN}",
    "HANDSHAKE_FAILURE": f"no common cipher suite (ssl_cipher_suites, ssl_ciphers), or the broker demands a client "
    f"certificate ({OWN})",
    "BAD_CERTIFICATE": f"the broker demands a client certificate, or does not accept the one in {OWN}",
    "UNKNOWN_CA": f"the broker does not know the CA of the client's certificate in {OWN}",
    "CERTIFICATE_EXPIRED": f"the client's certificate in {OWN} has expired",
    "CERTIFICATE_REVOKED": f"the client's certificate in {OWN} is revoked",
    "CERTIFICATE_UNKNOWN": f"the broker does not accept the client's certificate in {OWN}",
    "UNSUPPORTED_CERTIFICATE": f"the broker does not take this kind of client certificate: see {OWN}",
    "ACCESS_DENIED": f"the broker does not accept the client's certificate in {OWN}",
    "DECRYPT_ERROR": f"the broker cannot verify the client's certificate in {OWN}",
    "PROTOCOL_VERSION": "no common TLS version: see ssl_enabled_protocols and ssl_protocol",
    "UNSUPPORTED_PROTOCOL": "no common TLS version: see ssl_enabled_protocols and ssl_protocol; versions below TLSv1.2 "
    "are not used",
    "INSUFFICIENT_SECURITY": "the broker demands stronger cipher suites: see ssl_cipher_suites and ssl_ciphers",
    "NO_CIPHERS_AVAILABLE": "ssl_cipher_suites or ssl_ciphers leave none for these TLS versions",
    "DH_KEY_TOO_SMALL": "the broker's Diffie-Hellman key is too short: use other ssl_cipher_suites",
    "EE_KEY_TOO_SMALL": WEAK,
    "UNRECOGNIZED_NAME": "the broker does not know itself by this host name: connect by another",
    "WRONG_VERSION_NUMBER": NO_TLS,
    "RECORD_LAYER_FAILURE": NO_TLS,
    "PACKET_LENGTH_TOO_LONG": NO_TLS,
    "UNKNOWN_PROTOCOL": NO_TLS,
    "HTTP_REQUEST": f"the peer speaks HTTP; {NO_TLS}",
}
"""Advice by the end of OpenSSL's reason."""


def tls_error(error: BaseException, host: str, address: str) -> TlsError:
    """The error of a TLS handshake with ``address`` that failed, where ``host`` was expected.

    ``error`` is what the handshake raised; an SSLError is looked for among its causes.
    """
    inner = _ssl_error_in(error)
    if isinstance(inner, ssl.SSLCertVerificationError):
        return _certificate_error(inner, host, address)
    if inner is not None and not _is_end(inner):
        reason = _reason_of(inner)
        return TlsError(f"the TLS handshake with {address} failed ({reason}): {_advice(reason)}")
    return TlsError(
        f"{address} closed the connection in the TLS handshake: if its listener does not use TLS, set "
        "security_protocol to PLAINTEXT or SASL_PLAINTEXT"
    )


def alert_error(error: ssl.SSLError) -> TlsError:
    """The error of an alert that ended a connection after the client's part of the handshake."""
    reason = _reason_of(error)
    return TlsError(f"the broker ended the TLS connection ({reason}): {_advice(reason)}")


def _certificate_error(error: ssl.SSLCertVerificationError, host: str, address: str) -> CertificateError:
    reason, advice = VERIFY_CODES.get(error.verify_code, ("other", "the broker needs another certificate"))
    text = f"the certificate of {address} is not accepted ({reason}): {error.verify_message}"
    if reason == "wrong host":
        names = names_in(error)
        if names is not None:
            shown = ", ".join(map(shortened, names)) or "no host name"
            text = f"the certificate of {address} is not accepted ({reason}): it is not for {host!r} but for {shown}"
    return CertificateError(f"{text}; {advice}", reason=reason)


def _ssl_error_in(error: BaseException) -> ssl.SSLError | None:
    inner: BaseException | None = error
    while inner is not None and not isinstance(inner, ssl.SSLError):
        inner = inner.__cause__ or inner.__context__
    return inner


def _is_end(error: ssl.SSLError) -> bool:
    """True if the peer closed the connection without a TLS alert."""
    ends = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)
    return isinstance(error, ends) or _reason_of(error).startswith("UNEXPECTED_EOF")


def _reason_of(error: ssl.SSLError) -> str:
    """OpenSSL's reason in one form: Python has no name for reasons of a newer OpenSSL, only their text."""
    known: str | None = getattr(error, "reason", None)  # errors that Python code made lack it
    if known:
        return known
    text = re.sub(r"^\[[^]]*\] *|\(_ssl\.c:\d+\)$", "", error.strerror or str(error)).strip()
    return text.upper().replace(" ", "_") or "UNKNOWN"


def _advice(reason: str) -> str:
    return next((text for end, text in REASONS.items() if reason.endswith(end)), "see security_protocol")
