"""Every assignor: each partition once, to somebody who wants it; even; the same each time; sticky ones stay put."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka08.group.assignors import ASSIGNORS, Assignment, GroupMember, TopicPartition
from pykafka08.group.assignors.user_data import decode_generation, decode_sticky, encode_generation, encode_sticky

TOPICS = ("a", "b", "c", "d")
STICKY = ("sticky", "cooperative-sticky")

counts = st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 9), min_size=1)
subscriptions = st.lists(st.frozensets(st.sampled_from(TOPICS), min_size=1), min_size=1, max_size=6)


def group(*topics: frozenset[str]) -> list[GroupMember]:
    return [GroupMember(f"m{number}", wanted) for number, wanted in enumerate(topics)]


def holding(name: str, member: GroupMember, held: Sequence[TopicPartition], generation: int) -> GroupMember:
    """The member as it joins after it was given ``held``."""
    assignor = ASSIGNORS[name]
    user_data = assignor.user_data(held, generation)
    owned = frozenset(held) if assignor.is_cooperative else frozenset()
    return member._replace(owned=owned, generation=generation if owned else -1, user_data=user_data)


def settle(name: str, members: list[GroupMember], partitions: Mapping[str, int], generation: int) -> Assignment:
    """Assign until nothing changes hands any more, as a cooperative group does; eager ones are done at once."""
    for step in range(3):
        assignment = ASSIGNORS[name].assign(members, partitions)
        members = [holding(name, each, sorted(set(assignment[each.member_id])), generation + step) for each in members]
        if sum(map(len, assignment.values())) == len(wanted_partitions(members, partitions)):
            return assignment
    raise AssertionError("partitions are still without an owner after two more rounds")


def wanted_partitions(members: Sequence[GroupMember], partitions: Mapping[str, int]) -> set[TopicPartition]:
    wanted = {topic for member in members for topic in member.topics}
    return {TopicPartition(topic, n) for topic, count in partitions.items() if topic in wanted for n in range(count)}


def check_whole(members: Sequence[GroupMember], partitions: Mapping[str, int], assignment: Assignment) -> None:
    assert set(assignment) == {member.member_id for member in members}
    given_out = [tp for mine in assignment.values() for tp in mine]
    assert len(given_out) == len(set(given_out))
    assert set(given_out) == wanted_partitions(members, partitions)
    for member in members:
        assert {tp.topic for tp in assignment[member.member_id]} <= member.topics


def check_even(members: Sequence[GroupMember], assignment: Assignment) -> None:
    """Nobody could take a partition from somebody who has two more."""
    for poor in members:
        for rich in assignment.values():
            if len(rich) >= len(assignment[poor.member_id]) + 2:
                assert not {tp.topic for tp in rich} & poor.topics


@pytest.mark.parametrize("name", ASSIGNORS)
@given(wanted=subscriptions, partitions=counts)
def test_every_partition_has_one_owner_who_wants_it(
    name: str, wanted: list[frozenset[str]], partitions: dict[str, int]
) -> None:
    members = group(*wanted)
    assignment = ASSIGNORS[name].assign(members, partitions)
    check_whole(members, partitions, assignment)
    assert ASSIGNORS[name].assign(members[::-1], dict(reversed(partitions.items()))) == assignment


@pytest.mark.parametrize("name", STICKY)
@given(wanted=subscriptions, partitions=counts)
def test_sticky_ones_are_even(name: str, wanted: list[frozenset[str]], partitions: dict[str, int]) -> None:
    members = group(*wanted)
    check_even(members, ASSIGNORS[name].assign(members, partitions))


@pytest.mark.parametrize("name", STICKY)
@given(wanted=subscriptions, partitions=counts, later=subscriptions, grown=counts)
def test_sticky_ones_are_whole_and_even_after_any_change(
    name: str,
    wanted: list[frozenset[str]],
    partitions: dict[str, int],
    later: list[frozenset[str]],
    grown: dict[str, int],
) -> None:
    before = ASSIGNORS[name].assign(group(*wanted), partitions)
    members = [holding(name, each, before.get(each.member_id, []), 1) for each in group(*later)]
    assignment = settle(name, members, grown, 2)
    check_whole(members, grown, assignment)
    check_even(members, assignment)


@pytest.mark.parametrize("name", STICKY)
@given(wanted=subscriptions, partitions=counts)
def test_nothing_moves_when_nothing_changes(
    name: str, wanted: list[frozenset[str]], partitions: dict[str, int]
) -> None:
    members = group(*wanted)
    before = ASSIGNORS[name].assign(members, partitions)
    again = [holding(name, each, before[each.member_id], 1) for each in members]
    assert ASSIGNORS[name].assign(again, partitions) == before


@pytest.mark.parametrize("name", STICKY)
@given(size=st.integers(1, 8), count=st.integers(0, 40), change=st.sampled_from([-1, 1]))
def test_a_member_that_comes_or_goes_moves_no_more_than_it_must(name: str, size: int, count: int, change: int) -> None:
    topics = frozenset("a")
    before = ASSIGNORS[name].assign(group(*[topics] * size), {"a": count})
    members = [holding(name, m, before.get(m.member_id, []), 1) for m in group(*[topics] * max(1, size + change))]
    after = settle(name, members, {"a": count}, 2)
    stayed = sum(len(set(after.get(member_id, [])) & set(mine)) for member_id, mine in before.items())
    share = -(-count // len(members))
    left_behind = sum(len(mine) for member_id, mine in before.items() if member_id not in after)
    above = sum(max(0, len(mine) - share) for member_id, mine in before.items() if member_id in after)
    new = len(after.get(f"m{size}", [])) if change > 0 else 0
    assert count - stayed == max(left_behind + above, new if change > 0 else 0)


@pytest.mark.parametrize("name", STICKY)
def test_the_claim_of_the_higher_generation_counts(name: str) -> None:
    topics = frozenset("a")
    all_of_it = [TopicPartition("a", n) for n in range(4)]
    zombie = holding(name, GroupMember("m0", topics), all_of_it[:2], 3)
    others = [
        holding(name, GroupMember("m1", topics), all_of_it[:2], 5),
        holding(name, GroupMember("m2", topics), all_of_it[2:3], 5),
    ]
    assignment = ASSIGNORS[name].assign([zombie, *others], {"a": 4})
    assert all_of_it[2] in assignment["m2"]
    assert set(assignment["m0"]).isdisjoint(all_of_it[:2])
    settled = settle(name, [zombie._replace(owned=frozenset(), user_data=None), *others], {"a": 4}, 6)
    assert len(set(settled["m1"]) & set(all_of_it[:2])) == 2


@pytest.mark.parametrize("name", STICKY)
def test_equal_claims_contradict_each_other(name: str) -> None:
    tp = TopicPartition("a", 0)
    members = [holding(name, each, [tp], 5) for each in group(frozenset("a"), frozenset("a"))]
    assignment = ASSIGNORS[name].assign(members, {"a": 1})
    given_out = [each for mine in assignment.values() for each in mine]
    assert given_out == ([] if name == "cooperative-sticky" else [tp])


def test_a_cooperative_member_gets_nothing_that_another_still_owns() -> None:
    owner, newcomer = group(frozenset("a"), frozenset("a"))
    held = [TopicPartition("a", n) for n in range(4)]
    members = [holding("cooperative-sticky", owner, held, 1), newcomer]
    assert ASSIGNORS["cooperative-sticky"].assign(members, {"a": 4}) == {"m0": held[:2], "m1": []}
    members[0] = holding("cooperative-sticky", owner, held[:2], 2)
    assert ASSIGNORS["cooperative-sticky"].assign(members, {"a": 4}) == {"m0": held[:2], "m1": held[2:]}


def test_chains_of_moves_make_loads_even() -> None:
    """x has too much of a, y of what x could give to it, z nothing: one partition moves by way of y."""
    x, y, z = frozenset("a"), frozenset("ab"), frozenset("b")
    held = {
        "m0": [TopicPartition("a", n) for n in range(3)],
        "m1": [TopicPartition("b", n) for n in range(2)],
    }
    members = [holding("sticky", each, held.get(each.member_id, []), 1) for each in group(x, y, z)]
    assignment = ASSIGNORS["sticky"].assign(members, {"a": 3, "b": 2})
    assert sorted(map(len, assignment.values())) == [1, 2, 2]


def test_range_gives_static_members_their_place_by_instance() -> None:
    topics = frozenset("a")
    members = [GroupMember("z", topics, instance_id="1"), GroupMember("a", topics), GroupMember("b", topics)]
    assignment = ASSIGNORS["range"].assign(members, {"a": 4})
    assert {member: [tp.partition for tp in mine] for member, mine in assignment.items()} == {
        "z": [0, 1], "a": [2], "b": [3],
    }  # fmt: skip


def test_a_group_without_members_or_partitions() -> None:
    for assignor in ASSIGNORS.values():
        assert assignor.assign([], {"a": 3}) == {}
        assert assignor.assign(group(frozenset("a")), {}) == {"m0": []}


@given(
    owned=st.frozensets(st.builds(TopicPartition, st.text(max_size=5), st.integers(0, 99))),
    generation=st.integers(0, 9),
)
def test_user_data_of_sticky(owned: frozenset[TopicPartition], generation: int) -> None:
    assert decode_sticky(encode_sticky(owned, generation)) == (owned, generation)
    assert decode_sticky(encode_sticky(owned, generation, version=0)) == (owned, -1)
    assert decode_generation(encode_generation(generation)) == generation


def test_user_data_that_says_nothing() -> None:
    assert encode_sticky([], -1) is None
    for data in (None, b"", b"\0", b"\xff" * 7):
        assert decode_sticky(data) == (frozenset(), -1)
    assert decode_generation(None) == -1
    assert decode_generation(b"\0\0") == -1
