"""Checks of the arguments of the embedded cluster."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

from pykafka08.broker.log import PartitionLog
from pykafka08.broker.state import MOST_PARTITIONS, is_valid_topic_name
from pykafka08.errors import ConfigError

__all__ = ["check_host", "check_number", "check_offset", "check_topic", "check_topics"]


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


def check_offset(log: PartitionLog, offset: object) -> None:
    """An offset that a log has, or its end."""
    if isinstance(offset, bool) or not isinstance(offset, int) or not 0 <= offset <= log.end_offset:
        text = f"offset {offset!r:.100} is not in the log, which ends at {log.end_offset}"
        raise ConfigError(text, topic=log.topic, partition=log.partition)
