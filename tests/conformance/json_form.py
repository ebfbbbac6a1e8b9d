"""Our messages in the form of Kafka's JSON converters, to be compared with what Java printed."""

from __future__ import annotations

import base64
from typing import Any
from uuid import UUID

from pykafka08.protocol.schema import Field, Struct

__all__ = ["camel_case", "difference", "json_form"]

_SIZE = "SizeInBytes"
"""What Java may add to the name of a record set, when it prints the size."""

_ODD_NAMES = {"enable_2pc": "enable2Pc"}


def camel_case(name: str) -> str:
    """``topic_id`` as ``topicId``."""
    first, *rest = name.split("_")
    return _ODD_NAMES.get(name) or first + "".join(word.capitalize() for word in rest)


def json_form(item: Struct, version: int) -> dict[str, Any]:
    """What Java's converter prints; record sets are their sizes."""
    result = {}
    for field in item.schema:
        value = getattr(item, field.name)
        if field.is_in(version) and not (field.is_tagged(version) and value == field.new_default()):
            result[camel_case(field.name)] = _value(field, value, version)
    return result


def _value(field: Field, value: Any, version: int) -> Any:
    if value is None:
        return None
    if field.kind == "array":
        return [_plain(field.element, each, version) for each in value]
    return _plain(field.kind, value, version)


def _plain(kind: str | None, value: Any, version: int) -> Any:
    if kind == "struct":
        return json_form(value, version)
    if kind == "records":
        return len(value)
    if kind == "bytes":
        return base64.b64encode(value).decode()
    if isinstance(value, UUID):
        return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")
    return value


def difference(ours: Any, theirs: Any, path: str = "") -> str | None:
    """Where two JSON values differ first, None if they are equal.  Java prints a record set as its size or as empty."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        theirs = {name.removesuffix(_SIZE): value for name, value in theirs.items()}
        if ours.keys() != theirs.keys():
            return f"{path or 'message'}: fields {sorted(ours)}, Java has {sorted(theirs)}"
        pairs = [(f"{path}.{name}" if path else name, ours[name], theirs[name]) for name in ours]
    elif isinstance(ours, list) and isinstance(theirs, list):
        if len(ours) != len(theirs):
            return f"{path}: {len(ours)} elements, Java has {len(theirs)}"
        pairs = [
            (f"{path}[{index}]", mine, other) for index, (mine, other) in enumerate(zip(ours, theirs, strict=True))
        ]
    else:
        return None if _is_equal(ours, theirs) else f"{path}: {ours!r}, Java has {theirs!r}"
    return next((found for name, mine, other in pairs if (found := difference(mine, other, name))), None)


def _is_equal(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, float) and isinstance(theirs, str):
        return repr(ours) == repr(float(theirs))  # "NaN" and "Infinity" are strings in JSON
    if isinstance(ours, int) and not isinstance(ours, bool) and theirs == "":
        return True  # a record set whose size was not printed
    return type(ours) is type(theirs) and bool(ours == theirs)
