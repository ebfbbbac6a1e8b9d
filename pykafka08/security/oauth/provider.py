"""The application's token provider, ``sasl_oauth_token_provider``.

Accepted are an object with ``token()``, plain or async, as kafka-python and aiokafka have it, and a function.  Either
returns the token as text, an :class:`OAuthToken`, an object with ``token`` and ``expiry`` or ``expires_on``, or the
tuple ``(token, expiry)``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pykafka08.errors import AuthenticationError, ConfigError, KafkaError
from pykafka08.security.called import called
from pykafka08.security.oauth.token import OAuthToken
from pykafka08.security.secret import Secret

__all__ = ["Provider"]

EXPIRY_NAMES = ("expiry", "expires_on", "expires_at")


class Provider:
    """A token provider in the form that the rest of this package uses."""

    def __init__(self, provider: Any) -> None:
        token = getattr(provider, "token", None)
        self._token: Callable[[], Any] = token if callable(token) else provider
        if not callable(self._token):
            raise ConfigError(
                f"sasl_oauth_token_provider is {type(provider).__name__}: "
                "it must be an object with a method token(), or a function"
            )
        extensions = getattr(provider, "extensions", None)
        self._extensions: Callable[[], Any] | None = extensions if callable(extensions) else None

    async def token(self) -> OAuthToken:
        """A token; AuthenticationError if the provider returned something else."""
        try:
            answer = _protected(await called(self._token))
            extensions = await called(self._extensions) if self._extensions is not None else None
        except KafkaError:
            raise
        except Exception as error:
            # The error's own text stays out of this one: it belongs to the application and may hold anything.
            raise AuthenticationError(
                f"sasl_oauth_token_provider raised {type(error).__name__}", mechanism="OAUTHBEARER"
            ) from error
        return _as_token(answer, extensions)


def _protected(answer: Any) -> Any:
    """The provider's answer in a form that a traceback does not show."""
    if isinstance(answer, str):
        return Secret(answer)
    if type(answer) is tuple and answer:
        return (_protected(answer[0]), *answer[1:])
    return answer


def _as_token(answer: Any, extensions: Any) -> OAuthToken:
    if isinstance(answer, OAuthToken):
        return answer if extensions is None else OAuthToken(answer.token, answer.expiry, extensions)
    if not isinstance(answer, Secret):
        if hasattr(answer, "token"):
            expiry = next((found for name in EXPIRY_NAMES if (found := getattr(answer, name, None)) is not None), None)
            return OAuthToken(answer.token, expiry, extensions or getattr(answer, "extensions", None))
        if isinstance(answer, tuple) and len(answer) == 2:
            return OAuthToken(*answer, extensions)
        raise AuthenticationError(
            f"sasl_oauth_token_provider returned {type(answer).__name__}, not a token", mechanism="OAUTHBEARER"
        )
    return OAuthToken(answer, None, extensions)
