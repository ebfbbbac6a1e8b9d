"""Profiles of columns, as a table and as JSON."""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal

from pyspark.sql import SparkSession

from pykafka08.spark.pipeline.profiling import ColumnProfile, as_json, as_table, profile_of

AT = datetime(2024, 3, 1, 10)


def test_each_column(spark: SparkSession) -> None:
    rows = [
        (1, "a", AT, {"x": 1}, b"\0", [1]),
        (2, "a", None, {}, None, [1]),
        (3, None, AT, None, b"\1", []),
        (4, "b\n", AT, None, b"\1", None),
    ]
    columns = "id BIGINT, `the kind` STRING, at TIMESTAMP, named MAP<STRING, INT>, raw BINARY, more ARRAY<INT>"
    number, kind, at, named, raw, more = profile_of(spark.createDataFrame(rows, columns), 2)
    assert (number.rows, number.nulls, number.distinct, number.min, number.max) == (4, 0, 4, 1, 4)
    assert len(number.top) == 2
    assert kind == ColumnProfile("the kind", "string", 4, 1, 2, "a", "b\n", (("a", 2), ("b\n", 1)))
    assert at == ColumnProfile("at", "timestamp", 4, 1, 1, AT, AT, ((AT, 3),))
    assert named == ColumnProfile("named", "map<string,int>", 4, 2, None, None, None, ())
    assert (raw.nulls, raw.distinct, raw.min, raw.top) == (1, 2, None, ())
    assert (more.nulls, more.distinct) == (1, 2)
    (empty, *_) = profile_of(spark.createDataFrame([], columns))
    assert empty == ColumnProfile("id", "bigint", 0, 0, 0, None, None, ())


FOUND = [
    ColumnProfile("id", "bigint", 4000, 0, 4000, 1, 4000, ()),
    ColumnProfile("kind", "string", 4000, 1000, 2, "a", "x" * 50, (("a", 2000), ("b\n", 1000))),
    ColumnProfile("price", "decimal(10,2)", 4000, 4000, 0, None, None, ((Decimal("1.50"), 3), (Decimal(2), 1))),
]


def test_as_a_table() -> None:
    head, *lines = as_table(FOUND)
    assert head.split() == ["column", "type", "nulls", "distinct", "min", "max", "most", "frequent"]
    place = head.index("most frequent")
    assert [line[:place].split() for line in lines] == [
        ["id", "bigint", "0", "4,000", "1", "4000"],
        ["kind", "string", "1,000", "(25.0%)", "2", "a", "x" * 39 + "…"],
        ["price", "decimal(10,2)", "4,000", "(100.0%)", "0", "-", "-"],
    ]
    assert [line[place:] for line in lines] == ["-", "a (2,000), b? (1,000)", "1.50 (3)"]


def test_as_json() -> None:
    document = json.loads(as_json("orders", FOUND))
    assert (document["pipeline"], document["rows"], len(document["columns"])) == ("orders", 4000, 3)
    assert document["columns"][1]["top"] == [{"value": "a", "rows": 2000}, {"value": "b\n", "rows": 1000}]
    assert document["columns"][2]["top"] == [{"value": "1.50", "rows": 3}, {"value": "2", "rows": 1}]
