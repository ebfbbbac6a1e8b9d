"""Writes the source of an encoder: one function for each struct of a message in one version.

Each function hands the pieces of a list of structs to ``write``; the pieces joined are the bytes.  Runs of fixed
fields, with the length that follows them, are one ``pack``.  Values that do not fit raise what Python raises
(struct.error, AttributeError for None, ...); ``compiler`` turns that into LocalProtocolError with the field's path.
"""

from __future__ import annotations

import struct
from typing import Any

from pykafka08.errors import LocalProtocolError, UnsupportedVersionError
from pykafka08.protocol.fields import MISSING, Field
from pykafka08.protocol.source import FIXED, LONGEST_TEXT, ManyFixed, SourceText, is_literal
from pykafka08.wire import encode_unsigned_varint

__all__ = ["EncoderSource"]

_MANY = {kind: ManyFixed(letter, "pack") for kind, letter in FIXED.items()}
_SMALL = tuple(bytes((value,)) for value in range(128))


def _long_text(length_and_one: int) -> bytes:
    if length_and_one > LONGEST_TEXT + 1:
        raise LocalProtocolError(f"a string of {length_and_one - 1} bytes; at most {LONGEST_TEXT} are possible")
    return encode_unsigned_varint(length_and_one)


def _tagged_section(tags: list[tuple[int, bytes]], unknown: dict[int, bytes] | None) -> bytes:
    """The count and the fields, in the order of their tags."""
    entries = sorted([*tags, *(unknown or {}).items()])
    parts = [encode_unsigned_varint(len(entries))]
    for tag, value in entries:
        parts += (encode_unsigned_varint(tag), encode_unsigned_varint(len(value)), value)
    return b"".join(parts)


def _absent(item: Any, field: str, version: int) -> None:
    raise UnsupportedVersionError(
        f"{type(item).__name__}.{field} is set, but version {version} has no such field and it cannot be left out"
    )


class EncoderSource:
    """The encoder of one message class in one version, as text; ``root`` names its entry."""

    def __init__(self, message: Any, version: int, is_flexible: bool) -> None:
        self.source = SourceText()
        self.source.scope.update(
            small=_SMALL,
            varint=encode_unsigned_varint,
            long_text=_long_text,
            tagged_section=_tagged_section,
            absent=_absent,
        )
        self._version = version
        self._is_flexible = is_flexible
        self._done: dict[type, str] = {}
        self._write = "write"
        self._run: list[tuple[str, str, Field]] = []
        self._count = 0
        self.root = self._struct_function(message)

    def _struct_function(self, cls: Any) -> str:
        """Writes the function for ``cls`` (those of nested structs before it) and returns its name."""
        if cls in self._done:
            return self._done[cls]
        present = [field for field in cls.schema if field.is_in(self._version)]
        for field in present:
            if field.struct is not None:
                self._struct_function(field.struct)
        source = self.source
        name = self._done[cls] = f"encode_{cls.__name__}"
        with source.block(f"def {name}(write, items):"), source.block("for item in items:"):
            for field in cls.schema:
                if field not in present and not field.ignorable:
                    with source.block(f"if {self._is_set(field)}:"):
                        source.add(f"absent(item, {field.name!r}, {self._version})")
            if not self._is_flexible:
                with source.block("if item.unknown_tagged_fields:"):
                    source.add(f"absent(item, 'unknown_tagged_fields', {self._version})")
            tagged = [field for field in present if field.is_tagged(self._version)]
            for field in present:
                if field not in tagged:
                    self._field(field)
            self._flush()
            if self._is_flexible:
                self._tags(sorted(tagged, key=lambda field: field.tag or 0))
        return name

    def _is_set(self, field: Field) -> str:
        """A test for another value than the default."""
        if field.default is MISSING:
            assert field.kind == "array" or field.struct is not None
            other = "[]" if field.kind == "array" else self.source.name("default", field.new_default())
            return f"item.{field.name} != {other}"
        if field.default is None:
            return f"item.{field.name} is not None"
        other = repr(field.default) if is_literal(field.default) else self.source.name("default", field.default)
        return f"item.{field.name} != {other}"

    def _tags(self, tagged: list[Field]) -> None:
        source = self.source
        if tagged:
            source.add("tags = []")
        for field in tagged:
            with source.block(f"if {self._is_set(field)}:"):
                source.add("part = []")
                self._write = "part.append"
                self._field(field)
                self._flush()
                self._write = "write"
                source.add(f'tags.append(({field.tag}, b"".join(part)))')
        empty = "not tags and item.unknown_tagged_fields is None" if tagged else "item.unknown_tagged_fields is None"
        with source.block(f"if {empty}:"):
            source.add('write(b"\\0")')
        with source.block("else:"):
            source.add(f"write(tagged_section({'tags' if tagged else '[]'}, item.unknown_tagged_fields))")

    def _field(self, field: Field) -> None:
        """Code that writes ``item.<name>``; fixed fields are only noted, for the next :meth:`_flush`."""
        source = self.source
        if field.kind in FIXED:
            value = f"item.{field.name}.bytes" if field.kind == "uuid" else f"item.{field.name}"
            self._run.append((FIXED[field.kind], value, field))
        elif field.kind == "struct":
            self._flush()
            source.about = (field,)
            self._one_struct(field)
        else:
            self._sized(field)
        source.about = ()

    def _one_struct(self, field: Field) -> None:
        source = self.source
        call = f"{self._done[field.struct]}({self._write}, (item.{field.name},))"  # type: ignore[index]
        if not field.is_nullable(self._version):
            source.add(call)
            return
        source.add(f'if item.{field.name} is None: {self._write}(b"\\xff")')
        with source.block("else:"):
            source.add(f'{self._write}(b"\\1")', call)

    def _sized(self, field: Field) -> None:
        """Code for a length or count and what follows it."""
        source = self.source
        self._count += 1
        value, length = f"value_{self._count}", f"length_{self._count}"
        source.about = (field,)
        source.add(f"{value} = item.{field.name}")
        take = _TAKEN[field.kind].format(value=value, length=length)
        if field.is_nullable(self._version):
            empty = "()" if field.kind == "array" else 'b""'
            source.add(f"if {value} is None: {value} = {empty}; {length} = -1")
            source.add(f"else: {take}")
        else:
            source.add(take)
        self._length(length, "h" if field.kind == "string" else "i", field)
        source.about = (field,)
        if field.kind == "array":
            self._elements(field, value, length)
        elif field.kind == "records":
            source.add(f"for part in {value} if type({value}) is list else ({value},): {self._write}(part)")
        else:
            source.add(f"{self._write}({value})")

    def _length(self, length: str, letter: str, field: Field) -> None:
        """Code that writes a length, -1 for null."""
        if not self._is_flexible:
            self._run.append((letter, length, field))
            self._flush()
            return
        self._flush()
        source = self.source
        source.about = (field,)
        longer = "long_text" if letter == "h" else "varint"
        source.add(f"{self._write}(small[{length} + 1] if {length} < 127 else {longer}({length} + 1))")

    def _elements(self, field: Field, value: str, length: str) -> None:
        source, write = self.source, self._write
        if field.element == "struct":
            source.add(f"{self._done[field.struct]}({write}, {value})")  # type: ignore[index]
        elif field.element == "uuid":
            source.add(f"for element in {value}: {write}(element.bytes)")
        elif field.element in FIXED:
            source.add(f"if {value}: {write}({source.name('many', _MANY[field.element])}[{length}](*{value}))")
        else:
            assert field.element is not None
            with source.block(f"for element in {value}:"):
                source.add(_TAKEN[field.element].format(value="element", length="size"))
                self._length("size", "h" if field.element == "string" else "i", field)
                source.about = (field,)
                source.add(f"{write}(element)")

    def _flush(self) -> None:
        """The noted fixed fields, written at once."""
        if not self._run:
            return
        source = self.source
        source.about = tuple(field for _, _, field in self._run)
        layout = struct.Struct(">" + "".join(letter for letter, _, _ in self._run))
        values = ", ".join(value for _, value, _ in self._run)
        source.add(f"{self._write}({source.name('pack', layout.pack)}({values}))")
        self._run.clear()
        source.about = ()


_TAKEN = {
    "string": "{value} = {value}.encode(); {length} = len({value})",
    "bytes": "{length} = memoryview({value}).nbytes",
    # Record sets may be lists of pieces: joining them would copy the most that a client ever sends.
    "records": "{length} = sum(map(len, {value})) if type({value}) is list else memoryview({value}).nbytes",
    "array": "{length} = len({value})",
}
