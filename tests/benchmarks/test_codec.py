"""The benchmark of the codec alone: what it compares, and when it fails."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import pykafka08
from benchmarks import codec
from benchmarks.codec_jobs import Job, jobs
from benchmarks.machine import processor

ONE_JOB = "pack snappy 1 KiB"


class Clock:
    """Seconds that pass only when somebody works."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def worker(self, *seconds: float) -> Callable[[], object]:
        """Takes these times by turns."""
        calls = 0

        def work() -> None:
            nonlocal calls
            self.now += seconds[calls % len(seconds)]
            calls += 1

        return work


def test_both_come_to_the_same_in_every_small_job() -> None:
    small = [job for job in jobs() if "small" in job.name or " 1 KiB" in job.name]
    assert len(small) == 22
    for job in small:
        job.check()
    with pytest.raises(RuntimeError, match="half: ours and theirs"):
        Job("half", lambda: 1, lambda: 2, 1, "KiB").check()


def test_the_baseline_of_each_form_has_every_job() -> None:
    names = {job.name for job in jobs()}
    recorded = json.loads(codec.BASELINE.read_text())
    assert set(recorded) == {"pure", "compiled"}
    assert set(recorded["pure"]) == set(recorded["compiled"]) != set()
    for of_form in recorded.values():
        for of_processor in of_form.values():
            assert set(of_processor["ratios"]) == names
            assert all(set(ratios) == {"median", "quickest"} for ratios in of_processor["ratios"].values())


def test_a_ratio_is_their_time_over_ours() -> None:
    clock = Clock()
    job = Job("x", clock.worker(0.001), clock.worker(0.003), 100, "record")
    ratio, best, ns = codec.measure(job, 5, clock=clock, turn=0.01)
    assert best == pytest.approx(3)
    assert ratio == pytest.approx(3)
    assert ns == pytest.approx(10_000)


def test_one_slow_round_changes_nothing() -> None:
    clock = Clock()
    job = Job("x", clock.worker(1, 1, 1, 50, 1), clock.worker(2), 1, "KiB")
    assert codec.measure(job, 7, clock=clock, turn=0.01).ratio == pytest.approx(2)


def test_more_than_fifteen_percent_are_a_fall() -> None:
    known = codec.known_ratios({"here": {"ratios": {"x": codec.Outcome(1.0, 2.0, 10).kept()}}}, "here")
    assert not known.has_fallen("x", codec.Outcome(0.86, 1.0, 10))
    assert not known.has_fallen("x", codec.Outcome(0.5, 1.71, 10))  # neighbours: not so in the quickest turns
    assert known.has_fallen("x", codec.Outcome(0.84, 1.69, 10))
    assert not known.has_fallen("y", codec.Outcome(0.1, 0.1, 10))


def test_another_processor_is_held_against_the_least_of_those_that_are_known() -> None:
    first, second = codec.Outcome(1.0, 2.5, 10).kept(), codec.Outcome(1.5, 2.0, 10).kept()
    known = codec.known_ratios({"first": {"ratios": {"x": first}}, "second": {"ratios": {"x": second}}}, "here")
    assert known.ratios == {"x": {"median": 1.0, "quickest": 2.0}}
    assert not known.has_fallen("x", codec.Outcome(0.61, 1.0, 10))
    assert known.has_fallen("x", codec.Outcome(0.59, 1.19, 10))


@pytest.mark.parametrize(("recorded", "code"), [(0.0, 0), (1e9, 1), (None, 2)])
def test_the_exit_code(
    recorded: float | None,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    baseline = tmp_path / "baseline.json"
    form = "compiled" if pykafka08.compiled else "pure"
    if recorded is not None:
        ratios = {ONE_JOB: {"median": recorded, "quickest": recorded}}
        baseline.write_text(json.dumps({form: {processor(): {"ratios": ratios}}}))
    monkeypatch.setattr(codec, "MORE_ROUNDS", (1,))
    monkeypatch.setattr(sys, "argv", ["codec", "--jobs", ONE_JOB, "--rounds", "1", "--baseline", str(baseline)])
    assert codec.main() == code
    assert ("FALLEN" in capsys.readouterr().out) == (code == 1)


def test_recording_some_jobs_keeps_the_others_and_the_other_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    baseline = tmp_path / "results" / "baseline.json"
    baseline.parent.mkdir()
    here = processor()
    baseline.write_text(json.dumps({"pure": {here: {"ratios": {"a": 1}}}, "compiled": {here: {"ratios": {"b": 2}}}}))
    monkeypatch.setattr(
        sys, "argv", ["codec", "--jobs", ONE_JOB, "--rounds", "1", "--record", "--baseline", str(baseline)]
    )
    assert codec.main() == 0
    written = json.loads(baseline.read_text())
    form, other = ("compiled", "pure") if pykafka08.compiled else ("pure", "compiled")
    assert set(written[form][here]["ratios"]) == {"a" if form == "pure" else "b", ONE_JOB, f"un{ONE_JOB}"}
    assert len(written[other][here]["ratios"]) == 1


def test_a_job_that_there_is_not_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["codec", "--jobs", "no such job"])
    assert codec.main() == 2
    assert "no such job" in capsys.readouterr().err
