"""How the tools begin and end: exit statuses, signals, and one line for what went wrong.

========  =======================================================
status    meaning
========  =======================================================
0         done: the end, the count or the idle time-out was reached, or the reader of standard output went away
1         a failure while running
2         wrong usage
4         no broker, or no ZooKeeper, could be reached
130, 143  ended by SIGINT or SIGTERM, after closing
========  =======================================================
"""

from __future__ import annotations

import argparse
import errno
import os
import re
import signal
import sys
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import TypeVar

import anyio

from pykafka08.cli.notes import note
from pykafka08.cli.streams import OutputClosedError
from pykafka08.errors import (
    AdminRefusedError,
    AuthorizationError,
    BrokerError,
    ClosedError,
    ConfigError,
    CorruptRecordError,
    KafkaError,
    MalformedNodeError,
    MirrorError,
    NoAuthError,
    NoBrokersError,
    NoOffsetError,
    OffsetOutOfRangeError,
    RecordTooLargeError,
    RemoteProtocolError,
    RequestTimeoutError,
    ResponseTooLargeError,
    SecurityError,
    TransportError,
    UnknownTopicError,
    UnsupportedVersionError,
    ZooKeeperAuthError,
    ZooKeeperConnectionError,
    ZooKeeperError,
)

__all__ = ["DONE", "FAILED", "NO_BROKER", "USAGE", "Interrupt", "describe", "is_about_options", "run", "run_until"]

DONE, FAILED, USAGE, NO_BROKER = 0, 1, 2, 4

T = TypeVar("T")

_ADVICE: tuple[tuple[type[KafkaError], str], ...] = (
    (MirrorError, "--dry-run shows what would be done; --restart and --skip-lost are in --help"),
    (SecurityError, "check security.protocol, ssl.* and sasl.*"),
    (NoBrokersError, "check the address of the brokers, and that one listens there"),
    (UnknownTopicError, "check the name; a topic is made by its first producer where the brokers allow it"),
    (AuthorizationError, "ask the cluster's owner for the right"),
    (OffsetOutOfRangeError, "give --offset earliest or latest"),
    (NoOffsetError, "give --offset earliest or latest"),
    (ResponseTooLargeError, "raise receive.message.max.bytes if the address is a broker's"),
    (CorruptRecordError, "--skip-message-on-error skips it"),
    (RecordTooLargeError, "raise max.request.size, and the topic's max.message.bytes where that is lower"),
    (UnsupportedVersionError, "the broker is too old for this option"),
    (RequestTimeoutError, "the broker may be busy or gone; -v shows what happens"),
    (RemoteProtocolError, "the address may belong to something that is not Kafka"),
    (TransportError, "check the address; the broker or the network may be gone"),
    (BrokerError, "-v shows what happens"),
    (ClosedError, "-vv shows where"),
    (ZooKeeperConnectionError, "check --zookeeper; the ensemble or the network may be gone"),
    (ZooKeeperAuthError, "check the credentials, --auth digest:USER:PASSWORD"),
    (NoAuthError, "the node belongs to somebody else: give --auth, or ask the cluster's owner"),
    (MalformedNodeError, "whoever wrote the node must mend it; zk tree shows it"),
    (AdminRefusedError, "nothing else was done"),
    (ZooKeeperError, "-v shows what happens"),
    (KafkaError, "-vv shows where"),
)


OPTION = re.compile(r"(?<![\w-])--[a-z]")
FILES = ("config", "client_config", "from_config", "to_config")
"""Options that name a properties file of a client."""


def is_about_options(error: KafkaError) -> bool:
    """True if the error names an option of the command line, not a property."""
    return OPTION.search(str(error)) is not None


def describe(error: KafkaError, options: argparse.Namespace | None = None) -> str:
    """One line: the cause, and what to try.

    With ``options``, those of a command whose clients have properties, settings have Kafka's names.
    """
    cause = " ".join(str(error).split())
    if isinstance(error, ConfigError | SecurityError):
        advice = _advice_about_settings(error, cause, options)
    else:
        advice = _special_advice(error) or next(text for kind, text in _ADVICE if isinstance(error, kind))
    if isinstance(error, NoBrokersError) and error.causes and not any(name in cause for name in error.causes):
        cause += ": " + "; ".join(f"{name}: {' '.join(str(why).split())}" for name, why in error.causes.items())
    text = f"{cause} ({advice})" if advice else cause
    return _in_names_of(options, text) if options is not None else text


def _advice_about_settings(error: KafkaError, cause: str, options: argparse.Namespace | None) -> str | None:
    files = [file for name in FILES if (file := getattr(options, name, None)) is not None]
    place = f" in {', '.join(files)}" if files else ""
    if isinstance(error, SecurityError):
        if not files and hasattr(options, "config"):
            place = " in a file, which --command-config names"
        return f"check security.protocol, ssl.* and sasl.*{place}"
    if is_about_options(error):
        return "--help lists the options"
    if options is None or "cannot be read" in cause or any(file in cause for file in files):
        return None
    return f"check the properties{place}" if files else "--help lists the options"


def _in_names_of(options: argparse.Namespace, text: str) -> str:
    """The text with the names that settings have for the user of a command."""
    from pykafka08.config import ConsumerConfig, ProducerConfig
    from pykafka08.group.settings import GroupConfig
    from pykafka08.kafka_properties import in_kafkas_names

    text = in_kafkas_names(text, ProducerConfig, ConsumerConfig, GroupConfig)
    if getattr(options, "timeout_ms", None) is not None:
        text = re.sub(r"default\.api\.timeout\.ms=(\d+)", r"default.api.timeout.ms=\1 (from --timeout-ms)", text)
    return text


def _special_advice(error: KafkaError) -> str | None:
    if isinstance(error, RecordTooLargeError) and error.api == "Fetch":
        return "raise fetch.max.bytes, or start after it with --offset"
    if isinstance(error, RecordTooLargeError) and error.next_offset is not None:
        return "--consumer-property max.unpacked.bytes=N raises it; --skip-message-on-error skips it"
    if isinstance(error, UnknownTopicError) and error.partition is not None:
        return "give a --partition that the topic has, or none"
    if isinstance(error.__cause__, OSError) and error.__cause__.errno == errno.EADDRINUSE:
        return "give another --port; without one a free port is taken"
    if type(error) is TransportError and error.message.startswith("cannot listen at"):
        return "give an address of this machine as --host"
    return None


def status_of(error: KafkaError) -> int:
    if isinstance(error, OutputClosedError):
        return DONE
    if isinstance(error, ConfigError):
        return USAGE
    return NO_BROKER if isinstance(error, NoBrokersError | ZooKeeperConnectionError) else FAILED


class Interrupt:
    """SIGINT or SIGTERM: the first ends the :meth:`part` the tool is in; the second ends the process at once."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self._scope: anyio.CancelScope | None = None

    @contextmanager
    def part(self) -> Iterator[None]:
        """What stands in this block is left when the signal comes, or at once if it came before; parts may nest."""
        outer = self._scope
        with anyio.CancelScope() as self._scope:
            if self.signal is not None:
                self._scope.cancel()
            try:
                yield
            finally:
                self._scope = outer

    def arrive(self, number: int) -> None:
        if self.signal is not None:
            os._exit(128 + number)
        self.signal = number
        if self._scope is not None:
            self._scope.cancel()


Work = Callable[[Interrupt], Awaitable[int]]


def run(prog: str, work: Work, verbosity: int = 0, options: argparse.Namespace | None = None) -> int:
    """Run ``work`` on asyncio and turn every end of it into an exit status; ``options`` as in :func:`describe`."""
    try:
        with _log_shown(verbosity):
            return anyio.run(_supervised, work, backend="asyncio")
    except KafkaError as error:
        if not isinstance(error, OutputClosedError):
            if verbosity > 1:
                traceback.print_exception(type(error), error, error.__traceback__)
            note(f"{prog}: {describe(error, options)}")
        return status_of(error)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    finally:
        _leave_output_alone()


def _log_shown(verbosity: int) -> AbstractContextManager[None]:
    if not verbosity:
        return nullcontext()
    from pykafka08.cli.logs import log_shown

    return log_shown(verbosity)


async def _supervised(work: Work) -> int:
    interrupt = Interrupt()
    if os.name != "posix":  # Ctrl-C arrives as KeyboardInterrupt there
        return await work(interrupt)
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        status = await run_until(partial(_listen, interrupt, signals), partial(work, interrupt))
    return 128 + interrupt.signal if interrupt.signal is not None else status or DONE


async def run_until(watch: Callable[[], Awaitable[object]], work: Callable[[], Awaitable[T]]) -> T | None:
    """``await work()``, which is cancelled when ``watch()`` returns (None then).

    The errors of both leave as they are, not in a group as a task's would.
    """
    result: T | None = None
    failures: list[KafkaError] = []
    async with anyio.create_task_group() as tasks:

        async def wait() -> None:
            try:
                await watch()
            except KafkaError as error:
                failures.append(error)
            tasks.cancel_scope.cancel()

        tasks.start_soon(wait)
        try:
            result = await work()
        except KafkaError as error:
            failures.append(error)
        tasks.cancel_scope.cancel()
    if failures:
        raise failures[0]
    return result


async def _listen(interrupt: Interrupt, signals: AsyncIterator[signal.Signals]) -> None:
    async for number in signals:
        interrupt.arrive(number)


def _leave_output_alone() -> None:
    """Python flushes standard output once more at its end, which fails loudly when the reader is gone."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
