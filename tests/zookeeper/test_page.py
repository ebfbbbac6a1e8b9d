"""docs/zookeeper.md: its programs run, its commands are commands, its calls and kinds exist."""

from __future__ import annotations

import inspect
import re
import shlex
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from pykafka08.cli.zk import zk_parser
from pykafka08.zookeeper import ZooKeeperAdmin, paths
from tests.zookeeper.stage import Stage, staged

PAGE = (Path(__file__).parents[2] / "docs" / "zookeeper.md").read_text(encoding="utf-8")


def block(language: str, word: str) -> str:
    """The one block of a language that has the word."""
    (found,) = [text for text in re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S) if word in text]
    return str(found)


@pytest.mark.anyio
async def test_the_administrator_in_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    async with staged(1) as stage, anyio.create_task_group() as tasks:
        tasks.start_soon(lead, stage)
        code = (
            block("python", "ZooKeeperAdmin")
            .replace('"localhost:2181"', f'"{stage.address}", session_timeout_ms=60_000')
            .replace("anyio.run(main)", "")
        )
        names: dict[str, Any] = {}
        exec(code, names)
        await names["main"]()
        assert await stage.changes() == ['"events"']
    assert capsys.readouterr().out == "{'flush.ms': '1000'}\n"


async def lead(stage: Stage) -> None:
    while await stage.text(paths.topic("events")) is None:
        await anyio.lowlevel.checkpoint()
    for number in range(6):
        await stage.lead("events", number, [1])


def test_the_layout_in_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    exec(block("python layout", "decode"), {})
    assert capsys.readouterr().out == "{'events': 2}\n"


def test_the_commands_in_the_page_are_commands() -> None:
    lines = re.findall(r"^(?:\$ )?pykafka08 zk (.*)$", PAGE, re.M)
    assert len(lines) > 15
    for line in lines:
        options = zk_parser().parse_args(shlex.split(line.partition(" > ")[0]))
        assert options.zookeeper == "localhost:2181"


def test_every_call_of_the_administrator_is_in_the_page() -> None:
    table = PAGE[PAGE.index("| call of `ZooKeeperAdmin`") :]
    documented = dict(re.findall(r"`(\w+)\(([^`]*)\)`", table[: table.index("\n\n")]))
    public = {
        name: each
        for name, each in inspect.getmembers(ZooKeeperAdmin, inspect.isfunction)
        if not name.startswith("_") and name not in ("aclose", "capabilities")
    }
    assert set(documented) == set(public)
    for name, words in documented.items():
        parameters = set(inspect.signature(public[name]).parameters) - {"self"}
        told = {word.partition("=")[0].strip() for word in words.split(",") if word}
        abridged = name in ("add_acls", "remove_acls")  # a prefix is for later releases
        assert told <= parameters | {"type"} if abridged else told == parameters, name
