"""User and password of PLAIN and SCRAM, which a function may supply."""

from __future__ import annotations

import inspect

from pykafka08.errors import AuthenticationError, ConfigError
from pykafka08.security.secret import Secret
from pykafka08.security.settings import SecurityConfig

__all__ = ["Credentials"]


class Credentials:
    """``sasl_plain_username`` and ``sasl_plain_password``; ConfigError if one is missing."""

    def __init__(self, config: SecurityConfig, mechanism: str) -> None:
        for name in ("sasl_plain_username", "sasl_plain_password"):
            if not getattr(config, name):
                raise ConfigError(f"sasl_mechanism={mechanism!r} needs {name}")
        assert config.sasl_plain_username is not None
        assert config.sasl_plain_password is not None
        self.username = config.sasl_plain_username
        self._password = config.sasl_plain_password
        self._mechanism = mechanism
        if "\0" in self.username:
            raise ConfigError("sasl_plain_username has a NUL character")

    async def password(self) -> Secret:
        """The password for one exchange."""
        given = self._password
        if isinstance(given, (str, Secret)):
            return self._checked(given)
        supplied = given()
        return self._checked(await supplied if inspect.isawaitable(supplied) else supplied)

    def _checked(self, password: object) -> Secret:
        if not isinstance(password, (str, Secret)):
            kind = type(password).__name__
            raise AuthenticationError(
                f"the function in sasl_plain_password returned {kind}, not a string", mechanism=self._mechanism
            )
        secret = Secret(password)
        if not secret or "\0" in secret.reveal():
            raise AuthenticationError("sasl_plain_password is empty or has a NUL character", mechanism=self._mechanism)
        return secret
