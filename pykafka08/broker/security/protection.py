"""What the listeners of an embedded cluster demand of their clients, and the users that they know."""

from __future__ import annotations

import ssl
import time
from collections.abc import Mapping, Sequence
from typing import Any

from pykafka08.broker.personality import Personality
from pykafka08.broker.scram_users import ScramUsers
from pykafka08.broker.security.certificates import Certificates
from pykafka08.broker.security.distinguished_name import subject_name
from pykafka08.broker.security.given_certificates import GivenCertificates
from pykafka08.broker.security.mechanisms import (
    SCRAM_HASHES,
    OAuthExchange,
    PlainExchange,
    Principal,
    SaslExchange,
    ScramExchange,
    TokenCheck,
    scram_credential,
)
from pykafka08.broker.security.principal_mapping import PRINCIPAL_RULES, principal_mapping
from pykafka08.broker.security.tokens import Jwks, signed_tokens, unsecured_tokens
from pykafka08.errors import ConfigError
from pykafka08.protocol.framing import MAX_FRAME_BYTES
from pykafka08.security.secret import Secret

__all__ = ["PROTOCOLS", "Protection", "hidden_passwords", "uses_sasl", "uses_tls"]

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
REAUTHENTICATION = "connections.max.reauth.ms"
FAILURE_DELAY = "connection.failed.authentication.delay.ms"
RECEIVE_SIZE = "sasl.server.max.receive.size"
LIMITS = {
    REAUTHENTICATION: ((2, 2), 0, 0),
    FAILURE_DELAY: ((2, 1), 100, 0),
    RECEIVE_SIZE: ((2, 8), 524_288, MAX_FRAME_BYTES),
}
"""Broker property -> the first release with it, its default, and its value in releases before."""
CLIENT_AUTH = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
}
"""Java's module for each mechanism."""
USUAL_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
"""Mechanisms with passwords, the weakest first."""
UNSECURED_USER = "unsecuredLoginStringClaim_sub"
"""Option of Java's login module that names the user of an unsecured token."""
DEFAULT_USER = "client"


def uses_tls(protocol: str) -> bool:
    return protocol in ("SSL", "SASL_SSL")


def uses_sasl(protocol: str) -> bool:
    return protocol.startswith("SASL_")


class Protection:
    """``protocols`` are those of the listeners; ``users`` maps names to passwords.

    ``check_token`` or ``jwks`` make OAUTHBEARER available.
    If only ``mechanisms`` names OAUTHBEARER, unsecured tokens are taken, as in Kafka.

    ``client_auth`` is Kafka's ``ssl.client.auth``: none, requested or required.  ``properties`` has Kafka's broker
    properties; ``connections.max.reauth.ms`` and the two of failed authentication and of large requests count here.
    ``hosts`` are names and addresses, besides those of loopback, for which the brokers' certificate holds.
    """

    def __init__(
        self,
        protocols: Sequence[str],
        personality: Personality,
        scram: ScramUsers,
        *,
        users: Mapping[str, Secret] | None = None,
        check_token: TokenCheck | None = None,
        jwks: Jwks | None = None,
        mechanisms: Sequence[str] | None = None,
        client_auth: str = "none",
        hosts: Sequence[str] = (),
        given_certificates: GivenCertificates | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        limits = _limits(personality, properties or {})
        self._reauthentication_ms = limits[REAUTHENTICATION]
        self.failure_delay_s = limits[FAILURE_DELAY] / 1000
        """Seconds from a failed authentication to its answer."""
        self.max_receive_size = limits[RECEIVE_SIZE]
        """Bytes that a request before authentication may have."""
        self.protocols = tuple(protocols)
        self.serves_versions_once = personality >= (1, 0)
        """True if a second ApiVersions before authentication ends the connection (KIP-152)."""
        if not isinstance(client_auth, str) or client_auth not in CLIENT_AUTH:
            raise ConfigError(f"client_auth={client_auth!r:.100} is not one of {', '.join(CLIENT_AUTH)}")
        self._passwords = hidden_passwords(users)
        for name, password in self._passwords.items():
            if not name or not password.reveal():
                raise ConfigError(f"users: {name!r:.100} is not the name of a user with a password")
        self._user_of_subject = principal_mapping((properties or {}).get(PRINCIPAL_RULES, "DEFAULT"))
        self._scram = scram
        if check_token is not None and jwks is not None:
            raise ConfigError("check_token and jwks exclude each other")
        self._check_token = check_token or signed_tokens(jwks, properties or {}, time.time)
        self._takes_unsecured_tokens = False
        self._client_auth = client_auth
        self.certificates: Certificates | GivenCertificates | None = None
        if any(map(uses_tls, self.protocols)):
            self.certificates = given_certificates or Certificates(hosts)
        elif given_certificates is not None:
            raise ConfigError(f"ssl_certfile: security={', '.join(self.protocols)} does not use TLS")
        if client_auth != "none" and self.certificates is not None and self.certificates.ca_file is None:
            raise ConfigError(f"client_auth={client_auth!r} with ssl_certfile needs ssl_cafile")
        self.mechanisms = self._mechanisms(mechanisms, personality) if any(map(uses_sasl, self.protocols)) else ()
        for mechanism in SCRAM_HASHES.keys() & set(self.mechanisms):
            for name, password in self._passwords.items():
                scram.set(name, SCRAM_HASHES[mechanism][0], scram_credential(mechanism, password))

    @property
    def demands_identity(self) -> bool:
        """True if clients without a password or a certificate are refused on all listeners."""
        return all(map(self._demands_identity, self.protocols))

    def _demands_identity(self, protocol: str) -> bool:
        if uses_sasl(protocol):
            return not self._takes_unsecured_tokens
        return uses_tls(protocol) and self._client_auth == "required"

    def _mechanisms(self, given: Sequence[str] | None, personality: Personality) -> tuple[str, ...]:
        if personality < (0, 10):
            raise ConfigError("SASL needs version 0.10.0 or later: GSSAPI is not played")
        known = {
            "PLAIN": personality >= (0, 10),
            "SCRAM-SHA-256": personality >= (0, 10, 2),
            "SCRAM-SHA-512": personality >= (0, 10, 2),
            "OAUTHBEARER": personality >= (2, 0),
        }
        if given is not None and not given:
            raise ConfigError(f"mechanisms={given!r:.100}: SASL needs one at least")
        if given is None:
            usual = known if self._check_token is not None else USUAL_MECHANISMS
            return tuple(name for name in usual if known[name])
        for name in given:
            if not known.get(name):
                raise ConfigError(f"mechanisms: {name!r:.100} cannot be played in this version")
        if "OAUTHBEARER" in given and self._check_token is None:
            self._check_token = unsecured_tokens(time.time)
            self._takes_unsecured_tokens = True
        return tuple(given)

    def server_context(self, protocol: str) -> ssl.SSLContext | None:
        """For TLS handshakes of a listener; None without TLS."""
        if self.certificates is None or not uses_tls(protocol):
            return None
        context = self.certificates.server_context()
        context.verify_mode = CLIENT_AUTH[self._client_auth]
        return context

    def certificate_user(self, certificate: bytes) -> str:
        """The user that a client's certificate names; Refused if it names none."""
        return self._user_of_subject(subject_name(certificate))

    def exchange(self, mechanism: str) -> SaslExchange:
        """A new exchange."""
        if mechanism == "PLAIN":
            return PlainExchange(self._passwords)
        if mechanism == "OAUTHBEARER":
            assert self._check_token is not None
            return OAuthExchange(self._check_token)
        return ScramExchange(mechanism, self._scram)

    def session_seconds(self, principal: Principal, now: float) -> float | None:
        """How long a session lasts that begins now; None for one without an end."""
        limits = [self._reauthentication_ms / 1000] if self._reauthentication_ms else []
        if principal.expires_at is not None:
            limits.append(max(0.0, principal.expires_at - now))
        return min(limits, default=None)

    def client_settings(self, protocol: str, user: str | None, mechanism: str | None = None) -> dict[str, Any]:
        """Keyword arguments of a client, without the address."""
        settings: dict[str, Any] = {"security_protocol": protocol}
        if self.certificates is not None and uses_tls(protocol):
            if self.certificates.ca_file is not None:
                settings["ssl_cafile"] = self.certificates.ca_file
            client_file = self._client_file(user)
            if client_file is not None:
                settings["ssl_certfile"] = client_file
        if uses_sasl(protocol):
            settings["sasl_mechanism"], name = self._login(user, mechanism)
            if settings["sasl_mechanism"] != "OAUTHBEARER":
                settings["sasl_plain_username"] = name
                settings["sasl_plain_password"] = self._passwords[name].reveal()
            elif self._takes_unsecured_tokens:
                settings["sasl_oauthbearer_unsecured_login"] = {UNSECURED_USER: name}
        return settings

    def client_properties(self, protocol: str, user: str | None, mechanism: str | None = None) -> dict[str, str]:
        """Properties of Kafka's Java clients, without the address."""
        properties = {"security.protocol": protocol}
        if self.certificates is not None and uses_tls(protocol):
            if self.certificates.ca_file is not None:
                properties["ssl.truststore.type"] = "PEM"
                properties["ssl.truststore.location"] = self.certificates.ca_file
            client_file = self._client_file(user)
            if client_file is not None:
                properties["ssl.keystore.type"] = "PEM"
                properties["ssl.keystore.location"] = client_file
        if uses_sasl(protocol):
            properties["sasl.mechanism"], name = self._login(user, mechanism)
            options = self._login_options(properties["sasl.mechanism"], name)
            written = "".join(f" {option}={_quoted(value)}" for option, value in options.items())
            module = LOGIN_MODULES[properties["sasl.mechanism"]]
            properties["sasl.jaas.config"] = f"{module} required{written};"
        return properties

    def _client_file(self, user: str | None) -> str | None:
        """A client's certificate and key; None if the brokers ask for none, or if their certificates are given."""
        if self.certificates is None or self._client_auth == "none":
            return None
        return self.certificates.client_file(user or DEFAULT_USER)

    def _login_options(self, mechanism: str, user: str) -> dict[str, str]:
        """Options of Java's login module."""
        if mechanism != "OAUTHBEARER":
            return {"username": user, "password": self._passwords[user].reveal()}
        return {UNSECURED_USER: user} if self._takes_unsecured_tokens else {}

    def _login(self, user: str | None, mechanism: str | None) -> tuple[str, str]:
        """The mechanism and the user of a client, by default the strongest one and the first one."""
        offered = [each for each in (*USUAL_MECHANISMS[::-1], "OAUTHBEARER") if each in self.mechanisms]
        chosen = mechanism or offered[0 if self._passwords else -1]
        if chosen not in offered:
            raise ConfigError(f"mechanism={chosen!r:.100} is not one of the cluster's: {', '.join(offered)}")
        name = user if user is not None else next(iter(self._passwords), None)
        if chosen == "OAUTHBEARER":
            return chosen, name or DEFAULT_USER
        if name is None or name not in self._passwords:
            raise ConfigError(f"there is no user {name!r:.100}; users={{name: password}} makes one")
        return chosen, name

    def close(self) -> None:
        """Remove the files."""
        if self.certificates is not None:
            self.certificates.close()


def _limits(personality: Personality, properties: Mapping[str, str]) -> dict[str, int]:
    return {
        name: int(properties.get(name, default if personality >= since else earlier))
        for name, (since, default, earlier) in LIMITS.items()
    }


def hidden_passwords(users: Mapping[str, str] | Mapping[str, Secret] | None) -> dict[str, Secret]:
    """Passwords by user, to take the argument's place in the caller's local variables."""
    if users is not None and not isinstance(users, Mapping):
        raise ConfigError(f"users is of type {type(users).__name__}, not a mapping of names to passwords")
    return {name: Secret(password) for name, password in (users or {}).items()}


def _quoted(text: str) -> str:
    """A value of ``sasl.jaas.config``; Java's StreamTokenizer ends a quoted text at the end of a line."""
    for character, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r")):
        text = text.replace(character, escaped)
    return f'"{text}"'
