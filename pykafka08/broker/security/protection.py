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

__all__ = ["PROTOCOLS", "Protection"]

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
CLIENT_AUTH = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
USUAL_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


class Protection:
    """``users`` maps names to passwords; ``check_token`` makes OAUTHBEARER available.

    ``client_auth`` is Kafka's ``ssl.client.auth``: none, requested or required.  ``reauthentication_ms`` is its
    ``connections.max.reauth.ms``: 0 for sessions without an end.
    """

    def __init__(
        self,
        protocol: str,
        personality: Personality,
        scram: ScramUsers,
        *,
        users: Mapping[str, str] | None = None,
        check_token: TokenCheck | None = None,
        mechanisms: Sequence[str] | None = None,
        client_auth: str = "none",
        reauthentication_ms: int = 0,
    ) -> None:
        self.protocol = protocol.upper() if isinstance(protocol, str) else ""
        if self.protocol not in PROTOCOLS:
            raise ConfigError(f"security={protocol!r:.100} is not one of {', '.join(PROTOCOLS)}")
        if client_auth not in CLIENT_AUTH:
            raise ConfigError(f"client_auth={client_auth!r:.100} is not one of {', '.join(CLIENT_AUTH)}")
        self._passwords = {name: Secret(password) for name, password in (users or {}).items()}
        self._scram = scram
        self._check_token = check_token
        self._reauthentication_ms = reauthentication_ms
        self._client_auth = client_auth
        self.certificates = Certificates() if self.uses_tls else None
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

    def client_settings(self, user: str | None) -> dict[str, str]:
        """Keyword arguments of a client, without the address."""
        settings = {"security_protocol": self.protocol}
        if self.certificates is not None:
            settings["ssl_cafile"] = self.certificates.ca_file
            if self._client_auth != "none":
                settings["ssl_certfile"] = self.certificates.client_file(user or "client")
        if self.uses_sasl:
            name = user if user is not None else next(iter(self._passwords), None)
            if name is None or name not in self._passwords:
                raise ConfigError(f"there is no user {name!r:.100}; users={{name: password}} makes one")
            mechanism = next((each for each in USUAL_MECHANISMS[::-1] if each in self.mechanisms), None)
            if mechanism is None:
                raise ConfigError("the cluster has no mechanism with passwords")
            settings["sasl_mechanism"] = mechanism
            settings["sasl_plain_username"] = name
            settings["sasl_plain_password"] = self._passwords[name].reveal()
        return settings

    def close(self) -> None:
        """Remove the files."""
        if self.certificates is not None:
            self.certificates.close()
