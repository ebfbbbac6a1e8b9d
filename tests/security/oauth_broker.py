"""Real brokers with OAUTHBEARER and signed tokens of an :class:`OidcEndpoint`; before 3.4 with unsigned tokens."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tests.brokers.model import Cluster
from tests.security.oidc_endpoint import OidcEndpoint

__all__ = [
    "CLASSES",
    "CLIENT",
    "CLIENT_SECRET",
    "LOGIN_HANDLER",
    "SIGNED",
    "UNSIGNED",
    "oauth_jvm",
    "oauth_login",
    "oauth_properties",
    "unsigned_properties",
]

CLASSES = "org.apache.kafka.common.security.oauthbearer."
CLIENT, CLIENT_SECRET = "app", "app-secret"
"""The client credentials of the OpenID Connect provider; for the broker the user is ``app``."""
SIGNED, UNSIGNED = (3, 4), (2, 0)
"""Releases whose brokers check signed tokens with the handler that Kafka 4 has; older ones accept unsigned tokens."""
LOGIN_HANDLER = f"{CLASSES}OAuthBearerLoginCallbackHandler"
"""A handler that only Kafka's own tools need."""
SYSTEM_PROPERTY = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
LISTENERS = ("sasl_plaintext",)


def oauth_properties(endpoint: OidcEndpoint, folder: Path, listeners: Sequence[str] = LISTENERS) -> list[str]:
    """Properties of a broker that trusts ``endpoint``; its keys are written to a file in ``folder``."""
    jwks = _jwks(folder)
    jwks.write_text(json.dumps(endpoint.jwks()))
    properties = [
        f"sasl.oauthbearer.jwks.endpoint.url={jwks.as_uri()}",
        f"sasl.oauthbearer.expected.audience={endpoint.audience}",
        f"sasl.oauthbearer.expected.issuer={endpoint.issuer}",
    ]
    for listener in listeners:
        prefix = f"listener.name.{listener}.oauthbearer.sasl."
        properties += [
            f"{prefix}jaas.config={CLASSES}OAuthBearerLoginModule required;",
            f"{prefix}server.callback.handler.class={CLASSES}OAuthBearerValidatorCallbackHandler",
        ]
    return properties


def unsigned_properties(listeners: Sequence[str] = LISTENERS) -> list[str]:
    """Properties of a broker that takes unsigned tokens."""
    return [f"listener.name.{each}.oauthbearer.sasl.jaas.config={_unsigned('admin')}" for each in listeners]


def oauth_login(cluster: Cluster) -> dict[str, str]:
    """The login of a client: with client credentials for a signed token, or with an unsigned token for alice."""
    issuers = [one.value for one in cluster.props if one.key == "sasl.oauthbearer.expected.issuer"]
    if not issuers:
        return {"sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config": _unsigned("alice")}
    login = f'clientId="{CLIENT}" clientSecret="{CLIENT_SECRET}"'
    return {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.login.callback.handler.class": LOGIN_HANDLER,
        "sasl.oauthbearer.token.endpoint.url": f"{issuers[0]}/token",
        "sasl.jaas.config": f"{CLASSES}OAuthBearerLoginModule required {login};",
    }


def _unsigned(user: str) -> str:
    return f'{CLASSES}OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="{user}";'


def oauth_jvm(folder: Path) -> str:
    """The option of ``kafka-up`` that lets a broker read that file."""
    return f"--jvm=-D{SYSTEM_PROPERTY}={_jwks(folder).as_uri()}"


def _jwks(folder: Path) -> Path:
    return folder / "jwks.json"
