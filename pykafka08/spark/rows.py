"""Spark's rows out of fetched batches, as Arrow arrays: no Python object for a record.

The columns, their names, types and order are those of Spark's own ``kafka`` source ("Creating a Kafka Source").  Needs
pyarrow, not pyspark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from pykafka08.records.arrow import ArrowFields, array_of
from pykafka08.records.fetched import FetchedBatch

__all__ = ["COLUMNS", "HEADERS", "MAX_BYTES", "MAX_ROWS", "Rows", "arrow_schema", "cut", "default_columns"]

MAX_ROWS = 32_768
"""Rows of one RecordBatch, as brokers' batches allow."""
MAX_BYTES = 16 * 1024 * 1024
"""Bytes of one RecordBatch; a single batch of a broker that is larger is cut by rows."""

HEADERS = "headers"

_HEADER = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])

_FIELDS = (
    pa.field("key", pa.binary()),
    pa.field("value", pa.binary()),
    pa.field("topic", pa.string()),
    pa.field("partition", pa.int32()),
    pa.field("offset", pa.int64()),
    pa.field("timestamp", pa.timestamp("us", tz="UTC")),
    pa.field("timestampType", pa.int32()),
    pa.field(HEADERS, pa.list_(pa.field("element", _HEADER))),
)
_FIELD_OF = {field.name: field for field in _FIELDS}

COLUMNS = tuple(field.name for field in _FIELDS)
"""All columns, in Spark's order; ``headers`` only with ``includeHeaders``."""


def default_columns(*, include_headers: bool) -> tuple[str, ...]:
    """The columns that Spark's own source has with that value of ``includeHeaders``."""
    return tuple(name for name in COLUMNS if include_headers or name != HEADERS)


def arrow_schema(names: Sequence[str]) -> pa.Schema:
    """What Spark expects of the columns ``names``."""
    return pa.schema([_FIELD_OF[name] for name in names])


class Rows:
    """Makes RecordBatches of the columns ``names``, in their order, of batches of one partition."""

    def __init__(self, names: Sequence[str]) -> None:
        self.schema = arrow_schema(names)
        self._makers = [_MAKERS[name] for name in names]

    def make(self, batches: Sequence[FetchedBatch], end: int) -> pa.RecordBatch:
        """The records of ``batches``, none of them empty, that lie before the offset ``end``; maybe none.

        CorruptRecordError for the first batch that is damaged.
        """
        fields = ArrowFields(batches)
        columns = [make(fields, batches) for make in self._makers]
        made = pa.RecordBatch.from_arrays(columns, schema=self.schema)
        if batches[-1].last_offset < end:
            return made
        offsets = np.frombuffer(fields.offsets().buffers()[1], np.int64)  # not to_numpy, which imports pandas
        return made.slice(0, int(np.searchsorted(offsets, end)))


def cut(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """``rows`` in pieces of at most ``MAX_ROWS`` rows and, where they are of one size, ``MAX_BYTES`` bytes."""
    pieces = max(-(-rows.num_rows // MAX_ROWS), -(-rows.nbytes // MAX_BYTES))
    if pieces <= 1:
        yield rows
        return
    step = max(1, -(-rows.num_rows // pieces))
    for start in range(0, rows.num_rows, step):
        yield rows.slice(start, step)


_Maker = Callable[[ArrowFields, Sequence[FetchedBatch]], pa.Array]


def _topic(fields: ArrowFields, batches: Sequence[FetchedBatch]) -> pa.Array:
    name = batches[0].topic.encode()
    edges = np.arange(fields.count + 1, dtype=np.int32) * len(name)
    return pa.StringArray.from_buffers(fields.count, pa.py_buffer(edges), pa.py_buffer(name * fields.count))


def _partition(fields: ArrowFields, batches: Sequence[FetchedBatch]) -> pa.Array:
    return array_of(pa.int32(), np.full(fields.count, batches[0].partition, np.int32))


def _timestamp_type(fields: ArrowFields, batches: Sequence[FetchedBatch]) -> pa.Array:
    """0 for CreateTime, 1 for LogAppendTime, -1 for none: then the timestamp is -1 ms."""
    kinds = np.array([batch.timestamp_type for batch in batches], np.int32)
    return array_of(pa.int32(), np.repeat(kinds, fields.counts))


def _headers(fields: ArrowFields, batches: Sequence[FetchedBatch]) -> pa.Array:
    """Null where a record has none, as Spark's own source has it."""
    kind = _FIELD_OF[HEADERS].type
    if not fields.has_headers():
        return pa.nulls(fields.count, kind)
    import pyarrow.compute as pc  # here: few queries need it

    lists = fields.headers()
    return pc.if_else(pc.equal(pc.list_value_length(lists), 0), pa.scalar(None, kind), lists.cast(kind))


_MAKERS: dict[str, _Maker] = {
    "key": lambda fields, batches: fields.keys(),
    "value": lambda fields, batches: fields.values(),
    "topic": _topic,
    "partition": _partition,
    "offset": lambda fields, batches: fields.offsets(),
    "timestamp": lambda fields, batches: fields.timestamps("us"),
    "timestampType": _timestamp_type,
    HEADERS: _headers,
}
