"""Every end of a tool has its exit status and its one line."""

from __future__ import annotations

import argparse
import os
import signal
from collections.abc import Awaitable, Callable

import anyio
import pytest

from pykafka08 import errors
from pykafka08.cli.exits import Interrupt, describe, run, run_until
from pykafka08.cli.streams import OutputClosedError

ALL_ERRORS: list[errors.KafkaError] = [
    errors.ConfigError("c"),
    errors.ClosedError("c"),
    errors.ClientFailedError("c"),
    errors.TransportError("reset", broker="h:1"),
    errors.NoBrokersError("no broker answered", {"h:1": errors.TransportError("connection refused")}),
    errors.LocalProtocolError("c"),
    errors.RemoteProtocolError("c"),
    errors.CorruptRecordError("crc", topic="t", partition=0, offset=3),
    errors.UnsupportedVersionError("c"),
    errors.RequestTimeoutError("c"),
    errors.DeliveryTimeoutError("c"),
    errors.BufferFullError("c"),
    errors.RecordTooLargeError("c"),
    errors.NoOffsetError("c", topic="t", partition=0, offset=None, earliest=0, latest=1),
    errors.BrokerError(1),
    errors.UnknownTopicError(3, topic="t"),
    errors.OffsetOutOfRangeError(1),
    errors.AuthorizationError(29),
    errors.ZooKeeperConnectionError("c"),
    errors.ZooKeeperAuthError("c"),
    errors.NoAuthError("c", path="/brokers"),
    errors.NoNodeError("c", path="/brokers"),
    errors.MalformedNodeError("/brokers/ids/1", "it is empty"),
    errors.AdminRefusedError("c"),
]


@pytest.mark.parametrize("error", ALL_ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("verbosity", [0, 2])
def test_an_error_is_one_line_with_cause_and_advice(
    error: errors.KafkaError, verbosity: int, capsys: pytest.CaptureFixture[str]
) -> None:
    async def work(interrupt: Interrupt) -> int:
        raise error

    status = run("prog", work, verbosity)
    expected = {errors.ConfigError: 2, errors.NoBrokersError: 4, errors.ZooKeeperConnectionError: 4}.get(type(error), 1)
    written = capsys.readouterr()
    assert status == expected
    assert not written.out
    assert written.err.endswith(f"prog: {describe(error)}\n")
    assert written.err.count("\n") == 1 or verbosity
    assert ("Traceback" in written.err) == bool(verbosity)
    assert describe(error).endswith(")") is not isinstance(error, errors.ConfigError)


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (errors.RecordTooLargeError("c"), "max.request.size"),
        (errors.RecordTooLargeError("c", api="Fetch"), "fetch.max.bytes"),
        (errors.UnknownTopicError(3, topic="t", partition=9), "--partition"),
        (errors.UnknownTopicError(3, topic="t"), "check the name"),
    ],
)
def test_the_advice_fits_what_was_done(error: errors.KafkaError, advice: str) -> None:
    assert advice in describe(error)


def given(**options: object) -> argparse.Namespace:
    return argparse.Namespace(**{"config": None, **options})


@pytest.mark.parametrize(
    ("error", "options", "text"),
    [
        (errors.ConfigError("--a and --b"), None, "--a and --b (--help lists the options)"),
        (errors.ConfigError("acks=9"), None, "acks=9"),
        (errors.ConfigError("acks=9"), given(), "acks=9 (--help lists the options)"),
        (errors.ConfigError("linger_ms=x"), given(config="f"), "linger.ms=x (check the properties in f)"),
        (errors.ConfigError("the file f cannot be read"), given(config="f"), "the file f cannot be read"),
        (errors.ConfigError("the file u cannot be read"), given(), "the file u cannot be read"),
        (errors.TlsError("see ssl_ciphers"), None, "see ssl_ciphers (check security.protocol, ssl.* and sasl.*)"),
        (errors.TlsError("c"), given(), "ssl.* and sasl.* in a file, which --command-config names)"),
        (errors.TlsError("c"), given(config="f"), "(check security.protocol, ssl.* and sasl.* in f)"),
        (errors.TlsError("c"), given(from_config="f", to_config="g"), "ssl.* and sasl.* in f, g)"),
        (errors.ClosedError("sasl_plain_username"), given(), "a username in sasl.jaas.config (-vv shows where)"),
        (errors.BrokerError(1, "ssl_certfile or ssl_keystore_location"), given(),
         ": ssl.keystore.location (-v shows what happens)"),
        (errors.ClosedError("ssl_certfile='/a_b.pem' some_thing"), given(),
         "ssl.certfile='/a_b.pem' some_thing (-vv shows where)"),
        (errors.ClosedError("default_api_timeout_ms=5"), given(timeout_ms=9),
         "default.api.timeout.ms=5 (from --timeout-ms) (-vv shows where)"),
        (errors.ClosedError("default_api_timeout_ms=5"), given(), "default.api.timeout.ms=5 (-vv shows where)"),
    ],
)  # fmt: skip
def test_errors_about_settings_name_what_the_user_gave(
    error: errors.KafkaError, options: argparse.Namespace | None, text: str
) -> None:
    assert describe(error, options).endswith(text)


def test_each_address_says_why_it_failed() -> None:
    error = errors.NoBrokersError("no broker answered", {"a:1": errors.TransportError("refused\nby the host")})
    assert describe(error).startswith("no broker answered: a:1: refused by the host (check the address of the brokers")


def test_a_reader_that_went_away_is_a_quiet_end(capsys: pytest.CaptureFixture[str]) -> None:
    async def work(interrupt: Interrupt) -> int:
        raise OutputClosedError("closed")

    assert run("prog", work) == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_part_and_what_follows_still_runs(number: int) -> None:
    seen = []

    async def work(interrupt: Interrupt) -> int:
        with interrupt.part():
            os.kill(os.getpid(), number)
            await anyio.sleep_forever()
        seen.append("closed")
        with interrupt.part():
            await anyio.sleep_forever()
        seen.append("the signal counts for later parts too")
        return 0

    assert run("prog", work) == 128 + number
    assert len(seen) == 2


def test_parts_nest() -> None:
    async def work(interrupt: Interrupt) -> int:
        with interrupt.part():
            with interrupt.part():
                pass
            interrupt.arrive(signal.SIGTERM)
            await anyio.sleep_forever()
        return 0

    assert run("prog", work) == 143


async def value() -> str:
    return "value"


async def failure() -> str:
    raise errors.KafkaError("plain")


@pytest.mark.anyio
async def test_work_ends_by_itself_or_by_what_is_watched() -> None:
    assert await run_until(anyio.sleep_forever, value) == "value"
    assert await run_until(value, anyio.sleep_forever) is None
    with pytest.raises(errors.KafkaError, match="plain"):
        await run_until(anyio.sleep_forever, failure)


def test_the_status_of_the_work_is_the_status() -> None:
    async def work(interrupt: Interrupt) -> int:
        return 1

    checked: Callable[[Interrupt], Awaitable[int]] = work
    assert run("prog", checked) == 1
