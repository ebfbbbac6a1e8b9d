"""A line on standard error that says how far a tool is, while a person watches."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

__all__ = ["Progress", "shown_size"]

INTERVAL_S = 0.2


def shown_size(size: float) -> str:
    """``1536`` as ``1.5 KiB``."""
    unit = 0
    while size >= 1024 and unit < 4:
        size, unit = size / 1024, unit + 1
    return f"{size:.1f} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[unit]}" if unit else f"{int(size)} B"


class Progress:
    """Redrawn at most five times a second; silent unless ``is_shown``."""

    def __init__(
        self, is_shown: bool, write: Callable[[str], object], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._is_shown = is_shown
        self._write = write
        self._clock = clock
        self._start = clock()
        self._last = -INTERVAL_S
        self._width = 0

    @classmethod
    def on_terminal(cls, *, unless_output: bool = False) -> Progress:
        """On standard error if that is a terminal; ``unless_output``: and standard output is none."""
        stream = sys.stderr
        is_shown = stream is not None and stream.isatty()
        if is_shown and unless_output:
            is_shown = not os.isatty(1)
        return cls(is_shown, _draw)

    def update(self, records: int, size: int) -> None:
        now = self._clock()
        if not self._is_shown or now - self._last < INTERVAL_S:
            return
        self._last = now
        seconds = max(now - self._start, 1e-9)
        text = f"{records:,} records, {shown_size(size)}, {records / seconds:,.0f} records/s"
        self._write("\r" + text.ljust(self._width))
        self._width = len(text)

    def clear(self) -> None:
        """Take the line away, so that what follows starts a clean one."""
        if self._width:
            self._write("\r" + " " * self._width + "\r")
            self._width = 0


def _draw(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
