"""A fetched batch as columns, and what makes two records copies of each other.  Pure."""

from __future__ import annotations

from typing import NamedTuple

from pykafka08.records.message_set import MessageColumns
from pykafka08.records.reader import FetchedBatch
from pykafka08.records.record import Headers, Record

__all__ = ["Columns", "Content", "columns_of", "content_of"]

Content = tuple[bytes | None, bytes | None, Headers]
"""Key, value and headers: what a copy has of its original in every format."""


class Columns(NamedTuple):
    """``keys`` and ``headers`` are None where no record has one; ``first`` is the offset of the first record."""

    values: list[bytes | None]
    keys: list[bytes | None] | None
    headers: list[Headers] | None
    timestamps: list[int]
    first: int


def columns_of(batch: FetchedBatch) -> Columns:
    """The records of a batch that has some."""
    payload = batch.payload
    if isinstance(payload, MessageColumns):  # magic 0 and 1 are read as columns
        rows = payload.columns()
        keys = None if rows.key_edges is None else payload.keys()
        return Columns(payload.values(), keys, None, rows.timestamps_ms.tolist(), rows.offsets[0])
    records = batch.records()
    own_keys = [record.key for record in records]
    headers = [record.headers for record in records]
    return Columns(
        [record.value for record in records],
        own_keys if own_keys.count(None) < len(own_keys) else None,
        headers if any(headers) else None,
        [record.timestamp_ms for record in records],
        records[0].offset,
    )


def content_of(record: Record) -> Content:
    return record.key, record.value, record.headers
