"""The columns of the source as Spark's types, and which of them a query has: the option ``columns`` or its own schema.

The same columns as Arrow arrays are in ``rows``, which is not imported: a process that only names columns need not wait
for numpy and pyarrow.  Source: "Creating a Kafka Source for Batch Queries" in Spark's guide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pykafka08.errors import ConfigError

__all__ = ["check_schema", "schema_of"]

HEADERS = "headers"

_HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])

_TYPES: Mapping[str, DataType] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    HEADERS: ArrayType(_HEADER),
}


def schema_of(columns: Sequence[str] | None, *, include_headers: bool) -> StructType:
    """The columns in that order; None for those of Spark's own source.  ConfigError for one that is not there."""
    names = columns
    if names is None:
        names = [name for name in _TYPES if include_headers or name != HEADERS]
    unknown = [name for name in names if name not in _TYPES]
    if unknown or not names or len(set(names)) < len(names):
        raise ConfigError(f"the columns {', '.join(names)} are not some of {', '.join(_TYPES)}, each named once")
    return StructType([StructField(name, _TYPES[name]) for name in names])


def check_schema(schema: StructType) -> tuple[str, ...]:
    """The names of the columns in a schema that the query gave; ConfigError unless they are some of the source's."""
    wanted = schema_of(schema.names, include_headers=True)
    for given, known in zip(schema.fields, wanted.fields, strict=True):
        if given.dataType != known.dataType or not given.nullable:
            raise ConfigError(
                f"Kafka source has a fixed schema: the column {given.name} is {known.dataType.simpleString()}, "
                f"nullable, not {given.dataType.simpleString()}{'' if given.nullable else ' not null'}. "
                "Only some of its columns may be named, with these types."
            )
    return tuple(schema.names)
