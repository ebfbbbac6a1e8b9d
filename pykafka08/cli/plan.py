"""The options of the console consumer, and the plan they make.

Not here: carrying it out (``consume``), what a record looks like (``formats``), what the client's settings are called
(``properties``).
"""

from __future__ import annotations

import argparse
import math
import re
from dataclasses import dataclass
from typing import Any

from pykafka08.cli.formats import RecordFormat, format_properties
from pykafka08.cli.notes import note
from pykafka08.cli.options import (
    MOST,
    Parser,
    add_client_options,
    client_settings,
    count_or_none,
    natural,
    new_parser,
    time_or_none,
    whole_number,
)
from pykafka08.cli.properties import parse_pairs
from pykafka08.cli.zookeeper_options import add_zookeeper_options
from pykafka08.config import ConsumerConfig
from pykafka08.errors import ConfigError
from pykafka08.group.settings import GroupConfig
from pykafka08.properties import read_properties

__all__ = ["Plan", "consumer_parser", "plan_of", "record_format_of", "topic_pattern"]

EPILOG = """\
formatter properties: print.timestamp, print.partition, print.offset, print.delivery, print.epoch, print.headers,
print.key, print.value (true or false), key.separator, line.separator, headers.separator, null.literal,
key.deserializer, value.deserializer, headers.deserializer

Records go to standard output, everything else to standard error.  With a group, what was printed is committed.
exit status: 0 done, 1 failure while running, 2 wrong usage, 4 no broker reached, 130 and 143 after a signal
"""


API_TIMEOUT_MS = 15_000
"""A person waits for the answer: a topic that is not there is told sooner than a program would want it."""
LEAST_API_TIMEOUT_MS = 5_000
"""With a shorter ``--timeout-ms`` too a busy broker must be able to answer."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What the options ask for."""

    settings: dict[str, Any]
    topic: str | None
    pattern: re.Pattern[str] | None
    partition: int | None
    offset: int | None
    limit: float
    """Records to print, infinite if not given."""
    idle_s: float
    """Seconds without a record after which to end."""
    record_format: RecordFormat
    skips_errors: bool


def consumer_parser(prog: str) -> Parser:
    parser = new_parser(prog, "Print the records of a topic.", EPILOG)
    add_client_options(parser, "consumer", is_bootstrap_needed=False)
    what = parser.add_argument_group("what to read")
    add = what.add_argument
    add("--topic", "-t", help="the topic")
    add("--include", "--whitelist", metavar="REGEX", help="topics whose whole name matches; commas separate several")
    add("--blacklist", metavar="REGEX", help="with --zookeeper: topics whose whole name does not match")
    add("--partition", "-p", type=natural, metavar="N", help="this partition alone")
    add("--offset", "-o", metavar="N", help="start here in the partition: a number, earliest, or latest (default)")
    add("--from-beginning", action="store_true", help="start with the earliest record rather than with new ones")
    add("--max-messages", "-n", type=count_or_none, metavar="N", help="end after so many records; -1 for all")
    add("--timeout-ms", type=time_or_none, metavar="MS", help="end when there was no record for so long")
    add("--isolation-level", choices=("read_uncommitted", "read_committed"), help="default read_uncommitted")
    add("--group", metavar="ID", help="share the partitions with the others of this group, from where it has committed")
    add("--zookeeper", metavar="HOST:PORT/CHROOT", help="in the place of --bootstrap-server: share the partitions as a"
        " member of an old group, which ZooKeeper keeps (brokers up to 3.9)")  # fmt: skip
    add("--delete-consumer-offsets", action="store_true", help="with --zookeeper: forget what the group has committed")
    add_zookeeper_options(what)
    add(
        "--new-consumer",
        action="store_true",
        help="taken and without meaning: the first releases with this consumer asked for it",
    )
    how = parser.add_argument_group("how to print")
    add = how.add_argument
    add("--formatter-property", "--property", dest="formatter_properties", action="append", default=[],
        metavar="NAME=VALUE", help="see below")  # fmt: skip
    add("--formatter-config", metavar="FILE", help="a properties file with formatter properties")
    add("--formatter", default="DefaultMessageFormatter", metavar="CLASS",
        help="DefaultMessageFormatter, or NoOpMessageFormatter, which prints nothing")  # fmt: skip
    add("--key-deserializer", metavar="CLASS", help="e.g. LongDeserializer; bytes are printed as they are without it")
    add("--value-deserializer", metavar="CLASS", help="the same for values")
    add("--skip-message-on-error", action="store_true", help="skip a record that cannot be shown instead of ending")
    return parser


def plan_of(options: argparse.Namespace) -> Plan:
    """The plan; a ConfigError says which options contradict each other."""
    if options.bootstrap_server is None:
        raise ConfigError("one of --bootstrap-server and --zookeeper is needed")
    if options.blacklist is not None or options.delete_consumer_offsets:
        raise ConfigError("--blacklist and --delete-consumer-offsets need --zookeeper")
    if options.zookeeper_auth or options.zookeeper_property or options.zookeeper_config:
        raise ConfigError("--zookeeper-auth, --zookeeper-property and --zookeeper-config need --zookeeper")
    if (options.topic is None) == (options.include is None):
        raise ConfigError("exactly one of --topic and --include is needed")
    if options.group is not None and options.partition is not None:
        raise ConfigError("--group and --partition exclude each other")
    if options.partition is not None and options.topic is None:
        raise ConfigError("--partition needs --topic")
    if options.offset is not None and options.partition is None:
        raise ConfigError("--offset needs --partition")
    if options.offset is not None and options.from_beginning:
        raise ConfigError("--offset and --from-beginning exclude each other")
    patience = API_TIMEOUT_MS
    if options.timeout_ms is not None:
        patience = min(patience, max(options.timeout_ms, LEAST_API_TIMEOUT_MS))
    settings = {"default_api_timeout_ms": patience, **client_settings(options, ConsumerConfig, GroupConfig)}
    if options.group is not None and settings.setdefault("group_id", options.group) != options.group:
        raise ConfigError(f"--group {options.group} and group.id={settings['group_id']} exclude each other")
    offset = _apply_offsets(options, settings)
    if options.isolation_level is not None:
        settings["isolation_level"] = options.isolation_level
    return Plan(
        settings=settings,
        topic=options.topic,
        pattern=None if options.include is None else topic_pattern(options.include),
        partition=options.partition,
        offset=offset,
        limit=math.inf if options.max_messages is None else options.max_messages,
        idle_s=math.inf if options.timeout_ms is None else options.timeout_ms / 1000,
        record_format=record_format_of(options),
        skips_errors=options.skip_message_on_error,
    )


def _apply_offsets(options: argparse.Namespace, settings: dict[str, Any]) -> int | None:
    """Set ``auto_offset_reset``; the number that --offset gave, if it was one."""
    reset = settings.get("auto_offset_reset")
    if options.from_beginning and reset == "latest":
        raise ConfigError("--from-beginning and auto.offset.reset=latest exclude each other")
    text = "earliest" if options.from_beginning else (options.offset or reset or "latest").strip().lower()
    if text in ("earliest", "latest", "none"):
        settings["auto_offset_reset"] = text
        return None
    number = whole_number(text)
    if number is None:
        text = f"{options.offset!r:.50} is neither a number from 0 to {MOST}, nor earliest, nor latest"
        raise ConfigError(f"--offset {text}")
    settings.setdefault("auto_offset_reset", "latest")
    return number


def topic_pattern(text: str) -> re.Pattern[str]:
    """The expression of --include; a comma outside braces separates alternatives, as 0.8's tool had it."""
    try:
        return re.compile(re.sub(r",(?![^{]*})", "|", text.strip()))
    except re.error as error:
        raise ConfigError(f"--include {text!r} is no regular expression: {error}") from None


def record_format_of(options: argparse.Namespace) -> RecordFormat:
    formatter = options.formatter.rpartition(".")[2]
    if formatter == "NoOpMessageFormatter":
        return RecordFormat(value=False)
    if formatter != "DefaultMessageFormatter":
        raise ConfigError(f"--formatter {options.formatter!r}: Java classes cannot be used here")
    properties = read_properties(options.formatter_config) if options.formatter_config else {}
    properties.update(parse_pairs(options.formatter_properties))
    for name in ("key", "value"):
        given = getattr(options, f"{name}_deserializer")
        if given is not None:
            properties[f"{name}.deserializer"] = given
    record_format, unknown = format_properties(properties)
    if unknown:
        note(f"formatter properties that mean nothing here: {', '.join(unknown)}")
    return record_format
