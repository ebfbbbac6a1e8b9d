"""What is to be reached, as data, and whether it was.

The figures are records per second of the client process's processor time, ours over theirs, with 100-byte values; of
latencies ours over theirs, of the median round.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from benchmarks.figures import Ratio, Turn, cpu_rates, latencies, ratio_of

__all__ = ["FAILED", "LATENCY_TARGETS", "TARGETS", "Outcome", "Played", "Target", "outcomes"]

OURS = "pykafka08"
FORMS = ("pure", "compiled")


class Target(NamedTuple):
    """At least ``pure`` and ``compiled`` times the peer in the cell ``what``; ``way`` is ours."""

    what: str
    way: str
    peer: str
    pure: float
    compiled: float


class LatencyTarget(NamedTuple):
    """At most ``most`` times the peer's ``share``, a percentile, in cells whose names have ``cell``."""

    cell: str
    way: str
    peer: str
    share: str
    most: float


TARGETS = (
    Target("consume batches", "batches", "aiokafka getmany", 1.2, 4.5),
    Target("consume iterate", "iterate", "aiokafka iterate", 4, 12),
    Target("consume batches", "batches", "confluent consume", 0.8, 3),
    Target("consume values", "values", "aiokafka getmany", 5, 9),
    Target("consume arrow", "arrow", "aiokafka getmany", 5, 9),
    Target("consume values", "values", "confluent consume", 3, 6),
    Target("consume arrow", "arrow", "confluent consume", 3, 6),
    Target("produce enqueue", "enqueue", "aiokafka send", 4, 8),
    Target("produce enqueue", "enqueue", "confluent produce", 0.8, 1.5),
    Target("produce send_many", "send_many", "confluent produce", 1.7, 4),
    Target("produce send_many", "send_arrow", "confluent produce", 1.7, 4),
    Target("consume batches", "batches", "kafka_python poll", 4, 18),
    Target("consume iterate", "iterate", "kafka_python iterate", 4, 18),
    Target("consume values", "values", "kafka_python poll", 4, 18),
    Target("consume arrow", "arrow", "kafka_python poll", 4, 18),
    Target("produce enqueue", "enqueue", "kafka_python send", 4, 18),
    Target("produce send_many", "send_many", "kafka_python send", 4, 18),
    Target("produce send_many", "send_arrow", "kafka_python send", 4, 18),
)
LATENCY_TARGETS = (
    LatencyTarget("latency awaited single send", "send_one", "aiokafka send_one", "p50", 1.0),
    LatencyTarget("latency awaited single send", "send_one", "aiokafka send_one", "p99", 1.0),
    LatencyTarget("1,000 records/s", "end_to_end", "aiokafka end_to_end", "p99", 1.0),
)
OTHER_ROWS_PEER = "aiokafka"
"""Rows without a target of their own are never to be behind this one."""
OTHER_ROWS = {
    "batches": "getmany",
    "values": "getmany",
    "arrow": "getmany",
    "iterate": "iterate",
    "enqueue": "send",
    "send": "send_and_wait",
    "send_many": "send_batch",
    "send_arrow": "send_batch",
}
"""Ways of ours, and those of the peer that they are held against."""
FAILED = "FAILED"


class Outcome(NamedTuple):
    """One target in one form on one server.

    ``measured`` is None where it was not played, and ``fault`` says why if it should have been, or was not to its end.
    """

    cell: str
    form: str
    way: str
    peer: str
    unit: str
    wanted: float
    at_most: bool
    measured: Ratio | None
    fault: str = ""

    @property
    def mark(self) -> str:
        if self.fault:
            return FAILED
        if self.measured is None:
            return "not measured"
        met = self.measured.median <= self.wanted if self.at_most else self.measured.median >= self.wanted
        return "met" if met else "MISSED"

    @property
    def wanted_text(self) -> str:
        return f"{'<=' if self.at_most else '>='} {self.wanted:g}x"


class Played(NamedTuple):
    """A cell that was played: who was to, the turns of each, and who has none, or no more, and why."""

    players: Sequence[str]
    turns: Mapping[str, Sequence[Turn]]
    faults: Mapping[str, str] = MappingProxyType({})

    def fault_of(self, ours: str, theirs: str) -> str:
        """Why there is no whole comparison of two that should have one; empty if there is."""
        told = [f"{name}: {self.faults[name]}" for name in (ours, theirs) if name in self.faults]
        return "; ".join(told) or ("they share no round" if self.ratio(ours, theirs) is None else "")

    def ratio(self, ours: str, theirs: str) -> Ratio | None:
        return ratio_of(cpu_rates(self.turns.get(ours, ())), cpu_rates(self.turns.get(theirs, ())))

    def ratio_of_latencies(self, ours: str, theirs: str, share: str) -> Ratio | None:
        return ratio_of(latencies(self.turns.get(ours, ()), share), latencies(self.turns.get(theirs, ()), share))

    def plays(self, *names: str) -> bool:
        return all(name in self.players for name in names)


def outcomes(played: Mapping[str, Played]) -> list[Outcome]:
    """Of the cells that were played, by their names: each target, then what all other rows must reach.

    What should have been played and was not is among them, as FAILED.
    """
    found: list[Outcome] = []
    for cell, each in played.items():
        kind = cell.split(",")[0]
        is_usual = "100 B, no keys, none, 1 partition" in cell and "KiB batches" not in cell
        has_targets = is_usual and any(target.what == kind for target in TARGETS)
        for form in FORMS:
            found += (_of_targets if has_targets else _of_other_rows)(cell, kind, form, each)
            found += _of_latencies(cell, form, each)
    return found


def _of_targets(cell: str, kind: str, form: str, played: Played) -> Iterator[Outcome]:
    for target in TARGETS:
        if target.what == kind:
            wanted = target.pure if form == "pure" else target.compiled
            yield _outcome(cell, form, target.way, target.peer, wanted, played)


def _of_other_rows(cell: str, kind: str, form: str, played: Played) -> Iterator[Outcome]:
    """A call for each record against theirs, and many by one call against theirs."""
    for way, theirs in OTHER_ROWS.items():
        peer = f"{OTHER_ROWS_PEER} {theirs}"
        if played.plays(f"{OURS} {form} {way}", peer):
            yield _outcome(cell, form, way, peer, 1.0, played)


def _outcome(cell: str, form: str, way: str, peer: str, wanted: float, played: Played) -> Outcome:
    ours = f"{OURS} {form} {way}"
    fault = played.fault_of(ours, peer) if played.plays(ours, peer) else ""
    return Outcome(cell, form, way, peer, "records/CPU-s", wanted, False, played.ratio(ours, peer), fault)


def _of_latencies(cell: str, form: str, played: Played) -> Iterator[Outcome]:
    for target in LATENCY_TARGETS:
        if target.cell in cell:
            ours = f"{OURS} {form} {target.way}"
            fault = played.fault_of(ours, target.peer) if played.plays(ours, target.peer) else ""
            ratio = played.ratio_of_latencies(ours, target.peer, target.share)
            yield Outcome(cell, form, target.way, target.peer, target.share, target.most, True, ratio, fault)
