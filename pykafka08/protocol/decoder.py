"""Writes the source of a decoder: one function for each struct of a message in one version.

Each function reads ``count`` structs in a row from ``buffer`` at ``at`` and returns them with the position after them.
Runs of fixed fields, with the length that follows them, are one ``unpack_from``.  The code trusts nothing: lengths and
counts are checked against ``end`` before they are used; short buffers raise struct.error or IndexError, which
``compiler`` turns into RemoteProtocolError with the path of the field.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any
from uuid import UUID, SafeUUID

from pykafka08.errors import RemoteProtocolError
from pykafka08.protocol.fields import ZERO_UUID, Field
from pykafka08.protocol.source import FIXED, ManyFixed, SourceText, default_source, smallest_size
from pykafka08.wire import Buffer, read_unsigned_varint

__all__ = ["DecoderSource"]

_MANY = {kind: ManyFixed(letter, "unpack_from") for kind, letter in FIXED.items()}
_ZERO_BYTES = ZERO_UUID.bytes


def _uuid(value: bytes) -> UUID:
    return ZERO_UUID if value == _ZERO_BYTES else UUID(bytes=bytes(value))


def _uuid_by_slots(value: bytes) -> UUID:
    """The same at a third of the cost: each topic of a cluster has one."""
    if value == _ZERO_BYTES:
        return ZERO_UUID
    made = object.__new__(UUID)
    _SET_INT(made, int.from_bytes(value, "big"))
    _SET_IS_SAFE(made, _UNKNOWN)
    return made


def _quickest_uuid() -> Callable[[bytes], UUID]:
    """The slots are no public part of the class: they are used where they make what the constructor makes."""
    probe = bytes(range(16))
    try:
        made = _uuid_by_slots(probe)
        return _uuid_by_slots if made == _uuid(probe) and str(made) == str(_uuid(probe)) else _uuid
    except (AttributeError, TypeError):
        return _uuid


_UNKNOWN = SafeUUID.unknown
_SET_INT: Any = getattr(getattr(UUID, "int", None), "__set__", None)
_SET_IS_SAFE: Any = getattr(getattr(UUID, "is_safe", None), "__set__", None)


_new_uuid = _quickest_uuid()

_KNOWN_UUIDS: dict[bytes, UUID] = {}
"""Every fetch answer and each refresh of metadata has the same ids again."""

_MOST_KNOWN = 20_000  # some megabytes


def _make_uuid(value: bytes) -> UUID:
    """The UUID of bytes that are not known yet; should there be very many, all are forgotten and made anew."""
    if len(_KNOWN_UUIDS) >= _MOST_KNOWN:
        _KNOWN_UUIDS.clear()
    made = _KNOWN_UUIDS[value] = _new_uuid(value)
    return made


def _long_length(buffer: Buffer, at: int) -> tuple[int, int]:
    """A compact length that takes more than one byte, and the position after it."""
    length, at = read_unsigned_varint(buffer, at)
    return length - 1, at


def _bad_length(length: int, at: int, end: int) -> None:
    if length == -1:
        raise RemoteProtocolError("null where this version has no null")
    if length < 0:
        raise RemoteProtocolError(f"negative length {length}")
    raise RemoteProtocolError(f"length {length} with {end - at} bytes left")


def _bad_count(count: int, at: int, end: int) -> None:
    if count < 0:
        _bad_length(count, at, end)
    raise RemoteProtocolError(f"count {count} with {end - at} bytes left")


def _keep_tag(item: Any, tag: int, buffer: Buffer, at: int, stop: int) -> int:
    """Keeps a tagged field that is not declared; returns the position after it."""
    if item.unknown_tagged_fields is None:
        item.unknown_tagged_fields = {}
    item.unknown_tagged_fields[tag] = bytes(buffer[at:stop])
    return stop


def _unknown_tags(item: Any, buffer: Buffer, at: int, end: int) -> int:
    """The tagged section of a struct that declares no tagged fields; returns the position after it."""
    count, at = read_unsigned_varint(buffer, at)
    if count * 2 > end - at:
        _bad_count(count, at, end)
    for _ in range(count):
        tag, at = read_unsigned_varint(buffer, at)
        size, at = read_unsigned_varint(buffer, at)
        if at + size > end:
            _bad_length(size, at, end)
        if item.unknown_tagged_fields is not None and tag in item.unknown_tagged_fields:
            raise RemoteProtocolError(f"tagged field {tag} occurs twice")
        at = _keep_tag(item, tag, buffer, at, at + size)
    return at


class DecoderSource:
    """The decoder of one message class in one version, as text; ``root`` names its entry."""

    def __init__(self, message: Any, version: int, is_flexible: bool) -> None:
        self.source = SourceText()
        self.source.scope.update(
            new=object.__new__,
            known_uuid=_KNOWN_UUIDS.get,
            make_uuid=_make_uuid,
            read_varint=read_unsigned_varint,
            long_length=_long_length,
            bad_length=_bad_length,
            bad_count=_bad_count,
            keep_tag=_keep_tag,
            unknown_tags=_unknown_tags,
            Malformed=RemoteProtocolError,
        )
        self._version = version
        self._is_flexible = is_flexible
        self._done: dict[type, str] = {}
        self._end = "end"
        self._run: list[tuple[str, str, Field]] = []
        self.root = self._struct_function(message)

    def _struct_function(self, cls: Any) -> str:
        """Writes the function for ``cls`` (those of nested structs before it) and returns its name."""
        if cls in self._done:
            return self._done[cls]
        fields = [field for field in cls.schema if field.is_in(self._version)]
        for field in fields:
            if field.struct is not None:
                self._struct_function(field.struct)
        tagged = [field for field in fields if field.is_tagged(self._version)] if self._is_flexible else []
        if tagged:
            self._tags_function(cls, tagged)
        source = self.source
        name = self._done[cls] = f"decode_{cls.__name__}"
        source.scope[cls.__name__] = cls
        with source.block(f"def {name}(buffer, at, end, count):"):
            source.add("items = []")
            with source.block("for _ in range(count):"):
                source.add(f"item = new({cls.__name__})", "item.unknown_tagged_fields = None")
                self._defaults([field for field in cls.schema if field not in fields or field in tagged])
                for field in fields:
                    if field not in tagged:
                        self._field(field)
                self._flush()
                if self._is_flexible:
                    with source.block("if buffer[at]:"):
                        source.add(
                            f"at = {f'tags_{cls.__name__}' if tagged else 'unknown_tags'}(item, buffer, at, end)"
                        )
                    with source.block("else:"):
                        source.add("at += 1")
                source.add("items.append(item)")
            source.add("return items, at")
        return name

    def _tags_function(self, cls: Any, tagged: list[Field]) -> None:
        """Writes the function for the tagged section of ``cls``."""
        source = self.source
        self._end = "stop_tag"
        with source.block(f"def tags_{cls.__name__}(item, buffer, at, end):"):
            source.add("count, at = read_varint(buffer, at)")
            source.add("if count * 2 > end - at: bad_count(count, at, end)", "seen = set()")
            with source.block("for _ in range(count):"):
                source.add("tag, at = read_varint(buffer, at)", "size, at = read_varint(buffer, at)")
                source.add("stop_tag = at + size", "if stop_tag > end: bad_length(size, at, end)")
                source.add("if tag in seen: raise Malformed(f'tagged field {tag} occurs twice')", "seen.add(tag)")
                for index, field in enumerate(tagged):
                    with source.block(f"{'el' if index else ''}if tag == {field.tag}:"):
                        self._field(field)
                        self._flush()
                with source.block("else:"):
                    source.add("at = keep_tag(item, tag, buffer, at, stop_tag)")
                source.add("if at != stop_tag: raise Malformed(f'tagged field {tag} is not {size} bytes long')")
            source.add("return at")
        self._end = "end"

    def _defaults(self, fields: list[Field]) -> None:
        for field in fields:
            self.source.add(f"item.{field.name} = {default_source(self.source, field)}")

    def _field(self, field: Field) -> None:
        """Code that sets ``item.<name>``; fixed fields are only noted, for the next :meth:`_flush`."""
        source = self.source
        target = f"item.{field.name}"
        if field.kind in FIXED:
            self._run.append((FIXED[field.kind], target, field))
            return
        if field.kind == "struct":
            self._flush()
            source.about = (field,)
            self._one_struct(field, target)
        else:
            self._length("n", "h" if field.kind == "string" else "i", field)
            source.about = (field,)
            if field.is_nullable(self._version):
                source.add(f"if n == -1: {target} = None")
                with source.block("else:"):
                    self._sized(field, target)
            else:
                self._sized(field, target)
        source.about = ()

    def _one_struct(self, field: Field, target: str) -> None:
        source = self.source
        call = f"({target},), at = {self._done[field.struct]}(buffer, at, {self._end}, 1)"  # type: ignore[index]
        if not field.is_nullable(self._version):
            source.add(call)
            return
        source.add("n = buffer[at]", "at += 1")
        source.add(f"if n == 255: {target} = None")
        with source.block("elif n == 1:"):
            source.add(call)
        source.add("else: raise Malformed(f'neither null nor a struct: {n}')")

    def _length(self, variable: str, letter: str, field: Field) -> None:
        """Code that reads a length or count into ``variable``; -1 stands for null."""
        source = self.source
        if not self._is_flexible:
            self._run.append((letter, variable, field))
            self._flush()
            return
        self._flush()
        source.about = (field,)
        source.add(f"{variable} = buffer[at] - 1", "at += 1")
        source.add(f"if {variable} > 126: {variable}, at = long_length(buffer, at - 1)")

    def _flush(self) -> None:
        """The noted fixed fields, read at once."""
        if not self._run:
            return
        source = self.source
        source.about = tuple(field for _, _, field in self._run)
        layout = struct.Struct(">" + "".join(letter for letter, _, _ in self._run))
        targets = ", ".join(target for _, target, _ in self._run)
        comma = "," if len(self._run) == 1 else ""
        source.add(
            f"{targets}{comma} = {source.name('unpack', layout.unpack_from)}(buffer, at)", f"at += {layout.size}"
        )
        for letter, target, _ in self._run:
            if letter == "16s":
                source.add(f"{target} = known_uuid({target}) or make_uuid({target})")
        self._run.clear()
        source.about = ()

    def _sized(self, field: Field, target: str) -> None:
        """Code for what follows the length ``n`` of a string, bytes, records or array that is not null."""
        source, end = self.source, self._end
        if field.kind != "array":
            source.add("stop = at + n", f"if n < 0 or stop > {end}: bad_length(n, at, {end})")
            is_for_people = field.kind == "string" and field.name.endswith(_FOR_PEOPLE)
            source.add(f"{target} = {_TEXT_FOR_PEOPLE if is_for_people else _SLICES[field.kind]}", "at = stop")
        elif field.element == "struct":
            nested: Any = field.struct
            least = max(1, smallest_size(nested.schema, self._version, self._is_flexible))
            source.add(f"if n < 0 or n * {least} > {end} - at: bad_count(n, at, {end})")
            source.add(f"{target}, at = {self._done[nested]}(buffer, at, {end}, n)")
        elif field.element in FIXED:
            size = struct.calcsize(">" + FIXED[field.element])
            source.add(f"stop = at + n * {size}", f"if n < 0 or stop > {end}: bad_count(n, at, {end})")
            if field.element == "uuid":
                source.add(f"{target} = [bytes(buffer[i:i + 16]) for i in range(at, stop, 16)]")
                source.add(f"{target} = [known_uuid(each) or make_uuid(each) for each in {target}]")
            else:
                many = source.name("many", _MANY[field.element])
                source.add(f"{target} = [*{many}[n](buffer, at)] if n else []")
            source.add("at = stop")
        else:
            self._sized_elements(field, target)

    def _sized_elements(self, field: Field, target: str) -> None:
        """Code for an array of strings or bytes: a loop over elements that have lengths themselves."""
        source, end = self.source, self._end
        assert field.element is not None
        letter = "h" if field.element == "string" else "i"
        least = 1 if self._is_flexible else struct.calcsize(letter)
        source.add(f"if n < 0 or n * {least} > {end} - at: bad_count(n, at, {end})", f"values = {target} = []")
        with source.block("for _ in range(n):"):
            self._length("m", letter, field)
            source.about = (field,)
            source.add("stop = at + m", f"if m < 0 or stop > {end}: bad_length(m, at, {end})")
            source.add(f"values.append({_SLICES[field.element]})", "at = stop")


_FOR_PEOPLE = ("error_message", "documentation", "reason")
"""Suffixes of the names of human-readable fields: invalid UTF-8 in them must not make the whole answer unreadable."""

_TEXT_FOR_PEOPLE = 'str(buffer[at:stop], "utf-8", "replace")'

_SLICES = {
    "string": 'str(buffer[at:stop], "utf-8")',
    "bytes": "bytes(buffer[at:stop])",
    "records": "memoryview(buffer)[at:stop]",
}
