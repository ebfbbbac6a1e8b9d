"""Plays the cells: turns as processes, records scaled, counts verified."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from benchmarks.cells import OURS, Cell, Form, Player, players_of
from benchmarks.figures import PERCENTILES, Turn, percentile
from benchmarks.jobs import WARM_UP_RECORDS, Task
from benchmarks.nursery import Nursery, TurnFailed, describe
from benchmarks.servers import Server
from benchmarks.targets import Played
from benchmarks.topics import ReadTopic

__all__ = ["Game", "Playing"]

WARM_UP_SENDS = 500
FIRST_GUESS = {100: 40_000, 1024: 30_000}
"""Records of the uncounted round, by the size of their values."""
MOST_RECORDS = {100: 8_000_000, 1024: 1_000_000}
MOST_PRODUCED = {100: 1_500_000, 1024: 250_000}
"""So that the values of a turn fit into memory."""
SHORTEST_TURNS_S = (0.3, 0.5)
"""Of processor time, in other cells and in main ones: in shorter ones memory that is touched first weighs too much."""
FAR_FROM = 1 / 3
"""A part of the shortest turn: where less would be left for each, there are fewer rounds."""


@dataclass
class Game:
    """A cell being played: its players, the turns of each by its name, and why others have none, or no more."""

    cell: Cell
    server: str
    load: float
    players: list[Player]
    turns: dict[str, list[Turn]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.cell.name,
            "server": self.server,
            "load_at_start": self.load,
            "players": [player.name for player in self.players],
            "turns": {name: [turn._asdict() for turn in turns] for name, turns in self.turns.items()},
            "missing": self.missing,
            "failed": self.failed,
        }

    def played(self) -> Played:
        return Played([player.name for player in self.players], self.turns, {**self.missing, **self.failed})


class _Costs:
    """What the uncounted round tells of the time that turns take beside the processor's: to fit rounds into seconds."""

    def __init__(self) -> None:
        self._turns = 0
        self._around = self._clock = self._cpu = 0.0

    def add(self, took: float, turn: Turn) -> None:
        self._turns += 1
        self._around += took - turn.seconds
        self._clock += turn.seconds
        self._cpu += turn.cpu_s

    def turn_seconds(self, seconds: float, turns: int) -> float:
        """Processor time of a turn, so that so many take ``seconds``; may be less than nothing."""
        if not turns or not self._cpu:
            return seconds
        return (seconds / turns - self._around / self._turns) * self._cpu / self._clock


class Playing:
    """Keeps what is known from turn to turn: where turns come from, and what failed.  A context manager."""

    def __init__(self, forms: Iterable[Form], tree: Path | None, turn_seconds: float) -> None:
        self._forms = list(forms)
        self._tree = tree
        self._turn_seconds = turn_seconds
        self._described: dict[str, Any] = {}
        self._nurseries: dict[tuple[str, str, Path | None], Nursery] = {}
        self.failures: list[str] = []

    def __enter__(self) -> Playing:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._open_nurseries(())

    def clients(self, cells: Iterable[Cell]) -> dict[str, Any]:
        """Version, settings and ways of each client that plays."""
        for cell in cells:
            for client in dict.fromkeys(player.client for player in players_of(cell, self._forms)):
                if client not in self._described:
                    self._described[client] = describe(client)
        return self._described

    def game(self, cell: Cell, server: str, load: float) -> Game:
        return Game(cell, server, load, players_of(cell, self._forms))

    def seconds_wanted(self, cell: Cell, rounds: int) -> float:
        """About what so many rounds of a cell take; what counts is their proportion."""
        turn = self._turn_seconds * (1 if cell.is_main else 0.5)
        if cell.rate:
            turn = cell.records / cell.rate + 1 if cell.records else turn
        return len(players_of(cell, self._forms)) * (rounds * turn + 0.3)

    def play(
        self,
        game: Game,
        server: Server,
        most_rounds: int,
        least_rounds: int = 1,
        seconds: float | None = None,
        *,
        plaintext_server: Server | None = None,
    ) -> None:
        """Rounds until ``most_rounds`` or ``seconds`` are over; who fails is left out from then on.

        ``plaintext_server``: the server for players in plaintext, if ``server`` uses TLS.
        Turns are made shorter where ``least_rounds`` would not end in time else, and where the shortest would not
        by far, one round is the least.
        """
        cell = game.cell
        playing, costs = list(game.players), _Costs()
        begun = time.monotonic()
        self._open_nurseries(playing)
        length = self._turn_seconds * (1 if cell.is_main else 0.5)
        known: dict[Player, Turn] = {}
        for number in range(1 if cell.records else 0, most_rounds + 1):
            shift = number % max(1, len(playing))
            started = time.monotonic()
            for player in playing[shift:] + playing[:shift]:
                records = cell.records or _records_of(cell, known.get(player), length)
                turn_began = time.monotonic()
                used = plaintext_server if plaintext_server is not None and player.is_plaintext else server
                turn = self._turn_or_none(game, used, player, records, number)
                if turn is None:
                    playing.remove(player)
                    continue
                # Later rounds correct the first, in which what a turn costs once weighed more than the records.
                if player not in known or _rate(turn) > _rate(known[player]):
                    known[player] = turn
                if number > 0:
                    game.turns.setdefault(player.name, []).append(turn)
                else:
                    costs.add(time.monotonic() - turn_began, turn)
            now = time.monotonic()
            if seconds is None:
                continue
            left = begun + seconds - now
            if number == 0:
                fitting, shortest = (
                    costs.turn_seconds(left, least_rounds * len(playing)),
                    SHORTEST_TURNS_S[cell.is_main],
                )
                least_rounds = least_rounds if fitting > shortest * FAR_FROM else 1
                length = min(length, max(shortest, fitting))
            elif number >= least_rounds and now - started > left:
                return

    def failed(self, what: str) -> None:
        """Told at once, and again at the end of the run."""
        print(f"FAILED: {what}", file=sys.stderr, flush=True)
        self.failures.append(what)

    def game_failed(self, game: Game, error: Exception) -> None:
        """Nobody of it can play on."""
        text = f"{type(error).__name__}: {error}"
        self.failed(f"{game.cell.name}: {text}")
        game.failed |= {player.name: text for player in game.players if player.name not in game.missing}

    def _open_nurseries(self, players: Iterable[Player]) -> None:
        """Those of ``players`` and no others: each holds a client's memory."""
        wanted = dict.fromkeys((player.client, player.way, self._tree_of(player)) for player in players)
        for key in [key for key in self._nurseries if key not in wanted]:
            self._nurseries.pop(key).close()
        for key in wanted:
            if key not in self._nurseries:
                self._nurseries[key] = Nursery(*key)

    def _tree_of(self, player: Player) -> Path | None:
        return self._tree if player.form and player.form.compiled else None

    def _turn_or_none(self, game: Game, server: Server, player: Player, records: int, number: int) -> Turn | None:
        """None if the player failed, or does not have what the cell asks for."""
        try:
            return self._turn(game, server, player, records, number)
        except TurnFailed as failure:
            game.failed[player.name] = str(failure)
            self.failed(f"{game.cell.name}: {player.name}: {failure}")
            return None

    def _turn(self, game: Game, server: Server, player: Player, records: int, number: int) -> Turn | None:
        cell, profile = game.cell, game.cell.profile
        reads = cell.kind == "consume"
        warm_up = min(WARM_UP_RECORDS, records // 4) if cell.records is None else min(WARM_UP_SENDS, records)
        topic = server.read_topic(profile, records) if reads else None
        before = 0 if reads else server.end_offset(server.written_topic(profile), profile.partitions)
        tree = self._tree_of(player)
        task = Task(
            client=player.client,
            way=player.way,
            bootstrap=server.bootstrap,
            topic=topic.name if topic else server.written_topic(profile),
            warm_topic=server.read_topic(replace(profile, partitions=1), 1).name if reads else "",
            records=topic.records if topic else records,
            warm_up=warm_up,
            profile=profile,
            loop=player.form.loop if player.form else "asyncio",
            tree=str(tree) if tree else None,
            rate=cell.rate,
            ca_file=server.ca_file,
        )
        told = self._nurseries[player.client, player.way, tree].turn(task)
        if "missing" in told:
            if player.client == OURS:
                raise TurnFailed(f"{told['missing']} is not there")
            game.missing[player.name] = told["missing"]
            return None
        after = 0 if reads else server.end_offset(task.topic, profile.partitions) - before
        _verify(task, told, topic, after)
        latencies = told["latencies_us"]
        shares = {name: percentile(latencies, share) for name, share in PERCENTILES.items()} if latencies else {}
        return Turn(
            number, told["records"], told["value_bytes"], told["seconds"], told["cpu_s"], told["peak_rss"], shares
        )


def _rate(turn: Turn) -> float:
    return turn.records / max(turn.cpu_s, 0.001)


def _records_of(cell: Cell, known: Turn | None, seconds: float) -> int:
    """How many records a player does in so much processor time, as far as its turns told."""
    size = cell.profile.size
    if known is None:
        return FIRST_GUESS[size]
    most = (MOST_RECORDS if cell.kind == "consume" else MOST_PRODUCED)[size]
    return max(1000, min(most, int(_rate(known) * seconds)))


def _verify(task: Task, told: dict[str, Any], topic: ReadTopic | None, written: int) -> None:
    if told["records"] != task.records:
        raise TurnFailed(f"counted {told['records']} records, not {task.records}")
    if topic is not None:
        if told["value_bytes"] != topic.value_bytes:
            raise TurnFailed(f"counted {told['value_bytes']} bytes of values, not {topic.value_bytes}")
    elif written != task.records + task.warm_up:
        raise TurnFailed(f"{written} records were written, not {task.records + task.warm_up}")
