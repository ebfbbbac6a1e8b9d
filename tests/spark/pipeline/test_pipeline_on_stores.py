"""The whole pipeline with its folder on S3 and on HDFS: each input once, and no files on this machine.

On S3 also with Iceberg tables in a catalog with the REST API.

In the session that all tests share; with ``PYKAFKA08_SOAK=1`` also as the commands that people call.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pykafka08.spark.pipeline import running, settings, verifying
from pykafka08.spark.pipeline.session import reach
from pykafka08.spark.pipeline.status import progress_of, runs, status
from pykafka08.spark.pipeline.stores import Folder
from pykafka08.spark.pipeline.validating import check_offline, check_starts
from tests.security.secrets_found import SecretSearch
from tests.spark.pipeline import orders
from tests.spark.pipeline.iceberg_tables import check_readers
from tests.spark.pipeline.killing import command
from tests.spark.pipeline.other_readers import check_without_spark
from tests.stores.jars import s3a_jars
from tests.stores.places import Place
from tests.stores.rest_catalog import CREDENTIAL, CatalogServer, rest_catalog

pytestmark = pytest.mark.timeout(900)
abroad = pytest.mark.parametrize("stored", ["s3a", "hdfs"], indirect=True)


def written(stored: Place, folder: Path, name: str, brokers: str) -> Path:
    """The settings of a pipeline with a folder on the store."""
    path = orders.written_config(folder, brokers, writes_to_kafka=False)
    text = path.read_text().replace('folder = "out"', f'folder = "{stored.root}/{name}"')
    jars = os.pathsep.join(map(str, s3a_jars()))
    path.write_text(f'{text}"spark.driver.extraClassPath" = "{jars}"\n\n{stored.toml}')
    return path


def accepted(numbers: range) -> list[int]:
    return [number for number in numbers if orders.is_accepted(number)]


@pytest.fixture
def catalog(stored: Place, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CatalogServer]:
    """A catalog of Iceberg tables on the store."""
    storage = stored.storage
    properties = {"s3.endpoint": storage.endpoint, "s3.region": storage.region, "s3.access-key-id": storage.access_key}
    properties |= {"s3.secret-access-key": str(storage.secret_key), "s3.force-virtual-addressing": "false"}
    with rest_catalog(tmp_path_factory.mktemp("catalog"), properties) as server:
        yield server


@abroad
def test_each_record_is_somewhere_once(spark: SparkSession, stored: Place, tmp_path: Path) -> None:
    run_once(spark, stored, tmp_path, "once")


@pytest.mark.parametrize("stored", ["s3a"], indirect=True)
def test_each_record_is_in_iceberg_tables_once(
    spark: SparkSession, stored: Place, catalog: CatalogServer, tmp_path: Path
) -> None:
    given = f'type = "rest"\nuri = "{catalog.uri}"\ncredential = "{CREDENTIAL}"\n'
    run_once(spark, stored, tmp_path, "iceberg", f'format = "iceberg"\n\n[storage.catalog]\n{given}', catalog)


def run_once(
    spark: SparkSession,
    stored: Place,
    tmp_path: Path,
    name: str,
    tables: str = "",
    catalog: CatalogServer | None = None,
) -> None:
    """Run a pipeline; ``tables``: settings of ``[storage]`` about the tables."""
    with orders.broker() as brokers:
        config = written(stored, tmp_path, name, brokers)
        config.write_text(
            config.read_text().replace("max_offsets_per_trigger = 150\n", "") + tables
        )  # one batch a stage
        pipeline = settings.read(config)
        check_offline(pipeline)
        reach(spark, pipeline.root.address, pipeline.storage)
        chosen = running.select(pipeline, [])
        orders.produce(brokers, range(1, 200))
        check_starts(pipeline, [one.name for one in chosen])
        log = running.RunLog(pipeline)
        spark.streams.addListener(log)
        try:
            running.run_once(spark, pipeline, chosen, print)
        finally:
            spark.streams.removeListener(log)
            log.close()
        rows = verifying.silver_of(spark, pipeline).select("id").orderBy("id").collect()
        assert [row.id for row in rows] == accepted(range(1, 200))
        assert all(one.behind == 0 for one in status(pipeline))
        assert [one["numInputRows"] > 0 for run in runs(pipeline) for one in progress_of(run)]
        assert [one for one in verifying.verify(spark, pipeline) if not one.is_right] == []
        if catalog is None:
            check_without_spark(pipeline)
        else:
            check_readers(pipeline, catalog.catalog)
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert left == [tmp_path / "orders.toml"]
    search = SecretSearch(stored.secret, CREDENTIAL.partition(":")[2])
    for folder in (pipeline.checkpoint("decode-shop"), pipeline.root / "runs"):
        for name, text in texts_in(folder):
            search.of_text(name, text)
    assert search.found == []


def texts_in(folder: Folder) -> Iterator[tuple[str, str]]:
    """The paths of all files below a folder."""
    for name in folder.names():
        inside = folder / name
        if inside.exists():
            yield str(inside), inside.read_text()
        else:
            yield from texts_in(inside)


@abroad
@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_the_commands(stored: Place, tmp_path: Path) -> None:
    texts = {}
    with orders.broker() as brokers:
        config = str(written(stored, tmp_path, "commands", brokers))
        orders.produce(brokers, range(1, 300))
        for words in (
            ("validate",), ("plan",), ("run",), ("verify",), ("status",),
            ("backfill", "--from", "2024-03-01", "--to", "2024-03-02"), ("run",), ("verify",),
        ):  # fmt: skip
            action, *more = words
            done = command(action, config, *more)
            assert done.returncode == 0, done.stdout + done.stderr
            texts[action] = done.stdout + done.stderr
    assert "lag 0 offsets" in texts["status"]
    assert len(list((tmp_path / "orders-runs").glob("*/report.html"))) == 2
    search = SecretSearch(stored.secret)
    for action, text in texts.items():
        search.of_text(action, text)
    assert search.found == []
