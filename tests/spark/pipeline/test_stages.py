"""Orders from an embedded broker to gold, in the session that all tests share; `test_killed` has them back in Kafka."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import cast

import pytest
from pyarrow import fs
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from pykafka08 import TopicPartition
from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline import (
    backfilling,
    compacting,
    definitions,
    running,
    validating,
    verifying,
)
from pykafka08.spark.pipeline.leasing import Lease
from pykafka08.spark.pipeline.stores import Folder
from pykafka08.spark.pipeline.tables.storage import located
from pykafka08.spark.pipeline.tables.table import Table
from tests.spark.pipeline import orders
from tests.spark.pipeline.other_readers import check_with_spark, check_without_spark
from tests.spark.pipeline.shop import Shop
from tests.stores.places import Place

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with orders.broker() as brokers:
        shop = Shop(spark, brokers, tmp_path_factory.mktemp("orders"))
        shop.produce(range(1, 200))
        shop.run()
        yield shop


def test_each_record_is_somewhere_once(shop: Shop) -> None:
    shop.check()
    counts = [one.counts for one in Table(shop.pipeline.silver).commits() if one.counts]
    assert sum(one["read"] for one in counts) == shop.records
    assert sum(one["duplicates"] for one in counts) == shop.records - len(shop.silver()) - orders.refused(shop.numbers)


def test_a_batch_that_is_replayed_leaves_nothing_twice(shop: Shop) -> None:
    """Killed before the checkpoint knew of the last batch: what the stages wrote is found again."""
    before = [Table(folder).version for folder in (shop.pipeline.silver, shop.pipeline.gold("hourly"))]
    for stage in ("ingest-shop", "decode-shop", "aggregate-hourly", "aggregate-by-kind"):
        shop.forget_last_commit(stage)
    said: list[str] = []
    last = shop.replace_offsets("ingest-shop")
    running._restore_offsets(shop.pipeline, ["ingest-shop", "decode-shop"], said.append)
    assert said == [f"ingest-shop: restored the offsets of batch {last}, which another run had replaced"]
    shop.produce(range(190, 270))  # some of it again: known by their key, though another batch brought them
    shop.run()
    after = [Table(folder).version for folder in (shop.pipeline.silver, shop.pipeline.gold("hourly"))]
    assert [new - old for old, new in zip(before, after, strict=True)] == [1, 1]
    shop.check()


def test_small_files_become_one_and_nobody_sees_a_difference(shop: Shop) -> None:
    silver, gold = shop.silver(), shop.gold()
    stray = Path(shop.pipeline.silver, "data", "decode-shop-000000000099-deadbeef", "x.parquet")
    stray.parent.mkdir(parents=True)
    stray.write_bytes(b"an attempt that nobody finished")
    bronze = verifying.bronze_of(shop.spark, shop.pipeline, "shop").count()
    before, after, deleted = compacting.compact(shop.spark, shop.pipeline, until={})["silver"]
    assert (after < before, deleted, stray.exists()) == (True, 0, True)  # it may be another's
    assert compacting.compact(shop.spark, shop.pipeline)["silver"] == (after, after, 1)
    assert not stray.exists()  # but the files that were replaced: no stage has read on behind the swap yet
    assert (shop.silver(), shop.gold()) == (silver, gold)
    assert len(Table(shop.pipeline.bronze("shop")).live()) == 1
    assert verifying.bronze_of(shop.spark, shop.pipeline, "shop").count() == bronze
    held = Table(shop.pipeline.gold("hourly")).live()
    assert [one.rows for one in held] == [len(gold)]  # each window once
    shop.check()


def test_what_was_replaced_goes_once_nobody_can_be_reading_it(shop: Shop) -> None:
    made = compacting.versions(shop.pipeline)
    shop.produce(range(270, 300))
    shop.run()
    assert compacting.compact(shop.spark, shop.pipeline, until={})["silver"][-1] == 0
    assert compacting.compact(shop.spark, shop.pipeline, until=made)["silver"][-1] > 0
    shop.check()


def test_a_backfill_equals_what_the_stream_made(shop: Shop) -> None:
    silver, gold = shop.silver(), shop.gold()
    made = backfilling.backfill(shop.spark, shop.pipeline, date(2024, 3, 1), date(2024, 3, 1))
    assert [(one.table, one.rows_before == one.rows_after > 0) for one in made] == [
        ("silver", True),
        ("gold/hourly", True),
        ("gold/by-kind", True),
    ]
    assert (shop.silver(), shop.gold()) == (silver, gold)
    assert shop.wrong() == []


def test_a_wider_type_is_taken_by_itself(shop: Shop) -> None:
    """The stages that read silver skip the commit; a run that has begun with the narrower type ends with an error."""
    silver, gold, table, old = shop.silver(), shop.gold(), Table(shop.pipeline.silver), shop.pipeline
    definitions.write_definitions(shop.spark, old, [])
    schema = old.decode.schema.replace("amount INT", "amount BIGINT")
    shop.pipeline = replace(old, decode=replace(old.decode, schema=schema))
    validating.validate(shop.spark, shop.pipeline)
    files, version = len(table.live()), table.version
    said: list[str] = []
    running._apply_changes(shop.spark, shop.pipeline, ["decode-shop"], cast(Lease, None), said.append)
    assert said == [f"silver: widened amount from integer to long; {files} files, now {len(table.live())}"]
    assert (table.version, table.columns()[0].count('"long"')) == (version + 1, 3)
    assert (shop.silver(), shop.gold()) == (silver, gold)
    shop.produce(range(300, 320))
    with pytest.raises(StreamingQueryException, match="restart this run with amount as long in the settings"):
        running.run_once(shop.spark, old, running.select(old, ["ingest-shop", "decode-shop"]), print)
    with pytest.raises(ConfigError, match="restart this run with amount as long in the settings"):
        backfilling.backfill(shop.spark, old, date(2024, 3, 1), date(2024, 3, 1))
    shop.run()
    shop.check()
    assert table.columns()[0].count('"long"') == 3


def test_other_programs_read_every_table_with_equal_rows(
    shop: Shop, places: Callable[[str], Place], tmp_path: Path
) -> None:
    """The tables have had replays, compactions, a backfill and a wider type; silver is on S3, too."""
    check_without_spark(shop.pipeline)
    store = places("s3a")
    copied = Folder(store.address("copied/silver"), store.storage)
    fs.copy_files(
        "/", "/",
        source_filesystem=located(shop.pipeline.silver).filesystem,
        destination_filesystem=located(copied).filesystem,
    )  # fmt: skip
    check_with_spark(shop.pipeline, tmp_path, {"silver-on-s3": copied})


def test_what_kafka_still_has_is_looked_up_by_place(shop: Shop) -> None:
    """Of the partitions that were read alone: topics get more, and lose what is old."""
    source = shop.pipeline.sources["shop"]
    end = {TopicPartition(orders.TOPIC, 0): 5, TopicPartition(orders.TOPIC, 2): 3}
    start = {TopicPartition(orders.TOPIC, 0): 2, TopicPartition(orders.TOPIC, 2): 0}
    found = verifying.places_in_kafka(shop.spark, source, start, end).collect()
    places = [(0, 2), (0, 3), (0, 4), (2, 0), (2, 1), (2, 2)]
    assert sorted(map(tuple, found)) == [(orders.TOPIC, *one) for one in places]


def test_of_headers_with_one_name_the_last_counts(shop: Shop) -> None:
    """A dead letter that was one before has two of each."""
    rows = [([("a", b"1"), ("b", b"2"), ("a", b"3")],), ([],), (None,)]
    frame = shop.spark.createDataFrame(rows, "headers ARRAY<STRUCT<key: STRING, value: BINARY>>")
    assert [row[0] for row in frame.select(verifying.last_header("a")).collect()] == [b"3", None, None]


def test_the_checkpoint_of_a_sources_stage_is_in_sparks_own_form(shop: Shop) -> None:
    offsets = Path(shop.pipeline.checkpoint("ingest-shop"), "offsets")
    last = max((path for path in offsets.iterdir() if path.name.isdigit()), key=lambda path: int(path.name))
    document = json.loads(last.read_text().splitlines()[2])
    assert sum(document[orders.TOPIC].values()) == shop.records
