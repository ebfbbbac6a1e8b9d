"""The page of a run: what it shows, and that names of others cannot become markup."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pykafka08.spark.pipeline import report, settings
from pykafka08.spark.pipeline.settings import Pipeline
from pykafka08.spark.pipeline.stores import local_folder
from pykafka08.spark.pipeline.tables.model import Commit, DataFile
from pykafka08.spark.pipeline.tables.table import Table
from tests.spark.pipeline import orders
from tests.spark.pipeline.made_tables import commit, file, made

HOSTILE = "<script>alert(1)</script>"
HOUR = 3_600_000_000


class Page(HTMLParser):
    """Elements with their attributes, and the text of each kind of element."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.text: dict[str, list[str]] = {}
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self._within = ""
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._within = tag

    def handle_data(self, data: str) -> None:
        self.text.setdefault(self._within, []).append(data)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "out" / "runs" / "20240301T120000.000000Z"
    folder.mkdir(parents=True)
    (folder / "progress.jsonl").touch()
    return folder


def progress(name: str, batch: int, second: int, **more: Any) -> dict[str, Any]:
    took = {"triggerExecution": 2000}
    at = f"2024-03-01T12:00:{second:02}.000Z"
    return {"name": name, "id": "q", "batchId": batch, "timestamp": at, "numInputRows": 30, "durationMs": took, **more}


def filled(folder: Path, run: Path) -> Pipeline:
    """Two batches of Kafka, one of silver with a refused row, and three windows of which the last is unfinished."""
    pipeline = settings.read(orders.written_config(folder, "localhost:9092"))
    sources = [
        [{"endOffset": {"orders": {"0": end}}, "latestOffset": {"orders": {"0": 60}}}] for end in (30, 60)
    ]  # fmt: skip
    documents = [
        progress("ingest-shop", 0, 0, sources=sources[0]),
        progress("ingest-shop", 1, 2, sources=sources[1]),
        progress("decode-shop", 0, 4),
        progress("aggregate-hourly", 0, 6, eventTime={"max": "1970-01-01T02:30:00.000Z"}),
    ]
    (run / "progress.jsonl").write_text("".join(json.dumps(one) + "\n" for one in documents))
    silver, rejects = made(pipeline.silver, id="long", day="date"), made(pipeline.rejects)
    commit(silver, "batch", DataFile("data/a", 59, 1, {"day": "2024-03-01"}), query="decode-shop")
    commit(rejects, "batch", file(rejects, "r", {"reason": [f"rule: {HOSTILE}"]}), query="decode-shop")
    gold = made(pipeline.gold("hourly"))
    starts = pa.array([0, HOUR, 2 * HOUR], pa.timestamp("us", "UTC"))
    windows = {"window_start": starts, "kind": [HOSTILE] * 3, "orders": [3, 4, 5], "_batch": [0] * 3}
    commit(gold, "batch", file(gold, "w", windows), query="aggregate-hourly")
    return pipeline


def test_names_of_others_are_text_and_nothing_is_loaded(tmp_path: Path, run: Path) -> None:
    path = report.write(filled(tmp_path, run), local_folder(run))
    page = Page(path)
    assert f"rule: {HOSTILE}" in page.text["td"]
    assert HOSTILE in page.text["h3"]
    assert "script" not in {tag for tag, _ in page.elements}
    attributes = [name for _, each in page.elements for name in each]
    assert not [name for name in attributes if name.startswith("on") or name in ("src", "href", "xlink:href")]
    assert "http" not in path.read_text(encoding="utf-8")


def test_batches_lag_and_refused_rows_over_the_time_of_the_run(tmp_path: Path, run: Path) -> None:
    page = Page(report.write(filled(tmp_path, run), local_folder(run)))
    stages = page.text["td"]
    row = stages.index("ingest-shop")
    assert stages[row : row + 7] == ["ingest-shop", "2", "60", "4.0", "15", "2.0", "12:00:04"]
    titles = page.text["title"]
    lag = titles.index("Lag after each batch, offsets: ingest-shop")
    assert titles[lag + 1 : lag + 3] == ["after 2.0 s: 30", "after 4.0 s: 0"]
    refused = titles.index("Refused rows of each batch: decode-shop")
    assert titles[refused + 1] == "after 6.0 s: 1"


def test_a_window_that_the_newest_event_is_in_is_hatched(tmp_path: Path, run: Path) -> None:
    page = Page(report.write(filled(tmp_path, run), local_folder(run)))
    hatched = [each for tag, each in page.elements if tag == "rect" and each.get("fill") == "url(#unfinished)"]
    assert len(hatched) == 1
    windows = [text for text in page.text["title"] if text.startswith("1970-01-01")]
    assert windows == [
        "1970-01-01 00:00: 3",
        "1970-01-01 01:00: 4",
        "1970-01-01 02:00 (unfinished): 5",
    ]


def test_rows_that_retention_has_removed_were_accepted(tmp_path: Path, run: Path) -> None:
    pipeline = filled(tmp_path, run)
    counts = {"removed": 41, "removed_files": 2, "removed_bytes": 1_000}
    removal = Commit(2, "retention", "retention", 2, counts=counts, retention={"until": "2024-02-28"})
    assert Table(pipeline.silver).commit(removal)
    page = Page(report.write(pipeline, local_folder(run)))
    assert page.text["b"][3:] == ["100", "1", "0"]
    assert page.text["td"][-5:] == ["silver", "41", "2", "1,000", "2024-02-28"]


@pytest.mark.parametrize(
    ("end", "text"), [(2 * HOUR, "2 hours"), (24 * HOUR, "1 day"), (90_000_000, "90 seconds"), (1_500, "1500 microsec")]
)
def test_the_windows_of_a_query_are_as_long_as_in_gold(tmp_path: Path, run: Path, end: int, text: str) -> None:
    keys = 'window = "1 hour"\nwatermark = "30 days"\ngroup_by = ["kind"]\n'
    config = orders.written_config(tmp_path, "localhost:9092", writes_to_kafka=False)
    query = config.read_text().replace(keys, 'watermark = "30 days"\nsql = "SELECT"\n')
    measures = 'measures = { orders = "count(*)", amount = "sum(amount)" }\n'
    config.write_text(query.replace(measures, ""))
    pipeline = settings.read(config)
    hourly = replace(pipeline.aggregates["hourly"], group_by=("kind",), measures={"orders": "count(1)"})
    gold = made(pipeline.gold("hourly"))
    bounds = {f"window_{name}": pa.array([at], pa.timestamp("us", "UTC")) for name, at in (("start", 0), ("end", end))}
    commit(gold, "batch", file(gold, "w", {**bounds, "kind": ["a"], "orders": [3], "_batch": [0]}), query="aggregate")
    pipeline = replace(pipeline, aggregates={"hourly": hourly})
    page = Page(report.write(pipeline, local_folder(run)))
    assert "hourly: orders = count(1)" in page.text["h2"]
    assert any(f"Windows of {text}" in one for one in page.text["p"])


def test_a_run_without_a_row_has_a_page(tmp_path: Path, run: Path) -> None:
    pipeline = settings.read(orders.written_config(tmp_path, "localhost:9092"))
    page = Page(report.write(pipeline, local_folder(run)))
    assert page.text["p"] == ["Run 20240301T120000.000000Z: no batch had a row"]
    assert page.text["b"] == ["0", "0", "0.0", "0", "0", "0"]
