"""Kafka's names for the settings in a text, for errors about settings that came from properties."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from pykafka08.config import ClientConfig, setting_fields
from pykafka08.errors import KafkaError

__all__ = ["NamesSettings", "in_kafkas_names", "in_written_names", "naming_properties"]

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
"""Phrases in errors, and the properties of Kafka that they are about."""
_WORD = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)+")


class NamesSettings(Protocol):
    """A client that opens inside ``_naming()``, so that errors name settings as they were written."""

    _naming: Callable[[], AbstractContextManager[None]]


@contextmanager
def naming_properties(written: Mapping[str, str], kept: Collection[str], *kinds: type) -> Iterator[None]:
    """Name the settings in an error of the block as :func:`in_written_names` does."""
    try:
        yield
    except KafkaError as error:
        error.args = (in_written_names(error.message, written, kept, *kinds),)
        raise


def in_written_names(text: str, written: Mapping[str, str], kept: Collection[str], *kinds: type) -> str:
    """The text with the names of properties in place of settings.

    ``written`` maps settings to the properties as they were written; others get Kafka's names.  Settings in ``kept``
    keep their names, because they were given as keyword arguments.
    """
    for phrase, kafkas in _KAFKAS:
        settings = _WORD.findall(phrase)
        if all(each not in kept and written.get(each, kafkas) in kafkas for each in settings):
            text = text.replace(phrase, kafkas)
    names = setting_fields(ClientConfig, *kinds)

    def name_of(found: re.Match[str]) -> str:
        setting = found[0]
        is_renamed = setting in names and setting not in kept
        return written.get(setting, setting.replace("_", ".")) if is_renamed else setting

    return _WORD.sub(name_of, text)


def in_kafkas_names(text: str, *kinds: type) -> str:
    """The text with the settings of clients, and of these kinds of client, as properties of Kafka name them."""
    return in_written_names(text, {}, (), *kinds)
