"""Writing the records of a batch of magic 2 byte by byte: what compiled code does fastest.

The layout is ``batch``'s, and the bytes are those of ``batch_packing``, which is for interpreted Python, and which
chooses.  Records go into a buffer that is kept, so that its memory is warm, and leave it in pieces small enough to come
from the allocator's own memory: a fresh mapping for each batch costs more, in page faults, than writing it.

The loops are unrolled on purpose: each call less per record shows in the throughput.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from librt.strings import BytesWriter, read_i64_le
from mypy_extensions import i64, u8

from pykafka08.records.batch import FAR_APART
from pykafka08.records.record import Headers

__all__ = ["write_records", "write_rows"]

_PIECE: Final = 96 << 10
"""Bytes after which a piece is cut: below what malloc serves with a mapping of its own, and within a core's cache."""

_OWN_PIECE: Final = 16 << 10
"""A value of as many bytes is a piece of its own: it is not copied here."""

_MOST_KEPT: Final = 4

_MOST: Final = 9223372036854775807

_kept: Final[list[BytesWriter]] = []


def write_records(
    timestamps: Sequence[int],
    keys: Sequence[bytes | None] | None,
    values: Sequence[bytes | None],
    headers: Sequence[Headers] | None,
    deltas: Sequence[int] | None,
) -> list[bytes]:
    """The records in pieces, to be joined; ``keys``, ``headers`` None: no record has one; ``deltas`` None: 0, 1, 2, ...

    TypeError for what is not bytes, ValueError for the name of a header that has no UTF-8, and for numbers beyond 64
    bits.  Columns of one length, with at least one record.
    """
    # Taken out while it is used: the garbage collector may run other code, which may write records too.
    writer = _kept.pop() if _kept else BytesWriter()
    writer.truncate(0)
    stamps = timestamps if isinstance(timestamps, list) else list(timestamps)
    contents = values if isinstance(values, list) else list(values)
    if keys is None and headers is None and deltas is None:
        pieces = _write_values(writer, stamps, contents)
    else:
        names = keys if keys is None or isinstance(keys, list) else list(keys)
        pieces = _write_all(writer, stamps, names, contents, headers, deltas)
    if len(writer):
        pieces.append(writer.getvalue())
    if len(_kept) < _MOST_KEPT:
        _kept.append(writer)
    return pieces


def _write_values(writer: BytesWriter, timestamps: list[int], values: list[bytes | None]) -> list[bytes]:
    """Records of values alone."""
    pieces: list[bytes] = []
    base: i64 = timestamps[0]
    earliest: i64 = (base if base > 0 else 0) - _MOST - 1
    latest: i64 = (base if base < 0 else 0) + _MOST
    count: i64 = len(values)
    index: i64 = 0
    while index < count:
        time: i64 = timestamps[index]
        if time < earliest or time > latest:
            raise ValueError(FAR_APART)
        stamp: i64 = time - base
        stamp = (stamp << 1) ^ (stamp >> 63)
        offset: i64 = index << 1
        value = values[index]
        size: i64 = 0
        # attributes, the length of no key, the count of headers
        rest: i64 = 3 + _width(stamp) + _width(offset)
        if value is None:
            _put(writer, (rest + 1) << 1)
        else:
            size = len(value)
            _put(writer, (rest + _width(size << 1) + size) << 1)
        writer.append(u8(0))
        _put(writer, stamp)
        _put(writer, offset)
        writer.append(u8(1))
        if value is None:
            writer.append(u8(1))
        else:
            _put(writer, size << 1)
            if size < _OWN_PIECE:
                writer.write(value)
            else:
                pieces.append(writer.getvalue())
                writer.truncate(0)
                pieces.append(value)
        writer.append(u8(0))
        if len(writer) >= _PIECE:
            pieces.append(writer.getvalue())
            writer.truncate(0)
        index += 1
    return pieces


def _write_all(
    writer: BytesWriter,
    timestamps: list[int],
    keys: list[bytes | None] | None,
    values: list[bytes | None],
    headers: Sequence[Headers] | None,
    deltas: Sequence[int] | None,
) -> list[bytes]:
    """Records of any kind."""
    pieces: list[bytes] = []
    base: i64 = timestamps[0]
    earliest: i64 = (base if base > 0 else 0) - _MOST - 1
    latest: i64 = (base if base < 0 else 0) + _MOST
    count: i64 = len(values)
    index: i64 = 0
    while index < count:
        time: i64 = timestamps[index]
        if time < earliest or time > latest:
            raise ValueError(FAR_APART)
        stamp: i64 = time - base
        stamp = (stamp << 1) ^ (stamp >> 63)
        offset: i64 = index
        if deltas is not None:
            offset = deltas[index]
        offset = (offset << 1) ^ (offset >> 63)
        key = keys[index] if keys is not None else None
        value = values[index]
        tail = _packed_headers(headers[index]) if headers is not None else _NO_HEADERS
        key_size: i64 = 0
        value_size: i64 = 0
        rest: i64 = 1 + _width(stamp) + _width(offset) + len(tail)
        if key is None:
            rest += 1
        else:
            key_size = len(key)
            rest += _width(key_size << 1) + key_size
        if value is None:
            rest += 1
        else:
            value_size = len(value)
            rest += _width(value_size << 1) + value_size
        _put(writer, rest << 1)
        writer.append(u8(0))
        _put(writer, stamp)
        _put(writer, offset)
        if key is None:
            writer.append(u8(1))
        else:
            _put(writer, key_size << 1)
            writer.write(key)
        if value is None:
            writer.append(u8(1))
        else:
            _put(writer, value_size << 1)
            if value_size < _OWN_PIECE:
                writer.write(value)
            else:
                pieces.append(writer.getvalue())
                writer.truncate(0)
                pieces.append(value)
        writer.write(tail)
        if len(writer) >= _PIECE:
            pieces.append(writer.getvalue())
            writer.truncate(0)
        index += 1
    return pieces


def write_rows(
    values: bytes, lengths: bytes, keys: bytes, key_lengths: bytes | None, stamps: bytes, stamp: int, first: int
) -> list[bytes]:
    """Records that lie in columns, in pieces, to be joined; at least one, without headers.

    ``values`` has the bytes of all one behind the other, and ``lengths`` how many each has, as 64-bit little-endian
    integers, -1 for null; ``keys`` and ``key_lengths`` in the same way, the latter None where no record has a key.
    ``stamps`` are their timestamp deltas, likewise, or empty: ``stamp`` is that of all.  Offset deltas count from
    ``first``.
    """
    writer = _kept.pop() if _kept else BytesWriter()  # taken out, as in write_records
    writer.truncate(0)
    pieces: list[bytes] = []
    has_keys = key_lengths is not None
    has_stamps = len(stamps) > 0
    key_sizes = b"" if key_lengths is None else key_lengths
    time: i64 = stamp
    offset: i64 = first
    key_at: i64 = 0
    value_at: i64 = 0
    position: i64 = 0
    end: i64 = len(lengths)
    while position < end:
        if has_stamps:
            time = read_i64_le(stamps, position)
        key_size: i64 = -1
        if has_keys:
            key_size = read_i64_le(key_sizes, position)
        size = read_i64_le(lengths, position)
        position += 8
        raw_time: i64 = (time << 1) ^ (time >> 63)
        # attributes, the count of headers
        rest: i64 = 2 + _width(raw_time) + _width(offset << 1)
        rest += 1 if key_size < 0 else _width(key_size << 1) + key_size
        rest += 1 if size < 0 else _width(size << 1) + size
        _put(writer, rest << 1)
        writer.append(u8(0))
        _put(writer, raw_time)
        _put(writer, offset << 1)
        offset += 1
        if key_size < 0:
            writer.append(u8(1))
        else:
            _put(writer, key_size << 1)
            writer.write(keys[key_at : key_at + key_size])
            key_at += key_size
        if size < 0:
            writer.append(u8(1))
        else:
            _put(writer, size << 1)
            value = values[value_at : value_at + size]
            value_at += size
            if size < _OWN_PIECE:
                writer.write(value)
            else:
                pieces.append(writer.getvalue())
                writer.truncate(0)
                pieces.append(value)
        writer.append(u8(0))
        if len(writer) >= _PIECE:
            pieces.append(writer.getvalue())
            writer.truncate(0)
    if len(writer):
        pieces.append(writer.getvalue())
    if len(_kept) < _MOST_KEPT:
        _kept.append(writer)
    return pieces


_NO_HEADERS: Final = b"\x00"


def _packed_headers(headers: Headers) -> bytes:
    if not headers:
        return _NO_HEADERS
    writer = BytesWriter()
    count: i64 = len(headers)
    _put(writer, count << 1)
    for name, value in headers:
        encoded = name.encode()
        size: i64 = len(encoded)
        _put(writer, size << 1)
        writer.write(encoded)
        if value is None:
            writer.append(u8(1))
        else:
            size = len(value)
            _put(writer, size << 1)
            writer.write(value)
    return writer.getvalue()


def _width(raw: i64) -> i64:
    """Bytes of the varint with these bits, of which the sign comes last."""
    if 0 <= raw < 1 << 7:
        return 1
    if 0 <= raw < 1 << 14:
        return 2
    width: i64 = 1
    rest: i64 = (raw >> 7) & _LOWER_57
    while rest:
        rest >>= 7
        width += 1
    return width


_LOWER_57: Final = (1 << 57) - 1
"""What a shift by seven leaves: numbers of the machine have a sign, which it would copy."""


def _put(writer: BytesWriter, raw: i64) -> None:
    """A varint with these bits."""
    if 0 <= raw < 1 << 7:
        writer.append(u8(raw))
        return
    if 0 <= raw < 1 << 14:
        writer.append(u8((raw & 127) | 128))
        writer.append(u8(raw >> 7))
        return
    rest: i64 = (raw >> 7) & _LOWER_57
    writer.append(u8((raw & 127) | 128))
    while rest >= 128:
        writer.append(u8((rest & 127) | 128))
        rest >>= 7
    writer.append(u8(rest))
