"""Messages as declared: the decorators, the classes they make, and encode/decode as the rest of the library sees them.

A file of ``messages/`` reads::

    @struct
    class Topic(Struct):
        name: str = string()
        partitions: list[int] = array(int32)

    @message(key=99, versions="0-2", flexible="2+")
    class ExampleRequest(Request["ExampleResponse"]):
        topics: list[Topic] | None = array(Topic, nullable="1+")

One class serves every version.  Constructor arguments are keyword-only and all have defaults (Kafka's own).  Instances
are slotted, comparable, mutable and not hashable.  How fields are written down stands in ``fields``, how they become
code in ``compiler``, the framing around messages in ``headers`` and ``framing``.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, cast

from pykafka08.errors import RemoteProtocolError, UnsupportedVersionError
from pykafka08.protocol.compiler import Decoder, Encoder, compile_decoder, compile_encoder
from pykafka08.protocol.fields import (
    MISSING,
    ZERO_UUID,
    Field,
    VersionRange,
    array,
    bool_,
    bytes_,
    float64,
    int8,
    int16,
    int32,
    int64,
    records_,
    string,
    struct_,
    uint16,
    uint32,
    uuid_,
)
from pykafka08.wire import Buffer

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_options: object) -> Callable[[Any], Any]:
        """Python 3.10 has no typing.dataclass_transform, and type checkers are its only readers."""
        return lambda decorator: decorator


__all__ = [
    "ZERO_UUID",
    "Buffer",
    "Field",
    "Message",
    "Request",
    "Response",
    "Struct",
    "VersionRange",
    "array",
    "bool_",
    "bytes_",
    "float64",
    "int16",
    "int32",
    "int64",
    "int8",
    "message",
    "records_",
    "string",
    "struct",
    "struct_",
    "uint16",
    "uint32",
    "uuid_",
]

C = TypeVar("C", bound="type[Struct]")
M = TypeVar("M", bound="Message")
R = TypeVar("R", bound="Response")

_LONGEST_LIST, _LONGEST_BYTES = 8, 32


class Struct:
    """A group of fields in wire order.

    ``unknown_tagged_fields`` keeps tagged fields that the declaration does not know (tag to bytes), None if there are
    none; they are written again.
    """

    __slots__ = ("unknown_tagged_fields",)
    schema: ClassVar[tuple[Field, ...]] = ()
    _values: ClassVar[attrgetter[Any]] = attrgetter("unknown_tagged_fields")
    unknown_tagged_fields: dict[int, bytes] | None

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return bool(self._values(self) == self._values(other))

    __hash__ = None  # type: ignore[assignment]  # instances can change

    def __repr__(self) -> str:
        set_fields = []
        for field in self.schema:
            value = getattr(self, field.name)
            if value != field.new_default():
                set_fields.append(f"{field.name}={_shown(value)}")
        if self.unknown_tagged_fields:
            set_fields.append(f"unknown_tagged_fields={self.unknown_tagged_fields!r}")
        return f"{type(self).__name__}({', '.join(set_fields)})"


def _shown(value: object) -> str:
    """``value`` as repr shows it, long bytes and long lists cut short."""
    if isinstance(value, (bytes, bytearray, memoryview)) and len(value) > _LONGEST_BYTES:
        return f"<{len(value)} bytes>"
    if isinstance(value, memoryview):
        return repr(bytes(value))
    if isinstance(value, list):
        items = [_shown(item) for item in value[:_LONGEST_LIST]]
        if len(value) > _LONGEST_LIST:
            items.append(f"... {len(value) - _LONGEST_LIST} more")
        return f"[{', '.join(items)}]"
    return repr(value)


class _Compiled(dict[int, Any]):
    """Version to encoder or decoder of one message; compiled when first asked for."""

    def __init__(self, owner: type[Message], compile_direction: Callable[[Any, int, bool], Any]) -> None:
        super().__init__()
        self._owner = owner
        self._compile = compile_direction

    def __missing__(self, version: int) -> Any:
        owner = self._owner
        if version not in owner.versions:
            raise UnsupportedVersionError(
                f"{owner.__name__} has versions {owner.versions}, not {version}", api=owner.name
            )
        made = self[version] = self._compile(owner, version, owner.is_flexible(version))
        return made


class Message(Struct):
    """A struct that stands on its own: a request, a response or an embedded message.

    ``name`` is Kafka's name of the API without Request or Response; ``flexible`` the first version with compact forms
    and tagged fields, None if there is none.
    """

    __slots__ = ()
    api_key: ClassVar[int] = -1
    versions: ClassVar[VersionRange]
    flexible: ClassVar[int | None] = None
    name: ClassVar[str]
    _encoders: ClassVar[dict[int, Encoder]]
    _decoders: ClassVar[dict[int, Decoder]]

    def encode(self, version: int) -> bytes:
        """The body in that version, without a header.

        UnsupportedVersionError if a field is set that the version lacks and that cannot be left out;
        LocalProtocolError if a value does not fit its field.
        """
        return b"".join(self.encode_parts(version))

    def encode_parts(self, version: int) -> list[Buffer]:
        """As :meth:`encode`, in pieces whose join is the body; record sets are not copied."""
        parts: list[Buffer] = []
        self._encoders[version](parts, self)
        return parts

    @classmethod
    def decode(cls: type[M], buffer: Buffer, version: int, offset: int = 0) -> M:
        """The message that fills ``buffer`` from ``offset`` to its end.

        Record sets are views of ``buffer``.  RemoteProtocolError if the bytes are anything but one whole message.
        """
        message, left = cls.decode_start(buffer, version, offset)
        if left:
            raise RemoteProtocolError(
                f"{cls.__name__} version {version}: {left} bytes left over after byte {len(buffer) - left}",
                api=cls.name,
            )
        return message

    @classmethod
    def decode_start(cls: type[M], buffer: Buffer, version: int, offset: int = 0) -> tuple[M, int]:
        """As :meth:`decode`, for a message that more bytes may follow: the message, and how many bytes are left."""
        return cls._decoders[version](buffer, offset)

    @classmethod
    def is_flexible(cls, version: int) -> bool:
        """True if that version uses compact forms and tagged fields (KIP-482)."""
        return cls.flexible is not None and version >= cls.flexible


class Response(Message):
    """What a broker answers."""

    __slots__ = ()


class Request(Message, Generic[R]):
    """What a client asks; ``response`` is the class of the answer."""

    __slots__ = ()
    response: type[R]


_REQUESTS: dict[int, type[Request[Any]]] = {}


@dataclass_transform(kw_only_default=True, eq_default=True)
def struct(cls: C) -> C:
    """Make a slotted class of a class body with field specifiers."""
    return _slotted(cls)


@dataclass_transform(kw_only_default=True, eq_default=True)
def message(*, versions: str, key: int = -1, flexible: str | None = None) -> Callable[[C], C]:
    """As :func:`struct`, for a class that travels as a whole; -1 as ``key`` for messages inside others.

    ``versions`` is the closed range that is declared, ``flexible`` the open range with tagged fields ("9+").
    """

    def decorate(cls: C) -> C:
        made: Any = _slotted(cls)
        made.api_key = key
        made.versions = VersionRange.parse(versions)
        made.flexible = VersionRange.parse(flexible).min if flexible else None
        made.name = made.__name__.removesuffix("Request").removesuffix("Response")
        made._encoders = _Compiled(made, compile_encoder)
        made._decoders = _Compiled(made, compile_decoder)
        if issubclass(made, Request):
            _REQUESTS[key] = made
        elif issubclass(made, Response):
            _REQUESTS[key].response = made  # declared in the same file, after its request
        return cast("C", made)

    return decorate


def _slotted(cls: C) -> C:
    """``cls`` made anew with slots, a constructor and its ``schema``."""
    fields = []
    namespace = dict(vars(cls))
    for name, value in vars(cls).items():
        if isinstance(value, Field):
            value.name = name
            fields.append(value)
            del namespace[name]
    for unwanted in ("__dict__", "__weakref__"):
        namespace.pop(unwanted, None)
    namespace["__slots__"] = tuple(field.name for field in fields)
    namespace["schema"] = tuple(fields)
    namespace["_values"] = attrgetter("unknown_tagged_fields", *namespace["__slots__"])
    namespace["__init__"] = _constructor(cls.__qualname__, fields)
    made: Any = type(cls)
    return cast("C", made(cls.__name__, cls.__bases__, namespace))


def _constructor(owner: str, fields: list[Field]) -> Callable[..., None]:
    """``__init__`` with every field as a keyword-only argument."""
    scope: dict[str, Any] = {"MISSING": MISSING}
    arguments, body = [], ["    self.unknown_tagged_fields = None"]
    for index, field in enumerate(fields):
        name = field.name
        scope[f"default_{index}"] = field.default
        arguments.append(f"{name}=default_{index}")
        value = name
        if field.default is MISSING:
            scope[f"new_{index}"] = list if field.kind == "array" else field.struct
            value = f"new_{index}() if {name} is MISSING else {name}"
        body.append(f"    self.{name} = {value}")
    star = "*, " if fields else ""
    source = f"def __init__(self, {star}{', '.join(arguments)}):\n" + "\n".join(body) + "\n"
    filename = f"<pykafka08 {owner}.__init__>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    exec(compile(source, filename, "exec"), scope)  # noqa: S102 - our own text, made of declared names
    constructor: Callable[..., None] = scope["__init__"]
    constructor.__qualname__ = f"{owner}.__init__"
    return constructor
