"""Security settings of every client.

Names are Kafka's property names in snake_case (``ssl.truststore.location`` is ``ssl_truststore_location``).  The names
of aiokafka and kafka-python (``ssl_cafile``, ``sasl_plain_username``) stand beside them.
"""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, fields
from typing import Any

from pykafka08.errors import ConfigError
from pykafka08.security.jaas import PROPERTY, jaas_settings, parse_jaas
from pykafka08.security.secret import Secret
from pykafka08.short_names import shortened

__all__ = ["PROTOCOLS", "SECRETS", "PasswordProvider", "SecurityConfig", "protect"]

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

PasswordProvider = Callable[[], "str | Awaitable[str]"]
"""Called for each connection and each renewal, so that a changed password is used from then on."""

SECRETS = frozenset(
    {
        "sasl_jaas_config",
        "sasl_plain_password",
        "ssl_key_password",
        "ssl_keystore_key",
        "ssl_keystore_password",
        "ssl_password",
        "ssl_truststore_password",
    }
)
"""Settings that never appear in a text."""


def protect(settings: dict[str, Any]) -> None:
    """Replace secrets among keyword arguments by :class:`Secret` objects, in place."""
    for name in SECRETS & settings.keys():
        if isinstance(settings[name], str):
            settings[name] = Secret(settings[name])


@dataclass(frozen=True, kw_only=True)
class SecurityConfig:
    """How a client reaches and convinces its brokers.  Secrets are given as plain text and kept as :class:`Secret`."""

    security_protocol: str = "PLAINTEXT"
    """PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL, in upper or lower case."""

    ssl_context: ssl.SSLContext | None = None
    """A context of the application; no other ``ssl_`` setting is used then."""
    ssl_cafile: str | None = None
    """PEM file of the CA certificates to trust, in place of the system's."""
    ssl_cadata: str | bytes | None = None
    """CA certificates as PEM text or DER bytes."""
    ssl_certfile: str | None = None
    """PEM file of the client's certificate chain."""
    ssl_keyfile: str | None = None
    """PEM file of the client's private key; by default it is in ``ssl_certfile``."""
    ssl_password: Secret | str | None = None
    """Passphrase of the private key."""
    ssl_crlfile: str | None = None
    """PEM file of certificate revocation lists."""
    ssl_ciphers: str | None = None
    """OpenSSL cipher list for TLS 1.2."""
    ssl_check_hostname: bool = True
    """Only True; see ``ssl_insecure_skip_hostname_check``."""
    ssl_insecure_skip_hostname_check: bool = False
    """Accept a certificate that was issued for another host."""
    ssl_insecure_skip_verify: bool = False
    """Accept every certificate: anybody on the network path can read and change everything."""

    ssl_truststore_type: str | None = None
    """JKS, PKCS12 or PEM; by default the file's content decides."""
    ssl_truststore_location: str | None = None
    ssl_truststore_password: Secret | str | None = None
    ssl_truststore_certificates: str | None = None
    """Trusted certificates as PEM text (KIP-651)."""
    ssl_keystore_type: str | None = None
    """JKS, PKCS12 or PEM; by default the file's content decides."""
    ssl_keystore_location: str | None = None
    ssl_keystore_password: Secret | str | None = None
    ssl_keystore_key: Secret | str | None = None
    """The client's private key as PEM text, PKCS #8 (KIP-651)."""
    ssl_keystore_certificate_chain: str | None = None
    """The client's certificate chain as PEM text (KIP-651)."""
    ssl_key_password: Secret | str | None = None
    ssl_endpoint_identification_algorithm: str = "https"
    """Empty: accept a certificate that was issued for another host."""
    ssl_protocol: str | None = None
    """TLSv1.2 or TLSv1.3, the newest version to use; by default TLSv1.3."""
    ssl_enabled_protocols: str | None = None
    """Comma-separated TLS versions; by default TLSv1.2,TLSv1.3."""
    ssl_cipher_suites: str | None = None
    """Comma-separated IANA names of cipher suites."""

    sasl_mechanism: str | None = None
    """PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, GSSAPI or AWS_MSK_IAM."""
    sasl_jaas_config: Secret | str | None = None
    """Java's login configuration: ``org...ScramLoginModule required username="u" password="p";``."""
    sasl_plain_username: str | None = None
    """User of PLAIN and SCRAM."""
    sasl_plain_password: Secret | str | PasswordProvider | None = None
    """Password of PLAIN and SCRAM, or a function, plain or async, that returns it."""
    sasl_oauth_token_provider: Any = None
    """Object with ``async def token() -> str`` (as in aiokafka), for OAUTHBEARER."""
    sasl_kerberos_service_name: str = "kafka"
    sasl_kerberos_domain_name: str | None = None
    """Host part of the broker's principal, if it is not the broker's host name."""

    def __post_init__(self) -> None:
        protocol = self.security_protocol
        if not isinstance(protocol, str) or protocol.upper() not in PROTOCOLS:
            shown = shortened(repr(protocol))
            raise ConfigError(f"security_protocol={shown} is not one of {', '.join(PROTOCOLS)}")
        object.__setattr__(self, "security_protocol", protocol.upper())
        for name in SECRETS:
            value = getattr(self, name)
            if isinstance(value, str):
                object.__setattr__(self, name, Secret(value))
        if self.uses_sasl and isinstance(self.sasl_jaas_config, Secret):
            self._apply_jaas(self.sasl_jaas_config)

    def _apply_jaas(self, text: Secret) -> None:
        login = parse_jaas(text)
        mechanism, settings = jaas_settings(login, self.sasl_mechanism)
        defaults = {each.name: each.default for each in fields(self)}
        for name, value in {"sasl_mechanism": mechanism, **settings}.items():
            if name not in defaults:
                raise ConfigError(f"{PROPERTY}: this release has no {name}, which {login.short_name} stands for")
            given = getattr(self, name)
            if given == defaults[name]:
                object.__setattr__(self, name, value)
            elif given != value:
                raise ConfigError(f"{name} and {PROPERTY} disagree: give one of them")

    @property
    def uses_tls(self) -> bool:
        return self.security_protocol in ("SSL", "SASL_SSL")

    @property
    def uses_sasl(self) -> bool:
        return self.security_protocol.startswith("SASL_")

    @classmethod
    def names(cls) -> frozenset[str]:
        """The names of all security settings."""
        return frozenset(field.name for field in fields(cls))
