"""The TOML file of a pipeline as a typed model; every error names the key.

Not here: what the settings do.  No pyspark is needed to read and check them.
"""

from __future__ import annotations

import dataclasses
import re
import sys
import types
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints
from urllib.parse import urlsplit

from pykafka08.errors import ConfigError
from pykafka08.kafka_properties import is_secret
from pykafka08.spark.pipeline.client_files import with_properties
from pykafka08.spark.pipeline.durations import seconds_of

if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover
    import tomli as tomllib

__all__ = [
    "Aggregate",
    "Compaction",
    "DeadLetters",
    "Decode",
    "Duplicates",
    "Pipeline",
    "Source",
    "SparkSettings",
    "parse",
    "read",
]

FORMATS = ("json", "csv", "avro", "raw")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
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
"""Options of the data source that would make another thing of a pipeline than its other keys say."""

T = TypeVar("T")


@dataclass(frozen=True)
class Source:
    """Topics of one cluster."""

    name: str
    bootstrap_servers: str
    topics: tuple[str, ...] = ()
    """Names; else `pattern`."""
    pattern: str = ""
    """A regular expression that topic names must match somewhere (Spark's ``subscribePattern``)."""
    starting: str = "earliest"
    """``earliest``, ``latest``, offsets as Spark's JSON, a time in ms, or ``group:NAME`` (that group's offsets)."""
    zookeeper: str = ""
    """``HOST:PORT/CHROOT``: ``group:NAME`` is looked up there, for clusters that keep offsets in ZooKeeper."""
    max_offsets_per_trigger: int = 0
    """Bound of one micro-batch, 0: none."""
    target_records_per_task: int = 0
    """Small partitions are read together in tasks of so many records, 0: the source's default."""
    properties: str = ""
    """A properties file of Kafka's clients: security and other settings of the connections."""
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Further options of the data source, as ``minPartitions`` or ``kafka.client.id``."""


@dataclass(frozen=True)
class Duplicates:
    """One row for each key is kept: the first that came."""

    key: tuple[str, ...]
    within_days: int = 1
    """How far apart, in days of event time, two rows of one key may lie and be found."""


@dataclass(frozen=True)
class Decode:
    """How a record's value becomes a row."""

    format: str
    event_time: str
    """An SQL expression over the columns that gives a timestamp."""
    schema: str = ""
    """Columns in DDL; for ``raw`` none: it gives ``key`` and ``text``."""
    avro_schema: str = ""
    """File with the writer's schema, for ``avro``."""
    avro_header_bytes: int = 0
    """What stands before each Avro value; 5 where a schema registry is used."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Of Spark's JSON or CSV reader, as ``sep``."""
    rules: Mapping[str, str] = field(default_factory=dict)
    """Name → SQL condition that an accepted row meets."""
    duplicates: Duplicates | None = None


@dataclass(frozen=True)
class DeadLetters:
    """The topic for what was refused."""

    bootstrap_servers: str
    topic: str
    exactly_once: bool = True
    """In transactions (brokers 0.11 and newer)."""
    properties: str = ""
    options: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Aggregate:
    """Measures over windows of event time; into Parquet, and with `topic` to Kafka, keyed by window and group."""

    window: str
    watermark: str
    """How late rows may come, as ``1 hour``; later ones stay in silver alone until a backfill."""
    measures: Mapping[str, str]
    """Column name → SQL aggregate."""
    slide: str = ""
    group_by: tuple[str, ...] = ()
    bootstrap_servers: str = ""
    topic: str = ""
    exactly_once: bool = True
    properties: str = ""
    options: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Compaction:
    """When files of a day are made one."""

    target_bytes: int = 128 << 20
    min_files: int = 2
    keep_entries: int = 0
    """Replaced files are deleted once all readers have passed them, and so many further log entries were made."""
    every_seconds: int = 3600
    """How often ``run --follow`` does it, 0: never; another run does it at its end."""


@dataclass(frozen=True)
class SparkSettings:
    """The session."""

    master: str = "local[*]"
    conf: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Pipeline:
    """A whole file."""

    name: str
    folder: str
    """Where tables, checkpoints and reports are kept: a path that the driver and every executor see."""
    sources: Mapping[str, Source]
    decode: Decode
    trigger: str = "10 seconds"
    """Time between micro-batches of ``run --follow``."""
    dead_letters: DeadLetters | None = None
    aggregates: Mapping[str, Aggregate] = field(default_factory=dict)
    compaction: Compaction = field(default_factory=Compaction)
    spark: SparkSettings = field(default_factory=SparkSettings)

    @property
    def root(self) -> Path:
        return Path(self.folder)

    def checkpoint(self, query: str) -> Path:
        return self.root / "checkpoints" / query

    def bronze(self, source: str) -> Path:
        return self.root / "bronze" / source

    @property
    def silver(self) -> Path:
        return self.root / "silver"

    def gold(self, aggregate: str) -> Path:
        return self.root / "gold" / aggregate

    @property
    def sinks(self) -> dict[str, DeadLetters | Aggregate]:
        """The sections that name a topic to write to."""
        letters = {"dead_letters": self.dead_letters} if self.dead_letters is not None else {}
        return {**letters, **{f"aggregates.{name}": one for name, one in self.aggregates.items() if one.topic}}


def read(path: str | Path) -> Pipeline:
    """The pipeline of a file; relative paths in it count from its folder.

    Raises:
        ConfigError: the file cannot be read, is not TOML, or has a key or value that means nothing.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8: {error.reason} at byte {error.start}") from error
    return parse(text, Path(path).resolve().parent)


def parse(text: str, folder: Path) -> Pipeline:
    """The pipeline of a TOML text; relative paths count from ``folder``.  Raises ConfigError."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"not TOML: {error}") from error
    sources = document.get("sources")
    if isinstance(sources, dict):
        document["sources"] = {
            name: {"name": name, **value} if isinstance(value, dict) else value for name, value in sources.items()
        }
    for table, is_source in _clusters(document):
        with_properties(table, folder, is_source=is_source)
    pipeline = _build(Pipeline, document, "")
    for check in CHECKS:
        check(pipeline)
    schema_file = pipeline.decode.avro_schema
    decode = dataclasses.replace(pipeline.decode, avro_schema=str(folder / schema_file) if schema_file else "")
    return dataclasses.replace(pipeline, folder=str(_local(pipeline.folder, folder)), decode=decode)


def _clusters(document: dict[str, Any]) -> Iterator[tuple[dict[str, Any], bool]]:
    """The tables that name a cluster, and whether it is read."""
    for group, is_source in (("sources", True), ("aggregates", False)):
        tables = document.get(group)
        for table in tables.values() if isinstance(tables, dict) else ():
            if isinstance(table, dict):
                yield table, is_source
    if isinstance(document.get("dead_letters"), dict):
        yield document["dead_letters"], False


def _local(text: str, folder: Path) -> Path:
    parts = urlsplit(text)
    if parts.scheme not in ("", "file"):
        raise ConfigError(
            f"folder: {text!r} must be a path that driver and executors see, not a {parts.scheme}: address"
        )
    return folder / parts.path


def _build(kind: type[T], value: Any, where: str) -> T:
    """A dataclass out of a TOML table."""
    if not isinstance(value, dict):
        raise ConfigError(f"{where}: a table is wanted, not {_shown(where, value)}")
    fields = {one.name: one for one in dataclasses.fields(kind)}  # type: ignore[arg-type]
    prefix = f"{where}." if where else ""
    for key in value:
        if key not in fields:
            raise ConfigError(f"{prefix}{key}: unknown; there are {', '.join(fields)}")
    hints = get_type_hints(kind)
    given = {key: _value(hints[key], one, f"{prefix}{key}") for key, one in value.items()}
    for name, one in fields.items():
        needed = one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING
        if needed and name not in given:
            raise ConfigError(f"{prefix}{name}: missing")
    return kind(**given)


def _value(hint: Any, value: Any, where: str) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _value(arguments[0], value, where)
    if dataclasses.is_dataclass(hint):
        return _build(hint, value, where)  # type: ignore[arg-type]
    if origin is tuple:
        if not isinstance(value, list):
            raise ConfigError(f"{where}: a list is wanted, not {_shown(where, value)}")
        return tuple(_value(arguments[0], one, where) for one in value)
    if origin is not None:  # Mapping
        if not isinstance(value, dict):
            raise ConfigError(f"{where}: a table is wanted, not {_shown(where, value)}")
        return {key: _value(arguments[1], one, f"{where}.{key}") for key, one in value.items()}
    if type(value) is not hint:
        raise ConfigError(f"{where}: {SCALARS[hint]} is wanted, not {_shown(where, value)}")
    return value


def _shown(where: str, value: object) -> str:
    return "***" if is_secret(where) else repr(value)


SCALARS = {str: "text", int: "a whole number", bool: "true or false"}


def _check_names(pipeline: Pipeline) -> None:
    """Names become folders."""
    named = [("name", pipeline.name)]
    named += [(f"sources.{name}", name) for name in pipeline.sources]
    named += [(f"aggregates.{name}", name) for name in pipeline.aggregates]
    for where, name in named:
        if not NAME.fullmatch(name):
            raise ConfigError(f"{where}: {name!r} may hold letters, digits, '.', '_' and '-' only")


def _check_sources(pipeline: Pipeline) -> None:
    if not pipeline.sources:
        raise ConfigError("sources: at least one is needed")
    for name, source in pipeline.sources.items():
        where = f"sources.{name}"
        if bool(source.topics) == bool(source.pattern):
            raise ConfigError(f"{where}: exactly one of topics and pattern is needed")
        _check_not_negative(where, source, "max_offsets_per_trigger", "target_records_per_task")
        for option in source.options:
            if option.lower() in OWN_KEYS:
                raise ConfigError(f"{where}.options.{option}: {OWN_KEYS[option.lower()]}")
        for topic in source.topics:
            _check_topic(f"{where}.topics", topic)
        if source.zookeeper and not source.starting.startswith("group:"):
            raise ConfigError(f"{where}.zookeeper: means something with starting = 'group:NAME' only")


def _check_decode(pipeline: Pipeline) -> None:
    decode = pipeline.decode
    if decode.format not in FORMATS:
        raise ConfigError(f"decode.format: {decode.format!r} is none of {', '.join(FORMATS)}")
    if (decode.format == "raw") == bool(decode.schema):
        raise ConfigError(
            "decode.schema: " + ("raw has none" if decode.schema else f"{decode.format} needs the columns")
        )
    if (decode.format == "avro") != bool(decode.avro_schema):
        raise ConfigError("decode.avro_schema: needed for avro, and for nothing else")
    for option in decode.options:
        if option.lower() in ("mode", "columnnameofcorruptrecord"):
            raise ConfigError(
                f"decode.options.{option}: what is broken is set apart with its reason; nothing else may be"
            )
    _check_not_negative("decode", decode, "avro_header_bytes")
    if decode.duplicates is not None:
        if not decode.duplicates.key:
            raise ConfigError("decode.duplicates.key: at least one column is needed")
        _check_not_negative("decode.duplicates", decode.duplicates, "within_days")


def _check_aggregates(pipeline: Pipeline) -> None:
    for name, aggregate in pipeline.aggregates.items():
        if not aggregate.measures:
            raise ConfigError(f"aggregates.{name}.measures: at least one is needed")
        if bool(aggregate.topic) != bool(aggregate.bootstrap_servers):
            raise ConfigError(f"aggregates.{name}: topic and bootstrap_servers go together")
        columns = ["window_start", "window_end", "_batch", *aggregate.group_by, *aggregate.measures]
        for column, count in Counter(columns).items():
            if count > 1:
                raise ConfigError(f"aggregates.{name}: two columns of gold would be named {column!r}")


def _check_durations(pipeline: Pipeline) -> None:
    _duration("trigger", pipeline.trigger)
    for name, aggregate in pipeline.aggregates.items():
        where = f"aggregates.{name}"
        _duration(f"{where}.watermark", aggregate.watermark)
        window = _duration(f"{where}.window", aggregate.window, is_window=True)
        if aggregate.slide and _duration(f"{where}.slide", aggregate.slide, is_window=True) > window:
            raise ConfigError(f"{where}.slide: {aggregate.slide!r} is longer than the window")


def _duration(where: str, text: str, *, is_window: bool = False) -> float:
    seconds = seconds_of(text)
    if seconds is None:
        raise ConfigError(f"{where}: {text!r} is no length of time, as '10 minutes' or '1 day' are")
    if is_window and ("month" in text.lower() or "year" in text.lower()):
        raise ConfigError(f"{where}: months and years differ in length; {text!r} is to be given in days or weeks")
    if seconds < 0 or (is_window and not seconds):
        raise ConfigError(f"{where}: {text!r} is not {'above' if is_window else 'at least'} zero")
    return seconds


def _check_sinks(pipeline: Pipeline) -> None:
    """No topic is written by two, or read by the pipeline that writes it."""
    read = {(one.bootstrap_servers, topic): name for name, one in pipeline.sources.items() for topic in one.topics}
    written: dict[tuple[str, str], str] = {}
    for where, sink in pipeline.sinks.items():
        _check_topic(f"{where}.topic", sink.topic)
        place = sink.bootstrap_servers, sink.topic
        if place in read:
            raise ConfigError(f"{where}.topic: {sink.topic!r} is what sources.{read[place]} reads")
        if place in written:
            raise ConfigError(f"{where}.topic: {sink.topic!r} is what {written[place]} writes")
        written[place] = where


def _check_compaction(pipeline: Pipeline) -> None:
    _check_not_negative("compaction", pipeline.compaction, "target_bytes", "keep_entries", "every_seconds")
    if pipeline.compaction.min_files < 2:
        raise ConfigError("compaction.min_files: at least 2 can be made one")


def _check_topic(where: str, topic: str) -> None:
    if not TOPIC.fullmatch(topic) or topic in (".", ".."):
        raise ConfigError(f"{where}: {topic!r} cannot be a topic: letters, digits, '.', '_' and '-', at most 249")


def _check_not_negative(where: str, section: Any, *names: str) -> None:
    for name in names:
        if getattr(section, name) < 0:
            raise ConfigError(f"{where}.{name}: may not be negative")


CHECKS: tuple[Callable[[Pipeline], None], ...] = (
    _check_names,
    _check_sources,
    _check_decode,
    _check_aggregates,
    _check_durations,
    _check_sinks,
    _check_compaction,
)
