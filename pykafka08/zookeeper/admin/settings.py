"""Which settings a release takes for topics, clients and users, and which values.

What is written here stops old brokers if it is wrong: 0.8 and 0.9 read all topics' settings when they start, and end at
the first value that they cannot read.  Sources: LogConfig and DynamicConfig of each release.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import NamedTuple

from pykafka08.errors import ConfigError
from pykafka08.protocol.releases import RELEASES

__all__ = ["check_settings"]

Check = Callable[[str], str | None]
"""What a value should be, in words, if it is not; None if it is."""


def _whole(bits: int, least: int | None = None) -> Check:
    limit = 1 << (bits - 1)

    def check(value: str) -> str | None:
        is_number = re.fullmatch(r"-?\d{1,19}", value, re.ASCII) is not None
        if is_number and (-limit if least is None else least) <= int(value) < limit:
            return None
        return f"a whole number{'' if least is None else f' from {least} up'} of at most {bits} bits"

    return check


def _one_of(*words: str) -> Check:
    return lambda value: None if value in words else f"one of {', '.join(words)}"


def _ratio(value: str) -> str | None:
    is_number = re.fullmatch(r"\d{1,10}(\.\d{0,15})?|\.\d{1,15}", value, re.ASCII) is not None
    return None if is_number and float(value) <= 1 else "a number from 0 to 1"


def _rate(value: str) -> str | None:
    is_number = re.fullmatch(r"\d{1,15}(\.\d{0,15})?", value, re.ASCII) is not None
    return None if is_number and float(value) > 0 else "a number above 0"


def _cleanup_policy(value: str) -> str | None:
    words = [word.strip() for word in value.split(",")]
    is_known = set(words) <= {"delete", "compact"} and len(words) == len(set(words))
    return None if is_known else "delete, compact, or both with a comma"


def _throttled_replicas(value: str) -> str | None:
    is_list = value == "*" or re.fullmatch(r"(\d+:\d+(,\d+:\d+)*)?", value, re.ASCII) is not None
    return None if is_list else "* or a list such as 0:1,0:2 of partition and broker"


def _anything(_: str) -> str | None:
    return None


def _scram(value: str) -> str | None:
    keys = [pair.partition("=")[0] for pair in value.split(",")]
    is_whole = sorted(keys) == ["iterations", "salt", "server_key", "stored_key"]
    return None if is_whole else "of the form salt=..,stored_key=..,server_key=..,iterations=.."


class Setting(NamedTuple):
    since: str
    check: Check


_int, _long = _whole(32, 0), _whole(64, 0)
_flag = _one_of("true", "false")

TOPIC_SETTINGS: Mapping[str, Setting] = {
    "cleanup.policy": Setting("0.8.1", _one_of("delete", "compact")),
    "delete.retention.ms": Setting("0.8.1", _long),
    "file.delete.delay.ms": Setting("0.8.1", _long),
    "flush.messages": Setting("0.8.1", _long),
    "flush.ms": Setting("0.8.1", _long),
    "index.interval.bytes": Setting("0.8.1", _int),
    "max.message.bytes": Setting("0.8.1", _int),
    "min.cleanable.dirty.ratio": Setting("0.8.1", _ratio),
    "retention.bytes": Setting("0.8.1", _whole(64)),
    "retention.ms": Setting("0.8.1", _whole(64)),
    "segment.bytes": Setting("0.8.1", _whole(32, 14)),
    "segment.index.bytes": Setting("0.8.1", _whole(32, 8)),
    "segment.ms": Setting("0.8.1", _long),
    "min.insync.replicas": Setting("0.8.2", _whole(32, 1)),
    "segment.jitter.ms": Setting("0.8.2", _long),
    "unclean.leader.election.enable": Setting("0.8.2", _flag),
    "compression.type": Setting("0.9.0", _one_of("uncompressed", "snappy", "lz4", "gzip", "producer")),
    "preallocate": Setting("0.9.0", _flag),
    "message.format.version": Setting("0.10.0", _anything),
    "message.timestamp.difference.max.ms": Setting("0.10.0", _long),
    "message.timestamp.type": Setting("0.10.0", _one_of("CreateTime", "LogAppendTime")),
    "follower.replication.throttled.replicas": Setting("0.10.1", _throttled_replicas),
    "leader.replication.throttled.replicas": Setting("0.10.1", _throttled_replicas),
    "min.compaction.lag.ms": Setting("0.10.1", _long),
}
"""Up to 0.10.2: later brokers take changes themselves, and check them."""

_LATER: Mapping[str, tuple[str, Check]] = {
    "cleanup.policy": ("0.10.1", _cleanup_policy),
    "compression.type": ("2.1", _one_of("uncompressed", "snappy", "lz4", "gzip", "zstd", "producer")),
}
"""What a release has added to the values."""

QUOTAS: Mapping[str, Setting] = {
    "producer_byte_rate": Setting("0.9.0", _long),
    "consumer_byte_rate": Setting("0.9.0", _long),
    "request_percentage": Setting("0.11.0", _rate),
    "controller_mutation_rate": Setting("2.7", _rate),
}

KINDS: Mapping[str, tuple[str, Mapping[str, Setting]]] = {
    "topics": ("0.8.1", TOPIC_SETTINGS),
    "clients": ("0.9.0", QUOTAS),
    "users": (
        "0.10.1",
        {**QUOTAS, "SCRAM-SHA-256": Setting("0.10.2", _scram), "SCRAM-SHA-512": Setting("0.10.2", _scram)},
    ),
    "brokers": (
        "0.10.1",
        {
            "follower.replication.throttled.rate": Setting("0.10.1", _long),
            "leader.replication.throttled.rate": Setting("0.10.1", _long),
        },
    ),
    "ips": ("2.8", {"connection_creation_rate": Setting("2.8", _int)}),
}
"""The first part of an entity's path -> the first release that has settings of it, and which."""

_LAST_KNOWN = "0.10.2"


def check_settings(entity_path: str, settings: Mapping[str, str], release: str) -> None:
    """ConfigError for a setting that brokers of that release do not know, or a value that they cannot read."""
    kind = entity_path.partition("/")[0]
    if kind not in KINDS:
        raise ConfigError(f"{entity_path!r} has no settings; they are of {', '.join(KINDS)}")
    since, known = KINDS[kind]
    if _is_before(release, since):
        raise ConfigError(f"settings of {kind} begin with Kafka {since}; the oldest broker is of {release}")
    for name, value in settings.items():
        wrong = _wrong(name, value, known, release)
        if wrong:
            raise ConfigError(f"{name}={value}: {wrong}")


def _wrong(name: str, value: str, known: Mapping[str, Setting], release: str) -> str | None:
    if "\n" in name or "=" in name or not name:
        return "that is no name of a setting"
    if name not in known:
        if _is_before(_LAST_KNOWN, release):  # the table ends there
            return None
        close = get_close_matches(name, known, 1)
        return f"Kafka {release} has no such setting{f'; did you mean {close[0]}?' if close else ''}"
    since, check = known[name]
    if _is_before(release, since):
        return f"the setting begins with Kafka {since}; the oldest broker is of {release}"
    later = _LATER.get(name)
    if later is not None and not _is_before(release, later[0]):
        check = later[1]
    wanted = check(value)
    return f"the value should be {wanted}" if wanted else None


def _is_before(release: str, other: str) -> bool:
    return RELEASES.index(release) < RELEASES.index(other)
