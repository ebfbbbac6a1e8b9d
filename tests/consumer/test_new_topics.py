"""`auto_offset_reset="latest"` and new topics or partitions: their first record is read."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Any

import anyio
import pytest

from pykafka08 import Consumer, EmbeddedCluster, TopicPartition
from pykafka08.cluster.metadata import Broker, Partition, Snapshot, Topic
from pykafka08.config import ConsumerConfig
from pykafka08.consumer.assignment import SETTLED_FAILURES, Assignment
from pykafka08.consumer.partition import EARLIEST, LATEST
from pykafka08.error_codes import ErrorCode
from tests.consumer.embedded import fill, read_values, values
from tests.consumer.groups import QUICK, until

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))
UNKNOWN = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
CREATING = int(ErrorCode.LEADER_NOT_AVAILABLE)


def snapshot(partitions: int = 0, error: int = 0, *, brokers: int = 1) -> Snapshot:
    """Metadata of the topic "t"."""
    made = {number: Partition(1, 0, (), (), 0) for number in range(partitions)}
    return Snapshot(
        1,
        brokers=MappingProxyType(
            {node: Broker(node, "b", 9092) for node in range(1, 1 + brokers)} or {-1: Broker(-1, "b", 9092)}
        ),
        topics=MappingProxyType({"t": Topic("t", None, error, False, MappingProxyType(made))}),
    )


NOT_ASKED = Snapshot(1, brokers=MappingProxyType({1: Broker(1, "b", 9092)}))


def sought(assignment: Assignment, tp: TopicPartition) -> tuple[int, ...]:
    lookup = assignment.state(tp).lookup
    assert lookup is not None
    return lookup.timestamps


def made(**settings: Any) -> Assignment:
    return Assignment(ConsumerConfig(auto_offset_reset="latest", **settings))


HISTORIES: list[tuple[str, list[Snapshot], dict[TopicPartition, int]]] = [
    ("there at first", [snapshot(2)], {T0: LATEST, T1: LATEST}),
    ("missing at first", [snapshot(0, UNKNOWN), snapshot(2)], {T0: EARLIEST, T1: EARLIEST}),
    ("being created at first", [snapshot(0, CREATING), snapshot(1)], {T0: EARLIEST}),
    ("not asked for at first", [NOT_ASKED, snapshot(1)], {T0: LATEST}),
    ("unknown to a broker that knows no broker", [snapshot(0, UNKNOWN, brokers=0), snapshot(1)], {T0: LATEST}),
    ("grown", [snapshot(1), snapshot(3)], {T0: LATEST, T1: EARLIEST, T2: EARLIEST}),
    ("missing, made, grown", [snapshot(0, UNKNOWN), snapshot(1), snapshot(2)], {T0: EARLIEST, T1: EARLIEST}),
    ("there, then unknown for a moment", [snapshot(1), snapshot(0, UNKNOWN), snapshot(1)], {T0: LATEST}),
]


@pytest.mark.parametrize(("history", "wanted"), [each[1:] for each in HISTORIES], ids=[each[0] for each in HISTORIES])
@pytest.mark.parametrize("kind", ["subscribe", "group", "assign", "assign in a group"])
def test_topics_and_partitions_that_appear_later_are_read_from_their_start(
    history: list[Snapshot], wanted: dict[TopicPartition, int], kind: str
) -> None:
    assignment = made()
    in_group = "group" in kind
    if kind == "subscribe":
        assignment.subscribe(["t"])
    elif kind == "group":
        assignment.count_partitions(["t"])
    for each in history:
        if "assign" in kind and not (history[-1] is each and "grown" in str(history)):
            assignment.assign(wanted, from_committed=in_group)
        assignment.metadata_changed(each)
    if kind == "group":
        assignment.take_over(wanted, is_held=False)
    if in_group:
        for tp, epoch in assignment.awaiting_commit().items():
            assert assignment.committed_found(tp, epoch, None)
    assert {tp: sought(assignment, tp) for tp in wanted} == {tp: (where,) for tp, where in wanted.items()}


def test_without_a_reset_policy_a_new_partition_is_an_error_too() -> None:
    assignment = Assignment(ConsumerConfig(auto_offset_reset="none"))
    assignment.assign([T0])
    assignment.metadata_changed(snapshot(0, UNKNOWN))
    assignment.metadata_changed(snapshot(1))
    assert sought(assignment, T0) == (EARLIEST, LATEST)


def test_an_existing_partition_that_is_assigned_later_begins_at_its_end() -> None:
    assignment = made()
    assignment.assign([T0])
    assignment.metadata_changed(snapshot(0, UNKNOWN))
    assignment.metadata_changed(snapshot(2))
    assignment.assign([T0, T1])
    assert (sought(assignment, T0), sought(assignment, T1)) == ((EARLIEST,), (LATEST,))


def test_partitions_are_counted_again_when_a_topic_is_assigned_again() -> None:
    assignment = made()
    assignment.assign([T0])
    assignment.metadata_changed(snapshot(1))
    assignment.assign([])
    assignment.metadata_changed(snapshot(2))
    assignment.assign([T1])
    assert sought(assignment, T1) == (LATEST,)


def test_the_end_of_a_partition_that_does_not_exist_is_its_start() -> None:
    """This also holds for seek_to_end: all its records are produced later."""
    assignment = made()
    assignment.assign([T0])
    assignment.seek_to_end_of_log(T0, LATEST)
    assignment.metadata_changed(snapshot(0, UNKNOWN))
    assert sought(assignment, T0) == (EARLIEST,)


def test_a_temporary_error_does_not_end_the_wait_for_positions() -> None:
    """Otherwise records that are produced right after the start would be before its position."""
    assignment = made()
    assignment.assign([T0])
    assignment.metadata_changed(snapshot(1))
    state = assignment.state(T0)
    for failures in range(SETTLED_FAILURES):
        state.failures = failures
        assert not assignment.is_settled()
    state.failures = SETTLED_FAILURES
    assert assignment.is_settled()


# Over the wire


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["topic", "pattern", "assign"])
@pytest.mark.parametrize("group_id", [None, "g"])
@pytest.mark.parametrize("version", ["0.10.2", "4.3"])
async def test_the_first_record_of_a_topic_that_appears_while_the_consumer_starts_is_read(
    version: str, group_id: str | None, kind: str
) -> None:
    async with EmbeddedCluster(version=version, auto_create_topics=False, topics={"other": 1}) as cluster:
        settings = {**QUICK, "auto_offset_reset": "latest", "group_id": group_id, "metadata_max_age_ms": 50}
        if group_id is None:
            settings = {
                name: settings[name]
                for name in settings
                if name not in ("heartbeat_interval_ms", "max_poll_interval_ms")
            }
        named = {"topic": ["new"]}.get(kind, [])
        pattern = re.compile("new") if kind == "pattern" else None
        consumer = Consumer(*named, bootstrap_servers=cluster.bootstrap_servers, pattern=pattern, **settings)

        async def create() -> None:
            """Create the topic once the consumer has seen that it is missing."""
            asked = len(cluster.requests)
            await until(lambda: sum(each.api == "Metadata" for each in cluster.requests[asked:]) >= 3)
            cluster.create_topic("new", 1)
            await fill(cluster, "new", values(0, 3))

        async with anyio.create_task_group() as tasks:
            if kind == "topic":
                tasks.start_soon(create)
            async with consumer:
                if kind == "assign":
                    consumer.assign([TopicPartition("new", 0)])
                if kind != "topic":
                    tasks.start_soon(create)
                assert await read_values(consumer, 3) == values(0, 3)
