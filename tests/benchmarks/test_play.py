"""A cell is played to its end whatever one of its players does."""

from benchmarks.brokers import Broker
from benchmarks.cells import Cell, Form
from benchmarks.play import Game, Playing
from benchmarks.replay import replaying
from benchmarks.servers import Replay
from benchmarks.topics import Profile


def test_who_fails_or_is_missing_is_told_and_the_others_play_on(capsys):
    cell = Cell(
        "consume",
        "for the test",
        ("no_such_way",),
        (("aiokafka", "getmany"), ("nobody", "getmany")),
        Profile(size=1024, batch_bytes=16 * 1024),
    )
    playing = Playing([Form(compiled=False, loop="asyncio")], None, turn_seconds=0.01)
    with replaying() as server:
        game = Game(cell, Replay(Broker(f"127.0.0.1:{server.port}", "replaying server")), load=0.0)
        playing.play(game, most_rounds=2, least_rounds=1, seconds=None)
    assert [turn.round for turn in game.turns["aiokafka getmany"]] == [1, 2]
    assert list(game.turns) == ["aiokafka getmany"]
    assert game.missing == {"pykafka08 pure no_such_way": "the way no_such_way"}
    (failure,) = playing.failures
    assert "nobody getmany: exit code 1: ModuleNotFoundError" in failure
    assert failure in capsys.readouterr().err
    assert game.to_dict()["turns"]["aiokafka getmany"][0]["records"] == game.turns["aiokafka getmany"][0].records


def test_a_round_is_not_begun_that_would_not_end_in_time():
    cell = Cell("consume", "for the test", (), (("aiokafka", "getmany"),), Profile(size=1024, batch_bytes=16 * 1024))
    playing = Playing([], None, turn_seconds=0.01)
    with replaying() as server:
        game = Game(cell, Replay(Broker(f"127.0.0.1:{server.port}", "replaying server")), load=0.0)
        playing.play(game, most_rounds=50, least_rounds=1, seconds=0.0)
    assert len(game.turns["aiokafka getmany"]) == 1
