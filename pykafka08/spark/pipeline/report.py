"""The report of a run: ``report.html`` beside its progress, one file that needs no network and runs no script.

The page is built of ElementTree elements, whose serializer escapes names of topics, stages, rules and groups.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

from pykafka08.spark.offsets_json import offsets_of
from pykafka08.spark.pipeline.charts import groups_of, reasons_of, window_of
from pykafka08.spark.pipeline.durations import seconds_of
from pykafka08.spark.pipeline.expectations import expectations, of_runs
from pykafka08.spark.pipeline.retaining import removals
from pykafka08.spark.pipeline.settings import Pipeline
from pykafka08.spark.pipeline.status import ended_at, progress_of, runs
from pykafka08.spark.pipeline.stores import Folder
from pykafka08.spark.pipeline.svg import bars, hatching, steps
from pykafka08.spark.pipeline.tables.model import NEW_ROWS
from pykafka08.spark.pipeline.tables.table import Table

__all__ = ["lag_of", "rejects_of", "seconds_of_batch", "write"]

GROUPS, WINDOWS, DAYS, BATCHES = 6, 400, 400, 200
"""Drawn of groups of an aggregate, windows of a group, days of silver and judged batches at most, the newest."""
DATE, TIME = "%Y-%m-%d", "%Y-%m-%d %H:%M"
STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1d2430; --soft: #5b6472; --rule: #d9dee6; --mark: #2f6db3;
  --card: #f6f8fa; }
@media (prefers-color-scheme: dark) { :root { --paper: #12161c; --ink: #e4e8ee; --soft: #9aa5b4; --rule: #313a47;
  --mark: #6aa5e8; --card: #1a2029; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1240px; padding: 1.2rem; background: var(--paper); color: var(--ink);
  font: 15px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0; overflow-wrap: anywhere; } h2 { font-size: 1.1rem; margin: 2rem 0 .6rem; }
h3 { font-size: .9rem; margin: 0 0 .3rem; font-weight: 600; overflow-wrap: anywhere; }
p { color: var(--soft); margin: .2rem 0 .8rem; }
.tiles, .charts { display: grid; gap: .8rem; }
.tiles { grid-template-columns: repeat(auto-fit, minmax(130px, 1fr)); margin-top: 1rem; }
.charts { grid-template-columns: repeat(auto-fill, minmax(min(100%, 330px), 1fr)); }
.card { background: var(--card); border: 1px solid var(--rule); border-radius: 8px; padding: .7rem .8rem;
  min-width: 0; }
.card b { display: block; font-size: 1.3rem; font-variant-numeric: tabular-nums; } .card span { color: var(--soft); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .6rem; border-bottom: 1px solid var(--rule); text-align: right; white-space: nowrap; }
th { color: var(--soft); font-weight: 500; } th:first-child, td:first-child { text-align: left; white-space: normal; }
svg { display: block; width: 100%; height: auto; } svg text { fill: var(--soft); font-size: 11px; }
.paper { fill: var(--paper); } .mark { fill: var(--mark); }
.open { stroke: var(--mark); }
.line { fill: none; stroke: var(--mark); stroke-width: 1.5; }
.grid { stroke: var(--rule); } .axis { stroke: var(--soft); }
"""
Document = Mapping[str, Any]


def write(pipeline: Pipeline, run: Folder) -> Path:
    """Write the page of a run from its progress and from what the tables hold now."""
    documents = [one for one in progress_of(run) if one["numInputRows"]]
    html = Element("html", {"lang": "en"})
    head, body = SubElement(html, "head"), SubElement(html, "body")
    SubElement(head, "meta", {"charset": "utf-8"})
    SubElement(head, "meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"})
    SubElement(head, "title").text = f"{pipeline.name}: run of {run.name}"
    SubElement(head, "style").text = STYLE
    body.append(hatching())
    began = min(map(_began, documents), default=None)
    SubElement(body, "h1").text = pipeline.name
    SubElement(body, "p").text = (
        f"Run of {began:{DATE} %H:%M:%S} UTC" if began else f"Run {run.name}: no batch had a row"
    )
    silver, rejects = Table(pipeline.silver).state(), Table(pipeline.rejects)
    refused = rejects.state()
    accepted: Counter[str] = Counter()
    for one in silver.files:
        accepted[one.day] += one.rows
    duplicates = silver.counts.get("duplicates", 0)
    _tiles(body, documents, silver.rows + silver.removed, refused.rows + refused.removed, duplicates)
    if began is not None:
        _stages(body, documents, began, rejects_of(rejects))
    _expectations(body, pipeline, run)
    _silver(body, reasons_of(pipeline), accepted, duplicates)
    newest = _newest_event(pipeline)
    for name in pipeline.aggregates:
        _aggregate(body, pipeline, name, newest.get(f"aggregate-{name}"))
    _retention(body, pipeline)
    path = Path(pipeline.reports, run.name, "report.html")
    path.write_text("<!doctype html>\n" + tostring(html, encoding="unicode", method="html"), encoding="utf-8")
    return path


def _tiles(body: Element, documents: Sequence[Document], accepted: int, rejected: int, duplicates: int) -> None:
    tiles = SubElement(body, "div", {"class": "tiles"})
    read = sum(one["numInputRows"] for one in documents if one["name"].startswith("ingest-"))
    seconds = sum(map(seconds_of_batch, documents))
    for label, value in (
        ("records read in this run", f"{read:,}"),
        ("batches", f"{len(documents):,}"),
        ("seconds in batches", f"{seconds:,.1f}"),
        ("accepted so far", f"{accepted:,}"),
        ("refused so far", f"{rejected:,}"),
        ("duplicates so far", f"{duplicates:,}"),
    ):
        tile = SubElement(tiles, "div", {"class": "card"})
        SubElement(tile, "b").text = value
        SubElement(tile, "span").text = label


def _stages(
    body: Element, documents: Sequence[Document], began: datetime, rejects: Mapping[tuple[str, int], int]
) -> None:
    """A table, and for each stage its batches over the time of the run."""
    stages: dict[str, list[Document]] = {}
    for one in documents:
        stages.setdefault(one["name"], []).append(one)
    SubElement(body, "h2").text = "Stages"
    rows = [
        (
            name,
            f"{len(each):,}",
            f"{sum(one['numInputRows'] for one in each):,}",
            f"{sum(map(seconds_of_batch, each)):,.1f}",
            f"{sum(one['numInputRows'] for one in each) / sum(map(seconds_of_batch, each)):,.0f}",
            f"{max(map(seconds_of_batch, each)):,.1f}",
            f"{ended_at(each[-1]):%H:%M:%S}",
        )
        for name, each in stages.items()
    ]
    _table(body, ("stage", "batches", "rows", "seconds", "rows/s", "longest batch, s", "last ended (UTC)"), rows)
    end = max((ended_at(one) - began).total_seconds() for one in documents)
    labels = (f"{began:%H:%M:%S}", f"{began + timedelta(seconds=end):%H:%M:%S} UTC")
    measures: dict[str, Callable[[Document], float | None]] = {
        "Batch time, s": seconds_of_batch,
        "Rows a second": lambda one: one["numInputRows"] / seconds_of_batch(one),
        "Lag after each batch, offsets": lag_of,
        "Refused rows of each batch": lambda one: rejects.get((one["name"], one["batchId"])),
    }
    for title, measure in measures.items():
        values = {
            name: [(one, value) for one in each if (value := measure(one)) is not None] for name, each in stages.items()
        }
        shown = {name: points for name, points in values.items() if points}
        if shown:
            SubElement(body, "h2").text = title
            charts = SubElement(body, "div", {"class": "charts"})
            for name, points in shown.items():
                at = [((ended_at(one) - began).total_seconds(), value) for one, value in points]
                _card(charts, name).append(steps(f"{title}: {name}", at, labels, end=end))


def _expectations(body: Element, pipeline: Pipeline, run: Folder) -> None:
    """A table of this run and of all runs, and for each expectation its batches over time."""
    of_run, every = of_runs([run]), of_runs(runs(pipeline))
    if not of_run:
        return
    SubElement(body, "h2").text = "Expectations"
    judged = expectations(pipeline.decode)
    rows = []
    for one in judged:
        counts = [sum(each.counts.get(one.reason, 0) for each in batches) for batches in (of_run, every)]
        read = [sum(each.read for each in batches if one.reason in each.counts) for batches in (of_run, every)]
        shares = [f"{count / max(1, among):.2%}" for count, among in zip(counts, read, strict=True)]
        rows.append((one.reason, one.level, f"{counts[0]:,}", shares[0], f"{counts[1]:,}", shares[1]))
    _table(body, ("expectation", "level", "rows not meeting it", "of this run", "in all runs", "of all runs"), rows)
    SubElement(body, "p").text = "Rows of each batch that did not meet it, of all runs, the newest batches."
    charts = SubElement(body, "div", {"class": "charts"})
    for one in judged:
        batches = [each for each in every if one.reason in each.counts][-BATCHES:]
        if batches:
            title = f"{one.reason} ({one.level})"
            labels = [f"{each.at:{TIME}}" for each in batches]
            values = [each.counts[one.reason] for each in batches]
            _card(charts, title).append(bars(f"Expectation {title}", values, labels))


def _silver(body: Element, reasons: Counter[str], accepted: Counter[str], duplicates: int) -> None:
    reasons.update({"duplicate": duplicates} if duplicates else {})
    if reasons:
        SubElement(body, "h2").text = "Not accepted so far"
        total = sum(accepted.values()) + sum(reasons.values())
        rows = [(name, f"{count:,}", f"{count / total:.2%}") for name, count in reasons.most_common()]
        _table(body, ("reason", "rows", "of all"), rows)
    if accepted:
        SubElement(body, "h2").text = "Silver"
        charts = SubElement(body, "div", {"class": "charts"})
        title = "accepted rows by event date"
        shown = sorted(accepted)[-DAYS:]
        _card(charts, title).append(bars(title, [accepted[day] for day in shown], shown))


def _retention(body: Element, pipeline: Pipeline) -> None:
    removed = removals(pipeline)
    if removed:
        SubElement(body, "h2").text = "Removed by retention so far"
        rows = [(one.table, f"{one.rows:,}", f"{one.files:,}", f"{one.bytes:,}", one.until) for one in removed]
        _table(body, ("table", "rows", "files", "bytes", "until"), rows)


def _aggregate(body: Element, pipeline: Pipeline, name: str, newest: datetime | None) -> None:
    """The first measure: a panel for each of the largest groups, all with one scale."""
    aggregate = pipeline.aggregates[name]
    measure = next(iter(aggregate.measures))
    every = groups_of(pipeline, name)
    groups = {
        group: [(_utc(start), float(value)) for start, value in points if value is not None][-WINDOWS:]
        for group, points in list(every.items())[:GROUPS]
    }
    values = [value for points in groups.values() for _, value in points]
    if not values:
        return
    window = window_of(pipeline, name)
    length = timedelta(seconds=seconds_of(window) or 0)
    most_recent = max(start for points in groups.values() for start, _ in points)
    SubElement(body, "h2").text = f"{name}: {measure} = {aggregate.measures[measure]}"
    of_all = f"The {GROUPS} largest of {len(every):,} groups. " if len(every) > GROUPS else ""
    SubElement(body, "p").text = (
        f"{of_all}Windows of {window}, all panels with one scale. "
        "Hatched: unfinished, the window had not ended at the newest event."
    )
    charts = SubElement(body, "div", {"class": "charts"})
    form = DATE if length >= timedelta(days=1) else TIME
    for group, points in groups.items():
        title = ", ".join(map(str, group)) or measure
        is_open = [start + length > newest if newest else start == most_recent for start, _ in points]
        labels = [f"{start:{form}}" for start, _ in points]
        labels = [f"{label} (unfinished)" if each else label for label, each in zip(labels, is_open, strict=True)]
        chart = bars(
            f"{name}: {title}",
            [value for _, value in points],
            labels,
            least=min([0.0, *values]),
            most=max([0.0, *values]),
            unfinished=sum(is_open),
        )
        _card(charts, title).append(chart)


def _card(charts: Element, title: str) -> Element:
    card = SubElement(charts, "div", {"class": "card"})
    SubElement(card, "h3").text = title
    return card


def _table(body: Element, names: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    table = SubElement(SubElement(body, "div", {"class": "wide"}), "table")
    for kind, cells in [("th", names), *(("td", row) for row in rows)]:
        line = SubElement(table, "tr")
        for cell in cells:
            SubElement(line, kind).text = cell


def rejects_of(rejects: Table) -> dict[tuple[str, int], int]:
    """Refused rows by query and batch, as far as the log reaches back."""
    refused: Counter[tuple[str, int]] = Counter()
    for commit in rejects.existing_commits():
        if commit.kind == NEW_ROWS:
            refused[commit.query, commit.batch] += sum(one.rows for one in commit.added)
    return refused


def _newest_event(pipeline: Pipeline) -> dict[str, datetime]:
    """The newest event time that each aggregate has read, in any run."""
    newest: dict[str, datetime] = {}
    for run in runs(pipeline):
        for one in progress_of(run):
            told = (one.get("eventTime") or {}).get("max")
            if told:
                at = _parsed(told)
                newest[one["name"]] = max(at, newest.get(one["name"], at))
    return newest


def lag_of(document: Document) -> int | None:
    """Offsets that Kafka had and the batch did not read; None for a stage that reads no Kafka."""
    total = 0
    for source in document.get("sources", ()):
        latest, end = source.get("latestOffset"), source.get("endOffset")
        if not isinstance(latest, dict) or not isinstance(end, dict):
            return None
        read = offsets_of(end)
        total += sum(max(0, offset - read.get(tp, 0)) for tp, offset in offsets_of(latest).items())
    return total if document.get("sources") else None


def seconds_of_batch(document: Document) -> float:
    millis: int = document["durationMs"].get("triggerExecution", 0)
    return max(1, millis) / 1000


def _began(document: Document) -> datetime:
    return _parsed(document["timestamp"])


def _parsed(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=timezone.utc)


def _utc(at: datetime) -> datetime:
    return at if at.tzinfo else at.replace(tzinfo=timezone.utc)
