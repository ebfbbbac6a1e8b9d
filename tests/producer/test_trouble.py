"""Records that cannot be sent are reported within ten seconds: by `health()` and one warning."""

from __future__ import annotations

import logging

import anyio
import pytest

from pykafka08 import EmbeddedCluster, ErrorCode, Producer
from pykafka08.errors import KafkaError, TransportError
from pykafka08.producer import trouble
from pykafka08.producer.actions import Action, RecordsStalled
from pykafka08.producer.trouble import LATE, REPORT_AFTER
from tests.producer.world import OK, World

LIMIT = 10
"""Seconds within which trouble is reported."""


def reported(world: World, seconds: int) -> list[RecordsStalled]:
    """The warnings of a machine that is polled at the times it asks for."""
    actions: list[Action] = []
    end = world.now + seconds
    while (wakeup := world.machine.next_wakeup()) is not None and wakeup < end:
        world.now = max(world.now, wakeup)
        actions += world.machine.poll(world.now)
    return [each for each in actions if isinstance(each, RecordsStalled)]


def test_a_partition_without_a_leader_is_reported_once() -> None:
    world = World({"t": [-1]})
    world.add("t", partition=0)
    (warning,) = reported(world, LIMIT)
    assert warning.seconds >= REPORT_AFTER
    assert (warning.error.topic, warning.error.partition, warning.error.api) == ("t", 0, "Metadata")
    found = world.machine.trouble(world.now)
    assert found is not None
    assert found.since == 1000.0


def test_lasting_trouble_is_reported_each_minute() -> None:
    world = World({"t": [-1]}, delivery_timeout_ms=600_000)
    world.add("t", partition=0)
    assert len(reported(world, 200)) == 4


def test_a_topic_that_does_not_appear_is_reported() -> None:
    world = World({"t": int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)})
    world.add("t")
    (warning,) = reported(world, LIMIT)
    assert (warning.error.topic, warning.error.partition) == ("t", None)
    assert "UNKNOWN_TOPIC_OR_PARTITION" in str(warning.error)


def test_acknowledged_records_are_not_trouble() -> None:
    world = World({"t": [0]})
    world.add("t", partition=0)
    assert reported(world, 1) == []
    assert world.machine.trouble(world.now) is None


def test_a_silent_broker_is_reported_before_the_request_times_out() -> None:
    world = World({"t": [0]}, linger_ms=0)
    world.add("t", partition=0)
    world.one()
    assert world.machine.trouble(world.now + LATE - 0.1) is None
    (warning,) = reported(world, LIMIT)
    assert (warning.error.topic, warning.error.partition, warning.error.api) == ("t", 0, "Produce")
    assert warning.error.broker == "b0:9092 (id 0)"
    assert str(warning.error).startswith("no answer for ")


def test_a_slow_broker_that_answers_is_not_trouble() -> None:
    world = World({"t": [0]}, linger_ms=0)
    for _ in range(10):
        world.add("t", partition=0)
        send = world.one()
        assert reported(world, 4) == []
        world.answer(send, OK)


@pytest.mark.parametrize("error", [None, TransportError("connection refused")])
def test_records_without_a_producer_id_are_reported(error: KafkaError | None) -> None:
    world = World({"t": [0]}, linger_ms=0, enable_idempotence=True)
    world.add("t", partition=0)
    world.poll()
    if error is not None:
        world.machine.identity_failed(error, world.now)
    (warning,) = reported(world, LIMIT)
    assert (warning.error.topic, warning.error.partition) == ("t", 0)
    assert ("connection refused" if error else "no producer id for ") in str(warning.error)


@pytest.mark.anyio
async def test_health_and_the_log_name_the_trouble(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(trouble, "REPORT_AFTER", 1.0)  # on a busy machine a record may wait for a while without trouble
    monkeypatch.setattr(trouble, "LOOK_EVERY", 0.05)
    caplog.set_level(logging.WARNING, logger="pykafka08")
    async with (
        EmbeddedCluster(topics={"t": 1}) as cluster,
        Producer(cluster.bootstrap_servers, linger_ms=0, retry_backoff_ms=10, retry_backoff_max_ms=10) as producer,
    ):
        await producer.send("t", b"first")
        assert producer.health().trouble is None
        cluster.faults.answer("Produce", ErrorCode.NOT_ENOUGH_REPLICAS, times=None)
        delivery = producer.enqueue("t", b"second")
        health = producer.health()
        with anyio.fail_after(60):
            while not health.trouble or not any("in_trouble" in each.getMessage() for each in caplog.records):
                await anyio.sleep(0.01)
                health = producer.health()
        assert isinstance(health.trouble, KafkaError)
        assert not isinstance(health.trouble, TransportError)
        assert (health.trouble.topic, health.trouble.partition) == ("t", 0)
        assert health.trouble_age is not None
        assert health.trouble_age >= 1.0
        cluster.faults.clear()
        await delivery
        assert producer.health().trouble is None
    assert sum("in_trouble" in each.getMessage() for each in caplog.records) == 1
