"""Columns of Spark as columns of Iceberg, and back.

Iceberg has no types for bytes and shorts: such columns are integers.  Every column is nullable.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from itertools import count
from typing import Any

from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
)

from pykafka08.errors import ConfigError

__all__ = ["iceberg_schema", "identity_spec", "spark_name", "spark_schema"]

PRIMITIVES: Mapping[str, IcebergType] = {
    "boolean": BooleanType(),
    "byte": IntegerType(),
    "short": IntegerType(),
    "integer": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "date": DateType(),
    "timestamp": TimestamptzType(),
    "timestamp_ntz": TimestampType(),
    "string": StringType(),
    "binary": BinaryType(),
}
NAMES = {kind: name for name, kind in PRIMITIVES.items() if name not in ("byte", "short")}
DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")


def iceberg_schema(schema: str) -> Schema:
    """The schema for the JSON of Spark's StructType.

    Raises:
        ConfigError: a column has a type that Iceberg tables cannot have.
    """
    ids = count(1)
    return Schema(*_fields(json.loads(schema)["fields"], ids))


def identity_spec(schema: Schema, columns: Collection[str]) -> PartitionSpec:
    """The partition spec with the values of columns."""
    return PartitionSpec(
        *(
            PartitionField(
                schema.find_field(name).field_id, PARTITION_FIELD_ID_START + number, IdentityTransform(), name
            )
            for number, name in enumerate(columns)
        )
    )


def _fields(fields: Collection[Mapping[str, Any]], ids: Iterator[int], above: str = "") -> list[NestedField]:
    return [
        NestedField(
            field_id=next(ids),
            name=one["name"],
            field_type=_iceberg_type(one["type"], ids, f"{above}{one['name']}"),
            required=False,
        )
        for one in fields
    ]


def _iceberg_type(kind: Any, ids: Iterator[int], column: str) -> IcebergType:
    if isinstance(kind, str):
        decimal = DECIMAL.fullmatch(kind)
        if decimal is not None:
            return DecimalType(int(decimal[1]), int(decimal[2]))
        if kind in PRIMITIVES:
            return PRIMITIVES[kind]
    elif kind["type"] == "struct":
        return StructType(*_fields(kind["fields"], ids, f"{column}."))
    elif kind["type"] == "array":
        element = next(ids)
        return ListType(element, _iceberg_type(kind["elementType"], ids, column), element_required=False)
    elif kind["type"] == "map":
        key, value = next(ids), next(ids)
        key_type = _iceberg_type(kind["keyType"], ids, column)
        return MapType(key, key_type, value, _iceberg_type(kind["valueType"], ids, column), value_required=False)
    shown = kind if isinstance(kind, str) else kind["type"]
    raise ConfigError(f"column {column} is {shown}, which Iceberg tables cannot have; convert it to another type")


def spark_schema(schema: Schema) -> str:
    """The JSON of Spark's StructType."""
    return json.dumps(_spark_type(schema.as_struct()))


def spark_name(kind: IcebergType) -> str:
    """Spark's name of a type; its JSON if the type is a struct, an array or a map."""
    document = _spark_type(kind)
    return document if isinstance(document, str) else json.dumps(document)


def _spark_type(kind: IcebergType) -> Any:
    if isinstance(kind, StructType):
        fields = [
            {"name": one.name, "type": _spark_type(one.field_type), "nullable": True, "metadata": {}}
            for one in kind.fields
        ]
        return {"type": "struct", "fields": fields}
    if isinstance(kind, ListType):
        return {"type": "array", "elementType": _spark_type(kind.element_type), "containsNull": True}
    if isinstance(kind, MapType):
        key, value = _spark_type(kind.key_type), _spark_type(kind.value_type)
        return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
    return f"decimal({kind.precision},{kind.scale})" if isinstance(kind, DecimalType) else NAMES.get(kind, str(kind))
