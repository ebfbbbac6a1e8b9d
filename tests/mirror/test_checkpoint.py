"""What a mirror keeps in the target, and the points that it counts from."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka08.errors import MirrorError
from pykafka08.mirror.checkpoint import MOST_POINTS, Checkpoint, around, thinned
from pykafka08.mirror.copy_state import CopyState
from pykafka08.mirror.plan import TopicPlan
from pykafka08.mirror.resume import Comparison
from pykafka08.records.record import Record, TopicPartition

LARGE = 2**62
OFFSETS = st.integers(0, LARGE)
POINTS = st.lists(st.tuples(OFFSETS, OFFSETS), min_size=1, max_size=200)


@given(POINTS)
def test_it_reads_what_it_wrote_within_what_brokers_keep(points: list[tuple[int, int]]) -> None:
    ids = ("f" * 32, "0" * 32)
    kept = Checkpoint(LARGE, LARGE, "t" * 249, "c" * 22, *ids, tuple(points))
    text = kept.metadata()
    assert len(text) < 4096
    read = Checkpoint.parse(LARGE, text)
    assert read is not None
    assert (read.topic, read.cluster, read.source_id, read.target_id, read.to) == (
        kept.topic, kept.cluster, *ids, LARGE,
    )  # fmt: skip
    assert set(read.points) <= set(points)
    assert Checkpoint.parse(LARGE, read.metadata()) == read


@given(POINTS)
def test_the_first_and_the_last_point_stay(points: list[tuple[int, int]]) -> None:
    kept = thinned(points)
    assert kept[0] == min(points)
    assert kept[-1] == max(points)
    assert len(kept) <= MOST_POINTS
    assert kept == sorted(set(kept))


def test_points_are_dense_near_the_end() -> None:
    kept: list[tuple[int, int]] = []
    for number in range(10_000):
        kept = thinned([*kept, (number, number)])
    gaps = [after[0] - before[0] for before, after in itertools.pairwise(kept)]
    assert gaps[-1] == 1
    assert max(gaps[-10:]) < 40
    assert max(gaps) < 5000


def test_the_points_around_an_offset() -> None:
    points = [(0, 0), (10, 11), (20, 25)]
    assert around(points, 10) == ((10, 11), (10, 11))
    assert around(points, 15) == ((10, 11), (20, 25))
    assert around(points, 21) == ((20, 25), None)
    assert around([(5, 0)], 3) == (None, (5, 0))


@pytest.mark.parametrize("text", ["{}", "[]", "3", "by hand", '{"mirror":9,"points":[]}', '{"mirror":1,"points":[1]}'])
def test_what_others_have_committed_is_refused(text: str) -> None:
    with pytest.raises(MirrorError, match="was not committed by a mirror"):
        Checkpoint.parse(0, text)


def test_an_old_broker_keeps_no_metadata() -> None:
    assert Checkpoint.parse(7, "") is None


@pytest.mark.parametrize(
    ("copies", "copied", "repeated"),
    [("abc", 3, 0), ("ababc", 3, 2), ("abab", 2, 2), ("abcbcd", 4, 2), ("abcabcd", 4, 3), ("aab", 2, 1), ("", 0, 0)],
)
def test_runs_of_copies_may_be_there_twice(copies: str, copied: int, repeated: int) -> None:
    assert compared("abcdefg", copies) == (copied, repeated)


def test_equal_records_in_a_row_are_originals_first() -> None:
    assert compared("aaab", "aaab") == (4, 0)


def test_a_stranger_is_seen() -> None:
    with pytest.raises(ValueError, match="x"):
        compared("abc", "abx")


def compared(originals: str, copies: str) -> tuple[int, int]:
    """How many were copies, and how many repetitions."""
    left = iter([Record("t", 0, n, value=letter.encode()) for n, letter in enumerate(originals)])
    comparison, repeated = Comparison(), 0
    for letter in copies:
        content = (None, letter.encode(), ())
        if comparison.wants_original:
            comparison.original = next(left, None)
        if comparison.is_copy(content):
            continue
        if not comparison.is_repetition(content):
            raise ValueError(letter)
        repeated += 1
    return comparison.copies, repeated


def test_a_mirror_that_follows_for_days_keeps_no_more_points() -> None:
    tp = TopicPartition("t", 0)
    state = CopyState(TopicPlan("t", "t", 1, 1, None), tp, tp, None)
    for unit in range(1, 5001):
        state.is_at(state.checkpoint(unit * 10, unit * 11, [(unit * 10 - 10, unit * 11 - 10)]))
        assert len(state.points) <= MOST_POINTS
    assert state.points[-1] == (50_000, 55_000)
