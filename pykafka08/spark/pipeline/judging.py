"""Expectations of a batch of decoded rows: references, uniqueness, and the counts of all expectations.

The pass that decodes a batch also joins references and counts rules.  Uniqueness is a second pass, because it needs the
days of the rows to read the keys in silver.  Spark keeps the batch in memory between the passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import date
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from pykafka08.spark.pipeline.addresses import address_of
from pykafka08.spark.pipeline.decoding import RAW
from pykafka08.spark.pipeline.duplicates import ARRIVAL, days_near
from pykafka08.spark.pipeline.expectations import Expectation, check, expectations, remember
from pykafka08.spark.pipeline.settings import Decode, Pipeline, Reference, Uniqueness
from pykafka08.spark.pipeline.stores import Folder
from pykafka08.spark.pipeline.tables.storage import located

__all__ = ["judged", "paths_of_delta", "persisted", "referenced", "referenced_keys", "refused_as_not_unique"]

Kept = Callable[[set[str]], "DataFrame | None"]
"""From ISO dates to the accepted rows of silver of these days; None without such rows."""


@contextmanager
def judged(pipeline: Pipeline, query: str, batch: int, rows: DataFrame, kept: Kept) -> Iterator[tuple[DataFrame, int]]:
    """The rows of a batch, marked by all expectations and kept in memory for the block, and their number.

    Raises:
        QualityError: too many rows break an expectation with the level ``fail``.
    """
    decode = pipeline.decode
    every = expectations(decode)
    with ExitStack() as until:
        rows = referenced(rows, pipeline)
        rows = persisted(rows if decode.uniqueness else _without_accepted_records(rows), until)
        of_rows = [one for one in every if one.where != "decode.uniqueness"]
        read, counts, days = _counted(rows, of_rows, finds_days=bool(decode.uniqueness))
        if read and decode.uniqueness:
            rows = persisted(_unique(rows, decode.uniqueness, days, kept), until)
            _, more, _ = _counted(rows, [one for one in every if one not in of_rows])
            counts |= more
        check(every, read, counts)
        if read and every:
            remember(pipeline, query, batch, read, counts)
        yield rows, read


def _without_accepted_records(rows: DataFrame) -> DataFrame:
    """The rows without the raw records of accepted rows, so that Spark keeps less of a batch in memory."""
    is_refused = F.col(f"{RAW}.reason").isNotNull()
    raw = F.struct(
        *[F.when(is_refused, F.col(f"{RAW}.{name}")).alias(name) for name in ("key", "value", "headers")],
        f"{RAW}.reason",
        f"{RAW}.broken",
    )
    return rows.withColumn(RAW, raw)


def persisted(rows: DataFrame, until: ExitStack) -> DataFrame:
    """Rows that Spark keeps until the end of a context."""
    until.callback(rows.persist().unpersist)
    return rows


def _counted(
    rows: DataFrame, wanted: Sequence[Expectation], *, finds_days: bool = False
) -> tuple[int, dict[str, int], set[date]]:
    """The number of rows, the number that break each expectation, and the days of the accepted rows."""
    broken = F.col(f"{RAW}.broken")
    measures = [F.count_if(F.array_contains(broken, one.reason)) for one in wanted]
    if finds_days:
        measures.append(F.collect_set(F.when(F.col(f"{RAW}.reason").isNull(), F.col("event_date"))))
    named = [one.alias(f"m{number}") for number, one in enumerate(measures)]
    row = rows.agg(F.count("*").alias("read"), *named).first()
    assert row is not None
    counts = {one.reason: int(row[number + 1]) for number, one in enumerate(wanted)}
    return int(row[0]), counts, set(row[-1]) if finds_days else set()


def referenced(rows: DataFrame, pipeline: Pipeline) -> DataFrame:
    """Mark the rows whose key is missing in a reference."""
    decode = pipeline.decode
    for number, one in enumerate(decode.references):
        found = f"_found_{number}"
        joined = _looked_up(rows, referenced_keys(rows.sparkSession, pipeline, one), one.key, found)
        is_broken = F.col(found).isNull() & _has_key(one.key) & _is_a_row(decode)
        rows = _marked(joined, rows.columns, is_broken, one.reason, one.level)
    return rows


def _looked_up(rows: DataFrame, keys: DataFrame, key: Sequence[str], found: str) -> DataFrame:
    """Rows with the column ``found``: true if the key is among ``keys``, else null."""
    names = [f"{found}_{name}" for name in key]
    others = keys.toDF(*names).distinct().withColumn(found, F.lit(True))
    is_same = F.lit(True)
    for name, other in zip(key, names, strict=True):
        is_same = is_same & (F.col(name) == F.col(other))
    return rows.join(others, is_same, "left")


def referenced_keys(spark: SparkSession, pipeline: Pipeline, reference: Reference) -> DataFrame:
    """The key columns of a reference's file or table."""
    there = _read(spark, Folder(address_of(reference.to, Path("/")), pipeline.storage))
    return there.select(*(f"`{name}`" for name in reference.columns or reference.key))


def _read(spark: SparkSession, place: Folder) -> DataFrame:
    if place.name.lower().endswith((".csv", ".csv.gz")):
        return spark.read.option("header", "true").csv(str(place))
    is_delta = not place.name.lower().endswith(".parquet") and (place / "_delta_log").names()
    return _read_delta(spark, place) if is_delta else spark.read.parquet(str(place))


def _read_delta(spark: SparkSession, place: Folder) -> DataFrame:
    there, paths = located(place), paths_of_delta(place)
    return spark.read.option("basePath", there.uri).parquet(*paths) if paths else spark.read.parquet(there.uri)


def paths_of_delta(place: Folder) -> list[str]:
    """The files of a Delta table's newest version, for Spark; in Delta's log their paths are percent-encoded."""
    there = located(place)
    files = DeltaTable(there.delta_uri, storage_options=there.storage_options).get_add_actions()
    return [there.of(unquote(path)) for path in pa.table(files).column("path").to_pylist()]


def _unique(rows: DataFrame, wanted: Sequence[Uniqueness], days: set[date], kept: Kept) -> DataFrame:
    """Mark the rows whose key is in an earlier row of the batch, or in silver."""
    for number, one in enumerate(wanted):
        is_judged = F.col(f"{RAW}.reason").isNull() & _has_key(one.key)
        earlier = Window.partitionBy(*one.key, is_judged).orderBy(*ARRIVAL)
        columns = rows.columns
        rows = rows.withColumn("_place", F.row_number().over(earlier))
        is_broken = is_judged & (F.col("_place") > 1)
        old = kept(days_near(days, one.within_days))
        if old is not None:
            found = f"_found_{number}"
            rows = _looked_up(rows, old.select(*one.key), one.key, found)
            is_broken = is_broken | (is_judged & F.col(found).isNotNull())
        rows = _marked(rows, columns, is_broken, one.reason, one.level)
    return rows


def _has_key(key: Sequence[str]) -> Column:
    """Whether a key has no null; as in SQL, keys with a null meet every expectation."""
    found = F.lit(True)
    for name in key:
        found = found & F.col(name).isNotNull()
    return found


def _is_a_row(decode: Decode) -> Column:
    return F.col("_op") != F.lit("d") if decode.changes else F.lit(True)


def _marked(rows: DataFrame, columns: Sequence[str], is_broken: Column, reason: str, level: str) -> DataFrame:
    """The rows with ``columns``; accepted rows that are broken get the reason, and are refused unless it only warns."""
    old = F.col(f"{RAW}.reason")
    broken = old.isNull() & is_broken
    none = F.array().cast("array<string>")
    raw = F.struct(
        *[F.col(f"{RAW}.{name}") for name in ("key", "value", "headers")],
        (F.when(broken, F.lit(reason)).otherwise(old) if level != "warn" else old).alias("reason"),
        F.concat(f"{RAW}.broken", F.when(broken, F.array(F.lit(reason))).otherwise(none)).alias("broken"),
    )
    return rows.select(*[F.col(f"`{name}`") for name in columns if name != RAW], raw.alias(RAW))


def refused_as_not_unique(decode: Decode) -> Column:
    """Whether a row was refused by a uniqueness, which a backfill cannot judge again: the order of rows is lost."""
    reasons = [one.reason for one in decode.uniqueness if one.level != "warn"]
    return F.col("reason").isin(reasons) if reasons else F.lit(False)
