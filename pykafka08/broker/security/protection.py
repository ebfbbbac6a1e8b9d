"""What the listeners of an embedded cluster demand of their clients, and the users that they know."""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence

from pykafka08.broker.personality import Personality
from pykafka08.broker.scram_users import ScramUsers
from pykafka08.broker.security.certificates import Certificates
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
from pykafka08.errors import ConfigError
from pykafka08.security.secret import Secret

__all__ = ["PROTOCOLS", "Protection", "hidden_passwords"]

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
CLIENT_AUTH = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
"""Java's module for each mechanism with passwords, the weakest first."""
USUAL_MECHANISMS = tuple(LOGIN_MODULES)


class Protection:
    """``users`` maps names to passwords; ``check_token`` makes OAUTHBEARER available.

    ``client_auth`` is Kafka's ``ssl.client.auth``: none, requested or required.  ``reauthentication_ms`` is its
    ``connections.max.reauth.ms``: 0 for sessions without an end.
    ``hosts`` are names and addresses, besides those of loopback, for which the brokers' certificate holds.
    """

    def __init__(
        self,
        protocol: str,
        personality: Personality,
        scram: ScramUsers,
        *,
        users: Mapping[str, Secret] | None = None,
        check_token: TokenCheck | None = None,
        mechanisms: Sequence[str] | None = None,
        client_auth: str = "none",
        reauthentication_ms: int = 0,
        hosts: Sequence[str] = (),
    ) -> None:
        self._passwords = hidden_passwords(users)
        self.protocol = protocol.upper() if isinstance(protocol, str) else ""
        if self.protocol not in PROTOCOLS:
            raise ConfigError(f"security={protocol!r:.100} is not one of {', '.join(PROTOCOLS)}")
        if client_auth not in CLIENT_AUTH:
            raise ConfigError(f"client_auth={client_auth!r:.100} is not one of {', '.join(CLIENT_AUTH)}")
        self._scram = scram
        self._check_token = check_token
        self._reauthentication_ms = reauthentication_ms
        self._client_auth = client_auth
        self.certificates = Certificates(hosts) if self.uses_tls else None
        self.mechanisms = self._mechanisms(mechanisms, personality) if self.uses_sasl else ()
        for mechanism in SCRAM_HASHES.keys() & set(self.mechanisms):
            for name, password in self._passwords.items():
                scram.set(name, SCRAM_HASHES[mechanism][0], scram_credential(mechanism, password))

    @property
    def uses_tls(self) -> bool:
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def uses_sasl(self) -> bool:
        return self.protocol.startswith("SASL_")

    @property
    def demands_identity(self) -> bool:
        """True if clients without a password or a certificate are refused."""
        return self.uses_sasl or (self.uses_tls and self._client_auth == "required")

    def _mechanisms(self, given: Sequence[str] | None, personality: Personality) -> tuple[str, ...]:
        if personality < (0, 10):
            raise ConfigError(f"security={self.protocol!r} needs version 0.10.0 or later: GSSAPI is not played")
        known = {
            "PLAIN": personality >= (0, 10),
            "SCRAM-SHA-256": personality >= (0, 10, 2),
            "SCRAM-SHA-512": personality >= (0, 10, 2),
            "OAUTHBEARER": personality >= (2, 0) and self._check_token is not None,
        }
        if given is None:
            return tuple(name for name, is_known in known.items() if is_known)
        for name in given:
            if not known.get(name):
                raise ConfigError(f"mechanisms: {name!r:.100} cannot be played in this version, or lacks its settings")
        return tuple(given)

    def server_context(self) -> ssl.SSLContext | None:
        """For the listener's TLS handshakes; None without TLS."""
        if self.certificates is None:
            return None
        context = self.certificates.server_context()
        context.verify_mode = CLIENT_AUTH[self._client_auth]
        return context

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

    def client_settings(self, user: str | None, mechanism: str | None = None) -> dict[str, str]:
        """Keyword arguments of a client, without the address."""
        settings = {"security_protocol": self.protocol}
        if self.certificates is not None:
            settings["ssl_cafile"] = self.certificates.ca_file
            if self._client_auth != "none":
                settings["ssl_certfile"] = self.certificates.client_file(user or "client")
        if self.uses_sasl:
            settings["sasl_mechanism"], name = self._login(user, mechanism)
            settings["sasl_plain_username"] = name
            settings["sasl_plain_password"] = self._passwords[name].reveal()
        return settings

    def client_properties(self, user: str | None, mechanism: str | None = None) -> dict[str, str]:
        """Properties of Kafka's Java clients, without the address."""
        properties = {"security.protocol": self.protocol}
        if self.certificates is not None:
            properties["ssl.truststore.type"] = "PEM"
            properties["ssl.truststore.location"] = self.certificates.ca_file
            if self._client_auth != "none":
                properties["ssl.keystore.type"] = "PEM"
                properties["ssl.keystore.location"] = self.certificates.client_file(user or "client")
        if self.uses_sasl:
            properties["sasl.mechanism"], name = self._login(user, mechanism)
            module = LOGIN_MODULES[properties["sasl.mechanism"]]
            password = _quoted(self._passwords[name].reveal())
            properties["sasl.jaas.config"] = f"{module} required username={_quoted(name)} password={password};"
        return properties

    def _login(self, user: str | None, mechanism: str | None) -> tuple[str, str]:
        """The mechanism and the user of a client, by default the strongest one and the first one."""
        name = user if user is not None else next(iter(self._passwords), None)
        if name is None or name not in self._passwords:
            raise ConfigError(f"there is no user {name!r:.100}; users={{name: password}} makes one")
        offered = [each for each in USUAL_MECHANISMS[::-1] if each in self.mechanisms]
        if not offered:
            raise ConfigError("the cluster has no mechanism with passwords")
        if mechanism is not None and mechanism not in offered:
            raise ConfigError(
                f"mechanism={mechanism!r:.100} is not one of the cluster's mechanisms with passwords: "
                f"{', '.join(offered)}"
            )
        return mechanism or offered[0], name

    def close(self) -> None:
        """Remove the files."""
        if self.certificates is not None:
            self.certificates.close()


def hidden_passwords(users: Mapping[str, str] | Mapping[str, Secret] | None) -> dict[str, Secret]:
    """Passwords by user, to take the argument's place in the caller's local variables."""
    return {name: Secret(password) for name, password in (users or {}).items()}


def _quoted(text: str) -> str:
    """A value of ``sasl.jaas.config``; Java's StreamTokenizer ends a quoted text at the end of a line."""
    for character, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r")):
        text = text.replace(character, escaped)
    return f'"{text}"'
