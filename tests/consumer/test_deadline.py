"""A call that asks the broker twice has one deadline for both."""

from __future__ import annotations

import pytest

from pykafka08 import Consumer, EmbeddedCluster, TopicPartition
from pykafka08.consumer.consumer import Consumer as ConsumerClass

pytestmark = pytest.mark.anyio


async def test_lag_gives_the_second_question_what_the_first_left(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float] = []
    end_offsets = ConsumerClass.end_offsets

    async def noted(self, partitions, *, timeout=None):  # type: ignore[no-untyped-def]
        given.append(timeout)
        return await end_offsets(self, partitions, timeout=timeout)

    monkeypatch.setattr(ConsumerClass, "end_offsets", noted)
    tp = TopicPartition("t", 0)
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        async with Consumer(bootstrap_servers=cluster.bootstrap_servers) as consumer:
            cluster.faults.delay("ListOffsets", 0.3, times=1)
            consumer.assign([tp])
            assert await consumer.lag(tp, timeout=30) == 0
    assert len(given) == 1
    assert given[0] <= 29.7
