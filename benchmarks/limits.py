"""What is held against a bound and not against a peer: memory, an idle consumer, the metadata of a large cluster.

The programs that measure these are run in a short form, and told by their last line of output (``--json``).
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.brokers import REPOSITORY

__all__ = ["LIMITS_S", "Limit", "limits", "told"]

PROGRAMS = (
    ("memory", "consume", "--gib", "1"),
    ("memory", "produce", "--gib", "1"),
    ("memory", "produce", "--gib", "0.1", "--records", "keys"),
    ("memory", "produce", "--gib", "0.1", "--records", "headers"),
    ("idle", "--seconds", "5"),
    ("scale", "--rounds", "3", "--shape", "1000x10"),
)
LIMITS_S = 140
"""About what all of them take, in both forms."""
TIMEOUT_S = 180


class Limit(NamedTuple):
    """At most ``allowed`` of ``unit``; ``measured`` is None if the program failed, and ``fault`` says how."""

    form: str
    what: str
    unit: str
    allowed: float
    measured: float | None
    fault: str = ""

    @property
    def mark(self) -> str:
        if self.measured is None:
            return "FAILED"
        return "met" if self.measured <= self.allowed else "MISSED"

    @property
    def text(self) -> str:
        if self.measured is None:
            return self.fault
        return f"{self.measured:.3g} {self.unit}, allowed {self.allowed:.3g}"


def told(what: str, unit: str, allowed: float, measured: float) -> str:
    """The line that a program prints with ``--json``."""
    return json.dumps({"what": what, "unit": unit, "allowed": allowed, "measured": measured})


def limits(tree: Path | None) -> Iterator[Limit]:
    """Of both forms, or of the pure one where there is no compiled tree."""
    for words in PROGRAMS:
        for form in ("pure", "compiled") if tree is not None else ("pure",):
            yield from _measured(form, [*words, "--tree", str(tree)] if form == "compiled" else list(words))


def _measured(form: str, words: list[str]) -> Iterator[Limit]:
    name, *arguments = words
    command = [sys.executable, "-m", f"benchmarks.{name}", *arguments, "--json"]
    try:
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, timeout=TIMEOUT_S, check=False, text=True)
        found: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        fault = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    except subprocess.TimeoutExpired:
        found, fault = [], f"not done after {TIMEOUT_S} s"
    if not found:
        yield Limit(form, " ".join(words[:2]), "", 0.0, None, fault)
    for each in found:
        yield Limit(form, **each)
