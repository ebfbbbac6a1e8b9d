"""Days of silver and gold made anew from bronze, with the functions of the streams: after a new rule, or for late rows.

One commit replaces the files of the days; streams pass it over, so nothing is counted twice.  Days that
the watermark has passed are meant: a window that a stream still has open is overwritten by its next update.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date, timedelta

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline.aggregating import current, windowed
from pykafka08.spark.pipeline.checkpoints import planned_position
from pykafka08.spark.pipeline.decoding import PLACE, accepted, decoded, rejected
from pykafka08.spark.pipeline.definitions import check_definitions
from pykafka08.spark.pipeline.duplicates import first_of_each, not_there
from pykafka08.spark.pipeline.gold_sql import resolved
from pykafka08.spark.pipeline.judging import persisted, referenced, refused_as_not_unique
from pykafka08.spark.pipeline.leasing import BACKFILL as WORK
from pykafka08.spark.pipeline.leasing import leased
from pykafka08.spark.pipeline.settings import Aggregate, Pipeline
from pykafka08.spark.pipeline.tables import rows as table_rows
from pykafka08.spark.pipeline.tables.model import BACKFILL, NEW_ROWS, Commit, DataFile
from pykafka08.spark.pipeline.tables.position import files_until
from pykafka08.spark.pipeline.tables.table import Fence, Table
from pykafka08.spark.pipeline.verifying import (
    BEGUN,
    DONE,
    all_bronze,
    is_in_range,
    is_interrupted,
    refused_ahead,
    rejects_of,
    removed_places,
    silver_of,
)

__all__ = ["Backfilled", "backfill", "check_days"]

WAS = "_was"
"""The column with the place of a row before the backfill."""
ACCEPTED, REFUSED, NOWHERE = "accepted", "refused", "nowhere"
"""Values of :data:`WAS`: in silver, in rejects, or dropped as a duplicate."""
IN_BRONZE = ("topic", "partition", "offset")
"""Names of a record's place in bronze; silver has them behind an underscore."""
SHOWN = 3
"""The number of partitions that an error names."""
AS_IN_BRONZE = ("key", "value", "headers", *(f"_{one} AS {one}" for one in (*IN_BRONZE, "timestamp")))
"""What was refused, as the columns of bronze that decoding reads."""


@dataclass(frozen=True)
class Backfilled:
    """What became of a table."""

    table: str
    rows_before: int
    rows_after: int


def check_days(first: date, last: date) -> None:
    """ConfigError if the first day is after the last."""
    if first > last:
        raise ConfigError(f"days to make anew: {first} is after {last}")


def backfill(spark: SparkSession, pipeline: Pipeline, first: date, last: date) -> list[Backfilled]:
    """Compute the days ``first`` to ``last`` (both included, event time in UTC) again: silver, then each gold table.

    If the process is killed, at any point, repeat the backfill.  Until then silver has the old or the new rows, records
    may be in rejects, too, and gold may have old windows.

    Raises:
        ConfigError: as :func:`check_days`, :func:`gold_sql.resolved` or :func:`definitions.check_definitions`, a column
            of silver has another type, another backfill is running, or retention has removed rows of these days from
            silver, or their records from bronze.
        LeaseLostError: the lease was not renewed in time, and another backfill has taken it.
    """
    check_days(first, last)
    pipeline = resolved(spark, pipeline)
    with leased(pipeline.root, [WORK]) as lease:
        check_definitions(spark, pipeline)  # with the lease, so that no other process restates gold from here on
        Table(pipeline.silver).check(table_rows.silver_schema(spark, pipeline.decode).json())
        _check_silver(pipeline, first)
        made = [_silver(spark, pipeline, lease, first, last)]
        for name, one in pipeline.aggregates.items():
            made.append(_gold(spark, pipeline, lease, name, one, first, last))
        return made


def _check_silver(pipeline: Pipeline, first: date) -> None:
    """Raise ConfigError if retention has removed the first day from silver, or a later one."""
    totals = Table(pipeline.silver).totals()
    until = totals.retention.get("until", "")
    if first.isoformat() <= until:
        raise ConfigError(
            f"silver: retention has removed {totals.counts['removed']:,} rows of the days up to {until}; choose days "
            "after it"
        )


def _check_bronze(spark: SparkSession, scope: _Scope) -> None:
    """Raise ConfigError if retention has removed records from bronze whose rows the backfill would replace."""
    if not scope.has_removed:
        return
    ranges = F.broadcast(removed_places(spark, scope.pipeline, scope.pipeline.sources))
    rows = scope.was_good.join(ranges, is_in_range(PLACE), "left_semi")
    rows = rows.join(all_bronze(spark, scope.pipeline), list(PLACE), "left_anti")
    counted = rows.groupBy(*PLACE[:3]).agg(F.count("*"), F.min("_offset"), F.max("_offset")).orderBy(*PLACE[:3])
    found = counted.collect()
    if found:
        shown = ", ".join(f"{one[1]}-{one[2]} from offset {one[4]} to {one[5]}" for one in found[:SHOWN])
        more = f" and {len(found) - SHOWN} more partitions" if len(found) > SHOWN else ""
        raise ConfigError(
            f"bronze: retention has removed {sum(one[3] for one in found):,} records of these days "
            f"({shown}{more}), which a backfill would have to decode again; choose days whose records bronze has"
        )


def _silver(spark: SparkSession, pipeline: Pipeline, fence: Fence, first: date, last: date) -> Backfilled:
    """Three commits: newly refused records into rejects, the days of silver, then accepted records out of rejects.

    So a record is always in silver or in rejects.  After a crash it may be in both until the backfill is repeated.
    """
    silver, rejects = Table(pipeline.silver, fence), Table(pipeline.rejects, fence)
    is_made = False
    while not is_made:
        scope = _scope(spark, pipeline, first, last)
        _check_bronze(spark, scope)
        with ExitStack() as until:
            records = _records(spark, scope, until)
            candidates = persisted(_candidates(scope, records), until)
            good = persisted(_without_duplicates(scope, candidates), until)
            bad = persisted(rejected(records).join(scope.was_good, list(PLACE), "left_semi"), until)
            was, now = _counts_by_was(candidates), _counts_by_was(good)
            is_moving = scope.is_torn or now[REFUSED] > 0 or not bad.isEmpty()
            if is_moving:
                _begin(spark, pipeline, rejects, bad)
            added = table_rows.write(silver, silver.attempt(BACKFILL, scope.version), good.drop(WAS))
            counts = {"duplicates": was[ACCEPTED] - now[ACCEPTED] - now[NOWHERE]}
            removed = tuple(one.path for one in scope.old)
            commit = Commit(scope.version, BACKFILL, BACKFILL, scope.version, tuple(added), removed, counts)
            is_made = silver.commit(commit)
            if is_made and is_moving:
                taken = silver_of(spark, pipeline) if scope.is_torn else good
                _end(spark, pipeline, rejects, taken.select(*PLACE))
    return Backfilled("silver", sum(one.rows for one in scope.old), sum(one.rows for one in added))


def _begin(spark: SparkSession, pipeline: Pipeline, rejects: Table, bad: DataFrame) -> None:
    """Add refused records to rejects, without those that an interrupted backfill has added."""
    new = bad.join(rejects_of(spark, pipeline).select(*PLACE), list(PLACE), "left_anti").select(*bad.columns)
    added = table_rows.write(rejects, rejects.attempt(BEGUN, rejects.version + 1), new)
    table_rows.append_commit(rejects, Commit(0, BACKFILL, BEGUN, rejects.newest(BEGUN) + 1, tuple(added)))


def _end(spark: SparkSession, pipeline: Pipeline, rejects: Table, taken: DataFrame) -> None:
    """Remove the records that are accepted now from rejects, by replacing their files."""
    schema = table_rows.rejects_schema(spark, pipeline.decode)
    is_made = False
    while not is_made:
        state = rejects.state()
        live = table_rows.read(spark, rejects, state.files, schema)
        concerned: list[DataFile] = []
        if state.files:
            marked = live.select(*PLACE, F.col("_metadata.file_path").alias("file"))
            found = marked.join(taken, list(PLACE), "left_semi").select("file").distinct().collect()
            concerned = [one for one in state.files if any(row[0].endswith(f"/{one.path}") for row in found)]
        added: list[DataFile] = []
        if concerned:
            still = table_rows.read(spark, rejects, concerned, schema).join(taken, list(PLACE), "left_anti")
            added = table_rows.write(rejects, rejects.attempt(DONE, state.version + 1), still.select(*live.columns))
        removed = tuple(one.path for one in concerned)
        done = rejects.newest(BEGUN)
        is_made = rejects.commit(Commit(state.version + 1, BACKFILL, DONE, done, tuple(added), removed))


@dataclass(frozen=True)
class _Scope:
    """What silver holds before it."""

    pipeline: Pipeline
    days: Column
    """Whether a row is of the days."""
    version: int
    """The version of the next commit to silver."""
    old: list[DataFile]
    """The files with rows of the days, which the backfill replaces."""
    is_torn: bool
    """Whether a backfill was interrupted; a record in both silver and rejects then counts as accepted."""
    newest: Mapping[str, int]
    """Query → its last batch that silver has taken."""
    has_removed: bool
    """Whether retention has removed records from bronze."""
    is_all_there: bool
    """Whether silver has a row for every record that it has taken: none was left out as a duplicate."""
    was_good: DataFrame
    """Coordinates of the rows in `old`."""
    was_bad: DataFrame
    """Refused records of the batches that are committed to silver."""
    kept: DataFrame
    """Accepted rows of other days."""


def _scope(spark: SparkSession, pipeline: Pipeline, first: date, last: date) -> _Scope:
    silver, rejects = Table(pipeline.silver), Table(pipeline.rejects)
    state, refused = silver.state(), rejects.state()
    old = [one for one in state.files if first.isoformat() <= one.day <= last.isoformat()]
    kept = [one for one in state.files if one not in old]
    good = table_rows.silver_schema(spark, pipeline.decode)
    was_bad = table_rows.read(spark, rejects, refused.files, table_rows.rejects_schema(spark, pipeline.decode))
    is_torn = is_interrupted(refused)
    if is_torn:
        places = table_rows.read(spark, silver, state.files, good).select(*PLACE)
        was_bad = was_bad.join(places, list(PLACE), "left_anti").select(*was_bad.columns)
    ahead = refused_ahead(state, rejects)
    for query in ahead:
        was_bad = _without_ahead(spark, pipeline, was_bad, query.partition("-")[2], state.newest.get(query, -1))
    return _Scope(
        pipeline=pipeline,
        days=F.col("event_date").between(first, last),
        version=max(state.version, 0) + 1,
        old=old,
        is_torn=is_torn,
        newest=state.newest,
        has_removed=any(Table(pipeline.bronze(name)).totals().retention for name in pipeline.sources),
        is_all_there=not is_torn and not ahead and state.counts.get("read", 0) == state.rows + refused.rows,
        was_good=table_rows.read(spark, silver, old, good).select(*PLACE),
        was_bad=was_bad,
        kept=table_rows.read(spark, silver, kept, good),
    )


def _without_ahead(spark: SparkSession, pipeline: Pipeline, bad: DataFrame, source: str, batch: int) -> DataFrame:
    """Without a source's refused records of batches after ``batch``, which the stream will complete."""
    bronze = table_rows.read_bronze(spark, Table(pipeline.bronze(source)), _files_until(pipeline, source, batch))
    taken = _places(bronze, source).select(*PLACE)
    of_source = F.col("_source") == source
    there = bad.where(of_source).join(taken, list(PLACE), "left_semi").select(*bad.columns)
    return bad.where(~of_source).unionByName(there)


def _records(spark: SparkSession, scope: _Scope, until: ExitStack) -> DataFrame:
    """What may come into these days, by the settings as they are now: what is in them, was refused, or left out.

    Rows that other days hold stay there, so their records are not asked.  Those that were refused silver has whole.
    """
    every = None
    for name in scope.pipeline.sources:
        is_judged = (F.col("_source") == name) & ~refused_as_not_unique(scope.pipeline.decode)
        refused = scope.was_bad.where(is_judged).selectExpr(*AS_IN_BRONZE)
        raw = _concerned(spark, scope, name, until).select(*refused.columns).unionByName(refused)
        rows = referenced(decoded(raw, scope.pipeline.decode, name), scope.pipeline)
        every = rows if every is None else every.unionByName(rows)
    assert every is not None
    return every


def _concerned(spark: SparkSession, scope: _Scope, source: str, until: ExitStack) -> DataFrame:
    """Bronze rows that are in the days, or nowhere in silver; of the files without one, the coordinates are read."""
    read = _files_until(scope.pipeline, source, scope.newest.get(f"decode-{source}", -1))
    bronze = table_rows.read_bronze(spark, Table(scope.pipeline.bronze(source)), read)
    if not read:
        return bronze
    places = _places(bronze, source, F.col("_metadata.file_name").alias("file"))
    if scope.is_all_there:
        wanted = places.join(scope.was_good, list(PLACE), "left_semi")
    else:
        elsewhere = scope.kept.select(*PLACE).unionByName(scope.was_bad.select(*PLACE))
        wanted = places.join(elsewhere, list(PLACE), "left_anti")
    files = [row[0] for row in persisted(wanted, until).select("file").distinct().collect()]
    is_same = [F.col(name) == F.col(f"_{name}") for name in IN_BRONZE]
    return bronze.where(F.col("_metadata.file_name").isin(files)).join(wanted, is_same, "left_semi")


def _places(bronze: DataFrame, source: str, *more: Column) -> DataFrame:
    names = [F.col(name).alias(f"_{name}") for name in IN_BRONZE]
    return bronze.select(F.lit(source).alias("_source"), *names, *more)


def _files_until(pipeline: Pipeline, source: str, batch: int) -> list[DataFile]:
    """The bronze files that the decode stage of a source has read up to ``batch``."""
    end = planned_position(pipeline.checkpoint(f"decode-{source}"), batch)
    return files_until(Table(pipeline.bronze(source)), (NEW_ROWS,), end)


def _candidates(scope: _Scope, records: DataFrame) -> DataFrame:
    """Rows that are accepted now, with :data:`WAS`: of the days, or that were accepted in them and are of others now.

    Not those that other days hold: a row of them that is of these days now changes when its old day is made anew.
    """
    was_good = scope.was_good.withColumn(WAS, F.lit(ACCEPTED))
    was = was_good.unionByName(scope.was_bad.select(*PLACE, F.lit(REFUSED).alias(WAS)))
    rows = accepted(records)
    marked = rows.join(was, list(PLACE), "left").fillna(NOWHERE, [WAS])
    return marked.where(scope.days | (F.col(WAS) == ACCEPTED)).select(*rows.columns, WAS)


def _without_duplicates(scope: _Scope, candidates: DataFrame) -> DataFrame:
    """Of one key a row that was accepted before goes first: what the stream took is what remains."""
    duplicates = scope.pipeline.decode.duplicates
    if duplicates is None:
        return candidates
    was_good = F.col(WAS) == ACCEPTED
    staying = not_there(first_of_each(candidates.where(was_good), duplicates), scope.kept, duplicates)
    coming = not_there(first_of_each(candidates.where(~was_good), duplicates), scope.kept, duplicates)
    return staying.unionByName(not_there(coming, staying, duplicates))


def _counts_by_was(rows: DataFrame) -> Counter[str]:
    """The number of rows for each value of :data:`WAS`."""
    return Counter({row[0]: row[1] for row in rows.groupBy(WAS).count().collect()})


def _gold(
    spark: SparkSession,
    pipeline: Pipeline,
    fence: Fence,
    name: str,
    aggregate: Aggregate,
    first: date,
    last: date,
) -> Backfilled:
    """All of a gold table, which is small, with the windows that overlap these days anew; they are published again."""
    table = Table(pipeline.gold(name), fence)
    is_of_days = (F.col("window_start") < F.lit(last + timedelta(days=1))) & (F.col("window_end") > F.lit(first))
    with ExitStack() as until:
        windows = persisted(windowed(silver_of(spark, pipeline), aggregate).where(is_of_days), until)
        is_made = False
        while not is_made:
            with ExitStack() as attempt:
                state = table.state()
                version = max(state.version, 0) + 1
                newest = state.newest.get(f"aggregate-{name}", 0)
                schema = table_rows.gold_schema(spark, pipeline.decode, aggregate)
                gold = table_rows.read(spark, table, state.files, schema)
                there = persisted(current(gold, aggregate), attempt)
                before = there.where(is_of_days).count()
                anew = there.where(~is_of_days).unionByName(table_rows.gold_rows(windows, newest))
                added = table_rows.write(table, table.attempt(BACKFILL, version), anew)
                removed = tuple(one.path for one in state.files)
                is_made = table.commit(Commit(version, BACKFILL, BACKFILL, version, tuple(added), removed))
        return Backfilled(f"gold/{name}", before, windows.count())
