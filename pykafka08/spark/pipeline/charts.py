"""A run as one picture: ``summary.png`` beside its progress."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter

from pykafka08.spark.pipeline.settings import Pipeline
from pykafka08.spark.pipeline.status import progress_of
from pykafka08.spark.pipeline.stores import Folder
from pykafka08.spark.pipeline.tables.table import Table

__all__ = ["draw", "groups_of", "reasons_of", "window_of"]

WINDOWS_SHOWN = 2_000
COLORS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#aa3377", "#66ccee")
"""Told apart by everyone (Paul Tol's bright scheme); of one measure so many groups are drawn."""
COUNTING = ("count(*)", "count(1)")
"""Measures that say how large a group is; without one the groups with most windows are drawn."""
UNITS = (("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1), ("microsecond", 1e-6))
"""Units of a window's length in seconds."""
COUNTS = StrMethodFormatter("{x:,.0f}")
RUN_NAME = "%Y%m%dT%H%M%S.%fZ"


def draw(pipeline: Pipeline, run: Folder) -> Path:
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
    path = Path(pipeline.reports, run.name, "summary.png")
    figure.savefig(path, dpi=110)
    return path


def _stages(rows_axis: Any, rate_axis: Any, documents: list[dict[str, Any]]) -> None:
    rows: Counter[str] = Counter()
    millis: Counter[str] = Counter()
    for one in documents:
        rows[one["name"]] += one["numInputRows"]
        millis[one["name"]] += one["durationMs"].get("triggerExecution", 0)
    names = list(rows)
    rows_axis.barh(names, [rows[name] for name in names], color="#4477aa")
    rows_axis.set_title("rows that each stage read")
    rate_axis.barh(names, [1000 * rows[name] / max(1, millis[name]) for name in names], color="#228833")
    rate_axis.set_title("rows a second of each stage's batches")
    for axis in (rows_axis, rate_axis):
        _name_bars(axis)


def _reasons(axis: Any, pipeline: Pipeline) -> None:
    silver = Table(pipeline.silver).state()
    reasons = reasons_of(pipeline)
    duplicates, accepted = silver.counts.get("duplicates", 0), silver.rows + silver.removed
    reasons.update({"duplicate": duplicates} if duplicates else {})
    shown = reasons.most_common(12)
    axis.barh([name for name, _ in shown], [count for _, count in shown], color="#ee6677")
    _name_bars(axis)
    axis.set_title(f"not accepted so far (accepted: {accepted:,})")


def reasons_of(pipeline: Pipeline) -> Counter[str]:
    """The number of refused records by reason."""
    table = Table(pipeline.rejects)
    reasons: Counter[str] = Counter()
    for one in table.live():
        reasons.update(table.read(one, ["reason"]).column("reason").to_pylist())
    return reasons


def _name_bars(axis: Any) -> None:
    """Each with its number, the first on top."""
    axis.invert_yaxis()
    axis.locator_params(axis="x", nbins=4)
    axis.xaxis.set_major_formatter(COUNTS)
    axis.margins(x=0.2)
    for bars in axis.containers:
        axis.bar_label(bars, fmt="{:,.0f}", padding=3, fontsize=8)


def _days(axis: Any, pipeline: Pipeline) -> None:
    days: Counter[str] = Counter()
    for one in Table(pipeline.silver).live():
        days[one.day] += one.rows
    ordered = sorted(days)
    axis.stairs(
        [days[day] for day in ordered], [at - 0.5 for at in range(len(ordered) + 1)], fill=True, color="#66ccee"
    )
    axis.set_ylim(bottom=0)
    axis.yaxis.set_major_formatter(COUNTS)
    step = max(1, len(ordered) // 6)
    axis.set_xticks(range(0, len(ordered), step), ordered[::step], rotation=30, ha="right")
    axis.set_xlabel("event date (UTC)")
    axis.set_title("rows accepted so far, by event date")


def _gold(axis: Any, pipeline: Pipeline, name: str) -> None:
    """The first measure over the windows, a line for each of the largest groups."""
    aggregate = pipeline.aggregates[name]
    measure = next(iter(aggregate.measures))
    groups = groups_of(pipeline, name)
    for (group, points), color in zip(groups.items(), COLORS, strict=False):
        shown = points[-WINDOWS_SHOWN:]
        label = ", ".join(map(str, group)) or measure
        axis.plot([at for at, _ in shown], [value for _, value in shown], color=color, label=label, linewidth=0.9)
    axis.tick_params(axis="x", rotation=30)
    axis.set_xlabel(f"start of the window of {window_of(pipeline, name)} (UTC)" if groups else "")
    axis.set_ylabel(f"{measure} = {aggregate.measures[measure]}", fontsize=8)
    if groups:
        axis.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    of_all = f", the {len(COLORS)} largest of {len(groups)} groups" if len(groups) > len(COLORS) else ""
    axis.set_title(f"{name}: {measure}{of_all}")


def window_of(pipeline: Pipeline, name: str) -> str:
    """The length of an aggregate's windows as Spark writes it; for a query as in gold, which must have a window."""
    aggregate = pipeline.aggregates[name]
    if not aggregate.sql:
        return aggregate.window
    table = Table(pipeline.gold(name))
    bounds = table.read(table.live()[0], ["window_start", "window_end"])
    length = bounds.column("window_end")[0].as_py() - bounds.column("window_start")[0].as_py()
    unit, seconds = next(one for one in UNITS if not length % timedelta(seconds=one[1]))
    count = length // timedelta(seconds=seconds)
    return f"{count} {unit}{'s' if count != 1 else ''}"


def groups_of(pipeline: Pipeline, name: str) -> dict[tuple[Any, ...], list[tuple[datetime, Any]]]:
    """The first measure of each group's windows by their starts; the largest group first."""
    measures = pipeline.aggregates[name].measures
    counts = next((one for one, sql in measures.items() if sql.replace(" ", "").lower() in COUNTING), "")
    groups: dict[tuple[Any, ...], list[tuple[datetime, Any]]] = {}
    sizes: Counter[tuple[Any, ...]] = Counter()
    for (start, *group), value, size in _newest(pipeline, name, next(iter(measures)), counts):
        groups.setdefault(tuple(group), []).append((start, value))
        sizes[tuple(group)] += size
    return {group: sorted(groups[group], key=lambda one: one[0]) for group, _ in sizes.most_common()}


def _newest(pipeline: Pipeline, name: str, measure: str, counts: str) -> Iterator[tuple[tuple[Any, ...], Any, int]]:
    """Start and group of each window, the measure, and the rows in it by ``counts``; 1 where no measure counts them."""
    table = Table(pipeline.gold(name))
    columns = ["window_start", *pipeline.aggregates[name].group_by, "_batch", measure, counts or "_batch"]
    at = columns.index("_batch")
    newest: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for file in table.live():
        read = table.read(file, list(dict.fromkeys(columns)))
        for row in zip(*(read.column(one).to_pylist() for one in columns), strict=True):
            key = row[:at]
            if key not in newest or newest[key][0] <= row[at]:
                newest[key] = row[at:]
    for key, (_, value, count) in newest.items():
        yield key, value, count if counts else 1
