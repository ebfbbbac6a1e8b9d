"""What a stage is still to read, told by the logs."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

from pykafka08.spark.pipeline.settings import Pipeline, read
from pykafka08.spark.pipeline.tables.table import Table
from pykafka08.spark.pipeline.waiting import Waiting, waiting
from tests.spark.pipeline import orders
from tests.spark.pipeline.made_tables import commit, file, made

READERS = ("dead-letters", "aggregate-hourly")


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    """Ten commits to silver and to rejects with a row each."""
    pipeline = read(orders.written_config(tmp_path, "nobody:1"))
    for table in (made(pipeline.silver), made(pipeline.rejects)):
        for batch in range(10):
            commit(table, "batch", file(table, str(batch), {"id": [batch]}), query="decode-shop", batch=batch)
    return pipeline


def read_up_to(pipeline: Pipeline, reader: str, version: int) -> None:
    """Leave the checkpoint of a stage that has read the table's commits up to a version."""
    for name, text in (("offsets", f'v1\n{{}}\n{{"version": {version}}}'), ("commits", "v1\n{}")):
        path = Path(pipeline.checkpoint(reader), name, "0")
        path.parent.mkdir(parents=True)
        path.write_text(text)


def found(pipeline: Pipeline) -> list[int]:
    return [waiting(pipeline)[reader].rows for reader in READERS]


def test_rows_behind_what_a_stage_has_committed_wait(pipeline: Pipeline) -> None:
    size = sum(one.bytes for one in Table(pipeline.silver).live())
    assert waiting(pipeline) == {
        "decode-shop": Waiting(0, 0, 0, 0),
        "dead-letters": Waiting(10, 10, size, 2),
        "aggregate-hourly": Waiting(10, 10, size, 2),
        "publish-hourly": Waiting(0, 0, 0, 0),
    }
    read_up_to(pipeline, READERS[0], 6)
    assert found(pipeline) == [4, 10]


def test_a_stage_that_was_added_after_commits_went_waits_for_what_the_table_holds(pipeline: Pipeline) -> None:
    read_up_to(pipeline, READERS[0], 10)
    for folder in (pipeline.silver, pipeline.rejects):
        DeltaTable(folder).create_checkpoint()
        for path in Path(folder / "_delta_log").glob("*[0-8].json"):
            path.unlink()
    with pytest.raises(LookupError):
        Table(pipeline.silver).commits()
    assert found(pipeline) == [0, 10]
