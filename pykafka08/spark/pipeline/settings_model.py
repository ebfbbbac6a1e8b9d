"""The settings of a pipeline as dataclasses, and the type of each field, by which pydantic checks it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, Strict

from pykafka08.security.hidden_text import HiddenText
from pykafka08.spark.pipeline.addresses import Storage, address_of
from pykafka08.spark.pipeline.durations import seconds_of
from pykafka08.spark.pipeline.stores import Folder

__all__ = [
    "Aggregate",
    "Alerts",
    "Compaction",
    "DeadLetters",
    "Decode",
    "Duplicates",
    "Limits",
    "Lineage",
    "Metrics",
    "OF_REGISTRY",
    "Pipeline",
    "REGISTRY_SECRETS",
    "Reference",
    "Registry",
    "Retention",
    "Rule",
    "Source",
    "SparkSettings",
    "Uniqueness",
    "duration_seconds",
]

FORMATS = ("json", "csv", "avro", "protobuf", "raw")
OF_REGISTRY = ("json", "avro", "protobuf")
"""Formats that a schema registry has schemas for."""
LEVELS = ("warn", "quarantine", "fail")
"""Rows that break an expectation are kept, refused, or refused up to a threshold beyond which the batch fails."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
LONGEST_RETENTION_S = 1000 * 372 * 86_400.0
"""A thousand years as :mod:`durations` counts them; the calendar goes back to the year 1 only."""
REGISTRY_SECRETS = ("basic_auth_user_info", "bearer_auth_token")
"""Settings of ``[decode.registry]`` whose values no error, log or plan shows."""


def _format(text: str) -> str:
    if text not in FORMATS:
        raise ValueError(f"{text!r} is not one of {', '.join(FORMATS)}")
    return text


def _changes(text: str) -> str:
    if text != "debezium":
        raise ValueError(f"{text!r} is not known; use debezium")
    return text


def _name(text: str) -> str:
    if not NAME.fullmatch(text):
        raise ValueError(f"{text!r} may have letters, digits, '.', '_' and '-' only")
    return text


def _topic(text: str) -> str:
    if not TOPIC.fullmatch(text) or text in (".", ".."):
        raise ValueError(f"{text!r} cannot be a topic: letters, digits, '.', '_' and '-', at most 249")
    return text


def _duration(text: str) -> str:
    if duration_seconds(text) < 0:
        raise ValueError(f"{text!r} is not at least zero")
    return text


def _period(text: str) -> str:
    if duration_seconds(text) <= 0:
        raise ValueError(f"{text!r} is not above zero")
    return text


def _retention(text: str) -> str:
    if duration_seconds(text) > LONGEST_RETENTION_S:
        raise ValueError(f"{text!r} is more than 1,000 years; leave it out to keep rows for ever")
    return _period(text)


def _window(text: str) -> str:
    duration_seconds(text)
    if "month" in text.lower() or "year" in text.lower():
        raise ValueError(f"{text!r} has months or years, which differ in length; use days or weeks")
    return _period(text)


def duration_seconds(text: str) -> float:
    """The seconds of a length of time.  Raises ValueError."""
    seconds = seconds_of(text)
    if seconds is None:
        raise ValueError(f"{text!r} is no length of time such as '10 minutes' or '1 day'")
    return seconds


def _files_to_join(count: int) -> int:
    if count < 2:
        raise ValueError(f"{count} is less than 2, the fewest files that can be joined")
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
        raise ValueError(f"{text!r} is not one of {', '.join(LEVELS)}")
    return text


def _rule_table(given: Any) -> Any:
    """The table of a rule; a text is its condition."""
    return {"check": given} if isinstance(given, str) else given


def _registry_address(text: str) -> str:
    try:
        parts = urlsplit(text)
    except ValueError as error:
        raise ValueError("not an address such as http://host:8081") from error
    if "@" in parts.netloc:
        raise ValueError("the address has credentials; move them to basic_auth_user_info")
    if parts.query or parts.fragment:
        shown = re.split("[?#]", text)[0]  # a query may be a token
        raise ValueError(f"{shown!r} is followed by a query or a fragment; leave it out")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{text!r} is not an address such as http://host:8081")
    return text


def _registry_table(given: Any) -> Any:
    """The table of a registry; a text is its address."""
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
"""A path or an address, which is converted to a Folder."""
Topic = Annotated[str, AfterValidator(_topic)]
Duration = Annotated[str, AfterValidator(_duration)]
Window = Annotated[str, AfterValidator(_window)]


@dataclass(frozen=True)
class Source:
    """Topics of one cluster."""

    name: str
    bootstrap_servers: str
    topics: tuple[Topic, ...] = ()
    """Names of topics, unless `pattern` is set."""
    pattern: str = ""
    """A regular expression that topic names must match somewhere (Spark's ``subscribePattern``)."""
    starting: str = "earliest"
    """``earliest``, ``latest``, offsets as Spark's JSON, a time in ms, or ``group:NAME`` (that group's offsets)."""
    zookeeper: str = ""
    """``HOST:PORT/CHROOT``: ``group:NAME`` is read there, for groups that keep offsets in ZooKeeper."""
    max_offsets_per_trigger: Count = 10_000_000
    """The most offsets of one micro-batch; 0: no limit."""
    target_records_per_task: Count = 0
    """Tasks read several small partitions, up to this number of records; 0: the default of the source."""
    properties: str = ""
    """A properties file of Kafka's clients: security and other settings of the connections."""
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Further options of the data source, such as ``minPartitions`` or ``kafka.client.id``."""


@dataclass(frozen=True)
class Duplicates:
    """One row for each key: the first one."""

    key: tuple[str, ...]
    within_days: Count = 1
    """The largest distance of two rows with one key, in days of event time."""


@dataclass(frozen=True)
class Rule:
    """A condition for rows."""

    check: str
    """The condition in SQL."""
    level: Level = "quarantine"
    threshold: Ratio = 0.0
    """With the level ``fail``: the share of a batch's rows that may break the rule without failing the batch."""


@dataclass(frozen=True)
class Uniqueness:
    """Columns whose values together are unique among the accepted rows."""

    key: tuple[str, ...]
    level: Level = "quarantine"
    threshold: Ratio = 0.0
    name: str = ""
    within_days: Count = 1
    """A batch is compared with rows of silver whose event dates are at most this number of days away."""

    @property
    def reason(self) -> str:
        return f"unique: {self.name or ', '.join(self.key)}"


@dataclass(frozen=True)
class Reference:
    """Columns whose values must be in a file or table."""

    key: tuple[str, ...]
    to: str
    """A CSV file with names in its first line, a Parquet file or folder, or a Delta table."""
    columns: tuple[str, ...] = ()
    """The names of the columns there, if they differ from `key`."""
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
    """A PEM file with trusted certificates; default: the system's."""
    properties: str = ""
    """A properties file with Confluent's names: ``schema.registry.url``, ``basic.auth.user.info``, ..."""

    def __post_init__(self) -> None:
        for name in REGISTRY_SECRETS:
            object.__setattr__(self, name, HiddenText(getattr(self, name)))


@dataclass(frozen=True)
class Decode:
    """Decoding of record values into rows."""

    format: Annotated[str, AfterValidator(_format)]
    event_time: str
    """An SQL expression over the columns that gives a timestamp."""
    schema: str = ""
    """Columns in DDL; empty for ``raw``, which has ``key`` and ``text``."""
    avro_schema: str = ""
    """A file with the writer's schema, for ``avro``; with `registry` optional, the reader's schema."""
    avro_header_bytes: Count = 0
    """Bytes before each Avro value to skip; 5 for values in a schema registry's wire format without `registry`."""
    registry: Annotated[Registry | None, BeforeValidator(_registry_table)] = None
    """The schema registry that has the schemas of the values, which are in its wire format."""
    changes: Annotated[str, _or_empty(_changes)] = ""
    """``debezium``: values are change records, whose rows have the columns of `schema`."""
    key: tuple[str, ...] = ()
    """The columns of the primary key, for `changes`."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Options of Spark's JSON or CSV reader, such as ``sep``."""
    rules: Mapping[str, Annotated[Rule, BeforeValidator(_rule_table)]] = field(default_factory=dict)
    uniqueness: tuple[Uniqueness, ...] = ()
    references: tuple[Reference, ...] = ()
    duplicates: Duplicates | None = None


@dataclass(frozen=True)
class DeadLetters:
    """The topic for refused records."""

    bootstrap_servers: str
    topic: Topic
    exactly_once: Flag = True
    """Whether to write in transactions (brokers from 0.11)."""
    properties: str = ""
    options: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Aggregate:
    """Measures over windows of event time: the table ``gold/NAME``, and with `topic` records by window and group."""

    watermark: Duration
    """The longest delay of a row, such as ``1 hour``; later rows are in silver only, until a backfill."""
    window: Window = ""
    """The length of a window, unless `sql` or `sql_file` is set."""
    slide: Annotated[str, _or_empty(_window)] = ""
    group_by: tuple[str, ...] = ()
    measures: Mapping[str, str] = field(default_factory=dict)
    """Column name → SQL aggregate.  Spark fills this field and `group_by` for an aggregate with a query."""
    sql: str = ""
    """A query over the table ``silver``, in place of `window`, `slide`, `group_by` and `measures`."""
    sql_file: str = ""
    """A file with such a query."""
    bootstrap_servers: str = ""
    topic: Annotated[str, _or_empty(_topic)] = ""
    exactly_once: Flag = True
    properties: str = ""
    options: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Limits:
    """Limits of one batch of a stage that reads a table: whole files up to them, and at least one; 0: no limit."""

    rows: Count = 10_000_000
    bytes: Count = 1 << 30
    """The size of the Parquet files."""
    files: Count = 10_000


@dataclass(frozen=True)
class Compaction:
    """Compaction of small files of a partition."""

    target_bytes: Count = 128 << 20
    min_files: Annotated[Whole, AfterValidator(_files_to_join)] = 2
    keep_commits: Count = 0
    """Replaced files are deleted once all readers have passed them, and the table has so many further commits."""
    every_seconds: Count = 3600
    """The interval of ``run --follow``; 0: never.  Other runs compact at their end."""
    cluster_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Columns by which compaction sorts the rows of a joined file, by table (``silver``, ``gold/NAME``)."""


@dataclass(frozen=True)
class Retention:
    """The length of time for which each table keeps its rows.  A table without a setting keeps all rows."""

    bronze: Annotated[str, _or_empty(_retention)] = ""
    """By the timestamp of the record; rows without one, by the ingest date."""
    silver: Annotated[str, _or_empty(_retention)] = ""
    """By the event date, whole days."""
    rejects: Annotated[str, _or_empty(_retention)] = ""
    """By the timestamp of the record; rows without one, by the commit."""
    gold: Annotated[str, _or_empty(_retention)] = ""
    """By the end of the window."""
    files: Annotated[str, _or_empty(_duration)] = ""
    """The length of time for which files stay after a commit that removes them, also by compaction or a backfill.

    By default they stay until all stages have read later commits."""


@dataclass(frozen=True)
class Alerts:
    """Bounds that ``status --check`` and the end of a run check."""

    max_lag: Count | None = None
    """Offsets or rows that wait for any stage."""
    max_reject_ratio: Ratio | None = None
    """Refused rows of those that decode read in the newest run with rows."""
    max_age_seconds: Count | None = None
    """Since the last batch with rows of each source."""
    webhook: str = field(default="", repr=False)
    """An address that gets a JSON document by POST if a bound is exceeded."""


@dataclass(frozen=True)
class Metrics:
    """Metrics of runs for Prometheus."""

    port: Port = 0
    """The port of a run's HTTP endpoint; 0: none."""
    address: str = "127.0.0.1"
    """The address of the endpoint."""
    textfile: str = ""
    """A file for node_exporter's textfile collector, written after each batch."""


@dataclass(frozen=True)
class Lineage:
    """OpenLineage events of runs."""

    url: str = ""
    """An address that gets events by POST."""
    file: str = ""
    """A file to which events are appended, one in a line."""
    namespace: str = "pykafka08"
    """The namespace of the jobs."""


@dataclass(frozen=True)
class SparkSettings:
    """Spark's session."""

    master: str = "local[*]"
    conf: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_connect(self) -> bool:
        """Whether the master is a Spark Connect server."""
        return self.master.startswith("sc://")


@dataclass(frozen=True)
class Pipeline:
    """The settings of a pipeline."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")
    """Applies to the sections as well."""
    name: Name
    folder: str
    """The place of tables, checkpoints and runs: a path that the driver and every executor see, or an address."""
    sources: Mapping[Name, Source]
    decode: Decode
    trigger: Duration = "10 seconds"
    """Time between micro-batches of ``run --follow``."""
    dead_letters: DeadLetters | None = None
    aggregates: Mapping[Name, Aggregate] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    compaction: Compaction = field(default_factory=Compaction)
    retention: Retention = field(default_factory=Retention)
    alerts: Alerts | None = None
    metrics: Metrics | None = None
    lineage: Lineage | None = None
    spark: SparkSettings = field(default_factory=SparkSettings)
    storage: Storage = field(default_factory=Storage)
    """The store of the folder, and the format of the tables."""
    reports: str = ""
    """The folder of charts and reports, on this machine; default: ``runs`` in a local folder, else ``NAME-runs`` beside
    the file."""

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
