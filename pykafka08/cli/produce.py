"""``pykafka08 produce``: each line of standard input becomes a record.

A record is reported as sent only when the brokers acknowledged it (``--acks 0`` aside).  Not here: batching, retries
and deadlines, which are the producer's; what is done with the plan (``sending``).
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pykafka08.cli.options import IN_NO_TRANSACTION, Parser, add_client_options, client_settings, natural, new_parser
from pykafka08.cli.properties import bytes_of
from pykafka08.config import ProducerConfig
from pykafka08.errors import ConfigError, KafkaError

__all__ = ["main", "plan_of", "produce_parser", "record_of"]

PROG = "pykafka08 produce"
EPILOG = """\
Lines end with a newline, or with a carriage return and a newline; all other bytes are sent unchanged.
On SIGINT reading stops and what was read is still delivered; a second one ends the command at once.
exit status: 0 every record was acknowledged, 1 failure while running, 2 wrong usage, 4 no broker reached,
130 and 143 after a signal
"""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What the options ask for."""

    settings: dict[str, Any]
    topic: str
    partition: int | None
    key_delimiter: bytes | None
    null_marker: bytes | None
    keeps_carriage_return: bool = False
    headers: tuple[tuple[str, bytes], ...]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = produce_parser()
    options = parser.parse_args(arguments)
    try:
        plan = plan_of(options)
    except ConfigError as error:
        parser.refuse(error, options)
    from pykafka08.cli.exits import run
    from pykafka08.cli.sending import send_lines

    return run(PROG, partial(send_lines, plan), options.verbose, options)


def produce_parser() -> Parser:
    parser = new_parser(PROG, "Send each line of standard input as a record.", EPILOG)
    add_client_options(parser, "producer")
    add = parser.add_argument
    add("--topic", "-t", required=True, help="the topic")
    add("--partition", "-p", type=natural, metavar="N", help="this partition; without it by key, or spread")
    add("--key-delimiter", "-K", metavar="TEXT", help=r"what stands before it is the key; \t, \n and \xNN are known")
    add("--null-marker", metavar="TEXT", help="a key or value that is exactly this is sent as null")
    add(
        "--keep-carriage-return", action="store_true", help="a carriage return before the newline is part of the record"
    )
    add("--header", "-H", action="append", default=[], metavar="NAME=VALUE", help="a header of every record")
    add("--compression", "--compression-codec", "-c", metavar="CODEC",
        help="none (default), gzip, snappy, lz4 or zstd")  # fmt: skip
    add("--acks", "--request-required-acks", metavar="N",
        help="who must have the record: 0 nobody, 1 the leader, all (default) every replica in sync")  # fmt: skip
    return parser


def plan_of(options: argparse.Namespace) -> Plan:
    settings = client_settings(options, ProducerConfig, refused=IN_NO_TRANSACTION)
    if options.compression is not None:
        settings["compression_type"] = options.compression
    acks = options.acks if options.acks is not None else settings.get("acks", "all")
    if str(acks) not in ("0", "1", "-1", "all"):
        raise ConfigError(f"--acks {acks!r:.50} is neither 0, 1 nor all")
    settings["acks"] = "all" if str(acks) in ("-1", "all") else int(acks)
    return Plan(
        settings=settings,
        topic=options.topic,
        partition=options.partition,
        key_delimiter=None if options.key_delimiter is None else _unescape(options.key_delimiter),
        null_marker=None if options.null_marker is None else bytes_of(options.null_marker),
        keeps_carriage_return=options.keep_carriage_return,
        headers=tuple(_header(text) for text in options.header),
    )


_ESCAPES = {"t": b"\t", "n": b"\n", "r": b"\r", "0": b"\0", "\\": b"\\"}


def _unescape(text: str) -> bytes:
    """``\\t``, ``\\n``, ``\\r``, ``\\0``, ``\\\\`` and ``\\xNN`` in an option stand for the byte."""
    parts = re.split(r"\\(x[0-9a-fA-F]{2}|[tnr0\\])", text)
    found = [
        bytes_of(part) if index % 2 == 0 else _ESCAPES.get(part) or bytes.fromhex(part[1:])
        for index, part in enumerate(parts)
    ]
    if not any(found):
        raise ConfigError("--key-delimiter is empty")
    return b"".join(found)


def _header(text: str) -> tuple[str, bytes]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise ConfigError(f"--header {text!r} is not of the form name=value")
    if any("\ud800" <= each <= "\udfff" for each in name):
        raise ConfigError(f"--header {text!r:.100}: the name of a header is Unicode text")
    return name, bytes_of(value)


def record_of(line: bytes, number: int, plan: Plan) -> tuple[bytes | None, bytes | None]:
    """Key and value of a line; ``number`` counts from 1 and is for the error."""
    if line.endswith(b"\r") and not plan.keeps_carriage_return:
        line = line[:-1]
    key: bytes | None = None
    value: bytes | None = line
    if plan.key_delimiter is not None:
        key, delimiter, value = line.partition(plan.key_delimiter)
        if not delimiter:
            raise KafkaError(f"line {number} has no key delimiter {plan.key_delimiter!r}", topic=plan.topic)
    marker = plan.null_marker
    return (None if key == marker else key), (None if value == marker else value)
