"""Days made anew beside what the stream brings: each record is in silver once, whatever changed in between."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest
from pyspark.sql import SparkSession

from pykafka08 import Producer
from pykafka08.spark.pipeline import backfilling, running, settings, verifying
from pykafka08.spark.pipeline.session import prepare
from tests.spark.pipeline import orders

pytestmark = pytest.mark.timeout(600)

FIRST, SECOND, THIRD = (date(2024, 3, day) for day in (1, 2, 3))
BY_KEY = 'duplicates = { key = ["id"] }'
CONFIG = """
name = "orders"
folder = "out"

[sources.shop]
bootstrap_servers = "BROKERS"
topics = ["orders"]

[decode]
format = "json"
schema = "id BIGINT, amount INT, at TIMESTAMP, noted TIMESTAMP"
event_time = "at"
rules = { enough = "amount > 0" }
DUPLICATES
"""


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
    """One partition, bronze and silver."""

    def __init__(self, spark: SparkSession, brokers: str, path: Path) -> None:
        self._spark = spark
        self._brokers = brokers
        self._path = path
        self.write("")

    def write(self, duplicates: str, **changes: str) -> None:
        """The settings; ``changes``: other texts for some of them."""
        text = CONFIG.replace("BROKERS", self._brokers).replace("DUPLICATES", duplicates)
        for key, value in changes.items():
            before, _, after = text.partition(f"{key} = ")
            text = f"{before}{key} = {value}\n{after.partition(chr(10))[2]}"
        self._path.write_text(text)
        self.pipeline = settings.read(self._path)

    def take(self, *taken: Order, stages: tuple[str, ...] = ()) -> None:
        async def send() -> None:
            async with Producer(bootstrap_servers=self._brokers) as producer:
                for one in taken:
                    producer.enqueue(orders.TOPIC, one.value(), partition=0, timestamp_ms=one.time)
                await producer.flush()

        anyio.run(send)
        running.run_once(self._spark, self.pipeline, running.select(self.pipeline, stages), print)

    def backfill(self, first: date = FIRST, last: date = FIRST) -> tuple[int, int]:
        made = backfilling.backfill(self._spark, self.pipeline, first, last)
        return made[0].rows_before, made[0].rows_after

    def silver(self) -> list[tuple[Any, ...]]:
        rows = verifying.silver_of(self._spark, self.pipeline, "accepted").select("id", "amount", "event_date")
        return sorted(map(tuple, rows.collect()))

    def rejected(self) -> list[int]:
        rows = verifying.silver_of(self._spark, self.pipeline, "rejected").select("value").collect()
        return sorted(json.loads(row[0])["id"] for row in rows)

    def wrong(self) -> list[verifying.Finding]:
        return [one for one in verifying.verify(self._spark, self.pipeline) if not one.is_right]


@pytest.fixture
def shop(spark: SparkSession, tmp_path: Path) -> Iterator[Shop]:
    prepare(spark)
    with orders.broker() as brokers:
        yield Shop(spark, brokers, tmp_path / "orders.toml")


def test_what_the_stream_has_not_decoded_yet_is_left_to_it(shop: Shop) -> None:
    shop.take(Order(1, 5))
    shop.take(Order(2, 6), Order(3, -1), stages=("ingest-shop",))
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
