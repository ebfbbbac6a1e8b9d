"""Properties as Kafka's tools take them, ``key=value`` options and ``.properties`` files, turned into our settings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from pykafka08.config import ClientConfig, setting_fields
from pykafka08.errors import ConfigError
from pykafka08.properties import read_properties

__all__ = ["bytes_of", "parse_pairs", "read_properties", "settings_of"]


def parse_pairs(texts: Iterable[str]) -> dict[str, str]:
    """``["a=b", "c"]`` as ``{"a": "b", "c": ""}``; the last one of a name wins."""
    pairs = {}
    for text in texts:
        name, _, value = text.partition("=")
        if not name.strip():
            raise ConfigError(f"{text!r} is not of the form name=value")
        pairs[name.strip()] = value
    return pairs


def bytes_of(text: str) -> bytes:
    """The bytes of an argument as the shell gave them, whatever they are."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise ConfigError(f"{text!r:.100} cannot be written as UTF-8") from error


_MOST_DIGITS = 40

_OTHER_NAMES = {
    "metadata_broker_list": "bootstrap_servers",
    "request_required_acks": "acks",
    "compression_codec": "compression_type",
    "fetch_wait_max_ms": "fetch_max_wait_ms",
    "fetch_message_max_bytes": "max_partition_fetch_bytes",
}
"""Names of the clients of 0.8 and what they are called today."""

_OTHER_VALUES = {("auto_offset_reset", "smallest"): "earliest", ("auto_offset_reset", "largest"): "latest"}

_ASSIGNORS = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "StickyAssignor": "sticky",
    "CooperativeStickyAssignor": "cooperative-sticky",
}
"""Java's classes and what they call themselves."""

_REFUSED = {
    "transactional_id": "the tools write in no transaction; pykafka08.Producer does",
    "partitioner_class": "Java classes cannot be used here; partitioner=murmur2, crc32, ... names one of this client",
}


def settings_of(properties: Mapping[str, str], *kinds: type) -> tuple[dict[str, Any], list[str]]:
    """Keyword arguments for a client out of Java's names, and the names that this client does not have.

    ``kinds`` are ``ProducerConfig``, or ``ConsumerConfig`` and ``GroupConfig``.  A property that would change what is
    read or who may read it is never passed over: it is a ConfigError if this release cannot honour it.
    """
    types = {name: str(field.type) for name, field in setting_fields(ClientConfig, *kinds).items()}
    settings: dict[str, Any] = {}
    unknown = []
    for name, text in properties.items():
        setting = name.replace(".", "_").replace("-", "_")
        setting = _OTHER_NAMES.get(setting, setting)
        if setting in _REFUSED:
            raise ConfigError(f"{name}={text}: {_REFUSED[setting]}")
        if setting not in types:
            unknown.append(name)
            continue
        if setting == "partition_assignment_strategy":
            settings[setting] = _assignors(text)
            continue
        settings[setting] = _OTHER_VALUES.get((setting, text.strip())) or _value(name, text.strip(), types[setting])
    return settings, unknown


def _assignors(text: str) -> tuple[str, ...]:
    names = [name.strip().rpartition(".")[2] for name in text.split(",")]
    return tuple(_ASSIGNORS.get(name, name) for name in names)


def _value(name: str, text: str, type_name: str) -> Any:
    if "bool" in type_name:
        if text.lower() not in ("true", "false"):
            raise ConfigError(f"{name}={text!r} is neither true nor false")
        return text.lower() == "true"
    # Python refuses to read thousands of digits; no setting has a value of more than 19.
    is_short = len(text) <= _MOST_DIGITS
    if "int" in type_name and is_short and re.fullmatch(r"[+-]?\d+", text):
        return int(text)
    if type_name == "float" and is_short and re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    if type_name in ("int", "float", "int | None"):
        shown = repr(text) if is_short else f"{text[:_MOST_DIGITS]!r}..."
        raise ConfigError(f"{name}={shown} is not a number{'' if is_short else ' that fits 64 bits'}")
    return text
