"""What a task tells the driver of its rows, for which the driver needs nothing that writes them."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Totals"]


@dataclass(frozen=True, slots=True)
class Totals:
    """What a task has written: rows, and the bytes of their keys and values as they came."""

    rows: int = 0
    bytes: int = 0
