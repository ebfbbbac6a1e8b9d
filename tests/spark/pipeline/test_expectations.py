"""Expectations of rows: levels, thresholds, uniqueness and references, and their counts over time."""

from __future__ import annotations

import json
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import DataFrame, SparkSession

from pykafka08.cli.pipeline import main
from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline import report, settings
from pykafka08.spark.pipeline.decoding import BRONZE_SCHEMA, accepted, decoded, rejected
from pykafka08.spark.pipeline.duplicates import days_near
from pykafka08.spark.pipeline.expectations import QualityError, check, expectations, of_newest_run, with_counts
from pykafka08.spark.pipeline.judging import judged, paths_of_delta
from pykafka08.spark.pipeline.settings import Decode, Pipeline, Reference, Rule, Uniqueness, parse
from pykafka08.spark.pipeline.stores import local_folder
from pykafka08.spark.pipeline.validating import validate
from tests.spark.pipeline import orders

RULE = 'rules = { "the amount is positive" = "amount > 0" }'
DUPLICATES = 'duplicates = { key = ["id"] }'
SETS = """
[[decode.uniqueness]]
key = ["id"]
[[decode.references]]
key = ["kind"]
to = "kinds.csv"
"""


def config(rules: str, sets: str = "", duplicates: str = "") -> str:
    text = orders.CONFIG.replace(RULE, rules).replace(DUPLICATES, duplicates)
    return text.replace("[dead_letters]", f"{sets}\n[dead_letters]")


def test_a_rule_is_a_text_or_a_table(tmp_path: Path) -> None:
    rules = 'rules = { a = "x > 0", b = { check = "y > 0", level = "fail", threshold = 0.05 } }'
    decode = parse(config(rules, SETS), tmp_path).decode
    assert decode.rules == {"a": Rule("x > 0"), "b": Rule("y > 0", "fail", 0.05)}
    assert decode.uniqueness == (Uniqueness(("id",)),)
    assert decode.references == (Reference(("kind",), str(tmp_path / "kinds.csv")),)
    assert [(one.reason, one.level) for one in expectations(decode)] == [
        ("rule: a", "quarantine"),
        ("rule: b", "fail"),
        ("reference: kind", "quarantine"),
        ("unique: id", "quarantine"),
    ]


def test_days_near_the_ends_of_the_calendar() -> None:
    assert days_near([date(2024, 2, 28), date(2024, 3, 1)], 1) == {
        "2024-02-27", "2024-02-28", "2024-02-29", "2024-03-01", "2024-03-02",
    }  # fmt: skip
    assert days_near([date.max], 1) == {"9999-12-30", "9999-12-31"}
    assert days_near([date.min], 1) == {"0001-01-01", "0001-01-02"}


def test_paths_of_a_delta_table_are_as_on_the_disk(tmp_path: Path) -> None:
    place = tmp_path / "my lake" / "kinds #1"
    rows = pa.table({"kind": ["a", "b"], "of": ["x y", "z"]})
    write_deltalake(str(place), rows, partition_by=["of"])
    paths = paths_of_delta(local_folder(place))
    assert len(paths) == 2
    assert all(Path(path).is_file() for path in paths)


@pytest.mark.parametrize(
    ("rules", "sets", "words"),
    [
        ('rules = { a = { level = "warn" } }', "", "decode.rules.a.check: missing"),
        ('rules = { a = { check = "x", level = "loud" } }', "", "decode.rules.a.level: 'loud' is none of warn, quar"),
        ('rules = { a = { check = "x", levels = "warn" } }', "", "decode.rules.a.levels: unknown; there are check"),
        ('rules = { a = { check = "x", level = "fail", threshold = 5 } }', "", "decode.rules.a.threshold: 5.0 is not"),
        ('rules = { a = { check = "x", threshold = 0.5 } }', "", "decode.rules.a.threshold: means something with"),
        ("rules = { a = 3 }", "", "decode.rules.a: a table is wanted, not 3"),
        ("", "[[decode.uniqueness]]\nkey = []", "decode.uniqueness.key: at least one column"),
        ("", '[[decode.uniqueness]]\nkeys = ["a"]', "decode.uniqueness.keys: unknown; there are key, level"),
        ("", SETS + '[[decode.uniqueness]]\nkey = ["id"]', "decode.uniqueness.name: 2 have the name 'id'"),
        ("", '[[decode.references]]\nkey = ["a"]', "decode.references.to: missing"),
        ("", '[[decode.references]]\nkey = ["a"]\nto = "b"\ncolumns = ["c", "d"]', "references.columns: 2 columns"),
        ("", '[[decode.references]]\nkey = ["a"]\nto = "ftp://b/c"', "decode.references.to: ftp: is not one of file:"),
        ('changes = "debezium"\nkey = ["id"]', SETS, "decode.uniqueness: each row has many changes"),
    ],
)  # fmt: skip
def test_wrong_settings(rules: str, sets: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=words):
        parse(config(rules, sets), tmp_path)


def test_a_batch_fails_above_the_threshold_only() -> None:
    decode = Decode("raw", "_timestamp", rules={"a": Rule("x", "fail", 0.05), "b": Rule("y"), "c": Rule("z", "warn")})
    every = expectations(decode)
    check(every, 100, {"rule: a": 5, "rule: b": 100, "rule: c": 100})
    words = r"decode\.rules\.'a': 6 of 100 rows break 'rule: a', threshold 5\.00%; the batch is not committed"
    with pytest.raises(QualityError, match=words):
        check(every, 100, {"rule: a": 6, "rule: b": 100, "rule: c": 100})


def bronze(spark: SparkSession, values: list[dict[str, Any] | None]) -> DataFrame:
    when, day = datetime(2024, 3, 1), date(2024, 3, 1)
    rows = [
        (b"k", None if value is None else json.dumps(value).encode(), 0, offset, when, 0, None, "t", day)
        for offset, value in enumerate(values)
    ]
    return spark.createDataFrame(rows, BRONZE_SCHEMA)


def pipeline_of(folder: Path, **more: Any) -> Pipeline:
    """Orders with a warning, a rule that fails beyond a half, and what else is given."""
    rules = {"positive": Rule("amount > 0", "warn"), "kind": Rule("kind <> 'z'", "fail", 0.5), "id": Rule("id < 100")}
    decode = Decode("json", "_timestamp", "id BIGINT, kind STRING, amount INT", rules=rules, **more)
    return Pipeline("orders", str(folder / "out"), {}, decode)


def sorted_out(
    pipeline: Pipeline, rows: DataFrame, kept: DataFrame | None = None
) -> tuple[list[int], dict[int, str], dict[str, Any]]:
    """Offsets of the accepted rows, offset and reason of the others, and what the progress document has."""
    asked: list[set[str]] = []

    def near(days: set[str]) -> DataFrame | None:
        asked.append(days)
        return kept

    found = decoded(rows, pipeline.decode, "s")
    with judged(pipeline, "decode-s", 3, found, near) as (sorted_rows, read):
        good = sorted(row[0] for row in accepted(sorted_rows).select("_offset").collect())
        bad = {row[0]: row[1] for row in rejected(sorted_rows).select("_offset", "reason").collect()}
    assert asked == [{"2024-02-29", "2024-03-01", "2024-03-02"}] * len(pipeline.decode.uniqueness)
    assert read == rows.count()
    return good, bad, with_counts(pipeline, {"name": "decode-s", "batchId": 3})["quality"]


def order(number: int, kind: str | None = "a", amount: int = 1) -> dict[str, Any]:
    return {"id": number, "kind": kind, "amount": amount}


def test_levels(spark: SparkSession, tmp_path: Path) -> None:
    values = [order(1), order(2, amount=-1), order(3, "z", -1), order(100, "z"), None, order(4), {"id": "x"}]
    pipeline = pipeline_of(tmp_path)
    good, bad, told = sorted_out(pipeline, bronze(spark, values))
    assert good == [0, 1, 5]  # a warning keeps the row
    assert bad == {2: "rule: kind", 3: "rule: kind", 4: "not json of the schema", 6: "not json of the schema"}
    assert told == {"read": 7, "broken": {"rule: positive": 2, "rule: kind": 2, "rule: id": 1}}
    many = bronze(spark, [order(1, "z"), order(2, "z"), order(3)])
    with pytest.raises(QualityError, match=r"decode\.rules\.'kind': 2 of 3 rows break 'rule: kind'"):
        sorted_out(pipeline, many)


def test_unique_within_the_batch_and_in_silver(spark: SparkSession, tmp_path: Path) -> None:
    values = [order(1), order(1, "b"), order(2), order(3, "c"), order(3, "d"), order(200), order(200), order(4, "z")]
    pipeline = pipeline_of(tmp_path, uniqueness=(Uniqueness(("id",)), Uniqueness(("kind",), "warn", name="one a kind")))
    silver = spark.createDataFrame([(2, "x"), (2, "y"), (9, "c")], "id BIGINT, kind STRING")
    good, bad, told = sorted_out(pipeline, bronze(spark, values), silver)
    assert good == [0, 3]
    assert bad == {
        1: "unique: id", 2: "unique: id", 4: "unique: id", 5: "rule: id", 6: "rule: id", 7: "rule: kind",
    }  # fmt: skip
    assert told["broken"]["unique: id"] == 3
    assert told["broken"]["unique: one a kind"] == 1  # silver has the kind of the accepted row 3
    good, bad, told = sorted_out(pipeline, bronze(spark, [order(1), order(2), order(3)]))
    assert (good, bad, told["broken"]["unique: one a kind"]) == ([0, 1, 2], {}, 2)


def test_references(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "kinds.csv").write_text("code,number\na,1\nb,2\nb,2\n")
    write_deltalake(tmp_path / "pairs", pa.table({"kind": ["a", "b", "b"], "id": [1, 2, 2]}), partition_by=["id"])
    references = (
        Reference(("kind",), str(tmp_path / "kinds.csv"), ("code",)),
        Reference(("kind", "id"), str(tmp_path / "pairs"), level="warn", name="pairs"),
    )
    pipeline = pipeline_of(tmp_path, references=references)
    good, bad, told = sorted_out(
        pipeline, bronze(spark, [order(1, "a"), order(1, "b"), order(2, "b"), order(3, "c"), order(4, None)])
    )
    assert good == [0, 1, 2]
    assert bad == {3: "reference: kind", 4: "rule: kind"}
    assert told["broken"] == {
        "rule: positive": 0, "rule: kind": 1, "rule: id": 0, "reference: kind": 1, "reference: pairs": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        ('[[decode.uniqueness]]\nkey = ["number"]', r"decode\.uniqueness\.key: there is no column 'number'"),
        (
            '[[decode.references]]\nkey = ["number"]\nto = "a.csv"',
            r"decode\.references\.key: there is no column 'number'",
        ),
        ('[[decode.references]]\nkey = ["id"]\nto = "a.csv"', r"decode\.references\.to: .*a\.csv: .*PATH_NOT_FOUND"),
        ('[[decode.references]]\nkey = ["id"]\nto = "there.csv"', r"decode\.references\.to: .*there\.csv: .*`id`"),
    ],
)
def test_a_key_or_file_that_is_not_there(spark: SparkSession, sets: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "there.csv").write_text("code\na\n")
    with pytest.raises(ConfigError, match=words):
        validate(spark, parse(config("", sets), tmp_path))


def written_runs(folder: Path) -> tuple[Path, Path]:
    """The configuration, and the newer of two runs with counts."""
    path = orders.written_config(folder, "localhost:1", writes_to_kafka=False)
    for hour, read, broken in ((12, 100, 7), (13, 50, 2)):
        run = folder / "out" / "runs" / f"20240301T{hour}0000.000000Z"
        run.mkdir(parents=True)
        document = {
            "name": "decode-shop", "id": "q", "batchId": 0, "timestamp": f"2024-03-01T{hour}:00:00.000Z",
            "numInputRows": read, "durationMs": {"triggerExecution": 2000}, "stateOperators": [],
            "quality": {"read": read, "broken": {"rule: the amount is positive": broken}},
        }  # fmt: skip
        (run / "progress.jsonl").write_text(json.dumps(document) + "\n")
    return path, run


def test_counts_over_time_are_in_the_report(tmp_path: Path) -> None:
    path, run = written_runs(tmp_path)
    text = report.write(settings.read(path), local_folder(run)).read_text()
    for cell in ("rule: the amount is positive", "quarantine", "4.00%", "9", "6.00%"):
        assert f"<td>{cell}</td>" in text
    assert "<title>2024-03-01 12:00: 7</title>" in text
    assert "<title>2024-03-01 13:00: 2</title>" in text


def test_status_tells_the_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, _ = written_runs(tmp_path)
    assert of_newest_run(settings.read(path)) == (50, {"rule: the amount is positive": 2})
    assert main(["status", str(path)]) == 0
    line = "rule: the amount is positive (quarantine): 2 of 50 rows in the newest run, 9 of 150 in all"
    assert line in capsys.readouterr().out.splitlines()
