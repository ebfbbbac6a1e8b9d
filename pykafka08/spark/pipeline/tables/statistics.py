"""Delta's statistics of a Parquet file, from its footer: rows, nulls, smallest and largest values.

Readers use them to skip files.  Numbers, dates, timestamps and short strings at the top level have bounds.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow.parquet as pq

__all__ = ["statistics_of"]

COLUMNS = 32
"""The number of columns with statistics, as in other writers of Delta tables."""
LONGEST = 32
"""Characters.  Longer strings have no bounds: they would be cut, and the largest one rounded up."""
MILLISECOND = timedelta(milliseconds=1)


def statistics_of(footer: pq.FileMetaData) -> str:
    """The JSON text for an ``add`` action."""
    found: dict[str, Any] = {"numRecords": footer.num_rows, "minValues": {}, "maxValues": {}, "nullCount": {}}
    for number, name in _columns(footer):
        groups = [footer.row_group(one).column(number).statistics for one in range(footer.num_row_groups)]
        if not groups or any(one is None or not one.has_null_count for one in groups):
            continue
        found["nullCount"][name] = sum(one.null_count for one in groups)
        bounds = [one for one in groups if one.has_min_max]
        if len(bounds) < sum(1 for one in groups if one.num_values):
            continue
        try:
            smallest, largest = (_extreme([getattr(one, side) for one in bounds], side) for side in ("min", "max"))
        except OverflowError:  # Spark's dates and timestamps go beyond the years of Python's
            continue
        if smallest is not None and largest is not None:
            found["minValues"][name], found["maxValues"][name] = smallest, largest
    return json.dumps(found)


def _columns(footer: pq.FileMetaData) -> Iterator[tuple[int, str]]:
    schema = footer.schema
    for number in range(min(len(schema), COLUMNS)):
        if schema.column(number).max_repetition_level == 0 and "." not in schema.column(number).path:
            yield number, schema.column(number).path


def _extreme(values: list[Any], side: str) -> Any:
    """The bound as a JSON value; None without values, or if the type has no bounds."""
    if not values or any(isinstance(one, float) and not math.isfinite(one) for one in values):
        return None
    return _plain(min(values) if side == "min" else max(values), side)


def _plain(value: Any, side: str) -> Any:
    if isinstance(value, datetime):
        return _milliseconds(value, side)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return float(value) if Decimal(float(value)) == value else None
    if isinstance(value, str):
        return value if len(value) <= LONGEST else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _milliseconds(value: datetime, side: str) -> str:
    """The timestamp in milliseconds, as Delta keeps it; the largest one is rounded up."""
    rest = timedelta(microseconds=value.microsecond % 1000)
    rounded = value - rest + (MILLISECOND if rest and side == "max" else timedelta())
    if rounded.tzinfo is None:
        return rounded.isoformat(timespec="milliseconds")
    return f"{rounded.astimezone(timezone.utc).replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"
