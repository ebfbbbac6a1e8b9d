"""How a node's data is declared: one class per kind of node, its JSON keys in a table, read and written by one loop.

Data is UTF-8.  Reading takes unknown keys and higher versions; what is unknown is kept and written back.  What Kafka's
own readers would fail on is a :class:`MalformedNodeError` with the node's path.  Writing makes plain correct JSON,
compact as Kafka writes it; integers have 32 bits unless a shape says otherwise, as the JSON reader of 0.8 to 0.11 takes
no others.

Not here: where nodes lie (``zookeeper/paths.py``), nor any kind of node.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, TypeVar

from pykafka08.errors import MalformedNodeError
from pykafka08.zookeeper.nodes.shapes import Shape

__all__ = [
    "JsonNode",
    "JsonObject",
    "Key",
    "Node",
    "NumberNode",
    "Plain",
    "TextNode",
    "json_bytes",
    "json_object",
    "nested",
]

N = TypeVar("N", bound="Node")
J = TypeVar("J", bound="JsonNode")
O = TypeVar("O", bound="JsonObject")  # noqa: E741
P = TypeVar("P", bound="Plain")
T = TypeVar("T", bound="TextNode")
I = TypeVar("I", bound="NumberNode")  # noqa: E741


class Node(ABC):
    """What one ZooKeeper node holds."""

    @classmethod
    @abstractmethod
    def decode(cls: type[N], data: bytes, path: str) -> N:
        """The node that ``data`` says; ``path`` is for the error.  MalformedNodeError if it says none."""

    @abstractmethod
    def encode(self) -> bytes:
        """The data to write; ConfigError for what Kafka's readers could not take."""


class Key(NamedTuple):
    """One key of a JSON object."""

    name: str
    attribute: str
    shape: Shape[Any]
    is_required: bool = True
    since: int = 0
    """The first version that has it; in older ones it is written only if it says something."""


@dataclass(frozen=True, kw_only=True)
class JsonObject:
    """A JSON object.  Subclasses name its keys, in the order of writing; None is written for the required ones."""

    KEYS: ClassVar[tuple[Key, ...]]

    unknown: Mapping[str, object] = field(default_factory=dict, repr=False)
    """Keys that this class does not know, as they were read."""

    @classmethod
    def of_object(cls: type[O], document: Mapping[str, object]) -> O:
        """ValueError if a key is missing or has an impossible value."""
        values: dict[str, Any] = {}
        for key in cls.KEYS:
            if key.name in document:
                values[key.attribute] = _value(key, document[key.name])
            elif key.is_required:
                raise ValueError(f"the key {key.name!r} is missing")
        known = {key.name for key in cls.KEYS}
        return cls(**values, unknown={name: value for name, value in document.items() if name not in known})

    def to_object(self) -> dict[str, object]:
        document: dict[str, object] = {}
        version = getattr(self, "version", 0)
        number = version if isinstance(version, int) else 0
        for key in self.KEYS:
            value = getattr(self, key.attribute)
            if value is None and not key.is_required:
                continue
            if number >= key.since or value:
                document[key.name] = key.shape.write(value)
        return {**document, **self.unknown}


def _value(key: Key, value: object) -> object:
    try:
        return key.shape.read(value)
    except ValueError as why:
        raise ValueError(f"the key {key.name!r} {why}") from None


def nested(kind: type[O]) -> Shape[O]:
    """Such an object inside of another."""

    def read(value: object) -> O:
        if not isinstance(value, dict):
            raise ValueError(f"has {_shown(repr(value))}, which is no object")
        try:
            return kind.of_object(value)
        except ValueError as why:
            raise ValueError(f"has an entry where {why}") from None

    return Shape(read, kind.to_object)


@dataclass(frozen=True, kw_only=True)
class JsonNode(JsonObject, Node):
    """A node that holds a JSON object with a version."""

    version: int = 1

    @classmethod
    def decode(cls: type[J], data: bytes, path: str) -> J:
        return cls._decode_object(json_object(data, path), path)

    @classmethod
    def _decode_object(cls: type[J], document: Mapping[str, object], path: str) -> J:
        try:
            return cls.of_object(document)
        except ValueError as why:
            raise MalformedNodeError(path, str(why)) from None

    def encode(self) -> bytes:
        return json_bytes(self.to_object())


@dataclass(frozen=True)
class Plain(Node):
    """A node that is there for its children, or for being there.  What it holds means nothing, and is kept."""

    data: bytes = b""

    @classmethod
    def decode(cls: type[P], data: bytes, path: str) -> P:
        return cls(data)

    def encode(self) -> bytes:
        return self.data


@dataclass(frozen=True)
class TextNode(Node):
    """Text as it stands, with no JSON."""

    text: str

    @classmethod
    def decode(cls: type[T], data: bytes, path: str) -> T:
        return cls(_text(data, path))

    def encode(self) -> bytes:
        return self.text.encode()


@dataclass(frozen=True)
class NumberNode(Node):
    """A whole number as decimal text."""

    number: int

    @classmethod
    def decode(cls: type[I], data: bytes, path: str) -> I:
        text = _text(data, path)
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdecimal()) or len(digits) > 19 or int(digits) >= 1 << 63:
            raise MalformedNodeError(path, f"its data is no decimal number but {_shown(text)}")
        return cls(int(text))

    def encode(self) -> bytes:
        return str(self.number).encode()


def _text(data: bytes, path: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise MalformedNodeError(path, "its data is not UTF-8") from None


def json_object(data: bytes, path: str, repaired: Callable[[str], str] | None = None) -> dict[str, object]:
    """The JSON object that ``data`` holds.  If it is not JSON, what ``repaired`` makes of the text is read instead."""
    document = json_value(data, path, repaired)
    if not isinstance(document, dict):
        raise MalformedNodeError(path, f"its data is no JSON object but {_shown(repr(document))}")
    return document


def json_value(data: bytes, path: str, repaired: Callable[[str], str] | None = None) -> object:
    """The same for any JSON value."""
    text = _text(data, path)
    try:
        return _parse(text)
    except ValueError as why:
        if repaired is not None:
            try:
                return _parse(repaired(text))
            except ValueError:
                pass
        said = f"its data is not JSON ({why}): {_shown(text)}" if text else "it is empty, where JSON is expected"
        raise MalformedNodeError(path, said) from None


def _parse(text: str) -> object:
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON number")


def _shown(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


def json_bytes(document: object) -> bytes:
    """Compact JSON in UTF-8; a lone half of a surrogate pair, which UTF-8 has no bytes for, stays escaped."""
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(document, separators=(",", ":"), allow_nan=False).encode()
