"""``pykafka08 pipeline init``: what is guessed of records, and a file that the other commands take."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pykafka08.cli.main import main
from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline.guessing import Guess, guess, toml_of
from pykafka08.spark.pipeline.settings import parse, read, source_of
from tests.spark.pipeline import orders


def of(*values: object) -> Guess:
    return guess([(None, json.dumps(one).encode()) for one in values])


def test_json_gives_columns_a_time_and_a_key() -> None:
    found = of(
        {"orderId": 1, "price": 2, "paid": True, "tags": ["a"], "at": "2024-03-01T12:00:00Z", "who": {"n": 1}},
        {"orderId": 2, "price": 2.5, "paid": None, "tags": [], "at": "2024-03-01T12:00:00Z", "big": 1 << 64},
    )
    assert found.columns == {
        "orderId": "BIGINT",
        "price": "DOUBLE",
        "paid": "BOOLEAN",
        "tags": "ARRAY<STRING>",
        "at": "TIMESTAMP",
        "who": "STRING",
        "big": "DECIMAL(38,0)",
    }
    assert (found.format, found.event_time, found.key, found.notes) == ("json", "at", "orderId", [])


@pytest.mark.parametrize(
    ("field", "value", "event_time"),
    [
        ("ts", 1_700_000_000, "timestamp_seconds(ts)"),
        ("created", 1_700_000_000_000, "timestamp_millis(created)"),
        ("eventTime", 1_700_000_000_000_000, "timestamp_micros(eventTime)"),
        ("the time", 1_700_000_000, "timestamp_seconds(`the time`)"),
        ("count", 1_700_000_000, "_timestamp"),
        ("ts", 3, "_timestamp"),
    ],
)
def test_numbers_are_a_time_by_name_and_size(field: str, value: int, event_time: str) -> None:
    found = of({field: value})
    assert found.event_time == event_time
    assert bool(found.notes) == (event_time == "_timestamp")


def test_fields_that_cannot_be_columns_are_told() -> None:
    found = of({"day": 1, "_x": 1, "a": 1, "A": 1, "b`c": 1})
    assert list(found.columns) == ["a"]
    assert len(found.notes) == 5  # and the time


def test_a_few_broken_records_are_told() -> None:
    found = guess([*[(None, b'{"id": 1}')] * 4, (None, b"{\xff")])
    assert found.format == "json"
    assert "1 of 5 values are no JSON objects." in found.notes
    assert guess([(None, b'{"id": 1}'), (None, b"no")]).format == "raw"


def test_csv_by_its_separator() -> None:
    found = guess([(None, b"1;x;2024-03-01 12:00:00"), (None, b"2;y;2024-03-01 12:00:01")])
    assert (found.format, found.options, found.event_time) == ("csv", {"sep": ";"}, "c3")
    assert found.columns == {"c1": "BIGINT", "c2": "STRING", "c3": "TIMESTAMP"}


def test_other_values_are_raw() -> None:
    assert guess([(None, b"one"), (None, b"two words")]).format == "raw"
    assert guess([(None, b"\xff\xfe")]).notes[0].startswith("Values are not UTF-8")
    assert guess([(b"key", None)]).format == "raw"


def test_avro_of_a_registry_needs_the_schema(tmp_path: Path) -> None:
    records = [(None, b"\0\0\0\0\7abc")]
    with pytest.raises(ConfigError, match="wire format, with schema 7: give the file of the Avro schema with --avro-s"):
        guess(records)
    time = {"type": "long", "logicalType": "timestamp-millis"}
    fields = [{"name": "id", "type": ["null", "long"]}, {"name": "at", "type": time}]
    path = tmp_path / "order.avsc"
    path.write_text(json.dumps({"type": "record", "name": "order", "fields": fields}))
    found = guess(records, str(path))
    assert (found.format, found.avro_header_bytes, found.event_time) == ("avro", 5, "at")
    assert found.columns == {"id": "BIGINT", "at": "TIMESTAMP"}
    pipeline = parse(toml_of(found, source_of("h:1", ["a"], "", tmp_path), "out", 1), tmp_path)
    assert pipeline.decode.avro_schema == str(path)


def test_names_from_records_stay_within_their_texts(tmp_path: Path) -> None:
    found = of({'a"\n[spark]\nmaster = "evil': 1, "\x7f": 1, "day\nname = 'x'": 1})
    pipeline = parse(toml_of(found, source_of("h:1", ["a.b"], "", tmp_path), "out", 1), tmp_path)
    assert (pipeline.name, pipeline.spark.master) == ("a-b", "local[*]")
    assert pipeline.sources["a-b"].topics == ("a.b",)
    assert 'a"\n[spark]' in pipeline.decode.schema


def test_init_writes_a_file_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "new.toml"
    with orders.broker() as brokers:
        arguments = ["pipeline", "init", "--bootstrap-server", brokers, "--topic", "orders", "--output", str(target)]
        assert main(arguments) == 2
        assert "topic orders: there is no record to look at" in capsys.readouterr().err
        assert not target.exists()
        orders.produce(brokers, range(1, 100))
        assert main(arguments) == 0
        said = capsys.readouterr().out
        assert said.startswith(f"{target}: json, by 113 records; event time: at\n  id BIGINT\n")
        pipeline = read(target)
        assert pipeline.sources["orders"].bootstrap_servers == brokers
        target.write_text("mine")
        assert main(arguments) == 2
        assert f"{target} exists; choose another file with --output" in capsys.readouterr().err
    assert target.read_text() == "mine"
