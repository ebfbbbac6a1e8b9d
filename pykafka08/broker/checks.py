"""Checks of the arguments of the embedded cluster."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pykafka08.broker.log import PartitionLog
from pykafka08.broker.state import MOST_PARTITIONS, is_valid_topic_name
from pykafka08.errors import ConfigError

__all__ = [
    "WILDCARDS",
    "check_host",
    "check_hosts",
    "check_log_dir",
    "check_number",
    "check_offset",
    "check_paths",
    "check_racks",
    "check_topic",
    "check_topics",
    "is_loopback",
    "topic_arguments",
]

WILDCARDS = ("0.0.0.0", "::")  # noqa: S104 - refused as advertised addresses
HOST = re.compile(r"[0-9A-Za-z_.:%-]{1,253}")
TOPIC_ARGUMENTS = ("partitions", "replication_factor", "config")


def check_number(name: str, value: object, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ConfigError(f"{name}={value!r:.100} is not a whole number from {least} to {most}")


def check_host(host: object) -> None:
    """The embedded ZooKeeper can listen on loopback only."""
    if not isinstance(host, str) or not is_loopback(host):
        raise ConfigError(f"host={host!r:.100}: the embedded ZooKeeper is bound to loopback only, as 127.0.0.1 or ::1")


def check_hosts(host: object, advertised_host: object) -> None:
    """ConfigError unless both are addresses or host names, and the advertised one is not a wildcard address."""
    for name, value in (("host", host), ("advertised_host", advertised_host)):
        if value is not None and not (isinstance(value, str) and HOST.fullmatch(value)):
            raise ConfigError(f"{name}={value!r:.100} is not an address or a host name")
    if host is None:
        raise ConfigError("host=None is not an address or a host name")
    if advertised_host in WILDCARDS or (advertised_host is None and host in WILDCARDS):
        raise ConfigError(
            f"clients cannot connect to {advertised_host or host}: set advertised_host to an address they can reach"
        )


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_topics(topics: object) -> None:
    """ConfigError unless values are partition counts or arguments of ``create_topic``."""
    if not isinstance(topics, Mapping):
        raise ConfigError(f"topics={topics!r:.100} is not a mapping of names to numbers of partitions")
    for name, each in topics.items():
        if isinstance(each, Mapping):
            unknown = [argument for argument in each if argument not in TOPIC_ARGUMENTS]
            if unknown:
                raise ConfigError(
                    f"topic {name!r:.300}: {unknown[0]!r:.100} is not one of {', '.join(TOPIC_ARGUMENTS)}"
                )
        else:
            check_topic(name, each)


def topic_arguments(topic: int | Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of ``create_topic`` for a value of ``topics``."""
    return dict(topic) if isinstance(topic, Mapping) else {"partitions": topic}


def check_topic(name: object, partitions: object) -> None:
    if not is_valid_topic_name(name):
        raise ConfigError(f"{name!r:.300} is not a valid topic name")
    check_number(f"topic {name!r}: partitions", partitions, 1, MOST_PARTITIONS)


def check_offset(log: PartitionLog, offset: object) -> None:
    """An offset that a log has, or its end."""
    if isinstance(offset, bool) or not isinstance(offset, int) or not 0 <= offset <= log.end_offset:
        text = f"offset {offset!r:.100} is not in the log, which ends at {log.end_offset}"
        raise ConfigError(text, topic=log.topic, partition=log.partition)


def check_log_dir(log_dir: str | os.PathLike[str] | None, *, has_zookeeper: bool) -> None:
    if log_dir is not None and not os.fspath(log_dir):
        raise ConfigError("log_dir='' does not name a directory")
    if log_dir is not None and has_zookeeper:
        raise ConfigError("log_dir and zookeeper exclude each other: the embedded ZooKeeper is in memory only")


def check_paths(paths: Mapping[str, object]) -> None:
    """ConfigError unless the arguments are paths or None."""
    for name, value in paths.items():
        if value is not None and not isinstance(value, str | os.PathLike):
            raise ConfigError(f"{name} is of type {type(value).__name__}, not a path")


def check_racks(racks: Sequence[str] | None, brokers: int) -> None:
    if racks is not None and (isinstance(racks, str) or not isinstance(racks, Sequence) or len(racks) != brokers):
        raise ConfigError(f"racks={racks!r:.300} does not name one for each of {brokers} brokers")
