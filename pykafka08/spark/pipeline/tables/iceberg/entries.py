"""Data files as entries of Iceberg's manifests, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, datetime, timedelta, timezone
from decimal import Context, Decimal
from typing import Any

from pyiceberg.conversions import from_bytes, to_bytes
from pyiceberg.manifest import DataFile as IcebergFile
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.types import DateType, DecimalType, IcebergType, PrimitiveType, TimestampType, TimestamptzType

from pykafka08.spark.pipeline.tables.model import DataFile

__all__ = ["bounds_of", "data_file_of", "iceberg_file_of"]

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
MICROSECOND = timedelta(microseconds=1)
MOST_DIGITS = Context(prec=38)
"""Of a DECIMAL; the default of Python's decimals is 28."""


def iceberg_file_of(file: DataFile, location: str, schema: Schema, spec: PartitionSpec) -> IcebergFile:
    """The entry of a file; ``location`` is the address of the table."""
    stats = json.loads(file.stats or "{}")
    nulls = {name: count for name, count in stats.get("nullCount", {}).items() if name in schema.column_names}
    partition = [_partition_value(schema, one.source_id, file.values[one.name]) for one in spec.fields]
    return IcebergFile.from_args(
        content=DataFileContent.DATA,
        file_path=f"{location}/{file.path}",
        file_format=FileFormat.PARQUET,
        partition=Record(*partition),
        record_count=file.rows,
        file_size_in_bytes=file.bytes,
        column_sizes=None,
        value_counts={schema.find_field(name).field_id: file.rows for name in nulls},
        null_value_counts={schema.find_field(name).field_id: count for name, count in nulls.items()},
        nan_value_counts=None,
        lower_bounds=_bytes_of(stats.get("minValues", {}), schema),
        upper_bounds=_bytes_of(stats.get("maxValues", {}), schema),
        key_metadata=None,
        split_offsets=None,
        equality_ids=None,
        sort_order_id=None,
        spec_id=spec.spec_id,
    )


def data_file_of(file: IcebergFile, location: str, schema: Schema, spec: PartitionSpec) -> DataFile:
    """The file of an entry."""
    values = {
        schema.find_column_name(one.source_id) or one.name: _partition_text(
            schema, one.source_id, file.partition[number]
        )
        for number, one in enumerate(spec.fields)
    }
    return DataFile(file.file_path.removeprefix(f"{location}/"), file.record_count, file.file_size_in_bytes, values)


def bounds_of(file: IcebergFile, schema: Schema, column: str) -> tuple[Any, Any] | None:
    """The smallest and the largest value of a column; None if the entry has none."""
    if column not in schema.column_names:
        return None
    field = schema.find_field(column)
    lower, upper = ((side or {}).get(field.field_id) for side in (file.lower_bounds, file.upper_bounds))
    if lower is None or upper is None or not isinstance(field.field_type, PrimitiveType):
        return None
    smallest, largest = (_value(field.field_type, from_bytes(field.field_type, one)) for one in (lower, upper))
    return smallest, largest


def _bytes_of(bounds: Mapping[str, Any], schema: Schema) -> dict[int, bytes]:
    """The bounds in a file's statistics in Iceberg's binary form, by the ids of the columns."""
    found = {}
    for name, value in bounds.items():
        field = schema.find_field(name) if name in schema.column_names else None
        if field is not None and isinstance(field.field_type, PrimitiveType):
            found[field.field_id] = to_bytes(field.field_type, _plain(field.field_type, value))
    return found


def _plain(kind: IcebergType, value: Any) -> Any:
    """The value of a text or number in a file's statistics."""
    if isinstance(kind, DateType):
        return (date.fromisoformat(value) - EPOCH.date()).days
    if isinstance(kind, TimestamptzType | TimestampType):
        at = datetime.fromisoformat(value.removesuffix("Z")).replace(tzinfo=timezone.utc)
        return (at - EPOCH) // MICROSECOND
    if isinstance(kind, DecimalType):
        return Decimal(value).quantize(Decimal(1).scaleb(-kind.scale), context=MOST_DIGITS)
    return value


def _value(kind: IcebergType, plain: Any) -> Any:
    """The value of a bound or of a partition."""
    if isinstance(kind, DateType) and isinstance(plain, int):
        return EPOCH.date() + timedelta(days=plain)
    if isinstance(kind, TimestamptzType) and isinstance(plain, int):
        return EPOCH + plain * MICROSECOND
    if isinstance(kind, TimestampType) and isinstance(plain, int):
        return EPOCH.replace(tzinfo=None) + plain * MICROSECOND
    return plain


def _partition_value(schema: Schema, field_id: int, text: str) -> Any:
    kind = schema.find_field(field_id).field_type
    return _plain(kind, text) if text else None


def _partition_text(schema: Schema, field_id: int, value: Any) -> str:
    found = _value(schema.find_field(field_id).field_type, value)
    return "" if found is None else str(found)
