"""One call to commit, and what may be written of it."""

from __future__ import annotations

import pytest

from pykafka08.error_codes import ErrorCode
from pykafka08.group.commit import Commit
from pykafka08.group.requests import OffsetAndMetadata
from tests.group.world import World, parts

(PART,) = parts(0)


def commit_of(world: World, offset: int) -> Commit:
    return Commit(
        world.machine, {PART: OffsetAndMetadata(offset)}, is_member=True, topic_id=lambda _: None, now=lambda: world.now
    )


def send(commit: Commit) -> None:
    commit.sent(dict(commit.pending))


def written_after(older: Commit, newer: Commit) -> int:
    """The offset that the older one goes on with when the newer one has ended."""
    newer.leave_to(older)
    return older.pending[PART].offset


@pytest.mark.parametrize("code", [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.REBALANCE_IN_PROGRESS])
def test_a_clear_answer_says_nothing_of_the_attempt_before_it(code: ErrorCode) -> None:
    world = World.stable()
    older, newer = commit_of(world, 100), commit_of(world, 120)
    send(newer)  # the answer is lost
    send(newer)
    newer.take(PART, code, newer.membership())
    assert written_after(older, newer) == 120


def test_clear_answers_to_all_attempts_leave_no_doubt() -> None:
    world = World.stable()
    older, newer = commit_of(world, 100), commit_of(world, 120)
    for _ in range(3):
        send(newer)
        newer.take(PART, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, newer.membership())
    assert written_after(older, newer) == 100


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    ],
)
def test_an_answer_after_which_it_may_be_written(code: ErrorCode) -> None:
    world = World.stable()
    older, newer = commit_of(world, 100), commit_of(world, 120)
    send(newer)
    newer.take(PART, code, newer.membership())
    assert written_after(older, newer) == 120


def test_what_is_written_is_in_no_doubt() -> None:
    world = World.stable()
    newer = commit_of(world, 120)
    send(newer)
    send(newer)
    newer.take(PART, 0, newer.membership())
    assert (newer.pending, newer.doubtful) == ({}, {})
