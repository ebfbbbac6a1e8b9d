"""Topics by pattern: those that match are read, and those that come to match later are added."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pykafka08.cluster.client import Client
from pykafka08.cluster.metadata import Snapshot
from pykafka08.config import ClientConfig, ConsumerConfig, build
from pykafka08.consumer.consumer import Consumer
from pykafka08.driver import Waiter
from pykafka08.records.record import TopicPartition

__all__ = ["follow_topics", "matching_partitions"]


def matching_partitions(snapshot: Snapshot, pattern: re.Pattern[str]) -> list[TopicPartition]:
    """The partitions of the topics whose whole name matches; Kafka's internal topics never do."""
    return [
        TopicPartition(name, partition)
        for name, topic in snapshot.topics.items()
        if pattern.fullmatch(name) and not topic.is_internal and not name.startswith("__")
        for partition in topic.partitions
    ]


async def follow_topics(consumer: Consumer, pattern: re.Pattern[str], settings: Mapping[str, Any]) -> None:
    """Keep the consumer assigned to what matches; never returns.

    What is there at first starts as ``auto_offset_reset`` says, what comes later at its beginning.
    """
    config = build(dict(settings), ClientConfig, ConsumerConfig)[0]
    async with Client(config, allow_auto_topic_creation=False) as client:
        news: list[Waiter[None]] = [Waiter()]

        def wake(_: object) -> None:
            news[0].set_result(None)

        client.on_metadata(wake)
        client.tasks.on_failure(wake)
        client.use_all_topics()
        snapshot = await client.refresh()
        assigned: set[TopicPartition] = set()
        is_first = True
        while True:
            found = matching_partitions(snapshot, pattern)
            new = [partition for partition in found if partition not in assigned]
            if new:
                assigned.update(new)
                consumer.assign(sorted(assigned))
                if not is_first:
                    await consumer.seek_to_beginning(*new)
            is_first = False
            await news[0]
            client.tasks.check()
            news[0], snapshot = Waiter(), client.metadata
