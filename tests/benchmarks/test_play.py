"""A cell is played to its end whatever one of its players does, and in the time that it has."""

import hashlib
import json
import sys

import pytest

from benchmarks import run
from benchmarks.brokers import REPOSITORY, Broker
from benchmarks.cells import CELLS, Cell, Form, select
from benchmarks.figures import Turn
from benchmarks.play import Playing, _Costs, _records_of
from benchmarks.replay import replaying
from benchmarks.servers import Replay
from benchmarks.topics import Profile

SMALL = Profile(size=1024, batch_bytes=16 * 1024)
PURE = Form(compiled=False, loop="asyncio")


@pytest.fixture(scope="module")
def server():
    with replaying() as running:
        yield Replay(Broker(f"127.0.0.1:{running.port}", "replaying server"))


def play(cell, server, **limits):
    with Playing([PURE], None, turn_seconds=0.01) as playing:
        game = playing.game(cell, server.what, 0.0)
        playing.play(game, server, **limits)
    return game, playing.failures


def test_who_fails_or_is_missing_is_told_and_the_others_play_on(server, capsys):
    peers = (("aiokafka", "getmany"), ("aiokafka", "no_such_way"), ("nobody", "getmany"))
    cell = Cell("consume", "for the test", ("values", "no_such_way"), peers, SMALL)
    game, failures = play(cell, server, most_rounds=2)
    assert {name: [turn.round for turn in turns] for name, turns in game.turns.items()} == {
        "aiokafka getmany": [1, 2],
        "pykafka08 pure values": [1, 2],
    }
    assert game.missing == {"aiokafka no_such_way": "the way no_such_way"}
    assert game.failed == {
        "pykafka08 pure no_such_way": "the way no_such_way is not there",
        "nobody getmany": "ModuleNotFoundError: No module named 'benchmarks.clients.nobody_client'",
    }
    told = capsys.readouterr().err
    assert len(failures) == 2
    assert all(failure in told for failure in failures)
    assert game.to_dict()["turns"]["aiokafka getmany"][0]["records"] == game.turns["aiokafka getmany"][0].records
    assert set(game.played().faults) == set(game.failed) | set(game.missing)


def test_a_round_is_not_begun_that_would_not_end_in_time(server):
    cell = Cell("consume", "for the test", (), (("aiokafka", "getmany"),), SMALL)
    game, _ = play(cell, server, most_rounds=50, seconds=0.0)
    assert len(game.turns["aiokafka getmany"]) == 1


def test_a_turn_is_as_long_as_the_seconds_allow():
    costs = _Costs()
    for took in (1.3, 1.5):  # 0.4 s around a second of the clock, half of which was spent
        costs.add(took, Turn(0, 100, 100, 1.0, 0.5, 0, {}))
    assert costs.turn_seconds(24.0, 10) == pytest.approx(1.0)
    assert costs.turn_seconds(3.0, 10) < 0
    cell = Cell("consume", "for the test", (), (), SMALL)
    assert _records_of(cell, Turn(1, 5000, 0, 1.0, 0.5, 0, {}), 0.3) == 3000
    assert _records_of(cell, None, 0.3) == 30_000


def test_a_cell_that_cannot_be_played_is_kept_as_failed(monkeypatch, tmp_path, capsys):
    def broken():
        raise RuntimeError("no server")

    results = tmp_path / "results.json"
    monkeypatch.setattr(run, "replay", broken)
    monkeypatch.setattr(run, "_tree", lambda given: None)
    words = ["run", "--cells", "consume values 100 no none 1 replay", "--results", str(results)]
    monkeypatch.setattr(sys, "argv", words)
    assert run.main() == 1
    (cell,) = [each for each in json.loads(results.read_text())["cells"] if "KiB" not in each["name"]]
    assert set(cell["failed"]) == set(cell["players"])
    assert "pykafka08 pure values" in cell["players"]
    printed = capsys.readouterr()
    assert "FAILED: RuntimeError: no server" in printed.out
    assert "  FAILED       pure     values     / aiokafka getmany" in printed.out
    assert "FAILED: consume values" in printed.err


def test_a_compiled_tree_that_is_not_there_is_an_error(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(sys, "argv", ["run", "--compiled-tree", str(tmp_path)])
    assert run.main() == 2
    assert "no compiled package" in capsys.readouterr().err


def test_a_compiled_tree_of_other_sources_is_told(tmp_path):
    files = {path.relative_to(REPOSITORY): path.read_bytes() for path in (REPOSITORY / "pykafka08").rglob("*.py")}
    lines = [f"{name} {hashlib.sha256(content).hexdigest()}" for name, content in files.items()]
    stamp = tmp_path / "compiled-from.txt"
    stamp.write_text("\n".join(["python 3.11", "tools/compile_modules.py 0", *lines]))
    assert not run._is_older(tmp_path)
    stamp.write_text("\n".join([*lines[1:], lines[0] + "0"]))
    assert run._is_older(tmp_path)
    stamp.write_text("\n".join(lines[1:]))
    assert run._is_older(tmp_path)


def test_a_cell_is_chosen_by_its_name_or_by_words():
    by_name = [cell.name for cell in select(CELLS, CELLS[0].name)]
    assert by_name == [CELLS[0].name]
    found = {cell.name for cell in select(CELLS, "consume batches replay, end-to-end 10,000")}
    assert CELLS[0].name in found
    assert len(found) > 1
