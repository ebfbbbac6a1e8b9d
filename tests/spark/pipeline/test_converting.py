"""Conversion of a folder of an earlier version: rows, totals, and the positions of stages."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Mapping
from datetime import date, datetime, timezone
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from pykafka08.cli.main import main
from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline import settings, verifying
from pykafka08.spark.pipeline.converting import commit_next, convert
from pykafka08.spark.pipeline.leasing import leased
from pykafka08.spark.pipeline.old_layout import check_layout
from pykafka08.spark.pipeline.settings import Pipeline
from pykafka08.spark.pipeline.tables.model import Commit
from pykafka08.spark.pipeline.tables.table import Table
from pykafka08.spark.pipeline.waiting import waiting
from tests.spark.pipeline import orders
from tests.spark.pipeline.made_tables import made as made_table

AT = datetime(2024, 3, 1, 10, tzinfo=timezone.utc)
DAY = AT.date().isoformat()
KINDS = {
    "_partition": pa.int32(),
    "partition": pa.int32(),
    "amount": pa.int32(),
    "value": pa.binary(),
    "key": pa.binary(),
}


def written(path: Path, rows: list[dict[str, Any]]) -> int:
    """Write a Parquet file; its size in bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = {name: pa.array([row[name] for row in rows], KINDS.get(name)) for name in rows[0]}
    pq.write_table(pa.table(columns), path)
    return path.stat().st_size


def place(offset: int) -> dict[str, Any]:
    return {"_source": "shop", "_topic": "orders", "_partition": 0, "_offset": offset, "_timestamp": AT}


def accepted(offset: int) -> dict[str, Any]:
    order = {"id": offset, "kind": "a", "amount": 1, "at": AT}
    return {**order, "event_time": AT, "event_date": date(2024, 3, 1), **place(offset)}


def refused(offset: int) -> dict[str, Any]:
    return {"key": b"k", "value": b"{broken", "reason": "not json of the schema", **place(offset)}


class Old:
    """A folder as written by an earlier version."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def entry(
        self, table: str, version: int, kind: str, parts: Mapping[str, list[int]], removed: tuple[str, ...]
    ) -> None:
        added = []
        for part, offsets in parts.items():
            day = f"day={DAY}/" if part == "accepted" else ""
            path = f"data/{version}/{part}/{day}x.parquet"
            size = written(self.root / table / path, [(accepted if day else refused)(one) for one in offsets])
            added.append({"path": path, "part": part, "day": DAY if day else "", "rows": len(offsets), "bytes": size})
        read = sum(map(len, parts.values())) if kind == "batch" else 0
        document = {"version": version, "kind": kind, "query": "decode-shop", "batch": version, "added": added}
        document |= {"removed": list(removed), "counts": {"read": read} if read else {}}
        self.write(f"{table}/log/{version:020d}.json", json.dumps(document))

    def bronze(self, batch: int, offsets: list[int]) -> str:
        path = self.root / "bronze/shop/topic=orders/ingest_date=2024-03-01" / f"part-{batch}.parquet"
        rows = [{"key": b"k", "value": b"v", "partition": 0, "offset": one, "timestamp": AT} for one in offsets]
        written(path, rows)
        self.write(f"bronze/shop/_spark_metadata/{batch}", "v1\n" + json.dumps({"path": path.as_uri(), "size": 1}))
        return path.as_uri()

    def batch(self, stage: str, number: int, offset: Any) -> None:
        self.write(f"checkpoints/{stage}/offsets/{number}", f"v1\n{{}}\n{json.dumps(offset)}")
        self.write(f"checkpoints/{stage}/commits/{number}", "v1\n{}")

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    """Bronze has five offsets, silver four of them; its windows are of three, of which one was published."""
    pipeline = settings.read(orders.written_config(tmp_path, "localhost:9092"))
    old = Old(Path(pipeline.root))
    first, _ = old.bronze(0, [0, 1, 2, 3]), old.bronze(1, [4])
    old.write("checkpoints/decode-shop/sources/0/0", "v1\n" + json.dumps({"path": first, "batchId": 0}))
    for batch, end in enumerate((4, 5)):
        old.batch("ingest-shop", batch, {"orders": {"0": end}})
    old.batch("decode-shop", 0, {"logOffset": 0})
    old.entry("silver", 0, "batch", {"accepted": [0], "rejected": [1]}, ())
    old.entry("silver", 1, "compaction", {"accepted": [0]}, (f"data/0/accepted/day={DAY}/x.parquet",))
    old.entry("silver", 2, "batch", {"accepted": [2], "rejected": [3]}, ())
    Path(pipeline.root, f"silver/data/0/accepted/day={DAY}/x.parquet").unlink()
    old.batch("aggregate-hourly", 0, {"version": 1})
    old.batch("dead-letters", 0, {"version": 2})
    return pipeline


def test_an_old_folder_is_told_by_every_other_command(pipeline: Pipeline, capsys: pytest.CaptureFixture[str]) -> None:
    for action in ("run", "status", "verify", "plan"):
        assert main(["pipeline", action, str(Path(pipeline.root).parent / "orders.toml")]) == 2
        assert "`pykafka08 pipeline convert CONFIG.toml` makes Delta tables of them" in capsys.readouterr().err


def test_a_conversion_that_was_killed_before_the_last_rename_is_completed(pipeline: Pipeline) -> None:
    root = Path(pipeline.root)
    root.rename(root.with_name("out.before-conversion"))
    made_table(root.with_name("out.converting") / "silver")
    with pytest.raises(ConfigError, match="pykafka08 pipeline convert"):
        check_layout(pipeline)
    said: list[str] = []
    convert(no_spark, pipeline, said.append)  # no rows are left to convert
    assert {path.name for path in root.parent.glob("out*")} == {"out", "out.before-conversion"}
    assert Table(pipeline.silver).version == 0
    check_layout(pipeline)


def no_spark() -> SparkSession:
    raise AssertionError("no session is needed")


def test_a_folder_in_use_is_refused_before_spark_starts(pipeline: Pipeline) -> None:
    with leased(pipeline.root, ["decode-shop"]), pytest.raises(ConfigError, match=r"out is in use: decode-shop on"):
        convert(no_spark, pipeline, print)
    with Path(pipeline.root, ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)  # as versions without leases lock the folder
        with pytest.raises(ConfigError, match="a run or a backfill writes to"):
            convert(no_spark, pipeline, print)


def test_a_folder_that_another_program_writes_to_is_not_converted(tmp_path: Path) -> None:
    table, commit = made_table(tmp_path / "silver"), Commit(1, "batch", "conversion", 0)
    commit_next(table, commit)
    with pytest.raises(ConfigError, match=r"another program writes to .*silver; end it, and repeat the conversion"):
        commit_next(table, commit)


def test_rows_and_positions_are_as_before(spark: SparkSession, pipeline: Pipeline) -> None:
    said: list[str] = []
    convert(lambda: spark, pipeline, said.append)
    assert {path.name for path in Path(pipeline.root).parent.glob("out*")} == {"out", "out.before-conversion"}
    assert said[-1].startswith(f"{pipeline.root} has Delta tables now")
    assert sorted(DeltaTable(pipeline.bronze("shop")).to_pyarrow_table()["offset"].to_pylist()) == [0, 1, 2, 3, 4]
    assert sorted(row["id"] for row in verifying.silver_of(spark, pipeline).collect()) == [0, 2]
    assert sorted(row["_offset"] for row in verifying.rejects_of(spark, pipeline).collect()) == [1, 3]
    silver = Table(pipeline.silver)
    assert (silver.state().counts, silver.state().brought) == ({"read": 4}, {"batch": 2, "compaction": 1})
    assert (silver.holds("decode-shop", 2), Table(pipeline.bronze("shop")).newest("ingest-shop")) == (True, 1)
    rows = {stage: each.rows for stage, each in waiting(pipeline).items()}
    assert rows == {"decode-shop": 1, "dead-letters": 0, "aggregate-hourly": 1, "publish-hourly": 0}
    ingested, decoded = islice(verifying.verify(spark, pipeline), 2)  # the others ask Kafka
    assert decoded.is_right, decoded.text
    assert "1 pending" in decoded.text
    assert ingested.text == "nothing was read yet"  # the start was not kept
    with pytest.raises(ConfigError, match="no tables of an earlier version"):
        convert(no_spark, pipeline, said.append)
