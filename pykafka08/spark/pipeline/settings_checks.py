"""Settings of a pipeline that contradict each other, or lack one another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline.addresses import address_of, errors_of
from pykafka08.spark.pipeline.settings_model import OF_REGISTRY, Aggregate, Decode, Pipeline, duration_seconds

__all__ = ["CHECKS"]

OWN_KEYS = {
    **dict.fromkeys(("subscribe", "subscribepattern", "assign"), "topics or pattern say what is read"),
    **dict.fromkeys(
        ("startingoffsets", "startingoffsetsbytimestamp", "startingtimestamp", "startinggroup"),
        "starting says where a source begins",
    ),
    "kafka.bootstrap.servers": "bootstrap_servers names the cluster",
    "columns": "bronze has all of them",
    "includeheaders": "bronze has them",
}
"""Options of the data source that contradict other settings of a source, and why each is refused."""
Errors = Iterator[tuple[str, str]]
"""Key and text of each."""


def _check_folder(pipeline: Pipeline) -> Errors:
    try:
        address = address_of(pipeline.folder, Path("/"))
    except ConfigError as error:
        yield "folder", error.message.removeprefix("folder: ")
    else:
        yield from errors_of(address, pipeline.storage)


def _check_sources(pipeline: Pipeline) -> Errors:
    if not pipeline.sources:
        yield "sources", "at least one is needed"
    for name, source in pipeline.sources.items():
        where = f"sources.{name}"
        if bool(source.topics) == bool(source.pattern):
            yield where, "exactly one of topics and pattern is needed"
        for option in source.options:
            if option.lower() in OWN_KEYS:
                yield f"{where}.options.{option}", OWN_KEYS[option.lower()]
        if source.zookeeper and not source.starting.startswith("group:"):
            yield f"{where}.zookeeper", "requires starting = 'group:NAME'"


def _check_decode(pipeline: Pipeline) -> Errors:
    decode = pipeline.decode
    if (decode.format == "raw") == bool(decode.schema):
        yield "decode.schema", "raw has none" if decode.schema else f"{decode.format} needs the columns"
    if decode.avro_schema and decode.format != "avro":
        yield "decode.avro_schema", "used for avro only; remove it"
    if decode.format == "avro" and not (decode.avro_schema or decode.registry):
        yield "decode.avro_schema", "needed for avro, unless decode.registry has the schemas"
    yield from _check_registry(decode)
    yield from _check_changes(decode)
    yield from _check_expectations(decode)
    for option in decode.options:
        if option.lower() in ("mode", "columnnameofcorruptrecord"):
            yield (
                f"decode.options.{option}",
                "set by the pipeline, which refuses broken records with a reason; remove it",
            )
    if decode.duplicates is not None and not decode.duplicates.key:
        yield "decode.duplicates.key", "at least one column is needed"


def _check_expectations(decode: Decode) -> Errors:
    levels: list[tuple[str, str, float]] = [
        *((f"decode.rules.{name}", one.level, one.threshold) for name, one in decode.rules.items()),
        *(("decode.uniqueness", one.level, one.threshold) for one in decode.uniqueness),
        *(("decode.references", one.level, one.threshold) for one in decode.references),
    ]
    for where, level, threshold in levels:
        if threshold and level != "fail":
            yield f"{where}.threshold", f"requires level = 'fail', not {level!r}"
    for where, keys in (("uniqueness", decode.uniqueness), ("references", decode.references)):
        for each in keys:
            if not each.key:
                yield f"decode.{where}.key", "at least one column is needed"
        for reason, count in Counter(each.reason for each in keys).items():
            if count > 1:
                yield f"decode.{where}.name", f"{count} have the name {reason.partition(': ')[2]!r}"
    for one in decode.references:
        if one.columns and len(one.columns) != len(one.key):
            yield "decode.references.columns", f"{len(one.columns)} columns for a key of {len(one.key)}"
        try:
            address_of(one.to, Path("/"))
        except ConfigError as error:
            yield "decode.references.to", error.message.removeprefix("folder: ")
    if decode.changes and decode.uniqueness:
        yield "decode.uniqueness", "not used with decode.changes, since each row has many changes; remove it"


def _check_changes(decode: Decode) -> Errors:
    if not decode.changes:
        if decode.key:
            yield "decode.key", "requires decode.changes"
        return
    if not decode.key:
        yield "decode.key", "at least one column is needed, for decode.changes"
    if decode.format not in OF_REGISTRY:
        yield "decode.changes", f"{decode.changes} has {', '.join(OF_REGISTRY)}, not {decode.format}"
    if decode.format == "avro" and decode.registry is None:
        yield "decode.registry", "needed for decode.changes with avro: keys have a schema of their own"
    if decode.duplicates is not None:
        yield (
            "decode.duplicates",
            "not used with decode.changes, since it keeps the first change of each key only; remove it",
        )


def _check_registry(decode: Decode) -> Errors:
    if decode.registry is None:
        if decode.format == "protobuf":
            yield "decode.registry", "needed for protobuf"
        return
    if decode.format not in OF_REGISTRY:
        yield "decode.registry", f"has schemas for {', '.join(OF_REGISTRY)}, not for {decode.format}"
    if decode.avro_header_bytes:
        yield "decode.avro_header_bytes", "not used with decode.registry, which reads the whole header; remove it"
    token = decode.registry.bearer_auth_token
    if not (token.isascii() and token.isprintable()) or " " in token:
        yield "decode.registry.bearer_auth_token", "has a space, a line break or another character that no token has"
    if decode.registry.basic_auth_user_info and decode.registry.bearer_auth_token:
        yield "decode.registry", "only one of basic_auth_user_info and bearer_auth_token can be used"


def _check_aggregates(pipeline: Pipeline) -> Errors:
    for name, aggregate in pipeline.aggregates.items():
        where = f"aggregates.{name}"
        yield from _check_query(where, aggregate)
        if bool(aggregate.topic) != bool(aggregate.bootstrap_servers):
            yield where, "topic and bootstrap_servers are needed together"
        both = aggregate.slide and aggregate.window
        if both and duration_seconds(aggregate.slide) > duration_seconds(aggregate.window):
            yield f"{where}.slide", f"{aggregate.slide!r} is longer than the window"
        columns = ["window_start", "window_end", "_batch", *aggregate.group_by, *aggregate.measures]
        for column, count in Counter(columns).items():
            if count > 1:
                yield where, f"two columns of gold would be named {column!r}"


def _check_query(where: str, aggregate: Aggregate) -> Errors:
    """An aggregate has a query, or the keys that the query replaces."""
    if aggregate.sql and aggregate.sql_file:
        yield f"{where}.sql_file", "not used with sql; remove one of the two"
    query = "sql_file" if aggregate.sql_file else "sql" if aggregate.sql else ""
    for key in ("window", "slide", "group_by", "measures"):
        is_set = bool(getattr(aggregate, key))
        if query and is_set:
            yield f"{where}.{key}", f"not used with {query}; remove it, and write it in the query"
        if not query and not is_set and key in ("window", "measures"):
            yield f"{where}.{key}", "missing; set window and measures, or write the aggregate as sql or sql_file"


def _check_telemetry(pipeline: Pipeline) -> Errors:
    if pipeline.metrics is not None and not (pipeline.metrics.port or pipeline.metrics.textfile):
        yield "metrics", "port, textfile or both are needed"
    if pipeline.lineage is not None and not (pipeline.lineage.url or pipeline.lineage.file):
        yield "lineage", "url, file or both are needed"


def _check_sinks(pipeline: Pipeline) -> Errors:
    """No topic is written by two, or read by the pipeline that writes it."""
    read = {(one.bootstrap_servers, topic): name for name, one in pipeline.sources.items() for topic in one.topics}
    written: dict[tuple[str, str], str] = {}
    for where, sink in pipeline.sinks.items():
        place = sink.bootstrap_servers, sink.topic
        if place in read:
            yield f"{where}.topic", f"{sink.topic!r} is read by sources.{read[place]}; use another topic"
        if place in written:
            yield f"{where}.topic", f"{sink.topic!r} is written by {written[place]}; use another topic"
        written[place] = where


def _check_compaction(pipeline: Pipeline) -> Errors:
    tables = [*(f"bronze/{one}" for one in pipeline.sources), "silver", "rejects"]
    tables += [f"gold/{one}" for one in pipeline.aggregates]
    for table in pipeline.compaction.cluster_by:
        if table not in tables:
            yield f"compaction.cluster_by.{table}", f"unknown table; the tables are {', '.join(tables)}"


def _check_retention(pipeline: Pipeline) -> Errors:
    retention, decode = pipeline.retention, pipeline.decode
    for name, one in pipeline.aggregates.items():
        # The window of SQL is not known before Spark has read it.
        open_s = duration_seconds(one.window or "0 seconds") + duration_seconds(one.watermark)
        if retention.gold and duration_seconds(retention.gold) < open_s:
            yield (
                "retention.gold",
                f"{retention.gold!r} is less than window and watermark of aggregates.{name}; set a longer time",
            )
    within = [one.within_days for one in (*decode.uniqueness, decode.duplicates) if one is not None]
    days = max(within, default=-1) + 1
    if retention.silver and duration_seconds(retention.silver) < days * 86_400:
        yield "retention.silver", f"{retention.silver!r} is less than within_days and a day: set at least {days} days"


CHECKS: tuple[Callable[[Pipeline], Errors], ...] = (
    _check_folder,
    _check_sources,
    _check_decode,
    _check_aggregates,
    _check_sinks,
    _check_telemetry,
    _check_compaction,
    _check_retention,
)
