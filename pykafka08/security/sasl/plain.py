"""SASL PLAIN (RFC 4616): user and password as they are."""

from __future__ import annotations

from pykafka08.errors import AuthenticationError
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
        if not config.uses_tls:
            log.warning(
                "security.password_in_clear",
                security_protocol=config.security_protocol,
                advice="anybody on the network path can read the password; use SASL_SSL",
            )

    def mechanism(self, host: str) -> _Plain:
        return _Plain(self._credentials)


def login_of(config: SecurityConfig) -> PlainLogin:
    """The login for PLAIN; ConfigError if user or password is missing."""
    return PlainLogin(config)


class _Plain:
    name = NAME
    is_last_token_answered = True

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self.is_complete = False

    async def respond(self, challenge: bytes | None) -> bytes | None:
        if not self.is_complete:
            password = await self._credentials.password()
            self.is_complete = True
            return f"\0{self._credentials.username}\0{password.reveal()}".encode()
        if challenge:
            raise AuthenticationError("the broker sent a challenge in PLAIN, which has none", mechanism=NAME)
        return None
