"""Compaction: groups of files, and commits of other writers meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pykafka08.spark.pipeline import compacting
from pykafka08.spark.pipeline.leasing import leased
from pykafka08.spark.pipeline.settings import Compaction, parse
from pykafka08.spark.pipeline.tables.model import Commit, DataFile
from pykafka08.spark.pipeline.tables.table import Table
from tests.spark.pipeline.made_tables import NO_BROKER, commit, file, made

DAYS = ("2024-03-01", "2024-03-02")


def sized(name: str, size: int, day: str = DAYS[0]) -> DataFile:
    return DataFile(name, 1, size, {"day": day})


def test_files_of_a_partition_are_joined_up_to_a_size() -> None:
    files = [sized("a", 40), sized("b", 40), sized("large", 200), sized("c", 40), sized("d", 90)]
    files += [sized("x", 10, DAYS[1]), sized("y", 10, DAYS[1])]
    groups = list(compacting.groups(files, Compaction(target_bytes=100)))
    assert [[one.path for one in group] for group in groups] == [["a", "b"], ["x", "y"]]
    assert list(compacting.groups(files, Compaction(target_bytes=100, min_files=3))) == []


@pytest.fixture
def table(tmp_path: Path) -> Table:
    table = made(tmp_path / "table", id="long", day="date")
    for number, day in enumerate((*DAYS, *DAYS)):
        commit(table, "batch", file(table, str(number), {"id": [number]}, day), batch=number)
    return table


def test_joined_files_are_sorted_by_the_columns_of_the_settings(spark: SparkSession, tmp_path: Path) -> None:
    table = made(tmp_path / "table", id="long", kind="string")
    for number, kinds in enumerate((["c", "a"], ["b", "a"])):
        commit(table, "batch", file(table, str(number), {"id": [number, number + 10], "kind": kinds}), batch=number)
    compacting._join(spark, table, Compaction(), ["kind", "id"])
    (joined,) = table.live()
    read = table.read(joined, ["kind", "id"]).to_pylist()
    assert [(row["kind"], row["id"]) for row in read] == [("a", 10), ("a", 11), ("b", 1), ("c", 0)]


def rows(spark: SparkSession, table: Table) -> list[int]:
    return sorted(row[0] for row in spark.read.parquet(*table.paths(table.live())).select("id").collect())


def test_a_commit_of_others_meanwhile_is_kept(
    spark: SparkSession, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit that adds a file changes nothing; after a commit that replaces a joined file, compaction gives up."""
    swap = compacting.swap

    def amid(table: Table, commit: Commit) -> bool:
        meanwhile()
        return swap(table, commit)

    def brings() -> None:
        commit(table, "batch", file(table, f"{table.version}", {"id": [table.version]}, DAYS[0]))

    def replaces() -> None:
        old = next(one for one in table.live() if one.day == DAYS[0])
        new = file(table, "new", {"id": [100]}, DAYS[0])
        table.commit(Commit(table.version + 1, "backfill", "b", 0, (new,), (old.path,)))

    monkeypatch.setattr(compacting, "swap", amid)
    meanwhile = brings
    compacting._join(spark, table, Compaction())
    assert (rows(spark, table), len(table.live())) == ([0, 1, 2, 3, 4], 3)
    meanwhile = replaces
    compacting._join(spark, table, Compaction())
    assert table.commits()[-1].kind == "backfill"


def test_gold_is_rewritten_only_with_the_lease_of_its_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings of a run of other stages may be older than the last restatement of gold."""
    aggregate = 'watermark = "1 hour"\nwindow = "1 hour"\nmeasures = { n = "count(*)" }'
    text = f"""{NO_BROKER}
[decode]
format = "json"
schema = "at TIMESTAMP"
event_time = "at"
[aggregates.hourly]
{aggregate}
[aggregates.other]
{aggregate}
"""
    pipeline = parse(text, tmp_path)
    rewritten: list[str] = []
    monkeypatch.setattr(compacting, "_join_gold", lambda _, table, *rest: rewritten.append(str(table.folder)))
    for stage, names in {"ingest-shop": [], "aggregate-hourly": ["hourly"]}.items():
        with leased(pipeline.root, [stage]) as lease:
            compacting.compact(None, pipeline, fence=lease)  # type: ignore[arg-type]
        assert rewritten == [str(pipeline.gold(name)) for name in names]
