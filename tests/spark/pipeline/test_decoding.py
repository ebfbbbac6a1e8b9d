"""Raw records to rows, in every format; what is refused, and why."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline.decoding import BRONZE_SCHEMA, accepted, decoded, rejected
from pykafka08.spark.pipeline.session import brief
from pykafka08.spark.pipeline.settings import Decode, Registry, Rule, parse
from pykafka08.spark.pipeline.validating import validate
from tests.spark.pipeline import orders
from tests.spark.pipeline.registry_server import registry_server

pytestmark = pytest.mark.timeout(600)  # the first one may start the session

AT = "2024-03-01T10:00:00Z"
AVRO = {
    "type": "record",
    "name": "one",
    "fields": [{"name": "id", "type": "long"}, {"name": "at", "type": ["null", "string"]}],
}


def sorted_out(
    spark: SparkSession, decode: Decode, values: Sequence[bytes | None]
) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """What was accepted as ``(offset, the columns, ...)``, and what was not as ``(offset, value, reason)``."""
    when, day = datetime(2024, 5, 1), date(2024, 5, 2)
    rows = [(b"k", value, 3, offset, when, 0, None, "t", day) for offset, value in enumerate(values)]
    found = decoded(spark.createDataFrame(rows, BRONZE_SCHEMA), decode, "s").persist()
    good = accepted(found)
    names = [name for name in good.columns if not name.startswith(("_", "event"))]
    taken = good.orderBy("_offset").select("_offset", *names, "event_date", "_source", "_topic", "_partition").collect()
    refused = rejected(found).orderBy("_offset").select("_offset", "value", "reason").collect()
    found.unpersist()
    return [tuple(row) for row in taken], [tuple(row) for row in refused]


def test_json(spark: SparkSession) -> None:
    decode = Decode(
        "json", "at", "id BIGINT, at TIMESTAMP", rules={"even": Rule("id % 2 = 0"), "small": Rule("id < 9")}
    )
    values = [
        json.dumps({"id": 2, "at": AT, "more": 1}).encode(),
        b'{"id": 4',
        None,
        b'{"id": "x", "at": "2024-03-01T10:00:00Z"}',
        b'{"id": 2}',
        json.dumps({"id": 11, "at": AT}).encode(),
        json.dumps({"id": 12, "at": AT}).encode(),
        json.dumps({"at": AT}).encode(),
    ]
    taken, refused = sorted_out(spark, decode, values)
    assert taken == [(0, 2, datetime(2024, 3, 1, 10), date(2024, 3, 1), "s", "t", 3)]
    assert [(offset, reason) for offset, _, reason in refused] == [
        (1, "not json of the schema"),
        (2, "not json of the schema"),
        (3, "not json of the schema"),
        (4, "no event time"),
        (5, "rule: even"),
        (6, "rule: small"),
        (7, "rule: even"),
    ]
    assert [value for _, value, _ in refused] == values[1:]


def test_csv(spark: SparkSession) -> None:
    decode = Decode("csv", "at", "id BIGINT, `the name` STRING, at TIMESTAMP", options={"sep": ";"})
    taken, refused = sorted_out(spark, decode, [f"7;a,b;{AT}".encode(), b"x;a;2024-03-01T10:00:00Z", b"1;a;"])
    assert [row[:3] for row in taken] == [(0, 7, "a,b")]
    assert [(offset, reason) for offset, _, reason in refused] == [(1, "not csv of the schema"), (2, "no event time")]


def test_raw_text(spark: SparkSession) -> None:
    decode = Decode("raw", "_timestamp")
    taken, refused = sorted_out(spark, decode, ["grüße".encode(), b"\xff\xfe", b""])
    assert [row[:4] for row in taken] == [(0, "k", "grüße", date(2024, 5, 1)), (2, "k", "", date(2024, 5, 1))]
    assert [(offset, reason) for offset, _, reason in refused] == [(1, "not raw of the schema")]


def test_avro_behind_the_header_of_a_registry(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "one.avsc").write_text(json.dumps(AVRO))
    decode = Decode(
        "avro", "at", "id BIGINT, at TIMESTAMP", avro_schema=str(tmp_path / "one.avsc"), avro_header_bytes=5
    )
    buffer = io.BytesIO(b"\0\0\0\0\7")
    buffer.seek(5)
    fastavro.schemaless_writer(buffer, fastavro.parse_schema(AVRO), {"id": 5, "at": AT})
    whole = buffer.getvalue()
    taken, refused = sorted_out(spark, decode, [whole, whole[:-3], whole + b"x", None])
    assert [row[:2] for row in taken] == [(0, 5)]
    assert {reason for _, _, reason in refused} == {"not avro of the schema"}
    assert len(refused) == 3


def test_values_of_a_schema_registry(spark: SparkSession) -> None:
    """Avro of two schemas; an id that the registry does not have is refused."""
    columns = "id BIGINT, at TIMESTAMP, more STRING"
    older = json.dumps(AVRO)
    newer = json.dumps({**AVRO, "fields": [*AVRO["fields"], {"name": "more", "type": "string"}]})
    with registry_server() as registry:
        decode = Decode("avro", "at", columns, registry=Registry(registry.url))
        values: list[bytes | None] = []
        for text, row in ((older, {"id": 5, "at": AT}), (newer, {"id": 6, "at": AT, "more": "m"})):
            buffer = io.BytesIO()
            fastavro.schemaless_writer(buffer, fastavro.parse_schema(json.loads(text)), row)
            values.append(registry.register("orders-value", text).to_bytes(5, "big") + buffer.getvalue())
        taken, refused = sorted_out(spark, decode, [*values, (4711).to_bytes(5, "big") + b"x", b"{}", None])
        assert [row[:4] for row in taken] == [
            (0, 5, datetime(2024, 3, 1, 10), None),
            (1, 6, datetime(2024, 3, 1, 10), "m"),
        ]
        assert [reason for _, _, reason in refused] == [
            "schema 4711 is not in the schema registry",
            "not in a schema registry's wire format: 2 bytes, at least 5 needed",
            "not avro of the schema",
        ]
        registry.failing = [503] * 30
        with pytest.raises(PySparkException) as caught:
            sorted_out(spark, decode, [(4712).to_bytes(5, "big") + b"x"])
        assert f"decode.registry: {registry.url}: schema 4712 cannot be fetched: status 503" in brief(caught.value)


def test_what_an_expression_cannot_convert_is_refused(spark: SparkSession) -> None:
    """Not an error that ends the batch, and with it the pipeline, for ever."""
    rules = {"a number": Rule("cast(id AS INT) / zero > 0")}
    decode = Decode("json", "to_timestamp(at)", "id STRING, at STRING, zero INT", rules=rules)
    rows = [("1", AT, 1), ("1", "not a time", 1), ("x", AT, 1), ("1", AT, 0), ("1", "20240-03-01T10:00:00Z", 1)]
    values: list[bytes | None] = [
        json.dumps(dict(zip(("id", "at", "zero"), row, strict=True))).encode() for row in rows
    ]
    taken, refused = sorted_out(spark, decode, values)
    assert [row[0] for row in taken] == [0]
    assert [(offset, reason) for offset, _, reason in refused] == [
        (1, "no event time"),
        (2, "rule: a number"),
        (3, "rule: a number"),
        (4, "event time beyond all calendars"),
    ]


def test_bytes_in_avro(spark: SparkSession, tmp_path: Path) -> None:
    """As bytes where the column is BINARY, wherever it stands, as a text of as many characters where it is STRING."""
    kinds: dict[str, Any] = {
        "whole": "bytes",
        "text": ["null", {"type": "fixed", "name": "four", "size": 4}],
        "listed": {"type": "array", "items": "bytes"},
        "named": {"type": "map", "values": "bytes"},
        "inner": {"type": "record", "name": "inside", "fields": [{"name": "one", "type": "bytes"}]},
    }
    schema = {"type": "record", "name": "all", "fields": [{"name": name, "type": one} for name, one in kinds.items()]}
    (tmp_path / "all.avsc").write_text(json.dumps(schema))
    columns = "whole BINARY, text STRING, listed ARRAY<BINARY>, named MAP<STRING, BINARY>, inner STRUCT<one: BINARY>"
    decode = Decode("avro", "_timestamp", columns, avro_schema=str(tmp_path / "all.avsc"))
    buffer, some = io.BytesIO(), b"ab\xff\0"
    row = {"whole": some, "text": some, "listed": [some, b""], "named": {"a": some}, "inner": {"one": some}}
    fastavro.schemaless_writer(buffer, fastavro.parse_schema(schema), row)
    ((_, whole, text, listed, named, inner, *_),), refused = sorted_out(spark, decode, [buffer.getvalue()])
    assert refused == []
    assert (whole, text, listed, named, inner.one) == (some, "ab\xff\0", [some, b""], {"a": some}, some)


def test_an_avro_schema_that_is_none_is_told(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "one.avsc").write_text('{"type": "recorded"}')
    with pytest.raises(ConfigError, match=r"decode\.avro_schema: "):
        sorted_out(spark, Decode("avro", "at", "at TIMESTAMP", avro_schema=str(tmp_path / "one.avsc")), [b""])


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"id BIGINT,', '"id BIGGEST,', r"decode\.schema: .*BIGGEST"),
        ('"id BIGINT,', '"id BIGINT,,', r"decode\.schema: .*PARSE_SYNTAX_ERROR"),
        ('"id BIGINT,', '"kind BIGINT,', r"decode\.schema: .*kind"),
        ('"id BIGINT,', '"day BIGINT,', r"decode\.schema: 'day' is a column that the pipeline makes"),
        ('event_time = "at"', 'event_time = "when"', r"decode\.event_time: .*when"),
        ('event_time = "at"', 'event_time = "map(1, 2)"', r"decode\.event_time: .*DATATYPE_MISMATCH"),
        ('format = "json"', 'format = "csv"\noptions = { sep = "" }', r"decode\.options: "),
        ("amount > 0", "amount >", r"decode\.rules\.'the amount is positive': .*PARSE_SYNTAX_ERROR"),
        (
            "[spark]",
            '[compaction.cluster_by]\nsilver = ["day"]\n\n[spark]',
            r"cluster_by\.silver: there is no column 'day' in",
        ),
        (
            "[spark]",
            '[compaction.cluster_by]\n"gold/hourly" = ["id"]\n\n[spark]',
            "gold/hourly: there is no column 'id' in",
        ),
        ("[spark]", '[compaction.cluster_by]\n"bronze/shop" = ["topic"]\n\n[spark]', "there is no column 'topic' in"),
        ('["kind"]', '["king"]', r"aggregates\.hourly\.group_by: there is no column 'king'"),
        ('"sum(amount)"', '"amount"', r"aggregates\.hourly\.measures\.amount: .*MISSING_AGGREGATION"),
        ('key = ["id"]', 'key = ["identity"]', r"decode\.duplicates\.key: there is no column 'identity'"),
        ('"sum(amount)"', '"sum(price)"', r"aggregates\.hourly\.measures\.amount: .*price"),
        ('"sum(amount)"', '"count(DISTINCT id)"', r"aggregates\.hourly\.measures\.amount: .*approx_count_distinct"),
        (
            'format = "json"',
            'format = "json"\noptions = { timestampFormat = "nonsense" }',
            r"decode\.options\.timestampFormat: .*PATTERN",
        ),
    ],
)
def test_what_spark_would_refuse_is_told_before_a_run(
    spark: SparkSession, tmp_path: Path, old: str, new: str, words: str
) -> None:
    assert old in orders.CONFIG
    with pytest.raises(ConfigError, match=words):
        validate(spark, parse(orders.CONFIG.replace(old, new), tmp_path))
