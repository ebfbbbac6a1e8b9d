"""Signed assertions (RFC 7521, RFC 7523, KIP-1139), which a token endpoint takes in place of a client secret."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio.to_thread

from pykafka08.errors import AuthenticationError, ConfigError
from pykafka08.security.oauth.token_file import read_secret
from pykafka08.security.secret import Secret
from pykafka08.security.settings import SecurityConfig

__all__ = ["Assertion", "assertion_of"]

Assertion = Callable[[], Awaitable[Secret]]

KEY_FILE = "sasl_oauthbearer_assertion_private_key_file"
TEMPLATE_FILE = "sasl_oauthbearer_assertion_template_file"
ALGORITHM = "sasl_oauthbearer_assertion_algorithm"
KEY_TYPES = {"RS256": "RSA", "ES256": "EC"}


def assertion_of(config: SecurityConfig) -> Assertion:
    """The assertion in ``sasl_oauthbearer_assertion_file``, or one that this client signs."""
    if config.sasl_oauthbearer_assertion_file:
        path = Path(config.sasl_oauthbearer_assertion_file)
        return lambda: read_secret(path, "sasl_oauthbearer_assertion_file")
    if not config.sasl_oauthbearer_assertion_private_key_file:
        raise ConfigError(f"assertions for the token endpoint need {KEY_FILE} or sasl_oauthbearer_assertion_file")
    return Signed(config, Path(config.sasl_oauthbearer_assertion_private_key_file)).assertion


class Signed:
    """Signs assertions with a private key.  Key and template are read for each, so that they can be replaced."""

    def __init__(self, config: SecurityConfig, key: Path) -> None:
        try:
            import joserfc  # noqa: F401
        except ImportError:
            raise ConfigError(f"{KEY_FILE} needs the extra 'oauth': pip install 'pykafka08[oauth]'") from None
        self._config = config
        self._key = key
        self._algorithm = str(config.sasl_oauthbearer_assertion_algorithm).upper()
        if self._algorithm not in KEY_TYPES:
            raise ConfigError(
                f"{ALGORITHM}={config.sasl_oauthbearer_assertion_algorithm!r:.100} is not one of RS256, ES256"
            )

    async def assertion(self) -> Secret:
        """An assertion that is valid from now on."""
        return await anyio.to_thread.run_sync(self._signed, time.time(), abandon_on_cancel=True)

    def _signed(self, now: float) -> Secret:
        from joserfc import jwt
        from joserfc.jwk import ECKey, RSAKey

        config = self._config
        passphrase = config.sasl_oauthbearer_assertion_private_key_passphrase
        header, claims = self._header_and_claims(int(now))
        kind = RSAKey if self._algorithm == "RS256" else ECKey
        try:
            key = kind.import_key(
                self._key.read_bytes(), password=passphrase.reveal() if isinstance(passphrase, Secret) else None
            )
            return Secret(jwt.encode(header, claims, key, algorithms=[self._algorithm]))
        except OSError as error:
            raise _failed(f"{KEY_FILE}: {self._key}: {error.strerror}") from None
        except Exception as error:  # noqa: BLE001 - every library below has errors of its own, which may quote the key
            raise _failed(
                f"{KEY_FILE}: {self._key} has no {KEY_TYPES[self._algorithm]} private key for {self._algorithm} in PEM "
                f"form, or the passphrase is missing or wrong ({type(error).__name__})"
            ) from None

    def _header_and_claims(self, now: int) -> tuple[dict[str, Any], dict[str, Any]]:
        config = self._config
        template = self._template()
        named = {
            "aud": config.sasl_oauthbearer_assertion_claim_aud,
            "iss": config.sasl_oauthbearer_assertion_claim_iss,
            "sub": config.sasl_oauthbearer_assertion_claim_sub,
        }
        claims = {
            **template["payload"],
            **{name: value for name, value in named.items() if value},
            "iat": now,
            "exp": now + config.sasl_oauthbearer_assertion_claim_exp_seconds,
            "nbf": now - config.sasl_oauthbearer_assertion_claim_nbf_seconds,
        }
        if config.sasl_oauthbearer_assertion_claim_jti_include:
            claims["jti"] = str(uuid.uuid4())
        return {**template["header"], "alg": self._algorithm, "typ": "JWT"}, claims

    def _template(self) -> dict[str, dict[str, Any]]:
        parts: dict[str, dict[str, Any]] = {"header": {}, "payload": {}}
        path = self._config.sasl_oauthbearer_assertion_template_file
        if not path:
            return parts
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise _failed(f"{TEMPLATE_FILE}: {path}: {error.strerror}") from None
        except (ValueError, RecursionError):
            content = None
        if not isinstance(content, dict):
            raise _failed(f"{TEMPLATE_FILE}: {path} is not a JSON object")
        for part in parts:
            found = content.get(part) or {}
            if not isinstance(found, dict):
                raise _failed(f"{TEMPLATE_FILE}: {path}: {part!r} is not a JSON object")
            parts[part] = found
        return parts


def _failed(text: str) -> AuthenticationError:
    return AuthenticationError(text, mechanism="OAUTHBEARER")
