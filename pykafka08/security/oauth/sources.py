"""The source of access tokens that the settings name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from pykafka08.errors import ConfigError
from pykafka08.security.oauth.provider import Provider
from pykafka08.security.oauth.token import OAuthToken
from pykafka08.security.settings import SecurityConfig

__all__ = ["source_of"]

TokenSource = Callable[[], Awaitable[OAuthToken]]


def source_of(config: SecurityConfig) -> TokenSource:
    """What makes tokens for OAUTHBEARER; ConfigError if the settings name no source."""
    if config.sasl_oauth_token_provider is not None:
        return Provider(config.sasl_oauth_token_provider).token
    raise ConfigError("sasl_mechanism='OAUTHBEARER' needs sasl_oauth_token_provider")
