"""TLS contexts of a client, which follow certificates that change on disk."""

from __future__ import annotations

import os
import ssl
import sys
import threading

from pykafka08.errors import ConfigError
from pykafka08.logs import library_logger
from pykafka08.security.cipher_suites import openssl_ciphers
from pykafka08.security.client_key import load_key_files, load_key_in_memory
from pykafka08.security.keystores import KeyAndChain, has_certificate, key_in, read_file, read_store, trusted_in
from pykafka08.security.peer_names import NamedPeer
from pykafka08.security.pem import with_line_breaks
from pykafka08.security.secret import Secret
from pykafka08.security.settings import SecurityConfig

__all__ = ["TlsContexts"]

log = library_logger("security")

FILES = (
    "ssl_cafile",
    "ssl_certfile",
    "ssl_crlfile",
    "ssl_keyfile",
    "ssl_keystore_location",
    "ssl_truststore_location",
)
EITHER = (
    ("ssl_certfile", "ssl_keystore_location"),
    ("ssl_certfile", "ssl_keystore_key"),
    ("ssl_keystore_location", "ssl_keystore_key"),
    ("ssl_truststore_location", "ssl_truststore_certificates"),
    ("ssl_ciphers", "ssl_cipher_suites"),
)
"""Settings that exclude each other."""
VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
TRUSTED = ("ssl_cadata", "ssl_cafile", "ssl_truststore_certificates", "ssl_truststore_location")
OLD_VERSIONS = ("SSLv2Hello", "SSLv3", "TLSv1", "TLSv1.1")
"""Versions that Java's setting may name; this client never uses them."""
ANY_VERSION = ("TLS", "TLSV1.3")
NO_HOST_CHECK = "any certificate of a trusted CA is accepted, for any host"
NO_CHECK = "anyone on the network path can read and change everything"


class TlsContexts:
    """The contexts for the connections of one client; ConfigError if files or settings cannot be used.

    The constructor reads the files; so does :meth:`current` while ``is_current`` is False: call it in a thread then.
    All methods may be called from any thread.
    """

    def __init__(self, config: SecurityConfig) -> None:
        self._config = config
        self._check()
        self._files = [getattr(config, name) for name in FILES if getattr(config, name) is not None]
        self._warned_of: object = None
        self._building = threading.Lock()  # so that only one of two connections reads the files and logs warnings
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
        if not self.is_current:
            with self._building:
                seen = self._fingerprint()
                if seen != self._seen:
                    self._reload(seen)
        return self._context

    def _reload(self, seen: tuple[object, ...]) -> None:
        try:
            self._context = self._made()
            self._seen = seen
            log.info("security.certificates_reloaded")
        except ConfigError as error:
            if seen != self._warned_of:
                self._warned_of = seen
                self._config.setting_names.in_error(error)
                log.warning("security.certificates_unusable", cause=str(error), advice="the last ones stay in use")

    def _fingerprint(self) -> tuple[object, ...]:
        return tuple(map(_state_of, self._files))

    def _check(self) -> None:
        config = self._config
        if config.ssl_endpoint_identification_algorithm.lower() not in ("https", ""):
            shown = f"{config.ssl_endpoint_identification_algorithm!r:.100}"
            raise ConfigError(f"ssl_endpoint_identification_algorithm={shown} is neither 'https' nor empty")
        for one, other in EITHER:
            if getattr(config, one) is not None and getattr(config, other) is not None:
                raise ConfigError(f"{one} and {other} exclude each other: set only one")
        for store in ("ssl_truststore", "ssl_keystore"):  # Java refuses it too
            if getattr(config, f"{store}_password") is not None and getattr(config, f"{store}_location") is None:
                raise ConfigError(f"{store}_password is given without {store}_location: set both, or neither")
        if config.ssl_context is not None:
            others = sorted(name for name in _changed(config) if name.startswith("ssl_") and name != "ssl_context")
            if others:
                raise ConfigError(f"ssl_context has its own certificates: leave out {', '.join(others)}")
            if config.ssl_context.protocol is ssl.PROTOCOL_TLS_SERVER:
                raise ConfigError(
                    "ssl_context is a context for servers: create one for clients with ssl.create_default_context()"
                )

    def _warn(self) -> None:
        if self._context.verify_mode is ssl.CERT_NONE:
            log.warning("security.certificates_not_checked", advice=NO_CHECK)
        elif not self._context.check_hostname:
            log.warning("security.hosts_not_checked", advice=NO_HOST_CHECK)

    @property
    def _skips_host_check(self) -> bool:
        return self._config.ssl_insecure_skip_hostname_check or not self._config.ssl_endpoint_identification_algorithm

    def _made(self) -> ssl.SSLContext:
        config = self._config
        given = any(getattr(config, name) is not None for name in TRUSTED)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if given else _context_of_system()
        context.sslobject_class = NamedPeer
        self._choose_versions(context)
        if given:
            self._load_trusted(context)
            # As in Java, a certificate that is trusted by itself need not lead to a root.
            context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
        self._load_key(context)
        if config.ssl_crlfile is not None:
            _load_revoked(context, config.ssl_crlfile)
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
            shown = f"{config.ssl_enabled_protocols!r:.100}"
            if not {*VERSIONS, *OLD_VERSIONS}.issuperset(names):
                known = ", ".join(VERSIONS)
                raise ConfigError(f"ssl_enabled_protocols={shown} has an unknown TLS version: use {known}")
            versions = [VERSIONS[name] for name in names if name in VERSIONS]
            if not versions:
                raise ConfigError(f"ssl_enabled_protocols={shown} has none of {', '.join(VERSIONS)}")
        # As in Java, case does not matter in ssl_protocol, but it does in ssl_enabled_protocols.
        newest = (config.ssl_protocol or "TLS").upper()
        if newest not in ANY_VERSION:
            by_name = {name.upper(): version for name, version in VERSIONS.items()}
            if newest not in by_name:
                raise ConfigError(f"ssl_protocol={config.ssl_protocol!r:.100} is not one of TLS, {', '.join(VERSIONS)}")
            versions = [each for each in versions if each <= by_name[newest]]
        if not versions:
            raise ConfigError("ssl_protocol and ssl_enabled_protocols have no TLS version in common")
        ciphers, setting = config.ssl_ciphers, "ssl_ciphers"
        if config.ssl_cipher_suites:
            setting = "ssl_cipher_suites"
            ciphers, has_tls_1_3 = openssl_ciphers(config.ssl_cipher_suites)
            usable = [VERSIONS["TLSv1.2"]] * bool(ciphers) + [VERSIONS["TLSv1.3"]] * has_tls_1_3
            versions = [each for each in versions if each in usable]
            if not versions:
                raise ConfigError("ssl_cipher_suites has no suite for the TLS versions in ssl_enabled_protocols")
        context.minimum_version, context.maximum_version = min(versions), max(versions)
        if ciphers:
            try:
                context.set_ciphers(ciphers)
            except ssl.SSLError as error:
                raise ConfigError(f"{setting}={ciphers!r:.100}: OpenSSL knows no such cipher") from error

    def _load_trusted(self, context: ssl.SSLContext) -> None:
        config = self._config
        if config.ssl_cafile is not None:
            named = f"ssl_cafile={config.ssl_cafile!r}"
            if not has_certificate(read_file(config.ssl_cafile, "ssl_cafile")):
                raise ConfigError(f"{named} has no certificate in PEM")
            _trust(context, named, cafile=config.ssl_cafile)
        if config.ssl_cadata is not None:
            _trust(context, "ssl_cadata", cadata=_readable(config.ssl_cadata))
        if config.ssl_truststore_certificates is not None:
            _trust(context, "ssl_truststore_certificates", cadata=_readable(config.ssl_truststore_certificates))
        if config.ssl_truststore_location is not None:
            store = read_store(config.ssl_truststore_location, "ssl_truststore_location", config.ssl_truststore_type)
            trusted = trusted_in(store, _secret(config.ssl_truststore_password))
            _trust(context, store.named, cadata=trusted)

    def _load_key(self, context: ssl.SSLContext) -> None:
        config = self._config
        key, chain = _secret(config.ssl_keystore_key), config.ssl_keystore_certificate_chain
        if (key is None) != (chain is None):
            raise ConfigError("ssl_keystore_key and ssl_keystore_certificate_chain go together")
        if config.ssl_keyfile is not None and config.ssl_certfile is None:
            raise ConfigError("ssl_keyfile without ssl_certfile")
        if config.ssl_certfile is not None:
            load_key_files(context, config.ssl_certfile, config.ssl_keyfile, _secret(config.ssl_password))
        elif config.ssl_keystore_location is not None:
            store = read_store(config.ssl_keystore_location, "ssl_keystore_location", config.ssl_keystore_type)
            own = key_in(store, _secret(config.ssl_keystore_password), _secret(config.ssl_key_password))
            load_key_in_memory(context, own, store.named, store.setting)
        elif key is not None and chain is not None:
            own = KeyAndChain(
                with_line_breaks(key.reveal().encode()),
                with_line_breaks(chain.encode()),
                _secret(config.ssl_key_password),
            )
            load_key_in_memory(context, own, "ssl_keystore_key", "ssl_keystore_key")


def _context_of_system() -> ssl.SSLContext:
    """A context that trusts what the system trusts.

    OpenSSL knows where Linux keeps CA certificates if it was built for that Linux; elsewhere the extra ``truststore``
    asks the system.
    """
    paths = ssl.get_default_verify_paths()
    if sys.platform in ("darwin", "win32") or not (paths.cafile or paths.capath):
        try:
            import truststore

            return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        except ImportError:
            pass
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_default_certs()
    return context


def _trust(
    context: ssl.SSLContext, named: str, *, cafile: str | None = None, cadata: str | bytes | None = None
) -> None:
    try:
        context.load_verify_locations(cafile=cafile, cadata=cadata)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"{named} has no certificate, or a damaged one ({reason})") from error


def _load_revoked(context: ssl.SSLContext, path: str) -> None:
    named = f"ssl_crlfile={path!r}"
    if has_certificate(read_file(path, "ssl_crlfile")):
        raise ConfigError(f"{named} has certificates, which belong in ssl_cafile")  # OpenSSL would trust them
    before = context.cert_store_stats()["crl"]
    try:
        context.load_verify_locations(path)
    except OSError as error:
        raise ConfigError(f"{named} has no revocation list in PEM, or a damaged one") from error
    if context.cert_store_stats()["crl"] == before:
        raise ConfigError(f"{named} has no revocation list in PEM")
    context.verify_flags |= ssl.VerifyFlags.VERIFY_CRL_CHECK_LEAF


def _readable(certificates: str | bytes) -> str | bytes:
    """PEM as OpenSSL and Python read it; DER is not changed.  Only comments have letters that are not ASCII."""
    if isinstance(certificates, bytes):
        return certificates
    return with_line_breaks(certificates.encode("ascii", "ignore")).decode()


def _changed(config: SecurityConfig) -> set[str]:
    """Names of settings that do not have their defaults."""
    usual = SecurityConfig()
    return {name for name in SecurityConfig.names() if getattr(config, name) != getattr(usual, name)}


def _secret(value: object) -> Secret | None:
    return value if isinstance(value, Secret) else None


def _state_of(path: str) -> tuple[int, int, int] | None:
    try:
        state = os.stat(path)
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size, state.st_ino
