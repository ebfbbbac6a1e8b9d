"""What happened in a run, in the order in which it was seen: the input of `checker`.

A workload notes an event where it learns of it: `Sent` before the call, `Acked` or `Failed` after it, `Polled` when it
has a record in hand, `Assigned` and `Released` in its rebalance listener. Who is killed is noted as having released
everything, at the moment of the killing; who stood still beyond the end of its session, at that end (`ownership`).
Values stand for records: each is sent once in a run.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from pykafka08.records.record import TopicPartition

__all__ = [
    "Acked",
    "Assigned",
    "Committed",
    "Drained",
    "Event",
    "Failed",
    "Fault",
    "Healed",
    "History",
    "Place",
    "Polled",
    "Released",
    "Sent",
    "Sought",
]

Place: TypeAlias = TopicPartition


class Sent(NamedTuple):
    """A record was handed to a producer."""

    producer: str
    place: Place
    value: Hashable


class Acked(NamedTuple):
    """It was acknowledged; the offset is -1 where the broker could not tell it."""

    value: Hashable
    offset: int


class Failed(NamedTuple):
    """Its send was raised, or its transaction did not commit; a later one overrules an `Acked`.

    `is_definite`: it is certain that nobody may read it.  `why` is shown if somebody does.
    """

    value: Hashable
    is_definite: bool = False
    why: str = ""


class Polled(NamedTuple):
    """A member has records of one partition, (offset, value), in hand; without a group, both have one name."""

    group: str
    member: str
    place: Place
    records: Sequence[tuple[int, Hashable]]


class Assigned(NamedTuple):
    """The member owns these from now on."""

    group: str
    member: str
    places: Iterable[Place]


class Released(NamedTuple):
    """The member owns these no more; `is_clean`: it had committed all that it was given of them."""

    group: str
    member: str
    places: Iterable[Place]
    is_clean: bool = False


class Committed(NamedTuple):
    """The group's offset of a partition, as a broker acknowledged or told it."""

    group: str
    place: Place
    offset: int


class Sought(NamedTuple):
    """The user moved a position on purpose, and may commit a lower offset."""

    group: str
    member: str
    place: Place


class Drained(NamedTuple):
    """The group says that it has read every record before these offsets."""

    group: str
    ends: Mapping[Place, int]


class Fault(NamedTuple):
    """Something was broken on purpose."""

    what: str


class Healed(NamedTuple):
    """It works again."""

    what: str


Event: TypeAlias = (
    "Sent | Acked | Failed | Polled | Assigned | Released | Committed | Sought | Drained | Fault | Healed"
)


class History:
    """Events with their times; `now` is a clock in seconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.events: list[tuple[float, Event]] = []

    def note(self, event: Event, at: float | None = None) -> None:
        """`at`: what happened before now, and is learned now, gets its place among the others."""
        insort(self.events, (self._now() if at is None else at, event), key=lambda each: each[0])

    @property
    def last_fault(self) -> str:
        """What was broken or healed last."""
        return next((event.what for _, event in reversed(self.events) if isinstance(event, Fault | Healed)), "nothing")
