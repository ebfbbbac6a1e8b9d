"""The event loop of Spark's workers: it runs only while something is waited for."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import anyio
import pytest

from pykafka08.errors import ConfigError, RequestTimeoutError
from pykafka08.spark import runtime as module
from pykafka08.spark.runtime import Runtime, run, runtime


@pytest.fixture
def present() -> Iterator[Runtime]:
    made = Runtime()
    yield made
    made.close()


class Kept:
    def __init__(self, log: list[str]) -> None:
        self.log = log

    async def __aenter__(self) -> Kept:
        self.log.append("opened")
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self.log.append("closed")


async def now() -> float:
    return anyio.current_time()


def test_time_stands_still_while_nothing_is_waited_for(present: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    before = present.run(now())
    asleep = time.monotonic() + 10_000
    monkeypatch.setattr(module.time, "monotonic", lambda: asleep)
    assert present.run(now()) - before < 5_000


def test_results_errors_and_deadlines(present: Runtime) -> None:
    async def fail() -> None:
        raise ConfigError("no")

    assert present.run(now()) > 0
    with pytest.raises(ConfigError):
        present.run(fail())
    with pytest.raises(RequestTimeoutError):
        present.run(anyio.sleep_forever(), timeout=0.001)


def test_what_is_kept_is_made_once_and_closed_at_the_end(present: Runtime) -> None:
    log: list[str] = []
    first = present.keep("a", lambda: Kept(log))
    assert present.keep("a", lambda: Kept(log)) is first
    present.drop("a")
    assert log == ["opened", "closed"]
    assert present.keep("a", lambda: Kept(log)) is not first
    present.keep("b", lambda: Kept(log))
    present.close()
    assert log == ["opened", "closed", "opened", "opened", "closed", "closed"]


def test_each_process_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    first = runtime()
    assert runtime() is first
    monkeypatch.setattr(module.os, "getpid", lambda: first.pid + 1)
    second = runtime()
    assert second is not first
    assert run(now()) > 0
    second.close()
    monkeypatch.undo()
    assert os.getpid() == first.pid
    first.close()
