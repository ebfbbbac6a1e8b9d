"""What is to be reached, as data, and whether it was.

The figures are records per second of the client process's processor time, ours over theirs, with 100-byte values; of
latencies ours over theirs, of the median round.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from benchmarks.figures import Ratio, Turn, cpu_rates, latencies, ratio_of

__all__ = ["LATENCY_TARGETS", "TARGETS", "Outcome", "Target", "outcomes"]

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


class Outcome(NamedTuple):
    """One target in one form on one server; ``measured`` is None where it was not played."""

    cell: str
    form: str
    way: str
    peer: str
    unit: str
    wanted: float
    at_most: bool
    measured: Ratio | None

    @property
    def mark(self) -> str:
        if self.measured is None:
            return "not measured"
        met = self.measured.median <= self.wanted if self.at_most else self.measured.median >= self.wanted
        return "met" if met else "MISSED"

    @property
    def wanted_text(self) -> str:
        return f"{'<=' if self.at_most else '>='} {self.wanted:g}x"


Turns = Mapping[str, Sequence[Turn]]


def outcomes(played: Mapping[str, Turns]) -> list[Outcome]:
    """Of the cells that were played, by their names: each target, then what all other rows must reach."""
    found: list[Outcome] = []
    for cell, turns in played.items():
        kind = cell.split(",")[0]
        is_usual = "100 B, no keys, none, 1 partition" in cell and "KiB batches" not in cell
        for form in FORMS:
            if is_usual:
                found += _of_targets(cell, kind, form, turns)
            if not is_usual:
                found += _of_other_rows(cell, form, turns)
            found += _of_latencies(cell, form, turns)
    return found


def _of_targets(cell: str, kind: str, form: str, turns: Turns) -> Iterator[Outcome]:
    for target in TARGETS:
        if target.what == kind:
            wanted = target.pure if form == "pure" else target.compiled
            ratio = _ratio(turns, f"pykafka08 {form} {target.way}", target.peer)
            yield Outcome(cell, form, target.way, target.peer, "records/CPU-s", wanted, False, ratio)


def _of_other_rows(cell: str, form: str, turns: Turns) -> Iterator[Outcome]:
    """A call for each record against theirs, and many by one call against theirs."""
    pairs = {"batches": "getmany", "values": "getmany", "enqueue": "send", "send_many": "send_batch"}
    for way, theirs in pairs.items():
        peer = f"{OTHER_ROWS_PEER} {theirs}"
        ratio = _ratio(turns, f"pykafka08 {form} {way}", peer)
        if ratio is not None:
            yield Outcome(cell, form, way, peer, "records/CPU-s", 1.0, False, ratio)


def _of_latencies(cell: str, form: str, turns: Turns) -> Iterator[Outcome]:
    for target in LATENCY_TARGETS:
        if target.cell in cell:
            ours = turns.get(f"pykafka08 {form} {target.way}", ())
            theirs = turns.get(target.peer, ())
            ratio = ratio_of(latencies(ours, target.share), latencies(theirs, target.share))
            yield Outcome(cell, form, target.way, target.peer, target.share, target.most, True, ratio)


def _ratio(turns: Turns, ours: str, theirs: str) -> Ratio | None:
    return ratio_of(cpu_rates(turns.get(ours, ())), cpu_rates(turns.get(theirs, ())))
