"""Decoding of raw records into typed rows: format, event time, rules, and the reasons of refused records.

Pure functions of DataFrames: streams and backfills go through the same ones.

Bronze has the columns of :data:`BRONZE_SCHEMA`.  A decoded row has the columns of the settings' schema, then
``event_time``, ``event_date`` (UTC), of change records ``changes.COLUMNS``, and the record's coordinates
:data:`COORDINATES`; beside these, until accepted and rejected are parted, the raw ``key``, ``value``, ``headers``,
``reason`` (null: accepted) and ``broken``, the expectations that it does not meet, in one column :data:`RAW`.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StringType, StructField, StructType

from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline import changes
from pykafka08.spark.pipeline.settings import Decode

__all__ = ["BRONZE_SCHEMA", "COORDINATES", "PLACE", "accepted", "columns_of", "decoded", "rejected"]

BRONZE_SCHEMA = (
    "key BINARY, value BINARY, partition INT, offset BIGINT, timestamp TIMESTAMP, timestampType INT, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>, topic STRING, ingest_date DATE"
)
COORDINATES = ("_source", "_topic", "_partition", "_offset", "_timestamp")
PLACE = COORDINATES[:4]
"""The coordinates that identify a record."""
RAW = "_raw"
BROKEN = "_broken"
LAST_YEAR = 9999
"""Spark has later years; Python, which reads the tables too, does not."""


def columns_of(decode: Decode) -> list[str]:
    """The names of the format's columns."""
    return ["key", "text"] if decode.format == "raw" else _schema(decode).fieldNames()


def decoded(bronze: DataFrame, decode: Decode, source: str) -> DataFrame:
    """Every row of ``bronze``, decoded and marked; no row is dropped."""
    names = columns_of(decode)
    raw = F.struct("key", "value", "headers").alias(RAW)
    coordinates = [
        F.lit(source).alias("_source"),
        F.col("topic").alias("_topic"),
        F.col("partition").alias("_partition"),
        F.col("offset").alias("_offset"),
        F.col("timestamp").alias("_timestamp"),
    ]
    opened = _opened(bronze.select(*_texts(decode), raw, *coordinates), decode)
    extra = changes.COLUMNS if decode.changes else ()
    timed = opened.withColumn("event_time", _event_time(decode))
    reason = F.when(F.col(BROKEN).isNotNull(), F.col(BROKEN))
    reason = reason.when(F.col("event_time").isNull(), F.lit("no event time"))
    reason = reason.when(~F.year("event_time").between(1, LAST_YEAR), F.lit("event time beyond all calendars"))
    broken = F.when(reason.isNull(), _broken_rules(decode)).otherwise(F.array().cast("array<string>"))
    warnings = [f"rule: {name}" for name, rule in decode.rules.items() if rule.level == "warn"]
    timed = timed.withColumn("_rules", broken)
    refusing = F.array_except("_rules", F.array(*map(F.lit, warnings))) if warnings else F.col("_rules")
    return timed.select(
        *names,
        "event_time",
        F.to_date("event_time").alias("event_date"),
        *extra,
        *COORDINATES,
        F.struct(
            F.col(f"{RAW}.*"),
            F.coalesce(reason, F.get(refusing, F.lit(0))).alias("reason"),
            F.col("_rules").alias("broken"),
        ).alias(RAW),
    )


def _broken_rules(decode: Decode) -> Column:
    """The rules that a row breaks; none for a delete, which may have only its key."""
    is_deleted = F.col("_op") == F.lit("d") if decode.changes else F.lit(False)
    broken = []
    for name, rule in decode.rules.items():
        is_met = is_deleted | F.coalesce(F.expr(rule.check).cast("boolean"), F.lit(False))
        broken.append(F.when(~is_met, F.lit(f"rule: {name}")))
    if not broken:
        return F.array().cast("array<string>")
    no_text = F.array(F.lit(None).cast("string"))
    return F.array_except(F.array(*broken), no_text)  # unlike array_compact, Spark compiles it


def accepted(rows: DataFrame) -> DataFrame:
    """The rows that met all rules, without the raw record."""
    return rows.where(F.col(f"{RAW}.reason").isNull()).drop(RAW)


def rejected(rows: DataFrame) -> DataFrame:
    """The raw records of the other rows: ``key, value, headers, reason`` and the coordinates."""
    return rows.where(F.col(f"{RAW}.reason").isNotNull()).select(
        *[f"{RAW}.{name}" for name in ("key", "value", "headers", "reason")], *COORDINATES
    )


def _schema(decode: Decode) -> StructType:
    try:
        parsed = DataType.fromDDL(decode.schema)
    except Exception as error:
        raise ConfigError(f"decode.schema: {str(error).strip().splitlines()[0]}") from error
    if not isinstance(parsed, StructType):
        raise ConfigError("decode.schema: columns are wanted, as 'id BIGINT, name STRING'")
    return parsed


def _texts(decode: Decode) -> list[Column]:
    """The text of the value, and for change records also of the key."""
    columns = StructType() if decode.format == "raw" else _schema(decode)
    if not decode.changes:
        return [_text(decode, columns)(F.col("value")).alias("_text")]
    for name in decode.key:
        if name not in columns.names:
            raise ConfigError(f"decode.key: there is no column {name!r}")
    value = _text(decode, changes.envelope(columns))
    key = _text(decode, changes.key_fields(columns, decode.key), is_key=True)
    return [value(F.col("value")).alias("_text"), key(F.col("key")).alias("_key_text")]


def _text(decode: Decode, columns: StructType, *, is_key: bool = False) -> Callable[[Column], Column]:
    """A function from a binary column to ``text``, and ``reason`` if the value is refused for a known cause."""
    if decode.registry is not None:
        from pykafka08.spark.pipeline.registry.decoding import to_text

        return to_text(decode, columns, is_key=is_key)
    if decode.format == "avro":
        from pykafka08.spark.pipeline.avro import to_json

        return _alone(to_json(decode, columns))
    return _alone(lambda value: value.cast("string"))


def _alone(text: Callable[[Column], Column]) -> Callable[[Column], Column]:
    return lambda value: F.struct(text(value).alias("text"), F.lit(None).cast("string").alias("reason"))


def _opened(texts: DataFrame, decode: Decode) -> DataFrame:
    """The columns of the format, :data:`BROKEN` with the reason if a record is refused, and the raw record."""
    if decode.changes:
        return _opened_changes(texts, decode)
    fields, is_broken = _fields(decode)
    parsed = texts.select(fields.alias("_fields"), F.col("_text.reason").alias(BROKEN), RAW, *COORDINATES)
    why = F.coalesce(BROKEN, F.when(is_broken, F.lit(f"not {decode.format} of the schema")))
    names = columns_of(decode)
    return parsed.select(
        *[F.col(f"_fields.`{name}`").alias(name) for name in names], why.alias(BROKEN), RAW, *COORDINATES
    )


def _opened_changes(texts: DataFrame, decode: Decode) -> DataFrame:
    columns = _schema(decode)
    parsed = texts.select(
        _from_text(decode, F.col("_text.text"), changes.envelope(columns)).alias("_fields"),
        _from_text(decode, F.col("_key_text.text"), changes.key_fields(columns, decode.key)).alias("_key"),
        F.col("_text.reason").alias("_why"),
        F.col("_key_text.reason").alias("_key_why"),
        F.col(f"{RAW}.value").isNull().alias("_is_tombstone"),
        RAW,
        *COORDINATES,
    )
    return changes.opened(parsed, columns, decode.key, decode.format, [RAW, *COORDINATES])


def _event_time(decode: Decode) -> Column:
    """The event time.  A delete without one has the time of the change, else of the record."""
    time = F.expr(decode.event_time).cast("timestamp")
    if not decode.changes:
        return time
    return F.when(F.col("_op") == F.lit("d"), F.coalesce(time, F.col("_changed_at"), F.col("_timestamp"))).otherwise(
        time
    )


def _fields(decode: Decode) -> tuple[Column, Column]:
    """The fields of a text as a struct, and whether the text is broken or a field does not fit its type."""
    text = F.col("_text.text")
    if decode.format == "raw":
        whole = F.struct(F.col(f"{RAW}.key").cast("string").alias("key"), text.alias("text"))
        return whole, ~F.coalesce(F.is_valid_utf8(F.col(f"{RAW}.value").cast("string")), F.lit(False))
    broken = F.col("_fields").isNull() | F.col(f"_fields.{BROKEN}").isNotNull() | F.col(f"{RAW}.value").isNull()
    return _from_text(decode, text, _schema(decode)), broken


def _from_text(decode: Decode, text: Column, columns: StructType) -> Column:
    """The fields, parsed by Spark's reader, which puts the text into :data:`BROKEN` if a field does not fit."""
    schema = StructType([*columns.fields, StructField(BROKEN, StringType())])
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": BROKEN, **decode.options}
    reads = F.from_csv if decode.format == "csv" else F.from_json
    return reads(text, schema.toDDL(), options)
