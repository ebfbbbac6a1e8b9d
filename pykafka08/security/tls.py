"""TLS contexts of a client, which follow certificates that change on disk, and the errors of TLS handshakes."""

from __future__ import annotations

import contextlib
import os
import ssl
import tempfile
from collections.abc import Iterator

from pykafka08.errors import CertificateError, ConfigError, TlsError
from pykafka08.logs import library_logger
from pykafka08.security.cipher_suites import openssl_ciphers
from pykafka08.security.keystores import KeyAndChain, read_key_and_chain, read_trusted
from pykafka08.security.secret import Secret
from pykafka08.security.settings import SecurityConfig

__all__ = ["TlsContexts", "alert_error", "tls_error"]

log = library_logger("security")

FILES = (
    "ssl_cafile",
    "ssl_certfile",
    "ssl_crlfile",
    "ssl_keyfile",
    "ssl_keystore_location",
    "ssl_truststore_location",
)
VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
ANY_VERSION = ("TLS", "TLSv1.3")
NO_HOST_CHECK = "any certificate of the trusted CAs is accepted, for whatever host"
NO_CHECK = "anybody on the network path can read and change everything"


class TlsContexts:
    """The contexts for the connections of one client; ConfigError if files or settings cannot be used."""

    def __init__(self, config: SecurityConfig) -> None:
        self._config = config
        self._check()
        self._files = [getattr(config, name) for name in FILES if getattr(config, name) is not None]
        self._warned_of: object = None
        self._seen = self._fingerprint()
        self._context = config.ssl_context or self._made()
        self._warn()

    @property
    def is_current(self) -> bool:
        """True if :meth:`current` will not build a context, which reads files; it is cheap then."""
        return self._fingerprint() == self._seen

    def current(self) -> ssl.SSLContext:
        """The context for the next connection.

        Builds it anew if a file has changed.  Files that cannot be used, such as half-written ones, are tried again at
        the next call; until then the last context stays in use.
        """
        seen = self._fingerprint()
        if seen != self._seen:
            try:
                self._context = self._made()
                self._seen = seen
                log.info("security.certificates_reloaded")
            except ConfigError as error:
                if seen != self._warned_of:
                    self._warned_of = seen
                    log.warning("security.certificates_unusable", cause=str(error), advice="the last ones stay in use")
        return self._context

    def _fingerprint(self) -> tuple[object, ...]:
        return tuple(map(_state_of, self._files))

    def _check(self) -> None:
        config = self._config
        if not config.ssl_check_hostname:
            raise ConfigError("ssl_check_hostname=False: set ssl_insecure_skip_hostname_check=True if that is meant")
        if config.ssl_endpoint_identification_algorithm.lower() not in ("https", ""):
            shown = config.ssl_endpoint_identification_algorithm[:100]
            raise ConfigError(f"ssl_endpoint_identification_algorithm={shown!r} is neither 'https' nor empty")
        if config.ssl_context is not None:
            others = sorted(name for name in _changed(config) if name.startswith("ssl_") and name != "ssl_context")
            if others:
                raise ConfigError(f"ssl_context has its own certificates: leave out {', '.join(others)}")

    def _warn(self) -> None:
        if self._config.ssl_insecure_skip_verify:
            log.warning("security.certificates_not_checked", advice=NO_CHECK)
        elif self._skips_host_check:
            log.warning("security.hosts_not_checked", advice=NO_HOST_CHECK)

    @property
    def _skips_host_check(self) -> bool:
        return self._config.ssl_insecure_skip_hostname_check or not self._config.ssl_endpoint_identification_algorithm

    def _made(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._choose_versions(context)
        self._load_trusted(context)
        self._load_key(context)
        config = self._config
        if config.ssl_crlfile is not None:
            with _named("ssl_crlfile", config.ssl_crlfile):
                context.load_verify_locations(config.ssl_crlfile)
            context.verify_flags |= ssl.VerifyFlags.VERIFY_CRL_CHECK_LEAF
        if self._skips_host_check or config.ssl_insecure_skip_verify:
            context.check_hostname = False
        if config.ssl_insecure_skip_verify:
            context.verify_mode = ssl.CERT_NONE
        return context

    def _choose_versions(self, context: ssl.SSLContext) -> None:
        config = self._config
        versions = list(VERSIONS.values())
        if config.ssl_enabled_protocols:
            names = [name.strip() for name in config.ssl_enabled_protocols.split(",") if name.strip()]
            versions = [VERSIONS[name] for name in names if name in VERSIONS]
            if not versions:
                raise ConfigError(f"ssl_enabled_protocols={names} has none of {', '.join(VERSIONS)}")
        if config.ssl_protocol and config.ssl_protocol not in ANY_VERSION:
            if config.ssl_protocol not in VERSIONS:
                raise ConfigError(f"ssl_protocol={config.ssl_protocol!r:.100} is not one of TLS, {', '.join(VERSIONS)}")
            versions = [each for each in versions if each <= VERSIONS[str(config.ssl_protocol)]]
        if not versions:
            raise ConfigError("ssl_protocol and ssl_enabled_protocols have no TLS version in common")
        context.minimum_version, context.maximum_version = min(versions), max(versions)
        if config.ssl_cipher_suites:
            ciphers, has_tls_1_3 = openssl_ciphers(config.ssl_cipher_suites)
            if not has_tls_1_3:
                context.maximum_version = ssl.TLSVersion.TLSv1_2
        else:
            ciphers = config.ssl_ciphers or ""
        if ciphers:
            with _named("ssl_ciphers", ciphers):
                context.set_ciphers(ciphers)

    def _load_trusted(self, context: ssl.SSLContext) -> None:
        config = self._config
        given = False
        if config.ssl_cafile is not None or config.ssl_cadata is not None:
            given = True
            name = "ssl_cafile" if config.ssl_cafile is not None else "ssl_cadata"
            with _named(name, config.ssl_cafile or "..."):
                context.load_verify_locations(cafile=config.ssl_cafile, cadata=config.ssl_cadata)
        if config.ssl_truststore_certificates is not None:
            given = True
            with _named("ssl_truststore_certificates", "..."):
                context.load_verify_locations(cadata=config.ssl_truststore_certificates)
        if config.ssl_truststore_location is not None:
            given = True
            where = "ssl_truststore_location"
            password = _secret(config.ssl_truststore_password)
            trusted = read_trusted(config.ssl_truststore_location, where, config.ssl_truststore_type, password)
            with _named(where, config.ssl_truststore_location):
                context.load_verify_locations(cadata=trusted)
        if not given:
            context.load_default_certs()

    def _load_key(self, context: ssl.SSLContext) -> None:
        config = self._config
        if config.ssl_certfile is not None:
            password = _secret(config.ssl_password)
            with _named("ssl_certfile", f"{config.ssl_certfile}, ssl_keyfile={config.ssl_keyfile}"):
                context.load_cert_chain(config.ssl_certfile, config.ssl_keyfile, _revealed(password))
        elif config.ssl_keyfile is not None:
            raise ConfigError("ssl_keyfile without ssl_certfile")
        if config.ssl_keystore_location is not None:
            where = "ssl_keystore_location"
            own = read_key_and_chain(
                config.ssl_keystore_location,
                where,
                config.ssl_keystore_type,
                _secret(config.ssl_keystore_password),
                _secret(config.ssl_key_password),
            )
            with _named(where, config.ssl_keystore_location):
                _load_from_memory(context, own)
        elif config.ssl_keystore_key is not None or config.ssl_keystore_certificate_chain is not None:
            key, chain = _secret(config.ssl_keystore_key), config.ssl_keystore_certificate_chain
            if key is None or chain is None:
                raise ConfigError("ssl_keystore_key and ssl_keystore_certificate_chain go together")
            own = KeyAndChain(key.reveal().encode(), chain.encode(), _secret(config.ssl_key_password))
            with _named("ssl_keystore_key", "***"):
                _load_from_memory(context, own)


def _changed(config: SecurityConfig) -> set[str]:
    """Names of settings that do not have their defaults."""
    usual = SecurityConfig()
    return {name for name in SecurityConfig.names() if getattr(config, name) != getattr(usual, name)}


def _secret(value: object) -> Secret | None:
    return value if isinstance(value, Secret) else None


def _revealed(password: Secret | None) -> str:
    """Never None: OpenSSL would ask at the terminal."""
    return password.reveal() if password is not None else ""


def _state_of(path: str) -> tuple[int, int, int] | None:
    try:
        state = os.stat(path)
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size, state.st_ino


@contextlib.contextmanager
def _named(setting: str, value: str) -> Iterator[None]:
    """Errors of OpenSSL as ConfigError that names the setting."""
    try:
        yield
    except FileNotFoundError as error:
        raise ConfigError(f"{setting}={value}: no such file") from error
    except ssl.SSLError as error:
        reason = getattr(error, "reason", None) or str(error)
        hint = KEY_HINTS.get(reason, "")
        raise ConfigError(f"{setting}={value} cannot be used: {reason}{hint}") from error
    except (OSError, ValueError) as error:
        raise ConfigError(f"{setting}={value} cannot be used: {error}") from error


KEY_HINTS = {
    "KEY_VALUES_MISMATCH": ": the private key does not belong to the certificate",
    "BAD_DECRYPT": ": a wrong passphrase",
    "BAD_PASSWORD_READ": ": the private key needs a passphrase",
    "NO_START_LINE": ": it is not PEM",
    "NO_CERTIFICATE_OR_CRL_FOUND": ": it has no certificate",
}


def _load_from_memory(context: ssl.SSLContext, own: KeyAndChain) -> None:
    """Load a key that is in no PEM file: OpenSSL takes files alone, so it gets one in memory, or for a moment."""
    data = own.chain + b"\n" + own.key  # a text from a properties file may lack its last line feed
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("pykafka08-key")
        path = f"/proc/self/fd/{descriptor}"
    else:
        descriptor, path = tempfile.mkstemp(prefix="pykafka08-key-")  # readable by this user alone
    try:
        os.write(descriptor, data)
        context.load_cert_chain(path, password=_revealed(own.password))
    finally:
        os.close(descriptor)
        if not path.startswith("/proc/"):
            os.unlink(path)


REASONS = {
    3: "revoked",
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
"""Reason of each of OpenSSL's verify codes (X509_V_ERR_...)."""

ADVICE = {
    "not yet valid": "check the clocks of this machine and of the broker",
    "expired": "the broker needs a new certificate",
    "self-signed": "give the certificate of the broker's CA in ssl_cafile or ssl_truststore_location",
    "unknown CA": "give the certificate of the broker's CA in ssl_cafile or ssl_truststore_location",
    "wrong host": "connect by a name in the certificate, or give the broker a certificate for this one",
    "wrong purpose": "the broker's certificate is not for servers",
    "revoked": "see ssl_crlfile",
}

ALERTS = {
    "CERTIFICATE_REQUIRED": "the broker demands a client certificate: set ssl_certfile or ssl_keystore_location",
    "HANDSHAKE_FAILURE": "no common cipher suite, or the broker demands a client certificate (ssl_certfile)",
    "BAD_CERTIFICATE": "the broker does not accept the client's certificate (ssl_certfile, ssl_keystore_location)",
    "UNKNOWN_CA": "the broker does not know the CA of the client's certificate (ssl_certfile, ssl_keystore_location)",
    "CERTIFICATE_EXPIRED": "the client's certificate has expired (ssl_certfile, ssl_keystore_location)",
    "CERTIFICATE_REVOKED": "the client's certificate is revoked (ssl_certfile, ssl_keystore_location)",
    "CERTIFICATE_UNKNOWN": "the broker does not accept the client's certificate (ssl_certfile, ssl_keystore_location)",
    "UNSUPPORTED_CERTIFICATE": "the broker does not take this kind of client certificate (ssl_certfile)",
    "PROTOCOL_VERSION": "no common TLS version: see ssl_enabled_protocols",
    "UNSUPPORTED_PROTOCOL": "the broker speaks only TLS versions below 1.2, which are not used",
    "WRONG_VERSION_NUMBER": "the peer does not speak TLS: see security_protocol",
    "RECORD_LAYER_FAILURE": "the peer does not speak TLS: see security_protocol",
    "HTTP_REQUEST": "the peer speaks HTTP: see security_protocol and the port",
}
"""What to do, by the end of OpenSSL's reason."""


def tls_error(error: BaseException, host: str, address: str) -> TlsError:
    """The error of a TLS handshake with ``address`` that failed, where ``host`` was expected."""
    inner: BaseException | None = error
    while inner is not None and not isinstance(inner, ssl.SSLError):
        inner = inner.__cause__ or inner.__context__
    if isinstance(inner, ssl.SSLCertVerificationError):
        reason = REASONS.get(inner.verify_code, "other")
        advice = f"; {ADVICE[reason]}" if reason in ADVICE else ""
        return CertificateError(
            f"the certificate of {address} is not accepted ({reason}): {inner.verify_message}{advice}", reason=reason
        )
    if isinstance(inner, ssl.SSLError) and inner.reason and not isinstance(inner, ssl.SSLEOFError):
        return TlsError(f"the TLS handshake with {address} failed ({inner.reason}): {_advice(inner.reason)}")
    closed = TlsError(
        f"{address} closed the connection in the TLS handshake: if its listener does not use TLS, set "
        "security_protocol to PLAINTEXT or SASL_PLAINTEXT"
    )
    closed.may_pass = True
    return closed


def alert_error(error: ssl.SSLError) -> TlsError:
    """The error of an alert that ended a connection after the client's part of the handshake."""
    reason = error.reason or str(error)
    return TlsError(f"the broker ended the TLS connection ({reason}): {_advice(reason)}")


def _advice(reason: str) -> str:
    return next((text for end, text in ALERTS.items() if reason.endswith(end)), "see security_protocol")
