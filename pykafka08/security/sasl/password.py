"""User and password of PLAIN and SCRAM, which a function may supply."""

from __future__ import annotations

from pykafka08.errors import AuthenticationError, ConfigError
from pykafka08.security.called import called
from pykafka08.security.secret import Secret
from pykafka08.security.settings import SecurityConfig

__all__ = ["Credentials"]


class Credentials:
    """``sasl_plain_username`` and ``sasl_plain_password``; ConfigError if one is missing or cannot be sent."""

    def __init__(self, config: SecurityConfig, mechanism: str) -> None:
        self.username = _username(config.sasl_plain_username, mechanism)
        given = config.sasl_plain_password
        if given is None:
            raise ConfigError(f"sasl_mechanism={mechanism!r} needs sasl_plain_password")
        self._password = Secret(given) if isinstance(given, (str, Secret)) else given
        self._mechanism = mechanism
        if isinstance(self._password, Secret):
            fault = _fault(self._password)
            if fault is not None:
                raise ConfigError(f"sasl_plain_password {fault}")
        elif not callable(given):
            kind = type(given).__name__
            raise ConfigError(f"sasl_plain_password is of type {kind}, not a string or a function that returns one")

    @property
    def source(self) -> str | None:
        """The function that returns the password, for errors; None if the password is in the settings."""
        return None if isinstance(self._password, Secret) else "the function in sasl_plain_password"

    async def password(self) -> Secret:
        """The password for one exchange.  AuthenticationError if the application's function has none to give."""
        given = self._password
        if isinstance(given, Secret):
            return given
        try:
            secret = _secret(await called(given))
        except Exception as error:
            # The error's own text stays out of this one: it belongs to the application and may hold anything.
            raise self._unusable(f"raised {type(error).__name__}") from error
        if isinstance(secret, str):
            raise self._unusable(secret)
        return secret

    def _unusable(self, what: str) -> AuthenticationError:
        return AuthenticationError(f"{self.source} {what}", mechanism=self._mechanism)


def _secret(password: object) -> Secret | str:
    """A function's result as a secret, or what is wrong with it."""
    if not isinstance(password, (str, Secret)):
        return f"returned {type(password).__name__}, not a string"
    secret = Secret(password)
    fault = _fault(secret)
    return secret if fault is None else f"returned a password that {fault}"


def _fault(text: Secret) -> str | None:
    """Why a text cannot be sent; None if it can.  Nothing is raised here, as an error would hold the text."""
    if not text:
        return "is empty"
    if "\0" in text.reveal():
        return "has a NUL character"
    if any("\ud800" <= character <= "\udfff" for character in text.reveal()):
        return "cannot be written as UTF-8"
    return None


def _username(name: object, mechanism: str) -> str:
    if name is None:
        raise ConfigError(f"sasl_mechanism={mechanism!r} needs sasl_plain_username")
    if not isinstance(name, str):
        raise ConfigError(f"sasl_plain_username is of type {type(name).__name__}, not a string")
    fault = _fault(Secret(name))
    if fault is not None:
        raise ConfigError(f"sasl_plain_username {fault}")
    return name
