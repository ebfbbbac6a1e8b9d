"""Measures this client and its peers, turn by turn in one run.

    python -m benchmarks.run                              all cells, about 15 minutes
    python -m benchmarks.run --quick                      the main rows, 3 to 4 minutes
    python -m benchmarks.run --cells "consume batches" --rounds 3
    python -m benchmarks.run --list

Every turn is a process of its own; the order changes with each round; the round before the first finds out how many
records take about as long as a turn should, and is not counted.  After all cells comes what is held against a bound.
Exit code 1 if a turn failed, or a row that has a target was not played to its end.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

from benchmarks.brokers import REPOSITORY
from benchmarks.cells import CELLS, FORMS, Cell, select
from benchmarks.limits import LIMITS_S, Limit, limits
from benchmarks.machine import describe_machine
from benchmarks.play import Game, Playing
from benchmarks.servers import Server, kafka, replay, replay_tls
from benchmarks.show import show_cell, show_clients, show_limit, show_targets
from benchmarks.targets import FAILED, outcomes

LEAST_ROUNDS = 3
OLDER = "MADE FROM OTHER SOURCES than these"


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the broker and the workers end with this process
    options = _parser().parse_args()
    cells = select(CELLS, options.cells)
    if options.quick:
        cells = [cell for cell in cells if cell.is_quick]
    forms = [form for form in FORMS if options.uvloop or form.loop == "asyncio"]
    if options.list:
        for cell in cells:
            print(cell.name)
        return 0
    if not cells:
        print(f"no cell has the words {options.cells!r}; --list names all", file=sys.stderr)
        return 2
    tree = _tree(options.compiled_tree)
    if tree is None and options.compiled_tree is not None:
        print(f"no compiled package in {options.compiled_tree}: make compiled", file=sys.stderr)
        return 2
    if tree is None:
        print("compiled: SKIPPED, there is no compiled tree (make compiled, or --compiled-tree DIR)")
        forms = [form for form in forms if not form.compiled]
    elif _is_older(tree):
        print(f"compiled: {tree} was {OLDER}: make compiled", file=sys.stderr)
    with Playing(forms, tree, options.turn_seconds) as playing:
        return _run(cells, options, playing, tree)


def _run(cells: list[Cell], options: argparse.Namespace, playing: Playing, tree: Path | None) -> int:
    machine = describe_machine() + (f"; the compiled form was {OLDER}" if tree and _is_older(tree) else "")
    report = Report(machine, playing.clients(cells), options.results)
    show_clients(report.machine, report.clients)
    for game in _play(cells, options, playing):
        show_cell(game)
        report.add(game, playing.failures)
    if not options.quick and not options.cells:
        print("\nbounds")
        for limit in limits(tree):
            show_limit(limit)
            if limit.measured is None:
                playing.failed(f"{limit.what}: {limit.form}: {limit.fault}")
            report.add_limit(limit, playing.failures)
    found = outcomes({game.cell.name: game.played() for game in report.games})
    show_targets(found)
    for failure in playing.failures:
        print(f"FAILED: {failure}", file=sys.stderr)
    return 1 if playing.failures or any(each.mark == FAILED for each in found) else 0


class Report:
    """What was measured so far; written with each addition, so that a run that is ended leaves what it has."""

    def __init__(self, machine: str, clients: dict[str, Any], file: Path | None) -> None:
        self.machine = machine
        self.clients = clients
        self.games: list[Game] = []
        self._limits: list[Limit] = []
        self._file = file
        self._started, self._began = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()), time.monotonic()

    def add(self, game: Game, failures: list[str]) -> None:
        self.games.append(game)
        self._write(failures)

    def add_limit(self, limit: Limit, failures: list[str]) -> None:
        self._limits.append(limit)
        self._write(failures)

    def _write(self, failures: list[str]) -> None:
        if self._file is None:
            return
        whole = {
            "started": self._started,
            "minutes": round((time.monotonic() - self._began) / 60, 1),
            "machine": self.machine,
            "clients": self.clients,
            "cells": [game.to_dict() for game in self.games],
            "limits": [limit._asdict() for limit in self._limits],
            "failures": failures,
        }
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(json.dumps(whole, indent=1) + "\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--cells", default="", metavar="WORDS", help="only cells whose names have all words; commas separate choices")
    add("--quick", action="store_true", help="only the main rows, against the replaying server")
    add("--list", action="store_true", help="name the cells and end")
    add("--rounds", type=int, default=5, help="at most so many for each cell; default 5")
    add("--minutes", type=float, metavar="N", help="end about then: shorter turns, then fewer rounds")
    add("--turn-seconds", type=float, default=1.0, metavar="S", help="processor time that a turn should take")
    add("--compiled-tree", type=Path, metavar="DIR", help="where the compiled package is; default build/compiled")
    add("--no-uvloop", dest="uvloop", action="store_false", help="this client on asyncio only")
    add("--bootstrap-server", metavar="HOST:PORT", help="the real broker; without it one is started where Java is")
    add("--release", default="4.3.1", help="of the real broker")
    add("--results", type=Path, metavar="FILE", help="write all figures there, as JSON")
    return parser


def _tree(given: Path | None) -> Path | None:
    """The compiled tree, if it is there."""
    tree = given or Path(__file__).resolve().parent.parent / "build" / "compiled"
    is_there = any((tree / "pykafka08").glob("**/*.so")) or any(tree.glob("*.so"))
    return tree.resolve() if is_there else None


def _is_older(tree: Path) -> bool:
    """The tree was made from sources that are not those of this checkout any more."""
    stamp = tree / "compiled-from.txt"
    lines = [line.split() for line in stamp.read_text().splitlines()] if stamp.exists() else []
    made_from = {words[0]: words[1] for words in lines if len(words) == 2 and words[0].startswith("pykafka08/")}
    sources = {str(path.relative_to(REPOSITORY)): path for path in (REPOSITORY / "pykafka08").rglob("*.py")}
    if made_from.keys() != sources.keys():
        return True
    return any(hashlib.sha256(path.read_bytes()).hexdigest() != made_from[name] for name, path in sources.items())


def _play(cells: list[Cell], options: argparse.Namespace, playing: Playing) -> Iterator[Game]:
    """All cells, one after the other; a cell that fails does not end the run."""
    end = None if options.minutes is None else time.monotonic() + options.minutes * 60
    if end is not None and not options.quick and not options.cells:
        end -= LIMITS_S
    with ExitStack() as stack:
        servers: dict[str, Server] = {}
        for index, cell in enumerate(cells):
            game = playing.game(cell, cell.server, os.getloadavg()[0])
            try:
                needed = (cell.server, "replay") if cell.server == "tls" else (cell.server,)
                for name in needed:
                    if name not in servers:
                        servers[name] = stack.enter_context(_opened(name, options))
                server = servers[cell.server]
                game.server = server.what
                share = None if end is None else _share(end - time.monotonic(), cells[index:], playing)
                least = min(LEAST_ROUNDS if cell.is_main else LEAST_ROUNDS - 1, options.rounds)
                playing.play(game, server, options.rounds, least, share, plaintext_server=servers.get("replay"))
            except Exception as error:
                playing.game_failed(game, error)
            yield game


def _opened(server: str, options: argparse.Namespace) -> AbstractContextManager[Server]:
    if server == "replay":
        return replay()
    return replay_tls() if server == "tls" else kafka(options.bootstrap_server, options.release)


def _share(seconds: float, cells: list[Cell], playing: Playing) -> float:
    """What the first of these cells gets of the seconds that all of them have."""
    wanted = [playing.seconds_wanted(cell, LEAST_ROUNDS if cell.is_main else LEAST_ROUNDS - 1) for cell in cells]
    return max(0.0, seconds * wanted[0] / sum(wanted))


if __name__ == "__main__":
    sys.exit(main())
