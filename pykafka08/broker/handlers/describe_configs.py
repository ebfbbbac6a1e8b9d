"""DescribeConfigs: what was set for a topic; brokers have nothing set.  Source: KIP-133, KIP-226 (sources)."""

from __future__ import annotations

from pykafka08.broker.call import Call, Reply
from pykafka08.broker.handlers import handles
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

TOPIC, BROKER, BROKER_LOGGER = 2, 4, 8
DYNAMIC_TOPIC_CONFIG = 1
STRING = 2


@handles(DescribeConfigsRequest)
def describe_configs(call: Call, request: DescribeConfigsRequest) -> Reply:
    return DescribeConfigsResponse(
        results=[_described(call, asked, has_synonyms=request.include_synonyms) for asked in request.resources]
    )


def _described(call: Call, asked: DescribeConfigsResource, *, has_synonyms: bool) -> DescribeConfigsResult:
    code: int = call.scripted_error(asked.resource_name)
    result = DescribeConfigsResult(
        error_message=None, resource_type=asked.resource_type, resource_name=asked.resource_name
    )
    if not code and asked.resource_type == TOPIC:
        topic = call.cluster.topics.find(asked.resource_name)
        if topic is None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        else:
            result.configs = [
                _config(name, value, has_synonyms=has_synonyms)
                for name, value in topic.config.items()
                if asked.configuration_keys is None or name in asked.configuration_keys
            ]
    elif not code and asked.resource_type not in (BROKER, BROKER_LOGGER):
        code = ErrorCode.INVALID_REQUEST
    result.error_code = code
    return result


def _config(name: str, value: str, *, has_synonyms: bool) -> DescribeConfigsResourceResult:
    synonym = DescribeConfigsSynonym(name=name, value=value, source=DYNAMIC_TOPIC_CONFIG)
    return DescribeConfigsResourceResult(
        name=name,
        value=value,
        config_source=DYNAMIC_TOPIC_CONFIG,
        synonyms=[synonym] if has_synonyms else [],
        config_type=STRING,
        documentation=None,
    )
