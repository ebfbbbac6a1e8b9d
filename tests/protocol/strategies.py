"""Hypothesis strategies for messages, made from their declarations."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from pykafka08.protocol.fields import Field
from pykafka08.protocol.messages import REGISTRY, request_class, response_class
from pykafka08.protocol.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from pykafka08.protocol.schema import Message

__all__ = ["ALL_MESSAGES", "messages"]

ALL_MESSAGES: list[type[Message]] = [
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    *(message for key in REGISTRY for message in (request_class(key), response_class(key))),
]

_UNKNOWN_TAG = 1000
"""Above all declared tags."""


def _integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


_KINDS: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "int8": _integers(8),
    "int16": _integers(16),
    "uint16": st.integers(0, 0xFFFF),
    "int32": _integers(32),
    "uint32": st.integers(0, 0xFFFFFFFF),
    "int64": _integers(64),
    "float64": st.floats(allow_nan=False),
    "string": st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.just("x" * 200),
    "bytes": st.binary(max_size=6) | st.just(b"y" * 200),
    "records": st.binary(max_size=6),
    "uuid": st.uuids(),
}


def messages(message: type[Any], version: int, is_flexible: bool) -> st.SearchStrategy[Any]:
    """Instances whose fields are those of the version; the others keep their defaults."""
    fields = {field.name: _values(field, version, is_flexible) for field in message.schema if field.is_in(version)}
    made = st.builds(message, **fields)
    if not is_flexible:
        return made
    unknown = st.none() | st.dictionaries(
        st.integers(_UNKNOWN_TAG, 1 << 31), st.binary(max_size=4), min_size=1, max_size=2
    )
    return st.builds(_with_unknown_tags, made, unknown)


def _with_unknown_tags(made: Any, unknown: dict[int, bytes] | None) -> Any:
    made.unknown_tagged_fields = unknown
    return made


def _values(field: Field, version: int, is_flexible: bool) -> st.SearchStrategy[Any]:
    kind = field.element if field.kind == "array" else field.kind
    assert kind is not None
    value = messages(field.struct, version, is_flexible) if field.struct is not None else _KINDS[kind]
    if field.kind == "array":
        value = st.lists(value, max_size=2)
    if field.is_nullable(version):
        value = st.none() | value
    return value
