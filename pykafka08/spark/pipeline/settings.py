"""The TOML file of a pipeline as a typed model; every error names the key.

Not here: what the settings do.  No pyspark is needed to read and check them.
"""

from __future__ import annotations

import dataclasses
import re
import sys
import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints
from urllib.parse import urlsplit

from pykafka08.errors import ConfigError

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
    options: Mapping[str, str] = field(default_factory=dict)
    """Further options of the data source, as ``kafka.security.protocol``."""


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
    options: Mapping[str, str] = field(default_factory=dict)


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
    options: Mapping[str, str] = field(default_factory=dict)


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


def read(path: str | Path) -> Pipeline:
    """The pipeline of a file; relative paths in it count from its folder.

    Raises:
        ConfigError: the file cannot be read, is not TOML, or has a key or value that means nothing.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
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
    pipeline = _build(Pipeline, document, "")
    for check in (_check_names, _check_sources, _check_decode, _check_aggregates):
        check(pipeline)
    schema_file = pipeline.decode.avro_schema
    decode = dataclasses.replace(pipeline.decode, avro_schema=str(folder / schema_file) if schema_file else "")
    return dataclasses.replace(pipeline, folder=str(_local(pipeline.folder, folder)), decode=decode)


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
        raise ConfigError(f"{where}: a table is wanted, not {value!r}")
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
            raise ConfigError(f"{where}: a list is wanted, not {value!r}")
        return tuple(_value(arguments[0], one, where) for one in value)
    if origin is not None:  # Mapping
        if not isinstance(value, dict):
            raise ConfigError(f"{where}: a table is wanted, not {value!r}")
        return {key: _value(arguments[1], one, f"{where}.{key}") for key, one in value.items()}
    if type(value) is not hint:
        raise ConfigError(f"{where}: {SCALARS[hint]} is wanted, not {value!r}")
    return value


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
        if source.max_offsets_per_trigger < 0 or source.target_records_per_task < 0:
            raise ConfigError(f"{where}: numbers may not be negative")
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
    if decode.duplicates is not None:
        if not decode.duplicates.key:
            raise ConfigError("decode.duplicates.key: at least one column is needed")
        if decode.duplicates.within_days < 0:
            raise ConfigError("decode.duplicates.within_days: may not be negative")


def _check_aggregates(pipeline: Pipeline) -> None:
    for name, aggregate in pipeline.aggregates.items():
        if not aggregate.measures:
            raise ConfigError(f"aggregates.{name}.measures: at least one is needed")
        if bool(aggregate.topic) != bool(aggregate.bootstrap_servers):
            raise ConfigError(f"aggregates.{name}: topic and bootstrap_servers go together")
