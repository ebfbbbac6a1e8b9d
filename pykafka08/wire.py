"""Kafka's primitive encodings: fixed integers, varints, strings, compact forms.

Shared by ``protocol`` (messages) and ``records`` (batches).  Readers take a buffer and a position and return the value
and the position after it; they raise :class:`RemoteProtocolError` where the bytes end too early or lie about a length.
Encoders return bytes.  Source: Kafka's protocol guide, "Protocol primitive types"; KIP-482 for compact forms.
"""

from __future__ import annotations

import struct

from pykafka08.errors import LocalProtocolError, RemoteProtocolError

__all__ = [
    "Buffer",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "UINT16",
    "UINT32",
    "FLOAT64",
    "encode_unsigned_varint",
    "encode_varint",
    "read_unsigned_varint",
    "read_varint",
    "read_varlong",
    "take",
    "unsigned_varint_size",
    "varint_size",
]

Buffer = bytes | bytearray | memoryview

INT8 = struct.Struct(">b")
INT16 = struct.Struct(">h")
INT32 = struct.Struct(">i")
INT64 = struct.Struct(">q")
UINT16 = struct.Struct(">H")
UINT32 = struct.Struct(">I")
FLOAT64 = struct.Struct(">d")


def take(buffer: Buffer, position: int, size: int, end: int) -> int:
    """Position after ``size`` bytes; RemoteProtocolError when ``end`` comes first or the size is negative."""
    if size < 0:
        raise RemoteProtocolError(f"negative length {size} at byte {position}")
    after = position + size
    if after > end:
        raise RemoteProtocolError(f"length {size} at byte {position} runs past the end at byte {end}")
    return after


def read_unsigned_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    """An unsigned 32-bit varint (at most 5 bytes) and the position after it."""
    return _read_base128(buffer, position, 5, 32)


def read_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    """A zig-zag signed 32-bit varint and the position after it."""
    value, position = _read_base128(buffer, position, 5, 32)
    return (value >> 1) ^ -(value & 1), position


def read_varlong(buffer: Buffer, position: int) -> tuple[int, int]:
    """A zig-zag signed 64-bit varint (at most 10 bytes) and the position after it."""
    value, position = _read_base128(buffer, position, 10, 64)
    return (value >> 1) ^ -(value & 1), position


def _read_base128(buffer: Buffer, position: int, most_bytes: int, bits: int) -> tuple[int, int]:
    try:
        byte = buffer[position]
        if byte < 0x80:
            return byte, position + 1
        value = byte & 0x7F
        for index in range(1, most_bytes):
            byte = buffer[position + index]
            value |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                if value >> bits:
                    break
                return value, position + index + 1
    except IndexError:
        raise RemoteProtocolError(f"varint at byte {position} is cut off") from None
    raise RemoteProtocolError(f"varint at byte {position} does not fit {bits} bits")


def encode_unsigned_varint(value: int) -> bytes:
    """``value`` (0 to 2**64 - 1) in base 128, low bits first."""
    if value < 0x80:
        if value < 0:
            raise LocalProtocolError(f"an unsigned varint cannot hold {value}")
        return _ONE_BYTE[value]
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode_varint(value: int) -> bytes:
    """``value`` (signed, up to 64 bits) zig-zagged and in base 128."""
    return encode_unsigned_varint(value << 1 if value >= 0 else (-value << 1) - 1)


def unsigned_varint_size(value: int) -> int:
    """Bytes that :func:`encode_unsigned_varint` takes."""
    return (value.bit_length() + 6) // 7 or 1


def varint_size(value: int) -> int:
    """Bytes that :func:`encode_varint` takes."""
    return unsigned_varint_size(value << 1 if value >= 0 else (-value << 1) - 1)


_ONE_BYTE = [bytes((value,)) for value in range(0x80)]
