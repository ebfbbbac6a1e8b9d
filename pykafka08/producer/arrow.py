"""A pyarrow table as the columns that a producer takes: the extra ``arrow``.  Pure.

Columns: ``value``, and if there are such ``key``, ``headers``, ``partition`` and ``timestamp``.  Whatever else a table
has, such as a fetched one its offsets, is for the application to drop: nothing is left out unsaid.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from pykafka08.errors import ConfigError, RecordTypeError
from pykafka08.records.record import Headers

__all__ = ["Columns", "columns_of"]

KNOWN = ("value", "key", "headers", "partition", "timestamp")


class Columns(NamedTuple):
    """Lists of one length; None for a column that there is not."""

    values: Sequence[bytes | None]
    keys: Sequence[bytes | None] | None = None
    headers: Sequence[Headers] | None = None
    partitions: Sequence[int | None] | None = None
    timestamps_ms: Sequence[int | None] | None = None


def columns_of(topic: str, data: Any, rows: int) -> Iterator[Columns]:
    """The columns of a Table or RecordBatch, at most so many rows at a time.

    RecordTypeError for what is no such table, has no column ``value`` or one that is unknown, or has the wrong types;
    ConfigError without pyarrow.
    """
    try:
        import pyarrow as pa
    except ImportError as error:
        raise ConfigError("Arrow needs the packages pyarrow and numpy: pip install 'pykafka08[arrow]'") from error
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if not isinstance(data, pa.Table):
        kind = type(data).__name__
        raise RecordTypeError(f"topic {topic!r}: a pyarrow Table or RecordBatch is wanted, not {kind}", topic=topic)
    names = data.column_names
    unknown = [name for name in names if name not in KNOWN]
    if unknown or "value" not in names or len(set(names)) != len(names):
        raise RecordTypeError(
            f"topic {topic!r}: a table to be sent has the column value and, where wanted, each once, "
            f"{', '.join(KNOWN[1:])}; this one has {', '.join(names) or 'none'}",
            topic=topic,
        )
    casts = {
        name: _cast(pa, topic, name, data.column(name)) if name != "headers" else data.column(name) for name in names
    }
    for batch in pa.table(casts).to_batches(max_chunksize=rows):
        lists = {name: batch.column(name).to_pylist() for name in names}
        headers = lists.get("headers")
        yield Columns(
            lists["value"],
            lists.get("key"),
            None if headers is None else [_headers(topic, each) for each in headers],
            lists.get("partition"),
            lists.get("timestamp"),
        )


def _cast(pa: Any, topic: str, name: str, column: Any) -> Any:
    """The column in the type that is read from it."""
    types = pa.types
    kind = column.type
    if types.is_dictionary(kind):
        kind = kind.value_type
    try:
        if name == "partition" and types.is_integer(kind):
            return column.cast(pa.int32())
        if name == "timestamp":
            if types.is_timestamp(kind):
                return column.cast(pa.timestamp("ms", tz=kind.tz), safe=False).cast(pa.int64())
            if types.is_integer(kind):
                return column.cast(pa.int64())
        if name in ("value", "key"):
            if types.is_large_binary(kind) or types.is_large_string(kind):
                return column.cast(pa.large_binary())
            if not (types.is_integer(kind) or types.is_floating(kind) or types.is_nested(kind)):
                return column.cast(pa.binary())
    except pa.ArrowException as error:
        raise RecordTypeError(f"topic {topic!r}: the column {name} cannot be read: {error}", topic=topic) from error
    wanted = {"partition": "integers", "timestamp": "timestamps or integers of milliseconds"}.get(
        name, "binary or text"
    )
    raise RecordTypeError(f"topic {topic!r}: the column {name} holds {kind}; it must hold {wanted}", topic=topic)


def _headers(topic: str, found: Any) -> Headers:
    """Of one record: a list of structs of key and value, as fetched tables have it, or a map."""
    if not found:
        return ()
    made = []
    for each in found:
        name, value = (each.get("key"), each.get("value")) if isinstance(each, dict) else each
        value = value.encode() if isinstance(value, str) else value
        if not isinstance(name, str) or not isinstance(value, (bytes, type(None))):
            raise RecordTypeError(
                f"topic {topic!r}: the column headers holds lists of a key, of text, and a value, of binary or text",
                topic=topic,
            )
        made.append((name, value))
    return tuple(made)
