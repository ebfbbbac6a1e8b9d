"""Change records of Debezium as rows: the new state of a row, or the key of a deleted one.

A record holds ``before``, ``after``, ``op`` and ``source``, alone or as ``payload`` beside its ``schema``.  A
tombstone, a record without a value, deletes the row of its key.  Each record becomes one row of silver, with
:data:`COLUMNS`; :func:`current_rows` has the newest state of each key.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

__all__ = ["COLUMNS", "current_rows", "envelope", "key_fields", "opened"]

COLUMNS = ("_op", "_changed_at", "_position")
"""The operation, the time of the change in the database, and its position in the database's log, as a comparable text.
A tombstone has no position."""
ROW_OPS = ("c", "u", "r", "d")
"""Created, updated, read by a snapshot, deleted."""
WIDTH = 20
"""Digits of a number in a position."""
SOURCE = StructType(
    [
        StructField("ts_ms", LongType()),
        *(
            StructField(name, StringType())
            for name in ("lsn", "file", "pos", "row", "commit_lsn", "change_lsn", "event_serial_no", "scn")
        ),
    ]
)
"""The fields of a record's ``source`` that hold its position."""


def envelope(columns: StructType) -> StructType:
    """The fields of a value whose rows have these columns."""
    parts = [
        StructField("before", columns),
        StructField("after", columns),
        StructField("op", StringType()),
        StructField("ts_ms", LongType()),
        StructField("source", SOURCE),
    ]
    return StructType([*parts, StructField("payload", StructType(parts))])


def key_fields(columns: StructType, key: Sequence[str]) -> StructType:
    """The fields of a record's key."""
    parts = [columns[name] for name in key]
    return StructType([*parts, StructField("payload", StructType(parts))])


def opened(parsed: DataFrame, columns: StructType, key: Sequence[str], form: str, kept: Sequence[str]) -> DataFrame:
    """Rows with ``columns``, :data:`COLUMNS` and ``kept``, and in ``_broken`` the reason if a record is no change.

    ``parsed`` has ``_fields`` and ``_key`` (the structs, each with ``_broken`` if a field does not fit), ``_why`` and
    ``_key_why`` (reasons that are known already), ``_is_tombstone`` and ``kept``.
    """
    plain = F.struct(*[F.col(f"_fields.{name}") for name in ("before", "after", "op", "ts_ms", "source")])
    change = F.when(F.col("_fields.payload").isNotNull(), F.col("_fields.payload")).otherwise(plain)
    changed = parsed.withColumn("_change", change)
    op = F.when(F.col("_is_tombstone"), F.lit("d")).otherwise(F.col("_change.op"))
    is_deleted = op == F.lit("d")
    values = {}
    for name in columns.names:
        before, after = F.col(f"_change.before.`{name}`"), F.col(f"_change.after.`{name}`")
        if name in key:
            before = F.coalesce(before, F.col(f"_key.payload.`{name}`"), F.col(f"_key.`{name}`"))
        values[name] = F.when(is_deleted, before).otherwise(after)
    source = F.col("_change.source")
    at = F.timestamp_millis(F.coalesce(source["ts_ms"], F.col("_change.ts_ms")))
    return changed.select(
        *[value.alias(name) for name, value in values.items()],
        op.alias("_op"),
        at.alias("_changed_at"),
        _position(source).alias("_position"),
        _why([values[name] for name in key], key, op, form).alias("_broken"),
        *kept,
    )


def _why(values: Sequence[Column], key: Sequence[str], op: Column, form: str) -> Column:
    is_tombstone = F.col("_is_tombstone")
    is_broken = F.col("_fields").isNull() | F.col("_fields._broken").isNotNull()
    has_no_key = F.lit(False)
    for value in values:
        has_no_key = has_no_key | value.isNull()
    no_key = F.coalesce(F.when(op == F.lit("d"), F.col("_key_why")), F.lit(f"no key: {', '.join(key)}"))
    found = F.when(~is_tombstone & F.col("_why").isNotNull(), F.col("_why"))
    found = found.when(~is_tombstone & is_broken, F.lit(f"not {form} of the schema"))
    found = found.when(op.isNull(), F.lit("not a change record: no op"))
    found = found.when(~op.isin(*ROW_OPS), F.concat(F.lit("a change of no single row: op "), op))
    found = found.when((op != F.lit("d")) & F.col("_change.after").isNull(), F.lit("a change without after"))
    return found.when(has_no_key, no_key)


def _position(source: Column) -> Column:
    """The position by connector: SQL Server and Db2, PostgreSQL, MySQL and MariaDB, Oracle; for others the time."""

    def number(name: str) -> Column:
        return F.lpad(source[name], WIDTH, "0")

    def number_or_zero(name: str) -> Column:
        return F.lpad(F.coalesce(source[name], F.lit("0")), WIDTH, "0")

    file = F.lpad(F.regexp_extract(source["file"], r"(\d+)$", 1), WIDTH, "0")
    colon = F.lit(":")
    return F.coalesce(
        F.concat(
            source["commit_lsn"],
            colon,
            F.coalesce(source["change_lsn"], F.lit("")),
            colon,
            number_or_zero("event_serial_no"),
        ),
        number("lsn"),
        F.concat(file, colon, number("pos"), colon, number_or_zero("row")),
        number("scn"),
        F.lpad(source["ts_ms"].cast("string"), WIDTH, "0"),
    )


def current_rows(silver: DataFrame, key: Sequence[str]) -> DataFrame:
    """The newest state of each key, without the keys whose newest change is a delete.

    The position in the database's log decides, then the offset.  A tombstone has the position of the changes of its key
    before it in its partition.
    """
    before = Window.partitionBy(*key, "_source", "_topic", "_partition").orderBy("_offset")
    newest = Window.partitionBy(*key).orderBy(F.col("_reached").desc_nulls_last(), F.col("_offset").desc())
    reached = silver.withColumn("_reached", F.coalesce("_position", F.max("_position").over(before)))
    ranked = reached.withColumn("_rank", F.row_number().over(newest))
    return ranked.where("_rank = 1 AND _op <> 'd'").select(*silver.columns)
