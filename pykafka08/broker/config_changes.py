"""Changes of configs: the checks and effects of AlterConfigs and IncrementalAlterConfigs for every resource type.

Source: KIP-133, KIP-226, KIP-339, KIP-412 (loggers), KIP-714 (client metrics), KIP-848 (groups); error codes as in
2.8.2 and 4.3.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from pykafka08.acl_operations import AclResourceType
from pykafka08.broker.broker_configs import broker_change_fault, broker_keys
from pykafka08.broker.call import Call
from pykafka08.broker.config_keys import ConfigKey, ConfigType, items_of, values_fault
from pykafka08.broker.configs import ALL_BROKERS
from pykafka08.broker.group_configs import client_metrics_fault, client_metrics_keys, group_config_fault, group_keys
from pykafka08.broker.personality import Personality
from pykafka08.broker.state import is_valid_topic_name
from pykafka08.broker.topic_configs import topic_config_fault, topic_keys
from pykafka08.error_codes import ErrorCode

__all__ = [
    "Change",
    "Operation",
    "ResourceType",
    "alter",
    "config_access_denied",
    "has_client_metrics",
    "has_groups",
    "has_loggers",
]

LEVELS = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")
SINCE_ELIGIBLE_REPLICAS = (4, 1)


class ResourceType(IntEnum):
    """Resource types, with their numbers in the protocol."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class Operation(IntEnum):
    """Operations of IncrementalAlterConfigs on one config."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


OPERATIONS = frozenset(map(int, Operation))


class Change(NamedTuple):
    """The name of one config, an operation, and its value."""

    name: str
    operation: int
    value: str | None


class _Refused(Exception):
    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


def has_groups(personality: Personality) -> bool:
    """True if the release has group configs."""
    return personality >= (4, 0)


def has_client_metrics(personality: Personality) -> bool:
    """True if the release has client metrics subscriptions; before 4.0 only clusters without ZooKeeper have them."""
    return personality >= (4, 0)


def has_loggers(personality: Personality) -> bool:
    """True if the release can change levels of loggers."""
    return personality >= (2, 3)


def alter(
    call: Call, kind: int, name: str, changes: Sequence[Change], *, replaces: bool, is_only_checked: bool
) -> tuple[int, str | None]:
    """Change the configs of a resource; returns the error code and its reason.

    ``replaces``: all other configs are reset to their defaults (AlterConfigs).
    """
    code = call.scripted_error(name) or config_access_denied(call, kind, name)
    if code:
        return code, None
    try:
        _alter(call, kind, name, changes, replaces=replaces, is_only_checked=is_only_checked)
    except _Refused as refusal:
        return refusal.code, str(refusal)
    return ErrorCode.NONE, None


def config_access_denied(call: Call, kind: int, name: str) -> int:
    """The error code if the request's API is not allowed on the configs of a resource; brokers are the cluster's."""
    if kind == ResourceType.TOPIC:
        return call.denied(AclResourceType.TOPIC, name)
    if kind == ResourceType.GROUP:
        return call.denied(AclResourceType.GROUP, name) if has_groups(call.personality) else ErrorCode.NONE
    return call.denied(AclResourceType.CLUSTER)


def _alter(
    call: Call, kind: int, name: str, changes: Sequence[Change], *, replaces: bool, is_only_checked: bool
) -> None:
    if len({change.name for change in changes}) < len(changes):
        raise _Refused(ErrorCode.INVALID_REQUEST, "a config is named twice")
    if kind == ResourceType.BROKER_LOGGER and has_loggers(call.personality) and not replaces:
        _alter_loggers(call, name, changes, is_only_checked=is_only_checked)
        return
    own, keys = _found(call, kind, name)
    changed = _changed({} if replaces else own, keys, changes, call.personality)
    touched = {each.name for each in changes}
    if kind == ResourceType.BROKER:
        # Unchanged configs are not checked again.
        fresh = {key: value for key, value in changed.items() if key in touched}
        _check_broker(call, name, fresh, touched)
    else:
        _check(call, kind, changed)
    if not is_only_checked:
        _keep(call, kind, name, changed)


def _found(call: Call, kind: int, name: str) -> tuple[Mapping[str, str], Mapping[str, ConfigKey]]:
    """The resource's own configs, and its valid keys."""
    configs, personality = call.cluster.configs, call.personality
    if kind == ResourceType.TOPIC:
        topic = call.cluster.topics.find(name)
        if topic is not None:
            return topic.config, topic_keys(personality)
        if personality >= (4, 0) and not name:
            raise _Refused(ErrorCode.INVALID_REQUEST, "a topic's name must not be empty")
        if personality >= (4, 0) and not is_valid_topic_name(name):
            raise _Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{name!r:.300} is not a valid topic name")
        raise _Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r:.300}")
    if kind == ResourceType.BROKER and personality >= (1, 1):
        _check_node(call, name, may_be_empty=True)
        return configs.brokers.get(name, {}), broker_keys(personality)
    if kind == ResourceType.GROUP and has_groups(personality):
        if not name:
            raise _Refused(ErrorCode.INVALID_REQUEST, "a group's name must not be empty")
        return configs.groups.get(name, {}), group_keys(personality)
    if kind == ResourceType.CLIENT_METRICS and has_client_metrics(personality):
        if not name:
            raise _Refused(ErrorCode.INVALID_REQUEST, "the name of a client metrics subscription must not be empty")
        return configs.client_metrics.get(name, {}), client_metrics_keys()
    raise _Refused(ErrorCode.INVALID_REQUEST, f"resource type {kind} cannot be altered in {personality.release}")


def _check_node(call: Call, name: str, *, may_be_empty: bool) -> None:
    if name == ALL_BROKERS and may_be_empty:
        return
    if not name.isdecimal():
        raise _Refused(ErrorCode.INVALID_REQUEST, f"a broker id must be a number, not {name!r:.100}")
    if name != str(call.node.node_id):
        raise _Refused(
            ErrorCode.INVALID_REQUEST, f"broker {call.node.node_id} was asked to alter configs of broker {name:.20}"
        )


def _changed(
    own: Mapping[str, str], keys: Mapping[str, ConfigKey], changes: Sequence[Change], personality: Personality
) -> dict[str, str]:
    config = dict(own)
    for name, operation, value in changes:
        if operation == Operation.DELETE:
            config.pop(name, None)
            continue
        if operation not in OPERATIONS:
            raise _Refused(ErrorCode.UNKNOWN_SERVER_ERROR, f"{name:.249}: operation {operation} is not known")
        if value is None:
            raise _Refused(ErrorCode.INVALID_REQUEST, f"{name:.249} cannot be null")
        if operation == Operation.SET:
            config[name] = value
            continue
        key = keys.get(name)
        if key is None or key.type is not ConfigType.LIST:
            code = ErrorCode.INVALID_REQUEST if personality.has_zookeeper else ErrorCode.INVALID_CONFIG
            raise _Refused(code, f"{name:.249} is not a list: append and subtract are not possible")
        present = items_of(config.get(name, key.default or ""))
        items = items_of(value)
        is_append = operation == Operation.APPEND
        changed = [*present, *items] if is_append else [item for item in present if item not in items]
        config[name] = ",".join(dict.fromkeys(changed))
    return config


def _check(call: Call, kind: int, changed: Mapping[str, str]) -> None:
    configs, personality = call.cluster.configs, call.personality
    if kind == ResourceType.TOPIC:
        fault = topic_config_fault(changed, personality)
        if fault is not None and personality.has_zookeeper and _has_bad_value(changed, topic_keys(personality)):
            raise _Refused(ErrorCode.INVALID_REQUEST, fault)
    elif kind == ResourceType.GROUP:
        fault = group_config_fault(changed, personality, configs.broker_value)
    else:
        fault = client_metrics_fault(changed)
    if fault is not None:
        raise _Refused(ErrorCode.INVALID_CONFIG, fault)


def _has_bad_value(config: Mapping[str, str], keys: Mapping[str, ConfigKey]) -> bool:
    """True if a value is wrong, but no name."""
    return all(name in keys for name in config) and values_fault(keys, config, "topic") is not None


def _check_broker(call: Call, name: str, fresh: Mapping[str, str], touched: set[str]) -> None:
    personality = call.personality
    if name != ALL_BROKERS and "min.insync.replicas" in touched and personality >= SINCE_ELIGIBLE_REPLICAS:
        raise _Refused(
            ErrorCode.INVALID_CONFIG, "min.insync.replicas can be set for all brokers only, not for one (KIP-966)"
        )
    fault = broker_change_fault(broker_keys(personality), fresh, is_for_all=name == ALL_BROKERS)
    if fault is not None:
        raise _Refused(ErrorCode.INVALID_REQUEST, fault)


def _keep(call: Call, kind: int, name: str, changed: dict[str, str]) -> None:
    configs = call.cluster.configs
    if kind == ResourceType.TOPIC:
        topic = call.cluster.topics.find(name)
        if topic is not None:
            call.cluster.topics.configure(topic, changed)
        return
    kept = {
        ResourceType.BROKER: configs.brokers,
        ResourceType.GROUP: configs.groups,
        ResourceType.CLIENT_METRICS: configs.client_metrics,
    }[ResourceType(kind)]
    if changed:
        kept[name] = changed
    else:
        kept.pop(name, None)
    configs.changed()
    for topic in call.cluster.topics:
        topic.configs_changed()


def _alter_loggers(call: Call, name: str, changes: Sequence[Change], *, is_only_checked: bool) -> None:
    _check_node(call, name, may_be_empty=False)
    levels = dict(call.node.logger_levels)
    for logger, operation, value in changes:
        if logger not in levels:
            raise _Refused(ErrorCode.INVALID_CONFIG, f"there is no logger {logger!r:.100}")
        if operation == Operation.DELETE:
            levels[logger] = levels["root"]
        elif operation == Operation.SET and value in LEVELS:
            levels[logger] = value
        else:
            reason = f"logger {logger}: {value!r:.100} is not one of {', '.join(LEVELS)}, or cannot be set so"
            raise _Refused(ErrorCode.INVALID_CONFIG, reason)
    if not is_only_checked:
        call.node.logger_levels.update(levels)
