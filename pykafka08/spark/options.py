"""Options of reads and writes, by name and meaning those of Spark's ``kafka`` source and sink, and a few of our own.

Pure.  Every option is honoured or refused, in the words of Spark's KafkaSourceProvider where it refuses the same; one
that is in no table is an error, since an option that is ignored is a job that does something else than it says.
Spark passes names in lower case.  Source: the tables of options in Spark's "Structured Streaming + Kafka Integration
Guide".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pykafka08.config import ClientConfig, ConsumerConfig, ProducerConfig
from pykafka08.errors import ConfigError
from pykafka08.records.record import TopicPartition
from pykafka08.records.topic_name import INTERNAL_TOPICS
from pykafka08.spark.client_properties import (
    CONSUMER_PROPERTIES,
    PREFIX,
    PRODUCER_PROPERTIES,
    consumer_settings,
    producer_settings,
)
from pykafka08.spark.committed_group import CommittedGroup, parse_group
from pykafka08.spark.offsets_json import EARLIEST, LATEST, read_offsets, read_partitions, read_timestamps
from pykafka08.spark.option_names import shown, suggestion
from pykafka08.spark.option_values import (
    OptionError,
    boolean,
    milliseconds,
    not_negative,
    positive,
    positive_int,
    whole,
)
from pykafka08.spark.ranges import TARGET_RECORDS, ReadSettings
from pykafka08.zookeeper.java_regex import translate

__all__ = ["Limit", "OptionError", "ReadOptions", "Selection", "WriteOptions", "read_options", "write_options"]

STRATEGIES = ("subscribe", "subscribepattern", "assign")
SHOWN_STRATEGIES = "subscribe, subscribePattern, assign"
NO_MATCH = ("error", "latest")


@dataclass(frozen=True)
class Selection:
    """Which partitions are read: exactly one of the three is given."""

    topics: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None
    partitions: frozenset[TopicPartition] = frozenset()

    @property
    def named_topics(self) -> frozenset[str]:
        """Topics that must be there; none with a pattern."""
        return frozenset(self.topics) | {tp.topic for tp in self.partitions}

    def chooses(self, tp: TopicPartition) -> bool:
        """Whether ``tp`` is read where it exists."""
        return tp in self.partitions or self.chooses_topic(tp.topic)

    def chooses_topic(self, name: str) -> bool:
        """Whether all partitions of the topic are read; a pattern never chooses Kafka's internal topics.

        A query that commits to a group and reads ``__consumer_offsets`` would feed itself.
        """
        if self.pattern is not None:
            return name not in INTERNAL_TOPICS and self.pattern.search(name) is not None
        return name in self.topics


@dataclass(frozen=True)
class Limit:
    """Where a read starts or ends: one of these is given.

    ``point`` is :data:`EARLIEST` or :data:`LATEST` for all; ``offsets`` may hold these, too; ``timestamp_ms`` holds for
    all, ``timestamps`` (ms) by partition: the first offset that is not older.  Of a ``group`` what it
    has committed; partitions that it has not begin at their first offset.
    """

    point: int | None = None
    offsets: Mapping[TopicPartition, int] | None = None
    timestamp_ms: int | None = None
    timestamps: Mapping[TopicPartition, int] | None = None
    group: CommittedGroup | None = None


@dataclass(frozen=True)
class ReadOptions:
    """Options of the source; times in milliseconds, sizes in bytes, None where nothing was given."""

    selection: Selection
    starting: Limit
    ending: Limit
    settings: ReadSettings
    no_match: Literal["error", "latest"] = "error"
    """When no record is as young as a starting timestamp."""
    allows_segment_granularity: bool = False
    """Timestamps on brokers before 0.10.1, which know only those of files: whole segments too many are read."""
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay_ms: int = 900_000
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    target_records_per_task: int = TARGET_RECORDS
    num_retries: int = 3
    retry_interval_ms: int = 1000
    columns: tuple[str, ...] | None = None
    pushes_filters: bool = False
    """Filters of the query shorten the plan of a batch (``batch_reader.FilteredBatchReader``)."""
    commit_group: CommittedGroup | None = None
    """Told of what a stream has processed."""
    ignored: tuple[str, ...] = ()
    """Options of streams that a batch was given; Spark's connector warns, too."""
    given: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    @property
    def client(self) -> ClientConfig:
        return self.settings.client

    @property
    def consumer(self) -> ConsumerConfig:
        return self.settings.consumer

    @property
    def fail_on_data_loss(self) -> bool:
        return self.settings.fail_on_data_loss

    @property
    def is_committed_only(self) -> bool:
        """``kafka.isolation.level`` is read_committed: the latest offset is the last stable one."""
        return self.consumer.isolation_level == "read_committed"


@dataclass(frozen=True)
class WriteOptions:
    """Options of the sink."""

    client: ClientConfig
    producer: ProducerConfig
    topic: str | None = None
    is_exactly_once: bool = False
    transactional_id_prefix: str = "spark-kafka-sink"
    given: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)


Convert = Callable[[str, str], Any]


def _text(_: str, value: str) -> str:
    return value


def _point_or_offsets(option: str, value: str) -> Limit:
    lower = value.strip().lower()
    if lower in ("earliest", "latest"):
        return Limit(point=EARLIEST if lower == "earliest" else LATEST)
    return Limit(offsets=_json(read_offsets, option, value))


def _timestamps(option: str, value: str) -> Limit:
    return Limit(timestamps=_json(read_timestamps, option, value))


def _timestamp(option: str, value: str) -> Limit:
    if re.fullmatch(r"-[0-9]+", value):
        raise OptionError(option, value, f"Expected a single long value from 0, got {value}")
    if not re.fullmatch(r"[0-9]{1,18}", value):
        raise OptionError(option, value, f"Expected a single long value, got {value}")
    return Limit(timestamp_ms=int(value))


def _group(option: str, value: str) -> CommittedGroup:
    try:
        return parse_group(value)
    except ConfigError as error:
        raise OptionError(option, value, error.message) from None


def _group_limit(option: str, value: str) -> Limit:
    return Limit(group=_group(option, value))


def _json(read: Callable[[str], Any], option: str, value: str) -> Any:
    try:
        return read(value)
    except ValueError as error:
        raise OptionError(option, value, str(error)) from None


def _no_match(option: str, value: str) -> str:
    if value.lower() not in NO_MATCH:
        raise OptionError(
            option, value, f"No value found for '{value.upper()}': it is not one of {', '.join(NO_MATCH)}"
        )
    return value.lower()


def _names(option: str, value: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in value.split(",") if name.strip())
    if not names:
        raise OptionError(option, value, f"{option} names no column")
    return names


OF_READ: Mapping[str, tuple[str, Convert]] = {
    "startingoffsets": ("", _point_or_offsets),
    "startingoffsetsbytimestamp": ("", _timestamps),
    "startingtimestamp": ("", _timestamp),
    "endingoffsets": ("", _point_or_offsets),
    "endingoffsetsbytimestamp": ("", _timestamps),
    "endingtimestamp": ("", _timestamp),
    "startingoffsetsbytimestampstrategy": ("no_match", _no_match),
    "failondataloss": ("fail_on_data_loss", boolean),
    "kafkaconsumer.polltimeoutms": ("poll_timeout_ms", not_negative),
    "fetchoffset.numretries": ("num_retries", not_negative),
    "fetchoffset.retryintervalms": ("retry_interval_ms", whole),
    "maxoffsetspertrigger": ("max_offsets_per_trigger", positive),
    "minoffsetspertrigger": ("min_offsets_per_trigger", not_negative),
    "maxtriggerdelay": ("max_trigger_delay_ms", milliseconds),
    "minpartitions": ("min_partitions", positive_int),
    "maxrecordsperpartition": ("max_records_per_partition", positive),
    "groupidprefix": ("", _text),
    "includeheaders": ("include_headers", boolean),
    # our own
    "startinggroup": ("", _group_limit),
    "columns": ("columns", _names),
    "pushfilters": ("pushes_filters", boolean),
    "targetrecordspertask": ("target_records_per_task", positive),
    "fetchbytes": ("fetch_bytes", positive_int),
    "segmentgranulartimestamps": ("allows_segment_granularity", boolean),
    "commitgroup": ("commit_group", _group),
}
"""By option: which attribute has its value ("" where several options make one), and how it is read."""
OF_SETTINGS = ("fail_on_data_loss", "poll_timeout_ms", "include_headers", "fetch_bytes")
OF_STREAMS = ("maxoffsetspertrigger", "minoffsetspertrigger", "maxtriggerdelay", "commitgroup")

OF_WRITE: Mapping[str, tuple[str, Convert]] = {
    "topic": ("topic", _text),
    "exactlyonce": ("is_exactly_once", boolean),
    "transactionalidprefix": ("transactional_id_prefix", _text),
    "includeheaders": ("", boolean),  # headers are written wherever there is such a column, as Spark does
    "checkpointlocation": ("", _text),  # Spark's own, passed on
    "queryname": ("", _text),
}


def read_options(options: Mapping[str, str], *, streaming: bool) -> ReadOptions:
    """What the source was asked for; OptionError, a ValueError that names option and value, where it has no meaning."""
    given = {name.lower(): value for name, value in options.items()}
    if streaming:
        _refuse_ends(given)
    selection = _selection(given)
    values = _values(given, OF_READ, STRATEGIES, CONSUMER_PROPERTIES)
    _check_triggers(values)
    prefix = given.get("groupidprefix", "spark-kafka-source")
    client, consumer = consumer_settings(given, prefix)
    ignored = () if streaming else tuple(shown(name) for name in OF_STREAMS if name in given)
    starting = _limit(given, "starting", LATEST if streaming else EARLIEST)
    ending = _limit(given, "ending", LATEST)
    if not streaming:
        _check_batch(given, starting, ending)
    settings = {name: values.pop(name) for name in OF_SETTINGS if name in values}
    settings |= _fetch_sizes(given, consumer, settings.get("fetch_bytes", ReadSettings.fetch_bytes))
    return ReadOptions(
        selection=selection,
        starting=starting,
        ending=ending,
        settings=ReadSettings(client=client, consumer=consumer, **settings),
        ignored=ignored,
        given=given,
        **values,
    )


def _fetch_sizes(given: Mapping[str, str], consumer: ConsumerConfig, fetch_bytes: int) -> dict[str, int]:
    """What ``fetchBytes`` and a consumer's properties leave: the least of what is given, not their defaults."""
    sizes = {}
    if f"{PREFIX}fetch.max.bytes" in given:
        sizes["fetch_bytes"] = min(fetch_bytes, consumer.fetch_max_bytes)
    if f"{PREFIX}max.partition.fetch.bytes" in given:
        sizes["partition_fetch_bytes"] = consumer.max_partition_fetch_bytes
    return sizes


def write_options(options: Mapping[str, str]) -> WriteOptions:
    """What the sink was asked for; OptionError where it has no meaning."""
    given = {name.lower(): value for name, value in options.items()}
    values = _values(given, OF_WRITE, (), PRODUCER_PROPERTIES)
    client, producer = producer_settings(given, "spark-kafka-sink")
    return WriteOptions(client=client, producer=producer, given=given, **values)


def _values(
    given: Mapping[str, str],
    table: Mapping[str, tuple[str, Convert]],
    also: tuple[str, ...],
    properties: Collection[str],
) -> dict[str, Any]:
    values = {}
    for option, value in given.items():
        if option.startswith(PREFIX) or option in also:
            continue
        if option not in table:
            raise OptionError(option, value, "Unknown option" + suggestion(option, (*table, *also), properties, PREFIX))
        attribute, convert = table[option]
        found = convert(option, value)
        if attribute:
            values[attribute] = found
    return values


def _refuse_ends(given: Mapping[str, str]) -> None:
    for option in ("endingoffsets", "endingoffsetsbytimestamp", "endingtimestamp"):
        if option in given:
            what = "ending timestamp" if option == "endingtimestamp" else "ending offset"
            raise OptionError(option, given[option], f"{what} not valid in streaming queries")
    if "pushfilters" in given:
        raise OptionError("pushfilters", given["pushfilters"], "filters reach the plan of batch queries alone")


def _selection(given: Mapping[str, str]) -> Selection:
    chosen = [name for name in STRATEGIES if name in given]
    if len(chosen) != 1:
        how = "Only one" if chosen else "One"
        verb = "can" if chosen else "must"
        why = f"{how} of the following options {verb} be specified for Kafka source: {SHOWN_STRATEGIES}."
        raise OptionError(", ".join(chosen) or SHOWN_STRATEGIES, None, f"{why} See the docs for more details.")
    option = chosen[0]
    value = given[option]
    if option == "assign":
        partitions = _json(read_partitions, option, value) if value.strip().startswith("{") else frozenset()
        if not partitions:
            raise OptionError(
                option, value, f"No topicpartitions to assign as specified value for option 'assign' is '{value}'"
            )
        return Selection(partitions=partitions)
    if option == "subscribe":
        topics = tuple(dict.fromkeys(name.strip() for name in value.split(",") if name.strip()))
        if not topics:
            raise OptionError(
                option, value, f"No topics to subscribe to as specified value for option 'subscribe' is '{value}'"
            )
        return Selection(topics=topics)
    if not value.strip():
        why = f"Pattern to subscribe is empty as specified value for option 'subscribePattern' is '{value}'"
        raise OptionError(option, value, why)
    return Selection(pattern=_pattern(option, value))


def _pattern(option: str, value: str) -> re.Pattern[str]:
    """Java's expression, sought anywhere in a topic's name."""
    try:
        return translate(value)
    except ConfigError as error:
        raise OptionError(option, value, error.message) from error


def _check_triggers(values: Mapping[str, Any]) -> None:
    least, most = values.get("min_offsets_per_trigger"), values.get("max_offsets_per_trigger")
    if least is not None and most is not None and least > most:
        why = f"The value of minOffsetPerTrigger({least}) is higher than the maxOffsetsPerTrigger({most})."
        raise OptionError("minoffsetspertrigger", str(least), why)


def _limit(given: Mapping[str, str], side: str, default: int) -> Limit:
    """The most special option wins: a group, one time, times by partition, offsets."""
    for option in (f"{side}group", f"{side}timestamp", f"{side}offsetsbytimestamp", f"{side}offsets"):
        if option in given:
            limit: Limit = OF_READ[option][1](option, given[option])
            return limit
    return Limit(point=default)


def _check_batch(given: Mapping[str, str], starting: Limit, ending: Limit) -> None:
    for side, option, limit, wrong in (
        ("starting", "startingoffsets", starting, LATEST),
        ("ending", "endingoffsets", ending, EARLIEST),
    ):
        name = "latest" if wrong == LATEST else "earliest"
        value = given.get(option)
        if limit.point == wrong:
            raise OptionError(option, value, f"{side} offset can't be {name} for batch queries on Kafka")
        for tp, offset in (limit.offsets or {}).items():
            if offset == wrong:
                shown = "startingOffsets" if side == "starting" else "ending offset"
                text = f"{shown} for {tp.topic}-{tp.partition} can't be {name} for batch queries on Kafka"
                raise OptionError(option, value, text)
