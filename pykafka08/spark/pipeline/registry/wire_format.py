"""Confluent's wire format: a zero byte, the schema id in four bytes, the payload.

Protobuf values have message indexes between id and payload, the path to the message type in its file: a count and the
indexes as zigzag varints.  The path ``[0]`` is the single byte 0.
"""

from __future__ import annotations

__all__ = ["BadValueError", "framed", "message_path"]

HEADER_BYTES = 5
MOST_INDEXES = 64
"""The deepest path of message indexes; longer ones are broken bytes."""


class BadValueError(ValueError):
    """A value cannot be read; the text is the reason why the record is refused."""


def framed(value: bytes) -> tuple[int, bytes]:
    """Schema id and payload.  Raises BadValueError."""
    if len(value) < HEADER_BYTES:
        raise BadValueError(
            f"not in a schema registry's wire format: {len(value)} bytes, at least {HEADER_BYTES} needed"
        )
    if value[0] != 0:
        raise BadValueError(f"not in a schema registry's wire format: the first byte is {value[0]}, not 0")
    return int.from_bytes(value[1:HEADER_BYTES], "big"), value[HEADER_BYTES:]


def message_path(payload: bytes) -> tuple[tuple[int, ...], bytes]:
    """Protobuf's message indexes, and the message.  Raises BadValueError."""
    count, at = _zigzag(payload, 0)
    if count == 0:
        return (0,), payload[at:]
    if not 0 < count <= MOST_INDEXES:
        raise BadValueError(f"broken message indexes: a count of {count}")
    path = []
    for _ in range(count):
        index, at = _zigzag(payload, at)
        path.append(index)
    return tuple(path), payload[at:]


def _zigzag(payload: bytes, at: int) -> tuple[int, int]:
    """A zigzag varint of at most 32 bits, and the position behind it."""
    value = shift = 0
    while True:
        if at >= len(payload) or shift > 28:
            raise BadValueError("broken message indexes: the number does not end")
        byte = payload[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
        shift += 7
