"""Whether a run still is the mirror of its name, after its producer was fenced.

Fencing has two causes that look alike: another mirror of the name has begun, or a transaction took longer than its
time-out (a machine that slept).  Each run writes a mark beside its places when it begins: another's is there in the
first case.  Only in the second does it go on, which fences in turn whoever is there.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["Tenure"]


class Tenure:
    """``mark`` is the run's own; ``is_in_doubt`` from when it was fenced until it has written its mark again."""

    def __init__(self, mark: str) -> None:
        self.mark = mark
        self.is_in_doubt = False
        self._times = 0
        self._known: set[str | None] = {mark}

    def begins(self) -> None:
        """The producer is open: whose marks are found now belong to runs that it has fenced."""
        self._known = {self.mark}

    def found(self, mark: str | None) -> None:
        self._known.add(mark)

    def marked(self) -> None:
        """The own mark stands at every place."""
        self._known = {self.mark}
        self.is_in_doubt, self._times = False, 0

    def fenced(self) -> None:
        self.is_in_doubt = True
        self._times += 1

    def is_over(self, marks: Iterable[str | None]) -> bool:
        """True if another has left its mark, or was quicker twice: two that begin at once do not take turns."""
        return self._times > 1 or not self._known.issuperset(marks)
