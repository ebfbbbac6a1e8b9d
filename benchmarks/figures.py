"""What is made of the turns: medians, ratios within a round, and their spread.  No clock, no processes."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

__all__ = [
    "PERCENTILES",
    "Ratio",
    "Turn",
    "cpu_rates",
    "cpu_seconds_per_million",
    "latencies",
    "percentile",
    "ratio_of",
    "wall_rates",
]

PERCENTILES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}


class Turn(NamedTuple):
    """One turn as results keep it."""

    round: int
    records: int
    value_bytes: int
    seconds: float
    cpu_s: float
    peak_rss: int
    latencies_us: dict[str, float]


class Ratio(NamedTuple):
    """Median, least and most of the ratios of the rounds that both played."""

    median: float
    least: float
    most: float
    rounds: int

    def __str__(self) -> str:
        return f"{self.median:.2f}x ({self.least:.2f}..{self.most:.2f}, {self.rounds} rounds)"


def cpu_rates(turns: Sequence[Turn]) -> dict[int, float]:
    """Records per second of the client's processor time, by round."""
    return {turn.round: turn.records / turn.cpu_s for turn in turns if turn.cpu_s > 0}


def wall_rates(turns: Sequence[Turn]) -> dict[int, float]:
    """Records per second of the clock, by round."""
    return {turn.round: turn.records / turn.seconds for turn in turns if turn.seconds > 0}


def latencies(turns: Sequence[Turn], share: str) -> dict[int, float]:
    """Microseconds of that percentile (p50, p99, p99.9), by round; of turns that measure them."""
    return {turn.round: turn.latencies_us[share] for turn in turns if share in turn.latencies_us}


def cpu_seconds_per_million(turns: Sequence[Turn]) -> float:
    return median(turn.cpu_s / turn.records * 1e6 for turn in turns)


def ratio_of(ours: dict[int, float], theirs: dict[int, float]) -> Ratio | None:
    """Ours over theirs in the rounds that both have; None if there is none."""
    ratios = [ours[number] / theirs[number] for number in sorted(ours) if theirs.get(number)]
    return Ratio(median(ratios), min(ratios), max(ratios), len(ratios)) if ratios else None


def percentile(ordered: Sequence[int], share: float) -> float:
    """The least value that at least ``share`` (0 to 1) of the ascending values do not exceed; ValueError for none."""
    if not ordered:
        raise ValueError("no values")
    return float(ordered[max(0, min(len(ordered) - 1, -(-int(share * 10_000) * len(ordered) // 10_000) - 1))])
