"""Reader of JSON values, which validates them by a JSON Schema in a registry."""

from __future__ import annotations

import json
from typing import Any

from jsonschema.exceptions import SchemaError, ValidationError, best_match
from jsonschema.validators import Draft7Validator, validator_for
from pyspark.sql.types import StructType
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT7

from pykafka08.spark.pipeline.registry.client import Schema
from pykafka08.spark.pipeline.registry.json_patterns import PATTERNS, RegressError, with_patterns
from pykafka08.spark.pipeline.registry.wire_format import BadValueError

__all__ = ["JsonReader"]

LONGEST = 200
"""The longest part of a reason, in characters, because the validator's messages contain the value."""


class JsonReader:
    """Reads values of one schema."""

    def __init__(self, schema: Schema, reader: str) -> None:
        """Raises BadValueError if the schema is not valid.  ``reader`` is for Avro."""
        self._number = schema.id
        try:
            document = json.loads(schema.text)
            others = [(name, json.loads(text)) for name, text in schema.references]
            kind = validator_for(document, default=Draft7Validator)
            kind.check_schema(document, format_checker=PATTERNS)
        except (SchemaError, ValueError, TypeError) as error:
            raise BadValueError(f"schema {schema.id} cannot be used: {str(error)[:LONGEST]}") from error
        resources = [(name, Resource.from_contents(one, default_specification=DRAFT7)) for name, one in others]
        known: Registry[Any] = Registry().with_resources(resources)
        self._validator = with_patterns(kind)(document, registry=known)

    def text(self, payload: bytes, columns: StructType) -> str:
        """The value's own text, so that numbers keep all digits.  Raises BadValueError."""
        try:
            text = payload.decode()
            row = json.loads(text)
        except ValueError as error:
            raise BadValueError(f"not json: {error}") from error
        except RecursionError as error:
            raise BadValueError("not json: the value is nested too deeply") from error
        try:
            found: ValidationError | None = best_match(self._validator.iter_errors(row))
        except RecursionError as error:
            raise BadValueError(f"not json of schema {self._number}: value or schema is nested too deeply") from error
        except (Unresolvable, RegressError) as error:
            raise BadValueError(f"schema {self._number} cannot be used: {str(error)[:LONGEST]}") from error
        if found is not None:
            raise BadValueError(f"not json of schema {self._number}: {found.json_path}: {found.message[:LONGEST]}")
        return text
