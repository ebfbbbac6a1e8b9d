"""Sends what the machine of the new group protocol says, and tells it the answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from typing import Any
from uuid import UUID

from pykafka08.cluster.client import Client, Purpose
from pykafka08.cluster.metadata import Snapshot
from pykafka08.driver import clock, library_logger
from pykafka08.errors import KafkaError, UnsupportedVersionError
from pykafka08.group.actions import Beat, LookUpTopics
from pykafka08.group.exchange import LEAVE_SECONDS, connection_to_leave_on, when_ended
from pykafka08.group.modern.machine import ModernMachine
from pykafka08.group.reactions import Api
from pykafka08.group.settings import GroupConfig
from pykafka08.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from pykafka08.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pykafka08.protocol.versions import BrokerVersions

__all__ = ["ModernExchange"]

log = library_logger("group")

FIRST_OF_KAFKA_4 = 1
"""Version 0 is a preview (3.7 to 3.9): good for those who ask for it by name."""


class BeatCall:
    """ConsumerGroupHeartbeat, in the version a broker serves."""

    __slots__ = ("_action", "_config")

    def __init__(self, config: GroupConfig, action: Beat) -> None:
        self._config = config
        self._action = action

    def __call__(self, versions: BrokerVersions) -> ConsumerGroupHeartbeatRequest:
        config, action = self._config, self._action
        version = versions.pick(ConsumerGroupHeartbeatRequest)
        if version < FIRST_OF_KAFKA_4 and config.group_protocol == "auto":
            raise UnsupportedVersionError(
                f"the broker (Kafka {versions.release_guess} by its versions) has a preview of the new group protocol",
                api=ConsumerGroupHeartbeatRequest.name,
            )
        return ConsumerGroupHeartbeatRequest(
            group_id=config.group_id,
            member_id=action.membership.member_id,
            member_epoch=action.membership.generation,
            instance_id=config.group_instance_id,
            rack_id=config.client_rack or None if action.is_full else None,
            rebalance_timeout_ms=config.max_poll_interval_ms if action.is_full else -1,
            subscribed_topic_names=list(action.topics) if action.topics is not None else None,
            subscribed_topic_regex=action.pattern,
            server_assignor=config.group_remote_assignor if action.is_full else None,
            topic_partitions=_by_topic(action.owned) if action.owned is not None else None,
        )


class ModernExchange:
    """ConsumerGroupHeartbeat and the names of topics; ``perform_of`` has who performs which action."""

    def __init__(self, client: Client, config: GroupConfig, machine: ModernMachine, wake: Callable[[], None]) -> None:
        self._client = client
        self._config = config
        self._log = log.bind(**{**client.facts, "group_id": config.group_id})
        self._machine = machine
        self._wake = wake
        self._now = clock()
        self.perform_of: Mapping[type, Callable[[Any], object]] = {
            Beat: self._beat,
            LookUpTopics: lambda action: client.tasks.start("topic names", self._look_up, action),
        }

    def metadata_changed(self, snapshot: Snapshot) -> None:
        """Names of topics come with the metadata of those that are read."""
        self._machine.topics_named({each.topic_id: name for name, each in snapshot.topics.items() if each.topic_id})

    def _beat(self, action: Beat) -> None:
        timeout = self._client.config.request_timeout_ms / 1000
        purpose = Purpose.CONTROL
        if action.membership.generation < 0:
            timeout = min(LEAVE_SECONDS, timeout)
            purpose = connection_to_leave_on(self._client, action.node_id)
        call = BeatCall(self._config, action)
        waiter = self._client.submit(action.node_id, call, timeout=timeout, purpose=purpose)

        def answered(response: Any) -> None:
            self._machine.beaten(action.attempt, response, self._now())

        def failed(error: KafkaError) -> None:
            self._machine.request_failed(action.attempt, Api.CONSUMER_GROUP_HEARTBEAT, error, self._now())

        when_ended(waiter, answered, failed, self._wake)

    async def _look_up(self, action: LookUpTopics) -> None:
        """A topic that nobody here has asked for by name: the broker found it by the pattern, or it is new."""
        topics = [MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in sorted(action.ids)]
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        try:
            response = await self._client.request_any(request)
        except KafkaError as error:
            self._log.info("group.topics_nameless", cause=str(error))
        else:
            names = {each.topic_id: each.name for each in response.topics if each.name and not each.error_code}
            self._client.use_topics(names.values())
            self._machine.topics_named(names)
        self._machine.look_up_ended(action.attempt, self._now())
        self._wake()


def _by_topic(partitions: Iterable[tuple[UUID, int]]) -> list[TopicPartitions]:
    return [
        TopicPartitions(topic_id=topic_id, partitions=[number for _, number in run])
        for topic_id, run in groupby(sorted(partitions), key=lambda tp: tp[0])
    ]
