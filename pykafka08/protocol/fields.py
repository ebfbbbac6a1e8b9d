"""What one field of a message is: its kind, its version ranges, its tag, its default; and the specifiers that say so.

A specifier stands on the right-hand side of a field in a class body::

    topics: list[MetadataRequestTopic] | None = array(MetadataRequestTopic, nullable="1+")

It returns a :class:`Field`, typed as the field's value so that a wrong annotation is a type error.  The decorators of
``schema`` collect the Fields; ``compiler`` turns them into code.  Source: the README of Kafka's message definitions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast, overload
from uuid import UUID

from pykafka08.wire import Buffer

__all__ = [
    "MISSING",
    "ZERO_UUID",
    "Field",
    "VersionRange",
    "array",
    "bool_",
    "bytes_",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "records_",
    "string",
    "struct_",
    "uint16",
    "uint32",
    "uuid_",
]

T = TypeVar("T")

ZERO_UUID = UUID(int=0)
_OPEN_END = 0x7FFF
_RANGE = re.compile(r"(\d+)(?:(\+)|-(\d+))?\Z")


class _Missing:
    """The default of fields that need a new object for each instance."""

    def __repr__(self) -> str:
        return "<new>"


MISSING = _Missing()


@dataclass(frozen=True, slots=True)
class VersionRange:
    """An inclusive range of versions; an open range ("3+") ends at 32767."""

    min: int
    max: int

    @classmethod
    def parse(cls, text: str) -> VersionRange:
        """``"0-13"``, ``"3+"`` or ``"2"``."""
        match = _RANGE.match(text)
        if match is None:
            raise ValueError(f"not a version range: {text!r}")
        first, is_open, last = match.groups()
        return cls(int(first), _OPEN_END if is_open else int(last or first))

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.min <= version <= self.max

    def __str__(self) -> str:
        if self.max == _OPEN_END:
            return f"{self.min}+"
        return str(self.min) if self.min == self.max else f"{self.min}-{self.max}"

    def intersection(self, other: VersionRange) -> VersionRange | None:
        """The versions in both, None where there is none."""
        first, last = max(self.min, other.min), min(self.max, other.max)
        return VersionRange(first, last) if first <= last else None


_ALL = VersionRange(0, _OPEN_END)

_KIND_DEFAULTS: dict[str, object] = {
    "bool": False,
    "int8": 0,
    "int16": 0,
    "uint16": 0,
    "int32": 0,
    "uint32": 0,
    "int64": 0,
    "float64": 0.0,
    "string": "",
    "bytes": b"",
    "records": None,
    "uuid": ZERO_UUID,
    "array": MISSING,
    "struct": MISSING,
}


@dataclass(slots=True, eq=False)
class Field:
    """One declared field.

    ``element`` is the kind of an array's elements; ``struct`` is the class, for structs and arrays of them.
    """

    kind: str
    versions: VersionRange
    nullable: VersionRange | None
    tag: int | None
    tagged: VersionRange | None
    default: Any
    ignorable: bool
    element: str | None = None
    struct: type | None = None
    name: str = ""

    def is_in(self, version: int) -> bool:
        """True if the field exists in that version of the message, tagged or not."""
        return version in self.versions

    def is_tagged(self, version: int) -> bool:
        """True if that version carries the field in the tagged section."""
        return self.tagged is not None and version in self.tagged

    def is_nullable(self, version: int) -> bool:
        """True if that version can say None."""
        return self.nullable is not None and version in self.nullable

    def new_default(self) -> Any:
        """The value of a field that nobody set; a new object where it can be changed."""
        if self.default is not MISSING:
            return self.default
        return [] if self.kind == "array" else cast("type", self.struct)()


def _field(
    kind: str,
    versions: str,
    default: Any,
    ignorable: bool,
    nullable: str | None = None,
    tag: int | None = None,
    tagged: str | None = None,
    element: str | None = None,
    struct: type | None = None,
) -> Field:
    return Field(
        kind=kind,
        versions=VersionRange.parse(versions) if versions != "0+" else _ALL,
        nullable=VersionRange.parse(nullable) if nullable else None,
        tag=tag,
        tagged=VersionRange.parse(tagged) if tagged else None,
        default=_KIND_DEFAULTS[kind] if default is MISSING else default,
        ignorable=ignorable,
        element=element,
        struct=struct,
    )


class _Specifier(Generic[T]):
    """A specifier of a kind that has no null."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def __call__(
        self,
        *,
        versions: str = "0+",
        default: T | _Missing = MISSING,
        ignorable: bool = False,
        tag: int | None = None,
        tagged: str = "",
    ) -> T:
        return cast("T", _field(self._kind, versions, default, ignorable, tag=tag, tagged=tagged))


bool_ = _Specifier[bool]("bool")  # one byte; anything but 0 is true
int8 = _Specifier[int]("int8")
int16 = _Specifier[int]("int16")
uint16 = _Specifier[int]("uint16")
int32 = _Specifier[int]("int32")
uint32 = _Specifier[int]("uint32")
int64 = _Specifier[int]("int64")
float64 = _Specifier[float]("float64")
uuid_ = _Specifier[UUID]("uuid")  # 16 bytes; all zero stands for "none"


@overload
def string(
    *, versions: str = ..., default: str = ..., ignorable: bool = ..., tag: int | None = ..., tagged: str = ...
) -> str: ...
@overload
def string(
    *,
    versions: str = ...,
    nullable: str,
    default: str | None = ...,
    ignorable: bool = ...,
    tag: int | None = ...,
    tagged: str = ...,
) -> str | None: ...
def string(
    *,
    versions: str = "0+",
    nullable: str | None = None,
    default: str | None = "",
    ignorable: bool = False,
    tag: int | None = None,
    tagged: str = "",
) -> str | None:
    """UTF-8, at most 32,767 bytes."""
    return cast("str | None", _field("string", versions, default, ignorable, nullable, tag, tagged))


@overload
def bytes_(
    *, versions: str = ..., default: bytes = ..., ignorable: bool = ..., tag: int | None = ..., tagged: str = ...
) -> bytes: ...
@overload
def bytes_(
    *,
    versions: str = ...,
    nullable: str,
    default: bytes | None = ...,
    ignorable: bool = ...,
    tag: int | None = ...,
    tagged: str = ...,
) -> bytes | None: ...
def bytes_(
    *,
    versions: str = "0+",
    nullable: str | None = None,
    default: bytes | None = b"",
    ignorable: bool = False,
    tag: int | None = None,
    tagged: str = "",
) -> bytes | None:
    """Bytes with a length; decoded as a copy."""
    return cast("bytes | None", _field("bytes", versions, default, ignorable, nullable, tag, tagged))


def records_(
    *,
    versions: str = "0+",
    nullable: str | None = None,
    ignorable: bool = False,
    tag: int | None = None,
    tagged: str = "",
) -> Buffer | None:
    """A record set, as raw bytes: any bytes-like object in, a view of the frame (no copy) out."""
    return cast("Buffer | None", _field("records", versions, None, ignorable, nullable, tag, tagged))


@overload
def array(
    element: Callable[..., T], *, versions: str = ..., ignorable: bool = ..., tag: int | None = ..., tagged: str = ...
) -> list[T]: ...
@overload
def array(
    element: Callable[..., T],
    *,
    versions: str = ...,
    nullable: str,
    default: None = ...,
    ignorable: bool = ...,
    tag: int | None = ...,
    tagged: str = ...,
) -> list[T] | None: ...
def array(
    element: Callable[..., T],
    *,
    versions: str = "0+",
    nullable: str | None = None,
    default: Any = MISSING,
    ignorable: bool = False,
    tag: int | None = None,
    tagged: str = "",
) -> list[T] | None:
    """A list of a struct class, or of what another specifier describes: ``array(Topic)``, ``array(int32)``."""
    if isinstance(element, type):
        kind, struct = "struct", element
    else:
        kind, struct = cast("Field", element()).kind, None
    field = _field("array", versions, default, ignorable, nullable, tag, tagged, kind, struct)
    return cast("list[T] | None", field)


@overload
def struct_(
    struct: type[T], *, versions: str = ..., ignorable: bool = ..., tag: int | None = ..., tagged: str = ...
) -> T: ...
@overload
def struct_(
    struct: type[T],
    *,
    versions: str = ...,
    nullable: str,
    default: None = ...,
    ignorable: bool = ...,
    tag: int | None = ...,
    tagged: str = ...,
) -> T | None: ...
def struct_(
    struct: type[T],
    *,
    versions: str = "0+",
    nullable: str | None = None,
    default: Any = MISSING,
    ignorable: bool = False,
    tag: int | None = None,
    tagged: str = "",
) -> T | None:
    """One nested struct."""
    return cast("T | None", _field("struct", versions, default, ignorable, nullable, tag, tagged, struct=struct))
