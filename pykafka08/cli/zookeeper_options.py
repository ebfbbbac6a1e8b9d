"""Who a command is to ZooKeeper, where that is not all it talks to: the options, and the settings they make."""

from __future__ import annotations

import argparse
from typing import Any

from pykafka08.cli.zk import settings_of_zookeeper
from pykafka08.config import SETTING_NAMES
from pykafka08.errors import ConfigError
from pykafka08.security.hidden_text import HiddenText

__all__ = ["add_zookeeper_options", "zookeeper_settings"]


def add_zookeeper_options(parser: argparse._ActionsContainer) -> None:
    add = parser.add_argument
    add("--zookeeper-auth", type=HiddenText, action="append", default=[], metavar="SCHEME:CREDENTIAL",
        help="credentials for ZooKeeper, such as digest:user:password; the property auth in the file of "
        "--zookeeper-config hides it from the list of processes")  # fmt: skip
    add("--zookeeper-property", type=HiddenText, action="append", default=[], metavar="NAME=VALUE",
        help="a setting of the session with ZooKeeper, such as tls=true")  # fmt: skip
    add("--zookeeper-config", metavar="FILE", help="a properties file with such settings")


def zookeeper_settings(options: argparse.Namespace) -> dict[str, Any]:
    """Keyword arguments for the session, but for the servers."""
    given = argparse.Namespace(
        zookeeper=options.zookeeper,
        auth=options.zookeeper_auth,
        auth_option="--zookeeper-auth",
        properties=options.zookeeper_property,
        config=options.zookeeper_config,
    )
    session, others = settings_of_zookeeper(given)
    name_of = others.pop(SETTING_NAMES)
    if others:
        names = ", ".join(name_of[each] for each in others)
        raise ConfigError(f"not settings of the session with ZooKeeper: {names}")
    del session["servers"]
    return session
