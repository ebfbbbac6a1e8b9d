"""SASL OAUTHBEARER (RFC 7628, KIP-255): an OAuth 2 access token, with extensions (KIP-342)."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from pykafka08.errors import AuthenticationError
from pykafka08.logs import library_logger
from pykafka08.security.oauth.shared_token import RefreshTimes, SharedToken
from pykafka08.security.oauth.sources import source_name, source_of
from pykafka08.security.oauth.token import OAuthToken, claims_of, number_claim, time_text
from pykafka08.security.settings import IAM_LOGIN_HANDLER, SecurityConfig

if TYPE_CHECKING:
    from pykafka08.security.sasl.login import Login

__all__ = ["OAuthBearer", "OAuthBearerLogin", "login_of"]

NAME = "OAUTHBEARER"
ABORT = b"\x01"
"""What a client sends after the broker has refused its token, to get the error (RFC 7628)."""
LONGEST_REFUSAL = 400

log = library_logger("security")


class OAuthBearerLogin:
    """The tokens of one client."""

    name = NAME

    def __init__(self, config: SecurityConfig) -> None:
        self._token = SharedToken(source_of(config), RefreshTimes.of(config))
        self.source = source_name(config)
        warn_of_clear_text(config)

    def mechanism(self, host: str) -> OAuthBearer:
        return OAuthBearer(self._token.get)


def warn_of_clear_text(config: SecurityConfig) -> None:
    """Log a warning if tokens are sent without TLS."""
    if not config.uses_tls:
        log.warning(
            "security.token_in_clear",
            security_protocol=config.security_protocol,
            advice="anyone on the network path can read the token and use it; use SASL_SSL",
        )


def login_of(config: SecurityConfig) -> Login:
    """The login for OAUTHBEARER; ConfigError if the settings name no source of tokens."""
    if config.sasl_login_callback_handler_class == IAM_LOGIN_HANDLER:
        from pykafka08.security.sasl import aws_msk_iam

        return aws_msk_iam.login_of(config)
    return OAuthBearerLogin(config)


class OAuthBearer:
    """One exchange.  ``refusal`` is the reason why the broker refused the token; None if it has not."""

    name = NAME
    is_last_token_answered = True
    may_be_followed = False

    def __init__(self, get_token: Callable[[], Awaitable[OAuthToken]]) -> None:
        self._get_token = get_token
        self._token: OAuthToken | None = None
        self.is_complete = False
        self.refusal: str | None = None

    async def respond(self, challenge: bytes | None) -> bytes | None:
        if self._token is None:
            token = await self._get_token()
            self._token = token
            self.is_complete = True
            return token.initial_response()
        if self.refusal is not None:
            # The broker must answer the abort with an error, not with success.
            raise AuthenticationError(f"{NAME}: the broker refused the token ({self.refusal})", mechanism=NAME)
        if challenge:
            self.refusal = self._refusal(challenge)
            return ABORT
        return None

    def _refusal(self, challenge: bytes) -> str:
        """The broker's reason, with the times of a token that may have been refused for them."""
        assert self._token is not None
        reason = _reason(challenge)
        if self._token.token.reveal() in reason:  # before it is cut: a part of a token would not be found
            reason = "the broker sent the token back"
        reason = reason[:LONGEST_REFUSAL]
        claims, now = claims_of(self._token.token), time.time()
        starts = number_claim(claims, "nbf") or number_claim(claims, "iat")
        expiry = number_claim(claims, "exp")
        valid = ""
        if starts is not None and starts > now:
            valid += f"; the token is valid from {time_text(starts)} on"
        if expiry is not None and expiry <= now:
            valid += f"; the token expired at {time_text(expiry)}"
        if valid:
            valid += f", and this host's clock says {time_text(now)}: compare the clocks"
        return reason + valid


def _reason(challenge: bytes) -> str:
    """The error of RFC 7628 as text: ``status=invalid_token, scope=..., openid-configuration=...``."""
    try:
        error = json.loads(challenge)
    except (ValueError, RecursionError):
        error = None
    if isinstance(error, dict) and error:
        text = ", ".join(f"{name}={value}" for name, value in list(error.items())[:10])
    else:
        text = challenge.decode("utf-8", "replace")
    return "".join(each if each.isprintable() else "?" for each in text)
