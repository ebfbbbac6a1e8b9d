"""A partition that cannot be read is reported within ten seconds: by `health()`, one warning, and time-outs."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from pykafka08 import Consumer, EmbeddedCluster, TopicPartition
from pykafka08.consumer import fetcher, trouble
from pykafka08.consumer.actions import Note, SendEpochs, SendFetch, SendListOffsets
from pykafka08.consumer.trouble import LATE, REPORT_AFTER, Trouble
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import RequestTimeoutError, TransportError
from tests.consumer.embedded import fill, read_values, values
from tests.consumer.groups import until
from tests.consumer.world import World

A, B = TopicPartition("a", 0), TopicPartition("b", 0)
LIMIT = 10.0
"""Seconds within which trouble is reported."""


def each_second(world: World, seconds: int) -> Iterator[Note | None]:
    """The results of a check in each second."""
    for _ in range(seconds):
        world.wait(1.0)
        yield world.machine.trouble.look(world.now)


def reported(world: World, seconds: int) -> list[Note]:
    return [note for note in each_second(world, seconds) if note is not None]


def longest(world: World) -> Trouble:
    found = world.machine.trouble.longest(world.now)
    assert found is not None
    return found


def world_without_a_leader() -> World:
    world = World({A: -1})
    world.refresh()
    world.machine.assignment.assign([A])
    world.poll()
    return world


def world_with_a_silent_fetch() -> World:
    world = World({A: 1})
    world.start()
    assert world.fetch()
    return world


def world_with_a_silent_look_up() -> World:
    world = World({A: 1})
    world.refresh()
    world.machine.assignment.assign([A])
    world.poll()
    assert isinstance(world.flights[0], SendListOffsets)
    return world


def world_with_a_silent_epoch() -> World:
    world = World({A: 1})
    world.logs[A].append(4)
    world.start()
    world.answer(world.fetch())
    world.read_offsets()
    world.move_leader(A, 2)
    world.refresh()
    world.poll()
    assert any(isinstance(each, SendEpochs) for each in world.flights)
    return world


CASES = {
    "no leader": (world_without_a_leader, "Metadata", None),
    "a silent Fetch": (world_with_a_silent_fetch, "Fetch", "b1:9092 (id 1)"),
    "a silent ListOffsets": (world_with_a_silent_look_up, "ListOffsets", "b1:9092 (id 1)"),
    "a silent OffsetForLeaderEpoch": (world_with_a_silent_epoch, "OffsetForLeaderEpoch", "b2:9092 (id 2)"),
}


@pytest.mark.parametrize("case", CASES)
def test_trouble_is_reported_once_with_cause_place_and_time(case: str) -> None:
    made, api, broker = CASES[case]
    world = made()
    began = world.now
    (note,) = reported(world, int(LIMIT))
    assert note.event == "partitions.in_trouble"
    assert (note.facts["topic"], note.facts["partition"], note.facts["partitions"]) == ("a", 0, 1)
    assert note.facts["seconds"] >= REPORT_AFTER
    assert api in note.facts["error"]
    assert "a" in note.facts["error"]
    error, since = longest(world)
    assert (error.topic, error.partition, error.api, error.broker) == ("a", 0, api, broker)
    assert since == began


def test_lasting_trouble_is_reported_each_minute() -> None:
    world = world_without_a_leader()
    assert len(reported(world, 200)) == 4


def test_many_partitions_are_one_warning() -> None:
    world = World({TopicPartition("a", number): -1 for number in range(50)})
    world.refresh()
    world.machine.assignment.assign(world.logs)
    world.poll()
    (note,) = reported(world, int(LIMIT))
    assert note.facts["partitions"] == 50


def test_later_trouble_of_another_partition_is_reported() -> None:
    world = World({A: 1, B: -1})
    world.start()
    first, second = world_of_two(world)
    assert (first.facts["topic"], second.facts["partitions"]) == ("b", 2)


def world_of_two(world: World) -> list[Note]:
    notes = []
    for second in range(30):
        world.wait(1.0)
        if second < 10:
            world.answer_all(SendFetch)
        note = world.machine.trouble.look(world.now)
        notes += [note] if note is not None else []
    return notes


def test_trouble_continues_from_one_failed_request_to_the_next() -> None:
    """Requests to an unreachable broker fail by time-out; trouble begins with the first of them."""
    world = world_with_a_silent_fetch()
    began = world.now
    for _ in range(3):
        for _ in each_second(world, 30):
            pass
        for fetch in world.fetches():
            world.flights.remove(fetch)
            world.machine.fetch_failed(fetch, RequestTimeoutError("no answer to Fetch"), world.now)
        world.poll()
        assert longest(world).since == began


def test_a_broker_that_is_down_is_reported() -> None:
    world = world_with_a_silent_fetch()
    notes = []
    for _ in range(int(LIMIT)):
        for fetch in world.fetches():
            world.flights.remove(fetch)
            world.machine.fetch_failed(fetch, TransportError("connection refused", broker="b1:9092 (id 1)"), world.now)
        world.wait(1.0)
        notes.append(world.machine.trouble.look(world.now))
    (note,) = [each for each in notes if each is not None]
    assert "connection refused" in note.facts["error"]
    assert longest(world).error.broker == "b1:9092 (id 1)"


def test_long_polls_and_leader_elections_are_not_trouble() -> None:
    world = World({A: 1}, fetch_max_wait_ms=20_000)
    world.start()
    for _ in range(20):
        assert list(each_second(world, 20)) == [None] * 20
        assert world.machine.trouble.longest(world.now) is None
        world.answer(world.fetch())
    world.answer(world.fetch(), code=int(ErrorCode.NOT_LEADER_OR_FOLLOWER))
    assert world.machine.trouble.look(world.now) is None
    world.wait(1.0)
    world.answer(world.fetch())
    assert reported(world, 10) == []
    assert world.machine.trouble.longest(world.now) is None


def test_trouble_ends_with_the_first_good_answer() -> None:
    world = world_with_a_silent_fetch()
    assert len(reported(world, 20)) == 1
    world.answer(world.fetch())
    assert world.machine.trouble.longest(world.now) is None
    assert reported(world, 4) == []
    assert world.machine.trouble._reported == set()


def test_a_late_answer_is_reported_after_late_after_seconds() -> None:
    world = world_with_a_silent_fetch()
    world.now += world.config.fetch_max_wait_ms / 1000 + LATE - 0.1
    assert world.machine.trouble.longest(world.now) is None
    world.now += 0.2
    assert str(longest(world).error).startswith("no complete answer for")


# Over the wire


@pytest.mark.anyio
@pytest.mark.parametrize("case", ["silent", "no leader"])
async def test_time_outs_health_and_the_log_name_the_trouble(
    case: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(fetcher, "LOOK_SECONDS", 0.05)
    caplog.set_level(logging.WARNING, logger="pykafka08")
    async with EmbeddedCluster(brokers=2, topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 1))
        settings = {"fetch_max_wait_ms": 10, "auto_offset_reset": "earliest", "retry_backoff_ms": 10}
        async with Consumer("t", bootstrap_servers=cluster.bootstrap_servers, **settings) as consumer:
            await read_values(consumer, 1)
            assert consumer.health().trouble is None
            if case == "silent":
                cluster.faults.drop_answer("Fetch", times=None)
            else:
                cluster.faults.answer("Fetch", ErrorCode.LEADER_NOT_AVAILABLE, times=None)
            for name in ("LATE", "REPORT_AFTER"):
                monkeypatch.setattr(trouble, name, 0.05)
            await until(lambda: any("in_trouble" in each.getMessage() for each in caplog.records))
            # A Fetch from before the fault may have been late, and answered since.
            await until(lambda: (consumer.health().trouble_age or 0) >= 0.05)
            health = consumer.health()
            assert health.trouble is not None
            assert (health.trouble.topic, health.trouble.partition) == ("t", 0)
            with pytest.raises(
                RequestTimeoutError, match=r"no record came within 0\.01 seconds; last: .*for \d"
            ) as caught:
                await consumer.getone(timeout=0.01)
            assert "t" in str(caught.value)
