"""The administrator as applications use it: each call is a request or two, tried again until its deadline.

What only some of the asked things suffer (a topic that exists, a group with members) is in the answer; what all of them
suffer is raised.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import anyio

from pykafka08.admin.asking import MOVED, Asking, check_code, only, refusals
from pykafka08.admin.requests import (
    AllOffsetsCall,
    classic_group,
    config_entry,
    create_topics_call,
    delete_topics_call,
    modern_group,
)
from pykafka08.admin.values import ConfigEntry, GroupDescription, GroupListing, NewTopic, TopicDescription
from pykafka08.cluster.metadata import Broker
from pykafka08.cluster.requests import FIRST_WITH_CREATION_DECLINED, MetadataCall
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import (
    KafkaError,
    RemoteProtocolError,
    UnknownTopicError,
    UnsupportedVersionError,
    broker_error,
)
from pykafka08.errors.deadline import raising_refusals
from pykafka08.group.requests import OffsetAndMetadata
from pykafka08.kafka_properties import PropertiesSource, built_from, guarded
from pykafka08.protocol.messages.alter_configs import AlterableConfig as WholeConfig
from pykafka08.protocol.messages.alter_configs import AlterConfigsRequest
from pykafka08.protocol.messages.alter_configs import AlterConfigsResource as WholeResource
from pykafka08.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from pykafka08.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from pykafka08.protocol.messages.create_topics import CreateTopicsRequest
from pykafka08.protocol.messages.delete_groups import DeleteGroupsRequest
from pykafka08.protocol.messages.delete_topics import DeleteTopicsRequest
from pykafka08.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from pykafka08.protocol.messages.describe_groups import DescribeGroupsRequest
from pykafka08.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from pykafka08.protocol.messages.list_groups import ListGroupsRequest
from pykafka08.protocol.messages.metadata import MetadataRequest
from pykafka08.protocol.messages.offset_fetch import OffsetFetchRequest
from pykafka08.protocol.versions import BrokerVersions
from pykafka08.records.record import TopicPartition
from pykafka08.security.settings import protect
from pykafka08.short_names import shortened

__all__ = ["Admin"]

T = TypeVar("T")

TOPIC, BROKER = 2, 4
"""Kinds of things that have settings."""
SET, DELETE = 0, 1


class Admin(Asking):
    """Topics, groups, offsets and settings of a cluster; ``async with Admin("localhost:9092") as admin``.

    ``settings`` are those of :class:`ClientConfig`.  Every call takes a ``timeout`` in seconds
    (``default_api_timeout_ms`` without) and raises UnsupportedVersionError, with the release that it needs, where the
    brokers are too old for it.
    """

    @classmethod
    def from_properties(cls, properties: PropertiesSource, **settings: Any) -> Admin:
        """An administrator with the settings of a properties file, or a mapping, by the names of Kafka's Java clients.

        ``settings`` override the file.  ConfigError for a property that cannot be honoured.
        """
        protect(settings)
        properties = guarded(properties)
        return built_from(cls, properties, settings)

    async def __aenter__(self) -> Admin:
        await self._enter()
        return self

    async def list_brokers(self, *, timeout: float | None = None) -> dict[int, Broker]:
        """The live brokers by their ids: ``node_id``, ``host``, ``port``, ``rack``."""
        return dict((await self._open().refresh(timeout=timeout)).brokers)

    async def cluster_id(self, *, timeout: float | None = None) -> str | None:
        """What the cluster calls itself; None before 0.10.1."""
        return (await self._open().refresh(timeout=timeout)).cluster_id

    # --- topics -----------------------------------------------------------------------------------------------------

    async def list_topics(self, *, internal: bool = False, timeout: float | None = None) -> list[str]:
        """The names of all topics, sorted; with ``internal`` also those of Kafka's own."""
        client = self._open()
        client.use_all_topics()
        snapshot = await client.refresh(timeout=timeout)
        return sorted(
            name for name, topic in snapshot.topics.items() if internal or not (topic.is_internal or name[:2] == "__")
        )

    async def describe_topics(
        self, names: Iterable[str], *, timeout: float | None = None
    ) -> dict[str, TopicDescription]:
        """Partitions, leaders and replicas, as they are now.

        UnknownTopicError for a topic that is not there, AuthorizationError for one that the user may not DESCRIBE.
        """
        client, wanted = self._open(), list(names)
        client.use_topics(wanted)
        snapshot = await client.refresh(timeout=timeout)
        if any(name not in snapshot.topics or snapshot.topics[name].error for name in wanted):
            seconds = min(1.0, self._seconds(timeout))
            try:
                snapshot = await client.wait_for_topics(wanted, timeout=seconds)
            except UnknownTopicError:
                await self._check_visible(wanted, seconds)
                raise
        topics = [snapshot.topics[name] for name in wanted]
        return {
            each.name: TopicDescription(each.name, each.topic_id, each.is_internal, each.partitions) for each in topics
        }

    async def _check_visible(self, names: Iterable[str], left: float) -> None:
        """AuthorizationError for a topic that the user may not DESCRIBE, which a list of all topics leaves out.

        Brokers before 0.11 are not asked, because they may create the topics.
        """

        def call(versions: BrokerVersions) -> MetadataRequest:
            if versions.pick(MetadataRequest) < FIRST_WITH_CREATION_DECLINED:
                raise UnsupportedVersionError("the broker may create topics that it is asked for", api="Metadata")
            return MetadataCall(tuple(names), allow_auto_topic_creation=False)(versions)

        with suppress(UnsupportedVersionError):
            with raising_refusals():
                answer = await self._open().request_any(call, timeout=left)
            for each in answer.topics:
                if each.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                    raise broker_error(each.error_code, api=MetadataRequest.name, topic=each.name)

    async def create_topics(
        self, topics: Iterable[NewTopic], *, validate_only: bool = False, timeout: float | None = None
    ) -> dict[str, KafkaError]:
        """Create them (0.10.1); the answer has those that were refused, and why: empty if none was.

        ``validate_only`` (0.10.2) checks and creates nothing.
        """
        seconds = self._seconds(timeout)
        call = create_topics_call(topics, seconds, validate_only=validate_only)
        response, broker = await self._ask_controller(CreateTopicsRequest, lambda _: call, seconds, _codes_of_topics)
        told = [(each.name, each.error_code, each.error_message) for each in response.topics]
        return refusals([each.name for each in call.topics], told, "CreateTopics", broker)

    async def delete_topics(self, names: Iterable[str], *, timeout: float | None = None) -> dict[str, KafkaError]:
        """Delete them (0.10.1); the answer has those that were refused, and why."""
        seconds, wanted = self._seconds(timeout), list(names)
        self._open().drop_topics(wanted)

        def call(versions: BrokerVersions) -> DeleteTopicsRequest:
            return delete_topics_call(wanted, seconds, versions)

        response, broker = await self._ask_controller(
            DeleteTopicsRequest, call, seconds, lambda answer: [each.error_code for each in answer.responses]
        )
        told = [(each.name, each.error_code, each.error_message) for each in response.responses]
        return refusals(wanted, told, "DeleteTopics", broker)

    async def create_partitions(
        self, totals: Mapping[str, int], *, validate_only: bool = False, timeout: float | None = None
    ) -> dict[str, KafkaError]:
        """Let topics grow to so many partitions in all (1.0); the answer has those that were refused, and why."""
        seconds = self._seconds(timeout)
        request = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name=name, count=count, assignments=None) for name, count in totals.items()],
            timeout_ms=round(seconds * 1000),
            validate_only=validate_only,
        )
        response, broker = await self._ask_controller(
            CreatePartitionsRequest,
            lambda _: request,
            seconds,
            lambda answer: [each.error_code for each in answer.results],
        )
        told = [(each.name, each.error_code, each.error_message) for each in response.results]
        return refusals(totals, told, "CreatePartitions", broker)

    # --- groups -----------------------------------------------------------------------------------------------------

    async def list_groups(self, *, timeout: float | None = None) -> list[GroupListing]:
        """The groups that Kafka coordinates, of all brokers (0.9)."""
        client, seconds = self._open(), self._seconds(timeout)
        found: dict[str, GroupListing] = {}
        for node_id in (await client.refresh(timeout=seconds)).brokers:
            response = await self._retried(seconds, partial(self._groups_of, node_id))
            for each in response.groups:
                found[each.group_id] = GroupListing(
                    each.group_id, each.protocol_type, each.group_state, each.group_type
                )
        return [found[name] for name in sorted(found)]

    async def _groups_of(self, node_id: int, left: float) -> Any:
        answer = await self._ask(node_id, ListGroupsRequest, ListGroupsRequest(), left)
        check_code(answer.error_code, None, "ListGroups", broker=self._name(node_id))
        return answer

    async def describe_groups(
        self, group_ids: Iterable[str], *, timeout: float | None = None
    ) -> dict[str, GroupDescription]:
        """State and members (0.9); a group that is not there is Dead."""
        seconds = self._seconds(timeout)
        return {each: await self._retried(seconds, partial(self._describe, each)) for each in group_ids}

    async def _describe(self, group_id: str, left: float) -> GroupDescription:
        node_id = await self._coordinator(group_id, DescribeGroupsRequest, left)
        answer = await self._ask(node_id, DescribeGroupsRequest, DescribeGroupsRequest(groups=[group_id]), left)
        broker = self._name(node_id)
        group = only(answer.groups, lambda each: each.group_id, group_id, "DescribeGroups", broker)
        is_dead = group.error_code == ErrorCode.GROUP_ID_NOT_FOUND or (
            not group.error_code and group.group_state == "Dead"
        )
        if not is_dead:
            check_code(group.error_code, group.error_message, "DescribeGroups", group=group_id, broker=broker)
            return classic_group(group)
        if (await self._open().versions(node_id, timeout=left)).serves(ConsumerGroupDescribeRequest):
            asked = ConsumerGroupDescribeRequest(group_ids=[group_id])
            found = (await self._open().request(node_id, asked, timeout=left)).groups
            other = only(found, lambda each: each.group_id, group_id, "ConsumerGroupDescribe", broker)
            if not other.error_code:
                return modern_group(other)
            if other.error_code != ErrorCode.GROUP_ID_NOT_FOUND and other.error_code != ErrorCode.UNSUPPORTED_VERSION:
                api = "ConsumerGroupDescribe"
                check_code(other.error_code, other.error_message, api, group=group_id, broker=broker)
        return GroupDescription(group_id, "Dead", "", ())

    async def delete_groups(self, group_ids: Iterable[str], *, timeout: float | None = None) -> dict[str, KafkaError]:
        """Delete groups without members, and their offsets (1.1); the answer has those that were refused, and why."""
        seconds = self._seconds(timeout)
        refused: dict[str, KafkaError] = {}
        for group_id in group_ids:
            if code := await self._retried(seconds, partial(self._delete_group, group_id)):
                refused[group_id] = broker_error(
                    code, f"group {group_id!r} was not deleted", api="DeleteGroups", group=group_id
                )
        return refused

    async def _delete_group(self, group_id: str, left: float) -> int:
        node_id = await self._coordinator(group_id, DeleteGroupsRequest, left)
        answer = await self._ask(node_id, DeleteGroupsRequest, DeleteGroupsRequest(groups_names=[group_id]), left)
        broker = self._name(node_id)
        code = only(answer.results, lambda each: each.group_id, group_id, "DeleteGroups", broker).error_code
        if code in MOVED:
            check_code(code, None, "DeleteGroups", group=group_id, broker=broker)
        return int(code)

    async def keeps_offsets(self, group_id: str, *, timeout: float | None = None) -> bool:
        """True if the brokers keep this group's offsets in Kafka; before 0.8.2 they are in ZooKeeper, or nowhere."""
        with raising_refusals():
            return await self._outsider(group_id).is_in_kafka(timeout=self._seconds(timeout))

    async def list_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition] | None = None, *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """The offsets that a group has committed to Kafka, of these partitions (0.8.2) or all (0.10.2).

        Partitions without one are left out.  Brokers of 0.8.1 tell those that are in ZooKeeper.
        """
        seconds = self._seconds(timeout)
        if partitions is None:
            return await self._retried(seconds, lambda left: self._all_offsets(group_id, left))
        with raising_refusals():
            found = await self._outsider(group_id).committed(partitions, timeout=seconds)
        return {tp: each for tp, each in found.items() if each is not None}

    async def _all_offsets(self, group_id: str, left: float) -> dict[TopicPartition, OffsetAndMetadata]:
        call = AllOffsetsCall(group_id)
        node_id = await self._coordinator(group_id, OffsetFetchRequest, left)
        code, fetched = call.read(await self._ask(node_id, OffsetFetchRequest, call, left))
        broker = self._name(node_id)
        check_code(code, None, "OffsetFetch", group=group_id, broker=broker)
        for each in fetched:
            check_code(each.error_code, None, "OffsetFetch", topic=each.tp.topic, group=group_id, broker=broker)
            if each.tp.partition < 0:
                text = f"the answer for group {shortened(group_id)!r} names partition {each.tp.partition}"
                raise RemoteProtocolError(text, api="OffsetFetch", topic=each.tp.topic, broker=broker)
        return {each.tp: each.committed for each in fetched if each.committed is not None}

    async def alter_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
        *,
        timeout: float | None = None,
    ) -> dict[TopicPartition, KafkaError]:
        """Commit for a group without members (0.8.2); the answer has what was refused, and why.

        BrokerError UNKNOWN_MEMBER_ID, and nothing is committed, while the group has members.
        """
        wanted = {
            TopicPartition(*tp): each if isinstance(each, OffsetAndMetadata) else OffsetAndMetadata(each)
            for tp, each in offsets.items()
        }
        with raising_refusals():
            return await self._outsider(group_id).commit(wanted, is_member=False, timeout=self._seconds(timeout))

    # --- settings ---------------------------------------------------------------------------------------------------

    async def describe_topic_configs(
        self, names: Iterable[str], *, timeout: float | None = None
    ) -> dict[str, dict[str, ConfigEntry]]:
        """The settings of topics (0.11)."""
        return await self._describe_configs(TOPIC, list(names), None, self._seconds(timeout))

    async def describe_broker_configs(self, node_id: int, *, timeout: float | None = None) -> dict[str, ConfigEntry]:
        """The settings of a broker (0.11)."""
        deadline = anyio.current_time() + self._seconds(timeout)
        await self._check_live(node_id, deadline - anyio.current_time())
        found = await self._describe_configs(BROKER, [str(node_id)], node_id, deadline - anyio.current_time())
        return found[str(node_id)]

    async def _describe_configs(
        self, kind: int, names: list[str], node_id: int | None, seconds: float
    ) -> dict[str, dict[str, ConfigEntry]]:
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
                for name in names
            ]
        )

        async def once(left: float) -> dict[str, dict[str, ConfigEntry]]:
            answer = await self._ask(node_id, DescribeConfigsRequest, request, left)
            api, broker = "DescribeConfigs", self._name(node_id)
            found = {}
            for name in names:
                each = only(answer.results, lambda each: each.resource_name, name, api, broker)
                topic = name if kind == TOPIC else None
                check_code(each.error_code, each.error_message, api, topic=topic, broker=broker)
                found[name] = {one.name: config_entry(one) for one in each.configs}
            return found

        return await self._retried(seconds, once)

    async def alter_topic_configs(
        self, name: str, changes: Mapping[str, str | None], *, timeout: float | None = None
    ) -> None:
        """Set settings of a topic, or with None take them back to the default (0.11).

        Before 2.3 the brokers only take all settings at once: those that others change meanwhile are lost.
        """
        seconds = self._seconds(timeout)
        controller = await self._controller(seconds)
        versions = await self._open().versions(controller, timeout=seconds)
        if not versions.serves(IncrementalAlterConfigsRequest):
            return await self._replace_configs(name, changes, seconds)
        configs = [
            AlterableConfig(name=key, config_operation=DELETE if value is None else SET, value=value)
            for key, value in changes.items()
        ]
        resource = AlterConfigsResource(resource_type=TOPIC, resource_name=name, configs=configs)
        request = IncrementalAlterConfigsRequest(resources=[resource])

        async def once(left: float) -> None:
            node_id = await self._controller(left)
            answer = await self._ask(node_id, IncrementalAlterConfigsRequest, request, left)
            _check_altered(answer, name, "IncrementalAlterConfigs", self._name(node_id))

        return await self._retried(seconds, once)

    async def _replace_configs(self, name: str, changes: Mapping[str, str | None], seconds: float) -> None:
        present = (await self.describe_topic_configs([name], timeout=seconds))[name]
        whole = {key: each.value for key, each in present.items() if not each.is_default}
        whole.update(changes)
        configs = [WholeConfig(name=key, value=value) for key, value in whole.items() if value is not None]
        request = AlterConfigsRequest(
            resources=[WholeResource(resource_type=TOPIC, resource_name=name, configs=configs)]
        )

        async def once(left: float) -> None:
            answer = await self._ask(None, AlterConfigsRequest, request, left)
            _check_altered(answer, name, "AlterConfigs", None)

        await self._retried(seconds, once)


def _check_altered(answer: Any, topic: str, api: str, broker: str | None) -> None:
    each = only(answer.responses, lambda each: each.resource_name, topic, api, broker)
    check_code(each.error_code, each.error_message, api, topic=topic, broker=broker)


def _codes_of_topics(answer: Any) -> list[int]:
    return [each.error_code for each in answer.topics]
