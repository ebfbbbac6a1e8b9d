"""SASL PLAIN (RFC 4616): user and password in plain text."""

from __future__ import annotations

from pykafka08.errors import AuthenticationError, ConfigError
from pykafka08.logs import library_logger
from pykafka08.security.sasl.password import Credentials
from pykafka08.security.settings import SecurityConfig

__all__ = ["PlainLogin", "login_of"]

NAME = "PLAIN"

log = library_logger("security")


class PlainLogin:
    """User and password of one client."""

    name = NAME

    def __init__(self, config: SecurityConfig) -> None:
        self._credentials = Credentials(config, NAME)
        self.source = self._credentials.source
        if config.sasl_scram_tokenauth:
            raise ConfigError("sasl_scram_tokenauth needs SCRAM-SHA-256 or SCRAM-SHA-512 as sasl_mechanism, not PLAIN")
        if not config.uses_tls:
            log.warning(
                "security.password_in_clear",
                security_protocol=config.security_protocol,
                advice="anyone on the network path can read the password; use SASL_SSL",
            )

    def mechanism(self, host: str) -> _Plain:
        return _Plain(self._credentials)


def login_of(config: SecurityConfig) -> PlainLogin:
    """The login for PLAIN; ConfigError if user or password is missing."""
    return PlainLogin(config)


class _Plain:
    name = NAME
    is_last_token_answered = True
    may_be_followed = False

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self._is_over = False
        self.is_complete = False

    async def respond(self, challenge: bytes | None) -> bytes | None:
        if self._is_over:
            raise _wrong("the broker sent a message after authentication had succeeded")
        if not self.is_complete:
            return await self._message(challenge)
        if challenge is None:
            raise _wrong("the broker's answer to the credentials is missing")
        if challenge:
            raise _wrong("the broker sent a challenge, which this mechanism does not have")
        self._is_over = True
        return None

    async def _message(self, challenge: bytes | None) -> bytes:
        """The only token: no authorization identity, so that the broker takes the user's, the user, the password."""
        if challenge is not None:
            raise _wrong("the broker sent a challenge before the credentials")
        password = await self._credentials.password()
        self.is_complete = True
        return f"\0{self._credentials.username}\0{password.reveal()}".encode()


def _wrong(text: str) -> AuthenticationError:
    return AuthenticationError(f"{NAME}: {text}", mechanism=NAME)
