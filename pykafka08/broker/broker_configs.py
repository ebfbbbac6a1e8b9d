"""Broker configs: the keys of each release, and the keys that can change while the broker runs.

The rows are in ``broker_config_table``.  Source: KIP-226 (dynamic configs).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping

from pykafka08.broker.broker_config_table import BROKER_CONFIG_TABLE
from pykafka08.broker.config_keys import NEVER, Check, ConfigKey, ConfigType, accept, at_least, keys_of, value_fault
from pykafka08.broker.personality import Personality
from pykafka08.broker.topic_configs import FORMATS, TOPIC_CONFIGS

__all__ = ["broker_change_fault", "broker_keys"]

TYPES = {"bool": ConfigType.BOOLEAN} | {kind.name.lower(): kind for kind in ConfigType}
PROTOCOLS: tuple[tuple[tuple[int, ...], str], ...] = (
    *(row for row in FORMATS if (0, 10) <= row[0] < (3, 1)),
    ((3, 1), "3.1-IV0"),
    ((3, 2), "3.2-IV0"),
    ((3, 3), "3.3-IV3"),
    ((3, 4), "3.4-IV0"),
    ((3, 5), "3.5-IV2"),
    ((3, 6), "3.6-IV2"),
    ((3, 7), "3.7-IV4"),
    ((3, 8), "3.8-IV0"),
    ((3, 9), "3.9-IV0"),
    ((4, 0), ""),
)
CHECKS: dict[str, Check] = {
    name: row.check for row in TOPIC_CONFIGS for name, factor in row.fallbacks if factor == 1 and row.until == NEVER
} | {
    "background.threads": at_least(1),
    "log.cleaner.backoff.ms": at_least(0),
    "log.cleaner.threads": at_least(1),
    "max.connection.creation.rate": at_least(0),
    "max.connections": at_least(0),
    "max.connections.per.ip": at_least(0),
    "num.io.threads": at_least(1),
    "num.network.threads": at_least(1),
    "num.partitions": at_least(1),
    "num.recovery.threads.per.data.dir": at_least(1),
    "num.replica.fetchers": at_least(1),
    "producer.id.expiration.ms": at_least(1),
}
SECURITY = re.compile(r"(ssl|sasl)\.")
SINCE_DYNAMIC = (1, 1)

_KEYS: dict[str, dict[str, ConfigKey]] = {}


def broker_keys(personality: Personality) -> Mapping[str, ConfigKey]:
    """The broker configs that the release has, by name."""
    keys = _KEYS.get(personality.release)
    if keys is None:
        keys = _KEYS[personality.release] = keys_of(_rows(), personality)
    return keys


def _rows() -> Iterator[ConfigKey]:
    for line in BROKER_CONFIG_TABLE.splitlines():
        name, kind, scope, since, until, default = line.split(" ", 5)
        yield ConfigKey(
            name,
            TYPES[kind],
            None if default == "-" else "" if default == '""' else default,
            CHECKS.get(name, accept),
            since=_release(since, (0, 8)),
            until=_release(until, NEVER),
            is_read_only=scope == "r",
            is_per_broker=scope == "p",
        )
    for (at, protocol), (end, _) in itertools.pairwise(PROTOCOLS):
        yield ConfigKey(
            "inter.broker.protocol.version", ConfigType.STRING, protocol, since=at, until=end, is_read_only=True
        )
    for (at, stored), (end, _) in itertools.pairwise(FORMATS):
        yield ConfigKey("log.message.format.version", ConfigType.STRING, stored, since=at, until=end, is_read_only=True)


def _release(text: str, default: tuple[int, ...]) -> tuple[int, ...]:
    return default if text == "-" else tuple(int(part) for part in text.split("."))


def broker_change_fault(keys: Mapping[str, ConfigKey], changed: Mapping[str, str], *, is_for_all: bool) -> str | None:
    """The fault of new dynamic configs of one broker or of all; None if they are valid.

    Unknown names are accepted, because they may belong to a plug-in of the broker.
    """
    known = {name: keys[name] for name in changed if name in keys}
    fixed = [name for name, key in known.items() if key.is_read_only]
    if fixed:
        return f"These configs cannot change while the broker runs: {', '.join(fixed)}"
    secure = [name for name in known if SECURITY.match(name)]
    if secure:
        return f"These security configs can change for one listener only, under its prefix: {', '.join(secure)}"
    single = [name for name, key in known.items() if key.is_per_broker]
    if single and is_for_all:
        return f"These configs can be set for one broker only, not for all: {', '.join(single)}"
    return next((fault for name, key in known.items() if (fault := value_fault(key, changed[name]))), None)
