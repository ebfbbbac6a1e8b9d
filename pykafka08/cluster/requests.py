"""The Metadata request in the version a broker serves, and what of its answer is to be believed."""

from __future__ import annotations

from pykafka08.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from pykafka08.protocol.versions import BrokerVersions

__all__ = ["FIRST_WITH_CREATION_DECLINED", "MetadataCall"]

FIRST_WITH_ALL_TOPICS_AS_NONE = 1
FIRST_WITH_CREATION_DECLINED = 4
FIRST_WITH_TRUE_LEADER_EPOCHS = 9
"""Before Kafka 2.4 brokers kept telling an older epoch while a partition was reassigned."""


class MetadataCall:
    """One question for ``topics`` (None: all); call it with the broker's versions, then :meth:`read` the answer."""

    __slots__ = ("_allow_auto_topic_creation", "_topics", "_version")

    def __init__(self, topics: tuple[str, ...] | None, *, allow_auto_topic_creation: bool) -> None:
        self._topics = topics
        self._allow_auto_topic_creation = allow_auto_topic_creation
        self._version = -1

    def __call__(self, versions: BrokerVersions) -> MetadataRequest:
        version = self._version = versions.pick(MetadataRequest)
        if self._topics is None:
            request = MetadataRequest(topics=None if version >= FIRST_WITH_ALL_TOPICS_AS_NONE else [])
        else:
            request = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in self._topics])
        if version >= FIRST_WITH_CREATION_DECLINED:
            request.allow_auto_topic_creation = self._allow_auto_topic_creation
        return request

    def read(self, response: MetadataResponse) -> MetadataResponse:
        """The answer, without leader epochs that would have the leader refuse us."""
        if self._version < FIRST_WITH_TRUE_LEADER_EPOCHS:
            for topic in response.topics:
                for partition in topic.partitions:
                    partition.leader_epoch = -1
        return response
