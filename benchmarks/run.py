"""Measures this client and its peers, turn by turn in one run.

    python -m benchmarks.run                              all cells, about 15 minutes
    python -m benchmarks.run --quick                      the main rows, 3 to 4 minutes
    python -m benchmarks.run --cells "consume batches" --rounds 3
    python -m benchmarks.run --list

Every turn is a process of its own; the order changes with each round; the round before the first finds out how many
records take about a second of processor time, and is not counted.  Exit code 1 if a turn failed.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.cells import CELLS, FORMS, Cell, select
from benchmarks.machine import describe_machine
from benchmarks.play import Game, Playing
from benchmarks.servers import Server, kafka, replay
from benchmarks.show import show_cell, show_clients, show_targets

LEAST_ROUNDS = 3


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
    if tree is None:
        print("compiled: SKIPPED, there is no compiled tree (make compiled, or --compiled-tree DIR)")
        forms = [form for form in forms if not form.compiled]
    playing = Playing(forms, tree, options.turn_seconds)
    results: dict[str, Any] = {
        "started": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()),
        "machine": describe_machine(),
        "clients": playing.clients(cells),
    }
    show_clients(results["machine"], results["clients"])
    games: list[Game] = []
    for game in _play(cells, options, playing):
        games.append(game)
        show_cell(game)
        if options.results:  # after each cell, so that a run that is ended leaves what it has
            _write(options.results, results, games, playing.failures)
    show_targets(games)
    if options.results:
        _write(options.results, results, games, playing.failures)
    for failure in playing.failures:
        print(f"FAILED: {failure}", file=sys.stderr)
    return 1 if playing.failures else 0


def _write(path: Path, results: dict[str, Any], games: list[Game], failures: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = {**results, "cells": [game.to_dict() for game in games], "failures": failures}
    path.write_text(json.dumps(whole, indent=1) + "\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--cells", default="", metavar="WORDS", help="only cells whose names have all words; commas separate choices")
    add("--quick", action="store_true", help="only the main rows, against the replaying server")
    add("--list", action="store_true", help="name the cells and end")
    add("--rounds", type=int, default=5, help="at most so many for each cell; default 5")
    add("--minutes", type=float, metavar="N", help=f"end about then: fewer rounds, but {LEAST_ROUNDS} at least")
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


def _play(cells: list[Cell], options: argparse.Namespace, playing: Playing) -> Iterator[Game]:
    """All cells, one after the other; a cell that fails does not end the run."""
    with ExitStack() as stack:
        servers: dict[str, Server] = {}
        begun = time.monotonic()
        for index, cell in enumerate(cells):
            share = None
            if options.minutes is not None:
                left = begun + options.minutes * 60 - time.monotonic()
                share = max(0.0, left / (len(cells) - index))
            try:
                if cell.server not in servers:
                    opened = replay() if cell.server == "replay" else kafka(options.bootstrap_server, options.release)
                    servers[cell.server] = stack.enter_context(opened)
                game = Game(cell, servers[cell.server], os.getloadavg()[0])
                least = LEAST_ROUNDS if cell.is_main else LEAST_ROUNDS - 1
                playing.play(game, options.rounds, min(least, options.rounds), share)
            except Exception as error:
                playing.failed(f"{cell.name}: {type(error).__name__}: {error}")
                continue
            yield game


if __name__ == "__main__":
    sys.exit(main())
