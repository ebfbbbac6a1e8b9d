"""Which columns a data frame must have to be written, in the words of Spark's own Kafka writer.  Pure.

Types are Spark's simple strings (``DataType.simpleString()``), so that nothing here needs pyspark.
Source: Spark's guide to structured streaming with Kafka, "Writing Data to Kafka".
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["COLUMNS", "RowSchemaError", "check_columns", "check_mode"]

COLUMNS = {
    "topic": ("string",),
    "key": ("string", "binary"),
    "value": ("string", "binary"),
    "headers": ("array<struct<key:string,value:binary>>",),
    "partition": ("int",),
}
"""The columns that are written, and the types that each may have; other columns are left out, as Spark does it."""


class RowSchemaError(ValueError):
    """A data frame that cannot be written to Kafka."""


def check_columns(columns: Iterable[tuple[str, str]], topic: str | None) -> None:
    """Raise RowSchemaError unless rows of these ``(name, type)`` can be written; ``topic`` is the option's."""
    found = dict(columns)
    if topic is None and "topic" not in found:
        raise RowSchemaError(
            "topic option required when no 'topic' attribute is present. Use the topic option for setting a topic."
        )
    if "value" not in found:
        raise RowSchemaError("Required attribute 'value' not found")
    for name, allowed in COLUMNS.items():
        kind = found.get(name)
        if kind is not None and kind not in allowed and not (name == "topic" and topic is not None):
            raise RowSchemaError(
                f"{name} attribute unsupported type {kind}. {name} must be a(n) {' or '.join(allowed)}"
            )


def check_mode(*, is_overwrite: bool) -> None:
    """Raise RowSchemaError for a batch that is to replace what a topic holds."""
    if is_overwrite:
        raise RowSchemaError(
            'Save mode overwrite not allowed for Kafka. Allowed save mode is append: use .mode("append")'
        )
