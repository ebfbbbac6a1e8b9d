"""Lengths of time as Spark writes them: ``1 hour``, ``10 minutes 30 seconds``, with ``interval`` before it or not.

Not here: what is above zero or too long for its use; that is checked where it is used.
"""

from __future__ import annotations

import re

__all__ = ["seconds_of"]

SECONDS = {
    "microsecond": 1e-6,
    "millisecond": 1e-3,
    "second": 1.0,
    "minute": 60.0,
    "hour": 3600.0,
    "day": 86_400.0,
    "week": 7 * 86_400.0,
    "month": 31 * 86_400.0,  # so long Spark takes them for, in watermarks
    "year": 12 * 31 * 86_400.0,
}
TERM = re.compile(r"([+-]?\s*[0-9]+(?:\.[0-9]*)?)\s*([a-z]+)")


def seconds_of(text: str) -> float | None:
    """None: it is none.  Fractions are for seconds alone, and months are taken for 31 days."""
    left = text.strip().lower().removeprefix("interval ").strip()
    total = 0.0
    while match := TERM.match(left):
        number, unit = match.groups()
        name = unit.removesuffix("s")
        if name not in SECONDS or ("." in number and name != "second"):
            return None
        total += float(number.replace(" ", "")) * SECONDS[name]
        left = left[match.end() :].lstrip()
        if not left:
            return total
    return None
