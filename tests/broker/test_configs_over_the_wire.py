"""Configs of topics, brokers, groups, client metrics and loggers: described, checked and changed as in real brokers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pykafka08.broker.server import EmbeddedCluster
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import ConfigError
from pykafka08.protocol.messages import alter_configs as replacing
from pykafka08.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from pykafka08.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from pykafka08.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
)
from pykafka08.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.broker.raw import Raw, batch, connect, produce

pytestmark = pytest.mark.anyio

DESCRIBED = json.loads((Path(__file__).parent / "data" / "described_configs.json").read_text())
"""Configs of a topic and a group with defaults only, from real brokers: name, value, source, type, synonyms."""
TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)


async def describe(raw: Raw, kind: int, name: str, version: int = 4, *keys: str) -> DescribeConfigsResult:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=list(keys) or None)
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=version > 0)
    return (await raw.ask(request, version)).results[0]


async def described(raw: Raw, kind: int, name: str, key: str) -> tuple[str | None, int, list[tuple[str, int]]]:
    """Value, source, and the synonyms' names and sources."""
    result = await describe(raw, kind, name, 4, key)
    assert result.error_code == 0, result.error_message
    return shown(result.configs[0])


def shown(config: DescribeConfigsResourceResult) -> tuple[str | None, int, list[tuple[str, int]]]:
    return config.value, config.config_source, [(each.name, each.source) for each in config.synonyms]


async def alter(
    raw: Raw, kind: int, name: str, *changes: tuple[str, int, str | None], validate_only: bool = False
) -> tuple[int, str | None]:
    configs = [AlterableConfig(name=key, config_operation=what, value=value) for key, what, value in changes]
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
    answer = (await raw.ask(request, 1)).responses[0]
    assert (answer.error_code != 0) is bool(answer.error_message)
    return answer.error_code, answer.error_message


@pytest.mark.parametrize("release", list(DESCRIBED))
@pytest.mark.parametrize("kind", ["topic", "group"])
async def test_every_config_is_described_with_default_source_and_synonyms(release: str, kind: str) -> None:
    expected = DESCRIBED[release].get(kind)
    minor = ".".join(release.split(".")[:2])
    version = 4 if release >= "2.8" else 1
    async with EmbeddedCluster(version=minor, topics={"t": 1}) as cluster, connect(cluster) as raw:
        result = await describe(raw, TOPIC if kind == "topic" else GROUP, "t", version)
    if expected is None:
        assert result.error_code == ErrorCode.INVALID_REQUEST
        return
    found: list[Any] = [
        [
            config.name,
            config.value,
            config.config_source,
            config.config_type,
            [[each.name, each.value, each.source] for each in config.synonyms],
        ]
        for config in sorted(result.configs, key=lambda config: config.name)
    ]
    for mine, theirs in zip(found, expected, strict=True):
        if release == "4.3.1" and theirs[0] in ("consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"):
            # Arguments of the cluster count as properties in server.properties.
            theirs = [*theirs[:2], 4, theirs[3], [[*theirs[4][0][:2], 4], theirs[4][0]]]
        assert mine == theirs


async def test_brokers_describe_defaults_static_and_dynamic_configs() -> None:
    given = {"log.retention.ms": "5000", "num.partitions": "3"}
    async with EmbeddedCluster(properties=given, topics={"t": 1}) as cluster, connect(cluster) as raw:
        assert await described(raw, BROKER, "0", "num.io.threads") == ("8", 5, [("num.io.threads", 5)])
        assert await described(raw, BROKER, "0", "node.id") == ("0", 4, [("node.id", 4)])
        assert (await described(raw, BROKER, "0", "num.partitions"))[:2] == ("3", 4)
        assert (await described(raw, BROKER, "0", "ssl.key.password"))[0] is None
        assert await described(raw, TOPIC, "t", "retention.ms") == ("5000", 4, [("log.retention.ms", 4)])
        assert await alter(raw, BROKER, "", ("log.retention.ms", SET, "6000")) == (0, None)
        assert await alter(raw, BROKER, "0", ("log.retention.ms", SET, "7000")) == (0, None)
        sources = [("log.retention.ms", source) for source in (2, 3, 4)]
        assert await described(raw, BROKER, "0", "log.retention.ms") == ("7000", 2, sources)
        assert await described(raw, TOPIC, "t", "retention.ms") == ("7000", 2, sources)
        everybody = await describe(raw, BROKER, "")
        assert {each.name: each.value for each in everybody.configs} == {
            "log.retention.ms": "6000",
            "min.insync.replicas": "1",
        }
        assert await alter(raw, TOPIC, "t", ("retention.ms", SET, "8000")) == (0, None)
        assert await described(raw, TOPIC, "t", "retention.ms") == ("8000", 1, [("retention.ms", 1), *sources])
        read_only = {each.name: each.read_only for each in (await describe(raw, BROKER, "0")).configs}
        assert (read_only["node.id"], read_only["log.retention.ms"]) == (True, False)


async def test_topics_inherit_dynamic_broker_configs() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, connect(cluster) as raw:
        assert await alter(raw, BROKER, "", ("message.max.bytes", SET, "100")) == (0, None)
        assert (await produce(raw, batch(b"x" * 100), 9)).error_code == ErrorCode.MESSAGE_TOO_LARGE
        assert await alter(raw, TOPIC, "t", ("max.message.bytes", SET, "1000")) == (0, None)
        assert (await produce(raw, batch(b"x" * 100), 9)).error_code == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("nope", "1"),
        ("message.format.version", "0.10.0"),
        ("retention.ms", "x"),
        ("retention.ms", "-2"),
        ("retention.bytes", "9999999999999999999999"),
        ("segment.bytes", "1000"),
        ("segment.bytes", "2147483648"),
        ("segment.ms", "0"),
        ("flush.messages", "0"),
        ("index.interval.bytes", ""),
        ("cleanup.policy", "keep"),
        ("compression.type", "brotli"),
        ("compression.gzip.level", "0"),
        ("compression.lz4.level", "18"),
        ("preallocate", "maybe"),
        ("min.cleanable.dirty.ratio", "2"),
        ("min.insync.replicas", "0"),
        ("message.timestamp.type", "Never"),
        ("leader.replication.throttled.replicas", "all"),
        ("remote.storage.enable", "true"),
    ],
)
async def test_unknown_topic_configs_and_wrong_values_are_refused(name: str, value: str) -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, connect(cluster) as raw:
        code, reason = await alter(raw, TOPIC, "t", (name, SET, value))
        assert (code, name in (reason or "")) == (ErrorCode.INVALID_CONFIG, True)
        config = CreatableTopicConfig(name=name, value=value)
        asked = CreatableTopic(name="new", num_partitions=1, replication_factor=1, configs=[config])
        created = (await raw.ask(CreateTopicsRequest(topics=[asked]), 5)).topics[0]
        assert (created.error_code, name in (created.error_message or "")) == (ErrorCode.INVALID_CONFIG, True)
        with pytest.raises(ConfigError, match=name):
            cluster.create_topic("new", config={name: value})


async def test_topic_configs_depend_on_the_release() -> None:
    async with EmbeddedCluster(version="2.8", topics={"t": 1}) as cluster, connect(cluster) as raw:
        assert (await alter(raw, TOPIC, "t", ("local.retention.ms", SET, "1")))[0] == ErrorCode.INVALID_CONFIG
        assert await alter(raw, TOPIC, "t", ("message.format.version", SET, "0.10.0")) == (0, None)
        assert await alter(raw, TOPIC, "t", ("segment.bytes", SET, "1000")) == (0, None)
        # With ZooKeeper an invalid value has another error code than an unknown name.
        assert (await alter(raw, TOPIC, "t", ("retention.ms", SET, "x")))[0] == ErrorCode.INVALID_REQUEST
        assert (await alter(raw, GROUP, "g", ("nope", SET, "x")))[0] == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("kind", "name", "change", "code"),
    [
        (TOPIC, "gone", ("retention.ms", SET, "1"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "a/b", ("retention.ms", SET, "1"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "", ("retention.ms", SET, "1"), ErrorCode.INVALID_REQUEST),
        (TOPIC, "t", ("retention.ms", SET, None), ErrorCode.INVALID_REQUEST),
        (TOPIC, "t", ("retention.ms", APPEND, "1"), ErrorCode.INVALID_CONFIG),
        (TOPIC, "t", ("retention.ms", 9, "1"), ErrorCode.UNKNOWN_SERVER_ERROR),
        (BROKER, "7", ("log.retention.ms", SET, "1"), ErrorCode.INVALID_REQUEST),
        (BROKER, "x", ("log.retention.ms", SET, "1"), ErrorCode.INVALID_REQUEST),
        (BROKER, "0", ("log.retention.ms", SET, "x"), ErrorCode.INVALID_REQUEST),
        (BROKER, "0", ("node.id", SET, "7"), ErrorCode.INVALID_REQUEST),
        (BROKER, "0", ("ssl.keystore.type", SET, "JKS"), ErrorCode.INVALID_REQUEST),
        (BROKER, "", ("num.io.threads", SET, "0"), ErrorCode.INVALID_REQUEST),
        (BROKER, "", ("principal.builder.class", SET, "x"), ErrorCode.INVALID_REQUEST),
        (BROKER, "0", ("min.insync.replicas", SET, "2"), ErrorCode.INVALID_CONFIG),
        (GROUP, "", ("consumer.session.timeout.ms", SET, "50000"), ErrorCode.INVALID_REQUEST),
        (GROUP, "g", ("nope", SET, "1"), ErrorCode.INVALID_CONFIG),
        (GROUP, "g", ("consumer.session.timeout.ms", SET, "5"), ErrorCode.INVALID_CONFIG),
        (GROUP, "g", ("consumer.heartbeat.interval.ms", SET, "99999"), ErrorCode.INVALID_CONFIG),
        (GROUP, "g", ("share.auto.offset.reset", SET, "by_duration:P"), ErrorCode.INVALID_CONFIG),
        (CLIENT_METRICS, "", ("metrics", SET, "a"), ErrorCode.INVALID_REQUEST),
        (CLIENT_METRICS, "m", ("interval.ms", SET, "5"), ErrorCode.INVALID_CONFIG),
        (CLIENT_METRICS, "m", ("match", SET, "x"), ErrorCode.INVALID_CONFIG),
        (LOGGER, "0", ("nope", SET, "INFO"), ErrorCode.INVALID_CONFIG),
        (LOGGER, "0", ("root", SET, "LOUD"), ErrorCode.INVALID_CONFIG),
        (LOGGER, "7", ("root", SET, "INFO"), ErrorCode.INVALID_REQUEST),
        (3, "x", ("a", SET, "b"), ErrorCode.INVALID_REQUEST),
    ],
)
async def test_changes_are_refused_as_kafka_refuses_them(
    kind: int, name: str, change: tuple[str, int, str | None], code: ErrorCode
) -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, connect(cluster) as raw:
        assert (await alter(raw, kind, name, change))[0] == code


async def test_lists_are_appended_to_from_their_default() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, connect(cluster) as raw:
        assert await alter(raw, TOPIC, "t", ("cleanup.policy", APPEND, "compact")) == (0, None)
        assert (await described(raw, TOPIC, "t", "cleanup.policy"))[0] == "delete,compact"
        assert await alter(raw, TOPIC, "t", ("cleanup.policy", SUBTRACT, "delete")) == (0, None)
        assert (await described(raw, TOPIC, "t", "cleanup.policy"))[0] == "compact"
        assert await alter(raw, TOPIC, "t", ("cleanup.policy", DELETE, None)) == (0, None)
        assert (await described(raw, TOPIC, "t", "cleanup.policy"))[:2] == ("delete", 5)
        twice = await alter(raw, TOPIC, "t", ("retention.ms", SET, "1"), ("retention.ms", SET, "2"))
        assert twice[0] == ErrorCode.INVALID_REQUEST


async def test_the_old_alter_configs_replaces_all_configs() -> None:
    async def replace(raw: Raw, validate_only: bool, **configs: str) -> int:
        given = [replacing.AlterableConfig(name=name.replace("_", "."), value=value) for name, value in configs.items()]
        resource = replacing.AlterConfigsResource(resource_type=TOPIC, resource_name="t", configs=given)
        request = replacing.AlterConfigsRequest(resources=[resource], validate_only=validate_only)
        return (await raw.ask(request, 2)).responses[0].error_code

    async def own(raw: Raw) -> set[tuple[str, str | None]]:
        configs = (await describe(raw, TOPIC, "t")).configs
        return {(each.name, each.value) for each in configs if each.config_source == 1}

    async with EmbeddedCluster(topics={"t": 1}) as cluster, connect(cluster) as raw:
        assert await replace(raw, False, retention_ms="1", segment_ms="2") == 0
        assert await replace(raw, True, retention_ms="5") == 0
        assert await replace(raw, False, retention_ms="x") == ErrorCode.INVALID_CONFIG
        assert await own(raw) == {("retention.ms", "1"), ("segment.ms", "2")}
        assert await replace(raw, False, retention_ms="3") == 0
        assert await own(raw) == {("retention.ms", "3")}


async def test_members_get_the_heartbeat_interval_of_their_group() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, connect(cluster) as raw:
        assert await alter(raw, GROUP, "g", ("consumer.heartbeat.interval.ms", SET, "6000")) == (0, None)
        joining = ConsumerGroupHeartbeatRequest(
            group_id="g", member_id="m", member_epoch=0, rebalance_timeout_ms=1000, topic_partitions=[]
        )
        joining.subscribed_topic_names = ["t"]
        answer = await raw.ask(joining, 1)
        assert (answer.error_code, answer.heartbeat_interval_ms) == (0, 6000)
        own = [("consumer.heartbeat.interval.ms", 8), ("group.consumer.heartbeat.interval.ms", 4)]
        found = await described(raw, GROUP, "g", "consumer.heartbeat.interval.ms")
        assert (found[:2], found[2][:2]) == (("6000", 8), own)


async def test_levels_of_loggers_are_described_and_changed() -> None:
    async with EmbeddedCluster() as cluster, connect(cluster) as raw:
        assert await described(raw, LOGGER, "0", "root") == ("INFO", 6, [])
        assert await alter(raw, LOGGER, "0", ("root", SET, "DEBUG")) == (0, None)
        assert (await described(raw, LOGGER, "0", "root"))[0] == "DEBUG"


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "gone", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "a/b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "7", ErrorCode.INVALID_REQUEST),
        (BROKER, "x", ErrorCode.INVALID_REQUEST),
        (LOGGER, "", ErrorCode.INVALID_REQUEST),
        (GROUP, "", ErrorCode.INVALID_REQUEST),
        (CLIENT_METRICS, "", ErrorCode.INVALID_REQUEST),
        (1, "x", ErrorCode.INVALID_REQUEST),
    ],
)
async def test_a_resource_that_does_not_exist_is_not_described(kind: int, name: str, code: ErrorCode) -> None:
    async with EmbeddedCluster() as cluster, connect(cluster) as raw:
        assert (await describe(raw, kind, name)).error_code == code


@pytest.mark.parametrize(
    "properties",
    [
        {"nope": "1"},
        {"log.retention.ms": "x"},
        {"num.partitions": 3},
        {"num.partitions": "0"},
        {"log.dirs": "/tmp/kafka"},  # noqa: S108 - refused
        {"listeners": "PLAINTEXT://0.0.0.0:9092"},
        ["x"],
    ],
)
async def test_wrong_broker_properties_are_refused(properties: Any) -> None:
    with pytest.raises(ConfigError, match="properties"):
        EmbeddedCluster(properties=properties)


async def test_retention_and_segments_follow_configs_of_brokers_and_topics_at_once() -> None:
    topics = {"t": {"partitions": 1, "config": {"message.timestamp.type": "LogAppendTime"}}}
    async with EmbeddedCluster(topics=topics) as cluster, connect(cluster) as raw:
        log = cluster._state.topics.find_partition("t", 0).log  # type: ignore[union-attr]
        assert await alter(raw, BROKER, "", ("log.segment.bytes", SET, str(1 << 20))) == (0, None)
        for _ in range(2):
            await produce(raw, batch(bytes(600_000)), 9)
        assert [each.base_offset for each in log.segments] == [0, 1]
        later_ms = log.segments[-1].max_timestamp_ms + 5000
        cluster.clean_logs(later_ms)
        assert log.start_offset == 0
        assert await alter(raw, BROKER, "", ("log.retention.bytes", SET, "700000")) == (0, None)
        cluster.clean_logs(later_ms)
        assert log.start_offset == 0
        assert await alter(raw, TOPIC, "t", ("retention.bytes", SET, "600000")) == (0, None)
        cluster.clean_logs(later_ms)
        assert log.start_offset == 1
        assert await alter(raw, BROKER, "", ("log.retention.ms", SET, "1000")) == (0, None)
        cluster.clean_logs(later_ms)
        assert log.start_offset == 2


async def test_altered_configs_are_known_again_with_the_log_dir(tmp_path: Path) -> None:
    topics = {"t": {"partitions": 1, "config": {"retention.ms": "1000"}}}
    async with EmbeddedCluster(log_dir=tmp_path, topics=topics) as cluster, connect(cluster) as raw:
        assert await alter(raw, TOPIC, "t", ("retention.ms", SET, "2000")) == (0, None)
        assert await alter(raw, TOPIC, "t", ("segment.ms", SET, "3000")) == (0, None)
        assert await alter(raw, BROKER, "", ("log.retention.bytes", SET, "4000")) == (0, None)
        assert await alter(raw, GROUP, "g", ("consumer.heartbeat.interval.ms", SET, "6000")) == (0, None)
    async with EmbeddedCluster(log_dir=tmp_path, topics=topics) as cluster, connect(cluster) as raw:
        assert (await described(raw, TOPIC, "t", "retention.ms"))[:2] == ("2000", 1)
        assert (await described(raw, TOPIC, "t", "retention.bytes"))[:2] == ("4000", 3)
        assert (await described(raw, GROUP, "g", "consumer.heartbeat.interval.ms"))[0] == "6000"
        log = cluster._state.topics.find_partition("t", 0).log  # type: ignore[union-attr]
        assert log.segment_ms == 3000
