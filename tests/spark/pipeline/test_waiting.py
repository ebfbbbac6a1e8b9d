"""What a stage is still to read, told by the logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykafka08.spark.pipeline import table as table_module
from pykafka08.spark.pipeline.settings import Pipeline, read
from pykafka08.spark.pipeline.table import ACCEPTED, REJECTED, Added, Entry, Table
from pykafka08.spark.pipeline.waiting import Waiting, waiting
from tests.spark.pipeline import orders

READERS = ("dead-letters", "aggregate-hourly")


@pytest.fixture
def pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    """Ten entries of silver with a row accepted and one rejected, a snapshot behind each third entry."""
    monkeypatch.setattr(table_module, "SNAPSHOT_EVERY", 3)
    pipeline = read(orders.written_config(tmp_path, "nobody:1"))
    table = Table(pipeline.silver)
    for version in range(10):
        parts = (ACCEPTED, REJECTED)
        added = tuple(Added(f"data/{version}/{part}.parquet", part, "", 1, 7) for part in parts)
        for one in added:
            path = table.folder / one.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"1234567")
        assert table.commit(Entry(version, "batch", "decode-shop", version, added))
    return pipeline


def read_up_to(pipeline: Pipeline, reader: str, version: int) -> None:
    """Leave the checkpoint of a stage that has read the table's entries up to a version."""
    for name, text in (("offsets", f'v1\n{{}}\n{{"version": {version}}}'), ("commits", "v1\n{}")):
        path = pipeline.checkpoint(reader) / name / "0"
        path.parent.mkdir(parents=True)
        path.write_text(text)


def found(pipeline: Pipeline) -> list[int]:
    return [waiting(pipeline)[reader].rows for reader in READERS]


def test_rows_behind_what_a_stage_has_committed_wait(pipeline: Pipeline) -> None:
    assert waiting(pipeline) == {
        "decode-shop": Waiting(0, 0, 0, None),
        "dead-letters": Waiting(10, 10, 70, 2),
        "aggregate-hourly": Waiting(10, 10, 70, 2),
        "publish-hourly": Waiting(0, 0, 0, 0),
    }
    read_up_to(pipeline, READERS[0], 5)
    assert found(pipeline) == [4, 10]


def test_a_stage_that_was_added_after_entries_went_waits_for_what_the_table_holds(pipeline: Pipeline) -> None:
    table = Table(pipeline.silver)
    read_up_to(pipeline, READERS[0], 9)
    table.expire(9, with_attempts=False)
    with pytest.raises(LookupError):
        table.entries()
    assert found(pipeline) == [0, 10]
