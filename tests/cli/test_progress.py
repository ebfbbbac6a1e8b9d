"""The progress line."""

from __future__ import annotations

import pytest

from pykafka08.cli.progress import Progress, shown_size


def test_it_is_drawn_five_times_a_second_at_most() -> None:
    now, drawn = [0.0], list[str]()
    progress = Progress(True, drawn.append, lambda: now[0])
    for step in range(100):
        now[0] = step / 100
        progress.update(step * 1000, step * 2048)
    assert len(drawn) == 5
    assert drawn[1] == "\r20,000 records, 40.0 KiB, 100,000 records/s"
    progress.clear()
    assert drawn[-1].strip() == ""
    assert len(drawn[-1]) >= max(map(len, drawn))


def test_a_shorter_line_covers_a_longer_one() -> None:
    now, drawn = [0.0], list[str]()
    progress = Progress(True, drawn.append, lambda: now[0])
    for now[0] in (1.0, 1_000_000.0):
        progress.update(1000, 10)
    assert len(drawn[1]) == len(drawn[0])


def test_it_is_silent_where_nobody_watches() -> None:
    drawn: list[str] = []
    progress = Progress(False, drawn.append)
    progress.update(1, 1)
    progress.clear()
    assert not drawn


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (5 * 1024**2, "5.0 MiB"), (2**50, "1024.0 TiB")]
)
def test_sizes(size: int, text: str) -> None:
    assert shown_size(size) == text
