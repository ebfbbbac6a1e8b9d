"""Offsets in commits and checkpoints: a replay with other offsets is refused, and a run restores the offsets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pykafka08.spark.pipeline.checkpoints import offset_text
from pykafka08.spark.pipeline.replaying import OffsetsError, is_committed, restore_offsets
from pykafka08.spark.pipeline.stores import Folder, local_folder
from pykafka08.spark.pipeline.tables.model import Commit
from pykafka08.spark.pipeline.tables.table import Table
from tests.spark.pipeline.made_tables import made
from tests.stores.places import Place


def ends(offset: int) -> str:
    return json.dumps({"orders": {"0": offset}})


def planned(checkpoint: Folder, batch: int, offset: int) -> None:
    (checkpoint / "offsets" / str(batch)).write_text(f'v1\n{{"batchWatermarkMs":0}}\n{ends(offset)}')


def committed(table: Table, batch: int, offset: int, query: str = "q") -> None:
    assert table.commit(Commit(table.version + 1, "batch", query, batch, counts={"rows": 1}, offsets=ends(offset)))


@pytest.fixture
def checkpoint(tmp_path: Path) -> Folder:
    return local_folder(tmp_path / "checkpoint")


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return made(tmp_path / "table")


def test_a_replay_with_the_same_offsets_commits_nothing(table: Table, checkpoint: Folder) -> None:
    planned(checkpoint, 0, 10)
    assert not is_committed(table, checkpoint, "q", 0)
    committed(table, 0, 10)
    committed(table, 0, 99, query="of another source")
    assert is_committed(table, checkpoint, "q", 0)
    assert restore_offsets(table, checkpoint, "q") == -1
    assert not is_committed(table, checkpoint, "q", 1)


def test_a_replay_with_other_offsets_is_refused(table: Table, checkpoint: Folder) -> None:
    committed(table, 0, 10)
    planned(checkpoint, 0, 30)
    with pytest.raises(
        OffsetsError,
        match=r"checkpoint: the offsets of batch 0 differ from those that q has committed to .*table; stop",
    ):
        is_committed(table, checkpoint, "q", 0)


def test_a_replay_of_an_old_batch_is_refused(table: Table, checkpoint: Folder) -> None:
    """The batch may have other records, because batches of a new checkpoint start at 0 again."""
    for batch in range(3):
        committed(table, batch, 10 * batch)
    planned(checkpoint, 1, 10)
    with pytest.raises(
        OffsetsError, match=r"batch 1 of q is replayed, but .*table has batch 2; restore the checkpoint"
    ):
        is_committed(table, checkpoint, "q", 1)


@pytest.mark.parametrize("stored", ["file", "s3a"], indirect=True)
def test_offsets_are_restored(stored: Place) -> None:
    table = made(Folder(stored.address("restored/table"), stored.storage))
    checkpoint = Folder(stored.address("restored/checkpoint"), stored.storage)
    for batch in range(2):
        planned(checkpoint, batch, 10 * batch)
        committed(table, batch, 10 * batch)
    planned(checkpoint, 1, 999)
    planned(checkpoint, 2, 20)
    assert restore_offsets(table, checkpoint, "q") == 1
    assert [offset_text(checkpoint, batch) for batch in range(3)] == [ends(0), ends(10), ends(20)]
    assert (checkpoint / "offsets" / "1").read_text().splitlines()[:2] == ["v1", '{"batchWatermarkMs":0}']
    assert restore_offsets(table, checkpoint, "q") == -1


def test_a_batch_without_offsets_in_its_commit_is_committed(table: Table, checkpoint: Folder) -> None:
    """Commits of earlier versions have no offsets."""
    assert table.commit(Commit(1, "batch", "q", 0))
    planned(checkpoint, 0, 30)
    assert is_committed(table, checkpoint, "q", 0)
    assert restore_offsets(table, checkpoint, "q") == -1
