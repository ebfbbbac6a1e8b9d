"""What the value of a JSON key may be: how it is read into Python, and written back.

Reading raises ValueError with the end of a sentence that begins with the key's name; writing raises ConfigError.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from pykafka08.errors import ConfigError

__all__ = [
    "Shape",
    "each",
    "integer",
    "long",
    "nullable",
    "number_map",
    "object_",
    "partition_replicas",
    "scalar",
    "string",
    "string_map",
]

T = TypeVar("T")


@dataclass(frozen=True)
class Shape(Generic[T]):
    """A pair of functions: JSON value -> Python value, and back."""

    read: Callable[[object], T]
    write: Callable[[T], object]


def _read_string(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"is no string but {_shown(value)}")
    return value


def _read_scalar(value: object) -> str | int:
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise ValueError(f"is neither a string nor a number but {_shown(value)}")
    return value


def _integer_of(bits: int) -> Shape[int]:
    limit = 1 << (bits - 1)

    def read(value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise ValueError(f"is no whole number but {_shown(value)}")
        if not -limit <= value < limit:
            raise ValueError(f"is {value}, which has more than {bits} bits")
        return value

    def write(value: int) -> int:
        if not -limit <= value < limit:
            raise ConfigError(f"{value} has more than {bits} bits: Kafka could not read the node")
        return value

    return Shape(read, write)


def _read_object(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise ValueError(f"is no object but {_shown(value)}")
    return value


def _write_as_is(value: T) -> object:
    return value


string: Shape[str] = Shape(_read_string, _write_as_is)
scalar: Shape[str | int] = Shape(_read_scalar, _write_as_is)
"""A timestamp: Kafka writes a string; other clients write a number."""
integer = _integer_of(32)
long = _integer_of(64)
object_: Shape[Mapping[str, object]] = Shape(_read_object, dict)
"""An object whose inside is nobody's concern here."""


def nullable(shape: Shape[T]) -> Shape[T | None]:
    return Shape(
        lambda value: None if value is None else shape.read(value),
        lambda value: None if value is None else shape.write(value),
    )


def each(shape: Shape[T]) -> Shape[Sequence[T]]:
    """A list of such values; a tuple in Python."""

    def read(value: object) -> Sequence[T]:
        if not isinstance(value, list):
            raise ValueError(f"is no list but {_shown(value)}")
        return tuple(shape.read(item) for item in value)

    return Shape(read, lambda values: [shape.write(value) for value in values])


def _map_of(shape: Shape[T]) -> Shape[Mapping[str, T]]:
    def read(value: object) -> Mapping[str, T]:
        return {name: shape.read(item) for name, item in _read_object(value).items()}

    return Shape(read, lambda values: {name: shape.write(item) for name, item in values.items()})


string_map = _map_of(string)
number_map = _map_of(integer)


def _read_partition(name: str) -> int:
    if not (name.isascii() and name.isdecimal()) or len(name) > 10:
        raise ValueError(f"has {name!r}, which is no partition number")
    return int(name)


def _read_partition_replicas(value: object) -> Mapping[int, tuple[int, ...]]:
    replicas = each(integer)
    return {_read_partition(name): tuple(replicas.read(item)) for name, item in _read_object(value).items()}


def _write_partition_replicas(values: Mapping[int, Sequence[int]]) -> object:
    return {str(integer.write(partition)): [integer.write(each) for each in ids] for partition, ids in values.items()}


partition_replicas: Shape[Mapping[int, tuple[int, ...]]] = Shape(_read_partition_replicas, _write_partition_replicas)
"""Partition -> broker ids, the first of which is preferred; JSON keys are strings."""


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
