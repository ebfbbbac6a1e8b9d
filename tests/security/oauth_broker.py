"""Real brokers that take signed tokens of an :class:`OidcEndpoint` on their SASL_PLAINTEXT listener."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tests.integration.clusters import Clusters, RealCluster
from tests.security.oidc_endpoint import OidcEndpoint

__all__ = ["CLASSES", "oauth_cluster", "oauth_jvm", "oauth_properties"]

CLASSES = "org.apache.kafka.common.security.oauthbearer."
LISTENER = "listener.name.sasl_plaintext.oauthbearer."
SYSTEM_PROPERTY = "org.apache.kafka.sasl.oauthbearer.allowed.urls"


def oauth_cluster(
    clusters: Clusters, endpoint: OidcEndpoint, folder: Path, *, release: str = "4.3.1", props: Sequence[str] = ()
) -> RealCluster:
    """A cluster that trusts ``endpoint``, whose keys it reads from a file in ``folder``; PLAIN is there too."""
    return clusters.running(
        release,
        props=["sasl.enabled.mechanisms=PLAIN,OAUTHBEARER", *oauth_properties(endpoint, folder), *props],
        options=["--sasl", "plain", oauth_jvm(folder)],
    )


def oauth_properties(endpoint: OidcEndpoint, folder: Path) -> list[str]:
    """Properties of a broker that trusts ``endpoint``; its keys are written to a file in ``folder``."""
    jwks = _jwks(folder)
    jwks.write_text(json.dumps(endpoint.jwks()))
    return [
        f"{LISTENER}sasl.jaas.config={CLASSES}OAuthBearerLoginModule required;",
        f"{LISTENER}sasl.server.callback.handler.class={CLASSES}OAuthBearerValidatorCallbackHandler",
        f"sasl.oauthbearer.jwks.endpoint.url={jwks.as_uri()}",
        f"sasl.oauthbearer.expected.audience={endpoint.audience}",
        f"sasl.oauthbearer.expected.issuer={endpoint.issuer}",
    ]


def oauth_jvm(folder: Path) -> str:
    """The option of ``kafka-up`` that lets a broker read that file."""
    return f"--jvm=-D{SYSTEM_PROPERTY}={_jwks(folder).as_uri()}"


def _jwks(folder: Path) -> Path:
    return folder / "jwks.json"
