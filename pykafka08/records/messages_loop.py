"""A run of plain messages of magic 0 or 1 read by a plain loop: what an interpreter does with messages of any length.

Where all messages are of one length, ``messages_stride`` is quicker; the compiled form has ``messages_native``.
"""

from __future__ import annotations

import struct
from array import array

from pykafka08.errors import CorruptRecordError
from pykafka08.records.checksums import crc32
from pykafka08.records.columns import Columns

__all__ = ["read_run"]

# Offset, size after itself, CRC-32 of what follows it, magic, attributes, [timestamp,] key size, and the size of the
# value if the key is null: the smallest message has as many bytes.
_HEAD_0 = struct.Struct(">qiIBBii")
_HEAD_1 = struct.Struct(">qiIBBqii")
_SIZE = struct.Struct(">i")
_CRC_FROM = 16
_CODEC_MASK = 7


def read_run(  # noqa: C901 - a call for each message would show
    data: bytes, start: int, end: int, fetch_offset: int, check_crcs: bool, is_inner: bool
) -> tuple[Columns, int]:
    """The messages from ``start`` on that share magic and attributes, and the position after them.

    Inside a wrapper (``is_inner``) attributes may differ, as long as they name no codec.  The run ends before what does
    not belong to it, is damaged or cut off; CorruptRecordError if the very first message is damaged.  Messages below
    ``fetch_offset`` are passed over unchecked.
    """
    magic, attributes = data[start + 16], data[start + 17]
    unpack, head_size = (_HEAD_1.unpack_from, _HEAD_1.size) if magic else (_HEAD_0.unpack_from, _HEAD_0.size)
    view = memoryview(data)
    offsets: list[int] = []
    timestamps: list[int] = []
    key_edges: list[int] = []
    value_edges: list[int] = []
    key_nulls, value_nulls = bytearray(), bytearray()
    add_offset, add_timestamp = offsets.append, timestamps.append
    timestamp = -1
    position = start
    while position + head_size <= end:
        if magic:
            offset, size, crc, its_magic, its_attributes, timestamp, key_size, value_size = unpack(data, position)
        else:
            offset, size, crc, its_magic, its_attributes, key_size, value_size = unpack(data, position)
        after = position + 12 + size
        if its_magic != magic or after < position + head_size or after > end:
            break
        if its_attributes != attributes and (not is_inner or its_attributes & _CODEC_MASK):
            break
        if offset >= fetch_offset:
            key_from = position + head_size - 4
            key_to = key_from
            damage = None
            if check_crcs and crc32(view[position + _CRC_FROM : after]) != crc:
                damage = "checksum of a message is wrong"
            elif key_size >= 0:
                key_to += key_size
                if key_to + 4 > after:
                    damage = f"message key of {key_size} bytes does not fit the message"
                else:
                    (value_size,) = _SIZE.unpack_from(data, key_to)
            elif key_size < -1:
                damage = f"message key of {key_size} bytes does not fit the message"
            if damage is None and key_to + 4 + value_size != after and (value_size != -1 or key_to + 4 != after):
                damage = f"message value of {value_size} bytes does not fit the message"
            if damage is not None:
                if position == start:
                    raise CorruptRecordError(damage, offset=offset, next_offset=offset + 1)
                break
            add_offset(offset)
            add_timestamp(timestamp)
            key_edges += (key_from, key_to)
            key_nulls.append(key_size < 0)
            value_edges += (key_to + 4, after)
            value_nulls.append(value_size < 0)
        position = after
    some_keys, some_values = 0 in key_nulls, 0 in value_nulls
    columns = Columns(
        data,
        memoryview(array("q", offsets)),
        memoryview(array("q", timestamps)),
        key_edges=memoryview(array("i", key_edges)) if some_keys else None,
        key_nulls=memoryview(key_nulls) if some_keys and 1 in key_nulls else None,
        value_edges=memoryview(array("i", value_edges)) if some_values else None,
        value_nulls=memoryview(value_nulls) if some_values and 1 in value_nulls else None,
    )
    return columns, position
