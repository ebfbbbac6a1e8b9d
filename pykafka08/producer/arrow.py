"""A pyarrow table as the columns that a producer takes: the extra ``arrow``.  Pure.

Columns: ``value``, and if there are such ``key``, ``headers``, ``partition`` and ``timestamp``.  Whatever else a table
has, such as a fetched one its offsets, is for the application to drop: nothing is left out unsaid.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from pykafka08.errors import ConfigError, RecordTypeError
from pykafka08.producer.checks import check_partition, check_timestamp
from pykafka08.records.libraries import ARROW_MISSING
from pykafka08.records.record import Headers

__all__ = ["Columns", "columns_of", "table_of"]

KNOWN = ("value", "key", "headers", "partition", "timestamp")


class Columns(NamedTuple):
    """Lists of one length; None for a column that there is not."""

    values: list[bytes | None]
    keys: list[bytes | None] | None = None
    headers: Sequence[Headers] | None = None
    partitions: Sequence[int | None] | None = None
    timestamps_ms: Sequence[int | None] | None = None


def table_of(topic: str, data: Any) -> Any:
    """A Table or RecordBatch as a Table of the types that are read from it.

    RecordTypeError for what is no such table, has no column ``value`` or one that is unknown, or has the wrong types;
    LocalProtocolError for a time and UnknownTopicError for a partition below 0; ConfigError without pyarrow.
    """
    try:
        import pyarrow as pa
    except ImportError as error:
        raise ConfigError(ARROW_MISSING) from error
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
        name: (_header_column if name == "headers" else _cast)(pa, topic, name, data.column(name)) for name in names
    }
    for name, check in (("timestamp", check_timestamp), ("partition", check_partition)):
        least = _least(casts[name]) if name in casts else None
        if least is not None:
            check(least, topic)
    return pa.table(casts)


def columns_of(batch: Any) -> Columns:
    """The columns of a RecordBatch of such a table."""
    lists = {name: batch.column(name).to_pylist() for name in batch.schema.names}
    headers = lists.get("headers")
    return Columns(
        lists["value"],
        lists.get("key"),
        None if headers is None else [_headers(each) for each in headers],
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
        # Nothing but nulls has no type: each is what the record has without the column.
        if name == "partition" and (types.is_integer(kind) or types.is_null(kind)):
            return column.cast(pa.int32())
        if name == "timestamp":
            if types.is_timestamp(kind):
                # Parts of a millisecond are cut off; seconds that are too many milliseconds are an error.
                return column.cast(pa.timestamp("ms", tz=kind.tz), safe=kind.unit == "s").cast(pa.int64())
            if types.is_integer(kind) or types.is_null(kind):
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


def _header_column(pa: Any, topic: str, name: str, column: Any) -> Any:
    """The column, if each row is null or holds keys, of text, and values: lists of structs, as fetched, or maps."""
    types = pa.types
    kind = column.type
    is_list = types.is_list(kind) or types.is_large_list(kind)
    found = [chunk.flatten() for chunk in column.chunks] if is_list else []
    if types.is_null(kind) or (is_list and types.is_null(kind.value_type) and not any(map(len, found))):
        return column  # pyarrow cannot tell of what these are
    fields = {}
    if types.is_map(kind):
        fields = {"key": kind.key_type, "value": kind.item_type}
    elif is_list and types.is_struct(kind.value_type):
        fields = {field.name: field.type for field in kind.value_type}
    is_one = fields.keys() == {"key", "value"} and _is_text(types, fields["key"])
    if not is_one or not (_is_text(types, fields["value"]) or _is_bytes(types, fields["value"])):
        raise RecordTypeError(
            f"topic {topic!r}: the column {name} holds {kind}; it must hold lists of a key, of text, and a value, "
            "of binary or text",
            topic=topic,
        )
    try:
        for chunk in column.chunks:
            chunk.validate(full=True)
    except pa.ArrowException as error:
        raise RecordTypeError(f"topic {topic!r}: the column {name} cannot be read: {error}", topic=topic) from error
    # Maps have no null keys; in a list there may be one, or a null instead of the pair.
    if any(pairs.flatten()[pairs.type.get_field_index("key")].null_count for pairs in found):
        raise RecordTypeError(f"topic {topic!r}: the column {name} has a pair without a key", topic=topic)
    return column


def _is_text(types: Any, kind: Any) -> bool:
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _is_bytes(types: Any, kind: Any) -> bool:
    return bool(
        types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind) or types.is_null(kind)
    )


def _least(column: Any) -> int | None:
    """The least number of the column, None if it has none."""
    import pyarrow.compute as pc

    least: int | None = pc.min_max(column)["min"].as_py()
    return least


def _headers(found: Any) -> Headers:
    """Of one record."""
    pairs = [(each["key"], each["value"]) if isinstance(each, dict) else each for each in found or ()]
    return tuple([(name, value.encode() if isinstance(value, str) else value) for name, value in pairs])
