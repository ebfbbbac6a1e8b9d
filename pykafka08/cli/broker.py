"""``pykafka08 broker``: the embedded broker as a process of its own.

Its first line on standard output is ``BROKERS=host:port,...``.  It serves until it is interrupted, or until standard
input ends if that is a pipe or a socket: so it never outlives the program that started it.  A terminal, a file or
/dev/null as standard input, or none at all, does not end it.
"""

from __future__ import annotations

import argparse
import os
import secrets
from collections.abc import Sequence
from functools import partial
from typing import Any

from pykafka08.cli.options import Parser, natural, new_parser, positive, whole_number
from pykafka08.cli.properties import parse_pairs
from pykafka08.errors import ConfigError
from pykafka08.properties import read_properties

__all__ = ["main"]

PROG = "pykafka08 broker"
MEMORY_HELP = "bound on the memory of all records, default 1 GiB; above it the oldest records are deleted"
TOPIC_FORM = "NAME[:PARTITIONS[:REPLICAS[:CONFIG=VALUE,...]]]"
SECURITY_HELP = "PLAINTEXT (default), SSL, SASL_PLAINTEXT or SASL_SSL"
LISTENER_HELP = "a listener and its protocol, such as EXTERNAL=SASL_SSL, in place of --security; may be repeated"
ADVERTISED_HELP = "tell clients to connect to this host; default: that of --host; LISTENER=HOST,... for each listener"
MECHANISM_HELP = (
    "a SASL mechanism: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER; may be repeated; default: the first three"
)
ACL_HELP = "an ACL that the brokers enforce, such as 'User:alice READ topic orders'; may be repeated"
PASSWORD_VARIABLE = "PYKAFKA08_USER_PASSWORD"  # noqa: S105 - the variable's name
PASSWORD_BYTES = 18
ZOOKEEPER_HELP = "serve ZooKeeper too, at this port (0: any that is free); for releases before 4.0"
EPILOG = """\
The first line on standard output is BROKERS=host:port,... for --bootstrap-server of any Kafka client; with
--zookeeper-port the second one is ZOOKEEPER=host:port, for --zookeeper.
Records are kept in memory and are lost at the end, unless --log-dir names a directory for them.  Only this machine can
connect, unless --host names another address: without --security the broker asks for no password.
With --listener, a line LISTENER_NAME=host:port,... follows for each; BROKERS are those of the first one.
With --security or a secured --listener, lines CA_FILE=path and CLIENT_PROPERTIES=path (one for each listener and user)
follow: files for Kafka's tools and for --command-config, which are removed at the end.  The password of --user is the
value of PYKAFKA08_USER_PASSWORD, or a random one that is only in the user's file.
--acl is of the form [allow|deny] PRINCIPAL OPERATION RESOURCE_TYPE [NAME] [literal|prefixed] [from HOST]; with it,
clients have no other right.
--topic takes configs too: orders:6:1:retention.ms=60000,cleanup.policy=compact,delete
It ends on SIGINT or SIGTERM and, where standard input is a pipe, when that pipe closes.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    from pykafka08.broker.personality import Personality

    try:
        topics = _topics(options.topic)
        options.properties = parse_pairs(options.property)
        options.listeners = {name: text.upper() for name, text in parse_pairs(options.listener).items()} or None
        options.users = _users(options)
        if "=" in (options.advertised_host or ""):
            options.advertised_host = parse_pairs(options.advertised_host.split(","))
        if options.zookeeper_port is not None and not Personality(options.version).has_zookeeper:
            raise ConfigError(f"--zookeeper-port: Kafka {options.version} has no ZooKeeper; say --version 3.9 or older")
    except ConfigError as error:
        parser.refuse(error, options)
    from pykafka08.cli.exits import run
    from pykafka08.cli.serving import serve

    return run(PROG, partial(serve, options, topics), options.verbose, options)


def _parser() -> Parser:
    parser = new_parser(PROG, "Serve Kafka from memory on this machine.", EPILOG)
    add = parser.add_argument
    add("--brokers", type=positive, default=1, metavar="N", help="size of the cluster; default 1")
    add("--version", metavar="RELEASE", default="4.3", help="play this release, from 0.8.0 to 4.3; default 4.3")
    add("--port", type=natural, default=0, metavar="N", help="the first broker's port; default: any that is free")
    add("--host", default="127.0.0.1", metavar="ADDRESS", help="listen here; default 127.0.0.1, this machine only")
    add("--advertised-host", metavar="HOST", help=ADVERTISED_HELP)
    add("--log-dir", metavar="DIR", help="keep topics, records and offsets here, for the next start with the same DIR")
    add("--max-memory", type=positive, metavar="BYTES", help=MEMORY_HELP)
    add(
        "--property", action="append", default=[], metavar="NAME=VALUE", help="a Kafka broker property; may be repeated"
    )
    add("--topic", action="append", default=[], metavar=TOPIC_FORM, help="create this topic; may be repeated")
    add("--partitions", type=positive, default=1, metavar="N", help="of topics made on demand; default 1")
    add("--no-auto-create", action="store_true", help="a topic that is asked for and not there is an error")
    add("--security", type=str.upper, default="PLAINTEXT", metavar="PROTOCOL", help=SECURITY_HELP)
    add("--listener", action="append", default=[], metavar="NAME=PROTOCOL", help=LISTENER_HELP)
    add("--user", action="append", default=[], metavar="NAME", help="a user for SASL; may be repeated")
    add("--users-file", metavar="FILE", help="users for SASL: a properties file with NAME=PASSWORD in each line")
    add("--mechanism", action="append", default=[], metavar="NAME", help=MECHANISM_HELP)
    add("--jwks", metavar="FILE", help="a JSON Web Key Set whose keys sign the tokens of OAUTHBEARER")
    add("--client-auth", default="none", metavar="HOW", help="client certificates: none, requested or required")
    add("--acl", action="append", default=[], metavar="ACL", help=ACL_HELP)
    add("--ssl-certfile", metavar="FILE", help="the brokers' certificate in PEM form; default: one of a CA made for it")
    add("--ssl-keyfile", metavar="FILE", help="its private key; default: in --ssl-certfile")
    add("--ssl-cafile", metavar="FILE", help="the CA that clients trust, and that signs clients' certificates")
    add("--zookeeper-port", type=natural, metavar="N", help=ZOOKEEPER_HELP)
    return parser


def _users(options: argparse.Namespace) -> dict[str, str]:
    """Users and their passwords, from the file, the environment, or made up."""
    users = read_properties(options.users_file) if options.users_file is not None else {}
    for name in options.user:
        if not name:
            raise ConfigError("--user '' is not the name of a user")
        if name in users:
            raise ConfigError(f"--user {name!r:.100} is named twice, or is in --users-file too")
        users[name] = os.environ.get(PASSWORD_VARIABLE) or secrets.token_urlsafe(PASSWORD_BYTES)
    protocols = (options.listeners or {"--security": options.security}).values()
    secured = next((each for each in protocols if each.startswith("SASL_")), None)
    if users and secured is None:
        raise ConfigError("--user and --users-file need --security SASL_SSL or SASL_PLAINTEXT")
    has_tokens = options.jwks is not None or "OAUTHBEARER" in options.mechanism
    if secured is not None and not users and not has_tokens:
        raise ConfigError(
            f"{'--listener' if options.listeners else '--security'} {secured} needs --user or --users-file"
        )
    return users


def _topics(texts: Sequence[str]) -> dict[str, dict[str, Any]]:
    topics: dict[str, dict[str, Any]] = {}
    for name, arguments in map(_topic, texts):
        if name in topics:
            raise ConfigError(f"--topic names {name!r} twice")
        topics[name] = arguments
    return topics


def _topic(text: str) -> tuple[str, dict[str, Any]]:
    """A topic's name and the arguments of ``create_topic``."""
    name, *rest = text.split(":", 3)
    arguments: dict[str, Any] = {"partitions": 1}
    for argument, count in zip(("partitions", "replication_factor"), rest, strict=False):
        number = whole_number(count)
        if not number:
            what = argument.replace("_", " ")
            raise ConfigError(f"--topic {text!r:.300}: {what} {count!r:.50} is not a number; the form is {TOPIC_FORM}")
        arguments[argument] = number
    if not name:
        raise ConfigError(f"--topic {text!r:.300} is not of the form {TOPIC_FORM}")
    if len(rest) == len(("partitions", "replicas", "configs")):
        arguments["config"] = _config(text, rest[-1])
    return name, arguments


def _config(text: str, pairs: str) -> dict[str, str]:
    """Configs of a topic; an item without ``=`` belongs to the value before it, which is a list."""
    config: dict[str, str] = {}
    last = ""
    for item in pairs.split(","):
        name, separator, value = item.partition("=")
        if separator and name:
            config[name] = value
            last = name
        elif last and not separator:
            config[last] += f",{item}"
        else:
            raise ConfigError(f"--topic {text!r:.300}: {item!r:.100} is not of the form CONFIG=VALUE")
    return config
