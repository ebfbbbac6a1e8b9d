"""Proof from offsets and rows that nothing was lost or doubled, stage by stage.

Bronze is held against the offsets of its checkpoint, silver against bronze row by row, the dead-letter topic and gold
against silver, the published topic against gold.  What a stage has not read yet counts as pending, not as lost.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from pykafka08.spark.client_properties import PREFIX, SECURITY
from pykafka08.spark.offsets_json import write_offsets
from pykafka08.spark.pipeline.aggregating import current, key_of, windowed
from pykafka08.spark.pipeline.decoding import PLACE
from pykafka08.spark.pipeline.definitions import check_definitions
from pykafka08.spark.pipeline.gold_sql import resolved
from pykafka08.spark.pipeline.settings import Aggregate, DeadLetters, Pipeline, Source
from pykafka08.spark.pipeline.starting import Offsets, committed_offsets, kafka_options, started
from pykafka08.spark.pipeline.stores import Folder
from pykafka08.spark.pipeline.tables import rows as table_rows
from pykafka08.spark.pipeline.tables.model import NEW_ROWS, DataFile, State
from pykafka08.spark.pipeline.tables.removed import Ranges, read_ranges
from pykafka08.spark.pipeline.tables.table import Table

__all__ = [
    "Finding",
    "PinnedTables",
    "all_bronze",
    "bronze_of",
    "is_in_range",
    "last_header",
    "places_in_kafka",
    "removed_places",
    "verify",
]

BEGUN, DONE = "backfill-begun", "backfill-done"
"""Queries of a backfill's commits to rejects: one before its commit to silver, one after it."""
DECODE = "decode-"
IN_KAFKA = ("topic", "partition", "offset")
"""The columns of a record's place in bronze, and in a topic as Spark reads it."""
REMOVED = (
    "r_source STRING, r_topic STRING, r_partition INT, r_first BIGINT, r_last BIGINT, r_rows BIGINT, r_is_whole BOOLEAN"
)
"""The columns of :func:`removed_places`."""
OF_SECURITY = tuple(PREFIX + each for each in SECURITY)


@dataclass(frozen=True)
class Finding:
    """What was found of one stage."""

    stage: str
    is_right: bool
    text: str


@dataclass(frozen=True)
class PinnedTables:
    """One version of each table, for all findings.  Retention and stages may commit while rows are counted."""

    states: Mapping[Folder, State]
    ranges: Mapping[str, Ranges]
    """Source → the offsets that retention had removed from that version of bronze."""

    @classmethod
    def of(cls, pipeline: Pipeline) -> PinnedTables:
        """The newest versions, of gold first and of bronze last, so that every row has its rows in earlier tables."""
        of_gold = (pipeline.gold(name) for name in pipeline.aggregates)
        states = {one: Table(one).state() for one in (*of_gold, pipeline.silver, pipeline.rejects)}
        ranges = {}
        for name in pipeline.sources:
            table = Table(pipeline.bronze(name))
            states[table.folder] = state = table.state()
            ranges[name] = read_ranges(table, state.totals)
        return cls(states, ranges)

    def removed(self, *folders: Folder) -> int:
        """The number of rows that retention has removed from tables."""
        return sum(self.states[one].removed for one in folders)


def verify(spark: SparkSession, pipeline: Pipeline, *, against_kafka: bool = False) -> Iterator[Finding]:
    """One finding after the other; ``against_kafka``: the ranges are read again and counted, for topics with holes.

    All findings are about the versions that the tables have at the start.

    Raises:
        ConfigError: as :func:`gold_sql.resolved` or :func:`definitions.check_definitions`.
    """
    pipeline = resolved(spark, pipeline)
    check_definitions(spark, pipeline)
    pinned = PinnedTables.of(pipeline)
    for source in pipeline.sources.values():
        yield _ingested(spark, pipeline, source, pinned, against_kafka=against_kafka)
    yield _decoded(spark, pipeline, pinned)
    if pipeline.dead_letters is not None:
        yield _letters(spark, pipeline.dead_letters, pinned.states[pipeline.rejects])
    for name, aggregate in pipeline.aggregates.items():
        yield _aggregated(spark, pipeline, name, aggregate, pinned)
        if aggregate.topic:
            yield _published(spark, pipeline, name, aggregate, pinned)


def bronze_of(spark: SparkSession, pipeline: Pipeline, source: str, pinned: PinnedTables | None = None) -> DataFrame:
    """All rows of bronze."""
    table = Table(pipeline.bronze(source))
    return table_rows.read_bronze(spark, table, _files(table, pinned))


def _files(table: Table, pinned: PinnedTables | None) -> Sequence[DataFile]:
    return table.live() if pinned is None else pinned.states[table.folder].files


def all_bronze(spark: SparkSession, pipeline: Pipeline, pinned: PinnedTables | None = None) -> DataFrame:
    """The coordinates of all bronze rows, as :data:`PLACE`."""
    places = [
        bronze_of(spark, pipeline, name, pinned).select(
            F.lit(name).alias("_source"),
            F.col("topic").alias("_topic"),
            F.col("partition").alias("_partition"),
            F.col("offset").alias("_offset"),
        )
        for name in pipeline.sources
    ]
    joined = places[0]
    for one in places[1:]:
        joined = joined.unionByName(one)
    return joined


def _ingested(
    spark: SparkSession, pipeline: Pipeline, source: Source, pinned: PinnedTables, *, against_kafka: bool
) -> Finding:
    stage = f"ingest-{source.name}"
    state = pinned.states[pipeline.bronze(source.name)]
    start, end = started(pipeline, source), committed_offsets(pipeline, source, state)
    if start is None or end is None:
        return Finding(stage, True, "nothing was read yet")
    rows = bronze_of(spark, pipeline, source.name, pinned)
    counted = rows.groupBy("topic", "partition").agg(
        F.count("*"), F.countDistinct("offset"), F.min("offset"), F.max("offset")
    )
    found = {(one[0], one[1]): tuple(one)[2:] for one in counted.collect()}
    ranges, removed = removed_places(spark, pipeline, [source.name], pinned), state.removed
    again = _removed_and_there(rows, source.name, ranges) if removed else 0
    covered = {(tp.topic, tp.partition): (start.get(tp, 0), at) for tp, at in end.items()}
    doubled = again + sum(count - distinct for count, distinct, _, _ in found.values())
    outside = sum(
        1
        for place, (_, _, first, last) in found.items()
        if place not in covered or first < covered[place][0] or last >= covered[place][1]
    )
    expected = sum(last - first for first, last in covered.values())
    distinct = sum(each[1] for each in found.values()) + removed - again
    holes = expected - distinct
    text = (
        f"{distinct:,} rows of {expected:,} offsets in {len(covered)} partitions, {doubled:,} doubled, {holes:,} holes"
    )
    if removed:
        text += f", {removed:,} of these rows removed by retention"
    if outside:
        text += f", {outside} partitions beyond their offsets"
    if against_kafka and holes:
        there = places_in_kafka(spark, source, {tp: start.get(tp, 0) for tp in end}, end)
        missing = there.join(rows, ["topic", "partition", "offset"], "left_anti")
        if removed:
            missing = missing.join(F.broadcast(ranges), is_in_range(IN_KAFKA, source.name), "left_anti")
        (holes,) = _counts(missing, "count(*)")
        text += f"; of what Kafka has in these ranges {holes:,} are missing"
    elif holes:
        text += " (compacted or transactional topics have some: --kafka counts what is there)"
    return Finding(stage, not (doubled or outside or holes), text)


def removed_places(
    spark: SparkSession, pipeline: Pipeline, sources: Iterable[str], pinned: PinnedTables | None = None
) -> DataFrame:
    """The ranges of offsets that retention has removed from bronze, a row for each."""
    rows = []
    for source in sources:
        every = read_ranges(Table(pipeline.bronze(source))) if pinned is None else pinned.ranges[source]
        rows += [(source, *partition, *one, one.is_whole) for partition, ranges in every.items() for one in ranges]
    return spark.createDataFrame(rows, REMOVED)


def is_in_range(place: Sequence[str], source: str = "") -> Column:
    """Whether the row of a record is in a range of :data:`REMOVED`.  ``place``: its columns."""
    topic, partition, offset = (F.col(one) for one in place[-3:])
    origin = F.lit(source) if source else F.col(place[0])
    is_of_partition = (origin == F.col("r_source")) & (topic == F.col("r_topic")) & (partition == F.col("r_partition"))
    return is_of_partition & offset.between(F.col("r_first"), F.col("r_last"))


def _removed_and_there(rows: DataFrame, source: str, ranges: DataFrame) -> int:
    """The number of records in bronze that retention has removed too: each of them was read twice."""
    whole = F.broadcast(ranges.where("r_is_whole"))
    places = rows.select(*IN_KAFKA).distinct()
    return places.join(whole, is_in_range(IN_KAFKA, source), "left_semi").count()


def places_in_kafka(spark: SparkSession, source: Source, start: Offsets, end: Offsets) -> DataFrame:
    """Topic, partition and offset of the records that are still there, of these partitions alone."""
    options = {
        name: value for name, value in kafka_options(source).items() if not name.startswith(("max", "subscribe"))
    }
    partitions: dict[str, list[int]] = {}
    for tp in end:
        partitions.setdefault(tp.topic, []).append(tp.partition)
    options.update({"assign": json.dumps(partitions), "failOnDataLoss": "false", "columns": "topic,partition,offset"})
    options.update({"startingOffsets": write_offsets(start), "endingOffsets": write_offsets(end)})
    return spark.read.format("pykafka08").options(**options).load()


def silver_of(spark: SparkSession, pipeline: Pipeline, pinned: PinnedTables | None = None) -> DataFrame:
    """The accepted rows."""
    table = Table(pipeline.silver)
    return table_rows.read(spark, table, _files(table, pinned), table_rows.silver_schema(spark, pipeline.decode))


def rejects_of(spark: SparkSession, pipeline: Pipeline, pinned: PinnedTables | None = None) -> DataFrame:
    """The refused records."""
    table = Table(pipeline.rejects)
    return table_rows.read(spark, table, _files(table, pinned), table_rows.rejects_schema(spark, pipeline.decode))


def is_interrupted(rejects: State) -> bool:
    """Whether a backfill ended between its commits, so that records may be in both silver and rejects."""
    return rejects.newest.get(BEGUN, -1) > rejects.newest.get(DONE, -1)


def refused_ahead(silver: State, rejects: Table, state: State | None = None) -> Counter[str]:
    """Query → refused records of batches whose accepted rows are not in silver, because an attempt ended between.

    ``state``: of rejects; by default the newest.
    """
    ahead: Counter[str] = Counter()
    state = state or rejects.state()
    newest = {query: batch for query, batch in state.newest.items() if query.startswith(DECODE)}
    if any(batch > silver.newest.get(query, -1) for query, batch in newest.items()):
        for commit in rejects.existing_commits():
            is_new = commit.kind == NEW_ROWS and commit.version <= state.version
            if is_new and commit.batch > silver.newest.get(commit.query, -1):
                ahead[commit.query] += sum(one.rows for one in commit.added)
    return ahead


def _decoded(spark: SparkSession, pipeline: Pipeline, pinned: PinnedTables) -> Finding:
    silver, rejects = pinned.states[pipeline.silver], pinned.states[pipeline.rejects]
    ahead = sum(refused_ahead(silver, Table(pipeline.rejects), rejects).values())
    read, duplicates = (silver.counts.get(name, 0) for name in ("read", "duplicates"))
    bronze = all_bronze(spark, pipeline, pinned).withColumn("in_bronze", F.lit(1)).withColumn("in_silver", F.lit(0))
    good, bad = silver_of(spark, pipeline, pinned), rejects_of(spark, pipeline, pinned)
    places = good.select(*PLACE).unionByName(bad.select(*PLACE))
    places = places.withColumn("in_bronze", F.lit(0)).withColumn("in_silver", F.lit(1))
    each = bronze.unionByName(places).groupBy(*PLACE).agg(F.sum("in_bronze").alias("b"), F.sum("in_silver").alias("s"))
    from_bronze = pinned.removed(*(pipeline.bronze(name) for name in pipeline.sources))
    removed = silver.removed + rejects.removed
    if from_bronze:
        ranges = F.broadcast(removed_places(spark, pipeline, pipeline.sources, pinned))
        each = each.join(ranges, is_in_range(PLACE), "left")
    is_removed = "r_source is not null" if from_bronze else "false"
    counted = ("sum(b)", "sum(s)", "count_if(s > 0)", "count_if(b > 0)", f"count_if(b = 0 and not {is_removed})")
    there, rows, distinct, places_there, invented = _counts(each, *counted)
    pending = there + from_bronze - read
    known = distinct - invented + removed
    lost = places_there + from_bronze - known - (pending - ahead) - duplicates
    text = (
        f"{rows:,} rows of {read:,}, {duplicates:,} duplicates by key, {rows - distinct:,} doubled, {lost:,} lost, "
        f"{invented:,} of unknown origin, {pending:,} pending"
    )
    if removed:
        text += f", {removed:,} removed by retention"
    if rows != distinct and is_interrupted(rejects):
        text += " (a backfill was interrupted: repeat it)"
    return Finding("decode", rows == distinct and lost == 0 and invented == 0 and pending >= 0, text)


def _counts(rows: DataFrame, *expressions: str) -> list[int]:
    """Aggregates over all rows in one query, 0 where there are none."""
    found = rows.agg(*[F.expr(one) for one in expressions]).first()
    assert found is not None
    return [one or 0 for one in found]


def _topic(spark: SparkSession, sink: DeadLetters | Aggregate) -> DataFrame:
    options = {"kafka.bootstrap.servers": sink.bootstrap_servers, "subscribe": sink.topic, "includeHeaders": "true"}
    options.update({name: value for name, value in sink.options.items() if name.lower().startswith(OF_SECURITY)})
    options["kafka.isolation.level"] = "read_committed"
    return spark.read.format("pykafka08").options(**options).load()


def _letters(spark: SparkSession, letters: DeadLetters, rejects: State) -> Finding:
    refused = rejects.brought.get(NEW_ROWS, 0)
    if not refused:
        return Finding("dead-letters", True, "none was refused")
    names = ("source", "topic", "partition", "offset")
    places = _topic(spark, letters).select(
        *[last_header(f"dead-letter.{name}").cast("string").alias(name) for name in names]
    )
    rows, distinct = _counts(places, "count(*)", f"count(distinct struct({', '.join(names)}))")
    text = f"{distinct:,} of {refused:,} refused records in {letters.topic}, {rows - distinct:,} doubled"
    return Finding("dead-letters", rows == distinct == refused, text)


def last_header(name: str) -> Column:
    """Of several with one name, as of a record that was a dead letter before, the one that was added last."""
    found = F.filter("headers", lambda header: header["key"] == name)
    return F.try_element_at(found, F.lit(-1))["value"]


def gold_of(spark: SparkSession, pipeline: Pipeline, name: str, pinned: PinnedTables | None = None) -> DataFrame:
    """The newest row of each window and group."""
    table, aggregate = Table(pipeline.gold(name)), pipeline.aggregates[name]
    schema = table_rows.gold_schema(spark, pipeline.decode, aggregate)
    return current(table_rows.read(spark, table, _files(table, pinned), schema), aggregate)


def _aggregated(
    spark: SparkSession, pipeline: Pipeline, name: str, aggregate: Aggregate, pinned: PinnedTables
) -> Finding:
    key, state = key_of(aggregate), pinned.states[pipeline.gold(name)]
    is_kept = _is_kept(pipeline, name, pinned)
    gold = gold_of(spark, pipeline, name, pinned).where(is_kept)
    anew = windowed(silver_of(spark, pipeline, pinned), aggregate).where(is_kept)
    pairs = gold.alias("g").join(
        anew.alias("a"), [F.col(f"g.{one}").eqNullSafe(F.col(f"a.{one}")) for one in key], "full_outer"
    )
    differ = F.lit(False)
    for measure in aggregate.measures:
        differ = differ | ~_alike(pairs, anew, measure)
    windows, differing = _counts(pairs.select(differ.alias("differs")), "count(*)", "count_if(differs)")
    replaced = state.rows - gold_of(spark, pipeline, name, pinned).count()
    text = f"{windows:,} windows, {differing:,} differ from silver, {replaced:,} rows are of earlier batches"
    if differing:
        text += " (rows later than the watermark, or still pending: a backfill of their dates takes them in)"
    if pinned.removed(pipeline.gold(name), pipeline.silver):
        text += "; windows of removed days are not compared"
    return Finding(f"aggregate-{name}", differing == 0, text)


def _is_kept(pipeline: Pipeline, name: str, pinned: PinnedTables) -> Column:
    """Whether retention has removed neither a window from gold, nor rows of its days from silver."""
    tables = (pipeline.gold(name), pipeline.silver)
    of_gold, of_silver = (pinned.states[one].totals.retention.get("until") for one in tables)
    is_kept = F.lit(True)
    if of_gold:
        is_kept = is_kept & (F.col("window_end") > F.lit(of_gold).cast("timestamp"))
    if of_silver:
        is_kept = is_kept & (F.to_date("window_start") > F.lit(of_silver).cast("date"))
    return is_kept


def _alike(pairs: DataFrame, anew: DataFrame, measure: str) -> Column:
    """Sums of floating-point numbers depend on their order."""
    gold, fresh = F.col(f"g.{measure}"), F.col(f"a.{measure}")
    if anew.schema[measure].dataType.typeName() not in ("double", "float"):
        return gold.eqNullSafe(fresh)
    near = F.abs(gold - fresh) <= F.greatest(F.abs(fresh), F.lit(1.0)) * 1e-9
    return F.coalesce(near, gold.isNull() & fresh.isNull())


def _published(
    spark: SparkSession, pipeline: Pipeline, name: str, aggregate: Aggregate, pinned: PinnedTables
) -> Finding:
    gold = gold_of(spark, pipeline, name, pinned)
    expected = gold.select(
        F.to_json(F.struct(*key_of(aggregate))).alias("key"),
        F.to_json(F.struct(*key_of(aggregate), *aggregate.measures)).alias("value"),
    )
    if gold.isEmpty():
        return Finding(f"publish-{name}", True, "nothing to publish yet")
    records = _topic(spark, aggregate)
    newest = records.groupBy(F.col("key").cast("string").alias("key")).agg(
        F.max_by(F.col("value").cast("string"), "offset").alias("value")
    )
    pairs = expected.withColumnRenamed("value", "gold").join(newest, "key", "full_outer")
    until = pinned.states[pipeline.gold(name)].totals.retention.get("until")
    if until:
        end = F.get_json_object("key", "$.window_end").cast("timestamp")
        pairs = pairs.where(F.col("gold").isNotNull() | (end > F.lit(until).cast("timestamp")))
    rows, missing, differing = _counts(
        pairs,
        "count_if(value is not null)",
        "count_if(value is null)",
        "count_if(value is not null and not value <=> gold)",
    )
    text = f"{rows:,} keys in {aggregate.topic}, {missing:,} windows missing there, {differing:,} that differ"
    return Finding(f"publish-{name}", missing == 0 and differing == 0, text)
