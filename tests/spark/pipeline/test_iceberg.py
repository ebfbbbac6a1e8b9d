"""Iceberg tables of a pipeline: commits to exactly the next version, the view of other readers, and whole runs."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.expressions import EqualTo
from pyspark.sql import SparkSession

from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline import backfilling, compacting, converting, retaining, running, settings
from pykafka08.spark.pipeline.old_layout import check_layout
from pykafka08.spark.pipeline.settings import Retention
from pykafka08.spark.pipeline.stores import Folder
from pykafka08.spark.pipeline.tables.column_types import is_widening
from pykafka08.spark.pipeline.tables.iceberg import log, rest
from pykafka08.spark.pipeline.tables.iceberg.catalogs import catalog_of, check_catalog
from pykafka08.spark.pipeline.tables.model import Commit, DataFile
from pykafka08.spark.pipeline.tables.table import BatchTakenError, Table
from pykafka08.spark.pipeline.tables.table_log import CatalogError
from tests.spark.pipeline import orders
from tests.spark.pipeline.iceberg_tables import check_readers, iceberg, root
from tests.spark.pipeline.made_tables import fields, file
from tests.spark.pipeline.shop import Shop
from tests.stores.rest_catalog import CREDENTIAL, CatalogServer, rest_catalog

DAYS = ("2024-03-01", "2024-03-02")
NEW = ("batch",)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CatalogServer]:
    with rest_catalog(tmp_path_factory.mktemp("server"), {}) as server:
        yield server


@pytest.fixture(params=["sql", "rest"])
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Folder:
    """The folder of a table; with the server each test has a namespace of its own, of two parts."""
    if request.param == "sql":
        return root(tmp_path) / "silver"
    uri = request.getfixturevalue("server").uri
    return root(tmp_path, type="rest", uri=uri, credential=CREDENTIAL, namespace=f"tests.{tmp_path.name}") / "silver"


@pytest.fixture
def table(folder: Folder) -> Table:
    made = Table(folder)
    made.prepare(fields(id="long", day="date"), ["day"])
    return made


def one(table: Table, name: str, *ids: int, day: str = DAYS[0]) -> DataFile:
    days = pa.array([date.fromisoformat(day) if day else None] * len(ids), pa.date32())
    return replace(file(table, name, {"id": pa.array(ids, pa.int64()), "day": days}), values={"day": day})


def ids(folder: Folder, version: int | None = None) -> list[int]:
    """The ids as read by pyiceberg."""
    found = iceberg(folder)
    snapshots = {each.sequence_number: each.snapshot_id for each in found.metadata.snapshots}
    chosen = None if version is None else snapshots[version]
    return sorted(found.scan(snapshot_id=chosen).to_arrow()["id"].to_pylist())


def test_live_files_follow_the_commits(table: Table, folder: Folder) -> None:
    first, second, both = one(table, "a", 1, 2), one(table, "b", 3, day=DAYS[1]), one(table, "c", 1, 2)
    assert table.commit(Commit(1, "batch", "q", 0, (first,), counts={"read": 2}, offsets="two"))
    assert table.commit(Commit(2, "batch", "q", 1, (second,), counts={"read": 1, "duplicates": 4}))
    assert table.commit(Commit(3, "compaction", "c", 0, (both,), (first.path,)))
    assert table.commit(Commit(4, "batch", "q", 2, counts={"read": 1}))
    assert table.commit(Commit(5, "backfill", "b", 0, (), (both.path,)))
    assert [ids(folder, version) for version in range(1, 6)] == [[1, 2], [1, 2, 3], [1, 2, 3], [1, 2, 3], [3]]
    assert (table.live(3), table.live(days=[DAYS[0]]), table.live(0)) == ([second, both], [], [])
    assert [(each.kind, each.removed) for each in table.commits(2)] == [
        ("compaction", (first.path,)),
        ("batch", ()),
        ("backfill", (both.path,)),
    ]
    state = table.state()
    assert (state.version, state.rows, state.counts) == (5, 1, {"read": 4, "duplicates": 4})
    assert (state.brought, state.newest) == ({"batch": 3, "compaction": 2, "backfill": 0}, {"q": 2, "c": 0, "b": 0})
    assert (table.offsets("q"), table.newest("q"), table.newest("r")) == ("two", 2, -1)
    assert (table.files_since(NEW, -1, 4), table.files_since(NEW, 1, 5)) == ([first, second], [second])
    assert table.files_since(NEW, -1, 5) == [second]  # the backfill has replaced the other
    assert iceberg(folder).scan(EqualTo("day", DAYS[1])).to_arrow()["id"].to_pylist() == [3]
    with pytest.raises(LookupError, match="only the newest version has totals"):
        table.state(2)


def test_a_batch_is_committed_once(table: Table) -> None:
    assert table.commit(Commit(1, "batch", "q", 0))
    assert not table.commit(Commit(1, "batch", "r", 0))
    with pytest.raises(BatchTakenError, match="another run has committed batch 0 of q"):
        table.commit(Commit(2, "batch", "q", 0))
    assert [each.query for each in table.commits(0)] == ["q"]


def test_writers_at_once_leave_each_version_once(table: Table, folder: Folder) -> None:
    def write(batch: int) -> None:
        mine = Table(folder)
        while not mine.commit(Commit(mine.version + 1, "batch", f"q{batch}", batch, counts={"read": 1})):
            pass

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(write, range(6)))
    assert sorted(each.batch for each in table.commits(0)) == list(range(6))
    assert (table.state().counts, len(table.state().newest)) == ({"read": 6}, 6)


def test_a_commit_amid_anothers_is_refused(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other commit comes after this one has read the table, and before the catalog has this one."""
    original = log.iceberg_file_of

    def amid(*arguments: Any) -> Any:
        monkeypatch.setattr(log, "iceberg_file_of", original)
        assert other.commit(Commit(1, "batch", "r", 0))
        return original(*arguments)

    other, mine = Table(table.folder), one(table, "a", 1)
    monkeypatch.setattr(log, "iceberg_file_of", amid)
    assert not table.commit(Commit(1, "batch", "q", 0, (mine,)))
    assert [each.query for each in table.commits(0)] == ["r"]
    assert table.commit(Commit(2, "batch", "q", 0, (mine,)))


def test_each_type_of_column_is_read_with_its_bounds(tmp_path: Path) -> None:
    table = Table(root(tmp_path) / "bronze" / "a.b")
    at = datetime(2024, 3, 1, 10, 0, 0, 1, timezone.utc)
    rows = {
        "small": pa.array([1, 2], pa.int16()),
        "price": pa.array([Decimal("1.50"), Decimal("2.25")], pa.decimal128(10, 2)),
        "at": pa.array([at, at], pa.timestamp("us", "UTC")),
        "local": pa.array([at.replace(tzinfo=None)] * 2, pa.timestamp("us")),
        "day": pa.array([date(1969, 12, 31), None]),
        "ratio": pa.array([0.5, float("nan")]),
        "text": ["a", "ü" * 40],
        "is_new": [True, None],
        "parts": pa.array([[{"k": "x"}], []], pa.list_(pa.struct([("k", pa.string())]))),
        "named": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
    }
    kinds = dict(small="short", price="decimal(10,2)", at="timestamp", local="timestamp_ntz", day="date")
    document = json.loads(fields(**kinds, ratio="double", text="string", is_new="boolean"))
    parts = {"type": "struct", "fields": [{"name": "k", "type": "string", "nullable": True, "metadata": {}}]}
    document["fields"] += [
        {"name": "parts", "type": {"type": "array", "elementType": parts, "containsNull": True}},
        {"name": "named", "type": {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True}},
    ]
    table.prepare(json.dumps(document))
    table.prepare(json.dumps(document))
    assert table.commit(Commit(1, "batch", "q", 0, (file(table, "x", pa.table(rows)),)))
    (found,) = table.bounded(list(rows))
    assert found.bounds["price"] == (Decimal("1.50"), Decimal("2.25"))
    assert found.bounds["at"] == (at.replace(microsecond=0), at.replace(microsecond=1000))
    assert found.bounds["day"] == (date(1969, 12, 31), date(1969, 12, 31))
    assert sorted(found.bounds) == ["at", "day", "local", "price", "ratio", "small"]
    assert abs(found.committed.timestamp() - time.time()) < 600
    read = iceberg(table.folder).scan(EqualTo("at", at.isoformat())).to_arrow()
    assert texts_of(read) == texts_of(pa.table(rows))
    types = {each["name"]: each["type"] for each in json.loads(table.columns()[0])["fields"]}
    assert (types["small"], types["price"], types["local"]) == ("integer", "decimal(10,2)", "timestamp_ntz")
    with pytest.raises(ConfigError, match="column at is timestamp in the table, but string in the settings"):
        table.prepare(fields(at="string"))
    with pytest.raises(ConfigError, match="column length is interval day, which Iceberg tables cannot have"):
        table.prepare(fields(length="interval day"))


def texts_of(rows: pa.Table) -> list[str]:
    return [str(row) for row in rows.to_pylist()]


def test_columns_that_are_added_are_null_in_older_rows(table: Table, folder: Folder) -> None:
    assert table.commit(Commit(1, "batch", "q", 0, (one(table, "a b%20c", 1, day=""),)))
    table.prepare(fields(id="long", kind="string", day="date"), ["day"])
    rows = {"id": pa.array([2], pa.int64()), "kind": ["x"], "day": pa.array([date(2024, 3, 1)])}
    assert table.commit(Commit(2, "batch", "q", 1, (replace(file(table, "b", rows), values={"day": DAYS[0]}),)))
    found = iceberg(folder).scan().to_arrow().select(["id", "kind", "day"]).sort_by("id").to_pylist()
    assert found == [{"id": 1, "kind": None, "day": None}, {"id": 2, "kind": "x", "day": date(2024, 3, 1)}]
    assert [each.values for each in table.live()] == [{"day": ""}, {"day": DAYS[0]}]
    assert table.read(table.live()[0], ["id"])["id"].to_pylist() == [1]


def test_one_commit_widens_columns_and_replaces_all_files(table: Table, folder: Folder) -> None:
    """Iceberg has bytes and shorts as integers, and allows no integer to become a double."""
    table.prepare(fields(id="long", count="short", ratio="float", price="decimal(7,2)", day="date"), ["day"])
    day = pa.array([date(2024, 3, 1)])
    prices = {width: pa.array([Decimal("1.50")], pa.decimal128(width, 2)) for width in (7, 12)}
    narrow = {
        "count": pa.array([2], pa.int16()),
        "ratio": pa.array([0.5], pa.float32()),
        "price": prices[7],
        "day": day,
    }
    wide = {"count": pa.array([2], pa.int64()), "ratio": pa.array([0.5]), "price": prices[12], "day": day}
    old, new = (
        replace(file(table, name, rows), values={"day": DAYS[0]}) for name, rows in (("o", narrow), ("n", wide))
    )
    assert table.commit(Commit(1, "batch", "q", 0, (old,), counts={"read": 1}))
    wanted = fields(id="long", count="long", ratio="double", price="decimal(12,2)", day="date")
    assert table.changes(wanted) == {
        "count": ("integer", "long"), "ratio": ("float", "double"), "price": ("decimal(7,2)", "decimal(12,2)")
    }  # fmt: skip
    with pytest.raises(ConfigError, match="column count is int64 in the table, but int16 in the files of this run"):
        table.commit(Commit(2, "widening", "widening", 2, (old,), (old.path,)), schema=wanted)
    assert table.commit(Commit(2, "widening", "widening", 2, (new,), (old.path,)), schema=wanted)
    assert (table.changes(wanted), [each.path for each in table.live()]) == ({}, [new.path])
    read = iceberg(folder).scan().to_arrow()
    assert read.to_pylist() == [
        {"id": None, "count": 2, "ratio": 0.5, "price": Decimal("1.50"), "day": date(2024, 3, 1)}
    ]
    assert [str(read.schema.field(name).type) for name in ("count", "ratio", "price")] == [
        "int64", "double", "decimal128(12, 2)"
    ]  # fmt: skip
    with pytest.raises(ConfigError, match="column count is int64 in the table, but int16 in the files of this run"):
        table.commit(Commit(3, "batch", "q", 1, (replace(old, path="data/late/one.parquet"),)))
    assert (table.files_since(NEW, 0, 2), table.state().counts) == ([old], {"read": 1})
    assert not is_widening("integer", "double", table.wider)


def test_one_commit_replaces_rows_and_columns(tmp_path: Path) -> None:
    """As when an aggregate is computed again: a type may change in any way, since no old row stays."""
    table = Table(root(tmp_path) / "gold" / "hourly")
    table.prepare(fields(kind="string", amount="long", orders="long"))
    old = file(table, "o", {"kind": ["a"], "amount": pa.array([7], pa.int64()), "orders": pa.array([1], pa.int64())})
    assert table.commit(Commit(1, "batch", "q", 0, (old,), counts={"rows": 1}))
    wanted = fields(kind="string", amount="string", mean="double")
    rows = {"kind": ["b"], "amount": ["seven"], "mean": [0.5]}
    added = file(table, "n", rows)
    assert table.commit(Commit(2, "backfill", "q", 0, (added,), (old.path,)), schema=wanted)
    assert iceberg(table.folder).scan().to_arrow().to_pylist() == [{"kind": "b", "amount": "seven", "mean": 0.5}]
    assert (table.changes(wanted), table.live()) == ({}, [added])
    later = file(table, "l", {"kind": ["c"], "amount": ["eight"], "mean": [1.5]})
    assert table.commit(Commit(3, "batch", "q", 1, (later,), counts={"rows": 1}))
    assert sorted(iceberg(table.folder).scan().to_arrow()["amount"].to_pylist()) == ["eight", "seven"]


def test_a_table_that_the_catalog_has_lost_is_not_created_again(tmp_path: Path) -> None:
    """With an empty table in its place a run would begin in the middle, and delete all files."""
    table = Table(root(tmp_path) / "silver")
    table.prepare(fields(id="long", day="date"), ["day"])
    assert table.commit(Commit(1, "batch", "q", 0, (one(table, "a", 1),)))
    for changed in ({"namespace": "other"}, {"uri": f"sqlite:///{tmp_path}/other.db"}, {"name": "other"}):
        lost = Table(root(tmp_path, **changed) / "silver")
        calls: list[Callable[[], object]] = [
            partial(lost.state),
            partial(lost.prepare, fields(id="long")),
            partial(lost.expire, 0, with_attempts=True),
        ]
        for call in calls:
            with pytest.raises(ConfigError, match=r"but the catalog has no table \w+\.silver; use the earlier"):
                call()
    assert ids(table.folder) == [1]


def test_a_commit_that_landed_and_is_refused_when_a_proxy_repeats_it(
    table: Table, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = catalog_of(folder.storage)
    original = type(catalog).commit_table

    def twice(*arguments: Any) -> Any:
        original(*arguments)
        monkeypatch.setattr(type(catalog), "commit_table", original)
        raise CommitFailedException("409")

    assert table.commit(Commit(1, "batch", "q", 0, (one(table, "a", 1),)))
    monkeypatch.setattr(type(catalog), "commit_table", twice)
    assert table.commit(Commit(2, "batch", "q", 0, (one(table, "b", 2),)), is_continued=True)
    assert (ids(folder), table.version) == ([1, 2], 2)


def test_files_of_a_commit_without_an_answer_stay(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    late = one(table, "late", 1)
    assert table.commit(Commit(1, "batch", "q", 0, (one(table, "a", 2),)))
    assert table.expire(1, with_attempts=True) == 0
    assert table.commit(Commit(2, "batch", "q", 1, (late,)))
    unnamed = one(table, "unnamed", 3)
    monkeypatch.setattr(log, "KEPT_S", -60.0)
    assert (table.expire(2, with_attempts=True), table.read(late, ["id"]).num_rows) == (1, 1)
    with pytest.raises(FileNotFoundError):
        table.read(unnamed, ["id"])


def test_a_catalog_that_does_not_answer_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest, "TIMEOUT_S", (5.0, 0.2))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(CatalogError, match=r"storage\.catalog: .*Read timed out"):
            Table(root(tmp_path, type="rest", uri=uri, token="secret-token") / "silver")


def test_a_name_that_is_taken_by_something_else_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table(root(tmp_path) / "silver")
    monkeypatch.setattr(log.IcebergLog, "newest", lambda self: None)
    with pytest.raises(CatalogError, match=r"has something else of the name \w+\.silver, such as a view"):
        table.prepare(fields(id="long"))


def test_a_widening_keeps_a_column_that_another_run_adds_meanwhile(table: Table) -> None:
    table.prepare(fields(id="long", count="integer", day="date"), ["day"])
    wanted = fields(id="long", count="long", day="date")
    Table(table.folder).prepare(fields(id="long", count="integer", new="string", day="date"), ["day"])
    assert not table.commit(Commit(1, "widening", "widening", 1), schema=wanted)
    assert "new" in table.columns()[0]


def test_the_longest_decimals_have_bounds(tmp_path: Path) -> None:
    table = Table(root(tmp_path) / "silver")
    table.prepare(fields(price="decimal(38,18)"))
    value = Decimal(10**12)  # 31 digits, with its scale
    added = file(table, "x", {"price": pa.array([value], pa.decimal128(38, 18))})
    assert table.commit(Commit(1, "batch", "q", 0, (added,)))
    (found,) = table.bounded(["price"])
    assert found.bounds == {"price": (value, value)}


def test_a_name_mapping_that_lacks_a_column_is_renewed(table: Table, folder: Folder) -> None:
    found = iceberg(folder)
    mapping = found.properties["schema.name-mapping.default"]
    table.prepare(fields(id="long", kind="string", day="date"), ["day"])
    with iceberg(folder).transaction() as transaction:
        transaction.set_properties({"schema.name-mapping.default": mapping})
    table.prepare(fields(id="long", kind="string", day="date"), ["day"])
    rows = {"id": pa.array([2], pa.int64()), "kind": ["x"], "day": pa.array([date(2024, 3, 1)])}
    assert table.commit(Commit(1, "batch", "q", 0, (replace(file(table, "b", rows), values={"day": DAYS[0]}),)))
    assert iceberg(folder).scan().to_arrow()["kind"].to_pylist() == ["x"]


def test_a_commit_of_another_program_brings_no_new_rows_to_streams(table: Table, folder: Folder) -> None:
    assert table.commit(Commit(1, "batch", "q", 0, (one(table, "a", 1),), counts={"read": 1}))
    iceberg(folder).append(pa.table({"id": pa.array([7], pa.int64()), "day": pa.array([date(2024, 3, 2)])}))
    assert ([each.kind for each in table.commits(1)], table.files_since(NEW, 1, 2)) == (["append"], [])
    assert (table.state().counts, table.state().rows) == ({"read": 1}, 2)
    assert table.commit(Commit(3, "batch", "q", 1, (one(table, "b", 2),), counts={"read": 1}))
    assert (table.state().counts, ids(folder)) == ({"read": 2}, [1, 2, 7])


def test_expire_deletes_files_snapshots_and_their_metadata(
    table: Table, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "KEPT_S", 0.0)
    for version in range(1, 7):
        old = (f"data/{version - 1}/one.parquet",) if version % 2 == 0 else ()
        added = (one(table, str(version), version),)
        assert table.commit(Commit(version, "batch", "q", version, added, old, {"read": 10}))
    one(table, "failed", 9)
    stray = Path(folder, "metadata", "stray.avro")
    stray.write_bytes(b"of a commit that failed")
    state, before = table.state(), len(metadata(folder))
    assert table.expire(5, with_attempts=False, age=3600) == 0
    assert (table.expire(5, with_attempts=False), stray.exists()) == (2, True)
    assert [each.sequence_number for each in iceberg(folder).metadata.snapshots] == [4, 5, 6]
    assert len(metadata(folder)) < before
    fresh = Table(folder)
    assert (fresh.state(), ids(folder)) == (state, [2, 4, 6])
    assert fresh.files_since(NEW, -1, 6) == list(state.files)
    assert [each.path for each in fresh.files_since(NEW, 4, 6)] == ["data/5/one.parquet", "data/6/one.parquet"]
    with pytest.raises(LookupError, match="commits after version 2 were cleaned up"):
        fresh.files_since(NEW, 2, 6)
    with pytest.raises(LookupError, match="version 3 was cleaned up"):
        fresh.live(3)
    assert all(abs(each.committed.timestamp() - time.time()) < 600 for each in fresh.bounded(["id"]))
    assert (table.expire(7, with_attempts=True), stray.exists()) == (2, False)
    assert fresh.state() == state
    assert fresh.commit(Commit(7, "batch", "q", 7, (one(table, "7", 7),)))
    assert ids(folder) == [2, 4, 6, 7]


def metadata(folder: Folder) -> list[str]:
    return [name for name in (folder / "metadata").names() if name.endswith(".avro")]


def test_errors_of_the_catalog_name_the_setting_and_no_secret(tmp_path: Path, server: CatalogServer) -> None:
    secret = "s3cret"
    for given in (
        {"uri": f"sqlite:////none/{secret}/catalog.db"},
        {"uri": f"mysql+nothing://me:{secret}@host/db"},
        {"type": "rest", "uri": "http://127.0.0.1:1", "token": secret},
        {"type": "rest", "uri": server.uri, "token": secret},
        {"type": "rest", "uri": server.uri, "credential": f"pipeline:{secret}"},
    ):
        folder = root(tmp_path, **given)
        with pytest.raises(CatalogError, match=r"^storage.catalog: ") as raised:
            check_catalog(folder.storage)
        assert secret not in str(raised.value)
        assert secret not in repr(folder.storage)


def test_a_table_elsewhere_is_not_taken(tmp_path: Path) -> None:
    table = Table(root(tmp_path) / "silver")
    assert check_catalog(table.folder.storage) == "storage.catalog: sql, namespace shop (will be created)"
    table.prepare(fields(id="long"))
    assert check_catalog(table.folder.storage) == "storage.catalog: sql, namespace shop"
    moved = replace(table.folder, address=table.folder.address.below("moved"))
    with pytest.raises(ConfigError, match=r"the table shop.silver is in .*/out/silver, not in .*choose another names"):
        _ = Table(moved).version
    catalog_of(table.folder.storage).drop_table("shop.silver")
    assert table.version == -1


def test_the_settings_of_a_catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of properties; a path of SQLite that counts from the folder; a folder whose tables have another format."""
    monkeypatch.setenv("CATALOG_TOKEN", "s3cret")
    properties = "token=${env:CATALOG_TOKEN}\nuri=http://catalog:8181\nheader.x-user=me\nconfig.providers=env\n"
    (tmp_path / "catalog.properties").write_text(f"{properties}config.providers.env.class=EnvVarConfigProvider\n")
    config = orders.written_config(tmp_path, "127.0.0.1:1")
    plain = config.read_text()
    config.write_text(f'{plain}\n[storage]\nformat = "iceberg"\ncatalog = {{ type = "rest", {FILE} }}\n')
    catalog = settings.read(config).storage.catalog
    assert catalog is not None
    assert (catalog.uri, catalog.token, catalog.namespace) == ("http://catalog:8181", "s3cret", "orders")
    assert catalog.options == {"header.x-user": "me"}
    config.write_text(plain + STORAGE)
    pipeline = settings.read(config)
    assert pipeline.storage.catalog is not None
    assert pipeline.storage.catalog.uri == f"sqlite:///{tmp_path}/catalog.db"
    check_layout(pipeline)
    Table(pipeline.silver).prepare(fields(id="long"))
    check_layout(pipeline)
    config.write_text(plain)
    with pytest.raises(ConfigError, match=r"storage.format: .*/silver is a table of the format 'iceberg'"):
        check_layout(settings.read(config))
    Path(pipeline.root, "silver", "log").mkdir()
    with pytest.raises(ConfigError, match=r"storage.format: convert makes Delta tables only"):
        converting.convert(pytest.fail, pipeline, print)


FILE = 'properties = "catalog.properties"'
STORAGE = """
[storage]
format = "iceberg"

[storage.catalog]
type = "sql"
uri = "sqlite:///catalog.db"
"""


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with orders.broker() as brokers:
        shop = Shop(spark, brokers, tmp_path_factory.mktemp("iceberg"), STORAGE)
        shop.produce(range(1, 200))
        shop.run()
        yield shop


@pytest.mark.timeout(900)
def test_a_pipeline(shop: Shop) -> None:
    """Two runs with a replay between them, a compaction, a backfill and retention; each record is somewhere once."""
    shop.check()
    before = versions(shop)
    for stage in ("ingest-shop", "decode-shop", "aggregate-hourly", "aggregate-by-kind"):
        shop.forget_last_commit(stage)
    shop.produce(range(190, 270))
    shop.run()
    assert [new - old for old, new in zip(before, versions(shop), strict=True)] == [1, 1, 1, 1]
    shop.check()
    silver, gold = shop.silver(), shop.gold()
    made = compacting.compact(shop.spark, shop.pipeline)
    assert {name: after for name, (_, after, _) in made.items()} == {
        "bronze/shop": 1, "silver": 2, "rejects": 1, "gold/hourly": 1, "gold/by-kind": 1,
    }  # fmt: skip
    assert (shop.silver(), shop.gold()) == (silver, gold)
    backfilled = backfilling.backfill(shop.spark, shop.pipeline, date(2024, 3, 1), date(2024, 3, 1))
    assert all(each.rows_before == each.rows_after > 0 for each in backfilled)
    assert (shop.silver(), shop.gold()) == (silver, gold)
    shop.check()
    check_readers(shop.pipeline)
    running.run_once(shop.spark, shop.pipeline, running.select(shop.pipeline, ["decode-shop"]), print)
    short = replace(shop.pipeline, retention=Retention(bronze="1 hour", silver="1 day", rejects="1 hour"))
    removed = retaining.retain(short, now=datetime.now(timezone.utc) + timedelta(days=2))
    assert {each.table: each.rows for each in removed} == {
        "bronze/shop": shop.records, "rejects": orders.refused(shop.numbers),
    }  # fmt: skip
    assert shop.wrong() == []


def versions(shop: Shop) -> Sequence[int]:
    pipeline = shop.pipeline
    folders = (pipeline.bronze("shop"), pipeline.silver, pipeline.rejects, pipeline.gold("hourly"))
    return [Table(each).version for each in folders]
