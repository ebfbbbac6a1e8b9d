"""The checker itself: nothing in a good history, and in each bad one exactly what was put there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

import pytest

from pykafka08.records.record import TopicPartition
from tests.faults.checker import Counts, check
from tests.faults.history import (
    Acked,
    Assigned,
    Committed,
    Drained,
    Failed,
    Fault,
    Healed,
    History,
    Place,
    Polled,
    Released,
    Sent,
    Sought,
)

P0 = TopicPartition("t", 0)
P1 = TopicPartition("t", 1)


class Script:
    """A history written by hand; every event is one second after the one before."""

    def __init__(self) -> None:
        self.time = 0.0
        self.history = History(lambda: self.time)

    def note(self, *events: object) -> None:
        for event in events:
            self.time += 1
            self.history.note(event)  # type: ignore[arg-type]

    def send(self, value: str, offset: int, *, place: Place = P0, producer: str = "p") -> None:
        self.note(Sent(producer, place, value), Acked(value, offset))

    def poll(self, member: str, *records: tuple[int, str], place: Place = P0, group: str = "g") -> None:
        self.note(Polled(group, member, place, records))

    def counts(self) -> Counts:
        return check(self.history).counts


def written(values: str = "abc") -> Script:
    script = Script()
    for offset, value in enumerate(values):
        script.send(value, offset)
    return script


def good() -> Script:
    """All that may lawfully happen: gaps, retries, handovers, a death, aborted and doubtful records, seeks."""
    script = written("abc")
    script.send("A", 0, place=P1)
    script.note(Sent("p", P0, "refused"), Failed("refused", is_definite=True))
    script.note(Sent("p", P0, "doubtful, written"), Failed("doubtful, written"))
    script.note(Sent("p", P0, "doubtful, lost"), Failed("doubtful, lost"))
    script.note(Sent("p", P0, "aborted"), Acked("aborted", 5), Failed("aborted", is_definite=True))
    script.send("d", 7)  # 6 is a marker
    script.note(Assigned("g", "one", [P0, P1]))
    script.poll("one", (0, "a"), (1, "b"))
    script.poll("one", (0, "A"), place=P1)
    script.note(Committed("g", P0, 1))
    script.note(Fault("one is killed"), Released("g", "one", [P0, P1]), Healed("one is killed"))
    script.note(Assigned("g", "two", [P0]), Assigned("g", "three", [P1]))
    script.poll("two", (1, "b"), (2, "c"))
    script.poll("three", (0, "A"), place=P1)
    script.note(Committed("g", P0, 3), Committed("g", P1, 1))
    script.note(Released("g", "two", [P0], is_clean=True), Assigned("g", "three", [P0]))
    script.poll("three", (4, "doubtful, written"), (7, "d"))
    script.note(Drained("g", {P0: 8, P1: 1}))
    script.note(Sought("g", "three", P0))
    script.poll("three", (1, "b"))
    script.note(Committed("g", P0, 2))
    for offset, value in ((0, "a"), (1, "b"), (2, "c"), (4, "doubtful, written"), (7, "d")):
        script.poll("alone", (offset, value), group="alone")  # a reader without a group
    script.note(Sent("p", P0, "no offset told"), Acked("no offset told", -1))
    return script


def test_a_good_history_has_no_anomalies() -> None:
    report = check(good().history)
    assert report.counts == Counts()
    assert report.is_clean
    assert report.examples == {}
    assert check(Script().history).is_clean


def test_a_member_that_learns_late_that_its_session_was_over_is_no_second_owner() -> None:
    script = written("ab")
    script.note(Assigned("g", "one", [P0]))
    script.poll("one", (0, "a"))
    over_at = script.time + 0.5
    script.note(Assigned("g", "two", [P0]))
    script.poll("two", (0, "a"), (1, "b"))
    assert script.counts().dual_owner == 1
    script.history.note(Released("g", "one", [P0]), over_at)
    assert script.counts() == Counts()
    script.poll("one", (1, "b"))
    assert script.counts().dual_owner == 1


def lost_write() -> Script:
    script = written("abc")
    script.note(Assigned("g", "one", [P0]))
    script.poll("one", (1, "b"), (2, "c"))
    return script


def lost_write_at_the_end() -> Script:
    script = written("ab")
    script.poll("one", (0, "a"), group="one")
    script.note(Drained("one", {P0: 2}))
    return script


def lost_write_without_an_offset() -> Script:
    script = written("a")
    script.note(Sent("p", P0, "b"), Acked("b", -1))
    script.poll("one", (0, "a"), group="one")
    script.note(Drained("one", {P0: 1}))
    return script


def duplicate() -> Script:
    script = written("a")
    script.poll("one", (0, "a"), (1, "a"))
    return script


def inconsistent_offset() -> Script:
    script = written("a")
    script.poll("one", (0, "a"), group="g")
    script.poll("two", (0, "somebody else's"), group="h")
    return script


def aborted_read() -> Script:
    script = Script()
    script.note(Sent("p", P0, "x"), Acked("x", 0), Failed("x", is_definite=True))
    script.poll("one", (0, "x"))
    return script


def poll_skip() -> Script:
    script = written("abc")
    script.note(Assigned("g", "one", [P0]))
    script.poll("one", (0, "a"), (2, "c"))
    script.note(Released("g", "one", [P0]), Assigned("g", "two", [P0]))
    script.poll("two", (0, "a"), (1, "b"), (2, "c"))
    return script


def nonmonotonic_poll() -> Script:
    script = written("abc")
    script.poll("one", (0, "a"), (1, "b"))
    script.poll("one", (1, "b"))
    script.poll("one", (2, "c"))
    return script


def nonmonotonic_send() -> Script:
    script = Script()
    script.note(Sent("p", P0, "a"), Sent("q", P0, "x"), Sent("p", P0, "b"))
    script.note(Acked("b", 0), Acked("x", 1), Acked("a", 2))
    return script


def nonmonotonic_send_without_offsets() -> Script:
    script = Script()
    script.note(Sent("p", P0, "a"), Sent("p", P0, "b"), Acked("a", -1), Acked("b", -1))
    script.poll("one", (0, "b"), (1, "a"))
    return script


def commit_regress() -> Script:
    script = written("ab")
    script.note(Committed("g", P0, 2), Committed("g", P0, 1), Committed("g", P0, 2))
    return script


def double_delivery_of_committed() -> Script:
    script = written("ab")
    script.note(Assigned("g", "one", [P0]))
    script.poll("one", (0, "a"), (1, "b"))
    script.note(Committed("g", P0, 1), Released("g", "one", [P0]), Assigned("g", "two", [P0]))
    script.poll("two", (0, "a"), (1, "b"))
    return script


def double_delivery_after_a_clean_leave() -> Script:
    script = written("a")
    script.note(Assigned("g", "one", [P0]))
    script.poll("one", (0, "a"))
    script.note(Released("g", "one", [P0], is_clean=True), Assigned("g", "two", [P0]))
    script.poll("two", (0, "a"))
    return script


def dual_owner() -> Script:
    script = written("ab")
    script.note(Assigned("g", "one", [P0]), Assigned("g", "two", [P0]))
    script.poll("two", (0, "a"), (1, "b"))
    return script


def dual_owner_after_a_revocation() -> Script:
    script = written("ab")
    script.note(Assigned("g", "one", [P0]))
    script.poll("one", (0, "a"))
    script.note(Released("g", "one", [P0]), Assigned("g", "two", [P0]))
    script.poll("two", (0, "a"), (1, "b"))
    script.poll("one", (1, "b"))
    return script


def unaccounted() -> Script:
    script = written("a")
    script.note(Sent("p", P0, "b"))
    return script


def stuck() -> Script:
    script = written("a")
    script.note(Fault("broker 1 is killed"))
    script.time += 100  # broken, and nothing gets on: that is allowed
    script.note(Healed("broker 1 is back"))
    script.time += 20
    script.send("b", 1)
    return script


def stuck_at_the_end() -> Script:
    script = written("a")
    script.note(Sent("p", P0, "b"))
    script.time += 20
    script.note(Failed("b"))
    return script


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("lost_write", lost_write),
        ("lost_write", lost_write_at_the_end),
        ("lost_write", lost_write_without_an_offset),
        ("duplicate", duplicate),
        ("inconsistent_offset", inconsistent_offset),
        ("aborted_read", aborted_read),
        ("poll_skip", poll_skip),
        ("nonmonotonic_poll", nonmonotonic_poll),
        ("nonmonotonic_send", nonmonotonic_send),
        ("nonmonotonic_send", nonmonotonic_send_without_offsets),
        ("commit_regress", commit_regress),
        ("double_delivery", double_delivery_of_committed),
        ("double_delivery", double_delivery_after_a_clean_leave),
        ("dual_owner", dual_owner),
        ("dual_owner", dual_owner_after_a_revocation),
        ("unaccounted", unaccounted),
        ("stuck", stuck),
        ("stuck", stuck_at_the_end),
    ],
    ids=lambda each: each.__name__ if callable(each) else "",
)
def test_a_bad_history_has_exactly_its_anomaly(name: str, make: Callable[[], Script]) -> None:
    report = check(make().history)
    assert asdict(report.counts) == {**asdict(Counts()), name: 1}
    assert not report.is_clean
    assert [*report.examples] == [name]
    assert f"{name} 1" in str(report)


def test_every_count_has_a_bad_history() -> None:
    marks = test_a_bad_history_has_exactly_its_anomaly.pytestmark  # type: ignore[attr-defined]
    assert {name for name, _ in marks[0].args[1]} == set(asdict(Counts()))


def test_a_value_is_sent_once() -> None:
    script = written("a")
    script.send("a", 1)
    with pytest.raises(ValueError, match="twice"):
        script.counts()


def test_examples_are_few() -> None:
    script = Script()
    for number in range(100):
        script.note(Sent("p", P0, number))
    report = check(script.history)
    assert report.counts.unaccounted == 100
    assert len(report.examples["unaccounted"]) == 5


def test_what_was_broken_last() -> None:
    script = Script()
    assert script.history.last_fault == "nothing"
    script.note(Fault("a"), Healed("b"), Sent("p", P0, 1))
    assert script.history.last_fault == "b"
