"""``pykafka08 mirror``: topics of one cluster copied to another, groups carried over.

Here: options, what is printed.  What is done is in :class:`pykafka08.Mirror`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from pykafka08.cli.options import IN_NO_TRANSACTION, Parser, client_properties, new_parser, positive, settings_and_notes
from pykafka08.cli.zookeeper_options import add_zookeeper_options, zookeeper_settings
from pykafka08.errors import ConfigError
from pykafka08.security.hidden_text import HiddenText

__all__ = ["main", "mirror_parser", "settings_of_mirror"]

PROG = "pykafka08 mirror"
EPILOG = """\
Run again under the same --name it goes on where it was, whatever ended it.
exit status: 0 all is copied and moved, 1 something is not, 2 wrong usage, 4 no broker reached,
130 and 143 after a signal
"""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = mirror_parser()
    options = parser.parse_args(arguments)
    from pykafka08.mirror import Mirror

    try:
        mirror = Mirror(**settings_of_mirror(options))
    except ConfigError as error:
        parser.refuse(error, options)
    from pykafka08.cli.exits import run
    from pykafka08.cli.mirroring import mirror_topics

    return run(
        PROG,
        partial(mirror_topics, mirror, follows=options.follow, is_dry=options.dry_run, as_json=options.json),
        options.verbose,
        options,
    )


def mirror_parser() -> Parser:
    parser = new_parser(PROG, "Copy topics from one cluster to another, each record once and in its partition.", EPILOG)
    add = parser.add_argument
    add("--from", dest="source", required=True, metavar="HOST:PORT,...", help="brokers of the cluster to copy from")
    add("--to", dest="target", required=True, metavar="HOST:PORT,...", help="brokers of the cluster to copy to")
    add("--topics", "--topic", action="append", default=[], metavar="A,B", help="these topics")
    add("--whitelist", metavar="REGEX", help="the topics whose whole names match")
    add("--blacklist", metavar="REGEX", help="but not those whose whole names match this")
    add("--rename", action="append", default=[], metavar="A=B", help="topic A becomes B in the target")
    add("--group", action="append", default=[], help="carry over a group whose offsets are in Kafka")
    add("--zookeeper", metavar="HOST:PORT/CHROOT", help="ZooKeeper of the source, for --zookeeper-group")
    add("--zookeeper-group", action="append", default=[], metavar="GROUP",
        help="carry over a group whose offsets are in ZooKeeper")  # fmt: skip
    add_zookeeper_options(parser)
    ends = parser.add_mutually_exclusive_group()
    ends.add_argument("--once", action="store_true", help="end when all is copied (the default)")
    ends.add_argument("--follow", action="store_true", help="go on with what comes, until Ctrl-C")
    ends.add_argument("--dry-run", action="store_true", help="print what would be done, and what is in the way")
    add("--name", default="mirror", help="of this mirror: what keeps its place in the target (default: mirror)")
    add("--replication-factor", type=positive, metavar="N", help="of topics that are made; as in the source without")
    add("--restart", action="store_true", help="forget what was copied, and copy all again behind it")
    add("--skip-lost", action="store_true", help="go on where the source has deleted what was to be copied next")
    add("--force", action="store_true", help="do not ask whether --zookeeper is of the source's cluster")
    add(
        "--from-property",
        type=HiddenText,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of the consumer",
    )
    add(
        "--to-property",
        type=HiddenText,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of the producer",
    )
    add("--from-config", "--consumer-config", "--consumer.config", metavar="FILE",
        help="a properties file of Kafka's clients for the source, with security settings too")  # fmt: skip
    add("--to-config", "--producer-config", "--producer.config", metavar="FILE", help="the same for the target")
    add("--json", action="store_true", help="print the report as JSON")
    return parser


def settings_of_mirror(options: argparse.Namespace) -> dict[str, Any]:
    """Keyword arguments of :class:`pykafka08.Mirror`."""
    from pykafka08.config import ConsumerConfig, ProducerConfig

    if options.blacklist is not None and options.whitelist is None:
        raise ConfigError("--blacklist takes topics away from --whitelist")
    return {
        "source": options.source,
        "target": options.target,
        "topics": _listed(options.topics),
        "pattern": options.whitelist,
        "excluded": options.blacklist,
        "rename": dict(_renamed(options.rename)),
        "groups": options.group,
        "zookeeper": options.zookeeper,
        "zookeeper_groups": options.zookeeper_group,
        "zookeeper_settings": zookeeper_settings(options),
        "name": options.name,
        "force": options.force,
        "replication_factor": options.replication_factor,
        "restart": options.restart,
        "skip_lost": options.skip_lost,
        "source_settings": _settings(options.from_config, options.from_property, "--from-property", ConsumerConfig),
        "target_settings": _settings(options.to_config, options.to_property, "--to-property", ProducerConfig),
    }


def _listed(texts: Iterable[str]) -> list[str]:
    return [name.strip() for text in texts for name in text.split(",") if name.strip()]


def _renamed(texts: Iterable[str]) -> Iterable[tuple[str, str]]:
    for text in texts:
        old, separator, new = text.partition("=")
        if not separator or not old or not new:
            raise ConfigError(f"--rename {text!r} is not of the form OLD=NEW")
        yield old, new


def _settings(file: str | None, texts: Iterable[str], option: str, kind: type) -> dict[str, Any]:
    settings = settings_and_notes(client_properties(file, texts, option), kind, refused=IN_NO_TRANSACTION)
    # --from and --to name the brokers, as --bootstrap-server does for Kafka's tools.
    settings.pop("bootstrap_servers", None)
    return settings
