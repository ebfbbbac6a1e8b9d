"""Debezium's change records as rows of silver, and the newest state of each key."""

from __future__ import annotations

import io
import json
from datetime import date, datetime
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyspark.sql import SparkSession

from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline.changes import current_rows
from pykafka08.spark.pipeline.decoding import BRONZE_SCHEMA, accepted, decoded, rejected
from pykafka08.spark.pipeline.settings import Decode, Registry, Rule, parse
from pykafka08.spark.pipeline.validating import validate
from tests.spark.pipeline import orders
from tests.spark.pipeline.registry_server import registry_server

DECODE = Decode(
    "json",
    "at",
    "id BIGINT, name STRING, at TIMESTAMP",
    changes="debezium",
    key=("id",),
    rules={"named": Rule("name <> ''")},
)
AT = "2024-03-01T10:00:00Z"
Record = tuple["bytes | None", "bytes | None"]


def change(op: str, before: Any, after: Any, *, wraps: bool = False, **source: Any) -> Record:
    """Key and value; ``wraps``: in the form of the JSON converter with schemas."""
    value = {"before": before, "after": after, "op": op, "ts_ms": 1_709_287_201_000, "source": source}
    key = {"id": (before or after or {"id": 0})["id"]}
    if wraps:
        return json.dumps({"schema": {}, "payload": key}).encode(), json.dumps(
            {"schema": {}, "payload": value}
        ).encode()
    return json.dumps(key).encode(), json.dumps(value).encode()


def row(number: int, name: str | None = "a", at: str | None = AT) -> dict[str, Any]:
    return {"id": number, "name": name, "at": at}


def bronze(spark: SparkSession, records: list[Record]) -> Any:
    when, day = datetime(2024, 5, 1), date(2024, 5, 2)
    rows = [(key, value, 0, offset, when, 0, None, "t", day) for offset, (key, value) in enumerate(records)]
    return spark.createDataFrame(rows, BRONZE_SCHEMA)


def test_changes_become_rows_and_the_newest_of_each_key_is_found(spark: SparkSession) -> None:
    records = [
        change("r", None, row(1), lsn=5, ts_ms=1_709_287_200_000),
        change("c", None, row(2, "b"), lsn=9, wraps=True),
        change("u", row(1), row(1, "new"), lsn=100),
        change("u", row(1), row(1, "old"), lsn=99),  # sent again after a restart of the connector
        change("d", row(2, "b"), None, lsn=101),
        (json.dumps({"id": 2}).encode(), None),  # its tombstone
        change("c", None, row(3), lsn=102),
        change("d", {"id": 3, "name": None, "at": None}, None, lsn=103),  # the key alone, as PostgreSQL's default is
        change("c", None, row(3, "again"), lsn=104),
        change("c", None, row(4), lsn=105),
        (json.dumps({"schema": {}, "payload": {"id": 4}}).encode(), None),  # compaction has removed the delete
        (None, None),
        (b"x", b"{"),
        change("u", None, row(5, ""), lsn=106),
        change("t", None, None, lsn=107),
        change("c", None, None, lsn=108),
        change("c", None, {"id": "x"}, lsn=109),
        (b"{}", b'{"id": 1}'),
    ]
    found = decoded(bronze(spark, records), DECODE, "s").persist()
    silver = accepted(found)
    taken = silver.orderBy("_offset").select("_offset", "_op", "id", "name", "_position", "event_time").collect()
    kept = sorted(tuple(one) for one in current_rows(silver, ["id"]).select("id", "name", "_op").collect())
    refused = [tuple(one) for one in rejected(found).orderBy("_offset").select("_offset", "reason").collect()]
    found.unpersist()
    assert [tuple(one)[:4] for one in taken] == [
        (0, "r", 1, "a"), (1, "c", 2, "b"), (2, "u", 1, "new"), (3, "u", 1, "old"), (4, "d", 2, "b"), (5, "d", 2, None),
        (6, "c", 3, "a"), (7, "d", 3, None), (8, "c", 3, "again"), (9, "c", 4, "a"), (10, "d", 4, None),
    ]  # fmt: skip
    assert taken[0]["_position"] == "00000000000000000005"
    assert taken[5]["_position"] is None
    assert [taken[at]["event_time"] for at in (4, 5, 7)] == [
        datetime(2024, 3, 1, 10), datetime(2024, 5, 1), datetime(2024, 3, 1, 10, 0, 1),
    ]  # fmt: skip
    assert kept == [(1, "new", "u"), (3, "again", "c")]
    assert refused == [
        (11, "no key: id"),
        (12, "not json of the schema"),
        (13, "rule: named"),
        (14, "a change of no single row: op t"),
        (15, "a change without after"),
        (16, "not json of the schema"),
        (17, "not a change record: no op"),
    ]


def test_positions_of_each_database_can_be_compared(spark: SparkSession) -> None:
    """Positions as texts sort like the positions; each list begins with the older one."""
    sources: list[list[dict[str, Any]]] = [
        [{"lsn": 99}, {"lsn": 100}],
        [{"file": "bin.999999", "pos": 9}, {"file": "bin.1000000", "pos": 4, "row": 1}],
        [{"file": "bin.000003", "pos": 9, "row": 0}, {"file": "bin.000003", "pos": 10, "row": 0}],
        [{"file": "bin.000003", "pos": 9, "row": 9}, {"file": "bin.000003", "pos": 9, "row": 10}],
        [
            {"commit_lsn": "00000027:00000758:0005", "change_lsn": "00000027:00000758:0003", "event_serial_no": 1},
            {"commit_lsn": "00000027:00000758:0005", "change_lsn": "00000027:00000758:0003", "event_serial_no": 2},
        ],
        [{"scn": "9"}, {"scn": "10"}],
        [{"ts_ms": 999}, {"ts_ms": 1000}],
    ]
    records = [change("c", None, row(1), **source) for pair in sources for source in pair]
    found = accepted(decoded(bronze(spark, records), DECODE, "s")).orderBy("_offset").select("_position").collect()
    positions = [one[0] for one in found]
    assert [positions[at] < positions[at + 1] for at in range(0, len(positions), 2)] == [True] * len(sources)


def test_avro_of_a_registry_with_its_keys(spark: SparkSession) -> None:
    value: dict[str, Any] = {"type": "record", "name": "Value", "fields": []}
    value["fields"] = [{"name": "id", "type": "long"}, {"name": "at", "type": "string"}]
    parts = [("before", ["null", value]), ("after", ["null", "Value"]), ("op", "string")]
    source = {"type": "record", "name": "Source", "fields": [{"name": "lsn", "type": ["null", "long"]}]}
    fields = [{"name": name, "type": kind} for name, kind in [*parts, ("source", source)]]
    whole = {"type": "record", "name": "Envelope", "fields": fields}
    key = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "long"}]}
    with registry_server() as registry:

        def made(schema: Any, document: Any) -> bytes:
            buffer = io.BytesIO()
            fastavro.schemaless_writer(buffer, fastavro.parse_schema(schema), document)
            return registry.register("s", json.dumps(schema)).to_bytes(5, "big") + buffer.getvalue()

        inserted = {"before": None, "after": {"id": 1, "at": AT}, "op": "c", "source": {"lsn": 3}}
        records: list[Record] = [
            (made(key, {"id": 1}), made(whole, inserted)),
            (made(key, {"id": 1}), None),
            (b"1", None),
        ]
        decode = Decode(
            "avro", "at", "id BIGINT, at TIMESTAMP", changes="debezium", key=("id",), registry=Registry(registry.url)
        )
        found = decoded(bronze(spark, records), decode, "s").select("id", "_op", "_position", "_raw.reason").collect()
    assert [tuple(one) for one in found] == [
        (1, "c", "00000000000000000003", None),
        (1, "d", None, None),
        (None, "d", None, "not in a schema registry's wire format: 1 bytes, at least 5 needed"),
    ]


CHANGES = 'changes = "debezium"\nkey = ["id"]'


@pytest.mark.parametrize(
    ("new", "words"),
    [
        ('changes = "maxwell"\nkey = ["id"]', "decode.changes: 'maxwell' is not known; use debezium"),
        ('changes = "debezium"', "decode.key: at least one column is needed"),
        ('key = ["id"]', "decode.key: requires decode.changes"),
        (CHANGES + '\nduplicates = { key = ["id"] }', "decode.duplicates: not used with decode.changes"),
    ],
)
def test_wrong_settings(new: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=words):
        parse(orders.CONFIG.replace('duplicates = { key = ["id"] }', new), tmp_path)


def test_formats_that_have_no_changes(tmp_path: Path) -> None:
    text = orders.CONFIG.replace('duplicates = { key = ["id"] }', CHANGES)
    with pytest.raises(ConfigError, match=r"decode\.changes: debezium has json, avro, protobuf, not csv"):
        parse(text.replace('format = "json"', 'format = "csv"'), tmp_path)
    with pytest.raises(ConfigError, match=r"decode\.registry: needed for decode\.changes with avro"):
        parse(text.replace('format = "json"', 'format = "avro"\navro_schema = "a"'), tmp_path)


def test_a_key_that_is_no_column(spark: SparkSession, tmp_path: Path) -> None:
    text = orders.CONFIG.replace('duplicates = { key = ["id"] }', CHANGES.replace("id", "number"))
    with pytest.raises(ConfigError, match=r"decode\.key: there is no column 'number'"):
        validate(spark, parse(text, tmp_path))
