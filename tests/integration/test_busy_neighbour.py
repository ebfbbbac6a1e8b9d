"""0.9 brokers answer nobody in the same poll once a request they do not know comes in: ours must never send one."""

from __future__ import annotations

import anyio
import pytest

from pykafka08 import Consumer, Producer
from tests.integration.busy_client import BusyClient
from tests.integration.clusters import Clusters
from tests.integration.reading import read_records

CONNECTS = 20

pytestmark = [pytest.mark.anyio, pytest.mark.cluster(release="0.9.0.1")]


async def test_a_busy_client_of_0_9_loses_nothing_while_ours_connects(clusters: Clusters) -> None:
    kafka = clusters.running("0.9.0.1")
    topic, ours = kafka.new_topic("busy"), kafka.new_topic("ours")
    port = int(kafka.bootstrap.partition(":")[2])
    with BusyClient(port, topic) as neighbour:
        await anyio.to_thread.run_sync(neighbour.wait_for, 100)
        for number in range(CONNECTS):
            async with Producer(bootstrap_servers=kafka.bootstrap) as producer:
                await producer.send(ours, b"%d" % number)
            await anyio.to_thread.run_sync(neighbour.wait_for, 20)
    assert neighbour.failures == []

    async with Consumer(topic, bootstrap_servers=kafka.bootstrap, auto_offset_reset="earliest") as consumer:
        values = [record.value or b"" for record in await read_records(consumer, neighbour.total)]
    for number, acknowledged in enumerate(neighbour.acknowledged):
        assert [value for value in values if value.startswith(b"%d:" % number)] == acknowledged
    async with Consumer(ours, bootstrap_servers=kafka.bootstrap, auto_offset_reset="earliest") as consumer:
        assert [record.value for record in await read_records(consumer, CONNECTS)] == [
            b"%d" % number for number in range(CONNECTS)
        ]
    log = kafka.log(1)
    assert "uncaught exception" not in log
    assert "ERROR" not in log
