"""Members of an old group under faults, in virtual time: never two readers of a partition, and everyone recovers."""

from __future__ import annotations

import os
import sys

import pytest

from pykafka08.zookeeper import paths
from pykafka08.zookeeper.machine import LegacyMember, State
from pykafka08.zookeeper.rebalance import Profile
from pykafka08.zookeeper.steps import Step
from tests.zookeeper.simulation.world import GROUP, SESSION_TIMEOUT, TOPIC, SimulatedMember, World

SOAK = os.environ.get("PYKAFKA08_SOAK") == "1"
SEEDS = 1000 if SOAK else 100


def faults(world: World) -> None:
    """A random fault, and its end."""
    dice, living = world.dice, world.living
    member = dice.choice(living)
    lasting = dice.choice([0.3, 2.0, SESSION_TIMEOUT - 0.5, SESSION_TIMEOUT + 1, 3 * SESSION_TIMEOUT])
    kind = dice.choice(["stop", "cut", "freeze", "kill", "leave", "join", "lossy"])
    if kind == "stop":
        world.server.is_up = False

        def start() -> None:
            world.server.is_up = True
            for session in world.server.heard:  # a server that comes back gives each session its whole time
                world.server.heard[session] = world.now

        world.after(lasting, start)
    elif kind == "cut":
        member.is_cut = True
        world.after(lasting, lambda: setattr(member, "is_cut", False))
    elif kind == "freeze":
        member.is_frozen = True
        world.after(lasting, member.thaw)
    elif kind == "lossy":
        world.loss = 0.2
        world.after(lasting, lambda: setattr(world, "loss", 0.0))
    elif kind == "join" or len(living) < 3:
        world.join(f"g_new{world.now:.0f}-{len(world.members)}", dice.randint(1, 3))
    elif kind == "kill":
        member.kill()
    elif kind == "leave":
        member.leave()


def assert_sound(world: World) -> None:
    assert world.dual == []
    assert [each for each in world.deletions if not each[2]] == [], "a node of another was deleted"


@pytest.mark.parametrize("first", range(0, SEEDS, 25))
def test_two_never_read_one_partition_and_all_recover(first: int) -> None:
    for seed in range(first, first + 25):
        world = World(seed, partitions=world_partitions(seed))
        for number in range(4):
            world.join(f"g_host{number}", 1 + number % 2)
        for _ in range(12):
            world.run_until(world.now + world.dice.uniform(0.1, 8))
            faults(world)
        # The longest fault, a session that has to end, and the pauses of members that were out of tries.
        world.run_until(world.now + 8 * SESSION_TIMEOUT)
        assert_sound(world)
        assert world.is_settled(), f"seed {seed}"


def world_partitions(seed: int) -> int:
    return (1, 3, 8, 20)[seed % 4]


@pytest.mark.parametrize("seed", range(20))
def test_its_own_share_again_within_two_seconds_of_reconnecting(seed: int) -> None:
    world = World(seed)
    for number in range(3):
        world.join(f"g_host{number}")
    world.run_until(20)
    assert world.is_settled()
    member = world.members[seed % 3]
    member.is_cut = True
    world.run_until(world.now + 4 * SESSION_TIMEOUT)
    assert not member.reading
    member.is_cut = False
    before = member.reconnected_at
    while member.reconnected_at == before:
        world.run_until(world.now + 0.01)
    assert member.reconnected_at is not None
    world.run_until(member.reconnected_at + 2.0)
    assert_sound(world)
    assert world.is_settled()


def test_no_orphan_owner_after_a_thousand_random_steps() -> None:
    world = World(7, partitions=12)
    world.join("g_first")
    for step in range(1000):
        world.run_until(world.now + world.dice.choice([0.01, 0.1, 1.0, 3.0]))
        living = world.living
        kind = world.dice.choice(["join", "leave", "kill"])
        if kind == "join" and len(living) < 12:
            world.join(f"g_{step}", world.dice.randint(1, 3))
        elif len(living) > 1:
            member = world.dice.choice(living)
            member.kill() if kind == "kill" else member.leave()
    world.run_until(world.now + 6 * SESSION_TIMEOUT)
    assert_sound(world)
    assert world.is_settled()


def test_two_hundred_members_that_join_within_a_second() -> None:
    world = World(1, partitions=200)
    for number in range(200):
        world.after(world.dice.random(), lambda number=number: world.join(f"g_{number:03}"))  # type: ignore[misc]
    world.run_until(20)
    assert_sound(world)
    assert world.is_settled()
    assert max(each.machine.rebalances for each in world.members) <= 3
    assert max(each.machine.attempts for each in world.members) <= 8


def test_a_member_of_a_standing_group_is_cheap_to_add() -> None:
    world = World(2)
    first = world.join("g_a")
    world.run_until(10)
    second = world.join("g_b")
    world.run_until(11)
    assert world.is_settled(), "at once: nobody waits for a storm that is not there"
    assert first.machine.rebalances <= 3
    assert second.machine.rebalances <= 2
    kept = [tp for tp in first.reading if tp.partition < 4]
    assert len(kept) == 4


def test_a_watch_that_never_fires_is_made_up_for_by_the_next_look() -> None:
    world = World(5)
    first = world.join("g_a")
    world.run_until(10)
    first.watch_fired = lambda path: None  # type: ignore[method-assign]
    second = world.join("g_b")
    world.run_until(20)
    assert (len(first.reading), len(second.reading)) == (8, 0), "it was told nothing"
    world.run_until(10 + 30 + 1)
    assert_sound(world)
    assert world.is_settled()


def calls_in_each_poll(machine: LegacyMember) -> list[int]:
    """Grows with each poll: the calls of functions in it, which no busy machine makes more."""
    poll, counts = machine.poll, []

    def counted(now: float) -> Step | None:
        before, calls = sys.getprofile(), 0

        def count(frame: object, event: str, argument: object) -> None:
            nonlocal calls
            calls += event in ("call", "c_call")

        sys.setprofile(count)
        try:
            return poll(now)
        finally:
            sys.setprofile(before)
            counts.append(calls)

    machine.poll = counted  # type: ignore[method-assign]
    return counts


def most_calls(members: int) -> int:
    """In one turn of the event loop of a member that joins so many others."""
    world = World(6, partitions=members)
    for number in range(members - 1):
        profile = Profile(group=GROUP, member=f"g_{number:03}", topics={TOPIC: 1})
        world.server.create(paths.consumer_id(GROUP, profile.member), profile.registration(0).encode())
    late = world.join("g_late")
    counts = calls_in_each_poll(late.machine)
    world.run_until(5)
    assert late.machine.state is State.SETTLED
    assert len(late.reading) == 1
    return max(counts)


def test_no_turn_among_two_hundred_members_is_much_work() -> None:
    """A call takes 0.1 to 1 us: the event loop stands still for less than 50 ms."""
    fewer, more = most_calls(100), most_calls(200)
    print(f"calls in the longest turn: {fewer} among 100 members, {more} among 200")
    assert more < 50_000
    assert more < 2.5 * fewer, "in proportion to the members"


def test_a_frozen_member_hands_out_nothing_when_it_wakes() -> None:
    world = World(3)
    first, second = world.join("g_a"), world.join("g_b")
    world.run_until(10)
    first.is_frozen = True
    world.run_until(10 + 2 * SESSION_TIMEOUT)
    assert len(second.reading) == 8
    assert first.reading, "it has not heard of its loss"
    first.is_frozen = False
    assert first.hands_out() == set()
    first.thaw()
    world.run_until(world.now + 3)
    assert_sound(world)
    assert world.is_settled()


def test_a_name_that_is_taken_is_told_and_waited_for() -> None:
    world = World(4)
    world.join("g_other")
    first = world.join("g_a")
    world.run_until(5)
    twin = SimulatedMember(world, "g_a")
    twin.tick()
    world.run_until(6 + SESSION_TIMEOUT)
    assert "another session has the name 'g_a'" in str(twin.machine.trouble)
    world.run_until(20 + SESSION_TIMEOUT)
    assert twin.machine.failure is not None
    assert not twin.reading
    assert first.reading
    first.leave()
    world.members.append(twin)
    world.run_until(world.now + 3)
    assert world.is_settled()
    assert twin.machine.failure is None
