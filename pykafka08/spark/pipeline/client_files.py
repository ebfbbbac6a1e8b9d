"""Settings of a cluster in a pipeline's TOML: properties files of Kafka's clients, and security settings in the table.

Both become ``kafka.*`` options of the data source, where the table's own ``options`` come before them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pykafka08.config import ConsumerConfig, ProducerConfig
from pykafka08.errors import ConfigError
from pykafka08.group.settings import GroupConfig
from pykafka08.kafka_properties import read_client_properties, settings_of
from pykafka08.kafka_properties.providers import resolved
from pykafka08.security.secret import Secret
from pykafka08.spark.client_properties import (
    CONSUMER_PROPERTIES,
    PREFIX,
    PRODUCER_PROPERTIES,
    REFUSED_BY_SINK,
    REFUSED_BY_SOURCE,
    SECURITY,
)

__all__ = ["with_properties", "with_registry_properties"]

SERVERS = "bootstrap.servers"


def with_properties(table: dict[str, Any], folder: Path, *, is_source: bool) -> None:
    """Turn the properties file and the security settings of a table into options, in place.

    Security settings have Kafka's names, with dots, or this client's.  The file's path counts from ``folder``; its
    ``bootstrap.servers`` are used if the table has none.
    """
    found: dict[str, str] = {}
    file = table.get("properties")
    if isinstance(file, str) and file:
        found = _of_file(folder / file, is_source=is_source)
        servers = found.pop(SERVERS, None)
        if servers is not None:
            table.setdefault("bootstrap_servers", servers)
    for key in [key for key in table if f"{_dotted(key)}.".startswith(SECURITY)]:
        found.update(_flat(_dotted(key), table.pop(key)))
    if found:
        options = table.get("options", {})
        if isinstance(options, dict):
            table["options"] = {**{PREFIX + name: value for name, value in found.items()}, **options}


REGISTRY_PROPERTIES = {
    "url": "url",
    "basic.auth.user.info": "basic_auth_user_info",
    "bearer.auth.token": "bearer_auth_token",
    "ssl.ca.location": "ssl_ca_location",
}
"""Confluent's property, which may begin with ``schema.registry.`` → the setting of ``[decode.registry]``."""


def with_registry_properties(table: dict[str, Any], folder: Path) -> None:
    """Add the settings of the file ``decode.registry.properties``, in place; the table's own settings win."""
    file = table.get("properties")
    if not isinstance(file, str) or not file:
        return
    for name, value in resolved(read_client_properties(folder / file)).items():
        setting = REGISTRY_PROPERTIES.get(name.removeprefix("schema.registry."))
        if setting is not None:
            table.setdefault(setting, value.reveal() if isinstance(value, Secret) else value)


def _of_file(path: Path, *, is_source: bool) -> dict[str, str]:
    properties = read_client_properties(path)
    kinds = (ConsumerConfig, GroupConfig) if is_source else (ProducerConfig,)
    try:
        settings_of(properties, *kinds)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error.message}") from None
    known = CONSUMER_PROPERTIES if is_source else PRODUCER_PROPERTIES
    refused = REFUSED_BY_SOURCE if is_source else REFUSED_BY_SINK
    return {
        name: value.reveal() if isinstance(value, Secret) else value
        for name, value in resolved(properties).items()
        if name in known and name not in refused
    }


def _dotted(key: str) -> str:
    return key.replace("_", ".")


def _flat(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """TOML makes tables of dots in a key."""
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield from _flat(f"{name}.{_dotted(key)}", one)
    elif isinstance(value, bool):
        yield name, "true" if value else "false"
    elif isinstance(value, (str, int, float)):
        yield name, str(value)
    else:
        raise ConfigError(f"{name}: text, a number, true or false is wanted")
