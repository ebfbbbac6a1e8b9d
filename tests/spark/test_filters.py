"""What filters of a query leave of its ranges."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from pyspark.sql import datasource as spark

from pykafka08.spark.filters import narrowing_of
from pykafka08.spark.ranges import Range

RANGES = [Range("t", 0, 0, 100), Range("t", 1, 50, 60), Range("u", 0, 7, 9)]
OFFSET, PARTITION, TOPIC, TIMESTAMP = ("offset",), ("partition",), ("topic",), ("timestamp",)


@pytest.mark.parametrize(
    ("filters", "left"),
    [
        ([spark.EqualTo(TOPIC, "u")], [("u", 0, 7, 9)]),
        ([spark.In(TOPIC, ("t", "x"))], [("t", 0, 0, 100), ("t", 1, 50, 60)]),
        ([spark.EqualTo(PARTITION, 1)], [("t", 1, 50, 60)]),
        ([spark.In(PARTITION, (1, 5))], [("t", 1, 50, 60)]),
        ([spark.GreaterThan(PARTITION, 0)], [("t", 1, 50, 60)]),
        ([spark.EqualNullSafe(OFFSET, 8)], [("t", 0, 8, 9), ("u", 0, 8, 9)]),
        ([spark.GreaterThan(OFFSET, 57)], [("t", 0, 58, 100), ("t", 1, 58, 60)]),
        ([spark.GreaterThanOrEqual(OFFSET, 57), spark.LessThan(OFFSET, 58)], [("t", 0, 57, 58), ("t", 1, 57, 58)]),
        ([spark.LessThanOrEqual(OFFSET, 7), spark.IsNotNull(OFFSET)], [("t", 0, 0, 8), ("u", 0, 7, 8)]),
        ([spark.LessThan(OFFSET, 0)], []),
    ],
)
def test_filters_that_are_kept_to(filters: list[Any], left: list[tuple[str, int, int, int]]) -> None:
    narrowing, unchecked = narrowing_of(filters)
    assert unchecked == []
    assert [(each.topic, each.partition, each.start, each.end) for each in narrowing.apply(RANGES)] == left


@pytest.mark.parametrize(
    "filters",
    [
        [spark.Not(spark.EqualTo(OFFSET, 3))],
        [spark.IsNotNull(("value",))],
        [spark.IsNull(OFFSET)],
        [spark.StringStartsWith(TOPIC, "t")],
        [spark.EqualTo(("headers", "key"), "t")],
        [spark.EqualTo(TOPIC, None)],
        [spark.EqualTo(("value",), b"x")],
    ],
)
def test_filters_that_spark_checks(filters: list[Any]) -> None:
    narrowing, unchecked = narrowing_of(filters)
    assert unchecked == filters
    assert narrowing.apply(RANGES) == RANGES


def test_a_time_only_says_where_to_begin() -> None:
    moment = datetime(2024, 5, 1, tzinfo=timezone.utc)
    filters = [spark.GreaterThan(TIMESTAMP, moment), spark.LessThan(TIMESTAMP, moment)]
    narrowing, unchecked = narrowing_of(filters)
    assert unchecked == filters
    assert narrowing.not_before_ms == int(moment.timestamp()) * 1000


def test_a_time_before_1970_narrows_nothing() -> None:
    """Records without a time are shown with -1 ms."""
    early, epoch, late = (datetime(year, 1, 1, tzinfo=timezone.utc) for year in (1960, 1970, 1980))
    for moment in (early, epoch - timedelta(milliseconds=1)):
        filters = [spark.GreaterThanOrEqual(TIMESTAMP, moment)]
        narrowing, unchecked = narrowing_of(filters)
        assert (narrowing.not_before_ms, unchecked) == (None, filters)
    assert narrowing_of([spark.GreaterThanOrEqual(TIMESTAMP, epoch)])[0].not_before_ms == 0
    for moments in ([early, late], [late, early]):
        narrowing, _ = narrowing_of([spark.GreaterThan(TIMESTAMP, each) for each in moments])
        assert narrowing.not_before_ms == int(late.timestamp()) * 1000
