"""Group configs (KIP-848, KIP-932, KIP-1071) and client metrics subscriptions (KIP-714): tables of keys.

A group's value is limited by the broker configs ``group.<kind>.min.<name>`` and ``group.<kind>.max.<name>``.  Source:
DescribeConfigs of real brokers from 4.0.1 to 4.3.1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from pykafka08.broker.config_keys import (
    Check,
    ConfigKey,
    ConfigType,
    accept,
    at_least,
    keys_of,
    one_of,
    values_fault,
)
from pykafka08.broker.personality import Personality

__all__ = ["client_metrics_fault", "client_metrics_keys", "group_config_fault", "group_keys"]

BOOLEAN, STRING, INT, LIST = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT, ConfigType.LIST
DURATION = re.compile(r"earliest|latest|by_duration:P(?=.)(\d+D)?(T(?=.)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?")
FIRST_RELEASE = (4, 0)
SINCE_CLIENT_METRICS = (4, 1)
LONGEST_INTERVAL_MS = 3_600_000
SELECTORS = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)


def _check_reset(text: str) -> str | None:
    return None if DURATION.fullmatch(text) else "the value must be earliest, latest or by_duration:<ISO 8601 duration>"


def _key(name: str, default: int | str, since: tuple[int, ...], check: Check, kind: ConfigType = INT) -> ConfigKey:
    return ConfigKey(name, kind, str(default), check, ((f"group.{name}", 1),), since)


GROUP_CONFIGS: tuple[ConfigKey, ...] = (
    _key("consumer.assignment.interval.ms", 1000, (4, 3), at_least(0)),
    _key("consumer.heartbeat.interval.ms", 5000, (4, 0), at_least(1)),
    _key("consumer.session.timeout.ms", 45_000, (4, 0), at_least(1)),
    _key("share.assignment.interval.ms", 1000, (4, 3), at_least(0)),
    _key("share.auto.offset.reset", "latest", (4, 0), _check_reset, STRING),
    _key("share.delivery.count.limit", 5, (4, 3), at_least(1)),
    _key("share.heartbeat.interval.ms", 5000, (4, 0), at_least(1)),
    _key("share.isolation.level", "read_uncommitted", (4, 1), one_of("read_committed", "read_uncommitted"), STRING),
    _key("share.partition.max.record.locks", 2000, (4, 3), at_least(1)),
    _key("share.record.lock.duration.ms", 30_000, (4, 0), at_least(1)),
    _key("share.renew.acknowledge.enable", "true", (4, 3), accept, BOOLEAN),
    _key("share.session.timeout.ms", 45_000, (4, 0), at_least(1)),
    _key("streams.assignment.interval.ms", 1000, (4, 3), at_least(0)),
    _key("streams.heartbeat.interval.ms", 5000, (4, 1), at_least(1)),
    _key("streams.initial.rebalance.delay.ms", 3000, (4, 2), at_least(0)),
    _key("streams.num.standby.replicas", 0, (4, 1), at_least(0)),
    _key("streams.session.timeout.ms", 45_000, (4, 1), at_least(1)),
)
CLIENT_METRICS_CONFIGS: tuple[ConfigKey, ...] = (
    ConfigKey("interval.ms", INT, "300000"),
    ConfigKey("match", LIST, ""),
    ConfigKey("metrics", LIST, ""),
)

_KEYS: dict[str, dict[str, ConfigKey]] = {}


def group_keys(personality: Personality) -> Mapping[str, ConfigKey]:
    """The group configs of the release, by name; none before 4.0."""
    keys = _KEYS.get(personality.release)
    if keys is None:
        keys = _KEYS[personality.release] = keys_of(GROUP_CONFIGS, personality)
    return keys


def group_config_fault(
    config: Mapping[str, str], personality: Personality, broker_value: Callable[[str], str | None]
) -> str | None:
    """The fault of a group's configs; ``broker_value`` returns the limits in the broker configs."""
    fault = values_fault(group_keys(personality), config, "group")
    if fault is not None:
        return fault
    for name, value in config.items():
        kind, _, rest = name.partition(".")
        least, most = broker_value(f"group.{kind}.min.{rest}"), broker_value(f"group.{kind}.max.{rest}")
        if least is not None and int(value) < int(least):
            return f"{name} ({value}) must be at least group.{kind}.min.{rest} ({least})"
        if most is not None and int(value) > int(most):
            return f"{name} ({value}) must be at most group.{kind}.max.{rest} ({most})"
    return None


def client_metrics_keys() -> Mapping[str, ConfigKey]:
    """The configs of a client metrics subscription, by name."""
    return {row.name: row for row in CLIENT_METRICS_CONFIGS}


def client_metrics_fault(config: Mapping[str, str]) -> str | None:
    """The fault of a client metrics subscription; None if it is valid."""
    fault = values_fault(client_metrics_keys(), config, "client metrics")
    if fault is not None:
        return fault
    interval = int(config.get("interval.ms", "300000"))
    if not 100 <= interval <= LONGEST_INTERVAL_MS:
        return f"Invalid value {interval} for config interval.ms: the value must be 100 to {LONGEST_INTERVAL_MS}"
    for pattern in filter(None, map(str.strip, config.get("match", "").split(","))):
        selector, equals, expression = map(str.strip, pattern.partition("="))
        if selector not in SELECTORS or not equals or not expression:
            return f"Invalid value {pattern!r:.100} for config match: not selector=pattern with a known selector"
    return None
