"""DescribeConfigs: every config of topics, brokers, groups, client metrics and loggers, with its source.

Source: KIP-133, KIP-226 (sources, synonyms), KIP-412 (loggers), KIP-714 (client metrics), KIP-848 (groups).
"""

from __future__ import annotations

from collections.abc import Iterator

from pykafka08.broker.call import Call, Reply
from pykafka08.broker.config_changes import (
    ResourceType,
    config_access_denied,
    has_client_metrics,
    has_groups,
    has_loggers,
)
from pykafka08.broker.config_entries import (
    ConfigEntry,
    all_brokers_entries,
    broker_entries,
    client_metrics_entries,
    group_entries,
    topic_entries,
)
from pykafka08.broker.config_keys import ConfigSource, ConfigType
from pykafka08.broker.handlers import handles
from pykafka08.broker.state import is_valid_topic_name
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

__all__ = ["describe_configs"]

SINCE_BROKERS_CHANGE = (1, 1)


class _Refused(Exception):
    def __init__(self, code: int, reason: str = "") -> None:
        super().__init__(reason)
        self.code = code


@handles(DescribeConfigsRequest)
def describe_configs(call: Call, request: DescribeConfigsRequest) -> Reply:
    return DescribeConfigsResponse(
        results=[_described(call, asked, has_synonyms=request.include_synonyms) for asked in request.resources]
    )


def _described(call: Call, asked: DescribeConfigsResource, *, has_synonyms: bool) -> DescribeConfigsResult:
    result = DescribeConfigsResult(
        error_message="", resource_type=asked.resource_type, resource_name=asked.resource_name
    )
    try:
        entries = list(_entries(call, asked))
    except _Refused as refusal:
        result.error_code, result.error_message = refusal.code, str(refusal)
        return result
    result.configs = [
        _config(call, entry, has_synonyms=has_synonyms)
        for entry in entries
        if not asked.configuration_keys or entry.name in asked.configuration_keys
    ]
    return result


def _entries(call: Call, asked: DescribeConfigsResource) -> Iterator[ConfigEntry]:
    kind, name, configs = asked.resource_type, asked.resource_name, call.cluster.configs
    node_id = str(call.node.node_id)
    code = call.scripted_error(name) or config_access_denied(call, kind, name)
    if code:
        raise _Refused(code)
    if kind == ResourceType.TOPIC:
        topic = call.cluster.topics.find(name)
        if topic is None:
            is_valid = is_valid_topic_name(name)
            raise _Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_valid else ErrorCode.INVALID_TOPIC_EXCEPTION)
        return topic_entries(configs, topic.config, node_id)
    if kind == ResourceType.BROKER:
        if not name and call.personality >= SINCE_BROKERS_CHANGE:
            return all_brokers_entries(configs)
        _check_node(call, name)
        return broker_entries(configs, node_id)
    if kind == ResourceType.GROUP and has_groups(call.personality):
        if not name:
            raise _Refused(ErrorCode.INVALID_REQUEST, "a group's name must not be empty")
        return group_entries(configs, name, node_id)
    if kind == ResourceType.CLIENT_METRICS and has_client_metrics(call.personality):
        if not name:
            raise _Refused(ErrorCode.INVALID_REQUEST, "the name of a client metrics subscription must not be empty")
        return client_metrics_entries(configs, name)
    if kind == ResourceType.BROKER_LOGGER and has_loggers(call.personality):
        _check_node(call, name)
        levels = call.node.logger_levels.items()
        return (
            ConfigEntry(logger, level, ConfigSource.BROKER_LOGGER, ConfigType.UNKNOWN, []) for logger, level in levels
        )
    raise _Refused(ErrorCode.INVALID_REQUEST, f"resource type {kind} is not known to {call.personality.release}")


def _check_node(call: Call, name: str) -> None:
    if not name.isdecimal():
        raise _Refused(ErrorCode.INVALID_REQUEST, f"a broker id must be a number, not {name!r:.100}")
    if name != str(call.node.node_id):
        raise _Refused(ErrorCode.INVALID_REQUEST, f"broker {call.node.node_id} was asked for broker {name:.20}")


def _config(call: Call, entry: ConfigEntry, *, has_synonyms: bool) -> DescribeConfigsResourceResult:
    synonyms = [
        DescribeConfigsSynonym(name=layer.name, value=None if entry.is_sensitive else layer.value, source=layer.source)
        for layer in entry.synonyms
        if has_synonyms
    ]
    result = DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.is_read_only,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        synonyms=synonyms,
        config_type=entry.type,
        documentation=None,
    )
    if call.version == 0:
        result.is_default = entry.source is ConfigSource.DEFAULT
    return result
