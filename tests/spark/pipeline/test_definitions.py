"""Definitions of aggregates: a run with another one is refused, with the setting or column that differs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline import definitions, gold_sql
from pykafka08.spark.pipeline.settings import Pipeline, parse
from pykafka08.spark.pipeline.stores import local_folder
from pykafka08.spark.pipeline.tables import rows as table_rows
from pykafka08.spark.pipeline.tables.table import Table
from tests.spark.pipeline.made_tables import NO_BROKER

pytestmark = pytest.mark.timeout(600)  # the first one may start the session

AGGREGATES = '''
[decode]
format = "json"
schema = "id INT, kind STRING, amount INT, price DECIMAL(7, 2), at TIMESTAMP"
event_time = "at"

[aggregates.hourly]
watermark = "1 day"
window = "1 hour"
group_by = ["kind"]
measures = { orders = "count(*)", amount = "sum(amount)", mean = "avg(amount)", good = "count_if(amount > 0)" }

[aggregates.each]
watermark = "1 day"
window = "1 hour"
group_by = ["id"]
measures = { largest = "max(price) + 1" }

[aggregates.query]
watermark = "1 day"
sql = """SELECT window, sum(amount) AS amount, approx_count_distinct(id) AS ids FROM silver
WHERE kind <> 'a  b' GROUP BY window(event_time, '1 hour')"""
'''
CONFIG = NO_BROKER + AGGREGATES
COLUMNS = "window_start, window_end, kind, orders, amount, {}, good, _batch"
SEEN_IN_TABLES = [
    (
        "mean =",
        "average =",
        f"aggregates.hourly: gold has the columns {COLUMNS.format('mean')}, but would have {COLUMNS.format('average')}",
    ),
    (
        "(7, 2)",
        "(9, 2)",
        "aggregates.each: the state of column largest (max(price)) is DECIMAL(7,2), but would be DECIMAL(9,2) by "
        "decode.schema",
    ),
    (
        "max(price) + 1",
        "max(amount) + 1",
        "aggregates.each: column largest is decimal(8,2) in gold, but would be integer",
    ),
]
"""A text of the settings, what takes its place, and the error, also if there is no definition of an earlier run."""
SEEN_IN_DEFINITION = [
    (
        'sum(amount)", mean',
        'sum(id)", mean',
        "aggregates.hourly.measures: was '= count(*); amount = sum(amount); mean = avg(amount); good = "
        "count_if(amount > 0)', and is '= count(*); amount = sum(id); mean = avg(amount); good = count_if(",
    ),
    (
        '"1 hour"\ngroup_by = ["kind"]',
        '"2 hours"\ngroup_by = ["kind"]',
        "aggregates.hourly.window: was '1 hour', and is",
    ),
    (
        'group_by = ["kind"]',
        "slide = '30 minutes'\ngroup_by = ['kind']",
        "aggregates.hourly.slide: was not set, and is",
    ),
    ('group_by = ["id"]', 'group_by = ["kind", "id"]', "aggregates.each.group_by: was 'id', and is 'kind, id' now"),
    ('"1 day"\nsql', '"2 days"\nsql', "aggregates.query.watermark: was '1 day', and is '2 days' now"),
    (
        "'a  b'",
        "'a b'",
        "aggregates.query.sql: was \" silver WHERE kind <> 'a  b' GROUP BY window(event",
    ),
]
"""Changes of settings, and the errors."""
ALLOWED = [
    ("amount INT", "amount BIGINT"),
    ("kind STRING", "kind STRING, more STRING"),
    ("FROM silver\nWHERE", "-- all\n FROM  silver /* of the\nshop */ WHERE"),
]


def resolved(spark: SparkSession, folder: Path, old: str = "", new: str = "") -> Pipeline:
    """The pipeline with another text in the place of ``old``."""
    assert not old or CONFIG.count(old) == 1
    text = CONFIG.replace(old, new) if old else CONFIG
    return gold_sql.resolved(spark, parse(text, folder))


@pytest.fixture(scope="module")
def pipeline(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    """A pipeline that has run: silver and gold exist, with the definitions."""
    pipeline = resolved(spark, tmp_path_factory.mktemp("orders"))
    definitions.check_definitions(spark, pipeline)  # nothing has run
    definitions.write_definitions(spark, pipeline, [f"aggregate-{name}" for name in pipeline.aggregates])
    Table(pipeline.silver).prepare(table_rows.silver_schema(spark, pipeline.decode).json())
    for name, aggregate in pipeline.aggregates.items():
        Table(pipeline.gold(name)).prepare(table_rows.gold_schema(spark, pipeline.decode, aggregate).json())
    return pipeline


def check(spark: SparkSession, pipeline: Pipeline, old: str, new: str) -> None:
    definitions.check_definitions(spark, resolved(spark, Path(pipeline.root).parent, old, new))


def check_refused(spark: SparkSession, pipeline: Pipeline, old: str, new: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check(spark, pipeline, old, new)
    assert str(caught.value).startswith(words)
    name = words.split(".")[1].partition(":")[0]
    assert str(caught.value).endswith(
        "; give the aggregate another name, or compute all its windows again with `pykafka08 pipeline backfill "
        f"CONFIG.toml --restate {name}`"
    )


def test_a_changed_aggregate_is_refused(spark: SparkSession, pipeline: Pipeline) -> None:
    """A definition may also be of a stage whose state keeps its types when a column of silver becomes wider."""
    for changes in ALLOWED:
        check(spark, pipeline, *changes)
    for old, new, words in SEEN_IN_DEFINITION:
        check_refused(spark, pipeline, old, new, words)
    wide = ("id INT", "id BIGINT", "aggregates.each: the state of column id (id) is INT, but would be BIGINT by decode")
    check_refused(spark, pipeline, *wide)
    alone = replace(resolved(spark, Path(pipeline.root).parent, *wide[:2]), aggregates={})
    query = resolved(spark, Path(pipeline.root).parent, *wide[:2]).aggregates["query"]
    with pytest.raises(
        ConfigError, match=r"the state of column ids \(approx_count_distinct\(silver\.id\)\) is INT, but"
    ):
        definitions.check_definitions(spark, replace(alone, aggregates={"query": query}))


def test_folders_of_earlier_versions_are_compared_by_their_tables(spark: SparkSession, pipeline: Pipeline) -> None:
    kept = {name: definitions.path_of(pipeline, name).read_text() for name in pipeline.aggregates}
    for name in kept:
        definitions.path_of(pipeline, name).delete()
    for old, new, words in SEEN_IN_TABLES:
        check_refused(spark, pipeline, old, new, words)
    wider = resolved(spark, Path(pipeline.root).parent, *ALLOWED[0])
    definitions.check_definitions(spark, wider)
    definitions.write_definitions(spark, wider, [])
    assert {name: definitions.path_of(pipeline, name).read_text() for name in kept} == kept


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" SELECT  1;\n", "SELECT 1"),
        ("a /* b\n */ -- c 'd\n+ ' /* -- e '", "a + ' /* -- e '"),
        ("'it\\'s  so'  || \"x  y\"   ||  `a  b`", "'it\\'s  so' || \"x  y\" || `a  b`"),
        ("r'\\'  ||  R\"\\\"  ||  'a  b'", "r'\\' || R\"\\\" || 'a  b'"),
        (r"r'\' || ' a -- b'", r"r'\' || ' a -- b'"),
        (r"for'it\'s  so'  +  1", r"for'it\'s  so' + 1"),
    ],
)
def test_comments_and_white_space_are_no_change(text: str, expected: str) -> None:
    assert definitions.normalised(text) == expected


@pytest.mark.parametrize(
    "text", ["", '{"settings": ', "[]", "{}", '{"settings": {}, "parts": [1], "is_complete": true}', "\udcff"]
)
def test_a_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    path = local_folder(tmp_path) / "hourly.json"
    assert definitions.Definition.read(path) is None
    (tmp_path / "hourly.json").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(ConfigError, match=r"^aggregates\.hourly: .*hourly\.json is damaged .* --restate hourly`$"):
        definitions.Definition.read(path)
