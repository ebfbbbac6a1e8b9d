"""What a test passes to the embedded cluster, and the configuration of topics, checked before it is used."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping

from pykafka08.broker.log import PartitionLog
from pykafka08.broker.personality import Personality
from pykafka08.broker.state import MOST_PARTITIONS, is_valid_topic_name
from pykafka08.errors import ConfigError

__all__ = ["check_host", "check_number", "check_offset", "check_topic", "check_topics", "topic_config_fault"]

INT32_MAX = 2**31 - 1
NUMBERS = {"max.message.bytes": 0, "min.insync.replicas": 1}
"""Properties that are read as numbers, and the least that each may be."""
TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")


def check_number(name: str, value: object, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ConfigError(f"{name}={value!r:.100} is not a whole number from {least} to {most}")


def check_host(host: object) -> None:
    """The brokers ask for no password: only this machine may reach them."""
    try:
        is_loopback = host == "localhost" or ipaddress.ip_address(str(host)).is_loopback
    except ValueError:
        is_loopback = False
    if not isinstance(host, str) or not is_loopback:
        raise ConfigError(f"host={host!r:.100}: the embedded cluster is bound to loopback only, as 127.0.0.1 or ::1")


def check_topics(topics: object) -> None:
    """Names and counts of partitions."""
    if not isinstance(topics, Mapping):
        raise ConfigError(f"topics={topics!r:.100} is not a mapping of names to numbers of partitions")
    for name, partitions in topics.items():
        check_topic(name, partitions)


def check_topic(name: object, partitions: object) -> None:
    if not is_valid_topic_name(name):
        raise ConfigError(f"{name!r:.300} is not a valid topic name")
    check_number(f"topic {name!r}: partitions", partitions, 1, MOST_PARTITIONS)


def topic_config_fault(config: object) -> str | None:
    """What is wrong with the properties of a topic; None if they can be lived by."""
    if not isinstance(config, Mapping):
        return f"config={config!r:.100} is not a mapping of names to texts"
    for name, value in config.items():
        if not isinstance(name, str) or not isinstance(value, str):
            return f"config: {name!r:.100}: {value!r:.100} is not a name and a text"
        least = NUMBERS.get(name)
        if least is not None and not (re.fullmatch(r"[0-9]{1,10}", value) and least <= int(value) <= INT32_MAX):
            return f"config: {name}={value!r:.100} is not a whole number from {least} to {INT32_MAX}"
        if name == "message.timestamp.type" and value not in TIMESTAMP_TYPES:
            return f"config: {name}={value!r:.100} is not one of {', '.join(TIMESTAMP_TYPES)}"
        if name == "message.format.version":
            try:
                Personality(value.partition("-")[0])
            except ConfigError as error:
                return f"config: {name}={value!r:.100}: {error.message}"
    return None


def check_offset(log: PartitionLog, offset: object) -> None:
    """An offset that a log has, or its end."""
    if isinstance(offset, bool) or not isinstance(offset, int) or not 0 <= offset <= log.end_offset:
        text = f"offset {offset!r:.100} is not in the log, which ends at {log.end_offset}"
        raise ConfigError(text, topic=log.topic, partition=log.partition)
