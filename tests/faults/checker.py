"""Counts what must never be in a history. Pure: no client, no broker, no clock.

The names are Jepsen's where it has one; what each means stands at `Counts`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, fields
from typing import Any

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

__all__ = ["STUCK_AFTER_S", "Counts", "Report", "check"]

STUCK_AFTER_S = 10.0
EXAMPLES = 5


@dataclass
class Counts:
    """How often; all zero in a good history."""

    lost_write: int = 0
    """Acknowledged, a group read beyond it, and did not read it."""
    duplicate: int = 0
    """A value at one more place or offset."""
    inconsistent_offset: int = 0
    """An offset with one more value."""
    aborted_read: int = 0
    """A value was read of which it was certain that nobody may."""
    poll_skip: int = 0
    """Two records handed out one after the other within an assignment, and a known one between them left out."""
    nonmonotonic_poll: int = 0
    """A record handed out after a later one, or twice, within an assignment."""
    nonmonotonic_send: int = 0
    """Two records of one producer and partition, in the log in another order than they were sent."""
    commit_regress: int = 0
    """A committed offset lower than the one before, without a seek."""
    double_delivery: int = 0
    """A record handed out again in a group, though committed or cleanly released before this assignment."""
    dual_owner: int = 0
    """A partition given to a member while another had it, or a record handed out by one that had it no more."""
    unaccounted: int = 0
    """A record neither acknowledged nor raised."""
    stuck: int = 0
    """A pause in which nothing got on, though nothing was broken any more."""


@dataclass
class Report:
    """The counts, and a few examples of each in words."""

    counts: Counts = field(default_factory=Counts)
    examples: dict[str, list[str]] = field(default_factory=dict)

    @property
    def is_clean(self) -> bool:
        return self.counts == Counts()

    def found(self, name: str, text: str) -> None:
        setattr(self.counts, name, getattr(self.counts, name) + 1)
        examples = self.examples.setdefault(name, [])
        if len(examples) < EXAMPLES:
            examples.append(text)

    def __str__(self) -> str:
        lines = [f"{each.name} {getattr(self.counts, each.name)}" for each in fields(Counts)]
        return ", ".join(lines) + "".join(
            f"\n  {name}: {text}" for name in self.examples for text in self.examples[name]
        )


class _Holding:
    """One assignment of a partition to a member: what it was given in it."""

    def __init__(self, group: str, member: str, floor: int) -> None:
        self.group = group
        self.member = member
        self.floor = floor
        self.last = -1


class _Reading:
    """A group and a partition."""

    def __init__(self) -> None:
        self.values: dict[Hashable, int] = {}
        self.offsets: set[int] = set()
        self.read_below = 0
        self.due_without_offset: set[Hashable] = set()
        self.committed = -1
        self.clean_floor = 0
        self.holdings: dict[str, _Holding] = {}
        self.has_owners = False
        self.gaps: list[tuple[str, int, int]] = []


class _Checker:
    def __init__(self, history: History, stuck_after: float) -> None:
        self._events = history.events
        self._stuck_after = stuck_after
        self.report = Report()
        self._sent: dict[Hashable, Sent] = {}
        self._acked: dict[Hashable, int] = {}
        self._without_offset: set[Hashable] = set()
        self._failed: dict[Hashable, Failed] = {}
        self._committed_at: defaultdict[Place, list[Hashable]] = defaultdict(list)
        self._readings: defaultdict[tuple[str, Place], _Reading] = defaultdict(_Reading)
        self._values_at: defaultdict[Place, dict[int, Hashable]] = defaultdict(dict)
        self._place_of: dict[Hashable, tuple[Place, int]] = {}

    def run(self) -> Report:
        performed: dict[type, Callable[[Any], None]] = {
            Sent: self._on_sent,
            Acked: self._on_acked,
            Failed: self._on_failed,
            Polled: self._on_polled,
            Assigned: self._on_assigned,
            Released: self._on_released,
            Committed: self._on_committed,
            Sought: self._on_sought,
            Drained: self._on_drained,
        }
        for _, event in self._events:
            perform = performed.get(type(event))
            if perform is not None:
                perform(event)
        self._judge_outcomes()
        self._judge_order_of_sends()
        for (group, place), reading in self._readings.items():
            self._judge_reading(group, place, reading)
        self._judge_progress()
        return self.report

    # -- sends

    def _on_sent(self, event: Sent) -> None:
        if event.value in self._sent:
            raise ValueError(f"{event.value!r} was sent twice: values must be told apart")
        self._sent[event.value] = event

    def _on_acked(self, event: Acked) -> None:
        self._acked[event.value] = event.offset
        sent = self._sent[event.value]
        if event.offset < 0:
            self._without_offset.add(event.value)
        else:
            self._stands_at(sent.place, event.offset, event.value)

    def _on_failed(self, event: Failed) -> None:
        self._failed[event.value] = event

    def _stands_at(self, place: Place, offset: int, value: Hashable) -> None:
        values = self._values_at[place]
        before = values.setdefault(offset, value)
        if before != value:
            self.report.found("inconsistent_offset", f"{place} {offset}: {before!r} and {value!r}")
        first = self._place_of.setdefault(value, (place, offset))
        if first != (place, offset):
            self.report.found("duplicate", f"{value!r} at {first} and at {(place, offset)}")

    # -- polls

    def _on_polled(self, event: Polled) -> None:
        reading = self._readings[event.group, event.place]
        holding = reading.holdings.get(event.member)
        if holding is None:
            if reading.has_owners:
                self.report.found("dual_owner", f"{event.member} read {event.place} without owning it")
            holding = reading.holdings[event.member] = _Holding(event.group, event.member, 0)
        for offset, value in event.records:
            self._stands_at(event.place, offset, value)
            if offset <= holding.last:
                text = f"{event.member} got {event.place} {offset} after {holding.last}"
                self.report.found("nonmonotonic_poll", text)
            elif holding.last >= 0 and offset > holding.last + 1:
                reading.gaps.append((event.member, holding.last, offset))
            if offset < holding.floor and offset in reading.offsets:
                text = f"{event.member} got {event.place} {offset}, done up to {holding.floor}"
                self.report.found("double_delivery", text)
            holding.last = max(holding.last, offset)
            reading.offsets.add(offset)
            reading.values[value] = offset
            reading.read_below = max(reading.read_below, offset)

    def _on_drained(self, event: Drained) -> None:
        for place, end in event.ends.items():
            reading = self._readings[event.group, place]
            reading.read_below = max(reading.read_below, end)
            reading.due_without_offset |= self._without_offset

    # -- groups

    def _on_assigned(self, event: Assigned) -> None:
        for place in event.places:
            reading = self._readings[event.group, place]
            for rival in reading.holdings:
                if rival != event.member:
                    self.report.found("dual_owner", f"{place} was given to {event.member}, {rival} had it")
            floor = max(reading.committed, reading.clean_floor)
            reading.holdings[event.member] = _Holding(event.group, event.member, floor)
            reading.has_owners = True

    def _on_released(self, event: Released) -> None:
        for place in event.places:
            reading = self._readings[event.group, place]
            holding = reading.holdings.pop(event.member, None)
            if holding is not None and event.is_clean:
                reading.clean_floor = max(reading.clean_floor, holding.last + 1)

    def _on_committed(self, event: Committed) -> None:
        reading = self._readings[event.group, event.place]
        if event.offset < reading.committed:
            text = f"{event.group} {event.place}: {event.offset} after {reading.committed}"
            self.report.found("commit_regress", text)
        reading.committed = event.offset

    def _on_sought(self, event: Sought) -> None:
        reading = self._readings[event.group, event.place]
        reading.committed, reading.clean_floor = -1, 0
        holding = reading.holdings.get(event.member)
        if holding is not None:
            holding.last, holding.floor = -1, 0

    # -- at the end

    def _judge_outcomes(self) -> None:
        for value, sent in self._sent.items():
            if value in self._acked and value not in self._failed:
                self._committed_at[sent.place].append(value)
            elif value not in self._failed:
                self.report.found("unaccounted", repr(value))
        read = {value for reading in self._readings.values() for value in reading.values}
        for value, failed in self._failed.items():
            if failed.is_definite and value in read:
                self.report.found("aborted_read", f"{value!r} {failed.why}".rstrip())

    def _judge_order_of_sends(self) -> None:
        """What is in the log in doubt counts too, where it was read."""
        last: dict[tuple[str, Place], tuple[int, Hashable]] = {}
        for value, sent in self._sent.items():
            place, offset = self._place_of.get(value, (sent.place, -1))
            if offset < 0 or place != sent.place:
                continue
            key = (sent.producer, place)
            before, other = last.get(key, (-1, None))
            if offset < before:
                text = f"{place}: {value!r} at {offset} was sent after {other!r} at {before}"
                self.report.found("nonmonotonic_send", text)
            last[key] = max((before, other), (offset, value), key=lambda each: each[0])

    def _judge_reading(self, group: str, place: Place, reading: _Reading) -> None:
        known = set(reading.offsets)
        for value in self._committed_at[place]:
            offset = self._acked[value]
            if offset >= 0:
                known.add(offset)
            is_due = offset < reading.read_below if offset >= 0 else value in reading.due_without_offset
            if is_due and value not in reading.values:
                self.report.found("lost_write", f"{value!r} at {place} {offset}, {group} read to {reading.read_below}")
        ordered = sorted(known)
        for member, before, after in reading.gaps:
            left_out = ordered[bisect_right(ordered, before) : bisect_left(ordered, after)]
            if left_out:
                text = f"{member} got {place} {after} after {before}, not {left_out[:3]}"
                self.report.found("poll_skip", text)

    def _judge_progress(self) -> None:
        if not self._events:
            return
        since = self._events[0][0]
        for at, event in self._events:
            if isinstance(event, (Fault, Healed)):
                since = at
        for at, event in self._events:
            if at >= since and isinstance(event, (Acked, Polled, Committed)):
                self._judge_pause(since, at)
                since = at
        self._judge_pause(since, self._events[-1][0])

    def _judge_pause(self, since: float, until: float) -> None:
        if until - since > self._stuck_after:
            self.report.found("stuck", f"nothing got on for {until - since:.1f} s")


def check(history: History, *, stuck_after: float = STUCK_AFTER_S) -> Report:
    """Count the anomalies of a whole run; `stuck_after` in seconds."""
    return _Checker(history, stuck_after).run()
