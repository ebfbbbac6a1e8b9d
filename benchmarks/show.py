"""Prints what was measured, as it comes."""

from __future__ import annotations

from statistics import median
from typing import Any

from benchmarks.cells import IN_PLAINTEXT, OURS
from benchmarks.figures import PERCENTILES, Turn, cpu_rates, cpu_seconds_per_million, latencies, ratio_of, wall_rates
from benchmarks.limits import Limit
from benchmarks.play import Game
from benchmarks.targets import Outcome

__all__ = ["show_cell", "show_clients", "show_limit", "show_targets"]


def show_clients(machine: str, clients: dict[str, Any]) -> None:
    print(machine)
    for client, described in clients.items():
        print(f"{client} {described['version']}: {described['settings']}")
    print("figures are medians over the rounds; ratios are medians of the ratios within a round, least..most")


def show_cell(game: Game) -> None:
    """Show each player, in main cells and over TLS the ratios to other clients, and the ratios of TLS to plaintext."""
    print(f"\n{game.cell.name}; load at start {game.load:.1f}")
    width = max((len(name) for name in game.turns), default=0)
    for name, turns in game.turns.items():
        rates, walls = cpu_rates(turns), wall_rates(turns)
        print(
            f"  {name:{width}}  {median(rates.values()) / 1e6:7.3f} M/CPU-s  {median(walls.values()) / 1e6:7.3f} M/s  "
            f"{cpu_seconds_per_million(turns):7.2f} CPU-s/M  {max(turn.peak_rss for turn in turns) >> 20:5} MiB  "
            f"{len(turns)} rounds{_latency_text(turns)}"
        )
    for name, missing in game.missing.items():
        print(f"  {name:{width}}  skipped: {missing} is not there")
    for name, failed in game.failed.items():
        print(f"  {name:{width}}  FAILED: {failed}")
    over_tls = [name for name in game.turns if f"{name} {IN_PLAINTEXT}" in game.turns]
    if game.cell.is_main or over_tls:
        names = over_tls or list(game.turns)
        for ours in (name for name in names if name.startswith(OURS)):
            for peer in (name for name in names if not name.startswith(OURS)):
                _show_ratios(game, ours, peer)
    for name in over_tls:
        _show_ratios(game, name, f"{name} {IN_PLAINTEXT}")
    print(end="", flush=True)


def _latency_text(turns: list[Turn]) -> str:
    shares = {share: latencies(turns, share) for share in PERCENTILES}
    return "".join(f"  {share} {median(each.values()):,.0f} us" for share, each in shares.items() if each)


def _show_ratios(game: Game, ours: str, peer: str) -> None:
    mine, theirs = game.turns[ours], game.turns[peer]
    on_cpu = ratio_of(cpu_rates(mine), cpu_rates(theirs))
    on_clock = ratio_of(wall_rates(mine), wall_rates(theirs))
    if on_cpu and on_clock:
        print(f"  {ours} / {peer}: CPU {on_cpu}; wall {on_clock.median:.2f}x")
    for share in PERCENTILES:
        late = ratio_of(latencies(mine, share), latencies(theirs, share))
        if late:
            print(f"  {ours} / {peer}: {share} {late}")


def show_targets(found: list[Outcome]) -> None:
    """Each target, in each form, with what was measured."""
    print("\ntargets: ours over theirs")
    for each in found:
        measured = each.fault or str(each.measured or "")
        print(
            f"  {each.mark:12} {each.form:8} {each.way:10} / {each.peer:20} {each.unit:13} {each.wanted_text:8} "
            f"{measured}  [{each.cell}]"
        )


def show_limit(limit: Limit) -> None:
    print(f"  {limit.mark:6} {limit.form:8} {limit.what}: {limit.text}", flush=True)
