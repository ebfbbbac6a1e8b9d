"""Plays the cells: turns as processes, records scaled, counts verified."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.brokers import REPOSITORY
from benchmarks.cells import Cell, Form, Player, players_of
from benchmarks.figures import Turn, percentile
from benchmarks.jobs import WARM_UP_RECORDS, Task
from benchmarks.servers import Server
from benchmarks.topics import ReadTopic

__all__ = ["Game", "Playing", "TurnFailed", "worker"]

TURN_TIMEOUT_S = 120
WARM_UP_SENDS = 500
FIRST_GUESS = {100: 60_000, 1024: 20_000}
"""Records of the uncounted round, by the size of their values."""
MOST_RECORDS = {100: 8_000_000, 1024: 1_000_000}
MOST_PRODUCED = {100: 1_500_000, 1024: 250_000}
"""So that the values of a turn fit into memory."""
PERCENTILES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}


class TurnFailed(Exception):
    """A turn ended with an error, or counted wrong."""


@dataclass
class Game:
    """A cell being played: the turns of each player, by its name."""

    cell: Cell
    server: Server
    load: float
    turns: dict[str, list[Turn]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.cell.name,
            "server": self.server.what,
            "load_at_start": self.load,
            "turns": {name: [turn._asdict() for turn in turns] for name, turns in self.turns.items()},
            "missing": self.missing,
        }


class Playing:
    """Keeps what is known from turn to turn: how fast each player is, and what failed."""

    def __init__(self, forms: Iterable[Form], tree: Path | None, turn_seconds: float) -> None:
        self._forms = list(forms)
        self._tree = tree
        self._turn_seconds = turn_seconds
        self._described: dict[str, Any] = {}
        self.failures: list[str] = []

    def clients(self, cells: Iterable[Cell]) -> dict[str, Any]:
        """Version, settings and ways of each client that plays."""
        for cell in cells:
            for client in dict.fromkeys(player.client for player in players_of(cell, self._forms)):
                if client not in self._described:
                    self._described[client] = self._describe(client)
        return self._described

    def play(self, game: Game, most_rounds: int, least_rounds: int, seconds: float | None) -> None:
        """Rounds until ``most_rounds`` or ``seconds`` are over; who fails is left out from then on."""
        cell = game.cell
        playing = players_of(cell, self._forms)
        records = {player: cell.records or FIRST_GUESS[cell.profile.size] for player in playing}
        begun = time.monotonic()
        for number in range(most_rounds + 1):
            shift = number % max(1, len(playing))
            started = time.monotonic()
            for player in playing[shift:] + playing[:shift]:
                try:
                    turn = self._turn(game, player, records[player], number)
                except TurnFailed as failure:
                    self.failed(f"{cell.name}: {player.name}: {failure}")
                    turn = None
                if turn is None:
                    playing.remove(player)
                    continue
                if number > 0:
                    game.turns.setdefault(player.name, []).append(turn)
                # Later rounds correct the first, in which what a turn costs once weighed more than the records.
                records[player] = max(records[player] if number > 0 else 0, self._scaled(cell, turn))
            now = time.monotonic()
            if seconds is not None and number >= least_rounds and now - begun + (now - started) > seconds:
                return

    def failed(self, what: str) -> None:
        """Told at once, and again at the end of the run."""
        print(f"FAILED: {what}", file=sys.stderr, flush=True)
        self.failures.append(what)

    def _scaled(self, cell: Cell, turn: Turn) -> int:
        """How many records this player does in the time of a turn."""
        if cell.records is not None:
            return cell.records
        seconds = self._turn_seconds * (1 if cell.is_main else 0.5)
        most = (MOST_RECORDS if cell.kind == "consume" else MOST_PRODUCED)[cell.profile.size]
        return max(1000, min(most, int(turn.records / max(turn.cpu_s, 0.001) * seconds)))

    def _turn(self, game: Game, player: Player, records: int, number: int) -> Turn | None:
        """None if the client does not have what the cell asks for."""
        cell, server, profile = game.cell, game.server, game.cell.profile
        reads = cell.kind == "consume"
        warm_up = min(WARM_UP_RECORDS, records) if cell.records is None else min(WARM_UP_SENDS, records)
        topic = server.read_topic(profile, records) if reads else None
        before = 0 if reads else server.end_offset(server.written_topic(profile), profile.partitions)
        task = Task(
            client=player.client,
            way=player.way,
            bootstrap=server.bootstrap,
            topic=topic.name if topic else server.written_topic(profile),
            warm_topic=server.read_topic(profile, 1).name if reads else "",
            records=topic.records if topic else records,
            warm_up=warm_up,
            profile=profile,
            loop=player.form.loop if player.form else "asyncio",
            tree=str(self._tree) if player.form and player.form.compiled else None,
            rate=cell.rate,
        )
        told = self._run(task)
        if "missing" in told:
            game.missing[player.name] = told["missing"]
            return None
        after = 0 if reads else server.end_offset(task.topic, profile.partitions) - before
        _verify(task, told, topic, after)
        latencies = told["latencies_us"]
        shares = {name: percentile(latencies, share) for name, share in PERCENTILES.items()} if latencies else {}
        return Turn(
            number, told["records"], told["value_bytes"], told["seconds"], told["cpu_s"], told["peak_rss"], shares
        )

    def _run(self, task: Task) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(worker([task.to_json()]))
        return told

    def _describe(self, client: str) -> Any:
        try:
            return json.loads(worker(["describe", client]))
        except TurnFailed as failure:
            return {"version": f"not usable: {failure}", "settings": "", "ways": {}}


def worker(words: list[str]) -> bytes:
    """The last line that a worker with these arguments prints; TurnFailed if it fails or takes too long."""
    command = [sys.executable, "-m", "benchmarks.worker", *words]
    try:
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, timeout=TURN_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise TurnFailed(f"not done after {TURN_TIMEOUT_S} s") from None
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()
        raise TurnFailed(f"exit code {done.returncode}: {last[-1] if last else ''}")
    return done.stdout.splitlines()[-1] if done.stdout.strip() else b"{}"


def _verify(task: Task, told: dict[str, Any], topic: ReadTopic | None, written: int) -> None:
    if told["records"] != task.records:
        raise TurnFailed(f"counted {told['records']} records, not {task.records}")
    if topic is not None:
        if told["value_bytes"] != topic.value_bytes:
            raise TurnFailed(f"counted {told['value_bytes']} bytes of values, not {topic.value_bytes}")
    elif written != task.records + task.warm_up:
        raise TurnFailed(f"{written} records were written, not {task.records + task.warm_up}")
