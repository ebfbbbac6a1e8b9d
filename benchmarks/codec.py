"""Decoding and encoding alone, against aiokafka's in the same run, and against what was recorded before.

    python -m benchmarks.codec                            exit code 1 if a ratio has fallen by more than 15 percent
    python -m benchmarks.codec --compiled-tree DIR        the compiled form, in the tree that make compiled makes
    python -m benchmarks.codec --record                   write the baseline of this form instead

Ours and theirs take turns in one process; what counts is its processor time, so that neighbours disturb little.  A
ratio is the median over the rounds of (their time / our time): above 1 we are ahead.  Beside it stands the ratio of the
quickest turns of both, which neighbours disturb least.  Both are recorded, and a job has fallen if both are more than
15 percent below what was; it is measured again with more rounds before it fails.  Ratios differ from one kind of
processor to another (packing with gzip by a third), so that each kind has a baseline of its own; where this one has
none, the others' is all there is to compare with, and a fall is more than 40 percent.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import pykafka08
from benchmarks.codec_jobs import Job, jobs
from benchmarks.machine import describe_machine, processor

BASELINE = Path(__file__).resolve().parent / "results" / "codec_baseline.json"
ROUNDS = 7
MORE_ROUNDS = (21, 63)
RECORDING_ROUNDS = 21
TURN_SECONDS = 0.012
LARGEST_FALL = 0.15
LARGEST_FALL_ELSEWHERE = 0.4  # below what was recorded on another kind of processor
_PINNED_BYTES = 128
_PINNED_ARENAS = 16
_pinned: list[bytes] = []


class Outcome(NamedTuple):
    """Their time over ours, by medians and by quickest turns, and nanoseconds of ours for a unit."""

    ratio: float
    best: float
    ns: float

    def kept(self) -> dict[str, float]:
        """As the baseline has it."""
        return {"median": round(self.ratio, 3), "quickest": round(self.best, 3)}


def main() -> int:
    options = _parser().parse_args()
    if options.compiled_tree is not None:
        return _run_in_tree(options)
    form = "compiled" if pykafka08.compiled else "pure"
    if options.expect_compiled and form == "pure":
        print("this tree is not compiled", file=sys.stderr)
        return 2
    _settle_memory()
    rounds = options.rounds or (RECORDING_ROUNDS if options.record else ROUNDS)
    baseline = json.loads(options.baseline.read_text()) if options.baseline.exists() else {}
    known = Known({}, 0) if options.record else known_ratios(baseline.get(form, {}), processor())
    load = os.getloadavg()[0]
    print(f"codec, {form} form, {rounds} rounds, load {load:.1f}; ratio above 1: ahead of aiokafka")
    if known.ratios and known.largest_fall != LARGEST_FALL:
        print(f"  nothing is recorded of {processor()}: held against others', a fall is {known.largest_fall:.0%}")
    measured, fallen = {}, []
    for job in jobs():
        if options.jobs not in job.name:
            continue
        job.check()
        outcome, spent = measure(job, rounds), rounds
        for more in MORE_ROUNDS:
            if not known.has_fallen(job.name, outcome):
                break
            outcome, spent = measure(job, more), more
        measured[job.name] = outcome
        line = f"  {job.name:34} {outcome.ratio:7.2f} x {outcome.ns:10.1f} ns per {job.unit}"
        if known.has_fallen(job.name, outcome):
            fallen.append(job.name)
            line += f"   FALLEN: {known.ratios[job.name]['median']:.2f} was recorded; {spent} rounds"
        print(line, flush=True)
    if not measured:
        print(f"no job has {options.jobs!r} in its name", file=sys.stderr)
        return 2
    if options.record:
        of_form = baseline.setdefault(form, {})
        kept = of_form.get(processor(), {}).get("ratios", {}) if options.jobs else {}
        ratios = {**kept, **{name: each.kept() for name, each in measured.items()}}
        recorded = {"machine": describe_machine(), "load": round(load, 1), "rounds": rounds, "ratios": ratios}
        of_form[processor()] = recorded
        options.baseline.parent.mkdir(parents=True, exist_ok=True)
        options.baseline.write_text(json.dumps(baseline, indent=1, sort_keys=True) + "\n")
        return 0
    if not known.ratios:
        print(f"no baseline of the {form} form in {options.baseline}: nothing to compare with", file=sys.stderr)
        return 2
    behind = [name for name, each in measured.items() if each.ratio < 1]
    print(
        f"{len(measured)} jobs, behind aiokafka: {', '.join(behind) or 'none'}; fallen: {', '.join(fallen) or 'none'}"
    )
    return 1 if fallen else 0


class Known(NamedTuple):
    """Ratios that were recorded, and by which part a job may be below them."""

    ratios: Mapping[str, Mapping[str, float]]
    largest_fall: float

    def has_fallen(self, job: str, outcome: Outcome) -> bool:
        """True if both ratios are further below than they may be; nothing recorded, nothing fallen."""
        recorded = self.ratios.get(job)
        if recorded is None:
            return False
        least = 1 - self.largest_fall
        return outcome.ratio < recorded["median"] * least and outcome.best < recorded["quickest"] * least


def known_ratios(of_form: Mapping[str, Any], here: str) -> Known:
    """What was recorded on this kind of processor; else the least of each job on any other."""
    if here in of_form:
        return Known(of_form[here]["ratios"], LARGEST_FALL)
    least: dict[str, dict[str, float]] = {}
    for recorded in of_form.values():
        for job, ratios in recorded["ratios"].items():
            before = least.get(job, ratios)
            least[job] = {name: min(ratio, before[name]) for name, ratio in ratios.items()}
    return Known(least, LARGEST_FALL_ELSEWHERE)


def measure(
    job: Job, rounds: int, *, clock: Callable[[], float] = time.process_time, turn: float = TURN_SECONDS
) -> Outcome:
    """Both in turns of about ``turn`` seconds by ``clock``, who begins changing with each round."""
    ours_times, theirs_times = _repeats(job.ours, clock, turn), _repeats(job.theirs, clock, turn)
    ratios, seconds, their_seconds = [], [], []
    gc.disable()
    try:
        for number in range(rounds):
            gc.collect(1)
            if number % 2:
                theirs = _time(job.theirs, theirs_times, clock)
                ours = _time(job.ours, ours_times, clock)
            else:
                ours = _time(job.ours, ours_times, clock)
                theirs = _time(job.theirs, theirs_times, clock)
            ratios.append(theirs / ours)
            seconds.append(ours)
            their_seconds.append(theirs)
    finally:
        gc.enable()
    return Outcome(median(ratios), min(their_seconds) / min(seconds), median(seconds) / job.units * 1e9)


def _settle_memory() -> None:
    """Have allocators keep what is freed, for both: else page faults, or their absence, are most of what a job costs.

    glibc maps large blocks anew each time until it has seen one of that size freed; up to 32 MiB count.  Python's own
    allocator gives an arena back once nothing lies in it, as where all values of a job are freed before the next ones
    are made; a consumer's always has something in its arenas.
    """
    block = bytearray(31 << 20)
    del block
    small = [bytes(_PINNED_BYTES) for _ in range(_PINNED_ARENAS * (1 << 20) // _PINNED_BYTES)]
    _pinned.extend(small[:: (1 << 18) // _PINNED_BYTES])  # four in each arena
    del small


def _repeats(call: Callable[[], object], clock: Callable[[], float], turn: float) -> int:
    call()
    times = 1
    while True:
        spent = _time(call, times, clock) * times
        if spent >= turn / 2:
            return max(1, round(times * turn / spent))
        times *= 4


def _time(call: Callable[[], object], times: int, clock: Callable[[], float]) -> float:
    started = clock()
    for _ in range(times):
        call()
    return (clock() - started) / times


def _run_in_tree(options: argparse.Namespace) -> int:
    tree = options.compiled_tree.resolve()
    arguments = ["--expect-compiled", "--baseline", str(options.baseline.resolve()), "--jobs", options.jobs]
    arguments += ["--record"] if options.record else []
    arguments += ["--rounds", str(options.rounds)] if options.rounds else []
    # The tree has a copy of the benchmarks too, and comes first wherever its package is looked for.
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    command = [sys.executable, "-m", "benchmarks.codec", *arguments]
    return subprocess.run(command, cwd=tree, env=environment, check=False).returncode


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--record", action="store_true", help="write the baseline of this form; with --jobs, of those jobs")
    add("--compiled-tree", type=Path, metavar="DIR", help="measure the compiled package in DIR")
    add("--jobs", default="", metavar="WORDS", help="only jobs whose names have these words in a row")
    add("--rounds", type=int, help=f"default {ROUNDS}, with --record {RECORDING_ROUNDS}")
    add(
        "--baseline", type=Path, default=BASELINE, metavar="FILE", help="default benchmarks/results/codec_baseline.json"
    )
    add("--expect-compiled", action="store_true", help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
