"""Definitions of aggregates: the settings and types to which the state of a stage and its gold table belong.

The first run of a stage writes ``definitions/NAME.json``.  A later run with another definition is refused, because
Spark would apply the new expressions to the state of the old ones, and gold would have windows of both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType
from pyspark.sql.utils import is_remote

from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline.aggregating import windowed
from pykafka08.spark.pipeline.gold_sql import aggregation_of, elements_of, stream_with, without_alias
from pykafka08.spark.pipeline.settings import Aggregate, Pipeline
from pykafka08.spark.pipeline.stores import Folder
from pykafka08.spark.pipeline.tables import rows as table_rows
from pykafka08.spark.pipeline.tables.table import Table

__all__ = ["Definition", "check_definitions", "definition_of", "normalised", "path_of", "write_definitions"]

FOLDER = "definitions"
CATALYST = "org.apache.spark.sql.catalyst.expressions"
SPACE = re.compile(
    r"""((?<!\w)[rR](?:'[^']*'|"[^"]*")                      # raw text, in which a backslash quotes nothing
      | '(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`)  # quoted text, which stays
      | (?: --[^\n]* | /\*.*?\*/ | \s )+""",
    re.VERBOSE | re.DOTALL,
)
SHOWN = 100
"""Characters of a setting that an error shows, from shortly before the first difference."""


@dataclass(frozen=True)
class Part:
    """A group or an aggregate function, with the types on which its state depends."""

    column: str
    """The column of gold, or of the query's ``GROUP BY``."""
    sql: str
    """The expression of the group, or the call of the function."""
    inputs: tuple[str, ...]
    """The types of its arguments."""
    state: tuple[str, ...]
    """The types of its state."""
    is_declared: bool
    """Whether Spark keeps the state in columns.  Otherwise the state also depends on the types of the arguments."""

    def has_same_state(self, other: Part) -> bool:
        return self.state == other.state and (self.is_declared or self.inputs == other.inputs)


@dataclass(frozen=True)
class Definition:
    """The definition of an aggregate."""

    settings: Mapping[str, str]
    """Setting → its normalised text."""
    parts: tuple[Part, ...]
    is_complete: bool = True
    """False while gold is being computed again."""

    @classmethod
    def read(cls, path: Folder) -> Definition | None:
        """The definition in a file; None if the file does not exist.  Raises ConfigError for a damaged file."""
        try:
            return cls.of(path.read_text())
        except FileNotFoundError:
            return None
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            name = path.name.removesuffix(".json")
            raise ConfigError(
                f"aggregates.{name}: {path} is damaged ({type(error).__name__}: {error}); restore the file from a "
                "backup, or compute all windows again with `pykafka08 pipeline backfill CONFIG.toml --restate "
                f"{name}`"
            ) from error

    @classmethod
    def of(cls, text: str) -> Definition:
        """The definition in the content of a file."""
        document = json.loads(text)
        parts = [{**one, "inputs": tuple(one["inputs"]), "state": tuple(one["state"])} for one in document["parts"]]
        return cls(document["settings"], tuple(Part(**one) for one in parts), document["is_complete"])

    def text(self) -> str:
        """The content of its file."""
        return json.dumps(asdict(self), indent=1)


def check_definitions(spark: SparkSession, pipeline: Pipeline) -> None:
    """Raise ConfigError if an aggregate differs from the one that its stage has run; the text names what differs.

    ``pipeline`` is a result of :func:`gold_sql.resolved`.
    """
    for name, aggregate in pipeline.aggregates.items():
        kept = Definition.read(path_of(pipeline, name))
        if kept is not None and not kept.is_complete:
            raise ConfigError(
                f"aggregates.{name}: gold was not computed again completely; repeat `pykafka08 pipeline backfill "
                f"CONFIG.toml --restate {name}`"
            )
        if _has_run(pipeline, name):
            there, wanted = _silver_of_table(spark, pipeline), table_rows.silver_schema(spark, pipeline.decode)
            if kept is not None or there.simpleString() != wanted.simpleString():
                known = kept or definition_of(spark, there, aggregate)
                _check(name, aggregate, known, definition_of(spark, wanted, aggregate))
            _check_gold(spark, pipeline, name, aggregate)


def write_definitions(spark: SparkSession, pipeline: Pipeline, stages: Collection[str]) -> None:
    """Write the definitions of aggregates whose stage has not run yet, or was run by a version without definitions.

    ``stages`` are the stages of this run.  Call :func:`check_definitions` before this, and widen silver after it.
    """
    for name, aggregate in pipeline.aggregates.items():
        path = path_of(pipeline, name)
        if _has_run(pipeline, name):
            if not path.exists():  # an earlier version of this package has run the stage
                path.write_once(definition_of(spark, _silver_of_table(spark, pipeline), aggregate).text())
        elif f"aggregate-{name}" in stages:
            wanted = table_rows.silver_schema(spark, pipeline.decode)
            path.write_text(definition_of(spark, wanted, aggregate).text())


def path_of(pipeline: Pipeline, name: str) -> Folder:
    """The file with the definition of an aggregate."""
    return pipeline.root / FOLDER / f"{name}.json"


def definition_of(spark: SparkSession, silver: StructType, aggregate: Aggregate) -> Definition:
    """The definition of an aggregate over a table with the columns ``silver``."""
    if is_remote():
        from pykafka08.spark.pipeline.local_check import local_definition_of

        return local_definition_of(silver, aggregate)
    settings = {"watermark": aggregate.watermark, "sql": aggregate.sql}
    if not aggregate.sql:
        measures = "; ".join(f"{name} = {expression}" for name, expression in aggregate.measures.items())
        settings |= {"window": aggregate.window, "slide": aggregate.slide, "measures": measures}
        settings["group_by"] = ", ".join(aggregate.group_by)
    texts = {name: normalised(text) for name, text in settings.items()}
    node = aggregation_of(windowed(stream_with(spark, silver), aggregate))
    parts = [_group(one) for one in elements_of(node.groupingExpressions())]
    for one in elements_of(node.aggregateExpressions()):
        parts += [_function(spark, one.name(), each) for each in _functions(without_alias(one))]
    return Definition({name: text for name, text in texts.items() if text}, tuple(parts))


def normalised(sql: str) -> str:
    """SQL without comments, and with each white space outside of quotes as one space."""
    return SPACE.sub(lambda found: found[1] or " ", sql).strip().removesuffix(";").rstrip()


def _has_run(pipeline: Pipeline, name: str) -> bool:
    planned = (pipeline.checkpoint(f"aggregate-{name}") / "offsets").names()
    return bool(planned) or Table(pipeline.gold(name)).version >= 0


def _silver_of_table(spark: SparkSession, pipeline: Pipeline) -> StructType:
    """The columns of silver, with the types that the table has now."""
    table, wanted = Table(pipeline.silver), table_rows.silver_schema(spark, pipeline.decode)
    if table.version < 0:
        return wanted
    there = {one.name: one for one in table_rows.columns_in_files(table)}
    return StructType([there.get(one.name, one) for one in wanted])


def _functions(expression: Any) -> list[Any]:
    """The aggregate functions in an expression."""
    if expression.nodeName() == "AggregateExpression":
        return [expression.aggregateFunction()]
    return [function for child in elements_of(expression.children()) for function in _functions(child)]


def _group(expression: Any) -> Part:
    kind, is_column = (expression.dataType().sql(),), expression.nodeName() == "AttributeReference"
    sql = expression.sql()
    return Part(expression.name() if is_column else sql, sql, kind, kind, True)


def _function(spark: SparkSession, column: str, function: Any) -> Part:
    gateway = spark.sparkContext._gateway
    sql = function.sql()
    inputs = tuple(one.dataType().sql() for one in elements_of(function.children()))
    while is_instance_of(gateway, function, f"{CATALYST}.RuntimeReplaceable"):
        function = function.replacement()
    is_declared = is_instance_of(gateway, function, f"{CATALYST}.aggregate.DeclarativeAggregate")
    try:
        state = (
            tuple(one.dataType().sql() for one in elements_of(function.aggBufferAttributes())) if is_declared else ()
        )
    except Py4JJavaError:  # Spark knows the state only after more rules of its analyzer
        is_declared, state = False, ()
    return Part(column, sql, inputs, state, is_declared)


def _check(name: str, aggregate: Aggregate, known: Definition, wanted: Definition) -> None:
    for setting in {**known.settings, **wanted.settings}:
        old, new = known.settings.get(setting, ""), wanted.settings.get(setting, "")
        if old != new:
            key = "sql_file" if setting == "sql" and aggregate.sql_file else setting
            was, now = _shown(old, new)
            raise ConfigError(f"aggregates.{name}.{key}: was {was}, and is {now} now; {_advice(name)}")
    if len(known.parts) != len(wanted.parts):
        return  # another release of Spark made the definition; Spark compares the types of the state itself
    for old_part, new_part in zip(known.parts, wanted.parts, strict=True):
        if not old_part.has_same_state(new_part):
            kinds = ", ".join(old_part.state or old_part.inputs), ", ".join(new_part.state or new_part.inputs)
            raise ConfigError(
                f"aggregates.{name}: the state of column {new_part.column} ({new_part.sql}) is {kinds[0]}, but would "
                f"be {kinds[1]} by decode.schema; {_advice(name)}"
            )


def _shown(old: str, new: str) -> tuple[str, str]:
    """The part of each text that an error shows, from shortly before the first difference."""
    pairs = enumerate(zip(old, new, strict=False))
    differing = next((at for at, (one, other) in pairs if one != other), min(len(old), len(new)))
    at = max(0, differing - SHOWN // 4)
    was, now = (repr(text[at : at + SHOWN]) if text else "not set" for text in (old, new))
    return was, now


def _check_gold(spark: SparkSession, pipeline: Pipeline, name: str, aggregate: Aggregate) -> None:
    table = Table(pipeline.gold(name))
    if table.version < 0:
        return
    schema = table_rows.gold_schema(spark, pipeline.decode, aggregate)
    for column, (old, new) in table.changes(schema.json()).items():
        raise ConfigError(f"aggregates.{name}: column {column} is {old} in gold, but would be {new}; {_advice(name)}")
    there = table_rows.columns_in_files(table).names
    if set(there) != set(schema.names):
        raise ConfigError(
            f"aggregates.{name}: gold has the columns {', '.join(there)}, but would have {', '.join(schema.names)}; "
            f"{_advice(name)}"
        )


def _advice(name: str) -> str:
    return (
        "give the aggregate another name, or compute all its windows again with `pykafka08 pipeline backfill "
        f"CONFIG.toml --restate {name}`"
    )
