"""Writes the page and charts of a run: ``python -m benchmarks.report RESULTS.json docs/performance.md [README.md]``.

The page is written anew but for what stands above its mark, which people write; of README the table between two marks.
Charts go beside the results.
"""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.charts import bar_chart
from benchmarks.figures import PERCENTILES, Turn, cpu_rates, cpu_seconds_per_million, latencies, ratio_of, wall_rates
from benchmarks.limits import Limit
from benchmarks.targets import Played, outcomes

__all__ = ["MARK", "README_MARKS", "charts_of", "page_of", "summary_of"]

MARK = "<!-- below: written by benchmarks/report.py -->"
README_MARKS = ("<!-- from here: written by benchmarks/report.py -->\n", "<!-- to here -->\n")
OURS = "pykafka08"
SUMMARY = (
    (
        "`batches()`, 4 fields of each record, against aiokafka `getmany`",
        "consume batches",
        "batches",
        "aiokafka getmany",
    ),
    ("the same against confluent `consume(1000)`", "consume batches", "batches", "confluent consume"),
    ("`async for record`, 4 fields, against aiokafka's", "consume iterate", "iterate", "aiokafka iterate"),
    ("`batch.values()`, against aiokafka `getmany`, 4 fields", "consume values", "values", "aiokafka getmany"),
    ("the same against confluent `consume(1000)`, 4 fields", "consume values", "values", "confluent consume"),
    ("the same, of theirs the value alone", "consume values", "values", "confluent consume_values"),
    ("`arrow()`, against aiokafka `getmany`, 4 fields", "consume arrow", "arrow", "aiokafka getmany"),
    ("`enqueue`, against aiokafka `send`", "produce enqueue", "enqueue", "aiokafka send"),
    ("the same against confluent `produce`", "produce enqueue", "enqueue", "confluent produce"),
    ("`send_many`, against aiokafka `send_batch`", "produce send_many", "send_many", "aiokafka send_batch"),
    ("the same against confluent `produce`", "produce send_many", "send_many", "confluent produce"),
)
"""Rows of README: what people call it, the cell, our way, and the peer's."""
_LINK = re.compile(r"^!\[[^\]]*\]\(([^)]+\.svg)\)$", re.MULTILINE)

Bar = tuple[str, float, bool]
"""Label, value, whether it is ours."""
Turns = Mapping[str, Sequence[Turn]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("page", type=Path)
    parser.add_argument("readme", type=Path, nargs="?")
    options = parser.parse_args()
    results = json.loads(options.results.read_text())
    above, _, below = (
        options.page.read_text().partition(MARK) if options.page.exists() else ("# Performance\n\n", "", "")
    )
    for old in _LINK.findall(below):  # of cells that may have been named otherwise
        (options.page.parent / old).unlink(missing_ok=True)
    charts = {}
    for name, drawn in charts_of(results).items():
        charts[name] = options.results.parent / f"{_file_name(name)}.svg"
        charts[name].write_text(drawn)
    links = {name: os.path.relpath(path, options.page.parent) for name, path in charts.items()}
    options.page.write_text(above + page_of(results, links))
    if options.readme is not None:
        begin, end = README_MARKS
        before, _, rest = options.readme.read_text().partition(begin)
        options.readme.write_text(before + begin + summary_of(results) + end + rest.partition(end)[2])


def played(results: dict[str, Any]) -> dict[str, Played]:
    """The cells by name, as :mod:`benchmarks.targets` takes them."""
    return {
        cell["name"]: Played(
            cell["players"],
            {name: [Turn(**turn) for turn in turns] for name, turns in cell["turns"].items()},
            {**cell["missing"], **cell["failed"]},
        )
        for cell in results["cells"]
    }


def page_of(results: dict[str, Any], links: dict[str, str]) -> str:
    """The page from the mark on; ``links`` are the charts' files by cell."""
    return "\n".join([MARK, *_page(results, links)]) + "\n"


def summary_of(results: dict[str, Any]) -> str:
    """README's table: the median ratios of the main rows against the replaying server."""
    cells = played(results)
    lines = ["| job | pure | compiled |", "|---|---|---|"]
    for what, cell, way, peer in SUMMARY:
        each = cells[f"{cell}, 100 B, no keys, none, 1 partition, replay"]
        ratios = [each.ratio(f"{OURS} {form} {way}", peer) for form in ("pure", "compiled")]
        lines.append(
            f"| {what} | {' | '.join('-' if ratio is None else f'{ratio.median:.1f} x' for ratio in ratios)} |"
        )
    versions = {client: described["version"] for client, described in results["clients"].items()}
    lines += [
        "",
        f"{results['started'][:10]}; {results['machine']}; aiokafka {versions['aiokafka']} with its C extensions, "
        f"confluent-kafka {versions['confluent']}.",
    ]
    return "\n".join(lines) + "\n"


def _page(results: dict[str, Any], links: dict[str, str]) -> Iterator[str]:
    cells = played(results)
    loads = [cell["load_at_start"] for cell in results["cells"]]
    yield "\n## Results\n"
    yield f"{results['started']}, {results['minutes']} minutes. {results['machine']}."
    if loads:
        yield f"Load average when the cells began: {min(loads):.1f} to {max(loads):.1f}."
    yield "\n| client | version | settings |\n|---|---|---|"
    for client, described in results["clients"].items():
        yield f"| {client} | {described['version']} | {described['settings']} |"
    yield "\n### Targets\n"
    yield "Ours over theirs: records per second of the client process's processor time, or microseconds."
    yield "\n| | form | ours | theirs | of | wanted | measured (least..most) | cell |"
    yield "|---|---|---|---|---|---|---|---|"
    for each in outcomes(cells):
        measured = each.fault or str(each.measured or "-")
        row = (each.mark, each.form, each.way, each.peer, each.unit, each.wanted_text, measured, each.cell)
        yield f"| {' | '.join(row)} |"
    yield from _limits([Limit(**limit) for limit in results["limits"]])
    yield from _behind_confluent(cells)
    yield "\n### Every cell\n"
    for cell in results["cells"]:
        yield from _cell(cell, cells[cell["name"]].turns, results["clients"], links.get(cell["name"]))
    if results["failures"]:
        yield "\n### What failed\n"
        yield from (f"- {failure}" for failure in results["failures"])


def _limits(limits: list[Limit]) -> Iterator[str]:
    if limits:
        yield "\n### Bounds\n"
        yield "| | form | what | measured |\n|---|---|---|---|"
        yield from (f"| {limit.mark} | {limit.form} | {limit.what} | {limit.text} |" for limit in limits)


def _behind_confluent(cells: dict[str, Played]) -> Iterator[str]:
    """The rows that confluent-kafka does with less of the processor, or sooner."""
    rows = []
    for name, each in cells.items():
        turns = each.turns
        for ours in (player for player in turns if player.startswith(OURS) and "uvloop" not in player):
            for peer in (player for player in turns if player.startswith("confluent")):
                ratio = ratio_of(cpu_rates(turns[ours]), cpu_rates(turns[peer]))
                if ratio is not None and ratio.median < 1:
                    rows.append(f"| {ours} | {peer} | {ratio} | {name} | {_why_behind(ours, name)} |")
    if rows:
        yield "\n### Behind confluent-kafka\n"
        yield "| ours | theirs | records per CPU second, ours over theirs | cell | why |\n|---|---|---|---|---|"
        yield from rows
    late = [
        f"| {ours} | {peer} | {share} | {ratio} | {name} |"
        for name, each in cells.items()
        for ours in each.turns
        for peer in each.turns
        for share in ("p50", "p99")
        if ours.startswith(OURS) and peer.startswith("confluent")
        if (ratio := each.ratio_of_latencies(ours, peer, share)) is not None and ratio.median > 1
    ]
    if late:
        yield "\nLater than theirs, for the same reason: each answer is a turn of the event loop.\n"
        yield "| ours | theirs | of | microseconds, ours over theirs | cell |\n|---|---|---|---|---|"
        yield from late


def _why_behind(ours: str, cell: str) -> str:
    """What profiles showed; the page's prose has the figures."""
    form, way = ours.split()[1], ours.split()[-1]
    if way in ("send", "send_one", "end_to_end"):
        return "each answer is a turn of the event loop; there threads in C serve the sockets"
    if "16 KiB batches" in cell:
        return "each batch has a request's part, a header and a place in the queues, for 150 records"
    if form == "pure" and way in ("enqueue", "iterate", "batches"):
        return "the interpreter makes each record; there it is C"
    if form == "compiled" and way in ("arrow", "values") and "1 KiB" in cell:
        return "the bytes are copied once more, out of the answer; there they stay in it"
    return "the interpreter does what is C there" if form == "pure" else "see what is slower than elsewhere, above"


def _cell(cell: dict[str, Any], turns: Turns, clients: dict[str, Any], link: str | None) -> Iterator[str]:
    yield f"\n#### {cell['name']}\n"
    yield f"Against: {cell['server']}. Load at start {cell['load_at_start']:.1f}."
    if link:
        yield f"\n![{cell['name']}]({link})"
    yield (
        "\n| player | M records/CPU s | spread | M records/s | CPU s/M records | peak MiB | "
        "p50, p99, p99.9 us | rounds | how |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    for name, each in turns.items():
        rates, walls = list(cpu_rates(each).values()), list(wall_rates(each).values())
        spread = f"{min(rates) / 1e6:.3f}..{max(rates) / 1e6:.3f}"
        shares = [latencies(each, share) for share in PERCENTILES]
        late = ", ".join(f"{median(share.values()):,.0f}" for share in shares if share) or "-"
        client, _, way = name.partition(" ")
        how = clients.get(client, {}).get("ways", {}).get(way.split()[-1], "")
        yield (
            f"| {name} | {median(rates) / 1e6:.3f} | {spread} | {median(walls) / 1e6:.3f} | "
            f"{cpu_seconds_per_million(each):.2f} | {max(turn.peak_rss for turn in each) >> 20} | {late} | "
            f"{len(each)} | {how} |"
        )
    for name, missing in cell["missing"].items():
        yield f"| {name} | - | - | - | - | - | - | 0 | {missing} is not there |"
    for name, failed in cell["failed"].items():
        yield f"| {name} | FAILED | - | - | - | - | - | {len(turns.get(name, ()))} | {failed} |"


def charts_of(results: dict[str, Any]) -> dict[str, str]:
    """An SVG for each cell that has turns, by its name: latencies where it measures them, else rates."""
    charts = {}
    for name, each in played(results).items():
        bars = _latency_bars(each.turns)
        unit = "microseconds"
        if not bars:
            bars, unit = _rate_bars(each.turns), "million records per second of the client's processor time"
        if bars:
            charts[name] = bar_chart(name, unit, bars)
    return charts


def _rate_bars(turns: Turns) -> list[Bar]:
    """The fastest first."""
    bars = [(player, median(cpu_rates(each).values()) / 1e6, player.startswith(OURS)) for player, each in turns.items()]
    return sorted(bars, key=lambda bar: -bar[1])


def _latency_bars(turns: Turns) -> list[Bar]:
    """By percentile, the quickest first in each."""
    bars: list[Bar] = []
    for share in PERCENTILES:
        found = {player: latencies(each, share) for player, each in turns.items()}
        of_share = [
            (f"{share} {player}", median(times.values()), player.startswith(OURS))
            for player, times in found.items()
            if times
        ]
        bars += sorted(of_share, key=lambda bar: bar[1])
    return bars


def _file_name(cell: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", cell.lower()).strip("-")


if __name__ == "__main__":
    main()
