"""A consumer of many partitions looks at those that have news, and at all others only when something else happens."""

from __future__ import annotations

import pytest

from pykafka08.consumer import plan, standing
from pykafka08.consumer.actions import FetchAsk, FetchedPartition, SendFetch
from pykafka08.consumer.partition import PartitionState
from pykafka08.consumer.session import FetchSession
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import TransportError
from pykafka08.records.record import TopicPartition
from tests.consumer.world import Log, World

COUNT = 200
PARTITIONS = [TopicPartition("t", number) for number in range(COUNT)]


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[TopicPartition]:
    """Partitions of which it was worked out what to ask."""
    seen: list[TopicPartition] = []
    real = standing.fetch_ask

    def fetch_ask(state: PartitionState) -> FetchAsk:
        seen.append(state.tp)
        return real(state)

    monkeypatch.setattr(standing, "fetch_ask", fetch_ask)
    monkeypatch.setattr(plan, "fetch_ask", fetch_ask)
    return seen


def world_at_rest(**settings: object) -> World:
    """Two brokers with half of the partitions each, all of which were asked once and had nothing."""
    world = World({tp: 1 + tp.partition % 2 for tp in PARTITIONS}, **settings)
    world.start()
    for flight in list(world.flights):
        world.answer(flight)
    for flight in list(world.flights):
        world.answer(flight, is_partial=True)
    return world


def fetch_from(world: World, node_id: int) -> SendFetch:
    (fetch,) = [fetch for fetch in world.fetches() if fetch.node_id == node_id]
    return fetch


def answer_from(world: World, node_id: int) -> SendFetch:
    """Have that broker tell its news; what is asked of it then."""
    world.answer(fetch_from(world, node_id), is_partial=True)
    return fetch_from(world, node_id)


def test_an_answer_costs_the_partitions_that_it_names(looked_at: list[TopicPartition]) -> None:
    world = world_at_rest()
    looked_at.clear()
    for turn in range(3):
        for tp in PARTITIONS[4:8]:
            world.logs[tp].append(2)
        for node_id in (1, 2):
            fetch = answer_from(world, node_id)
            named = [tp for tp in PARTITIONS[4:8] if 1 + tp.partition % 2 == node_id]
            assert looked_at == named
            assert [(ask.tp, ask.offset) for ask in fetch.renewed or ()] == [(tp, 2 * turn + 2) for tp in named]
            assert [ask.tp for ask in fetch.asks][-2:] == named  # they come last
            assert len({ask.tp for ask in fetch.asks}) == len(fetch.asks) == COUNT // 2
            looked_at.clear()
        assert set(world.read_offsets()) == set(PARTITIONS[4:8])
        world.poll()
        assert looked_at == []


def test_an_answer_without_news_costs_nothing(looked_at: list[TopicPartition]) -> None:
    world = world_at_rest()
    before = fetch_from(world, 1)
    looked_at.clear()
    after = answer_from(world, 1)
    assert (after.asks, after.renewed, looked_at) == (before.asks, (), [])


@pytest.mark.parametrize("what", ["pause", "hold", "seek", "assign", "new leader"])
def test_whatever_else_happens_is_in_the_next_fetch(what: str) -> None:
    world = world_at_rest()
    tp, other = PARTITIONS[1], PARTITIONS[3]  # both of broker 2
    assignment = world.machine.assignment
    world.logs[other].append(5)
    if what == "pause":
        assignment.pause(tp, 0)
    elif what == "hold":
        assignment.hold(tp)
    elif what == "seek":
        world.logs[tp].append(3)
        assignment.seek(tp, 2)
    elif what == "assign":
        assignment.assign(each for each in PARTITIONS if each != tp)
    else:
        world.move_leader(tp, 1)
        world.refresh()
    world.poll()
    fetch = answer_from(world, 2)
    asked = {ask.tp: ask.offset for ask in fetch.asks}
    assert fetch.renewed is None
    assert asked[other] == 5
    assert asked.get(tp) == (2 if what == "seek" else None)
    moved = answer_from(world, 1)
    assert (tp in {ask.tp for ask in moved.asks}) == (what == "new leader")
    assert answer_from(world, 2).renewed is not None  # and soon it goes on as before


@pytest.mark.parametrize("code", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.OFFSET_OUT_OF_RANGE])
def test_a_partition_that_is_refused_is_left_out_or_located(code: ErrorCode) -> None:
    world = world_at_rest()
    tp = PARTITIONS[0]
    fetch = fetch_from(world, 1)
    world.flights.remove(fetch)
    world.machine.fetch_answered(fetch, [FetchedPartition(tp, int(code))], world.now, is_capped=True, is_partial=True)
    world.poll()
    after = fetch_from(world, 1)
    assert after.renewed is None
    assert {ask.tp for ask in after.asks} == {each for each in PARTITIONS[::2] if each != tp}


def test_a_lost_fetch_is_made_again_with_all_partitions() -> None:
    world = world_at_rest()
    fetch = fetch_from(world, 1)
    world.flights.remove(fetch)
    world.machine.fetch_failed(fetch, TransportError("reset"), world.now)
    world.poll()
    assert [each for each in world.fetches() if each.node_id == 1] == []  # it backs off
    world.wait(1.5)
    again = fetch_from(world, 1)
    assert (set(again.asks), again.renewed) == (set(fetch.asks), None)
    for node_id in (1, 2):
        assert answer_from(world, node_id).renewed is None  # that all is well again is learned of each
    assert [answer_from(world, node_id).renewed for node_id in (1, 2)] == [(), ()]


def test_what_is_unread_takes_room_and_a_full_partition_sits_out() -> None:
    world = world_at_rest(max_partition_fetch_bytes=200, fetch_buffer_bytes=8000)  # half of it for each broker
    tp = PARTITIONS[0]
    world.logs[tp].append(40)
    fetch = answer_from(world, 1)
    # One batch of more than 200 bytes is unread: the partition sits out until it is read, and the poll is short.
    assert tp not in {ask.tp for ask in fetch.asks}
    assert fetch.max_wait < world.config.fetch_max_wait_ms / 1000
    world.read_offsets()
    world.poll()
    assert tp in {ask.tp for ask in answer_from(world, 1).asks}


@pytest.mark.parametrize("code", [0, ErrorCode.TOPIC_AUTHORIZATION_FAILED])
def test_a_partition_without_a_leader_is_missed_once_it_is_read(code: int) -> None:
    a, b = TopicPartition("a", 0), TopicPartition("b", 0)
    world = World({a: 1, b: 2}, max_partition_fetch_bytes=80)
    world.logs[a].append(20)  # more than the partition may hold unread
    world.start()
    for flight in list(world.flights):
        world.answer(flight)
    if code:
        world.refresh(errors={"a": int(code)})
    else:
        world.move_leader(a, -1)
        world.refresh()
    world.poll()
    assert len(world.read_offsets()[a]) == 20
    for _ in range(3):
        world.wait(0.5)
        answer_from(world, 2)
    assert world.machine.assignment.states[a].failures > 0 or world.machine.assignment.states[a].is_halted
    assert code or world.refreshes


def test_a_partition_that_is_held_and_located_has_the_poll_short() -> None:
    world = world_at_rest()
    new = TopicPartition("t", COUNT)
    world.logs[new] = Log(2)
    world.refresh()
    world.machine.assignment.take_over([new], is_held=True)
    world.poll()
    longest = world.config.fetch_max_wait_ms / 1000
    waits = [answer_from(world, 2).max_wait for _ in range(2)]
    assert max(waits) < longest / 2, waits
    for tp, epoch in world.machine.assignment.awaiting_commit().items():
        world.machine.assignment.committed_found(tp, epoch, 0)
    world.machine.assignment.release([new])
    world.poll()
    assert new in {ask.tp for ask in answer_from(world, 2).asks}


def test_a_lease_that_ends_while_its_fetch_is_in_flight_has_the_leaders_poll_short() -> None:
    a, b, c = (TopicPartition("t", number) for number in range(3))
    world = World({a: 1, b: 1, c: 2})
    world.start()
    for flight in list(world.flights):
        world.answer(flight)
    fetch = fetch_from(world, 1)
    world.flights.remove(fetch)
    world.logs[a].followers.add(2)
    redirected = [FetchedPartition(a, 0, b"", preferred_replica=2)]
    world.machine.fetch_answered(fetch, redirected, world.now, is_capped=True, is_partial=True)
    world.poll()
    for _ in range(3):
        for node_id in (1, 2):
            answer_from(world, node_id)
    assert {ask.tp for ask in fetch_from(world, 2).asks} >= {a, c}
    world.now += world.client.metadata_max_age_ms / 1000 + 1
    assert answer_from(world, 1).max_wait < world.config.fetch_max_wait_ms / 2000
    assert a in {ask.tp for node_id in (2, 1) for ask in answer_from(world, node_id).asks}


@pytest.mark.parametrize("uses_ids", [False, True])
def test_a_session_says_the_same_as_if_it_had_compared_all(uses_ids: bool) -> None:
    told, compared = FetchSession(), FetchSession()
    asks = {tp: FetchAsk(tp, 0, 1000) for tp in PARTITIONS[:5]}
    for turn in range(4):
        renewed = tuple(ask._replace(offset=turn) for ask in list(asks.values())[: turn % 3]) if turn else None
        asks |= {ask.tp: ask for ask in renewed or ()}
        everything = tuple(asks.values())
        step = told.step(everything, renewed, uses_ids=uses_ids)
        assert step == compared.step(everything, uses_ids=uses_ids)
        told.answered(77)
        compared.answered(77)
    for session in (told, compared):
        session.failed()
    assert told.step(everything, (), uses_ids=uses_ids) == compared.step(everything, uses_ids=uses_ids)
