"""Real brokers that take signed tokens of an :class:`OidcEndpoint` on their SASL_PLAINTEXT listener."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tests.integration.clusters import Clusters, RealCluster
from tests.security.oidc_endpoint import OidcEndpoint

__all__ = ["CLASSES", "oauth_cluster"]

CLASSES = "org.apache.kafka.common.security.oauthbearer."
LISTENER = "listener.name.sasl_plaintext.oauthbearer."
SYSTEM_PROPERTY = "org.apache.kafka.sasl.oauthbearer.allowed.urls"


def oauth_cluster(
    clusters: Clusters, endpoint: OidcEndpoint, folder: Path, *, release: str = "4.3.1", props: Sequence[str] = ()
) -> RealCluster:
    """A cluster that trusts ``endpoint``, whose keys it reads from a file in ``folder``; PLAIN is there too."""
    jwks = folder / "jwks.json"
    jwks.write_text(json.dumps(endpoint.jwks()))
    return clusters.running(
        release,
        props=[
            "sasl.enabled.mechanisms=PLAIN,OAUTHBEARER",
            f"{LISTENER}sasl.jaas.config={CLASSES}OAuthBearerLoginModule required;",
            f"{LISTENER}sasl.server.callback.handler.class={CLASSES}OAuthBearerValidatorCallbackHandler",
            f"sasl.oauthbearer.jwks.endpoint.url={jwks.as_uri()}",
            f"sasl.oauthbearer.expected.audience={endpoint.audience}",
            f"sasl.oauthbearer.expected.issuer={endpoint.issuer}",
            *props,
        ],
        options=["--sasl", "plain", f"--jvm=-D{SYSTEM_PROPERTY}={jwks.as_uri()}"],
    )
