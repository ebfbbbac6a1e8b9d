"""Reader of Avro values, by the writer's schema in a registry and an optional reader's schema."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
from fastavro.repository.base import SchemaRepositoryError
from fastavro.schema import SchemaParseException
from pyspark.sql.types import StructType

from pykafka08.spark.pipeline.avro import fitted, plain
from pykafka08.spark.pipeline.registry.client import Schema
from pykafka08.spark.pipeline.registry.wire_format import BadValueError

__all__ = ["AvroReader"]


class AvroReader:
    """Reads values of one schema."""

    def __init__(self, schema: Schema, reader: str) -> None:
        """``reader`` is the reader's schema as JSON, or empty for the writer's.

        Raises:
            BadValueError: the schema is not valid, or one of its references is missing.
        """
        self._number = schema.id
        named: dict[str, Any] = {}
        try:
            for _, text in schema.references:
                fastavro.parse_schema(json.loads(text), named_schemas=named)
            self._writer = fastavro.parse_schema(json.loads(schema.text), named_schemas=named)
            self._reader = fastavro.parse_schema(json.loads(reader)) if reader else None
        except (SchemaParseException, SchemaRepositoryError, ValueError, KeyError, TypeError) as error:
            raise BadValueError(f"schema {schema.id} cannot be used: {error}") from error

    def text(self, payload: bytes, columns: StructType) -> str:
        """The value as JSON text for the columns.  Raises BadValueError."""
        stream = io.BytesIO(payload)
        try:
            row = fastavro.schemaless_reader(stream, self._writer, self._reader)
        except Exception as error:
            raise BadValueError(f"not avro of schema {self._number}: {type(error).__name__}: {error}") from error
        if stream.read(1):
            raise BadValueError(f"not avro of schema {self._number}: bytes follow the value")
        try:
            return json.dumps(fitted(row, columns), default=plain)
        except RecursionError as error:
            raise BadValueError(f"not avro of schema {self._number}: the value is nested too deeply") from error
