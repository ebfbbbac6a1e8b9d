"""A run as one picture: ``summary.png`` beside its progress."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter

from pykafka08.spark.pipeline.settings import Pipeline
from pykafka08.spark.pipeline.status import progress_of
from pykafka08.spark.pipeline.table import Table
from pykafka08.spark.pipeline.tables import ACCEPTED, REJECTED, ROWS

__all__ = ["draw"]

WINDOWS_SHOWN = 2_000
COLORS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#aa3377", "#66ccee")
"""Told apart by everyone (Paul Tol's bright scheme); of one measure so many groups are drawn."""
COUNTS = StrMethodFormatter("{x:,.0f}")
RUN_NAME = "%Y%m%dT%H%M%S.%fZ"


def draw(pipeline: Pipeline, run: Path) -> Path:
    """Draw the rows and the speed of each stage, the days of silver, what was refused, and gold's first measures."""
    figure = Figure(figsize=(17, 9), layout="constrained")
    FigureCanvasAgg(figure)
    axes: Any = figure.subplots(2, 3)
    documents = [one for one in progress_of(run) if one["numInputRows"]]
    _stages(axes[0][0], axes[0][1], documents)
    _reasons(axes[0][2], pipeline)
    _days(axes[1][0], pipeline)
    names = list(pipeline.aggregates)[:2]
    for axis, name in zip(axes[1][1:], names, strict=False):
        _gold(axis, pipeline, name)
    for axis in axes[1][1 + len(names) :]:
        axis.set_axis_off()
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.3, linewidth=0.5)
        axis.set_axisbelow(True)
    figure.suptitle(f"{pipeline.name}, run of {datetime.strptime(run.name, RUN_NAME):%Y-%m-%d %H:%M:%S} UTC")
    path = run / "summary.png"
    figure.savefig(path, dpi=110)
    return path


def _stages(rows_axis: Any, rate_axis: Any, documents: list[dict[str, Any]]) -> None:
    rows: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    for one in documents:
        rows[one["name"]] += one["numInputRows"]
        seconds[one["name"]] += one["durationMs"].get("triggerExecution", 0)
    names = list(rows)
    rows_axis.barh(names, [rows[name] for name in names], color="#4477aa")
    rows_axis.set_title("rows read by each stage")
    rate_axis.barh(names, [1000 * rows[name] / max(1, seconds[name]) for name in names], color="#228833")
    rate_axis.set_title("rows a second")
    for axis in (rows_axis, rate_axis):
        axis.invert_yaxis()
        axis.locator_params(axis="x", nbins=4)
        axis.xaxis.set_major_formatter(COUNTS)


def _reasons(axis: Any, pipeline: Pipeline) -> None:
    table = Table(pipeline.silver)
    reasons: Counter[str] = Counter()
    for path in table.paths(table.live(REJECTED)):
        reasons.update(pq.read_table(path, columns=["reason"]).column("reason").to_pylist())
    duplicates = sum(one.counts.get("duplicates", 0) for one in table.entries())
    accepted = sum(one.rows for one in table.live(ACCEPTED))
    reasons.update({"duplicate": duplicates} if duplicates else {})
    shown = reasons.most_common(12)
    axis.barh([name for name, _ in shown], [count for _, count in shown], color="#ee6677")
    axis.invert_yaxis()
    axis.locator_params(axis="x", nbins=4)
    axis.xaxis.set_major_formatter(COUNTS)
    axis.set_title(f"not accepted (accepted: {accepted:,})")


def _days(axis: Any, pipeline: Pipeline) -> None:
    days: Counter[str] = Counter()
    for one in Table(pipeline.silver).live(ACCEPTED):
        days[one.day] += one.rows
    ordered = sorted(days)
    axis.stairs(
        [days[day] for day in ordered], [at - 0.5 for at in range(len(ordered) + 1)], fill=True, color="#66ccee"
    )
    axis.set_ylim(bottom=0)
    axis.yaxis.set_major_formatter(COUNTS)
    step = max(1, len(ordered) // 6)
    axis.set_xticks(range(0, len(ordered), step), ordered[::step], rotation=30, ha="right")
    axis.set_title("accepted rows by event date")


def _gold(axis: Any, pipeline: Pipeline, name: str) -> None:
    """The first measure over the windows, a line for each of the commonest groups."""
    aggregate, table = pipeline.aggregates[name], Table(pipeline.gold(name))
    measure = next(iter(aggregate.measures))
    newest: dict[tuple[Any, ...], tuple[int, Any]] = {}
    columns = ["window_start", *aggregate.group_by, measure, "_batch"]
    for path in table.paths(table.live(ROWS)):
        for row in zip(*(column.to_pylist() for column in pq.read_table(path, columns=columns)), strict=True):
            key = row[:-2]
            if key not in newest or newest[key][0] <= row[-1]:
                newest[key] = (row[-1], row[-2])
    lines: dict[str, list[tuple[Any, Any]]] = {}
    for key, (_, value) in sorted(newest.items(), key=lambda one: one[0][0]):
        lines.setdefault(", ".join(str(one) for one in key[1:]) or measure, []).append((key[0], value))
    commonest = sorted(lines.items(), key=lambda one: -len(one[1]))
    for (label, points), color in zip(commonest, COLORS, strict=False):
        shown = points[-WINDOWS_SHOWN:]
        axis.plot([at for at, _ in shown], [value for _, value in shown], color=color, label=label, linewidth=0.9)
    axis.tick_params(axis="x", rotation=30)
    if lines:
        axis.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    axis.set_title(f"{name}: {measure}")
