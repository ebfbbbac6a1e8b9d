"""Topics that a consumer subscribes to without the right to see them: reported once, hidden, and asked for again.

Without DESCRIBE, brokers answer Metadata with TOPIC_AUTHORIZATION_FAILED and no partitions.  Partitions that may be
seen and not read are the machine's (``Reaction.RAISE_ONCE``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import anyio

from pykafka08.cluster.client import Client
from pykafka08.cluster.metadata import Snapshot
from pykafka08.consumer.assignment import Assignment
from pykafka08.driver import Wakeup
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import KafkaError, broker_error
from pykafka08.records.record import TopicPartition

__all__ = ["TopicRights"]

ALL_PARTITIONS = -1


class TopicRights:
    """``on_error`` gets the error of each topic that becomes hidden; ``on_change`` follows a change of ``hidden``."""

    def __init__(
        self,
        client: Client,
        assignment: Assignment,
        topics: Iterable[str],
        *,
        on_error: Callable[[KafkaError], None],
        on_change: Callable[[], None],
    ) -> None:
        self.hidden: frozenset[str] = frozenset()
        self._client = client
        self._assignment = assignment
        self._topics = tuple(topics)
        self._on_error = on_error
        self._on_change = on_change
        self._became_hidden = Wakeup()

    def start(self) -> None:
        """Look at the metadata of now, and from now on."""
        self._client.on_metadata(self._metadata_changed)
        self._metadata_changed(self._client.metadata)
        self._client.tasks.start("rights to topics", self._ask_again)

    def _metadata_changed(self, snapshot: Snapshot) -> None:
        refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        hidden = frozenset(topic for topic in self._topics if snapshot.topic_error(topic) == refused)
        if hidden == self.hidden:
            return
        before, self.hidden = self.hidden, hidden
        for topic in sorted(hidden - before):
            if self._assignment.deny(TopicPartition(topic, ALL_PARTITIONS)):
                self._on_error(broker_error(refused, api="Metadata", topic=topic, needed="READ"))
        for topic in before - hidden:
            self._assignment.denied.discard(TopicPartition(topic, ALL_PARTITIONS))
        self._on_change()
        if hidden:
            self._became_hidden.set()

    async def _ask_again(self) -> None:
        """Refresh metadata while topics are hidden: the right may return, and metadata is kept for minutes."""
        while True:
            await self._became_hidden.wait(None)
            while self.hidden:
                await anyio.sleep(self._client.config.retry_backoff_max_ms / 1000)
                self._client.invalidate(self._client.metadata.generation)
