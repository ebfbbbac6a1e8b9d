"""Avro values as JSON texts, by the package fastavro, on the executors; no jar is needed."""

from __future__ import annotations

import io
import json
from base64 import b64encode
from collections.abc import Callable
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import fastavro
from fastavro.schema import SchemaParseException
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, DataType, StructType

from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline.settings import Decode

__all__ = ["fitted", "plain", "to_json"]


def to_json(decode: Decode, columns: StructType) -> Callable[[Column], Column]:
    """A function on a binary column: the value as JSON, null where it is not Avro of the schema, or more follows.

    ``columns``: what is to be read out of it; bytes are Base64 for a BINARY column, as Spark has them in JSON, and
    else a text of as many characters.
    """
    try:
        schema = fastavro.parse_schema(json.loads(Path(decode.avro_schema).read_text(encoding="utf-8")))
    except (OSError, ValueError, SchemaParseException) as error:
        raise ConfigError(f"decode.avro_schema: {error}") from error
    skipped = decode.avro_header_bytes

    def text(value: bytes | None) -> str | None:
        return None if value is None else _text(value, skipped, schema, columns)

    return F.udf(text, "string", useArrow=False)  # the other form wants pandas


def _text(value: bytes, skipped: int, schema: Any, columns: DataType) -> str | None:
    stream = io.BytesIO(value[skipped:])
    try:
        row = fastavro.schemaless_reader(stream, schema, None)
    except Exception:  # noqa: BLE001  (whatever broken bytes lead fastavro to raise)
        return None
    return json.dumps(fitted(row, columns), default=plain) if not stream.read(1) else None


def fitted(value: Any, kind: DataType | None) -> Any:
    """A value with its bytes as text: Base64 for a BINARY column.  ``kind`` is None for a value without a column."""
    if isinstance(value, bytes):
        return (b64encode(value) if isinstance(kind, BinaryType) else value).decode("latin-1")
    if isinstance(value, list):
        return [fitted(one, getattr(kind, "elementType", None)) for one in value]
    if isinstance(value, dict):
        kinds = {one.name: one.dataType for one in kind} if isinstance(kind, StructType) else {}
        other = getattr(kind, "valueType", None)
        return {name: fitted(one, kinds.get(name, other)) for name, one in value.items()}
    return value


def plain(value: Any) -> Any:
    """The text of a value whose type JSON lacks."""
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    return str(value)
