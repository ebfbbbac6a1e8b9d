"""A profile of each column of silver: nulls, distinct values, bounds and the most frequent values, in one pass."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import AtomicType, BinaryType, DataType, MapType, VariantType

from pykafka08.spark.pipeline.settings import Pipeline
from pykafka08.spark.pipeline.verifying import silver_of

__all__ = ["ColumnProfile", "as_json", "as_table", "profile", "profile_of"]

TRACKED = 10_000
"""The number of distinct values that Spark counts exactly; of more values it may miss rare ones."""
WIDEST = 40
"""The longest value in the table, in characters."""


@dataclass(frozen=True)
class ColumnProfile:
    """The profile of one column."""

    name: str
    type: str
    rows: int
    nulls: int
    distinct: int | None
    """The approximate number of distinct values without null; None for types that Spark cannot compare."""
    min: Any
    max: Any
    top: tuple[tuple[Any, int], ...]
    """The most frequent values without null, and their numbers; empty for types with fields or elements."""


def profile(
    spark: SparkSession, pipeline: Pipeline, top: int = 5, first: date | None = None, last: date | None = None
) -> list[ColumnProfile]:
    """Profile the rows of silver with event dates from ``first`` to ``last``."""
    rows = silver_of(spark, pipeline)
    if first is not None:
        rows = rows.where(F.col("event_date") >= F.lit(first))
    if last is not None:
        rows = rows.where(F.col("event_date") <= F.lit(last))
    return profile_of(rows, top)


def profile_of(rows: DataFrame, top: int = 5) -> list[ColumnProfile]:
    """Profile any rows."""
    measures = [
        one.alias(f"c{number}_{name}")
        for number, field in enumerate(rows.schema)
        for name, one in _measures(field.name, field.dataType, top).items()
    ]
    row = rows.agg(F.count("*").alias("rows"), *measures).first()
    assert row is not None
    found = row.asDict()
    return [
        ColumnProfile(
            name=field.name,
            type=field.dataType.simpleString(),
            rows=found["rows"],
            nulls=found[f"c{number}_nulls"],
            distinct=found.get(f"c{number}_distinct"),
            min=found.get(f"c{number}_min"),
            max=found.get(f"c{number}_max"),
            top=tuple((one[0], one[1]) for one in found.get(f"c{number}_top") or () if one[0] is not None)[:top],
        )
        for number, field in enumerate(rows.schema)
    ]


def _measures(name: str, kind: DataType, top: int) -> dict[str, Column]:
    column = F.col(f"`{name}`")
    found = {"nulls": F.count_if(column.isNull())}
    if not isinstance(kind, (MapType, VariantType)):
        found["distinct"] = F.approx_count_distinct(column)
    if isinstance(kind, AtomicType) and not isinstance(kind, (BinaryType, VariantType)):
        found |= {"min": F.min(column), "max": F.max(column)}
        found["top"] = F.expr(f"approx_top_k(`{name}`, {top + 1}, {TRACKED})")  # null may be one of them
    return found


def as_json(name: str, found: Sequence[ColumnProfile]) -> str:
    """The profile as JSON; values of types that JSON lacks become texts."""
    columns = [{**asdict(one), "top": [{"value": value, "rows": count} for value, count in one.top]} for one in found]
    document = {"pipeline": name, "rows": found[0].rows if found else 0, "columns": columns}
    return json.dumps(document, default=str, indent=2, ensure_ascii=False)


def as_table(found: Sequence[ColumnProfile]) -> Iterator[str]:
    """The profile as lines of a table."""
    head = ("column", "type", "nulls", "distinct", "min", "max", "most frequent")
    rows = [head, *map(_cells, found)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(head))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _cells(one: ColumnProfile) -> tuple[str, ...]:
    nulls = f"{one.nulls:,} ({one.nulls / max(1, one.rows):.1%})" if one.nulls else "0"
    distinct = "-" if one.distinct is None else f"{one.distinct:,}"
    return (_text(one.name), _text(one.type), nulls, distinct, _shown(one.min), _shown(one.max), _most(one.top))


def _most(top: Iterable[tuple[Any, int]]) -> str:
    """The values that occur more than once; in a key column, every value occurs once."""
    return ", ".join(f"{_shown(value)} ({count:,})" for value, count in top if count > 1) or "-"


def _shown(value: Any) -> str:
    return "-" if value is None else _text(str(value))


def _text(value: str) -> str:
    """The text in one line, at most :data:`WIDEST` characters."""
    line = "".join(one if one.isprintable() else "?" for one in value)
    return line if len(line) <= WIDEST else line[: WIDEST - 1] + "…"
