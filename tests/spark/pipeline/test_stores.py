"""Small files of a pipeline's folder on each kind of store: what every one must do, and two writers at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline.addresses import Storage, address_of
from pykafka08.spark.pipeline.stores import Files, Folder, files_of
from pykafka08.spark.pipeline.tables import rows as table_rows
from pykafka08.spark.pipeline.tables.model import NEW_ROWS, Commit, DataFile
from pykafka08.spark.pipeline.tables.table import BatchTakenError, Table
from tests.security.secrets_found import SecretSearch
from tests.spark.pipeline.made_tables import made
from tests.stores.places import Place

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]  # with the servers of the tests that start Spark


@pytest.fixture
def files(stored: Place, request: pytest.FixtureRequest) -> Files:
    return files_of(stored.address(f"files of {request.node.originalname}"), stored.storage)


def test_files_are_written_read_listed_and_deleted(files: Files) -> None:
    assert not files.exists("starts/a.json")
    assert files.names("starts") == []
    with pytest.raises(FileNotFoundError):
        files.read("starts/a.json")
    files.write("starts/a.json", "first")
    files.write("starts/a.json", "größer")
    files.write("starts/more/b.json", "")
    assert files.read("starts/a.json") == "größer"
    assert files.read("starts/more/b.json") == ""
    assert files.exists("starts/a.json")
    assert not files.exists("starts")
    assert files.names("starts") == ["a.json", "more"]
    files.delete("starts/a.json")
    files.delete("starts/a.json")
    assert files.names("starts") == ["more"]
    files.delete("starts")
    assert files.names("starts") == files.names("") == []


def test_of_many_writers_one_writes(files: Files) -> None:
    with ThreadPoolExecutor(8) as threads:
        for number in range(5):
            name = f"starts/{number}.json"
            won = list(threads.map(lambda each, name=name: files.write_once(name, f"of {each}" * 1000), range(8)))
            assert won.count(True) == 1
            assert files.read(name) == f"of {won.index(True)}" * 1000
    assert files.names("starts") == [f"{number}.json" for number in range(5)], "no drafts are left"


def test_a_batch_that_two_runs_have_read_is_committed_once(stored: Place) -> None:
    table = made(Folder(stored.address("batches"), stored.storage))

    def error_of(number: int) -> str:
        commit = Commit(0, NEW_ROWS, "ingest", number, (DataFile(f"data/{number}", 1, 1),))
        try:
            table_rows.append_commit(Table(table.folder), commit)
        except BatchTakenError as error:
            return str(error)
        return ""

    with ThreadPoolExecutor(4) as threads:
        for number in range(3):
            text = f"another run has committed batch {number} of ingest; run a pipeline once at a time"
            error = f"{table.location.uri}: {text}"
            assert sorted(threads.map(error_of, [number] * 4)) == ["", error, error, error]
    assert [one.batch for one in table.commits(0)] == [0, 1, 2]


@pytest.mark.parametrize("stored", ["s3a", "hdfs"], indirect=True)
def test_what_is_wrong_names_the_folder(stored: Place) -> None:
    away = address_of(stored.unreachable, Path("/"))
    with pytest.raises(ConfigError, match=f"^folder: {stored.unreachable}: ") as raised:
        files_of(away, stored.storage).read("a")
    assert "\n" not in str(raised.value)


def test_a_service_of_several_name_nodes_is_found(places: Callable[[str], Place]) -> None:
    alive = places("hdfs").address("x").authority
    storage = Storage(namenodes=("127.0.0.1:1", alive))
    folder = Folder(address_of("hdfs://lake/pipelines/service", Path("/")), storage)
    assert (folder / "starts" / "a.json").write_once("text")
    assert (folder / "starts" / "a.json").read_text() == "text"
    assert made(folder / "silver").version == Table(folder / "silver").version == 0


def test_no_secrets_are_told() -> None:
    secret = "s3cret-of-the-store"
    storage = Storage(endpoint="http://127.0.0.1:9", access_key="AKIA1", secret_key=secret, options={"aws_none": "x"})
    search = SecretSearch(secret)
    address = address_of("s3a://lake/x", Path("/"))
    with search.of_logs(), pytest.raises(ConfigError, match="aws_none") as raised:
        files_of(address, storage)
    search.of_error("an option that does not exist", raised.value)
    search.of_objects("files", files_of(address, dataclasses.replace(storage, options={})))
    assert search.found == []
