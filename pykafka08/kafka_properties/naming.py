"""Kafka's names for the settings in a text, for errors about settings that came from properties."""

from __future__ import annotations

import re

from pykafka08.config import ClientConfig, setting_fields

__all__ = ["in_kafkas_names"]

_KAFKAS = (
    ("ssl_certfile or ssl_keystore_location", "ssl.keystore.location"),
    ("ssl_cafile and ssl_truststore_location", "ssl.truststore.location"),
    ("sasl_oauth_token_provider or sasl_oauthbearer_token_endpoint_url", "sasl.oauthbearer.token.endpoint.url"),
    ("sasl_plain_username and sasl_plain_password", "the user and password in sasl.jaas.config"),
    ("the function in sasl_plain_password", "sasl.jaas.config"),
    ("sasl_plain_username", "a username in sasl.jaas.config"),
    ("sasl_plain_password", "a password in sasl.jaas.config"),
    ("sasl_oauthbearer_unsecured_login", "unsecuredLogin options in sasl.jaas.config"),
)
"""Settings that Kafka has under another name."""
_WORD = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)+")


def in_kafkas_names(text: str, *kinds: type) -> str:
    """The text with the settings of clients, and of these kinds of client, as properties of Kafka name them."""
    for name, kafkas in _KAFKAS:
        text = text.replace(name, kafkas)
    names = setting_fields(ClientConfig, *kinds)
    return _WORD.sub(lambda found: found[0].replace("_", ".") if found[0] in names else found[0], text)
