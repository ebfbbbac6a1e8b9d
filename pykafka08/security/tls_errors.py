"""Errors of TLS handshakes: what was wrong, and which setting to change."""

from __future__ import annotations

import re
import ssl

from pykafka08.errors import CertificateError, TlsError
from pykafka08.security.peer_names import came_before_certificate, names_in
from pykafka08.security.settings import PATHS, SecurityConfig
from pykafka08.security.ssl_causes import ssl_error_in
from pykafka08.short_names import shortened

__all__ = ["alert_error", "informed_error", "openssl_reason", "tls_error"]

TRUSTED = "{trusted} does not contain the CA of the broker's certificate"
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
    18: ("self-signed", f"{TRUSTED}, which is this very certificate"),
    19: ("unknown CA", TRUSTED),
    20: ("unknown CA", TRUSTED),
    21: ("unknown CA", f"{TRUSTED}; the broker may have to send its intermediate certificates too"),
    23: ("revoked", "ssl_crlfile lists it: the broker needs a new certificate"),
    26: ("wrong purpose", "the broker's certificate is not for servers: it needs extendedKeyUsage serverAuth"),
    62: ("wrong host", WRONG_HOST),
    64: ("wrong host", WRONG_ADDRESS),
    66: ("other", WEAK),
    67: ("other", WEAK),
    68: ("other", WEAK),
}
"""Reason and advice for OpenSSL's verify codes (X509_V_ERR_...); ``{trusted}`` is the setting with the trusted CAs."""

TRUST_STORES = (
    "ssl_context",
    "ssl_cafile",
    "ssl_cadata",
    "ssl_truststore_location",
    "ssl_truststore_certificates",
)
KEY_STORES = ("ssl_context", "ssl_certfile", "ssl_keystore_location", "ssl_keystore_certificate_chain")
NO_KEY_STORE = "ssl_certfile or ssl_keystore_location"
DEMANDED = f"the broker demands a client certificate: set {NO_KEY_STORE}"
CIPHERS = "no common cipher suite (ssl_cipher_suites, ssl_ciphers)"
NO_TLS = "the peer does not speak TLS: check the port, or set security_protocol to PLAINTEXT or SASL_PLAINTEXT"
NO_ORDER = "the peer does not follow the TLS protocol: check the port and security_protocol"

REASONS = {
    "CERTIFICATE_REQUIRED": "the broker does not take the client's certificate in {own}",
    "HANDSHAKE_FAILURE": f"{CIPHERS}, or the broker does not accept the client's certificate in {{own}}",
    "BAD_CERTIFICATE": "the broker does not accept the client's certificate in {own}",
    "UNKNOWN_CA": "the broker does not know the CA of the client's certificate in {own}",
    "CERTIFICATE_EXPIRED": "the client's certificate in {own} has expired",
    "CERTIFICATE_REVOKED": "the client's certificate in {own} is revoked",
    "CERTIFICATE_UNKNOWN": "the broker does not accept the client's certificate in {own}",
    "UNSUPPORTED_CERTIFICATE": "the broker does not take this kind of client certificate: see {own}",
    "ACCESS_DENIED": "the broker does not accept the client's certificate in {own}",
    # Kafka up to 3.0 sends old bytes again before its alert: the first in TLS 1.2, the second in TLS 1.3.
    "UNEXPECTED_MESSAGE": "the broker does not accept the client's certificate in {own}",
    "BAD_RECORD_MAC": "the broker does not accept the client's certificate in {own}",
    "DECRYPT_ERROR": "the broker cannot verify the client's certificate in {own}",
    "BAD_CHANGE_CIPHER_SPEC": NO_ORDER,
    "CCS_RECEIVED_EARLY": NO_ORDER,
    "EXCESSIVE_MESSAGE_SIZE": NO_ORDER,
    "LENGTH_MISMATCH": NO_ORDER,
    "RECORD_TOO_SMALL": NO_ORDER,
    "TOO_MANY_WARN_ALERTS": NO_ORDER,
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
"""Advice by the end of OpenSSL's reason; ``{own}`` is the setting with the client's certificate."""
OF_CLIENT_CERTIFICATES = tuple(reason for reason, advice in REASONS.items() if "{own}" in advice)


def tls_error(error: BaseException, host: str, address: str, config: SecurityConfig) -> TlsError:
    """The error of a TLS handshake with ``address`` that failed, where ``host`` was expected.

    ``error`` is what the handshake raised; an SSLError is looked for among its causes.  ``config`` is the client's.
    """
    inner = ssl_error_in(error)
    if isinstance(inner, ssl.SSLCertVerificationError):
        return _certificate_error(inner, host, address, config)
    if inner is not None and not is_end(inner):
        reason = openssl_reason(inner)
        # Without the broker's certificate the client has not been asked for its own.
        is_early = reason == "UNEXPECTED_MESSAGE" and came_before_certificate(inner)
        advice = NO_ORDER if is_early else _advice(reason, config)
        return TlsError(f"the TLS handshake with {address} failed ({reason}): {advice}")
    return TlsError(
        f"{address} closed the connection in the TLS handshake: if its listener does not use TLS, set "
        "security_protocol to PLAINTEXT or SASL_PLAINTEXT"
    )


def alert_error(error: ssl.SSLError, config: SecurityConfig | None = None) -> TlsError:
    """The error for an alert, or for bytes that are not TLS, after the client's part of the handshake."""
    reason = openssl_reason(error)
    if "ALERT" not in reason and not reason.endswith(("BAD_RECORD_MAC", "UNEXPECTED_MESSAGE")):
        return TlsError(f"the peer sent bytes that are not TLS after the TLS handshake ({reason}): {NO_ORDER}")
    return TlsError(f"the broker ended the TLS connection ({reason}): {_advice(reason, config)}")


def informed_error(error: TlsError, config: SecurityConfig) -> TlsError:
    """The error of an open connection again, with advice for a client of these settings."""
    inner = ssl_error_in(error.__cause__)
    if inner is not None:
        informed = alert_error(inner, config)
    elif config.uses_sasl:
        informed = TlsError(error.message.replace("SSL or SASL_SSL", "SASL_SSL"))
    else:
        return error
    informed.__cause__ = error.__cause__
    return informed


def _certificate_error(
    error: ssl.SSLCertVerificationError, host: str, address: str, config: SecurityConfig
) -> CertificateError:
    reason, advice = VERIFY_CODES.get(error.verify_code, ("other", "the broker needs another certificate"))
    advice = advice.format(trusted=_trusted(config))
    text = f"the certificate of {address} is not accepted ({reason}): {error.verify_message}"
    if reason == "wrong host":
        names = names_in(error)
        if names is not None:
            shown = ", ".join(map(shortened, names)) or "no host name"
            text = f"the certificate of {address} is not accepted ({reason}): it is not for {host!r} but for {shown}"
    return CertificateError(f"{text}; {advice}", reason=reason)


def _trusted(config: SecurityConfig) -> str:
    given = _given(config, TRUST_STORES)
    return given or "the system's trust store, in use without ssl_cafile and ssl_truststore_location,"


def _given(config: SecurityConfig, names: tuple[str, ...]) -> str | None:
    """The first of these settings that is set, with the path if it is one."""
    for name in names:
        value = getattr(config, name)
        if value is not None:
            return f"{name}={value!r}" if name.endswith(PATHS) else name
    return None


def is_end(error: ssl.SSLError) -> bool:
    """True if the peer closed the connection without a TLS alert."""
    ends = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)
    return isinstance(error, ends) or openssl_reason(error).startswith("UNEXPECTED_EOF")


def openssl_reason(error: ssl.SSLError) -> str:
    """OpenSSL's reason in one form: Python has no name for reasons of a newer OpenSSL, only their text."""
    known: str | None = getattr(error, "reason", None)  # errors that Python code made lack it
    if known:
        return known
    text = re.sub(r"^\[[^]]*\] *|\(_ssl\.c:\d+\)$", "", error.strerror or str(error)).strip()
    return text.upper().replace(" ", "_") or "UNKNOWN"


def _advice(reason: str, config: SecurityConfig | None) -> str:
    advice = next((text for end, text in REASONS.items() if reason.endswith(end)), "see security_protocol")
    own = _given(config, KEY_STORES) if config is not None else NO_KEY_STORE
    if own is None and reason.endswith(OF_CLIENT_CERTIFICATES):
        # An alert about a certificate that was not sent is about its absence.
        return f"{CIPHERS}, or {DEMANDED}" if reason.endswith("HANDSHAKE_FAILURE") else DEMANDED
    return advice.format(own=own)
