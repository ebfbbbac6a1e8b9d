"""A table's log: one entry is all or nothing, and of two writers one is first."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pykafka08.spark.pipeline import table as table_module
from pykafka08.spark.pipeline.table import Added, Entry, State, Table


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
    assert [table.holds(*one) for one in (("q", 0), ("q", 1), ("q", 2), ("r", 0))] == [True, True, False, False]
    assert table.state().counts == {"read": 2}
    assert table.state().brought == {"batch": {"rows": 2, "rejected": 1}, "compaction": {"rows": 1}}


def test_of_two_entries_with_one_version_the_first_counts(table: Table) -> None:
    assert table.commit(Entry(0, "batch", "q", 0))
    assert not table.commit(Entry(0, "batch", "r", 0))
    assert [one.query for one in table.entries()] == ["q"]
    assert [path.name for path in table.folder.iterdir()] == ["log"]  # no draft


def test_writers_at_once_leave_each_version_once(table: Table) -> None:
    def write(batch: int) -> None:
        while not table.commit(Entry(table.version + 1, "batch", "q", batch)):
            pass

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(40)))
    entries = table.entries()
    assert [one.version for one in entries] == list(range(40))
    assert sorted(one.batch for one in entries) == list(range(40))


def traced(patch: pytest.MonkeyPatch) -> list[str]:
    """The names of the entries that are read from now on."""
    read: list[str] = []
    parsed = table_module._parsed

    def seen(path: Path) -> Entry:
        entry = parsed(path)
        read.append(path.name)
        return entry

    patch.setattr(table_module, "_parsed", seen)
    return read


def test_an_entry_is_read_once_and_those_of_others_are_seen(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    read = traced(monkeypatch)
    for version in range(3):
        assert Table(table.folder).commit(Entry(version, "batch", "q", version * 2))
        assert table.version == version
    assert [table.live("rows"), table.holds("q", 4), table.holds("q", 5)] == [[], True, False]
    assert read == [f"{version:020d}.json" for version in range(3)]
    shutil.rmtree(table.folder)
    assert table.version == -1
    table.commit(Entry(0, "batch", "another", 0))
    assert [one.query for one in table.entries()] == ["another"]


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A snapshot behind each third entry."""
    monkeypatch.setattr(table_module, "SNAPSHOT_EVERY", 3)


def grow(table: Table, count: int) -> None:
    """Each entry brings a file, and every second one takes the file before it away."""
    for version in range(table.version + 1, table.version + 1 + count):
        old = (f"data/{version - 1}/one.parquet",) if version % 2 else ()
        assert table.commit(Entry(version, "batch", "q", version, (file(table, str(version)),), old, {"read": 10}))


def seen_anew(table: Table) -> State:
    """As by a process that begins."""
    table_module.KNOWN.clear()
    return table.state()


def names(folder: Path) -> list[int]:
    return sorted(int(one.stem) for one in folder.glob("*.json"))


@pytest.mark.usefixtures("often")
def test_a_new_process_reads_the_newest_snapshot_and_what_is_behind_it(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    grow(table, 10)
    assert names(table.folder / "snapshots") == [2, 5, 8]
    by_entries = State().advanced(table.entries())
    read = traced(monkeypatch)
    assert seen_anew(table) == by_entries
    assert read == [f"{9:020d}.json"]
    assert table.state(4) == State().advanced(table.entries(until=4))


@pytest.mark.usefixtures("often")
def test_entries_that_a_snapshot_covers_go(table: Table) -> None:
    grow(table, 10)
    state = table.state()
    table.expire(8, with_attempts=True)
    assert (names(table.folder / "log"), names(table.folder / "snapshots")) == ([6, 7, 8, 9], [5, 8])
    assert table.state() == seen_anew(table) == state
    assert table.state(7).version == 7
    assert [one.version for one in table.entries(after=5)] == [6, 7, 8, 9]
    assert table.expire(8, with_attempts=True) == 0  # but empty folders that no entry names now
    assert {one.name for one in (table.folder / "data").iterdir()} == {"1", "3", "5", "6", "7", "8", "9"}
    for wanted in (lambda: table.entries(), lambda: table.state(4)):
        with pytest.raises(LookupError, match="are gone from the log"):
            wanted()
    assert not table.commit(Entry(3, "batch", "late", 0))
    grow(table, 1)
    assert table.version == 10


@pytest.mark.usefixtures("often")
def test_a_table_of_which_all_entries_went_goes_on(table: Table) -> None:
    grow(table, 9)
    files = table.live("rows")
    for _ in range(2):
        table.expire(9, with_attempts=True)
        assert (names(table.folder / "log"), names(table.folder / "snapshots")) == ([], [8])
        assert table.files_since("rows", ("batch",), -1, 8) == seen_anew(table).live("rows") == files
    grow(table, 2)
    assert (table.version, [one.version for one in table.entries(after=8)]) == (10, [9, 10])


@pytest.mark.usefixtures("often")
def test_a_process_that_has_not_looked_for_long_sees_what_others_made_and_took_away(table: Table) -> None:
    """It knows entries up to 1; the next is gone, but it is not the place for one of its own."""
    grow(table, 2)
    known = dict(table_module.KNOWN)
    grow(table, 8)
    table.expire(9, with_attempts=False)
    assert names(table.folder / "log") == [9]
    table_module.KNOWN.clear()
    table_module.KNOWN.update(known)
    assert not table.commit(Entry(2, "batch", "late", 0))
    assert table.version == 9


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("before", [2, 8])
def test_who_begins_after_files_or_entries_went_has_all_that_the_table_holds(table: Table, before: int) -> None:
    """Of two entries a file is gone, of eight entries the first ones, too."""
    grow(table, 10)
    every = table.files_since("rows", ("batch",), -1, 9)
    assert len(every) == 10
    table.expire(before, with_attempts=False)
    assert (len(names(table.folder / "log")) < 10) == (before == 8)
    assert table.files_since("rows", ("batch",), -1, 9) == every[1::2]
    assert table.files_since("rows", ("batch",), -1, 8) == [*every[1:8:2], every[8]]
    assert table.files_since("rows", ("batch",), 6, 8) == every[7:9]


@pytest.mark.usefixtures("often")
def test_who_was_amid_entries_that_went_is_told(table: Table) -> None:
    grow(table, 10)
    table.expire(8, with_attempts=False)
    with pytest.raises(LookupError, match="are gone from the log"):
        table.files_since("rows", ("batch",), 3, 9)


class Killed(BaseException):
    """By no handler of errors caught."""


def killed_at_each_call(owner: object, name: str, act: Callable[[], object]) -> Iterator[None]:
    """``act``, ended before its first call of a function or its second, in turn, so at each, until it is through."""
    original = getattr(owner, name)
    for limit in itertools.cycle((0, 1)):
        left = itertools.count(limit, -1)

        def struck(*arguments: Any, left: Iterator[int] = left, **named: Any) -> Any:
            if next(left) == 0:
                raise Killed
            return original(*arguments, **named)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(owner, name, struck)
            try:
                act()
            except Killed:
                yield
            else:
                return


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("name", ["link", "unlink"])
def test_killed_at_any_point_of_a_commit_the_table_is_the_same(table: Table, name: str) -> None:
    """Before and behind the entry's link, and the snapshot's."""
    kills = 0
    for _ in killed_at_each_call(os, name, lambda: grow(table, 9 - table.version)):
        kills += 1
        assert seen_anew(table) == State().advanced(table.entries())
    assert kills > 7
    grow(table, 3)
    assert names(table.folder / "snapshots")
    assert seen_anew(table) == State().advanced(table.entries())


@pytest.mark.usefixtures("often")
def test_killed_at_any_point_of_its_clearing_the_table_is_the_same(table: Table) -> None:
    grow(table, 10)
    (table.folder / ".entry-draft").write_text("of who was killed")
    state, kills = table.state(), 0
    for _ in killed_at_each_call(Path, "unlink", lambda: table.expire(9, with_attempts=True)):
        kills += 1
        assert seen_anew(table) == state
        assert all((table.folder / one.path).exists() for one in state.live("rows"))
        assert table.files_since("rows", ("batch",), -1, 9)[-1].path == "data/9/one.parquet"
    assert kills > 15  # files, the draft, entries and snapshots, one after the other
    assert (names(table.folder / "log"), names(table.folder / "snapshots")) == ([9], [8])
    assert not list(table.folder.glob(".entry-*"))
    assert seen_anew(table) == state
    table.expire(10, with_attempts=True)
    held = {one.path for one in state.live("rows")}
    assert {one.relative_to(table.folder).as_posix() for one in table.folder.rglob("*.parquet")} == held


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
