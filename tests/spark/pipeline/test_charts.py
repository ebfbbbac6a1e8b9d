"""The picture of a run is drawn whatever there is to show."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pykafka08.spark.pipeline import charts, settings
from pykafka08.spark.pipeline.stores import local_folder
from pykafka08.spark.pipeline.tables.model import DataFile
from tests.spark.pipeline import orders
from tests.spark.pipeline.made_tables import commit, file, made

PNG = b"\x89PNG"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "out" / "runs" / "20240301T120000.000000Z"
    folder.mkdir(parents=True)
    (folder / "progress.jsonl").touch()
    return folder


def test_a_run_without_a_row(run: Path, tmp_path: Path) -> None:
    pipeline = settings.read(orders.written_config(tmp_path, "localhost:9092"))
    assert charts.draw(pipeline, local_folder(run)).read_bytes().startswith(PNG)


def test_one_day_and_one_window(run: Path, tmp_path: Path) -> None:
    pipeline = settings.read(orders.written_config(tmp_path, "localhost:9092"))
    progress = {"name": "ingest-shop", "numInputRows": 3, "durationMs": {"triggerExecution": 10}}
    (run / "progress.jsonl").write_text(json.dumps(progress) + "\n")
    silver, gold = made(pipeline.silver, id="long", day="date"), made(pipeline.gold("hourly"))
    commit(silver, "batch", DataFile("data/a", 3, 1, {"day": "2024-03-01"}))
    commit(gold, "batch", file(gold, "a", {"window_start": [0], "kind": ["a"], "orders": [3], "_batch": [0]}))
    assert charts.draw(pipeline, local_folder(run)).read_bytes().startswith(PNG)


@pytest.mark.parametrize(
    ("measures", "largest"),
    [('{ mean = "avg(amount)", orders = "count( * )" }', "b"), ('{ mean = "avg(amount)" }', "a")],
)
def test_the_groups_with_most_rows_come_first_where_these_are_counted(
    tmp_path: Path, measures: str, largest: str
) -> None:
    """Without such a measure those with most windows; of each window the newest row."""
    config = orders.written_config(tmp_path, "localhost:9092")
    config.write_text(config.read_text().replace('{ orders = "count(*)", amount = "sum(amount)" }', measures))
    pipeline = settings.read(config)
    gold = made(pipeline.gold("hourly"))
    rows = {
        "window_start": [2, 1, 1, 1],
        "kind": ["a", "a", "b", "b"],
        "mean": [1.5, 2.5, 3.5, 4.5],
        "orders": [1, 1, 900, 1000],
        "_batch": [0, 0, 0, 1],
    }
    commit(gold, "batch", file(gold, "a", rows))
    groups = charts.groups_of(pipeline, "hourly")
    assert groups == {("a",): [(1, 2.5), (2, 1.5)], ("b",): [(1, 4.5)]}
    assert next(iter(groups)) == (largest,)
