"""Rows of a Parquet file in the columns of a schema."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

__all__ = ["fitted"]


def fitted(batch: pa.RecordBatch, schema: pa.Schema, values: Mapping[str, str] | None = None) -> pa.RecordBatch:
    """The columns of ``schema``, in its order and types; null where ``batch`` has none of that name.

    ``values`` are constants as text, by column.
    """
    return pa.RecordBatch.from_arrays([_column(batch, one, values or {}) for one in schema], schema=schema)


def _column(batch: pa.RecordBatch, field: pa.Field, values: Mapping[str, str]) -> pa.Array:
    if field.name in batch.schema.names:
        return batch.column(field.name).cast(field.type)
    if field.name in values:
        return pa.repeat(pa.scalar(values[field.name]).cast(field.type), batch.num_rows)
    return pa.nulls(batch.num_rows, field.type)
