"""A column of Spark with values in a registry's wire format as JSON texts, or the reason why a record is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import StructType

from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline.registry.client import SchemaRegistry
from pykafka08.spark.pipeline.registry.wire_format import BadValueError, framed
from pykafka08.spark.pipeline.settings import Decode, Registry

__all__ = ["check_packages", "texts", "to_text"]

TEXT = "text STRING, reason STRING"
"""Text or reason is null; both are null if the value is."""


class Reader(Protocol):
    """Reads payloads of one schema."""

    def text(self, payload: bytes, columns: StructType) -> str:
        """A value as JSON text for the columns.  Raises BadValueError."""


def to_text(decode: Decode, columns: StructType, *, is_key: bool = False) -> Callable[[Column], Column]:
    """A function from a binary column to a struct with the fields :data:`TEXT`.

    ``columns`` are the columns to read from the values.  ``is_key``: ``decode.avro_schema`` is not used for keys.
    """
    registry, form = decode.registry, decode.format
    assert registry is not None
    check_packages(form)
    reader = "" if is_key else _reader_schema(decode)

    def decoded(values: pa.Array) -> pa.Array:
        found = list(texts(values.to_pylist(), registry, form, columns, reader))
        return pa.StructArray.from_arrays(
            [pa.array([text for text, _ in found], pa.string()), pa.array([why for _, why in found], pa.string())],
            names=["text", "reason"],
        )

    decoded.__annotations__ = {"values": pa.Array, "return": pa.Array}  # Spark reads them as types
    column: Callable[[Column], Column] = arrow_udf(decoded, TEXT)  # type: ignore[call-overload]
    return column


def texts(
    values: Iterable[bytes | None], registry: Registry, form: str, columns: StructType, reader: str = ""
) -> Iterable[tuple[str | None, str | None]]:
    """Text and reason of each value.  Raises RegistryError if the registry does not answer."""
    client = SchemaRegistry(registry)
    for value in values:
        if value is None:
            yield None, None
            continue
        try:
            number, payload = framed(value)
            yield _reader(client, registry, number, form, reader).text(payload, columns), None
        except BadValueError as error:
            yield None, str(error)


_READERS: dict[tuple[Registry, int, str, str], Reader | BadValueError] = {}
"""The readers of this process, which outlive tasks; an error for a schema that cannot be used."""


def _reader(client: SchemaRegistry, registry: Registry, number: int, form: str, reader: str) -> Reader:
    key = registry, number, form, reader
    if key not in _READERS:
        schema = client.schema(number, form)
        try:
            _READERS[key] = _class(form)(schema, reader)
        except BadValueError as error:
            _READERS[key] = error
    found = _READERS[key]
    if isinstance(found, BadValueError):
        raise BadValueError(str(found))
    return found


def _class(form: str) -> Callable[[Any, str], Reader]:
    if form == "avro":
        from pykafka08.spark.pipeline.registry.avro import AvroReader

        return AvroReader
    if form == "json":
        from pykafka08.spark.pipeline.registry.json_schema import JsonReader

        return JsonReader
    from pykafka08.spark.pipeline.registry.protobuf import ProtobufReader

    return ProtobufReader


def check_packages(form: str) -> None:
    """Raise ConfigError if the extra ``registry`` is not installed."""
    try:
        _class(form)
    except ImportError as error:
        raise ConfigError(f"decode.registry: {error}; pip install 'pykafka08[registry]'") from error


def _reader_schema(decode: Decode) -> str:
    if not decode.avro_schema:
        return ""
    try:
        return json.dumps(json.loads(Path(decode.avro_schema).read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise ConfigError(f"decode.avro_schema: {error}") from error
