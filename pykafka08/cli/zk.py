"""``pykafka08 zk``: what a cluster keeps in ZooKeeper, shown and changed.

Here: the options.  What is shown is in ``zk_showing``, what is changed in ``zk_changing``.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import fields
from functools import partial
from typing import Any

from pykafka08.cli import zk_values
from pykafka08.cli.notes import note
from pykafka08.cli.options import Parser, client_properties, natural, new_parser, positive, settings_and_notes
from pykafka08.errors import ConfigError
from pykafka08.kafka_properties import settings_of, typed
from pykafka08.security.hidden_text import HiddenText
from pykafka08.security.secret import Secret

__all__ = ["main", "settings_of_zookeeper", "zk_parser"]

PROG = "pykafka08 zk"
EPILOG = """\
Give --zookeeper as the brokers have it in zookeeper.connect, with the chroot.  COMMAND --help lists more options.
exit status: 0 done, 1 failure or refusal, 2 wrong usage, 4 ZooKeeper not reached, 130 and 143 after a signal
"""
SHOWING = ("tree", "brokers", "topics", "groups", "offsets", "lag")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = zk_parser()
    options = parser.parse_args(arguments)
    try:
        settings = settings_of_zookeeper(options)
    except ConfigError as error:
        parser.refuse(error, options)
    from pykafka08.cli.exits import run

    if options.command in SHOWING:
        from pykafka08.cli.zk_showing import show

        return run(PROG, partial(show, options, *settings), options.verbose, options)
    from pykafka08.cli.zk_changing import change

    return run(PROG, partial(change, options, *settings), options.verbose, options)


def settings_of_zookeeper(options: argparse.Namespace) -> tuple[dict[str, Any], dict[str, Any]]:
    """Keyword arguments for the session with ZooKeeper, and for clients of the brokers."""
    from pykafka08.zookeeper.settings import ZooKeeperConfig, without_secrets

    option = getattr(options, "auth_option", "--auth")
    if options.auth:
        note(f"{option} ***: other users see arguments in the list of processes; the property auth in a file hides it")
    options.auth = [Secret(text) for text in options.auth]
    properties = client_properties(options.config, options.properties, "--zookeeper-property")
    kinds = {field.name: str(field.type) for field in fields(ZooKeeperConfig)}
    zookeeper: dict[str, Any] = {}
    of_brokers: dict[str, str | Secret] = {}
    for name, value in properties.items():
        short = re.sub(r"^zookeeper[._]", "", name)
        setting = short.replace(".", "_").replace("-", "_")
        if setting in kinds:
            zookeeper[setting] = typed(name, setting, value, kinds[setting])
        else:
            of_brokers[short] = value
    found = settings_of(of_brokers)
    if found.unknown:
        raise ConfigError(f"unknown settings of ZooKeeper or of Kafka's clients: {', '.join(found.unknown)}")
    if "acl" in zookeeper:
        raise ConfigError("access lists cannot be given as a property; --secure makes nodes as brokers do")
    if getattr(options, "secure", False):
        from pykafka08.zookeeper.operations import CREATOR_WRITES

        zookeeper["acl"] = CREATOR_WRITES
    given = zookeeper.pop("auth", None)
    credentials = options.auth or ([given] if given else [])
    if credentials:
        zookeeper["auth"] = tuple(map(_credential, credentials))
    return {"servers": options.zookeeper, **without_secrets(zookeeper)}, {**found.settings, **_client_settings(options)}


def _client_settings(options: argparse.Namespace) -> dict[str, Any]:
    """Settings of clients of the brokers, without the brokers' addresses."""
    file, texts = getattr(options, "client_config", None), getattr(options, "client_properties", [])
    settings = settings_and_notes(client_properties(file, texts, "--command-property"))
    settings.pop("bootstrap_servers", None)
    return settings


def _credential(text: Secret) -> tuple[str, Secret]:
    credential = _split(text)
    if credential is None:
        raise ConfigError("--auth and the property auth are SCHEME:CREDENTIAL, such as digest:user:password")
    return credential


def _split(text: Secret) -> tuple[str, Secret] | None:
    """None if the text has another form.  Nothing is raised here, as a traceback would hold the credential."""
    scheme, _, credential = text.reveal().partition(":")
    return (scheme, Secret(credential)) if scheme and credential else None


def zk_parser() -> Parser:
    parser = new_parser(PROG, "Show and change what a cluster keeps in ZooKeeper.", EPILOG)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    shared = _shared_options()
    _add_showing(commands, shared)
    _add_topic(commands, shared)
    _add_config(commands, shared)
    _add_acl(commands, shared)
    _add_group(commands, shared)
    return parser


def _shared_options() -> argparse.ArgumentParser:
    shared = argparse.ArgumentParser(add_help=False)
    add = shared.add_argument
    add("--zookeeper", "-z", required=True, metavar="HOST:PORT,.../CHROOT", help="the ensemble, and the chroot")
    add("--auth", type=HiddenText, action="append", default=[], metavar="SCHEME:CREDENTIAL",
        help="such as digest:user:password, which other users see in the list of processes; "
        "the property auth in the file of --zookeeper-config hides it")  # fmt: skip
    add("--zookeeper-property", dest="properties", type=HiddenText, action="append", default=[], metavar="NAME=VALUE",
        help="a setting of the session or of the brokers' client, such as session.timeout.ms")  # fmt: skip
    add("--zookeeper-config", dest="config", metavar="FILE", help="a properties file with settings")
    add("--command-property", dest="client_properties", type=HiddenText, action="append", default=[],
        metavar="NAME=VALUE", help="a setting of the brokers' client")  # fmt: skip
    add("--command-config", dest="client_config", metavar="FILE",
        help="a properties file of Kafka's clients, with security settings too, for questions to brokers")  # fmt: skip
    add("--json", action="store_true", help="JSON instead of a table")
    add("-v", "--verbose", action="count", default=argparse.SUPPRESS, help="tell what happens; twice: every step")
    return shared


def _add_showing(commands: Any, shared: argparse.ArgumentParser) -> None:
    tree = commands.add_parser("tree", parents=[shared], help="every node and what it holds")
    tree.add_argument("path", nargs="?", default="/", help="only what is below; default /")
    tree.add_argument(
        "--show-secrets", action="store_true", help="passwords of SCRAM users, which are hidden otherwise"
    )
    commands.add_parser("brokers", parents=[shared], help="the brokers that are alive")
    topics = commands.add_parser("topics", parents=[shared], help="topics, or with --topic its partitions")
    topics.add_argument("--topic", "-t", help="this topic's partitions")
    groups = commands.add_parser("groups", parents=[shared], help="old groups, or with --group its members")
    groups.add_argument("--group", "-g", help="this group's members")
    for name, text in (
        ("offsets", "a group's offsets, in ZooKeeper and in Kafka"),
        ("lag", "the same beside the ends of the logs"),
    ):
        one = commands.add_parser(name, parents=[shared], help=text)
        one.add_argument("--group", "-g", required=True, help="the group")
        one.add_argument("--bootstrap-server", "-b", type=zk_values.servers, metavar="HOST:PORT,...",
            help="brokers to ask; default: those that are registered")  # fmt: skip


def _changing(commands: Any, name: str, shared: argparse.ArgumentParser, text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, parents=[shared], help=text)
    parser.add_argument("--secure", action="store_true",
        help="only the credentials of --auth can change the created nodes, as with zookeeper.set.acl=true")  # fmt: skip
    parser.add_argument("--force", action="store_true", help="also where a broker does that itself, or knows better")
    return parser


def _waiting(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--timeout", type=positive, default=30, metavar="SECONDS",
        help="how long the brokers may take; default 30")  # fmt: skip
    parser.add_argument("--no-wait", action="store_true", help="do not wait for the brokers")


def _add_topic(commands: Any, shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser("topic", help="create, grow, delete and move topics")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    create = _changing(actions, "create", shared, "create a topic")
    create.add_argument("topic")
    create.add_argument("--partitions", type=positive, default=1, metavar="N", help="default 1")
    create.add_argument("--replication-factor", type=positive, default=1, metavar="N", help="default 1")
    create.add_argument(
        "--replica-assignment",
        type=zk_values.assignment,
        metavar="1:2,2:3",
        help="the brokers of each partition, by hand",
    )
    create.add_argument("--config", dest="settings", action="append", default=[], metavar="NAME=VALUE",
        help="a setting of the topic")  # fmt: skip
    create.add_argument("--dry-run", action="store_true", help="check, and show where partitions would go")
    _waiting(create)
    grow = _changing(actions, "add-partitions", shared, "let a topic grow")
    grow.add_argument("topic")
    grow.add_argument("total", type=positive, help="how many partitions it shall have")
    _waiting(grow)
    delete = _changing(actions, "delete", shared, "mark a topic for deletion")
    delete.add_argument("topic")
    _waiting(delete)
    elect = _changing(actions, "elect", shared, "let the preferred replicas lead again")
    elect.add_argument(
        "--partition",
        type=zk_values.partition,
        action="append",
        metavar="TOPIC:N",
        help="may be repeated; default: all",
    )
    _waiting(elect)
    move = _changing(actions, "reassign", shared, "move partitions to other brokers")
    move.add_argument(
        "moves", nargs="+", type=zk_values.move, metavar="TOPIC:N=1,2", help="the brokers that shall have the partition"
    )
    move.add_argument("--verify", action="store_true", help="only show how far they are")
    _waiting(move)


def _add_config(commands: Any, shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser("config", help="settings of topics, clients, users and brokers")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    show = actions.add_parser("show", parents=[shared], help="what is set")
    alter = _changing(actions, "alter", shared, "set and remove settings")
    alter.add_argument("--set", dest="settings", action="append", default=[], metavar="NAME=VALUE")
    alter.add_argument("--remove", action="append", default=[], metavar="NAME")
    for one in (show, alter):
        one.add_argument("--topic")
        one.add_argument("--client", help="quotas of a client id, or of <default>")
        one.add_argument("--user", help="quotas of a user, or of <default>; with --client of both")
        one.add_argument("--broker", type=zk_values.broker, help="a broker's id, or <default>")


def _add_acl(commands: Any, shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser("acl", help="rules of the authorizer")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    actions.add_parser("list", parents=[shared], help="all rules")
    for name, text in (("add", "add rules"), ("remove", "remove rules, or with no principal all")):
        one = _changing(actions, name, shared, text)
        resource = one.add_mutually_exclusive_group(required=True)
        resource.add_argument("--topic", help="a topic, or *")
        resource.add_argument("--group", help="a group, or *")
        resource.add_argument("--cluster", action="store_true")
        one.add_argument("--prefixed", action="store_true", help="all topics or groups that begin so (2.0 and later)")
        one.add_argument("--allow", action="append", default=[], metavar="PRINCIPAL", help="such as User:alice")
        one.add_argument("--deny", action="append", default=[], metavar="PRINCIPAL")
        one.add_argument("--operation", action="append", metavar="NAME", help="Read, Write, ...; default All")
        one.add_argument("--host", default="*", help="from this address; default *")


def _add_group(commands: Any, shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser("group", help="offsets of old groups, while nobody of the group is alive")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    reset = _changing(actions, "reset", shared, "set what a group reads next")
    reset.add_argument("group")
    reset.add_argument("--topic", required=True)
    reset.add_argument("--partition", type=natural, action="append", metavar="N", help="default: all")
    reset.add_argument(
        "--to", type=zk_values.target, required=True, metavar="OFFSET", help="earliest, latest, or a number"
    )
    delete = _changing(actions, "delete", shared, "delete a group, or with --topic its offsets of that topic")
    delete.add_argument("group")
    delete.add_argument("--topic")
    export = actions.add_parser("export", parents=[shared], help="print offsets, a line each")
    export.add_argument("group", nargs="*", help="default: all")
    back = _changing(actions, "import", shared, "set the offsets of lines that were exported")
    back.add_argument("file", help="- is standard input")
