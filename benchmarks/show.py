"""Prints what was measured, as it comes."""

from __future__ import annotations

from statistics import median
from typing import Any

from benchmarks.cells import OURS
from benchmarks.figures import cpu_rates, cpu_seconds_per_million, ratio_of, wall_rates
from benchmarks.play import Game

__all__ = ["show_cell", "show_clients"]


def show_clients(machine: str, clients: dict[str, Any]) -> None:
    print(machine)
    for client, described in clients.items():
        print(f"{client} {described['version']}: {described['settings']}")
    print("figures are medians over the rounds; ratios are medians of the ratios within a round, least..most")


def show_cell(game: Game) -> None:
    """Each player, then each of ours against each peer."""
    print(f"\n{game.cell.name}; load at start {game.load:.1f}")
    width = max((len(name) for name in game.turns), default=0)
    for name, turns in game.turns.items():
        rates, walls = cpu_rates(turns), wall_rates(turns)
        print(
            f"  {name:{width}}  {median(rates.values()) / 1e6:7.3f} M/CPU-s  {median(walls.values()) / 1e6:7.3f} M/s  "
            f"{cpu_seconds_per_million(turns):7.2f} CPU-s/M  {max(turn.peak_rss for turn in turns) >> 20:5} MiB  "
            f"{len(turns)} rounds"
        )
    for name, missing in game.missing.items():
        print(f"  {name:{width}}  skipped: {missing} is not there")
    peers = [name for name in game.turns if not name.startswith(OURS)]
    for ours in (name for name in game.turns if name.startswith(OURS)):
        for peer in peers:
            on_cpu = ratio_of(cpu_rates(game.turns[ours]), cpu_rates(game.turns[peer]))
            on_clock = ratio_of(wall_rates(game.turns[ours]), wall_rates(game.turns[peer]))
            if on_cpu and on_clock:
                print(f"  {ours} / {peer}: CPU {on_cpu}; wall {on_clock.median:.2f}x")
    print(end="", flush=True)
