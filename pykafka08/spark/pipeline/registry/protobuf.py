"""Reader of Protobuf values, by a file descriptor in a registry."""

from __future__ import annotations

import binascii
import json
import re
from base64 import b64decode
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass
from pyspark.sql.types import StructType

from pykafka08.spark.pipeline.avro import fitted, plain
from pykafka08.spark.pipeline.registry.client import Schema
from pykafka08.spark.pipeline.registry.wire_format import BadValueError, message_path

__all__ = ["ProtobufReader"]

OF_GOOGLE = re.compile(r"google/(protobuf|type|rpc)/[a-z_]+\.proto")
"""Files that schemas import without a reference; ``type`` and ``rpc`` are in the package googleapis-common-protos."""

LONGEST_DECIMAL = 1000
"""Bytes, and places behind or before the point; a DECIMAL of Spark has 38 digits."""


class ProtobufReader:
    """Reads values of one schema."""

    def __init__(self, schema: Schema, reader: str) -> None:
        """Raises BadValueError if the schema is not valid.  ``reader`` is for Avro."""
        self._number = schema.id
        self._pool = DescriptorPool()
        self._names: set[str] = set()
        self._types: dict[tuple[int, ...], type[Message]] = {}
        try:
            for name, text in schema.references:
                self._add(_parsed(text, name))
            self._file = _parsed(schema.text, f"schema-{schema.id}.proto")
            self._add(self._file)
        except (binascii.Error, DecodeError) as error:
            raise BadValueError(
                f"schema {schema.id} cannot be used: it is not a serialized descriptor; "
                "the registry must support format=serialized"
            ) from error
        except (TypeError, ValueError, KeyError) as error:
            raise BadValueError(f"schema {schema.id} cannot be used: {error}") from error

    def _add(self, file: FileDescriptorProto) -> None:
        """Add a file to the pool after those that it imports."""
        if file.name in self._names:
            return
        for name in file.dependency:
            if name not in self._names:
                self._add(_well_known(name))
        self._pool.AddSerializedFile(file.SerializeToString())
        self._names.add(file.name)

    def text(self, payload: bytes, columns: StructType) -> str:
        """The value as JSON text for the columns.  Raises BadValueError."""
        path, rest = message_path(payload)
        if path not in self._types:
            self._types[path] = GetMessageClass(self._pool.FindMessageTypeByName(self._name(path)))
        try:
            message = self._types[path].FromString(rest)
        except DecodeError as error:
            raise BadValueError(f"not protobuf of schema {self._number}: {error}") from error
        return json.dumps(fitted(_row(message), columns), default=plain)

    def _name(self, path: Sequence[int]) -> str:
        """The full name of the message with these indexes."""
        for nested in NESTED:
            found = list(_messages(self._file, path, nested))
            if len(found) == len(path) and not found[-1].options.map_entry:
                names = [self._file.package] if self._file.package else []
                return ".".join([*names, *(one.name for one in found)])
        raise BadValueError(f"schema {self._number} has no message with the indexes {list(path)}")


def _messages(
    file: FileDescriptorProto, path: Sequence[int], nested: Callable[[DescriptorProto], Sequence[DescriptorProto]]
) -> Iterator[DescriptorProto]:
    """The messages on the path, up to the first index that does not exist."""
    types: Sequence[DescriptorProto] = file.message_type
    for index in path:
        if not 0 <= index < len(types):
            return
        yield types[index]
        types = nested(types[index])


def _in_descriptor(message: DescriptorProto) -> Sequence[DescriptorProto]:
    return list(message.nested_type)


def _in_text(message: DescriptorProto) -> Sequence[DescriptorProto]:
    return [one for one in message.nested_type if not one.options.map_entry]


NESTED = (_in_descriptor, _in_text)
"""Lists that an index counts in: most clients count the map entries of a descriptor, the Java client does not."""


def _parsed(text: str, name: str) -> FileDescriptorProto:
    file = FileDescriptorProto.FromString(b64decode(text, validate=True))
    file.name = name
    return file


@cache
def _well_known(name: str) -> FileDescriptorProto:
    """A file that comes with Protobuf or with Confluent's registry."""
    if name == "confluent/type/decimal.proto":
        return _decimal(name)
    if name == "confluent/meta.proto":
        return FileDescriptorProto(name=name, package="confluent", syntax="proto3")  # options that rows do not have
    if not OF_GOOGLE.fullmatch(name):
        raise KeyError(f"it imports {name}, and has no reference of this name; register the schema with its references")
    try:
        module = import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2")
    except ImportError as error:
        raise KeyError(f"it imports {name}; pip install googleapis-common-protos") from error
    return FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)


def _decimal(name: str) -> FileDescriptorProto:
    """Confluent's Decimal: the unscaled value in two's complement, and the scale."""
    file = FileDescriptorProto(name=name, package="confluent.type", syntax="proto3")
    message = file.message_type.add(name="Decimal")
    for number, (field, kind) in enumerate((("value", 12), ("precision", 13), ("scale", 5)), 1):
        message.field.add(name=field, number=number, label=1, type=kind)
    return file


def _row(message: Message) -> Any:
    """A message as JSON values and bytes, by the names of fields in the schema; None for fields that are not set."""
    descriptor: Descriptor = message.DESCRIPTOR
    if descriptor.full_name in SPECIAL:
        return SPECIAL[descriptor.full_name](message)
    return {field.name: _field(message, field) for field in descriptor.fields}


def _field(message: Message, field: FieldDescriptor) -> Any:
    if _is_map(field):
        entries = getattr(message, field.name)
        kind = field.message_type.fields_by_name["value"]
        return {_key(key): _one(entries[key], kind) for key in entries}
    if field.is_repeated:
        return [_one(each, field) for each in getattr(message, field.name)]
    if field.has_presence and not message.HasField(field.name):
        return None
    return _one(getattr(message, field.name), field)


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def _key(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _one(value: Any, field: FieldDescriptor) -> Any:
    if field.message_type is not None:
        return _row(value)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return known.name if known is not None else str(value)
    return value


def _timestamp(message: Any) -> str:
    """The timestamp as text; in years beyond Python's dates, the seconds."""
    try:
        text: str = message.ToJsonString()
    except ValueError:
        return str(message.seconds)
    return text


def _decimal_text(message: Any) -> str:
    """The digits of a Decimal; a broken scale may not fill the memory."""
    if abs(message.scale) > LONGEST_DECIMAL or len(message.value) > LONGEST_DECIMAL:
        raise BadValueError(
            f"a Decimal of {len(message.value)} bytes with the scale {message.scale}; "
            f"both may be at most {LONGEST_DECIMAL}"
        )
    unscaled = int.from_bytes(message.value, "big", signed=True)
    digits = f"{abs(unscaled):0{message.scale + 1}d}" if message.scale > 0 else str(abs(unscaled))
    sign = "-" if unscaled < 0 else ""
    if message.scale > 0:
        return f"{sign}{digits[: -message.scale]}.{digits[-message.scale :]}"
    return f"{sign}{digits}{'0' * -message.scale}"


def _wrapped(message: Any) -> Any:
    return message.value


def _any(message: Any) -> Any:
    return {"type_url": message.type_url, "value": message.value}


def _struct(message: Any) -> Any:
    return {name: _value(message.fields[name]) for name in message.fields}


def _value(message: Any) -> Any:
    kind = message.WhichOneof("kind")
    if kind == "struct_value":
        return _struct(message.struct_value)
    if kind == "list_value":
        return [_value(one) for one in message.list_value.values]
    return None if kind in (None, "null_value") else getattr(message, kind)


SPECIAL: dict[str, Callable[[Any], Any]] = {
    "google.protobuf.Timestamp": _timestamp,
    "google.protobuf.Duration": lambda message: message.seconds + message.nanos / 1e9,
    "google.protobuf.Any": _any,
    "google.protobuf.Struct": _struct,
    "google.protobuf.Value": _value,
    "google.protobuf.ListValue": lambda message: [_value(one) for one in message.values],
    "confluent.type.Decimal": _decimal_text,
    **{
        f"google.protobuf.{name}Value": _wrapped
        for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
    },
}
"""Full name of a message → its value in JSON, for messages that are not JSON objects."""
