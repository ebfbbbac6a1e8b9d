"""The source of access tokens that the settings name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from pykafka08.errors import ConfigError
from pykafka08.security.oauth.assertion import assertion_of
from pykafka08.security.oauth.provider import Provider
from pykafka08.security.oauth.token import OAuthToken, checked_extensions
from pykafka08.security.oauth.token_endpoint import client_credentials, jwt_bearer, shown_url
from pykafka08.security.oauth.token_file import TokenFile
from pykafka08.security.oauth.unsecured import Unsecured
from pykafka08.security.settings import SecurityConfig

__all__ = ["source_name", "source_of"]

TokenSource = Callable[[], Awaitable[OAuthToken]]

URL = "sasl_oauthbearer_token_endpoint_url"
RETRIEVERS = "org.apache.kafka.common.security.oauthbearer."


def source_of(config: SecurityConfig) -> TokenSource:
    """What makes tokens for OAUTHBEARER; ConfigError if the settings name no source."""
    source = _source(config)
    given = config.sasl_oauthbearer_extensions
    if not given:
        return source
    extensions = checked_extensions(given, ConfigError)

    async def extended() -> OAuthToken:
        token = await source()
        return OAuthToken(token.token, token.expiry, {**extensions, **token.extensions})

    return extended


def source_name(config: SecurityConfig) -> str | None:
    """The setting that tokens come from, for errors, with the URL of a token endpoint."""
    url = config.sasl_oauthbearer_token_endpoint_url
    if config.sasl_oauth_token_provider is not None:
        return "sasl_oauth_token_provider"
    return f"{URL}={shown_url(url)!r}" if url else None


def _source(config: SecurityConfig) -> TokenSource:
    if config.sasl_oauth_token_provider is not None:
        return Provider(config.sasl_oauth_token_provider).token
    if config.sasl_oauthbearer_token_endpoint_url:
        return _retriever(config, config.sasl_oauthbearer_token_endpoint_url)
    if config.sasl_oauthbearer_unsecured_login is not None:
        return Unsecured(config.sasl_oauthbearer_unsecured_login).token
    raise ConfigError(
        f"sasl_mechanism='OAUTHBEARER' needs sasl_oauth_token_provider or {URL} (for development also "
        "sasl_oauthbearer_unsecured_login)"
    )


def _retriever(config: SecurityConfig, url: str) -> TokenSource:
    """The retriever that ``sasl_oauthbearer_jwt_retriever_class`` names, or the one for the URL."""
    is_file = url.lower().startswith("file:")
    name = (config.sasl_oauthbearer_jwt_retriever_class or "DefaultJwtRetriever").removeprefix(RETRIEVERS)
    if name == "DefaultJwtRetriever":
        name = "FileJwtRetriever" if is_file else "ClientCredentialsJwtRetriever"
    if is_file != (name == "FileJwtRetriever"):
        wanted = "a file: URL" if not is_file else "an https: URL"
        raise ConfigError(f"{URL}={url[:200]!r}: sasl_oauthbearer_jwt_retriever_class={name!r} needs {wanted}")
    if name == "FileJwtRetriever":
        return TokenFile(url).token
    if name == "JwtBearerJwtRetriever":
        return jwt_bearer(config, url, assertion_of(config)).token
    if config.sasl_oauthbearer_assertion_file or config.sasl_oauthbearer_assertion_claim_iss:
        return client_credentials(config, url, assertion_of(config)).token
    return client_credentials(config, url).token
