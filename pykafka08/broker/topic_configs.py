"""Topic configs: the table of keys, and the check of a whole topic configuration.

Source: DescribeConfigs of real brokers from 0.11.0.3 to 4.3.1; before that, the documentation of each release.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping

from pykafka08.broker.config_keys import (
    Check,
    ConfigKey,
    ConfigType,
    at_least,
    between,
    items_of,
    keys_of,
    list_of,
    one_of,
    values_fault,
)
from pykafka08.broker.personality import Personality
from pykafka08.errors import ConfigError

__all__ = ["TOPIC_CONFIGS", "topic_config_fault", "topic_keys"]

BOOLEAN, STRING, INT, LONG = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT, ConfigType.LONG
DOUBLE, LIST = ConfigType.DOUBLE, ConfigType.LIST
FOREVER = str(2**63 - 1)
DAY_MS = 86_400_000
HOUR_MS, MINUTE_MS = 3_600_000, 60_000
REPLICAS = re.compile(r"\d{1,10}:\d{1,10}")
TIERED = "remote.storage.enable"
CODECS_BEFORE_ZSTD = one_of("uncompressed", "lz4", "snappy", "gzip", "producer")


def _check_throttled(text: str) -> str | None:
    if text == "*" or all(REPLICAS.fullmatch(item) for item in items_of(text)):
        return None
    return "the value must be * or a list of partition:broker pairs"


def _check_format(text: str) -> str | None:
    try:
        Personality(text.partition("-")[0])
    except ConfigError as error:
        return error.message
    return None


def _key(
    name: str,
    kind: ConfigType,
    default: str | int,
    check: Check | None = None,
    broker: str = "",
    **releases: tuple[int, ...],
) -> ConfigKey:
    """``broker``: names of broker configs, with ``*factor`` if their unit differs."""
    fallbacks = tuple((each, int(factor or 1)) for each, _, factor in (part.partition("*") for part in broker.split()))
    row = ConfigKey(name, kind, str(default), fallbacks=fallbacks, **releases)  # type: ignore[arg-type]
    return row if check is None else row._replace(check=check)


RETENTION = f"log.retention.ms log.retention.minutes*{MINUTE_MS} log.retention.hours*{HOUR_MS}"
ROLL, JITTER = f"log.roll.ms log.roll.hours*{HOUR_MS}", f"log.roll.jitter.ms log.roll.jitter.hours*{HOUR_MS}"
FLUSH = "log.flush.interval.ms log.flush.scheduler.interval.ms"
FORMATS: tuple[tuple[tuple[int, ...], str], ...] = (
    ((0, 10), "0.10.0-IV1"),
    ((0, 10, 1), "0.10.1-IV2"),
    ((0, 10, 2), "0.10.2-IV0"),
    ((0, 11), "0.11.0-IV2"),
    ((1, 0), "1.0-IV0"),
    ((1, 1), "1.1-IV0"),
    ((2, 0), "2.0-IV1"),
    ((2, 1), "2.1-IV2"),
    ((2, 2), "2.2-IV1"),
    ((2, 3), "2.3-IV1"),
    ((2, 4), "2.4-IV1"),
    ((2, 5), "2.5-IV0"),
    ((2, 6), "2.6-IV0"),
    ((2, 7), "2.7-IV2"),
    ((2, 8), "2.8-IV1"),
    ((3, 0), "3.0-IV1"),
    ((4, 0), ""),
)

TOPIC_CONFIGS: tuple[ConfigKey, ...] = (
    _key("cleanup.policy", LIST, "delete", list_of("compact", "delete"), "log.cleanup.policy"),
    _key("compression.gzip.level", INT, -1, between(1, 9, -1), "compression.gzip.level", since=(3, 8)),
    _key("compression.lz4.level", INT, 9, between(1, 17), "compression.lz4.level", since=(3, 8)),
    _key("compression.zstd.level", INT, 3, between(-131072, 22), "compression.zstd.level", since=(3, 8)),
    _key("compression.type", STRING, "producer", CODECS_BEFORE_ZSTD, "compression.type", since=(0, 9), until=(2, 1)),
    _key(
        "compression.type",
        STRING,
        "producer",
        one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        "compression.type",
        since=(2, 1),
    ),
    _key("delete.retention.ms", LONG, DAY_MS, at_least(0), "log.cleaner.delete.retention.ms"),
    _key("file.delete.delay.ms", LONG, 60_000, at_least(0), "log.segment.delete.delay.ms"),
    _key("flush.messages", LONG, FOREVER, at_least(0), "log.flush.interval.messages", until=(3, 0)),
    _key("flush.messages", LONG, FOREVER, at_least(1), "log.flush.interval.messages", since=(3, 0)),
    _key("flush.ms", LONG, FOREVER, at_least(0), FLUSH),
    _key("follower.replication.throttled.replicas", LIST, "", _check_throttled, since=(0, 10, 1)),
    _key("index.interval.bytes", INT, 4096, at_least(0), "log.index.interval.bytes"),
    _key("leader.replication.throttled.replicas", LIST, "", _check_throttled, since=(0, 10, 1)),
    _key("local.retention.bytes", LONG, -2, at_least(-2), "log.local.retention.bytes", since=(3, 6)),
    _key("local.retention.ms", LONG, -2, at_least(-2), "log.local.retention.ms", since=(3, 6)),
    _key("max.compaction.lag.ms", LONG, FOREVER, at_least(1), "log.cleaner.max.compaction.lag.ms", since=(2, 3)),
    _key("max.message.bytes", INT, 1_000_012, at_least(0), "message.max.bytes", until=(2, 5)),
    _key("max.message.bytes", INT, 1_048_588, at_least(0), "message.max.bytes", since=(2, 5)),
    _key(
        "message.downconversion.enable",
        BOOLEAN,
        "true",
        broker="log.message.downconversion.enable",
        since=(2, 0),
        until=(4, 0),
    ),
    *(
        _key("message.format.version", STRING, name, _check_format, "log.message.format.version", since=at, until=end)
        for (at, name), (end, _) in itertools.pairwise(FORMATS)
    ),
    _key(
        "message.timestamp.after.max.ms",
        LONG,
        FOREVER,
        at_least(0),
        "log.message.timestamp.after.max.ms",
        since=(3, 6),
        until=(4, 0),
    ),
    _key(
        "message.timestamp.after.max.ms",
        LONG,
        HOUR_MS,
        at_least(0),
        "log.message.timestamp.after.max.ms",
        since=(4, 0),
    ),
    _key(
        "message.timestamp.before.max.ms",
        LONG,
        FOREVER,
        at_least(0),
        "log.message.timestamp.before.max.ms",
        since=(3, 6),
    ),
    _key(
        "message.timestamp.difference.max.ms",
        LONG,
        FOREVER,
        at_least(0),
        "log.message.timestamp.difference.max.ms",
        since=(0, 10),
        until=(4, 0),
    ),
    _key(
        "message.timestamp.type",
        STRING,
        "CreateTime",
        one_of("CreateTime", "LogAppendTime"),
        "log.message.timestamp.type",
        since=(0, 10),
    ),
    _key("min.cleanable.dirty.ratio", DOUBLE, "0.5", between(0, 1), "log.cleaner.min.cleanable.ratio"),
    _key("min.compaction.lag.ms", LONG, 0, at_least(0), "log.cleaner.min.compaction.lag.ms", since=(0, 10, 1)),
    _key("min.insync.replicas", INT, 1, at_least(1), "min.insync.replicas", since=(0, 8, 2)),
    _key("preallocate", BOOLEAN, "false", broker="log.preallocate", since=(0, 9)),
    _key("remote.log.copy.disable", BOOLEAN, "false", since=(3, 9)),
    _key("remote.log.delete.on.disable", BOOLEAN, "false", since=(3, 9)),
    _key(TIERED, BOOLEAN, "false", since=(3, 6)),
    _key("retention.bytes", LONG, -1, broker="log.retention.bytes"),
    _key("retention.ms", LONG, 7 * DAY_MS, at_least(-1), RETENTION),
    _key("segment.bytes", INT, 1 << 30, at_least(14), "log.segment.bytes", until=(4, 0)),
    _key("segment.bytes", INT, 1 << 30, at_least(1 << 20), "log.segment.bytes", since=(4, 0)),
    _key("segment.index.bytes", INT, 10 << 20, at_least(0), "log.index.size.max.bytes", until=(3, 0)),
    _key("segment.index.bytes", INT, 10 << 20, at_least(4), "log.index.size.max.bytes", since=(3, 0)),
    _key("segment.jitter.ms", LONG, 0, at_least(0), JITTER, since=(0, 8, 2)),
    _key("segment.ms", LONG, 7 * DAY_MS, at_least(1), ROLL),
    _key(
        "unclean.leader.election.enable",
        BOOLEAN,
        "true",
        broker="unclean.leader.election.enable",
        since=(0, 8, 2),
        until=(0, 11),
    ),
    _key("unclean.leader.election.enable", BOOLEAN, "false", broker="unclean.leader.election.enable", since=(0, 11)),
)

_KEYS: dict[str, dict[str, ConfigKey]] = {}


def topic_keys(personality: Personality) -> Mapping[str, ConfigKey]:
    """The topic configs of the release, by name."""
    keys = _KEYS.get(personality.release)
    if keys is None:
        keys = _KEYS[personality.release] = keys_of(TOPIC_CONFIGS, personality)
    return keys


def topic_config_fault(config: object, personality: Personality) -> str | None:
    """The fault of a topic's configs; None if a broker of the release accepts them."""
    if not isinstance(config, Mapping):
        return f"config={config!r:.100} is not a mapping of names to texts"
    for name, value in config.items():
        if not isinstance(name, str) or not isinstance(value, str):
            return f"config: {name!r:.100}: {value!r:.100} is not a name and a text"
    keys = topic_keys(personality)
    return values_fault(keys, config, "topic") or _together_fault(keys, config)


def _together_fault(keys: Mapping[str, ConfigKey], config: Mapping[str, str]) -> str | None:
    """The fault of configs that are valid separately, but not together."""

    def number(name: str) -> int:
        return int(config.get(name) or keys[name].default or 0)

    if "max.compaction.lag.ms" in keys:
        least, most = number("min.compaction.lag.ms"), number("max.compaction.lag.ms")
        if least > most:
            return f"min.compaction.lag.ms ({least}) is above max.compaction.lag.ms ({most})"
    if config.get(TIERED, "false").strip().lower() == "true":
        return f"{TIERED}=true: the embedded broker has no tiered storage"
    return None
