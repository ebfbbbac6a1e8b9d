"""What a workload and its faults share: where the brokers are, the history, chance, and how far the work has got.

Faults are timed by the work, not by the clock: "when a third is done".
"""

from __future__ import annotations

import math
import os
import random
from dataclasses import dataclass, field
from typing import Any

import anyio

from pykafka08.driver import Wakeup
from tests.faults.checker import STUCK_AFTER_S, Report, check
from tests.faults.history import History

__all__ = ["FAST", "IS_SOAK", "PATIENT", "Stage"]

IS_SOAK = os.environ.get("PYKAFKA08_SOAK") == "1"
"""`make soak`: full sizes."""
STUCK_AFTER = STUCK_AFTER_S if IS_SOAK else 30.0
"""Where other tests run beside it, the process itself may stand still for a while."""
FAST: dict[str, Any] = {
    "retry_backoff_ms": 5,
    "retry_backoff_max_ms": 100,
    "reconnect_backoff_ms": 5,
    "reconnect_backoff_max_ms": 100,
    "request_timeout_ms": 2_000,
}
"""Settings of clients in small runs: a lost answer costs two seconds, not thirty."""
PATIENT: dict[str, Any] = {**FAST, "request_timeout_ms": 30_000}
"""Where no answer is lost: a machine that stands still for two seconds then ends nothing."""
FAST_GROUP: dict[str, Any] = {"session_timeout_ms": 2_000, "heartbeat_interval_ms": 100}


@dataclass
class Stage:
    """One run.  ``goal`` is what the workload will have done at its end, in records."""

    bootstrap_servers: str
    seed: int
    goal: int
    apis: tuple[str, ...] = ("Produce", "Fetch")
    """What the workload lives by: where faults of single requests strike."""
    settings: dict[str, Any] = field(default_factory=lambda: dict(FAST))
    group_settings: dict[str, Any] = field(default_factory=lambda: dict(FAST_GROUP))
    """Those that only members of groups know."""
    history: History = field(default_factory=lambda: History(anyio.current_time))

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.others: list[History] = []
        self.done = 0
        self.is_over = False
        self.partitions: dict[str, int] = {}
        """How many a topic has by now, if it got more."""
        self.pause_s = 0.0
        """What a workload waits between two steps of it, for faults that need time."""
        self._waiting: list[tuple[int, Wakeup]] = []

    def __str__(self) -> str:
        return f"{self.done} of {self.goal} records done, {self.history.last_fault} was the last fault"

    def report(self, *, stuck_after: float = STUCK_AFTER) -> Report:
        """What the checker finds in the first history that is not clean.

        Only the first has the faults, without which a pause means nothing, and all that happened.
        """
        reports = [check(self.history, stuck_after=stuck_after)]
        reports += [check(history, stuck_after=math.inf) for history in self.others]
        return next((report for report in reports if not report.is_clean), reports[0])

    def advance(self, records: int) -> None:
        """The workload got on."""
        self.done += records
        self._wake()

    def finish(self) -> None:
        """The workload is done: nobody waits any longer."""
        self.is_over = True
        self._wake()

    def _wake(self) -> None:
        due = [(goal, wakeup) for goal, wakeup in self._waiting if goal <= self.done or self.is_over]
        for each in due:
            self._waiting.remove(each)
            each[1].set()

    async def at(self, share: float) -> None:
        """Wait until this share of the work is done, or all of it."""
        goal = int(self.goal * share)
        if goal > self.done and not self.is_over:
            wakeup = Wakeup()
            self._waiting.append((goal, wakeup))
            await wakeup.wait()
