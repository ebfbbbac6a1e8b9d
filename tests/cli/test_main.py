"""The command ``pykafka08`` itself, and the names under which the tools are installed."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points

import pytest

import pykafka08
from pykafka08.cli.consume import console_consumer
from pykafka08.cli.main import COMMANDS, USAGE_TEXT, main


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


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        ([], "a command is needed"),
        (["prodcue"], "unknown command 'prodcue'; did you mean 'produce'?"),
        (["consumer"], "unknown command 'consumer'; did you mean 'consume'?"),
        (["nonsense"], "unknown command 'nonsense'\n"),
        (["x" * 5000], "unknown command 'xxx"),
    ],
)
def test_wrong_usage(words: list[str], cause: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert not out
    assert cause in err
    assert len(err) < len(USAGE_TEXT) + 200


@pytest.mark.parametrize(
    ("words", "nearest"),
    [
        (["zk", "topcis"], "topics"),
        (["zk", "topic", "craete"], "create"),
        (["zk", "group", "expotr"], "export"),
        (["pipeline", "pln"], "plan"),
    ],
)
def test_an_unknown_command_of_a_command_suggests_the_nearest(
    words: list[str], nearest: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(words)
    assert end.value.code == 2
    assert f"did you mean {nearest!r}?" in capsys.readouterr().err


def test_a_wrong_choice_without_a_near_match_suggests_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["zk", "nonsense"])
    assert "did you mean" not in capsys.readouterr().err


CONSUME = ["consume", "-b", "127.0.0.1:1", "-t", "t"]
PRODUCE = ["produce", "-b", "127.0.0.1:1", "-t", "t"]
OLD = ["consume", "--zookeeper", "127.0.0.1:1", "-t", "t"]
MIRROR = ["mirror", "--from", "127.0.0.1:1", "--to", "127.0.0.1:1", "--topics", "t"]
CREATE = ["zk", "topic", "create", "-z", "127.0.0.1:1", "t"]
NUMBERS: list[tuple[list[str], str]] = [
    *((CONSUME, option) for option in ("--partition={}", "--max-messages={}", "--timeout-ms={}")),
    ([*CONSUME, "-p", "0"], "--offset={}"),
    *(
        (CONSUME, f"--consumer-property={name}={{}}")
        for name in ("fetch.min.bytes", "max.unpacked.bytes", "session.timeout.ms", "broker.version")
    ),
    (["consume", "-t", "t"], "--bootstrap-server=h:{}"),
    (["consume", "-t", "t"], "--bootstrap-server=[::1]:{}"),
    (["consume", "-t", "t"], "--zookeeper=h:{}"),
    (OLD, "--max-messages={}"),
    (OLD, "--consumer-property=fetch.message.max.bytes={}"),
    (OLD, "--consumer-property=zookeeper.session.timeout.ms={}"),
    *((PRODUCE, option) for option in ("--partition={}", "--acks={}")),
    *((PRODUCE, f"--producer-property={name}={{}}") for name in ("linger.ms", "acks", "compression.level")),
    *((["broker"], f"--{name}={{}}") for name in ("brokers", "port", "partitions", "zookeeper-port", "version")),
    (["broker"], "--version=4.{}"),
    (["broker"], "--topic=t:{}"),
    (MIRROR, "--replication-factor={}"),
    (MIRROR, "--from=h:{}"),
    (MIRROR, "--from-property=fetch.min.bytes={}"),
    (MIRROR, "--to-property=linger.ms={}"),
    (["zk", "tree"], "--zookeeper=h:{}"),
    (["zk", "tree", "-z", "127.0.0.1:1"], "--zookeeper-property=session.timeout.ms={}"),
    (["zk", "lag", "-z", "127.0.0.1:1", "-g", "g"], "--bootstrap-server=h:{}"),
    *((CREATE, f"--{name}={{}}") for name in ("partitions", "replication-factor", "replica-assignment", "timeout")),
    (["zk", "topic", "add-partitions", "-z", "127.0.0.1:1", "t"], "{}"),
    (["zk", "topic", "elect", "-z", "127.0.0.1:1"], "--partition=t:{}"),
    (["zk", "topic", "reassign", "-z", "127.0.0.1:1"], "t:{}=1"),
    (["zk", "topic", "reassign", "-z", "127.0.0.1:1"], "t:0={}"),
    (["zk", "config", "show", "-z", "127.0.0.1:1"], "--broker={}"),
    (["zk", "group", "reset", "-z", "127.0.0.1:1", "g", "--topic", "t"], "--to={}"),
    (["zk", "group", "reset", "-z", "127.0.0.1:1", "g", "--topic", "t", "--to", "latest"], "--partition={}"),
]


@pytest.mark.parametrize("digits", [4300, 4301])
@pytest.mark.parametrize(("words", "option"), NUMBERS, ids=lambda value: "" if isinstance(value, list) else str(value))
def test_numbers_of_thousands_of_digits_are_wrong_usage(
    words: list[str], option: str, digits: int, capfd: pytest.CaptureFixture[str]
) -> None:
    """Python reads no number of more than 4,300 digits."""
    try:
        status = main([*words, option.format("9" * digits)])
    except SystemExit as end:
        status = end.code  # type: ignore[assignment]
    assert status == 2
    last = capfd.readouterr().err.rstrip().rpartition("\n")[2]
    assert last.startswith("pykafka08")
    assert len(last) < 700


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
