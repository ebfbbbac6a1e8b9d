"""The picture of a run is drawn whatever there is to show."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pykafka08.spark.pipeline import charts, settings
from pykafka08.spark.pipeline.table import ACCEPTED, Added, Entry, Table
from tests.spark.pipeline import orders

PNG = b"\x89PNG"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "out" / "runs" / "20240301T120000.000000Z"
    folder.mkdir(parents=True)
    (folder / "progress.jsonl").touch()
    return folder


def test_a_run_without_a_row(run: Path, tmp_path: Path) -> None:
    pipeline = settings.read(orders.written_config(tmp_path, "localhost:9092"))
    assert charts.draw(pipeline, run).read_bytes().startswith(PNG)


def test_one_day_and_one_window(run: Path, tmp_path: Path) -> None:
    pipeline = settings.read(orders.written_config(tmp_path, "localhost:9092"))
    progress = {"name": "ingest-shop", "numInputRows": 3, "durationMs": {"triggerExecution": 10}}
    (run / "progress.jsonl").write_text(json.dumps(progress) + "\n")
    silver, gold = Table(pipeline.silver), Table(pipeline.gold("hourly"))
    assert silver.commit(Entry(0, "batch", "q", 0, (Added("data/a", ACCEPTED, "2024-03-01", 3, 1),)))
    (gold.folder / "data").mkdir(parents=True)
    window = {"window_start": [0], "kind": ["a"], "orders": [3], "_batch": [0]}
    pq.write_table(pa.table(window), gold.folder / "data" / "a.parquet")
    assert gold.commit(Entry(0, "batch", "q", 0, (Added("data/a.parquet", "rows", "", 1, 1),)))
    assert charts.draw(pipeline, run).read_bytes().startswith(PNG)
