"""Rows of gold that later ones replaced."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pytest

from pykafka08.spark.pipeline.compacting import newest

HOUR = timedelta(hours=1)
START = datetime(2024, 3, 1, tzinfo=timezone.utc)
KEY = ["window_start", "window_end", "kind"]


def gold(*rows: tuple[int, Any, int, int], kind: pa.DataType | None = None) -> pa.Table:
    """Hour, group, measure and batch of each."""
    columns = {
        "window_start": pa.array([START + row[0] * HOUR for row in rows], pa.timestamp("us", "UTC")),
        "window_end": pa.array([START + (row[0] + 1) * HOUR for row in rows], pa.timestamp("us", "UTC")),
        "kind": pa.array([row[1] for row in rows], kind or pa.string()),
        "orders": pa.array([row[2] for row in rows], pa.int64()),
        "_batch": pa.array([row[3] for row in rows], pa.int64()),
    }
    return pa.table(columns)


def test_of_each_window_and_group_the_row_of_the_highest_batch_stays() -> None:
    rows = [(0, "a", 9, 12), (0, "a", 1, 2), (0, None, 3, 2), (1, "a", 4, 2), (0, "b", 5, 7), (0, None, 6, 3)]
    kept = newest(gold(*rows), KEY)
    assert kept.schema == gold().schema
    assert sorted(kept["orders"].to_pylist()) == [4, 5, 6, 9]
    assert newest(gold(), KEY).num_rows == 0


@pytest.mark.parametrize("kind", [pa.list_(pa.int64()), pa.struct([("x", pa.int64())])])
def test_groups_that_arrow_cannot_compare_keep_their_rows(kind: pa.DataType) -> None:
    rows = gold((0, None, 1, 1), (0, None, 2, 2), kind=kind)
    assert newest(rows, KEY).num_rows == 2
