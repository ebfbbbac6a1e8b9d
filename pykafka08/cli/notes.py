"""What the tools tell the person at the terminal."""

from __future__ import annotations

import sys

__all__ = ["note"]


def note(text: str) -> None:
    """A line for the person at the terminal; standard output carries records only."""
    if sys.stderr is not None:
        if sys.stderr.isatty():
            from pykafka08.cli.formats import visible

            text = visible(text)  # errors may quote what a broker or a record says
        print(text, file=sys.stderr, flush=True)
