"""The names of settings that came from properties."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from pykafka08.config import ClientConfig, setting_fields
from pykafka08.setting_names import SettingNames, words

__all__ = ["in_kafkas_names", "written_names"]

PHRASES = (
    ("ssl_certfile or ssl_keystore_location", "ssl.keystore.location"),
    ("ssl_cafile and ssl_truststore_location", "ssl.truststore.location"),
    ("sasl_oauth_token_provider or sasl_oauthbearer_token_endpoint_url", "sasl.oauthbearer.token.endpoint.url"),
    ("sasl_plain_username and sasl_plain_password", "the user and password in sasl.jaas.config"),
    ("the function in sasl_plain_password", "sasl.jaas.config"),
    ("sasl_plain_username", "a username in sasl.jaas.config"),
    ("sasl_plain_password", "a password in sasl.jaas.config"),
    ("sasl_oauthbearer_unsecured_login", "unsecuredLogin options in sasl.jaas.config"),
)
"""Phrases in errors about settings, and the texts that replace them for a user of Kafka's properties."""
LIBRDKAFKAS = {"sasl_plain_username": "sasl.username", "sasl_plain_password": "sasl.password"}
"""Kafka has no such properties: if the user wrote one of them, errors use librdkafka's name for the other, too."""


def written_names(
    written: Mapping[str, str], *kinds: type, kept: Collection[str] = (), prefix: str = ""
) -> SettingNames:
    """The names of these kinds of client's settings.

    ``written`` maps settings to the properties as they were written; others get Kafka's names, after ``prefix``.
    Settings in ``kept`` keep their names, because they were given as keyword arguments.
    """
    settings = setting_fields(ClientConfig, *kinds).keys() - set(kept)
    if LIBRDKAFKAS.keys() & written.keys():
        written = {**{each: prefix + name for each, name in LIBRDKAFKAS.items()}, **written}
    renamed = {each: written.get(each, prefix + each.replace("_", ".")) for each in settings}
    phrases = [(phrase, re.sub(r"(?=\b(ssl|sasl)\.)", prefix, kafkas)) for phrase, kafkas in PHRASES]
    return SettingNames(
        renamed,
        tuple(
            (phrase, kafkas)
            for phrase, kafkas in phrases
            if all(each in settings and written.get(each, kafkas) in kafkas for each in words(phrase))
        ),
    )


def in_kafkas_names(text: str, *kinds: type) -> str:
    """The text with the settings of clients, and of these kinds of client, as properties of Kafka name them."""
    return written_names({}, *kinds).in_text(text)
