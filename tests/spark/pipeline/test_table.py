"""A table's log: one entry is all or nothing, and of two writers one is first."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pykafka08.spark.pipeline import table as table_module
from pykafka08.spark.pipeline.table import Added, Entry, Table


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path / "table")


def file(table: Table, name: str, part: str = "rows") -> Added:
    path = table.folder / "data" / name / "one.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")
    return Added(f"data/{name}/one.parquet", part, "", 1, 1)


def test_a_table_that_was_never_written_is_empty(table: Table) -> None:
    assert (table.version, table.entries(), table.live("rows")) == (-1, [], [])


def test_what_is_live_follows_the_log(table: Table) -> None:
    one, two, three = file(table, "one"), file(table, "two"), file(table, "three")
    refused = file(table, "refused", "rejected")
    assert table.commit(Entry(0, "batch", "q", 0, (one, refused), counts={"read": 2}))
    assert table.commit(Entry(1, "batch", "q", 1, (two,)))
    assert table.commit(Entry(2, "compaction", "c", 0, (three,), (one.path, two.path)))
    assert table.live("rows") == [three]
    assert table.live("rows", 1) == [one, two]
    assert table.live("rejected") == [refused]
    assert [one.version for one in table.entries(after=0, until=1)] == [1]
    found = table.find("q", 0)
    assert found is not None
    assert found.counts == {"read": 2}
    assert table.find("q", 2) is None


def test_of_two_entries_with_one_version_the_first_counts(table: Table) -> None:
    assert table.commit(Entry(0, "batch", "q", 0))
    assert not table.commit(Entry(0, "batch", "r", 0))
    assert [one.query for one in table.entries()] == ["q"]
    assert [path.name for path in table.folder.iterdir()] == ["log"]


def test_writers_at_once_leave_each_version_once(table: Table) -> None:
    def write(batch: int) -> None:
        while not table.commit(Entry(table.version + 1, "batch", "q", batch)):
            pass

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(40)))
    entries = table.entries()
    assert [one.version for one in entries] == list(range(40))
    assert sorted(one.batch for one in entries) == list(range(40))


def test_an_entry_is_read_once_and_those_of_others_are_seen(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    parsed = table_module._parsed
    monkeypatch.setattr(table_module, "_parsed", lambda path: read.append(path.name) or parsed(path))
    for version in range(3):
        assert Table(table.folder).commit(Entry(version, "batch", "q", version * 2))
        assert table.version == version
    assert [len(table.entries(after=1)), table.live("rows"), table.find("q", 3)] == [1, [], None]
    assert table.find("q", 4) == table.entries()[2]
    assert read == [f"{version:020d}.json" for version in range(3)]
    shutil.rmtree(table.folder)
    assert table.version == -1
    table.commit(Entry(0, "batch", "another", 0))
    assert [one.query for one in table.entries()] == ["another"]


def test_expire_takes_what_was_replaced_and_what_nobody_names(table: Table) -> None:
    old, new = file(table, "old"), file(table, "new")
    file(table, "attempt")
    table.commit(Entry(0, "batch", "q", 0, (old,)))
    table.commit(Entry(1, "compaction", "c", 0, (new,), (old.path,)))
    assert table.expire(1, with_attempts=False) == 0
    assert table.expire(2, with_attempts=False) == 1
    assert not (table.folder / old.path).exists()
    assert table.expire(2, with_attempts=True) == 1
    assert [one.name for one in (table.folder / "data").iterdir() if list(one.iterdir())] == ["new"]
