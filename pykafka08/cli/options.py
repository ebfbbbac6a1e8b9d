"""The options that several commands share, and the parser they are made with."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, NoReturn

import pykafka08
from pykafka08.cli.notes import note
from pykafka08.cli.properties import parse_pairs
from pykafka08.errors import ConfigError
from pykafka08.kafka_properties import (
    NOT_NAMED,
    is_secret,
    protected,
    read_client_properties,
    settings_of,
    unresolved,
)
from pykafka08.security.hidden_text import HiddenText
from pykafka08.security.secret import Secret

__all__ = [
    "IN_NO_TRANSACTION",
    "MOST",
    "Parser",
    "add_client_options",
    "client_properties",
    "client_settings",
    "count_or_none",
    "natural",
    "new_parser",
    "positive",
    "settings_and_notes",
    "time_or_none",
    "whole_number",
]

SERIALIZERS = frozenset(f"{part}.{what}" for part in ("key", "value") for what in ("serializer", "deserializer"))
IN_NO_TRANSACTION = {"transactional.id": "the tools write in no transaction; pykafka08.Producer does"}

MOST = 2**63 - 1
"""The largest number that an option takes: that of an offset."""

_WRONG_CHOICE = re.compile(r"invalid choice: '(.*)' \(choose from (.*)\)", re.DOTALL)


class Parser(argparse.ArgumentParser):
    """A parser that adds the nearest command to the error of an unknown one."""

    def error(self, message: str) -> NoReturn:
        found = _WRONG_CHOICE.search(message)
        if found is not None:
            nearest = get_close_matches(found[1], re.findall(r"[\w-]+", found[2]), 1)
            message = f"{message}; did you mean {nearest[0]!r}?" if nearest else message
        super().error(message)

    def refuse(self, error: ConfigError, options: argparse.Namespace) -> NoReturn:
        """End with status 2: after the usage if options are wrong, else with one line."""
        from pykafka08.cli.exits import USAGE, describe, is_about_options

        if is_about_options(error):
            self.error(str(error))
        note(f"{self.prog}: {describe(error, options)}")
        self.exit(USAGE)


def new_parser(prog: str, description: str, epilog: str) -> Parser:
    """A parser with ``-v``; wrong usage ends with status 2."""
    parser = Parser(
        prog=prog, description=description, epilog=epilog, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-v", "--verbose", action="count", default=0, help="tell what happens; twice: every step")
    return parser


def add_client_options(parser: argparse.ArgumentParser, role: str, *, is_bootstrap_needed: bool = True) -> None:
    """Where the brokers are, and the client's properties under each name that Kafka's tools have given them."""
    parser.add_argument("--version", action="version", version=f"pykafka08 {pykafka08.__version__}")
    parser.add_argument(
        "--bootstrap-server", "-b", required=is_bootstrap_needed, metavar="HOST:PORT,...",
        help="one or more brokers to ask first",
    )  # fmt: skip
    parser.add_argument(
        "--command-property", f"--{role}-property", dest="properties", type=HiddenText, action="append", default=[],
        metavar="NAME=VALUE", help="a setting of the client, by Kafka's name for it; overrides the file",
    )  # fmt: skip
    parser.add_argument(
        "--command-config", f"--{role}-config", f"--{role}.config", dest="config", metavar="FILE",
        help="a properties file of Kafka's clients, with security settings too",
    )  # fmt: skip


def client_properties(file: str | None, texts: Iterable[str], option: str) -> dict[str, str | Secret]:
    """The properties of a file and of arguments, which override the file.

    ``option`` is the arguments' option, for a warning about secrets among them.
    """
    given = protected(parse_pairs(texts))
    for name in filter(is_secret, given):
        shown = name if re.fullmatch(r"[\w.-]+", name, re.ASCII) else "***"  # the name is all before the first "="
        note(f"{option} {shown}=***: other users see arguments in the list of processes; a file hides them")
    properties = {**(read_client_properties(file) if file else {}), **given}
    for name, reference in unresolved(properties).items():
        note(f"{name} has a reference {reference}: {NOT_NAMED}")
    return properties


def client_settings(
    options: argparse.Namespace, *kinds: type, refused: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Keyword arguments for the client, of the file and the options together."""
    settings = settings_and_notes(
        client_properties(options.config, options.properties, "--command-property"), *kinds, refused=refused
    )
    settings["bootstrap_servers"] = options.bootstrap_server
    return settings


def settings_and_notes(
    properties: Mapping[str, str | Secret], *kinds: type, refused: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Keyword arguments for a client; a note names properties that it does not have.

    The tools hand over bytes, as Kafka's do: serializers and deserializers of a file do not count.
    """
    own = {name: value for name, value in properties.items() if name not in SERIALIZERS}
    found = settings_of(own, *kinds, refused=refused)
    if found.unknown:
        note(f"settings that mean nothing to this client: {', '.join(found.unknown)}")
    return found.arguments(*kinds)


def positive(text: str) -> int:
    """A whole number above 0."""
    number = whole_number(text)
    if not number:
        raise _not_a_number(text, "above 0")
    return number


def natural(text: str) -> int:
    """A whole number from 0 up."""
    number = whole_number(text)
    if number is None:
        raise _not_a_number(text, "from 0 up")
    return number


def whole_number(text: str) -> int | None:
    """A number from 0 to 2**63 - 1; None for any other text."""
    is_number = text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= MOST
    return int(text) if is_number else None


def _not_a_number(text: str, bounds: str) -> argparse.ArgumentTypeError:
    if text.isascii() and text.isdigit() and text.strip("0"):
        return argparse.ArgumentTypeError(f"{text!r:.50} is above {MOST}, the largest number")
    return argparse.ArgumentTypeError(f"{text!r:.50} is not a whole number {bounds}")


def count_or_none(text: str) -> int | None:
    """A whole number above 0, or -1 for no limit, as Kafka's tool takes it."""
    return None if text == "-1" else positive(text)


def time_or_none(text: str) -> int | None:
    """A whole number; below 0 it is no limit, as Kafka's tool takes it."""
    return None if text.startswith("-") and whole_number(text[1:]) else natural(text)
