"""Rows of one file in the columns of another."""

from __future__ import annotations

import pyarrow as pa

__all__ = ["fitted"]


def fitted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The columns of ``schema``, in its order and types; null where ``batch`` has none of that name."""
    there = set(batch.schema.names)
    columns = [
        batch.column(one.name).cast(one.type) if one.name in there else pa.nulls(batch.num_rows, one.type)
        for one in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
