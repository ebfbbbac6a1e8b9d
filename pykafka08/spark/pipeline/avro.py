"""Avro values as JSON texts, by the package fastavro, on the executors; no jar is needed."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline.settings import Decode

__all__ = ["to_json"]


def to_json(decode: Decode) -> Callable[[Column], Column]:
    """A function on a binary column: the value as JSON, null where it is not Avro of the schema, or more follows."""
    try:
        schema = json.loads(Path(decode.avro_schema).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"decode.avro_schema: {error}") from error
    skipped = decode.avro_header_bytes

    def text(value: bytes | None) -> str | None:
        return None if value is None else _text(value, skipped, schema)

    return F.udf(text, "string", useArrow=False)  # the other form wants pandas


def _text(value: bytes, skipped: int, schema: Any) -> str | None:
    import fastavro

    stream = io.BytesIO(value[skipped:])
    try:
        row = fastavro.schemaless_reader(stream, schema, None)
    except Exception:  # noqa: BLE001  (whatever broken bytes lead fastavro to raise)
        return None
    return json.dumps(row, default=_plain) if not stream.read(1) else None


def _plain(value: Any) -> Any:
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)
