"""Where the partitions of a new topic go: as Kafka's AdminUtils puts them."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka08.errors import ConfigError
from pykafka08.zookeeper.admin.placement import in_turns_over_racks, place, wrong_assignment


def test_as_the_comment_in_kafkas_source_shows_it() -> None:
    """10 partitions, 3 replicas, 5 brokers, from broker 0 with shift 0, as its table has them."""
    assert place(range(5), 10, 3, start=0, shift=0) == {
        0: [0, 1, 2],
        1: [1, 2, 3],
        2: [2, 3, 4],
        3: [3, 4, 0],
        4: [4, 0, 1],
        5: [0, 2, 3],
        6: [1, 3, 4],
        7: [2, 4, 0],
        8: [3, 0, 1],
        9: [4, 1, 2],
    }


def test_added_partitions_go_on_where_the_old_ones_end() -> None:
    whole = place(range(5), 10, 2, start=0, shift=0)
    assert place(range(5), 5, 2, start=0, shift=0, first_partition=5) == {
        number: ids for number, ids in whole.items() if number > 4
    }


@given(
    brokers=st.sets(st.integers(0, 1000), min_size=1, max_size=12),
    count=st.integers(1, 40),
    first=st.integers(0, 20),
    data=st.data(),
)
def test_each_partition_has_its_replicas_and_leaders_are_spread(
    brokers: set[int], count: int, first: int, data: st.DataObject
) -> None:
    size = len(brokers)
    replicas = data.draw(st.integers(1, size))
    start, shift = data.draw(st.integers(0, size - 1)), data.draw(st.integers(0, size - 1))
    racks = data.draw(st.none() | st.fixed_dictionaries({each: st.sampled_from("abc") for each in sorted(brokers)}))
    placed = place(sorted(brokers), count, replicas, start=start, shift=shift, first_partition=first, racks=racks)
    assert list(placed) == list(range(first, first + count))
    assert wrong_assignment(placed, sorted(brokers)) is None
    assert all(len(ids) == replicas for ids in placed.values())
    leaders = Counter(ids[0] for ids in placed.values())
    assert max(leaders.values()) - min(leaders[each] for each in brokers) <= 1
    if racks:
        for ids in placed.values():
            assert len({racks[each] for each in ids}) == min(replicas, len(set(racks.values())))


def test_racks_take_turns() -> None:
    assert in_turns_over_racks({1: "b", 2: "b", 3: "a", 4: "a", 5: "a"}) == [3, 1, 4, 2, 5]


def test_too_few_brokers() -> None:
    with pytest.raises(ConfigError, match="alive are 2"):
        place([1, 2], 1, 3, start=0, shift=0)
    with pytest.raises(ConfigError, match="alive are 0"):
        place([], 1, 1, start=0, shift=0)
