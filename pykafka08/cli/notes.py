"""What the tools tell the person at the terminal."""

from __future__ import annotations

import sys

__all__ = ["note"]


def note(text: str) -> None:
    """A line for the person at the terminal; standard output carries records only."""
    if sys.stderr is not None:
        print(text, file=sys.stderr, flush=True)
