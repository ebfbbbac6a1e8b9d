"""When metadata is asked for, and whom: the plan as pure state, with plain numbers as times."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka08.cluster.machine import SLOW_ANSWER, TROUBLE_BACKOFF_MAX, UNREACHABLE_FOR, Ask, ClusterMachine
from pykafka08.cluster.metadata import LeaderNews
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import AuthorizationError, BrokerError, RemoteProtocolError, ResponseTooLargeError, TransportError
from pykafka08.protocol.messages.metadata import MetadataResponse
from tests.connection.answers import metadata, topic
from tests.connection.peers import config

REFUSED = TransportError("refused")
SEEDS = (("s1", 1), ("s2", 2), ("s3", 3))
BROKERS = [(1, "h1", 1), (2, "h2", 2), (3, "h3", 3)]
AGE = 300.0


def new(*seeds: tuple[str, int], **settings: Any) -> ClusterMachine:
    return ClusterMachine(config(*(seeds or SEEDS), **settings), lambda: 0.5, 0.0)


def ask(machine: ClusterMachine, now: float) -> Ask:
    (asked,) = machine.poll(now)
    return asked


def answer(machine: ClusterMachine, now: float, *topics: Any, brokers: Any = BROKERS) -> Ask:
    asked = ask(machine, now)
    assert machine.metadata_received(asked.attempt, metadata(brokers, topics), now)
    return asked


def running(*topics: Any, now: float = 0.0) -> ClusterMachine:
    """Bootstrapped, with these topics in use and known."""
    machine = new()
    machine.use_topics([each.name for each in topics])
    answer(machine, now, *topics)
    return machine


def due(machine: ClusterMachine) -> float:
    """When the machine would ask next; it must neither ask before, nor be late."""
    wakeup = machine.next_wakeup()
    assert wakeup is not None
    return wakeup


# --- bootstrap ---


def test_bootstrap_asks_each_seed_until_one_answers() -> None:
    machine = new()
    asked = set()
    for _ in range(2):
        attempt = ask(machine, 0)
        asked.add(attempt.node_id)
        machine.metadata_failed(attempt.attempt, REFUSED, 0)
        assert machine.bootstrap_error is None
    asked.add(answer(machine, 0).node_id)
    assert asked == {-1, -2, -3}
    assert machine.snapshot.generation == 1
    assert machine.poll(0) == []


def test_bootstrap_fails_when_every_seed_has_and_names_each_cause() -> None:
    machine = new()
    for _ in SEEDS:
        attempt = ask(machine, 0)
        machine.metadata_failed(attempt.attempt, TransportError(f"no {attempt.node_id}"), 0)
    error = machine.bootstrap_error
    assert error is not None
    assert set(error.causes) == {"s1:1", "s2:2", "s3:3"}
    assert all(f"no -{number}" in str(error) for number in (1, 2, 3))
    assert machine.poll(0) == [], "the next round waits"
    assert machine.poll(due(machine)) != []


def test_a_slow_seed_is_not_waited_for_alone() -> None:
    machine = new()
    first = ask(machine, 0)
    assert machine.poll(SLOW_ANSWER - 0.1) == []
    second = ask(machine, SLOW_ANSWER)
    assert second.node_id != first.node_id
    assert machine.metadata_received(second.attempt, metadata(BROKERS), 1.1)
    assert not machine.metadata_received(first.attempt, metadata([(9, "old", 9)]), 1.2), "late answers are dropped"
    assert list(machine.snapshot.brokers) == [1, 2, 3]


def test_a_slow_broker_that_fails_later_does_not_end_the_round_of_another() -> None:
    machine = new()
    first = ask(machine, 0)
    second = ask(machine, 1)
    machine.metadata_failed(first.attempt, REFUSED, 1)
    third = ask(machine, 1)
    machine.metadata_failed(third.attempt, REFUSED, 1)
    assert machine.bootstrap_error is None
    machine.metadata_failed(second.attempt, REFUSED, 1)
    assert machine.bootstrap_error is not None


def test_the_first_question_names_the_topics_in_use() -> None:
    machine = new()
    machine.use_topics(["b", "a"])
    assert ask(machine, 0).topics == ("a", "b")
    machine = new()
    machine.use_all_topics()
    assert ask(machine, 0).topics is None


# --- when ---


def test_metadata_is_refreshed_by_age() -> None:
    machine = running(topic("t"))
    assert due(machine) == AGE
    assert machine.poll(AGE - 1) == []
    assert ask(machine, AGE).topics == ("t",)


def test_invalidation_refreshes_at_once_and_only_once() -> None:
    machine = running(topic("t"))
    generation = machine.snapshot.generation
    machine.invalidate(generation)
    assert due(machine) <= 50
    asked = ask(machine, 50)
    machine.invalidate(generation)
    assert machine.poll(50.1) == [], "single flight"
    machine.metadata_received(asked.attempt, metadata(BROKERS, [topic("t")]), 50.2)
    machine.invalidate(generation)
    assert due(machine) == 50.2 + AGE, "that generation is gone already"
    machine.invalidate(machine.snapshot.generation)
    assert 50.2 < due(machine) <= 50.2 + 0.12, "one backoff after the last"


def test_a_new_topic_is_asked_for_at_once() -> None:
    machine = running(topic("t"), now=10)
    machine.use_topics(["t"])
    assert machine.poll(10) == [], "it is known"
    machine.use_topics(["u"])
    assert ask(machine, 10).topics == ("t", "u")


def test_a_topic_added_during_a_refresh_is_asked_for_after_it() -> None:
    machine = running(topic("t"))
    machine.invalidate(1)
    first = ask(machine, 50)
    machine.use_topics(["u"])
    assert machine.poll(50) == []
    machine.metadata_received(first.attempt, metadata(BROKERS, [topic("t")]), 50)
    assert ask(machine, 50).topics == ("t", "u")


def test_a_dropped_topic_is_asked_for_no_more_and_is_no_trouble() -> None:
    machine = running(topic("t"), topic("gone", error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    machine.drop_topics(["gone", "never used"])
    now = due(machine)
    assert answer(machine, now, topic("t")).topics == ("t",)
    assert due(machine) == now + AGE
    machine.use_topics(["gone"])
    assert ask(machine, now + 1).topics == ("gone", "t")


def test_all_topics() -> None:
    machine = running(topic("t"), now=10)
    machine.use_all_topics()
    asked = ask(machine, 10)
    assert asked.topics is None
    machine.metadata_received(asked.attempt, metadata(BROKERS, [topic("t"), topic("u")]), 10)
    assert set(machine.snapshot.topics) == {"t", "u"}
    machine.use_topics(["u"])
    assert due(machine) == 10 + AGE


@pytest.mark.parametrize(
    "missing",
    [
        topic("t", error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        topic("t", error=ErrorCode.LEADER_NOT_AVAILABLE),
        topic("t", [1, -1]),
        topic("t", [1, 8]),
        topic("t", []),
    ],
    ids=["unknown", "being created", "no leader", "leader gone", "no partitions"],
)
def test_missing_topics_and_leaders_are_asked_for_with_growing_pauses(missing: Any) -> None:
    machine = running(missing)
    pauses, now = [], 0.0
    for _ in range(8):
        pauses.append(due(machine) - now)
        now = due(machine)
        answer(machine, now, missing)
    assert pauses == pytest.approx([0.1, 0.2] + 6 * [TROUBLE_BACKOFF_MAX])
    now = due(machine)
    answer(machine, now, topic("t"))
    assert due(machine) == now + AGE


@pytest.mark.parametrize("code", [ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_TOPIC_EXCEPTION])
def test_topics_that_cannot_be_had_are_not_asked_for_again(code: int) -> None:
    machine = running(topic("t", error=code), topic("u"))
    assert due(machine) == AGE
    with pytest.raises(BrokerError) as caught:
        machine.is_found("t")
    assert caught.value.topic == "t"
    assert isinstance(caught.value, AuthorizationError) is (code == ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert machine.is_found("u")
    assert not machine.is_found("v")


def test_a_leader_that_cannot_be_reached_is_watched_until_it_is_replaced() -> None:
    machine = running(topic("t", [1, 2]))
    machine.broker_unreachable(2, 50)
    answer(machine, 50, topic("t", [1, 2]))
    now = due(machine)
    assert now < 50.2
    answer(machine, now, topic("t", [1, 1]))
    assert due(machine) <= now + UNREACHABLE_FOR
    assert machine.poll(now + 5) == []


def test_a_leader_that_is_reached_again_is_not_watched() -> None:
    machine = running(topic("t", [1, 2]))
    machine.broker_unreachable(2, 50)
    machine.broker_reachable(2)
    now = due(machine)
    answer(machine, max(now, 50), topic("t", [1, 2]))
    assert due(machine) == 50 + AGE


def test_a_failed_connect_is_old_news_after_a_while() -> None:
    machine = running(topic("t", [1, 2]))
    machine.broker_unreachable(2, 50)
    now, count = 50.0, 0
    while now < 50 + UNREACHABLE_FOR + 1:
        if machine.poll(now):
            machine.metadata_received(machine._attempts, metadata(BROKERS, [topic("t", [1, 2])]), now)
            count += 1
        now += 0.05
    assert 20 < count < 40
    assert due(machine) > now + AGE - 5


def test_an_unreachable_broker_without_our_partitions_is_no_trouble() -> None:
    machine = running(topic("t", [1]))
    machine.broker_unreachable(3, 50)
    answer(machine, 50, topic("t", [1]))
    assert machine.poll(55) == []


# --- whom ---


def test_the_broker_that_answered_last_is_asked_first_and_the_seeds_last() -> None:
    machine = running(topic("t"))
    machine.invalidate(1)
    first = ask(machine, 50)
    assert first.node_id > 0
    machine.metadata_received(first.attempt, metadata(BROKERS, [topic("t")]), 50)
    assert machine.candidates()[0] == first.node_id
    assert all(node_id < 0 for node_id in machine.candidates()[3:])
    machine.broker_unreachable(first.node_id, 50)
    assert machine.candidates()[2] == first.node_id


def test_seeds_that_are_known_brokers_are_not_tried_twice() -> None:
    machine = new(("h1", 1), ("h9", 9))
    answer(machine, 0)
    assert sorted(machine.candidates()) == [-2, 1, 2, 3]


def test_when_every_broker_is_gone_the_seeds_are_asked_and_rounds_are_repeated_with_backoff() -> None:
    machine = running(topic("t"))
    machine.invalidate(1)
    now, pauses = 50.0, []
    for _ in range(5):
        nodes = []
        for _ in range(6):
            attempt = ask(machine, now)
            nodes.append(attempt.node_id)
            machine.metadata_failed(attempt.attempt, REFUSED, now)
        assert sorted(nodes) == [-3, -2, -1, 1, 2, 3]
        assert all(node_id > 0 for node_id in nodes[:3])
        assert machine.poll(now) == []
        pauses.append(due(machine) - now)
        now = due(machine)
    assert pauses == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.0])
    assert machine.bootstrap_error is None
    assert machine.snapshot.generation == 1, "the old picture stays"
    answer(machine, now, topic("t"), brokers=[(7, "new", 7)])
    assert list(machine.snapshot.brokers) == [7]


def test_a_question_that_hangs_does_not_end_the_rounds_of_the_others() -> None:
    """One broker is silent, the others refuse: these are asked again with backoff, the silent one is not."""
    machine = new(*(address for _, *address in BROKERS))  # type: ignore[arg-type]
    answer(machine, 0)
    machine.invalidate(1)
    hung, now, failed_at, pauses = ask(machine, 50), 50.0, 50.0, []
    for number in range(5):
        nodes = set()
        for turn in range(2):
            now = due(machine)
            if not turn and number:
                pauses.append(now - failed_at)
            asked = ask(machine, now)
            nodes.add(asked.node_id)
            failed_at = now + 0.01
            machine.metadata_failed(asked.attempt, REFUSED, failed_at)
        assert nodes == {1, 2, 3} - {hung.node_id}
        assert machine.poll(failed_at) == []
    assert pauses == pytest.approx([0.1, 0.2, 0.4, 0.8])
    asked = ask(machine, due(machine))
    assert machine.metadata_received(asked.attempt, metadata(BROKERS), now)
    assert not machine.metadata_received(hung.attempt, metadata(BROKERS), now)


def test_a_question_that_hangs_at_the_only_broker_is_waited_for() -> None:
    machine = new(("h1", 1))
    answer(machine, 0, brokers=[(1, "h1", 1)])
    machine.invalidate(1)
    ask(machine, 50)
    for _ in range(5):
        now = due(machine)
        assert machine.poll(now) == []
        assert due(machine) == now + SLOW_ANSWER


def test_an_answer_with_an_error_is_a_failure() -> None:
    machine = running(topic("t"))
    machine.invalidate(1)
    asked = ask(machine, 50)
    response = MetadataResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)
    assert not machine.metadata_received(asked.attempt, response, 50)
    assert ask(machine, 50).node_id != asked.node_id


def test_an_empty_broker_list_of_0_8_keeps_the_bootstrap_addresses() -> None:
    machine = new()
    answer(machine, 0, brokers=[])
    assert sorted(machine.snapshot.brokers) == [-3, -2, -1]
    assert machine.broker(-1) is not None
    assert sorted(machine.candidates()) == [-3, -2, -1]


def test_unknown_brokers() -> None:
    machine = running(topic("t"))
    assert machine.broker(9) is None
    assert machine.broker(-4) is None
    assert machine.broker(-3) is not None


STEPS = st.lists(st.sampled_from(["poll", "answer", "fail", "invalidate", "topic", "down", "wait"]), max_size=80)


@given(STEPS)
def test_at_most_one_refresh_is_under_way_and_it_always_goes_on(steps: list[str]) -> None:
    """Whatever happens: never two questions without a slow one between, and the machine never falls asleep."""
    machine = new()
    now, open_asks, last_ask, has_failed = 0.0, {}, 0.0, False
    for number, step in enumerate(steps):
        if step == "poll":
            for asked in machine.poll(now):
                assert not open_asks or has_failed or now - last_ask >= SLOW_ANSWER
                open_asks[asked.attempt] = last_ask = now
                has_failed = False
        elif step == "answer" and open_asks:
            attempt = max(open_asks)
            machine.metadata_received(attempt, metadata(BROKERS, [topic("t0", [1, 2])]), now)
            open_asks.clear()
        elif step == "fail" and open_asks:
            attempt = min(open_asks)
            del open_asks[attempt]
            has_failed = True
            machine.metadata_failed(attempt, REFUSED, now)
        elif step == "invalidate":
            machine.invalidate(machine.snapshot.generation)
        elif step == "topic":
            machine.use_topics([f"t{number}"])
        elif step == "down":
            machine.broker_unreachable(1, now)
        else:
            now += 0.3
    machine.invalidate(machine.snapshot.generation)
    for _ in range(60):
        wakeup = machine.next_wakeup()
        assert wakeup is not None
        now = max(now, wakeup)
        asks = machine.poll(now)
        if asks:
            assert machine.metadata_received(asks[0].attempt, metadata(BROKERS), now)
            return
    raise AssertionError("no question was asked though the metadata is invalid")


# --- leaders told beside an error ---


def test_a_leader_that_is_learned_is_used_at_once_and_a_refresh_follows() -> None:
    machine = running(topic("a", [1]))
    generation = machine.snapshot.generation
    assert machine.leaders_learned([LeaderNews("a", 0, 2, 1)], [])
    assert (machine.snapshot.generation, machine.snapshot.leader("a", 0)) == (generation + 1, 2)
    machine.invalidate(generation)  # who saw the error may still say so
    answer(machine, due(machine), topic("a", [3]))
    assert due(machine) > AGE / 2


def test_a_leader_that_is_known_costs_nothing() -> None:
    machine = running(topic("a", [1]))
    generation = machine.snapshot.generation
    assert not machine.leaders_learned([LeaderNews("b", 0, 2, 1)], [])
    assert machine.snapshot.generation == generation
    assert due(machine) > AGE / 2


# --- impossible answers ---


def impossible() -> MetadataResponse:
    answer = metadata(BROKERS, [topic("t", [1])])
    answer.topics[0].partitions[0].partition_index = -3
    return answer


def test_an_impossible_answer_keeps_the_snapshot_and_the_next_broker_is_asked() -> None:
    machine = running(topic("t", [1]))
    before = machine.snapshot
    machine.invalidate(before.generation)
    first = ask(machine, due(machine))
    assert not machine.metadata_received(first.attempt, impossible(), 1.0)
    refused = machine.take_refused()
    assert isinstance(refused, RemoteProtocolError)
    assert refused.broker == before.brokers[first.node_id].name
    assert refused.api == "Metadata"
    assert machine.take_refused() is None
    assert machine.snapshot is before
    second = ask(machine, 1.0)
    assert second.node_id != first.node_id
    assert machine.metadata_received(second.attempt, metadata(BROKERS, [topic("t", [2])]), 1.0)
    assert machine.snapshot.leader("t", 0) == 2


def test_a_cluster_with_only_impossible_answers_is_asked_with_growing_pauses() -> None:
    machine = running(topic("t", [1]))
    machine.invalidate(machine.snapshot.generation)
    now, asked = 0.0, 0
    while now < 60.0:
        now = max(now, due(machine))
        for question in machine.poll(now):
            asked += 1
            machine.metadata_received(question.attempt, impossible(), now)
    assert asked < 60 * (len(BROKERS) + len(SEEDS)) * 1.5


def test_an_answer_that_is_too_large_from_every_broker_is_a_lasting_error() -> None:
    machine = running(topic("t", [1]))
    machine.invalidate(machine.snapshot.generation)
    error = ResponseTooLargeError("too large")
    now = due(machine)
    for _ in range(len(BROKERS) + len(SEEDS)):
        assert machine.take_lasting_error() is None
        machine.metadata_failed(ask(machine, now).attempt, error, now)
    assert machine.take_lasting_error() is error
    assert machine.take_lasting_error() is None


def test_invalidations_without_new_metadata_have_growing_pauses() -> None:
    machine = running(topic("t", [1]))
    now, refreshes = 0.0, 0
    while now < 20.0:
        machine.invalidate(machine.snapshot.generation)
        now = max(now, due(machine))
        for question in machine.poll(now):
            refreshes += 1
            machine.metadata_received(question.attempt, metadata(BROKERS, [topic("t", [1])]), now)
    assert refreshes < 20 / TROUBLE_BACKOFF_MAX * 1.5
    machine.invalidate(machine.snapshot.generation)
    now = due(machine)
    answer(machine, now, topic("t", [2]))
    machine.invalidate(machine.snapshot.generation)
    assert due(machine) - now <= 0.12, "a change ends the series"
