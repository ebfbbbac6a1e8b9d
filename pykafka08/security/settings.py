"""Security settings of every client.

Names are Kafka's property names in snake_case (``ssl.truststore.location`` is ``ssl_truststore_location``).  Names
of aiokafka and kafka-python (``ssl_cafile``, ``sasl_plain_username``) work too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from pykafka08.errors import ConfigError
from pykafka08.security.jaas import PROPERTY, jaas_settings, parse_jaas
from pykafka08.security.secret import HiddenValue, Secret, kind_of
from pykafka08.setting_names import AS_ARGUMENTS, SettingNames
from pykafka08.short_names import shortened

if TYPE_CHECKING:  # importing it takes 10 ms, and loads the socket module
    import ssl

__all__ = [
    "PROTOCOLS",
    "SECRETS",
    "PasswordProvider",
    "SecurityConfig",
    "check_protocol",
    "is_secret",
    "protect",
    "protected_copy",
]

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

PasswordProvider = Callable[[], "str | Awaitable[str]"]
"""Called for each connection and each renewal, so that a changed password is used from then on."""

SECRETS = frozenset(
    {
        "sasl_jaas_config",
        "sasl_oauthbearer_assertion_private_key_passphrase",
        "sasl_oauthbearer_client_credentials_client_secret",
        "sasl_plain_password",
        "ssl_key_password",
        "ssl_keystore_key",
        "ssl_keystore_password",
        "ssl_password",
        "ssl_truststore_password",
    }
)
"""Settings that never appear in a text."""
_SECRET = re.compile(r"password|passphrase|secret|jaas|(?:^|\.)auth$|key\.pem$|oauthbearer\.config$|keystore\.key$")

CREDENTIALS = (
    "sasl_jaas_config",
    "sasl_kerberos_keytab",
    "sasl_oauth_token_provider",
    "sasl_plain_password",
    "sasl_plain_username",
)
"""Settings without effect where SASL is not used."""
TRUST = (
    "ssl_context",
    "ssl_cafile",
    "ssl_cadata",
    "ssl_certfile",
    "ssl_crlfile",
    "ssl_keystore_certificate_chain",
    "ssl_keystore_location",
    "ssl_truststore_certificates",
    "ssl_truststore_location",
)
"""Settings without effect where TLS is not used."""

PATHS = ("file", "_location", "_keytab")
"""Ends of the names of settings that are paths."""
_TYPES: Mapping[str, tuple[type | tuple[type, ...], str]] = {
    "bool": (bool, "True or False"),
    "str": (str, "a string"),
    "str | None": (str, "a string"),
    "str | bytes | None": ((str, bytes), "a string or bytes"),
    "Secret | str | None": ((str, Secret), "a string"),
    "Secret | str | PasswordProvider | None": ((str, Secret), "a string or a function"),
    "Mapping[str, str] | None": (Mapping, "a mapping"),
    "SecurityConfig | Mapping[str, Any] | None": (Mapping, "a mapping"),
}
"""Annotation -> accepted types, and their description for errors.  Numbers are checked by their ranges."""

LONGEST_MS = 2**31 - 1

OAUTH_RANGES = {
    "sasl_login_connect_timeout_ms": (1, LONGEST_MS),
    "sasl_login_read_timeout_ms": (1, LONGEST_MS),
    "sasl_login_retry_backoff_ms": (0, LONGEST_MS),
    "sasl_login_retry_backoff_max_ms": (0, LONGEST_MS),
    "sasl_login_refresh_window_factor": (0.5, 1.0),
    "sasl_login_refresh_window_jitter": (0.0, 0.25),
    "sasl_login_refresh_min_period_seconds": (0, 900),
    "sasl_login_refresh_buffer_seconds": (0, 3600),
    "sasl_oauthbearer_assertion_claim_exp_seconds": (0, 86_400),
    "sasl_oauthbearer_assertion_claim_nbf_seconds": (0, 3600),
}
"""Least and largest values, as in Kafka."""
OPTIONAL_NUMBERS = ("sasl_login_connect_timeout_ms", "sasl_login_read_timeout_ms")

IAM_LOGIN_HANDLER = "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler"
"""Amazon's class for IAM in the mechanism OAUTHBEARER."""
_OAUTH_CLASSES = "org.apache.kafka.common.security.oauthbearer."
CLASSES: Mapping[str, tuple[str, ...]] = {
    "sasl_login_callback_handler_class": (
        f"{_OAUTH_CLASSES}OAuthBearerLoginCallbackHandler",
        f"{_OAUTH_CLASSES}secured.OAuthBearerLoginCallbackHandler",
        f"{_OAUTH_CLASSES}internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler",
        IAM_LOGIN_HANDLER,
    ),
    "sasl_client_callback_handler_class": (
        "software.amazon.msk.auth.iam.IAMClientCallbackHandler",
        "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler",
    ),
    "sasl_oauthbearer_jwt_retriever_class": tuple(
        prefix + name
        for prefix in (_OAUTH_CLASSES, "")
        for name in (
            "DefaultJwtRetriever",
            "ClientCredentialsJwtRetriever",
            "JwtBearerJwtRetriever",
            "FileJwtRetriever",
        )
    ),
}
"""Java's classes that are accepted: other settings do what they do."""
CLASS_ADVICE = {
    "sasl_login_callback_handler_class": "give a sasl_oauth_token_provider",
    "sasl_client_callback_handler_class": "only Amazon's for AWS_MSK_IAM is known",
    "sasl_oauthbearer_jwt_retriever_class": "known are Default-, ClientCredentials-, JwtBearer- and FileJwtRetriever",
}


def _endpoint_tls(settings: Mapping[str, Any]) -> SecurityConfig:
    """TLS settings of another connection; Kafka's property names are accepted too."""
    named = {str(name).replace(".", "_"): value for name, value in settings.items()}
    unknown = sorted(name for name in named if not name.startswith("ssl_") or name not in SecurityConfig.names())
    if unknown:
        raise ConfigError(f"sasl_oauthbearer_ssl: no such setting: {', '.join(map(shortened, unknown[:5]))}")
    return SecurityConfig(security_protocol="SSL", **named)


def is_secret(name: str) -> bool:
    """True if the value of this setting, by Kafka's name or this client's, must not appear in a text."""
    dotted = name.strip().lower().replace("_", ".").replace("-", ".")
    return dotted.replace(".", "_") in SECRETS or _SECRET.search(dotted) is not None


def protect(settings: dict[str, Any]) -> None:
    """Replace secrets among keyword arguments by :class:`Secret` objects, in place.

    Misspelled names and values of a wrong type are hidden too.  Nothing is raised here, as a traceback would hold the
    secrets; they are refused where the settings are checked.
    """
    for name in settings:
        if name == "sasl_oauthbearer_ssl" and isinstance(settings[name], Mapping):
            settings[name] = dict(settings[name])
            protect(settings[name])
        elif not is_secret(str(name)):
            continue
        elif isinstance(settings[name], str):
            settings[name] = Secret(settings[name])
        elif name in SECRETS and not (
            settings[name] is None or isinstance(settings[name], (Secret, HiddenValue)) or callable(settings[name])
        ):
            settings[name] = HiddenValue(settings[name])


def protected_copy(settings: Mapping[str, Any] | None) -> dict[str, Any]:
    """A copy with secrets as :class:`Secret`; empty for None."""
    settings = dict(settings or {})
    protect(settings)
    return settings


def _shown_provider(name: str, value: object) -> str:
    is_provider = name in ("sasl_oauth_token_provider", "sasl_plain_password") and value is not None
    if is_provider and not isinstance(value, Secret):
        return f"<{type(value).__name__}>"
    if name == "sasl_oauthbearer_token_endpoint_url" and isinstance(value, str):
        return re.sub(r"(?<=//).*(?=@)|(?<=[?#]).*", "***", repr(value))  # a URL with a user is refused later
    return repr(value)


def check_protocol(settings: Mapping[str, Any]) -> None:
    """ConfigError if credentials or certificates are given, and no ``security_protocol`` that would use them.

    Everything would be sent in plaintext.  Who writes PLAINTEXT gets a warning only.
    """
    if "security_protocol" in settings:
        return
    for names, protocols in ((TRUST, "SSL or SASL_SSL"), (CREDENTIALS, "SASL_SSL or SASL_PLAINTEXT")):
        name = next((each for each in names if settings.get(each) is not None), None)
        if name is not None:
            raise ConfigError(
                f"{name} is given without security_protocol, so that everything would be sent in plaintext: set "
                f"security_protocol to {protocols}"
            )


@dataclass(frozen=True, kw_only=True)
class SecurityConfig:
    """Security settings of a client.  Secrets are given as plain text and kept as :class:`Secret`.

    Hashable: settings whose values need not be hashable, such as mappings, are compared and not hashed.
    """

    security_protocol: str = "PLAINTEXT"
    """``PLAINTEXT``, ``SSL``, ``SASL_PLAINTEXT`` or ``SASL_SSL``, in upper or lower case."""

    ssl_context: ssl.SSLContext | None = None
    """An ``ssl.SSLContext`` of the application; another ``ssl_`` setting beside it is a ``ConfigError``."""
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
    """PEM file of certificate revocation lists.  Brokers' own certificates are checked, intermediate CAs are not.

    To check those too, set ``ssl_context`` with ``ssl.VERIFY_CRL_CHECK_CHAIN`` and the list of each CA.
    """
    ssl_ciphers: str | None = None
    """OpenSSL cipher list for TLS 1.2."""
    ssl_check_hostname: bool = True
    """Must be True.  To turn the check off, set ``ssl_insecure_skip_hostname_check=True``."""
    ssl_insecure_skip_hostname_check: bool = False
    """Accept a certificate that was issued for another host."""
    ssl_insecure_skip_verify: bool = False
    """Accept every certificate: anyone on the network path can read and change everything."""

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
    sasl_plain_password: Secret | str | PasswordProvider | None = field(default=None, hash=False)
    """Password of PLAIN and SCRAM, or a function, plain or async, that returns it."""
    sasl_scram_tokenauth: bool = False
    """The user and password of SCRAM are the id and the HMAC of a delegation token (KIP-48)."""
    sasl_oauth_token_provider: Any = field(default=None, hash=False)
    """Source of the tokens of OAUTHBEARER: an object with ``token()``, plain or async, or a function.

    It returns the token as text; or, with the time at which it expires, an :class:`~pykafka08.OAuthToken`, an object
    with ``token`` and ``expiry`` or ``expires_on``, or ``(token, expiry)``.  A token with an expiry is used until it
    has to be refreshed; without one the provider is called for each connection and each renewal.  ``extensions()``, if
    the object has it, returns SASL extensions (KIP-342).
    """
    sasl_oauthbearer_token_endpoint_url: str | None = None
    """``https:`` URL of the OAuth token endpoint (KIP-768), or a ``file:`` URL of a file that contains a token."""
    sasl_oauthbearer_client_credentials_client_id: str | None = None
    sasl_oauthbearer_client_credentials_client_secret: Secret | str | None = None
    sasl_oauthbearer_scope: str | None = None
    """Scope to ask the token endpoint for."""
    sasl_oauthbearer_header_urlencode: bool = False
    """URL-encode id and secret in the request's Authorization header, as RFC 6749 asks for."""
    sasl_oauthbearer_jwt_retriever_class: str | None = None
    """Java's class: ClientCredentialsJwtRetriever, JwtBearerJwtRetriever, FileJwtRetriever or DefaultJwtRetriever."""
    sasl_oauthbearer_assertion_file: str | None = None
    """File of a signed assertion (JWT) for the token endpoint, read again for each request (KIP-1139)."""
    sasl_oauthbearer_assertion_private_key_file: str | None = None
    """PEM file of the private key that signs assertions, read again for each request."""
    sasl_oauthbearer_assertion_private_key_passphrase: Secret | str | None = None
    sasl_oauthbearer_assertion_algorithm: str = "RS256"
    """RS256 or ES256."""
    sasl_oauthbearer_assertion_template_file: str | None = None
    """JSON file with the objects ``header`` and ``payload`` to start assertions from."""
    sasl_oauthbearer_assertion_claim_aud: str | None = None
    sasl_oauthbearer_assertion_claim_exp_seconds: int = 300
    sasl_oauthbearer_assertion_claim_iss: str | None = None
    sasl_oauthbearer_assertion_claim_jti_include: bool = False
    sasl_oauthbearer_assertion_claim_nbf_seconds: int = 60
    """The claim ``nbf`` is this many seconds before the assertion was made."""
    sasl_oauthbearer_assertion_claim_sub: str | None = None
    sasl_oauthbearer_extensions: Mapping[str, str] | None = field(default=None, hash=False)
    """SASL extensions (KIP-342) beside the token: ``extension_NAME`` in Java's login configuration."""
    sasl_oauthbearer_ssl: SecurityConfig | Mapping[str, Any] | None = None
    """``ssl_`` settings for the token endpoint; by default the system's CA certificates are trusted."""
    sasl_oauthbearer_unsecured_login: Mapping[str, str] | None = field(default=None, hash=False)
    """Options of unsigned tokens, as in Java's login configuration: ``{"unsecuredLoginStringClaim_sub": "alice"}``.

    For development: anyone can create such a token.
    """
    sasl_login_callback_handler_class: str | None = None
    """Java's OAuthBearerLoginCallbackHandler; the ``sasl_oauthbearer_`` settings replace it.  No other class."""
    sasl_client_callback_handler_class: str | None = None
    """Java's IAMClientCallbackHandler of Amazon MSK, with ``sasl_mechanism="AWS_MSK_IAM"``; no other class."""
    sasl_login_connect_timeout_ms: int | None = None
    """Time limit for connecting to the token endpoint; None is 10 seconds."""
    sasl_login_read_timeout_ms: int | None = None
    """Time limit for each read from the token endpoint; None is 10 seconds."""
    sasl_login_retry_backoff_ms: int = 100
    """Pause after a failed request to the token endpoint; it doubles with each further failure."""
    sasl_login_retry_backoff_max_ms: int = 10_000
    """No further request to the token endpoint follows a failed one after this time."""
    sasl_login_refresh_window_factor: float = 0.8
    """Part of a token's lifetime after which it is refreshed."""
    sasl_login_refresh_window_jitter: float = 0.05
    """Largest random part of the lifetime that is added to that."""
    sasl_login_refresh_min_period_seconds: int = 60
    """Shortest time between two refreshes; ignored for tokens that live less long."""
    sasl_login_refresh_buffer_seconds: int = 300
    """A token is refreshed at least this long before it expires; ignored for tokens that live less long."""
    sasl_msk_iam_region: str | None = None
    """AWS region of the MSK cluster, if the broker's host name does not have it; by default ``AWS_REGION``."""
    sasl_msk_iam_profile: str | None = None
    """Profile of the AWS configuration files to take credentials from."""
    sasl_msk_iam_role_arn: str | None = None
    """IAM role to assume."""
    sasl_msk_iam_role_session_name: str | None = None
    sasl_kerberos_service_name: str = "kafka"
    sasl_kerberos_domain_name: str | None = None
    """Host part of the broker's principal; by default its host name, or the name of its IP address in reverse DNS."""
    sasl_kerberos_principal: str | None = None
    """Principal of the client, ``name@REALM``; by default the principal of the keytab or of the credential cache."""
    sasl_kerberos_keytab: str | None = None
    """File with the principal's key, from which tickets are renewed; by default the ticket of ``kinit`` is used."""
    sasl_kerberos_ticket_cache: str | None = None
    """Credential cache of ``kinit`` to use without a keytab; by default the one of the Kerberos library."""
    # Not a setting: the names of the settings in errors and log lines.
    setting_names: SettingNames = field(default=AS_ARGUMENTS, compare=False, repr=False)

    def __post_init__(self) -> None:
        self._check_types()
        protocol = self.security_protocol
        if protocol.upper() not in PROTOCOLS:
            raise ConfigError(f"security_protocol={protocol!r:.100} is not one of {', '.join(PROTOCOLS)}")
        object.__setattr__(self, "security_protocol", protocol.upper())
        if not self.ssl_check_hostname:
            raise ConfigError(
                "ssl_check_hostname=False: to accept certificates of other hosts, "
                "set ssl_insecure_skip_hostname_check=True"
            )
        for name in SECRETS:
            if isinstance(getattr(self, name), str):
                object.__setattr__(self, name, Secret(getattr(self, name)))
        if self.uses_sasl and isinstance(self.sasl_jaas_config, Secret):
            self._apply_jaas(self.sasl_jaas_config)
        self._check_oauth()

    def __repr__(self) -> str:
        # The repr of a function shows its bound arguments, of which one may be the secret.
        values = ((each.name, getattr(self, each.name)) for each in fields(self) if each.repr)
        shown = ", ".join(f"{name}={_shown_provider(name, value)}" for name, value in values)
        return f"SecurityConfig({shown})"

    def _check_types(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, os.PathLike) and each.name.endswith(PATHS):
                value = os.fspath(value)
                object.__setattr__(self, each.name, value)
            kinds, what = _TYPES.get(str(each.type), (object, ""))
            if isinstance(value, kinds) or (value is None and "None" in str(each.type)):
                continue
            if each.name == "sasl_plain_password" and callable(value):
                continue
            if each.name == "sasl_oauthbearer_ssl" and isinstance(value, SecurityConfig):
                continue
            raise ConfigError(f"{each.name} is of type {kind_of(value)}, not {what}")
        if self.ssl_context is not None:
            import ssl  # here, because importing it takes 10 ms

            if not isinstance(self.ssl_context, ssl.SSLContext):
                raise ConfigError(f"ssl_context is of type {type(self.ssl_context).__name__}, not an ssl.SSLContext")

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

    def _check_oauth(self) -> None:
        for name, (least, most) in OAUTH_RANGES.items():
            value = getattr(self, name)
            if value is None and name in OPTIONAL_NUMBERS:
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
                raise ConfigError(f"{name}={shortened(repr(value))} is not a number from {least} to {most}")
        self._check_classes()
        if isinstance(self.sasl_oauthbearer_ssl, Mapping):
            object.__setattr__(self, "sasl_oauthbearer_ssl", _endpoint_tls(self.sasl_oauthbearer_ssl))

    def _check_classes(self) -> None:
        for name, known in CLASSES.items():
            value = getattr(self, name)
            if value is not None and value not in known:
                shown = shortened(repr(value))
                raise ConfigError(f"{name}={shown}: Java's classes cannot run here; {CLASS_ADVICE[name]}")

    @property
    def uses_tls(self) -> bool:
        return self.security_protocol in ("SSL", "SASL_SSL")

    @property
    def uses_sasl(self) -> bool:
        return self.security_protocol.startswith("SASL_")

    @property
    def unused(self) -> tuple[str, ...]:
        """Names of the credentials and certificates that are given, and that ``security_protocol`` does not use."""
        names = (*(() if self.uses_sasl else CREDENTIALS), *(() if self.uses_tls else TRUST))
        return tuple(name for name in names if getattr(self, name) is not None)

    @classmethod
    def names(cls) -> frozenset[str]:
        """The names of all security settings."""
        return frozenset(field.name for field in fields(cls) if field.compare)
