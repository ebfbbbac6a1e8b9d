"""Days made anew beside what the stream brings: each record is in silver once, whatever changed in between."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import Mock

import anyio
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.readwriter import DataFrameWriter

from pykafka08 import Producer
from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline import (
    backfilling,
    compacting,
    definitions,
    restating,
    retaining,
    running,
    settings,
    stages,
    validating,
    verifying,
)
from pykafka08.spark.pipeline.settings import Pipeline
from pykafka08.spark.pipeline.stores import Folder
from pykafka08.spark.pipeline.tables import rows as table_rows
from pykafka08.spark.pipeline.tables.model import Commit
from pykafka08.spark.pipeline.tables.table import Table
from tests.spark.pipeline import orders
from tests.spark.pipeline.made_tables import file

pytestmark = pytest.mark.timeout(600)

FIRST, SECOND, THIRD = (date(2024, 3, day) for day in (1, 2, 3))
BY_KEY = 'duplicates = { key = ["id"] }'
CONFIG = """
name = "orders"
folder = "out"

[sources.shop]
bootstrap_servers = "BROKERS"
topics = ["TOPIC"]

[decode]
format = "json"
schema = "id BIGINT, amount INT, at TIMESTAMP, noted TIMESTAMP"
event_time = "at"
rules = { enough = "amount > 0" }
DUPLICATES
"""
WINDOWS = """
[aggregates.daily]
window = "2 days"
slide = "1 day"
watermark = "1 day"
measures = { orders = "count(*)", amount = "sum(amount)" }
"""
"""Windows of which some begin before the days.  Like :data:`UNREAD` a section that may follow :data:`BY_KEY`."""


RETENTION = """
[retention]
bronze = "30 days"
rejects = "60 days"
"""
UNREAD = """
[sources.other]
bootstrap_servers = "nowhere:9092"
topics = ["orders"]
"""


class Killed(BaseException):
    """Where the driver ends; nothing that it would do in such a case is done after a SIGKILL but to give locks back."""


class Fault(NamedTuple):
    """At which call of a function the driver is killed."""

    owner: object
    name: str
    call: int
    is_done: bool
    """Whether that call has done its work."""

    def strike(self, patch: pytest.MonkeyPatch, error: type[BaseException] = Killed) -> None:
        """``error``: what ends the driver; in a batch of a stream only an Exception reaches Spark."""
        original, calls = getattr(self.owner, self.name), itertools.count(1)

        def struck(*arguments: Any, **named: Any) -> Any:
            is_now = next(calls) == self.call
            if is_now and not self.is_done:
                raise error
            made = original(*arguments, **named)
            if is_now:
                raise error
            return made

        patch.setattr(self.owner, self.name, struck)


BEFORE_SILVER = [
    Fault(Table, "commit", 1, is_done=True),  # records are refused, and silver has them still
    Fault(Table, "commit", 2, is_done=False),
    Fault(Table, "commit", 1, is_done=False),
    Fault(DataFrameWriter, "parquet", 2, is_done=False),
    Fault(table_rows, "write", 1, is_done=False),
]
BEHIND_SILVER = [
    Fault(Table, "commit", 2, is_done=True),  # silver has records, and they are refused still
    Fault(Table, "commit", 3, is_done=False),
    Fault(DataFrameWriter, "parquet", 3, is_done=False),
    Fault(Table, "commit", 3, is_done=True),
]
"""A backfill commits what it refuses, silver, what it refuses no more, and gold."""
RESTATING = [
    (Fault(Folder, "delete", 1, is_done=True), "old"),
    (Fault(Table, "commit", 1, is_done=True), "new"),
]
"""The call after which a restatement is killed, and the windows that gold has then."""


class Order(NamedTuple):
    id: int
    amount: int
    at: date = FIRST
    noted: date = FIRST
    time: int = 1
    """Of the record."""

    def value(self) -> bytes:
        days = {name: f"{getattr(self, name)}T10:00:00Z" for name in ("at", "noted")}
        return json.dumps({"id": self.id, "amount": self.amount, **days}).encode()


class Shop:
    """A pipeline with the source ``shop``, a topic of one partition."""

    def __init__(self, spark: SparkSession, brokers: str, topic: str, path: Path) -> None:
        self._spark = spark
        self.brokers = brokers
        self.topic = topic
        self._path = path
        self.write("")

    def write(self, duplicates: str, **changes: str) -> None:
        """The settings; ``changes``: other texts for some of them."""
        text = CONFIG.replace("BROKERS", self.brokers).replace("TOPIC", self.topic).replace("DUPLICATES", duplicates)
        for key, value in changes.items():
            before, _, after = text.partition(f"{key} = ")
            text = f"{before}{key} = {value}\n{after.partition(chr(10))[2]}"
        self._path.write_text(text)
        self.pipeline = settings.read(self._path)

    def take(self, *taken: Order, only: tuple[str, ...] = ()) -> None:
        async def send() -> None:
            async with Producer(bootstrap_servers=self.brokers) as producer:
                for one in taken:
                    producer.enqueue(self.topic, one.value(), partition=0, timestamp_ms=one.time)
                await producer.flush()

        anyio.run(send)
        running.run_once(self._spark, self.pipeline, running.select(self.pipeline, only), print)

    def backfill(self, first: date = FIRST, last: date = FIRST) -> tuple[int, int]:
        made = backfilling.backfill(self._spark, self.pipeline, first, last)
        return made[0].rows_before, made[0].rows_after

    def killed_backfill(self, fault: Fault) -> None:
        with pytest.MonkeyPatch.context() as patch:
            fault.strike(patch)
            with pytest.raises(Killed):
                self.backfill(FIRST, SECOND)

    def silver(self) -> list[tuple[Any, ...]]:
        rows = verifying.silver_of(self._spark, self.pipeline).select("id", "amount", "event_date")
        return sorted(map(tuple, rows.collect()))

    def gold(self) -> list[tuple[Any, ...]]:
        """Start, orders and amount of the rows in gold."""
        rows = DeltaTable(str(self.pipeline.gold("daily"))).to_pyarrow_table().to_pylist()
        return sorted((row["window_start"].date(), row["orders"], row["amount"]) for row in rows)

    def bronze(self) -> list[Path]:
        return list(Path(self.pipeline.bronze("shop")).rglob("*.parquet"))

    def rejected(self) -> list[int]:
        rows = verifying.rejects_of(self._spark, self.pipeline).select("value").collect()
        return sorted(json.loads(row[0])["id"] for row in rows)

    def wrong(self) -> list[verifying.Finding]:
        return [one for one in verifying.verify(self._spark, self.pipeline) if not one.is_right]


@pytest.fixture(scope="module")
def brokers() -> Iterator[str]:
    """The address of a broker that creates topics, one for each test."""
    with orders.broker() as address:
        yield address


_numbers = itertools.count(1)


@pytest.fixture
def shop(spark: SparkSession, brokers: str, tmp_path: Path) -> Shop:
    return Shop(spark, brokers, f"orders-{next(_numbers)}", tmp_path / "orders.toml")


def test_what_the_stream_has_not_decoded_yet_is_left_to_it(shop: Shop) -> None:
    shop.take(Order(1, 5))
    shop.take(Order(2, 6), Order(3, -1), only=("ingest-shop",))
    assert shop.backfill() == (1, 1)
    shop.take()
    assert shop.silver() == [(1, 5, FIRST), (2, 6, FIRST)]
    assert shop.rejected() == [3]
    assert shop.wrong() == []


def test_of_one_key_what_the_stream_took_remains(shop: Shop) -> None:
    """By its time the second is the earlier one; the third is near the second alone."""
    shop.write(BY_KEY)
    shop.take(Order(1, 5, FIRST, time=9))
    shop.take(Order(1, 6, SECOND, time=3), Order(2, 7, SECOND))
    shop.take(Order(1, 8, THIRD, time=1))
    silver = shop.silver()
    assert silver == [(1, 5, FIRST), (1, 8, THIRD), (2, 7, SECOND)]
    assert shop.backfill(FIRST, THIRD) == (3, 3)
    assert shop.silver() == silver
    assert shop.wrong() == []


def test_a_new_rule_refuses_the_first_of_a_key(shop: Shop) -> None:
    shop.write(BY_KEY)
    shop.take(Order(1, 5), Order(1, 50), Order(1, 51), Order(2, -1), Order(3, 60))
    shop.write(BY_KEY, rules='{ enough = "amount > 9" }')
    assert shop.backfill() == (2, 2)
    assert shop.silver() == [(1, 50, FIRST), (3, 60, FIRST)]
    assert shop.rejected() == [1, 2]
    assert shop.wrong() == []
    shop.write(BY_KEY, rules='{ all = "true" }')
    assert shop.backfill() == (2, 3)
    assert shop.silver() == [(1, 50, FIRST), (2, -1, FIRST), (3, 60, FIRST)]
    assert shop.wrong() == []


@pytest.mark.parametrize("duplicates", ["", BY_KEY])
def test_rows_that_change_their_day_are_neither_lost_nor_doubled(shop: Shop, duplicates: str) -> None:
    shop.write(duplicates)
    shop.take(Order(1, 5, FIRST, noted=SECOND), Order(2, 6, SECOND, noted=FIRST), Order(3, 7, FIRST, noted=FIRST))
    shop.write(duplicates, event_time='"noted"')
    assert shop.backfill(FIRST, FIRST) == (2, 2)
    assert shop.silver() == [(1, 5, SECOND), (2, 6, SECOND), (3, 7, FIRST)]  # the second day is still as it was
    assert shop.backfill(SECOND, SECOND) == (2, 2)
    assert shop.silver() == [(1, 5, SECOND), (2, 6, FIRST), (3, 7, FIRST)]
    assert shop.wrong() == []


def test_a_batch_that_ended_between_its_commits_is_completed(shop: Shop) -> None:
    """Refused records stay refused under changed rules, and a backfill leaves them to the stream."""
    shop.take(Order(1, 5), Order(2, -1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stages, "_commit_accepted", Mock(side_effect=RuntimeError("ended")))
        with pytest.raises(StreamingQueryException, match="ended"):
            shop.take(Order(3, 6), Order(4, -1), Order(5, 7))
    assert (shop.silver(), shop.rejected(), shop.wrong()) == ([(1, 5, FIRST)], [2, 4], [])
    shop.write("", rules='{ enough = "amount > 6 or amount < 0" }')
    assert shop.backfill() == (1, 1)
    assert (shop.silver(), shop.rejected(), shop.wrong()) == ([(2, -1, FIRST)], [1, 4], [])
    shop.take()
    assert (shop.silver(), shop.rejected()) == ([(2, -1, FIRST), (5, 7, FIRST)], [1, 3, 4])
    assert shop.wrong() == []


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("each", [1, pytest.param(5, marks=pytest.mark.soak)])
def test_killed_at_any_point_a_backfill_is_made_again(shop: Shop, each: int) -> None:
    """Silver is as before or as after, and the repetition brings gold to it; then the stream goes on."""
    shop.write(BY_KEY + WINDOWS)
    shop.take(Order(1, 5), Order(1, 50), Order(2, -1), Order(3, 60), Order(4, 70, SECOND))
    shop.write(BY_KEY + WINDOWS, rules='{ enough = "amount > 9" }')
    for fault in BEFORE_SILVER[:each]:
        shop.killed_backfill(fault)
        assert (shop.silver(), shop.rejected()) == ([(1, 5, FIRST), (3, 60, FIRST), (4, 70, SECOND)], [1, 2]), fault
        (decode,) = (one.text for one in shop.wrong() if one.stage == "decode")
        assert "1 doubled" in decode
        assert decode.endswith("(a backfill was interrupted: repeat it)")
    for fault in BEHIND_SILVER[:each]:
        shop.killed_backfill(fault)
        assert (shop.silver(), shop.rejected()) == ([(1, 50, FIRST), (3, 60, FIRST), (4, 70, SECOND)], [1, 2]), fault
    assert shop.backfill(FIRST, SECOND) == (3, 3)
    assert shop.wrong() == []
    shop.take(Order(4, 71, SECOND), Order(5, 80, THIRD))
    assert shop.silver() == [(1, 50, FIRST), (3, 60, FIRST), (4, 70, SECOND), (5, 80, THIRD)]
    assert shop.wrong() == []


def test_a_changed_aggregate_is_computed_again(shop: Shop, spark: SparkSession) -> None:
    """Gold has the old windows or all of the new ones, wherever the driver is killed; then the stream goes on."""
    published = f'bootstrap_servers = "{shop.brokers}"\ntopic = "{shop.topic}-daily"\n'
    shop.write(WINDOWS + published)
    definitions.write_definitions(spark, shop.pipeline, ["aggregate-daily"])
    shop.take(Order(1, 5), Order(2, 6), Order(3, 7, THIRD), Order(4, 8, THIRD), Order(5, 9))
    old = shop.gold()
    shop.write(WINDOWS.replace("sum(amount)", "max(amount)") + published)
    for refused in (lambda: validating.validate(spark, shop.pipeline), shop.wrong, shop.backfill):
        with pytest.raises(ConfigError, match=r"^aggregates\.daily\.measures: was '.* amount = sum\(amount\)', and is"):
            refused()
    new = [(date(2024, 2, 29), 3, 9), (FIRST, 3, 9), (SECOND, 2, 8), (THIRD, 2, 8)]
    for fault, gold in RESTATING:
        with pytest.MonkeyPatch.context() as patch:
            fault.strike(patch, RuntimeError)
            with pytest.raises((RuntimeError, StreamingQueryException)):
                restating.restate(spark, shop.pipeline, "daily")
        assert shop.gold() == (old if gold == "old" else new), fault
        with pytest.raises(
            ConfigError, match="gold was not computed again completely; repeat `pykafka08 pipeline back"
        ):
            validating.validate(spark, shop.pipeline)
    assert restating.restate(spark, shop.pipeline, "daily") == backfilling.Backfilled("gold/daily", 4, 4)
    assert shop.gold() == new
    validating.validate(spark, shop.pipeline)
    shop.take(Order(6, 50, THIRD))
    assert shop.wrong() == []
    assert (SECOND, 3, 50) in shop.gold()


def test_days_in_the_wrong_order_are_an_error(shop: Shop) -> None:
    with pytest.raises(ConfigError, match="2024-03-02 is after 2024-03-01"):
        shop.backfill(SECOND, FIRST)


@pytest.mark.parametrize(("duplicates", "unread"), [("", {1, 3}), (BY_KEY, {1})])
def test_of_bronze_files_without_rows_of_the_days_no_value_is_read(
    shop: Shop, duplicates: str, unread: set[int]
) -> None:
    """The second has a refused record, which silver has whole; of the third a row may be left out as a duplicate."""
    shop.write(duplicates)
    shop.take(Order(1, 5, FIRST))
    shop.take(Order(2, 6, SECOND), Order(3, -1, SECOND))
    shop.take(Order(4, 7, THIRD), Order(4, 8, THIRD), Order(5, 9, THIRD))
    files = {pq.read_table(one, columns=["offset"])["offset"][0].as_py(): one for one in shop.bronze()}
    assert files.keys() == {0, 1, 3}
    for first in unread:
        spoil_values(files[first])
    silver = shop.silver()
    shop.write(duplicates + UNREAD)
    assert shop.backfill(FIRST, FIRST) == (1, 1)
    assert (shop.silver(), shop.rejected(), shop.wrong()) == (silver, [3], [])


def test_rows_that_retention_removes_are_known_to_verify_and_backfill(shop: Shop, spark: SparkSession) -> None:
    now = int(time.time() * 1000)
    shop.write(BY_KEY + WINDOWS + RETENTION)
    shop.take(Order(1, 5), Order(1, 6), Order(2, -1))
    shop.take(Order(3, 7, SECOND, time=now), Order(4, -1, time=now))
    shop.take(Order(5, 8), only=("ingest-shop",))  # old, and not decoded yet
    with removing_amid_verify() as removed:
        assert shop.wrong() == []
    assert removed == [("bronze/shop", 3, 1), ("rejects", 1, 1)]
    assert shop.wrong() == []
    shop.take()
    assert [str(one) for one in retaining.retain(shop.pipeline)] == [
        "bronze/shop: 1 row in 1 file removed, the newest of 1970-01-01T00:00:00.001Z"
    ]
    assert retaining.retain(shop.pipeline) == []
    with pytest.raises(ConfigError, match=r"^bronze: .* 2 records of these days \(orders-\d+-0 from offset 0 to 5\)"):
        shop.backfill(FIRST, SECOND)
    assert shop.backfill(SECOND, SECOND) == (1, 1)
    shop.take(Order(1, 9, time=now))  # a duplicate of a row whose record bronze has lost
    assert shop.silver() == [(1, 5, FIRST), (3, 7, SECOND), (5, 8, FIRST)]
    compacting.compact(spark, shop.pipeline)
    firsts = {pq.read_table(one, columns=["offset"])["offset"][0].as_py() for one in shop.bronze()}
    assert (firsts, shop.wrong()) == ({3, 6}, [])  # the files with the offsets 0 to 2, and 5, are deleted

    published = f'bootstrap_servers = "{shop.brokers}"\ntopic = "{shop.topic}-daily"\n'
    shop.write(BY_KEY + WINDOWS + published + RETENTION + 'silver = "1 year"\ngold = "1 year"')
    shop.take()  # the stages pass the compaction
    retaining.retain(shop.pipeline)
    compacting.compact(spark, shop.pipeline)
    assert (shop.silver(), verifying.gold_of(spark, shop.pipeline, "daily").count(), shop.wrong()) == ([], 0, [])
    with pytest.raises(ConfigError, match=r"^silver: retention has removed 3 rows of the days up to 2024-03-02;"):
        shop.backfill(SECOND, SECOND)
    shop.take(Order(6, 1, date(2099, 1, 1), time=now))
    tamper(shop)
    found = verifying.verify(spark, shop.pipeline, against_kafka=True)
    wrong = {one.stage: one.text for one in found if not one.is_right}
    assert wrong.keys() == {"ingest-shop", "decode", "aggregate-daily"}  # publish-daily has no window too many
    assert "1 doubled, 1 holes, 4 of these rows removed by retention" in wrong["ingest-shop"]
    assert "; of what Kafka has in these ranges 1 are missing" in wrong["ingest-shop"]
    assert "0 doubled, 1 lost, 0 of unknown origin" in wrong["decode"]


@contextmanager
def removing_amid_verify() -> Iterator[list[tuple[str, int, int]]]:
    """Remove old rows when ``verify`` has listed the files of bronze, and has read nothing else."""
    original = verifying.bronze_of
    removed: list[tuple[str, int, int]] = []

    def struck(spark: SparkSession, pipeline: Pipeline, *more: Any) -> DataFrame:
        rows = original(spark, pipeline, *more)
        removed.extend((one.table, one.rows, one.files) for one in retaining.retain(pipeline))
        return rows

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verifying, "bronze_of", struck)
        yield removed


def tamper(shop: Shop) -> None:
    """Bring a removed record of bronze back, and take the newest row from bronze and from silver."""
    bronze, silver = Table(shop.pipeline.bronze("shop")), Table(shop.pipeline.silver)
    old = next(one for one in bronze.live() if one.rows == 1)
    rows = {"partition": pa.array([0], pa.int32()), "offset": pa.array([0], pa.int64())}
    written = file(bronze, f"again/topic={old.values['topic']}/ingest_date=2024-03-01", rows)
    again = bronze.data_file(written.path, old.values)
    assert bronze.commit(Commit(bronze.version + 1, "backfill", "of another", 0, (again,), (old.path,)))
    assert silver.commit(Commit(silver.version + 1, "backfill", "of another", 0, (), (silver.live()[-1].path,)))


def spoil_values(path: Path) -> None:
    """Whoever reads the column fails; the others are as they were."""
    group = pq.read_metadata(path).row_group(0)
    column = next(one for one in map(group.column, range(group.num_columns)) if one.path_in_schema == "value")
    start = column.dictionary_page_offset or column.data_page_offset
    content = bytearray(path.read_bytes())
    content[start : start + column.total_compressed_size] = bytes(column.total_compressed_size)
    path.write_bytes(content)
    path.with_name(f".{path.name}.crc").unlink()  # it is of blocks that the columns share
    with pytest.raises(OSError, match="page header"):
        pq.read_table(path, columns=["value"])
