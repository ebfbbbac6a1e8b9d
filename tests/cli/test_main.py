"""The command ``pykafka08`` itself, and the names under which the tools are installed."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points

import pytest

import pykafka08
from pykafka08.cli.consume import console_consumer
from pykafka08.cli.main import COMMANDS, main


def test_both_tools_are_installed() -> None:
    tools = {point.name: point.value for point in entry_points(group="console_scripts") if "pykafka08" in point.value}
    assert tools == {
        "pykafka08": "pykafka08.cli.main:main",
        "pykafka08-console-consumer": "pykafka08.cli.consume:console_consumer",
    }


@pytest.mark.parametrize("word", ["--version", "-V"])
def test_the_version(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([word]) == 0
    assert capsys.readouterr() == (f"pykafka08 {pykafka08.__version__}\n", "")


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    out, err = capsys.readouterr()
    assert all(f"\n  {name} " in out for name in COMMANDS)
    assert not err


@pytest.mark.parametrize(("words", "cause"), [([], "a command is needed"), (["prodcue"], "unknown command 'prodcue'")])
def test_wrong_usage(words: list[str], cause: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert not out
    assert cause in err


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_its_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main([name, "--help"])
    assert end.value.code == 0
    out, err = capsys.readouterr()
    assert out.startswith(f"usage: pykafka08 {name} ")
    assert not err


INTERRUPTED = """
import sys
class Finder:
    def find_spec(self, name, *_):
        if name == {module!r}:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Finder())
{call}
"""


@pytest.mark.parametrize("module", ["pykafka08.cli.plan", "anyio"])
@pytest.mark.parametrize(
    "call",
    [
        "from pykafka08.cli.main import main; sys.exit(main(['consume', '--topic', 't', '-b', 'h:1']))",
        "from pykafka08.cli.consume import console_consumer as main; sys.exit(main(['--topic', 't', '-b', 'h:1']))",
    ],
)
def test_an_interrupt_during_the_imports_leaves_no_traceback(call: str, module: str) -> None:
    code = INTERRUPTED.format(module=module, call=call)
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, b"", b"")


def test_the_console_consumer_has_its_own_name(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        console_consumer(["--help"])
    assert capsys.readouterr().out.startswith("usage: pykafka08-console-consumer ")


@pytest.mark.parametrize(
    ("words", "unwanted"),
    [
        (["--version"], {"argparse", "asyncio", "anyio", "structlog", "socket"}),
        (["consume", "--help"], {"asyncio", "anyio", "structlog", "socket", "pykafka08.consumer"}),
        (["produce", "--help"], {"asyncio", "anyio", "structlog", "socket", "pykafka08.producer"}),
        (["broker", "--help"], {"asyncio", "anyio", "structlog", "socket", "pykafka08.broker"}),
    ],
)
def test_help_loads_nothing_heavy(words: list[str], unwanted: set[str]) -> None:
    code = f"""
import sys
from pykafka08.cli.main import main
try:
    main({words!r})
except SystemExit:
    pass
print(*sys.modules)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=True)
    assert not unwanted & set(ran.stdout.splitlines()[-1].split())
