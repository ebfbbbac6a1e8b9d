"""The TOML file of a pipeline as a typed model; every error names the key.

Pydantic checks each setting by the type of its field; :data:`CHECKS` has what two settings mean together.  All errors
of a file are told at once.  Not here: what the settings do.  No pyspark is needed to read and check them.
"""

from __future__ import annotations

import dataclasses
import re
import sys
import types
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Union, get_args, get_origin, get_type_hints
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, Strict, TypeAdapter, ValidationError

from pykafka08.errors import ConfigError
from pykafka08.kafka_properties import is_secret
from pykafka08.security.hidden_text import HiddenText
from pykafka08.spark.pipeline.addresses import Storage, address_of, check_path, errors_of, with_file
from pykafka08.spark.pipeline.client_files import with_properties, with_registry_properties
from pykafka08.spark.pipeline.durations import seconds_of
from pykafka08.spark.pipeline.stores import Folder

if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover
    import tomli as tomllib

__all__ = [
    "Aggregate",
    "Alerts",
    "Compaction",
    "Limits",
    "DeadLetters",
    "Decode",
    "Duplicates",
    "Lineage",
    "Metrics",
    "Pipeline",
    "Reference",
    "Registry",
    "Rule",
    "Source",
    "SparkSettings",
    "Uniqueness",
    "parse",
    "read",
    "source_of",
]

FORMATS = ("json", "csv", "avro", "protobuf", "raw")
OF_REGISTRY = ("json", "avro", "protobuf")
"""Formats that a schema registry has schemas for."""
LEVELS = ("warn", "quarantine", "fail")
"""Rows that do not meet an expectation are kept, refused, or refused up to a threshold, beyond which the batch ends."""
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


def _format(text: str) -> str:
    if text not in FORMATS:
        raise ValueError(f"{text!r} is none of {', '.join(FORMATS)}")
    return text


def _changes(text: str) -> str:
    if text != "debezium":
        raise ValueError(f"{text!r} is not known; there is debezium")
    return text


def _name(text: str) -> str:
    if not NAME.fullmatch(text):
        raise ValueError(f"{text!r} may hold letters, digits, '.', '_' and '-' only")
    return text


def _topic(text: str) -> str:
    if not TOPIC.fullmatch(text) or text in (".", ".."):
        raise ValueError(f"{text!r} cannot be a topic: letters, digits, '.', '_' and '-', at most 249")
    return text


def _duration(text: str) -> str:
    if _seconds(text) < 0:
        raise ValueError(f"{text!r} is not at least zero")
    return text


def _window(text: str) -> str:
    seconds = _seconds(text)
    if "month" in text.lower() or "year" in text.lower():
        raise ValueError(f"months and years differ in length; {text!r} is to be given in days or weeks")
    if seconds <= 0:
        raise ValueError(f"{text!r} is not above zero")
    return text


def _seconds(text: str) -> float:
    seconds = seconds_of(text)
    if seconds is None:
        raise ValueError(f"{text!r} is no length of time, as '10 minutes' or '1 day' are")
    return seconds


def _files_to_join(count: int) -> int:
    if count < 2:
        raise ValueError("at least 2 can be made one")
    return count


def _port(number: int) -> int:
    if not 0 <= number <= 65_535:
        raise ValueError(f"{number} is not between 0 and 65535")
    return number


def _ratio(number: float) -> float:
    if not 0 <= number <= 1:
        raise ValueError(f"{number} is not between 0 and 1")
    return number


def _level(text: str) -> str:
    if text not in LEVELS:
        raise ValueError(f"{text!r} is none of {', '.join(LEVELS)}")
    return text


def _rule_table(given: Any) -> Any:
    """A text is the condition alone."""
    return {"check": given} if isinstance(given, str) else given


def _registry_address(text: str) -> str:
    try:
        parts = urlsplit(text)
    except ValueError as error:
        raise ValueError("not an address, as http://host:8081") from error
    if "@" in parts.netloc:
        raise ValueError("give user and password as basic_auth_user_info, not in the address")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError(f"{text!r} is not an address, as http://host:8081")
    return text


def _registry_table(given: Any) -> Any:
    """A text is the address alone."""
    return {"url": given} if isinstance(given, str) else given


def _or_empty(check: Callable[[str], str]) -> AfterValidator:
    """The check, for a setting whose empty text says that it is not used."""
    return AfterValidator(lambda text: check(text) if text else text)


Flag = Annotated[bool, Strict()]
Whole = Annotated[int, Strict()]
"""Strict, as pydantic takes true for 1 and "3" for 3 otherwise; no field is a bare ``int`` or ``bool``."""
Count = Annotated[Whole, Field(ge=0)]
Port = Annotated[Whole, AfterValidator(_port)]
Ratio = Annotated[float, Strict(), AfterValidator(_ratio)]
Level = Annotated[str, AfterValidator(_level)]
Name = Annotated[str, AfterValidator(_name)]
"""What becomes a folder."""
Topic = Annotated[str, AfterValidator(_topic)]
Duration = Annotated[str, AfterValidator(_duration)]
Window = Annotated[str, AfterValidator(_window)]


@dataclass(frozen=True)
class Source:
    """Topics of one cluster."""

    name: str
    bootstrap_servers: str
    topics: tuple[Topic, ...] = ()
    """Names; else `pattern`."""
    pattern: str = ""
    """A regular expression that topic names must match somewhere (Spark's ``subscribePattern``)."""
    starting: str = "earliest"
    """``earliest``, ``latest``, offsets as Spark's JSON, a time in ms, or ``group:NAME`` (that group's offsets)."""
    zookeeper: str = ""
    """``HOST:PORT/CHROOT``: ``group:NAME`` is looked up there, for clusters that keep offsets in ZooKeeper."""
    max_offsets_per_trigger: Count = 10_000_000
    """Bound of one micro-batch, 0: none."""
    target_records_per_task: Count = 0
    """Small partitions are read together in tasks of so many records, 0: the source's default."""
    properties: str = ""
    """A properties file of Kafka's clients: security and other settings of the connections."""
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Further options of the data source, as ``minPartitions`` or ``kafka.client.id``."""


@dataclass(frozen=True)
class Duplicates:
    """One row for each key is kept: the first that came."""

    key: tuple[str, ...]
    within_days: Count = 1
    """How far apart, in days of event time, two rows of one key may lie and be found."""


@dataclass(frozen=True)
class Rule:
    """A condition that an accepted row meets."""

    check: str
    """In SQL."""
    level: Level = "quarantine"
    threshold: Ratio = 0.0
    """Of ``fail``: the share of a batch's rows that may break it, and are refused then."""


@dataclass(frozen=True)
class Uniqueness:
    """Columns that no two accepted rows share."""

    key: tuple[str, ...]
    level: Level = "quarantine"
    threshold: Ratio = 0.0
    name: str = ""
    within_days: Count = 1
    """Silver's rows are compared whose event dates are at most so many days from those of the batch."""

    @property
    def reason(self) -> str:
        return f"unique: {self.name or ', '.join(self.key)}"


@dataclass(frozen=True)
class Reference:
    """Columns whose values a file or table has."""

    key: tuple[str, ...]
    to: str
    """A CSV file with names in its first line, a Parquet file or folder, or a Delta table."""
    columns: tuple[str, ...] = ()
    """Their names there, if they are others than `key`."""
    level: Level = "quarantine"
    threshold: Ratio = 0.0
    name: str = ""

    @property
    def reason(self) -> str:
        return f"reference: {self.name or ', '.join(self.key)}"


@dataclass(frozen=True)
class Registry:
    """A schema registry with the HTTP API of Confluent's."""

    url: Annotated[str, AfterValidator(_registry_address)]
    basic_auth_user_info: str = field(default="", repr=False)
    """``USER:PASSWORD``."""
    bearer_auth_token: str = field(default="", repr=False)
    ssl_ca_location: str = ""
    """A PEM file with the certificates to trust, else the system's."""
    properties: str = ""
    """A properties file with Confluent's names: ``schema.registry.url``, ``basic.auth.user.info``, ..."""

    def __post_init__(self) -> None:
        for name in REGISTRY_SECRETS:
            object.__setattr__(self, name, HiddenText(getattr(self, name)))


@dataclass(frozen=True)
class Decode:
    """How a record's value becomes a row."""

    format: Annotated[str, AfterValidator(_format)]
    event_time: str
    """An SQL expression over the columns that gives a timestamp."""
    schema: str = ""
    """Columns in DDL; for ``raw`` none: it gives ``key`` and ``text``."""
    avro_schema: str = ""
    """File with the writer's schema, for ``avro``; with `registry` the reader's, which may be left out."""
    avro_header_bytes: Count = 0
    """What stands before each Avro value; 5 for values of a schema registry that is not asked."""
    registry: Annotated[Registry | None, BeforeValidator(_registry_table)] = None
    """Values have a schema registry's wire format, and the schemas are fetched there."""
    changes: Annotated[str, _or_empty(_changes)] = ""
    """``debezium``: values are change records, whose rows have the columns of `schema`."""
    key: tuple[str, ...] = ()
    """The columns that name a row, for `changes`."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Of Spark's JSON or CSV reader, as ``sep``."""
    rules: Mapping[str, Annotated[Rule, BeforeValidator(_rule_table)]] = field(default_factory=dict)
    uniqueness: tuple[Uniqueness, ...] = ()
    references: tuple[Reference, ...] = ()
    duplicates: Duplicates | None = None


@dataclass(frozen=True)
class DeadLetters:
    """The topic for what was refused."""

    bootstrap_servers: str
    topic: Topic
    exactly_once: Flag = True
    """In transactions (brokers 0.11 and newer)."""
    properties: str = ""
    options: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Aggregate:
    """Measures over windows of event time; into Parquet, and with `topic` to Kafka, keyed by window and group."""

    window: Window
    watermark: Duration
    """How late rows may come, as ``1 hour``; later ones stay in silver alone until a backfill."""
    measures: Mapping[str, str]
    """Column name → SQL aggregate."""
    slide: Annotated[str, _or_empty(_window)] = ""
    group_by: tuple[str, ...] = ()
    bootstrap_servers: str = ""
    topic: Annotated[str, _or_empty(_topic)] = ""
    exactly_once: Flag = True
    properties: str = ""
    options: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Limits:
    """Of one batch of a stage that reads a table: whole files up to these, and at least one; 0: no limit."""

    rows: Count = 10_000_000
    bytes: Count = 1 << 30
    """Of Parquet files."""
    files: Count = 10_000


@dataclass(frozen=True)
class Compaction:
    """When files of a day are made one."""

    target_bytes: Count = 128 << 20
    min_files: Annotated[Whole, AfterValidator(_files_to_join)] = 2
    keep_entries: Count = 0
    """Replaced files are deleted once all readers have passed them, and so many further log entries were made."""
    every_seconds: Count = 3600
    """How often ``run --follow`` does it, 0: never; another run does it at its end."""


@dataclass(frozen=True)
class Alerts:
    """Bounds that ``status --check`` and the end of a run compare."""

    max_lag: Count | None = None
    """Offsets or rows that wait for any stage."""
    max_reject_ratio: Ratio | None = None
    """Refused rows of those that decode read in the newest run with rows."""
    max_age_seconds: Count | None = None
    """Since the last batch with rows of each source."""
    webhook: str = field(default="", repr=False)
    """An address that gets a JSON document by POST if a bound is passed."""


@dataclass(frozen=True)
class Metrics:
    """Metrics of runs for Prometheus."""

    port: Port = 0
    """A run answers there, 0: it does not."""
    address: str = "127.0.0.1"
    """Where the port is opened."""
    textfile: str = ""
    """A file for node_exporter's textfile collector, written after each batch."""


@dataclass(frozen=True)
class Lineage:
    """OpenLineage events of runs."""

    url: str = ""
    """Events are sent to this address by POST."""
    file: str = ""
    """Events are appended to this file, a line each."""
    namespace: str = "pykafka08"
    """Of the jobs."""


@dataclass(frozen=True)
class SparkSettings:
    """The session."""

    master: str = "local[*]"
    conf: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Pipeline:
    """A whole file."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")
    """For the sections as well."""
    name: Name
    folder: str
    """Where tables, checkpoints and runs are kept: a path that the driver and every executor see, or an address."""
    sources: Mapping[Name, Source]
    decode: Decode
    trigger: Duration = "10 seconds"
    """Time between micro-batches of ``run --follow``."""
    dead_letters: DeadLetters | None = None
    aggregates: Mapping[Name, Aggregate] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    compaction: Compaction = field(default_factory=Compaction)
    alerts: Alerts | None = None
    metrics: Metrics | None = None
    lineage: Lineage | None = None
    spark: SparkSettings = field(default_factory=SparkSettings)
    storage: Storage = field(default_factory=Storage)
    reports: str = ""
    """Where charts and reports of runs are written, on this machine; default: a local folder's ``runs``, else
    ``NAME-runs`` beside the file."""

    @property
    def root(self) -> Folder:
        return Folder(address_of(self.folder, Path("/")), self.storage)

    def checkpoint(self, query: str) -> Folder:
        return self.root / "checkpoints" / query

    def bronze(self, source: str) -> Folder:
        return self.root / "bronze" / source

    @property
    def silver(self) -> Folder:
        return self.root / "silver"

    @property
    def rejects(self) -> Folder:
        return self.root / "rejects"

    def gold(self, aggregate: str) -> Folder:
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
    """The pipeline of a TOML text; relative paths count from ``folder``.

    Raises:
        ConfigError: the text is not TOML, or settings are wrong: a line for each, which begins with its key.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"not TOML: {error}") from error
    sources = document.get("sources")
    if isinstance(sources, dict):
        document["sources"] = {
            name: {"name": name, **value} if isinstance(value, dict) else value for name, value in sources.items()
        }
    refused: dict[str, str] = {}
    for where, table in _clusters(document):
        try:
            with_properties(table, folder, is_source=where.startswith("sources."))
        except ConfigError as error:  # noqa: PERF203 - each table's own error is told
            refused[where] = f"{where}: {error.message}"
    storage = document.get("storage")
    if isinstance(storage, dict):
        try:
            with_file(storage, folder)
        except ConfigError as error:
            refused["storage"] = f"storage.properties: {error.message}"
    decode_table = document.get("decode")
    if isinstance(decode_table, dict) and isinstance(decode_table.get("registry"), dict):
        try:
            with_registry_properties(decode_table["registry"], folder)
        except ConfigError as error:
            refused["decode.registry"] = f"decode.registry: {error.message}"
    pipeline = _built(document, refused)
    errors = [f"{where}: {text}" for check in CHECKS for where, text in check(pipeline)]
    if errors:
        raise ConfigError("\n".join(errors))
    root = Folder(address_of(pipeline.folder, folder))
    check_path(root.address)
    decode = _with_whole_paths(pipeline.decode, folder)
    metrics, lineage = pipeline.metrics, pipeline.lineage
    if metrics is not None and metrics.textfile:
        metrics = dataclasses.replace(metrics, textfile=str(folder / metrics.textfile))
    if lineage is not None and lineage.file:
        lineage = dataclasses.replace(lineage, file=str(folder / lineage.file))
    runs = str(root / "runs") if root.is_local else f"{pipeline.name}-runs"
    reports = str(folder / (pipeline.reports or runs))
    return dataclasses.replace(
        pipeline, folder=str(root), reports=reports, decode=decode, metrics=metrics, lineage=lineage
    )


def _with_whole_paths(decode: Decode, folder: Path) -> Decode:
    schema, registry = decode.avro_schema, decode.registry
    if registry is not None and registry.ssl_ca_location:
        registry = dataclasses.replace(registry, ssl_ca_location=str(folder / registry.ssl_ca_location))
    references = tuple(dataclasses.replace(one, to=address_of(one.to, folder).spark) for one in decode.references)
    schema = str(folder / schema) if schema else ""
    return dataclasses.replace(decode, avro_schema=schema, registry=registry, references=references)


def source_of(bootstrap_servers: str, topics: Iterable[str], properties: str, folder: Path) -> Source:
    """A source that is in no file yet, named by its first topic.  Raises ConfigError."""
    topics = tuple(topics)
    name = re.sub(r"^[^A-Za-z0-9]+|[^A-Za-z0-9_-]", "", topics[0].replace(".", "-")) or "topic"
    table: dict[str, Any] = {"name": name, "topics": list(topics)}
    if bootstrap_servers:
        table["bootstrap_servers"] = bootstrap_servers
    if properties:
        table["properties"] = str(Path(properties).resolve())
    with_properties(table, folder, is_source=True)
    document = {"name": name, "folder": "out", "sources": {name: table}, "decode": {"format": "raw", "event_time": "x"}}
    return _built(document, {}).sources[name]


def _clusters(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The tables that name a cluster, by their keys."""
    for group in ("sources", "aggregates"):
        tables = document.get(group)
        for name, table in tables.items() if isinstance(tables, dict) else ():
            if isinstance(table, dict):
                yield f"{group}.{name}", table
    if isinstance(document.get("dead_letters"), dict):
        yield "dead_letters", document["dead_letters"]


def _built(document: dict[str, Any], refused: Mapping[str, str]) -> Pipeline:
    """Each setting by its field's type.  ``refused``: of tables whose properties mean nothing, the error by key."""
    errors: list[str] = []
    pipeline: Pipeline | None = None
    try:
        pipeline = _adapter().validate_python(document)
    except ValidationError as error:
        for one in error.errors(include_url=False):
            where = ".".join(str(part) for part in one["loc"] if isinstance(part, str) and part != "[key]")
            if not any(f"{where}.".startswith(f"{table}.") for table in refused):
                errors.append(f"{where}: {_told(where, one)}")
    errors += refused.values()
    if errors or pipeline is None:
        raise ConfigError("\n".join(errors))
    return pipeline


@cache
def _adapter() -> TypeAdapter[Pipeline]:
    return TypeAdapter(Pipeline)


def _told(where: str, error: Mapping[str, Any]) -> str:
    """What an error of pydantic's says, in this package's words."""
    kind = error["type"]
    if kind == "missing":
        return "missing"
    if kind == "unexpected_keyword_argument":
        return f"unknown; there are {', '.join(_keys(error['loc'][:-1]))}"
    if kind == "value_error":
        return str(error["ctx"]["error"])
    if kind == "greater_than_equal":
        return "may not be negative"
    shown = "***" if is_secret(where) or where.rpartition(".")[2] in REGISTRY_SECRETS else repr(error["input"])
    return f"{WANTED[kind]} is wanted, not {shown}" if kind in WANTED else str(error["msg"])


REGISTRY_SECRETS = ("basic_auth_user_info", "bearer_auth_token")
WANTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "literal_error": "true or false",
    "tuple_type": "a list",
    "dict_type": "a table",
    "mapping_type": "a table",
    "dataclass_type": "a table",
}
"""Pydantic's types of errors."""


def _keys(loc: Iterable[Any]) -> list[str]:
    """The keys of the section there."""
    hint: Any = Pipeline
    for part in loc:
        if isinstance(part, int):
            hint = get_args(hint)[0]
            continue
        hint = get_args(hint)[1] if get_origin(hint) is Mapping else get_type_hints(hint)[part]
        if get_origin(hint) in (Union, types.UnionType):
            hint = get_args(hint)[0]
    return [one.name for one in dataclasses.fields(hint)]


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
            yield f"{where}.zookeeper", "means something with starting = 'group:NAME' only"


def _check_decode(pipeline: Pipeline) -> Errors:
    decode = pipeline.decode
    if (decode.format == "raw") == bool(decode.schema):
        yield "decode.schema", "raw has none" if decode.schema else f"{decode.format} needs the columns"
    if decode.avro_schema and decode.format != "avro":
        yield "decode.avro_schema", "needed for avro, and for nothing else"
    if decode.format == "avro" and not (decode.avro_schema or decode.registry):
        yield "decode.avro_schema", "needed for avro, unless decode.registry has the schemas"
    yield from _check_registry(decode)
    yield from _check_changes(decode)
    yield from _check_expectations(decode)
    for option in decode.options:
        if option.lower() in ("mode", "columnnameofcorruptrecord"):
            yield f"decode.options.{option}", "what is broken is set apart with its reason; nothing else may be"
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
            yield f"{where}.threshold", f"means something with level = 'fail' only, not {level!r}"
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
        yield "decode.uniqueness", "each row has many changes; with decode.changes leave it out"


def _check_changes(decode: Decode) -> Errors:
    if not decode.changes:
        if decode.key:
            yield "decode.key", "means something with decode.changes only"
        return
    if not decode.key:
        yield "decode.key", "at least one column is needed, for decode.changes"
    if decode.format not in OF_REGISTRY:
        yield "decode.changes", f"{decode.changes} has {', '.join(OF_REGISTRY)}, not {decode.format}"
    if decode.format == "avro" and decode.registry is None:
        yield "decode.registry", "needed for decode.changes with avro: keys have a schema of their own"
    if decode.duplicates is not None:
        yield "decode.duplicates", "would keep the first change of a key alone; with decode.changes leave it out"


def _check_registry(decode: Decode) -> Errors:
    if decode.registry is None:
        if decode.format == "protobuf":
            yield "decode.registry", "needed for protobuf"
        return
    if decode.format not in OF_REGISTRY:
        yield "decode.registry", f"has schemas for {', '.join(OF_REGISTRY)}, not for {decode.format}"
    if decode.avro_header_bytes:
        yield "decode.avro_header_bytes", "means nothing with decode.registry, which reads the whole header"
    token = decode.registry.bearer_auth_token
    if not (token.isascii() and token.isprintable()) or " " in token:
        yield "decode.registry.bearer_auth_token", "has a space, a line break or another character that no token has"
    if decode.registry.basic_auth_user_info and decode.registry.bearer_auth_token:
        yield "decode.registry", "only one of basic_auth_user_info and bearer_auth_token can be used"


def _check_aggregates(pipeline: Pipeline) -> Errors:
    for name, aggregate in pipeline.aggregates.items():
        where = f"aggregates.{name}"
        if not aggregate.measures:
            yield f"{where}.measures", "at least one is needed"
        if bool(aggregate.topic) != bool(aggregate.bootstrap_servers):
            yield where, "topic and bootstrap_servers go together"
        if aggregate.slide and _seconds(aggregate.slide) > _seconds(aggregate.window):
            yield f"{where}.slide", f"{aggregate.slide!r} is longer than the window"
        columns = ["window_start", "window_end", "_batch", *aggregate.group_by, *aggregate.measures]
        for column, count in Counter(columns).items():
            if count > 1:
                yield where, f"two columns of gold would be named {column!r}"


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
            yield f"{where}.topic", f"{sink.topic!r} is what sources.{read[place]} reads"
        if place in written:
            yield f"{where}.topic", f"{sink.topic!r} is what {written[place]} writes"
        written[place] = where


CHECKS: tuple[Callable[[Pipeline], Errors], ...] = (
    _check_folder,
    _check_sources,
    _check_decode,
    _check_aggregates,
    _check_sinks,
    _check_telemetry,
)
