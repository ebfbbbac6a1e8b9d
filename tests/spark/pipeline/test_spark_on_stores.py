"""Parquet from Spark on each kind of store, committed by delta-rs: both read equal rows, and one of two writers wins.

One session for all, which is the one that the other tests with Spark use.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pyarrow as pa
import pyarrow.fs as pafs
import pytest
from deltalake import CommitProperties, DeltaTable, Schema
from deltalake.exceptions import CommitFailedError
from deltalake.fs import DeltaStorageHandler
from deltalake.schema import Field, PrimitiveType
from deltalake.transaction import AddAction
from pyspark.sql import SparkSession

from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline.addresses import (
    Address,
    Storage,
    address_of,
    options_for_delta,
    options_for_hadoop,
)
from pykafka08.spark.pipeline.session import reach
from tests.stores.places import Place

COLUMNS = Schema([Field("id", PrimitiveType("long")), Field("square", PrimitiveType("long"))])


@pytest.fixture
def folder(stored: Place, spark: SparkSession, request: pytest.FixtureRequest) -> Address:
    """A folder whose store the session can read and write."""
    address = stored.address(request.node.originalname)
    reach(spark, address, stored.storage)
    return address


def written(spark: SparkSession, folder: Address, storage: Storage, name: str, rows: int) -> list[AddAction]:
    """Write files with Spark's executors; the data files for a commit."""
    spark.range(rows).selectExpr("id", "id * id as square").coalesce(2).write.parquet(folder.below(name).spark)
    filesystem = pafs.PyFileSystem(DeltaStorageHandler(folder.delta, options_for_delta(folder, storage)))
    found = filesystem.get_file_info(pafs.FileSelector(name, recursive=True))
    return [
        AddAction(one.path, one.size, {}, 0, True, "{}")
        for one in found
        if one.is_file and one.path.endswith(".parquet")
    ]


def commit(folder: Address, storage: Storage, added: list[AddAction], version: int) -> None:
    table = DeltaTable(folder.delta, version=version - 1, storage_options=options_for_delta(folder, storage))
    once = CommitProperties(max_commit_retries=0)
    table.create_write_transaction(added, "append", table.schema(), [], commit_properties=once)


def test_spark_and_delta_read_what_spark_wrote_and_delta_committed(
    spark: SparkSession, stored: Place, folder: Address
) -> None:
    options = options_for_delta(folder, stored.storage)
    DeltaTable.create(folder.delta, COLUMNS, storage_options=options)
    commit(folder, stored.storage, written(spark, folder, stored.storage, "data/1", 100), 1)
    written(spark, folder, stored.storage, "data/2", 100)  # of an attempt that was never committed

    table = DeltaTable(folder.delta, storage_options=options)
    of_delta = pa.table(table.to_pyarrow_table()).sort_by("id").to_pydict()
    addresses = [folder.below(action["path"]).spark for action in pa.table(table.get_add_actions()).to_pylist()]
    of_spark = [tuple(row) for row in spark.read.parquet(*addresses).orderBy("id").collect()]
    assert of_spark == list(zip(of_delta["id"], of_delta["square"], strict=True)) == [(n, n * n) for n in range(100)]


def test_of_writers_of_one_version_one_commits(spark: SparkSession, stored: Place, folder: Address) -> None:
    options = options_for_delta(folder, stored.storage)
    DeltaTable.create(folder.delta, COLUMNS, storage_options=options)
    (first, *_) = written(spark, folder, stored.storage, "data/1", 10)
    start = Barrier(4)

    def tries(version: int) -> bool:
        start.wait()
        try:
            commit(folder, stored.storage, [first], version)
        except CommitFailedError:
            return False
        return True

    with ThreadPoolExecutor(4) as threads:
        for version in (1, 2, 3):
            assert list(threads.map(tries, [version] * 4)).count(True) == 1
    assert DeltaTable(folder.delta, storage_options=options).version() == 3


@pytest.mark.parametrize("stored", ["s3a"], indirect=True)
def test_the_session_tells_no_secrets(spark: SparkSession, stored: Place, folder: Address) -> None:
    secret = stored.storage.secret_key
    assert str(secret) in options_for_hadoop(folder, stored.storage).values()
    told = spark.sql("SET -v").toPandas().to_string() + spark.sparkContext.getConf().toDebugString()
    spark.range(1).write.mode("overwrite").parquet(folder.spark)
    told += spark.read.parquet(folder.spark)._jdf.queryExecution().toString()
    assert secret not in told


def test_jars_that_spark_lacks_are_named(spark: SparkSession) -> None:
    address = address_of("abfss://lake@account.dfs.core.windows.net/x", Path("/"))
    with pytest.raises(ConfigError, match=r"^folder: .* abfss: .*; set .* to org.apache.hadoop:hadoop-azure:\d"):
        reach(spark, address, Storage())
