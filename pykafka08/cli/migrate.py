"""``pykafka08 migrate group``: a group's offsets from ZooKeeper to Kafka, at once or helped by dual commit.

Here: options, what is printed.  What is done is in :class:`pykafka08.GroupMigration`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from pykafka08.cli.options import Parser, add_client_options, client_settings, new_parser
from pykafka08.cli.zookeeper_options import add_zookeeper_options, zookeeper_settings
from pykafka08.errors import ConfigError

if TYPE_CHECKING:
    from pykafka08.cli.exits import Interrupt
    from pykafka08.zookeeper.migration import GroupMigration, MigrationReport

__all__ = ["main", "migrate_parser"]

PROG = "pykafka08 migrate group"
EPILOG = """\
At once: stop the group's members, run this, start them with offsets.storage=kafka and dual.commit.enabled=false, or
as consumers of today. Without a stop: restart the members one by one with offsets.storage=kafka and
dual.commit.enabled=true; when --verify ends with 0, restart them one by one with dual.commit.enabled=false.
exit status: 0 Kafka has every offset, 1 it does not, or a failure, 2 wrong usage, 4 no broker reached
"""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = migrate_parser()
    words = list(arguments or ())
    if words[:1] == ["group"]:
        del words[0]
    elif words[:1] not in (["-h"], ["--help"]):
        parser.error("what is to be migrated? pykafka08 migrate group NAME ...")
    options = parser.parse_args(words)
    from pykafka08.zookeeper.migration import GroupMigration

    try:
        migration = GroupMigration(
            options.zookeeper,
            group_id=options.name,
            zookeeper_settings=zookeeper_settings(options),
            **client_settings(options),
        )
    except ConfigError as error:
        parser.refuse(error, options)
    from pykafka08.cli.exits import run

    return run(PROG, partial(_migrate, migration, options), options.verbose, options)


def migrate_parser() -> Parser:
    parser = new_parser(PROG, "Move a group's offsets from ZooKeeper to Kafka, forward only.", EPILOG)
    parser.add_argument("name", metavar="NAME", help="the group")
    parser.add_argument("--zookeeper", required=True, metavar="HOST:PORT/CHROOT", help="where its offsets are")
    add_zookeeper_options(parser)
    add_client_options(parser, "client")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--dry-run", action="store_true", help="print what would be done, and change nothing")
    kinds.add_argument("--verify", action="store_true", help="print whether Kafka has every offset; change nothing")
    parser.add_argument("--force", action="store_true",
        help="commit offsets beyond the end of a log too, and to what seems to be another cluster")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    return parser


async def _migrate(migration: GroupMigration, options: argparse.Namespace, interrupt: Interrupt) -> int:
    with interrupt.part():
        async with migration:
            is_reading = options.dry_run or options.verify
            report = await (migration.plan if is_reading else migration.run)(force=options.force)
            print(_json_of(report) if options.json else _shown(report, is_reading=is_reading), flush=True)
            if options.dry_run:
                return int(bool(report.members) or any(each.error for each in report.partitions))
            return int(not report.is_in_kafka)
    return 0


def _shown(report: MigrationReport, *, is_reading: bool) -> str:
    heads = ("TOPIC", "PARTITION", "ZOOKEEPER", "KAFKA", "LOG", "OUTCOME")
    rows = [
        (
            each.topic,
            str(each.partition),
            str(each.zookeeper_offset),
            _number(each.kafka_offset),
            f"{_number(each.log_start)}..{_number(each.log_end)}",
            each.outcome.value + (f": {each.error}" if each.error else ""),
        )
        for each in report.partitions
    ]
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in (heads, *rows)]
    if report.members:
        lines.append(f"alive: {', '.join(report.members)}")
    if is_reading and report.is_in_kafka:
        lines.append("Kafka has every offset: dual.commit.enabled=false is safe")
    elif is_reading and report.members:
        lines.append("Kafka lacks offsets that ZooKeeper has: not every member commits to both yet")
        lines.append("a run now would be refused, since members are alive")
    return "\n".join(lines)


def _number(offset: int | None) -> str:
    return "-" if offset is None else str(offset)


def _json_of(report: MigrationReport) -> str:
    rows = [{**each.__dict__, "outcome": each.outcome.name.lower()} for each in report.partitions]
    told = {"group": report.group_id, "members": list(report.members), "is_in_kafka": report.is_in_kafka}
    return json.dumps({**told, "partitions": rows})
