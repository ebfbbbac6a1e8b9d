"""Aggregates that are written as SQL: checks of the query, and the roles of its columns.

Spark parses and analyses the query, and this module reads the analysed plan.  Streams, backfills and ``verify`` run the
same query and must get the same rows.  So the plan must be a chain of nodes from the result down to silver, with one
``GROUP BY``, only projections above it, and only operations on single rows below it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType
from pyspark.sql.utils import is_remote

from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline.aggregating import BATCH, WINDOW, queried
from pykafka08.spark.pipeline.session import cause_of
from pykafka08.spark.pipeline.settings import Aggregate, Decode, Pipeline
from pykafka08.spark.pipeline.tables.rows import silver_schema

__all__ = [
    "aggregation_of",
    "check_as_stream",
    "elements_of",
    "empty_stream",
    "resolved",
    "resolved_aggregates",
    "stream_with",
    "without_alias",
]

GROUP = "GROUP BY window(event_time, '1 hour')"
SILVER = "EventTimeWatermark"
"""The node of silver: no other table has a watermark."""
ABOVE = {"Project", "SubqueryAlias", "PipeOperator", "View"}
"""Nodes that may be between the result and the aggregation."""
BELOW = {*ABOVE, "Filter", "Generate", "Expand"}
"""Nodes that may be between the aggregation and silver.  Windows that overlap are an ``Expand``."""
ADVICE = {
    "Sort": "ORDER BY is not supported; remove it, and sort where gold is read",
    "GlobalLimit": "LIMIT is not supported; remove it, and limit where gold is read",
    "LocalLimit": "LIMIT is not supported; remove it, and limit where gold is read",
    "Offset": "OFFSET is not supported; remove it",
    "Join": "joins are not supported; read only silver, and join where gold is read",
    "Union": "UNION is not supported; read silver once, with the conditions in WHERE",
    "Distinct": "DISTINCT is not supported; name the columns in GROUP BY",
    "Window": "window functions with OVER are not supported; remove them, or use them where gold is read",
    "Sample": "TABLESAMPLE is not supported, because its rows differ each time; remove it",
}
HAVING = (
    "HAVING, or WHERE after GROUP BY, is not supported, because a row would stay in gold when it no longer passes; "
    "remove it, and filter where gold is read"
)
IN_ORDER = {"First", "Last", "AnyValue", "MinBy", "MaxBy", "CollectList", "CollectSet", "ListAgg"}
"""Aggregate functions whose result depends on the order of the rows."""
ORDER_FREE = {"Size", "SortArray"}
"""Functions of an array whose result does not depend on the order of its elements."""
TIME_WINDOW, SESSION_WINDOW, WATERMARK = "spark.timeWindow", "spark.sessionWindow", "spark.watermarkDelayMs"
MARKS = (TIME_WINDOW, SESSION_WINDOW, WATERMARK)
"""Metadata of a column by which Spark knows windows, and the watermark."""
UNNAMED = re.compile(r"[ ,;{}()\n\t=.`]")
"""Characters that names of columns in Delta tables may not have, and those that would need quotes."""


START, END, MEASURE = "start", "end", "measure"
"""Roles of columns, like :data:`WINDOW`, and ``group 0`` and so on for those of ``GROUP BY``."""
UNSTORED = re.compile(r"\b(void\b|variant\b|map<|interval |time\()")
"""Types that Delta tables do not have, or that ``verify`` cannot compare."""


@dataclass(frozen=True)
class _Column:
    """A column of the result."""

    name: str
    sql: str
    """The expression."""
    role: str


def resolved(spark: SparkSession, pipeline: Pipeline) -> Pipeline:
    """The pipeline with ``group_by`` and ``measures`` of its aggregates that are written as SQL.

    Raises:
        ConfigError: Spark refuses a query, or streams, backfills or ``verify`` cannot run it; the text names its key.
    """
    if is_remote():
        from pykafka08.spark.pipeline.local_check import resolved_locally

        return replace(pipeline, aggregates=resolved_locally(pipeline.decode, pipeline.aggregates))
    return replace(pipeline, aggregates=resolved_aggregates(spark, pipeline.decode, pipeline.aggregates))


def resolved_aggregates(
    spark: SparkSession, decode: Decode, aggregates: Mapping[str, Aggregate]
) -> dict[str, Aggregate]:
    """The aggregates with the columns of their queries, as :func:`resolved`; requires a classic session."""
    return {name: _resolved(spark, decode, name, one) for name, one in aggregates.items()}


def empty_stream(spark: SparkSession, decode: Decode) -> DataFrame:
    """A stream with the columns of silver."""
    return stream_with(spark, silver_schema(spark, decode))


def stream_with(spark: SparkSession, columns: StructType) -> DataFrame:
    """A stream with these columns."""
    nothing = [F.lit(None).cast(field.dataType).alias(field.name) for field in columns]
    return spark.readStream.format("rate").load().select(*nothing)


def aggregation_of(rows: DataFrame) -> Any:
    """The node of Spark's analysed plan that groups the rows of silver."""
    chain = _chain(rows._jdf.queryExecution().analyzed())
    return next(node for node in chain if node.nodeName() == "Aggregate")


def check_as_stream(rows: DataFrame) -> None:
    """Raise the errors of a start of the stage: in streams Spark refuses more, such as ``count(DISTINCT …)``."""
    if is_remote():
        rows.writeStream.format("noop").outputMode("update").trigger(processingTime="1 hour").start().stop()
        return
    spark_sql = rows.sparkSession._jvm.org.apache.spark.sql  # type: ignore[union-attr]
    mode = spark_sql.streaming.OutputMode.Update()
    plan = rows._jdf.queryExecution().analyzed()
    spark_sql.catalyst.analysis.UnsupportedOperationChecker.checkForStreaming(plan, mode)


def _resolved(spark: SparkSession, decode: Decode, name: str, aggregate: Aggregate) -> Aggregate:
    if not aggregate.sql:
        return aggregate
    where = f"aggregates.{name}.{'sql_file' if aggregate.sql_file else 'sql'}"
    silver = empty_stream(spark, decode).withWatermark("event_time", aggregate.watermark)
    try:
        _check_is_query(spark, aggregate.sql)
        rows = queried(silver, aggregate.sql)
        groups, measures = _named(_columns(spark, rows._jdf.queryExecution().analyzed()))
        check_as_stream(rows)
        for field in rows.schema:
            if UNSTORED.search(field.dataType.simpleString()):
                kind = field.dataType.simpleString()
                raise ConfigError(f"{field.name} is of type {kind}, which gold cannot have; convert it with CAST")
    except (PySparkException, Py4JJavaError) as error:
        raise ConfigError(f"{where}: {_told(error)}") from error
    except ConfigError as error:
        raise ConfigError(f"{where}: {error.message}") from None
    return replace(aggregate, group_by=groups, measures=measures)


def _told(error: PySparkException | Py4JJavaError) -> str:
    """The error of Spark in one line."""
    told = cause_of(error).rstrip("; ")
    is_of_table = isinstance(error, PySparkException) and error.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"
    return f"{told} The only table is silver." if is_of_table else told


def _check_is_query(spark: SparkSession, sql: str) -> None:
    """Refuse commands, which Spark would execute at once."""
    parser = spark._jsparkSession.sessionState().sqlParser()
    parser.parsePlan(sql)
    try:
        parser.parsePlan("\n".join(["SELECT * FROM (", sql.strip().removesuffix(";"), ")"]))
    except PySparkException:
        raise ConfigError("write one SELECT over silver; commands and several statements are not supported") from None


def _columns(spark: SparkSession, plan: Any) -> list[_Column]:
    """The columns of the result with their roles.  Raises ConfigError for a plan that is not supported."""
    chain = _chain(plan)
    at = next(number for number, node in enumerate(chain) if node.nodeName() == "Aggregate")
    made = elements_of(chain[at].aggregateExpressions())
    window, groups = _groups(chain[at])
    _check_expressions(spark, plan, chain, made)
    roles = {_id(one): _role(without_alias(one), {window: WINDOW}, groups) for one in made}
    for number in reversed(range(at)):
        node = chain[number]
        if node.nodeName() == "CTERelationRef":
            pairs = zip(elements_of(node.output()), elements_of(chain[number + 1].output()), strict=True)
            roles = {_id(mine): roles[_id(its)] for mine, its in pairs}
        elif node.nodeName() == "Project":
            roles = {_id(one): _role(without_alias(one), roles) for one in elements_of(node.projectList())}
    texts = {_id(one): without_alias(one).sql() for one in made}
    columns = [
        _Column(one.name(), texts.get(_id(one), one.name()), roles[_id(one)]) for one in elements_of(plan.output())
    ]
    for name, one in groups.items():
        if name not in {column.role for column in columns}:
            raise ConfigError(f"SELECT lacks {one.sql()} of GROUP BY; add it, because it is part of the key of gold")
    return columns


def _chain(plan: Any) -> list[Any]:
    """The nodes from the result down to silver, with the queries of WITH in the place of their names."""
    chain: list[Any] = []
    queries: dict[int, Any] = {}
    node, is_grouped, is_filtered = plan, False, False
    while node.nodeName() != SILVER:
        name = node.nodeName()
        if name == "WithCTE":
            queries |= {one.id(): one.child() for one in elements_of(node.cteDefs())}
            node = node.plan()
            continue
        if name == "Aggregate":
            if is_grouped or is_filtered:
                raise ConfigError("more than one GROUP BY is not supported; group once" if is_grouped else HAVING)
            is_grouped = True
        elif name == "Filter" and not is_grouped:
            is_filtered = True
        elif name != "CTERelationRef" and name not in (BELOW if is_grouped else ABOVE):
            raise ConfigError(ADVICE.get(name, f"{name} is not supported; read only silver, with WHERE and GROUP BY"))
        chain.append(node)
        node = queries[node.cteId()] if name == "CTERelationRef" else node.children().apply(0)
    if not is_grouped:
        raise ConfigError(f"there is no GROUP BY; add {GROUP}")
    return chain


def _groups(aggregation: Any) -> tuple[int, dict[str, Any]]:
    """The id of the window's column, and the other expressions of GROUP BY by their roles."""
    window, groups, marks = None, {}, set()
    for number, one in enumerate(elements_of(aggregation.groupingExpressions())):
        is_column = one.nodeName() == "AttributeReference"
        if is_column and one.name() == "spark_grouping_id":
            raise ConfigError("GROUPING SETS, CUBE and ROLLUP are not supported; write an aggregate for each of them")
        found = {mark for mark in MARKS if is_column and one.metadata().contains(mark)}
        marks |= found
        if {TIME_WINDOW, WATERMARK} <= found:
            window = _id(one)
        else:
            groups[f"group {number}"] = one
    if window is not None:
        return window, groups
    if SESSION_WINDOW in marks:
        raise ConfigError(f"session windows are not supported; write {GROUP}")
    if TIME_WINDOW in marks:
        raise ConfigError(f"the window is not of event_time, which has the watermark; write {GROUP}")
    raise ConfigError("there is no window in GROUP BY; add window(event_time, '1 hour')")


def _role(expression: Any, roles: Mapping[int, str], groups: Mapping[str, Any] | None = None) -> str:
    """The role of an expression over columns with these roles."""
    name = expression.nodeName()
    role = roles.get(_id(expression), MEASURE) if name == "AttributeReference" else MEASURE
    if name == "GetStructField" and expression.child().nodeName() == "AttributeReference":
        is_of_window = roles.get(_id(expression.child())) == WINDOW
        role = (START, END)[expression.ordinal()] if is_of_window else MEASURE
    for group, one in (groups or {}).items():
        if role == MEASURE and one.semanticEquals(expression):
            role = group
    return role


def _check_expressions(spark: SparkSession, plan: Any, chain: Sequence[Any], made: Sequence[Any]) -> None:
    """Raise ConfigError for expressions whose result may differ between batches, backfills and ``verify``."""
    for one in made:
        name = _ordered(one)
        if name:
            raise ConfigError(f"{name} depends on the order of rows; use min, max or sort_array")
    patterns = spark._jvm.org.apache.spark.sql.catalyst.trees.TreePattern  # type: ignore[union-attr]
    current, subquery = patterns.CURRENT_LIKE(), patterns.PLAN_EXPRESSION()
    if plan.containsPattern(subquery):
        raise ConfigError("subqueries in expressions are not supported; read only silver")
    if plan.containsPattern(current):
        name = _culprit(chain, lambda one: bool(one.containsPattern(current)))
        raise ConfigError(f"{name} differs in each batch; use the columns of silver")
    if not plan.deterministic():
        name = _culprit(chain, lambda one: not one.deterministic())
        raise ConfigError(f"{name} is not deterministic, so verify could not repeat it; remove it")


def _ordered(expression: Any) -> str:
    """The first aggregate function in an expression that depends on the order of rows, as SQL."""
    if expression.nodeName() == "AggregateExpression":
        return str(expression.sql()) if expression.aggregateFunction().nodeName() in IN_ORDER else ""
    children = elements_of(expression.children())
    if expression.nodeName() in ORDER_FREE and children[0].nodeName() == "AggregateExpression":
        children = children[1:]
    return next((name for name in map(_ordered, children) if name), "")


def _culprit(nodes: Iterable[Any], is_refused: Callable[[Any], bool]) -> str:
    """The innermost expression that is refused, as SQL."""
    level = [one for node in nodes for one in elements_of(node.expressions())]
    found = None
    while True:
        refused = next(filter(is_refused, level), None)
        if refused is None:
            return "an expression" if found is None else str(found.sql())
        found, level = refused, elements_of(refused.children())


def _named(columns: Sequence[_Column]) -> tuple[tuple[str, ...], dict[str, str]]:
    """The columns of the groups, and the measures.  Raises ConfigError for columns that gold cannot have."""
    roles = {one.name.lower(): one.role for one in columns}
    is_split = (roles.get("window_start"), roles.get("window_end")) == (START, END)
    if not is_split and roles.get(WINDOW) != WINDOW:
        raise ConfigError(
            "SELECT lacks the window; add window, or window.start AS window_start, window.end AS window_end"
        )
    of_window = {(WINDOW, WINDOW)} | ({("window_start", START), ("window_end", END)} if is_split else set())
    left = [one for one in columns if (one.name.lower(), one.role) not in of_window]
    groups = {one.role: one.name for one in reversed(left) if one.role not in (WINDOW, START, END, MEASURE)}
    measures = {one.name: one.sql for one in left if one.name not in groups.values()}
    names = Counter(one.name.lower() for one in left)
    for name in ("window_start", "window_end", BATCH):
        names[name] += 1
    for name, count in names.items():
        if count > 1:
            raise ConfigError(f"two columns of gold would be named {name!r}; rename one of them with AS")
    for one in left:
        if UNNAMED.search(one.name):
            raise ConfigError(f"a table cannot have a column {one.name!r}; give it another name with AS")
    if not measures:
        raise ConfigError("SELECT has no measure; add one, such as count(*) AS rows")
    return tuple(one.name for one in left if one.name in groups.values()), measures


def without_alias(expression: Any) -> Any:
    """The expression without its alias."""
    return expression.child() if expression.nodeName() == "Alias" else expression


def _id(column: Any) -> int:
    """The id of a column in the plan."""
    return int(column.exprId().id())


def elements_of(found: Any) -> list[Any]:
    """The elements of a sequence of Scala."""
    return [found.apply(number) for number in range(found.size())]
