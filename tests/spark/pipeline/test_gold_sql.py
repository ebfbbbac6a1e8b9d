"""Aggregates that are queries: the roles of their columns, and what is refused before a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline import gold_sql
from pykafka08.spark.pipeline.aggregating import current
from pykafka08.spark.pipeline.settings import Aggregate, parse
from tests.spark.pipeline.made_tables import NO_BROKER

pytestmark = pytest.mark.timeout(600)  # the first one may start the session

CONFIG = (
    NO_BROKER
    + """
[decode]
format = "json"
schema = "id BIGINT, kind STRING, amount INT, at TIMESTAMP, items ARRAY<STRING>"
event_time = "at"

[aggregates.hourly]
watermark = "1 day"
sql = "SELECT"
"""
)
HOURLY = "GROUP BY window(event_time, '1 hour')"
"""The text for the word HOURLY in the queries."""


def columns(spark: SparkSession, folder: Path, sql: str) -> Aggregate:
    pipeline = parse(CONFIG, folder)
    hourly = replace(pipeline.aggregates["hourly"], sql=sql.replace("HOURLY", HOURLY))
    return gold_sql.resolved(spark, replace(pipeline, aggregates={"hourly": hourly})).aggregates["hourly"]


@pytest.mark.parametrize(
    ("sql", "groups", "measures"),
    [
        ("SELECT window, count(*) AS n FROM silver HOURLY;", (), {"n": "count(1)"}),
        (
            "SELECT sum(amount) AS a, Window.start AS window_start, upper(kind) AS k, window.end AS window_end, "
            "window, size(collect_set(id)) AS ids, kind AS k2 FROM silver HOURLY, upper(kind), kind -- done",
            ("k", "k2"),
            {"a": "sum(silver.amount)", "ids": "size(collect_set(silver.id))"},
        ),
        (
            "SELECT window(event_time, '2 hours', '1 hour') AS window, count(*) AS n, n * 2 AS m "
            "FROM silver GROUP BY 1",
            (),
            {"n": "n", "m": "m"},
        ),
        (
            "WITH good AS (SELECT *, event_time AS t FROM silver WHERE amount > 0), grouped AS ("
            "SELECT window, kind, count(*) AS n, sum(amount) AS a FROM good GROUP BY window(t, '1 hour'), kind) "
            "SELECT window.start AS window_start, window.end AS window_end, a / n AS mean, kind AS name FROM grouped",
            ("name",),
            {"mean": "mean"},
        ),
        (
            "SELECT window, item, count(*) AS n FROM silver LATERAL VIEW explode(items) AS item HOURLY, item",
            ("item",),
            {"n": "count(1)"},
        ),
        (
            "FROM silver |> WHERE id > 1 "
            "|> AGGREGATE count(*) AS n GROUP BY window(event_time, '1 hour') AS window, kind",
            ("kind",),
            {"n": "count(1)"},
        ),
        (
            "SELECT window(event_time, '1 hour') AS window, kind, count(*) AS n FROM silver GROUP BY ALL",
            ("kind",),
            {"n": "count(1)"},
        ),
    ],
)
def test_the_columns_of_a_query(
    spark: SparkSession, tmp_path: Path, sql: str, groups: tuple[str, ...], measures: dict[str, str]
) -> None:
    found = columns(spark, tmp_path, sql)
    assert (found.group_by, found.measures) == (groups, measures)
    assert not spark.catalog.tableExists("silver")


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT window, cout(*) AS n FROM silver HOURLY", r"\[UNRESOLVED_ROUTINE\] .*`cout`"),
        ("SELECT window, count(*) AS n FROM {{ ref('silver') }} HOURLY", r"\[PARSE_SYNTAX_ERROR\] .* pos 34\)$"),
        ("SELECT window, count(*) AS n FROM orders", "view `orders` cannot be found.* The only table is silver"),
        ("DROP TABLE silver", "write one SELECT over silver; commands and"),
        ("WITH x AS (SELECT 1) INSERT INTO y SELECT * FROM x", "write one SELECT over silver; commands and"),
        ("SELECT window, count(*) AS n FROM silver HOURLY ORDER BY n", "ORDER BY is not supported; remove it, and"),
        ("SELECT window, count(*) AS n FROM silver HOURLY LIMIT 3", "LIMIT is not supported; remove it, and limit"),
        (
            "SELECT window, count(*) AS n FROM silver HOURLY HAVING n > 1",
            "HAVING, or WHERE after GROUP BY, is not supported",
        ),
        ("SELECT * FROM (SELECT window, count(*) AS n FROM silver HOURLY) WHERE n > 1", "HAVING, or WHERE after GROUP"),
        (
            "SELECT window, count(*) AS n FROM silver JOIN range(9) AS b USING (id) HOURLY",
            "joins are not supported; read only silver, and join where gold is read",
        ),
        ("SELECT window, count(*) AS n FROM silver WHERE id IN (SELECT 1) HOURLY", "subqueries in expressions are"),
        ("SELECT window(now(), '1 hour') AS window, count(*) AS n FROM range(9) GROUP BY 1", "Range is not supported"),
        ("SELECT window, count(*) AS n FROM silver HOURLY, CUBE(kind)", "GROUPING SETS, CUBE and ROLLUP are not"),
        ("SELECT kind, id FROM silver WHERE id > 1", "there is no GROUP BY; add GROUP BY window"),
        ("SELECT kind, count(*) AS n FROM silver GROUP BY kind", "there is no window in GROUP BY; add window"),
        ("SELECT window, count(*) AS n FROM silver GROUP BY window(at, '1 hour')", "the window is not of event_time"),
        (
            "SELECT session_window AS w, count(*) AS n FROM silver GROUP BY session_window(event_time, '1 hour')",
            "session windows are not supported; write GROUP BY window",
        ),
        (
            "SELECT window, max(n) AS n FROM (SELECT window, kind, count(*) AS n FROM silver HOURLY, kind) GROUP BY 1",
            "more than one GROUP BY is not supported; group once",
        ),
        ("SELECT kind, count(*) AS n FROM silver HOURLY, kind", "SELECT lacks the window; add window, or window.st"),
        (
            "SELECT window.end AS window_start, window.start AS window_end, count(*) AS n FROM silver HOURLY",
            "SELECT lacks the window",
        ),
        ("SELECT window, count(*) AS n FROM silver HOURLY, kind", r"SELECT lacks silver\.kind of GROUP BY; add it"),
        ("SELECT window, kind FROM silver HOURLY, kind", r"SELECT has no measure; add one, such as count\(\*\)"),
        ("SELECT window, count(*) FROM silver HOURLY", r"cannot have a column 'count\(1\)'; give it another name"),
        ("SELECT window, count(*) AS n, sum(id) AS N FROM silver HOURLY", "two columns of gold would be named 'n'"),
        ("SELECT window, map('a', count(*)) AS n FROM silver HOURLY", "n is of type map<string,bigint>, which gold"),
        ("SELECT window, max_by(id, amount) AS n FROM silver HOURLY", r"max_by\(.*\) depends on the order of row"),
        ("SELECT window, 1 + first(id) AS n FROM silver HOURLY", r"first\(silver\.id\) depends on the order of row"),
        ("SELECT window, max(now()) AS n FROM silver HOURLY", r"now\(\) differs in each batch; use the columns"),
        ("SELECT window, count(*) AS n FROM silver WHERE rand() < 0.5 HOURLY", r"rand\(\) is not deterministic"),
        ("SELECT window, count(DISTINCT id) AS n FROM silver HOURLY", r"Distinct .* approx_count_distinct\(\) inst"),
    ],
)
def test_a_query_that_the_stages_cannot_run_is_told_before_a_run(
    spark: SparkSession, tmp_path: Path, sql: str, words: str
) -> None:
    with pytest.raises(ConfigError, match=rf"^aggregates\.hourly\.sql: .*{words}") as caught:
        columns(spark, tmp_path, sql)
    assert len(str(caught.value).splitlines()) == 1
    assert not spark.catalog.tableExists("silver")


def test_an_error_of_a_file_names_its_key(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "n.sql").write_text("SELECT 1")
    pipeline = parse(CONFIG.replace('sql = "SELECT"', 'sql_file = "n.sql"'), tmp_path)
    with pytest.raises(ConfigError, match=r"^aggregates\.hourly\.sql_file: OneRowRelation is not supported"):
        gold_sql.resolved(spark, pipeline)


def test_the_key_of_a_query_is_not_guessed(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"not known yet; call gold_sql\.resolved first"):
        current(spark.range(1), parse(CONFIG, tmp_path).aggregates["hourly"])
