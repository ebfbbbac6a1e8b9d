"""``pykafka08 produce``: each line of standard input becomes a record.

A record is reported as sent only when the brokers acknowledged it (``--acks 0`` aside).  Not here: batching, retries
and deadlines, which are the producer's.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from pykafka08.cli.exits import DONE, Interrupt, note, run
from pykafka08.cli.options import add_client_options, client_settings, natural, new_parser
from pykafka08.cli.progress import Progress, shown_size
from pykafka08.cli.streams import read_chunks, split_lines
from pykafka08.config import ProducerConfig
from pykafka08.errors import BufferFullError, ConfigError, KafkaError

if TYPE_CHECKING:
    from pykafka08.producer.delivery import Delivery
    from pykafka08.producer.producer import Producer

__all__ = ["main", "plan_of", "produce_parser", "record_of"]

PROG = "pykafka08 produce"
EPILOG = """\
Lines end with a newline; everything else in them, a carriage return too, is taken as it is.
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
    headers: tuple[tuple[str, bytes], ...]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = produce_parser()
    options = parser.parse_args(arguments)
    try:
        plan = plan_of(options)
    except ConfigError as error:
        parser.error(str(error))
    return run(PROG, partial(_produce, plan), options.verbose)


def produce_parser() -> argparse.ArgumentParser:
    parser = new_parser(PROG, "Send each line of standard input as a record.", EPILOG)
    add_client_options(parser, "producer")
    add = parser.add_argument
    add("--topic", "-t", required=True, help="the topic")
    add("--partition", "-p", type=natural, metavar="N", help="this partition; without it by key, or spread")
    add("--key-delimiter", "-K", metavar="TEXT", help=r"what stands before it is the key; \t, \n and \xNN are known")
    add("--null-marker", metavar="TEXT", help="a key or value that is exactly this is sent as null")
    add("--header", "-H", action="append", default=[], metavar="NAME=VALUE", help="a header of every record")
    add("--compression", "--compression-codec", "-c", metavar="CODEC",
        help="none (default), gzip, snappy, lz4 or zstd")  # fmt: skip
    add("--acks", "--request-required-acks", metavar="N",
        help="who must have the record: 0 nobody, 1 the leader, all (default) every replica in sync")  # fmt: skip
    return parser


def plan_of(options: argparse.Namespace) -> Plan:
    settings = client_settings(options, ProducerConfig)
    if options.compression is not None:
        settings["compression_type"] = options.compression
    acks = options.acks if options.acks is not None else settings.get("acks", "all")
    if str(acks) not in ("0", "1", "-1", "all"):
        raise ConfigError(f"--acks {acks!r} is neither 0, 1 nor all")
    settings["acks"] = "all" if str(acks) in ("-1", "all") else int(acks)
    return Plan(
        settings=settings,
        topic=options.topic,
        partition=options.partition,
        key_delimiter=None if options.key_delimiter is None else _unescape(options.key_delimiter),
        null_marker=None if options.null_marker is None else options.null_marker.encode(),
        headers=tuple(_header(text) for text in options.header),
    )


_ESCAPES = {"t": b"\t", "n": b"\n", "r": b"\r", "0": b"\0", "\\": b"\\"}


def _unescape(text: str) -> bytes:
    """``\\t``, ``\\n``, ``\\r``, ``\\0``, ``\\\\`` and ``\\xNN`` in an option stand for the byte."""
    parts = re.split(r"\\(x[0-9a-fA-F]{2}|[tnr0\\])", text)
    found = [
        part.encode() if index % 2 == 0 else _ESCAPES.get(part) or bytes.fromhex(part[1:])
        for index, part in enumerate(parts)
    ]
    if not any(found):
        raise ConfigError("--key-delimiter is empty")
    return b"".join(found)


def _header(text: str) -> tuple[str, bytes]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise ConfigError(f"--header {text!r} is not of the form name=value")
    return name, value.encode()


def record_of(line: bytes, number: int, plan: Plan) -> tuple[bytes | None, bytes | None]:
    """Key and value of a line; ``number`` counts from 1 and is for the error."""
    key: bytes | None = None
    value: bytes | None = line
    if plan.key_delimiter is not None:
        key, delimiter, value = line.partition(plan.key_delimiter)
        if not delimiter:
            raise KafkaError(f"line {number} has no key delimiter {plan.key_delimiter!r}", topic=plan.topic)
    marker = plan.null_marker
    return (None if key == marker else key), (None if value == marker else value)


class Sender:
    """Hands lines to the producer and sees to it that each is acknowledged, in order."""

    def __init__(self, producer: Producer, plan: Plan, progress: Progress) -> None:
        self.lines = 0
        self.acknowledged = 0
        self.size = 0
        self._producer = producer
        self._plan = plan
        self._progress = progress
        self._pending: deque[Delivery] = deque()

    async def take(self, lines: list[bytes]) -> None:
        for line in lines:
            self.lines += 1
            key, value = record_of(line, self.lines, self._plan)
            self._pending.append(await self._enqueue(key, value))
            self.size += len(line)
        await self._settle(only_done=True)

    async def finish(self) -> None:
        """Return when every line is acknowledged; raises the first failure."""
        await self._settle(only_done=False)

    async def _enqueue(self, key: bytes | None, value: bytes | None) -> Delivery:
        plan = self._plan
        enqueue = partial(
            self._producer.enqueue, plan.topic, value, key=key, partition=plan.partition, headers=plan.headers
        )
        while True:
            with suppress(BufferFullError):
                return enqueue()
            await self._producer.ready()

    async def _settle(self, *, only_done: bool) -> None:
        pending = self._pending
        while pending and (pending[0].is_done or not only_done):
            await pending[0]
            pending.popleft()
            self.acknowledged += 1
        self._progress.update(self.acknowledged, self.size)


async def _produce(plan: Plan, interrupt: Interrupt) -> int:
    from pykafka08.producer.producer import Producer

    progress = Progress.on_terminal()
    start = time.monotonic()
    async with Producer(**plan.settings) as producer:
        sender = Sender(producer, plan, progress)
        try:
            with interrupt.part():
                async for lines in split_lines(read_chunks(sys.stdin.fileno())):
                    await sender.take(lines)
            await sender.finish()
        finally:
            progress.clear()
            note(_summary(sender, time.monotonic() - start))
    return DONE


def _summary(sender: Sender, seconds: float) -> str:
    rate = sender.acknowledged / max(seconds, 1e-9)
    text = f"{sender.acknowledged:,} records, {shown_size(sender.size)}, {seconds:.2f} s, {rate:,.0f} records/s"
    missing = sender.lines - sender.acknowledged
    return f"{text}; {missing:,} not acknowledged" if missing else text
