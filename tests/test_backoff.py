"""Pauses between tries."""

from __future__ import annotations

import pytest

from pykafka08.backoff import Backoff, pause_after


def test_backoff_doubles_to_its_bound_with_jitter_of_a_fifth() -> None:
    for jitter, factor in ((0.0, 0.8), (0.5, 1.0), (1.0, 1.2)):
        backoff = Backoff(0.1, 1.0, lambda jitter=jitter: jitter)  # type: ignore[misc]
        assert [backoff.failed() for _ in range(6)] == pytest.approx([factor * s for s in (0.1, 0.2, 0.4, 0.8, 1, 1)])
        backoff.succeeded()
        assert backoff.failed() == pytest.approx(0.1 * factor)


def test_the_pause_after_the_first_failure_is_the_first_even_above_the_bound() -> None:
    assert [pause_after(failures, 500, 100, 0.5) for failures in range(4)] == [500] * 4


def test_many_failures_do_not_overflow() -> None:
    assert pause_after(10**9, 0.1, 1.0, 0.5) == 1.0


@pytest.mark.parametrize(("first", "most"), [(0.0, 0.0), (0.0, 1.0), (0.005, 0.0)])
def test_settings_of_0_give_growing_pauses(first: float, most: float) -> None:
    backoff = Backoff(first, most, lambda: 0.5)
    pauses = [backoff.failed() for _ in range(10)]
    assert pauses[0] > 0
    assert pauses == sorted(pauses)
    assert pauses[-1] >= 0.02
