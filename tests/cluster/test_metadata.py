"""Snapshots: what a Metadata answer of any version says about brokers, topics and leaders."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from pykafka08.cluster.metadata import Broker, LeaderNews, Partition, Snapshot
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import RemoteProtocolError
from pykafka08.protocol.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from tests.connection.answers import metadata, topic

BROKERS = [(1, "h1", 9092), (2, "h2", 9093)]
ID = UUID(int=7)


def snapshot(response: MetadataResponse, *, before: Snapshot | None = None, **options: Any) -> Snapshot:
    options = {"now": 5.0, "wanted": lambda name: True, **options}
    return (before or Snapshot(0)).next(response, **options)


@pytest.mark.parametrize("version", range(14))
def test_every_version_gives_the_same_picture(version: int) -> None:
    response = metadata(BROKERS, [topic("a", [1, 2]), topic("b", [-1])])
    response.cluster_id = "c"
    made = snapshot(MetadataResponse.decode(response.encode(version), version))
    assert made.generation == 1
    assert made.fetched_at == 5.0
    assert made.brokers == {1: Broker(1, "h1", 9092), 2: Broker(2, "h2", 9093)}
    assert made.partitions("a") == (0, 1)
    assert [made.leader("a", 0), made.leader("a", 1), made.leader("a", 2), made.leader("b", 0)] == [1, 2, None, None]
    assert made.topics["a"].partitions[1] == Partition(2, -1, (2,), (2,), 0)
    assert made.controller_id == (1 if version >= 1 else None)
    assert made.cluster_id == ("c" if version >= 2 else None)


def test_names_of_brokers() -> None:
    assert Broker(3, "h", 9092).name == "h:9092 (id 3)"
    assert Broker(-1, "h", 9092).name == "h:9092"


def test_a_down_replica_is_only_a_note() -> None:
    partition = MetadataResponsePartition(
        error_code=ErrorCode.REPLICA_NOT_AVAILABLE, partition_index=0, leader_id=1, replica_nodes=[1, 9], isr_nodes=[1]
    )
    made = snapshot(metadata(BROKERS, [MetadataResponseTopic(name="a", partitions=[partition])]))
    assert made.leader("a", 0) == 1
    assert made.topics["a"].partitions[0].error == 0


def test_a_leader_that_is_not_among_the_brokers_is_no_leader() -> None:
    made = snapshot(metadata(BROKERS, [topic("a", [1, 7])]))
    assert made.leader("a", 1) is None
    assert made.available_partitions("a") == (0,)


def test_topic_errors() -> None:
    made = snapshot(metadata(BROKERS, [topic("a"), topic("b", error=ErrorCode.LEADER_NOT_AVAILABLE)]))
    assert made.topic_error("a") == 0
    assert made.topic_error("b") == ErrorCode.LEADER_NOT_AVAILABLE
    assert made.topic_error("c") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert made.partitions("b") == made.partitions("c") == made.available_partitions("c") == ()


def test_only_wanted_topics_are_kept() -> None:
    made = snapshot(metadata(BROKERS, [topic("a"), topic("b")]), wanted={"b"}.__contains__)
    assert list(made.topics) == ["b"]


def test_partitions_come_in_order() -> None:
    answer = topic("a", [1, 1, 1])
    answer.partitions.reverse()
    assert snapshot(metadata(BROKERS, [answer])).partitions("a") == (0, 1, 2)


def test_without_brokers_the_bootstrap_address_stands_in() -> None:
    seed = Broker(-1, "seed", 9092)
    assert snapshot(metadata([]), spare_brokers=[seed]).brokers == {-1: seed}
    assert list(snapshot(metadata(BROKERS), spare_brokers=[seed]).brokers) == [1, 2]


def test_topic_ids() -> None:
    made = snapshot(metadata(BROKERS, [topic("a", topic_id=ID), topic("b")]))
    assert made.topic_id("a") == ID
    assert made.topic_id("b") is None
    assert made.topic_of_id(ID) == "a"
    assert made.topic_of_id(UUID(int=8)) is None


def with_epoch(leader: int, epoch: int, topic_id: UUID | None = ID) -> MetadataResponse:
    answer = topic("a", [leader], **({"topic_id": topic_id} if topic_id else {}))
    answer.partitions[0].leader_epoch = epoch
    return metadata(BROKERS, [answer])


@pytest.mark.parametrize(
    ("leader", "epoch", "topic_id", "expected"),
    [
        (1, 4, ID, (2, 5)),  # older news of the same topic: the newer leader stays
        (1, 5, ID, (1, 5)),
        (1, 6, ID, (1, 6)),
        (1, 0, UUID(int=8), (1, 0)),  # another topic of that name
        (1, 4, None, (1, 4)),  # without ids nobody can tell
    ],
)
def test_a_broker_that_lags_behind_does_not_bring_an_old_leader_back(
    leader: int, epoch: int, topic_id: UUID | None, expected: tuple[int, int]
) -> None:
    before = snapshot(with_epoch(2, 5))
    after = snapshot(with_epoch(leader, epoch, topic_id), before=before)
    assert (after.leader("a", 0), after.leader_epoch("a", 0)) == expected
    assert after.leader_epoch("a", 1) == after.leader_epoch("z", 0) == -1


def test_a_newer_leader_that_left_the_cluster_is_given_up() -> None:
    before = snapshot(with_epoch(2, 5))
    response = with_epoch(1, 4)
    response.brokers = response.brokers[:1]
    assert snapshot(response, before=before).leader("a", 0) == 1


def test_snapshots_cannot_be_changed() -> None:
    made = snapshot(metadata(BROKERS, [topic("a")]))
    for mapping in (made.brokers, made.topics, made.topics["a"].partitions):
        with pytest.raises(TypeError):
            mapping["x"] = None  # type: ignore[index]
    with pytest.raises(AttributeError):
        made.generation = 9  # type: ignore[misc]


def test_the_cluster_id_is_kept_when_an_answer_lacks_it() -> None:
    response = metadata(BROKERS)
    response.cluster_id = "c"
    before = snapshot(response)
    assert snapshot(metadata(BROKERS), before=before).cluster_id == "c"


def with_epochs(*leaders: tuple[int, int]) -> Snapshot:
    """Topic a with these leaders and leader epochs."""
    partitions = [
        MetadataResponsePartition(partition_index=number, leader_id=leader, leader_epoch=epoch, replica_nodes=[1, 2])
        for number, (leader, epoch) in enumerate(leaders)
    ]
    return snapshot(metadata(BROKERS, [MetadataResponseTopic(name="a", topic_id=ID, partitions=partitions)]))


def test_leaders_that_a_broker_tells_beside_an_error() -> None:
    before = with_epochs((1, 3), (1, 3))
    made = before.with_leaders([LeaderNews("a", 0, 2, 4)])
    assert (made.generation, made.fetched_at) == (before.generation + 1, before.fetched_at)
    assert [(made.leader("a", number), made.leader_epoch("a", number)) for number in (0, 1)] == [(2, 4), (1, 3)]
    assert made.topics["a"].partitions[0].replicas == (1, 2)
    assert made.topic_id("a") == ID
    assert before.leader("a", 0) == 1


def test_a_leader_that_is_a_new_broker_comes_with_its_address() -> None:
    before = with_epochs((1, 3))
    assert before.with_leaders([LeaderNews("a", 0, 5, 4)]) is before
    made = before.with_leaders([LeaderNews("a", 0, 5, 4)], [Broker(5, "h5", 9095, "r")])
    assert made.leader("a", 0) == 5
    assert made.brokers[5] == Broker(5, "h5", 9095, "r")
    assert made.brokers.keys() == {1, 2, 5}


@pytest.mark.parametrize("news", [("a", 0, 2, 3), ("a", 0, 2, 2), ("a", 7, 2, 9), ("b", 0, 2, 9), ("a", 0, -1, 9)])
def test_what_is_old_or_unknown_is_no_news(news: tuple[str, int, int, int]) -> None:
    before = with_epochs((1, 3))
    assert before.with_leaders([LeaderNews(*news)]) is before


CHANGES = {
    "leader": lambda topic: setattr(topic.partitions[1], "leader_id", 1),
    "epoch": lambda topic: setattr(topic.partitions[1], "leader_epoch", 9),
    "replicas": lambda topic: setattr(topic.partitions[1], "replica_nodes", [2, 1]),
    "in-sync replicas": lambda topic: setattr(topic.partitions[1], "isr_nodes", []),
    "error of a partition": lambda topic: setattr(topic.partitions[1], "error_code", 5),
    "error of the topic": lambda topic: setattr(topic, "error_code", 5),
    "internal": lambda topic: setattr(topic, "is_internal", True),
    "id": lambda topic: setattr(topic, "topic_id", UUID(int=8)),
    "id gone": lambda topic: setattr(topic, "topic_id", UUID(int=0)),
    "another number": lambda topic: setattr(topic.partitions[1], "partition_index", 7),
    "one more": lambda topic: topic.partitions.append(MetadataResponsePartition(partition_index=9)),
    "one less": lambda topic: topic.partitions.pop(),
}


@pytest.mark.parametrize("leaders", [[1, 2], [1, 2, 1]])
@pytest.mark.parametrize("change", CHANGES)
def test_what_has_changed_is_what_a_snapshot_from_nothing_would_say(change: str, leaders: list[int]) -> None:
    response = metadata(BROKERS, [topic("a", leaders), topic("b", leaders)])
    response.topics[0].topic_id = ID
    before = snapshot(response)
    CHANGES[change](response.topics[0])
    after = snapshot(response, before=before)
    assert after.topics == snapshot(response).topics
    assert after.topics["a"] != before.topics["a"]
    assert after.topics["b"] is before.topics["b"], "kept, not made again"


def test_equal_partitions_and_lists_of_replicas_are_held_once() -> None:
    response = metadata(BROKERS, [topic(str(number), [1]) for number in range(50)])
    made = snapshot(response)
    assert len({id(each.partitions) for each in made.topics.values()}) == 1
    response = metadata(BROKERS, [topic(str(number), [1, 2, 1]) for number in range(50)])
    made = snapshot(response)
    assert len({id(one) for each in made.topics.values() for one in each.partitions.values()}) == 2
    assert made.topics["7"].partitions[0].replicas is made.topics["7"].partitions[2].isr


IMPOSSIBLE = {
    "a negative broker": lambda answer: setattr(answer.brokers[0], "node_id", -1),
    "a broker twice": lambda answer: setattr(answer.brokers[0], "node_id", answer.brokers[1].node_id),
    "a negative controller": lambda answer: setattr(answer, "controller_id", -2),
    "a topic twice": lambda answer: setattr(answer.topics[0], "name", answer.topics[1].name),
    "a negative partition": lambda answer: setattr(answer.topics[0].partitions[0], "partition_index", -3),
    "a partition twice": lambda answer: setattr(answer.topics[1].partitions[0], "partition_index", 1),
    "a negative partition of two": lambda answer: setattr(answer.topics[1].partitions[0], "partition_index", -3),
    "a leader below -1": lambda answer: setattr(answer.topics[0].partitions[0], "leader_id", -2),
    "a leader epoch below -1": lambda answer: setattr(answer.topics[0].partitions[0], "leader_epoch", -2),
    "a leader epoch below -1 of two": lambda answer: setattr(answer.topics[1].partitions[1], "leader_epoch", -9),
    "a negative replica": lambda answer: setattr(answer.topics[0].partitions[0], "replica_nodes", [1, -1]),
    "a negative in-sync replica": lambda answer: setattr(answer.topics[1].partitions[1], "isr_nodes", [-5]),
}


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("what", IMPOSSIBLE)
def test_an_impossible_answer_is_refused_as_a_whole(what: str, is_first: bool) -> None:
    topics = [topic("a", [1]), topic("b", [1, 2])]
    before = None if is_first else snapshot(metadata(BROKERS, topics))
    bad = metadata(BROKERS, [topic("a", [1]), topic("b", [1, 2])])
    IMPOSSIBLE[what](bad)
    with pytest.raises(RemoteProtocolError) as caught:
        snapshot(bad, before=before)
    assert caught.value.api == "Metadata"


def test_a_negative_partition_with_otherwise_valid_fields_is_refused() -> None:
    before = snapshot(metadata(BROKERS, [topic("a", [1]), topic("b", [1])]))
    bad = metadata(BROKERS, [topic("a", [1]), topic("b", [1])])
    bad.topics[1].partitions[0].partition_index = -3
    with pytest.raises(RemoteProtocolError, match="partition -3"):
        snapshot(bad, before=before)


@pytest.mark.parametrize(("node_id", "host", "port"), [(-1, "h", 1), (5, "", 1), (5, "h", 0), (5, "h", 65_536)])
def test_an_impossible_new_leader_is_ignored(node_id: int, host: str, port: int) -> None:
    before = with_epochs((1, 3))
    assert before.with_leaders([LeaderNews("a", 0, node_id, 4)], [Broker(node_id, host, port)]) is before
