"""Record batches of magic 2: a header of 61 bytes, then records of varints (Kafka 0.11 and later).

Here is the layout; records are made in ``batch_records``, columns become batches in ``batch_packing``, ``reader`` finds
batches in the bytes of a Fetch answer, magic 0 and 1 are in ``message_set``.  Source: Kafka's documentation, "Record
Batch"; KIP-98.
"""

from __future__ import annotations

import struct

from pykafka08.records.checksums import crc32c
from pykafka08.wire import Buffer

__all__ = [
    "FAR_APART",
    "HEAD",
    "HEADER",
    "HEADER_SIZE",
    "SUMMED",
    "is_crc_right",
    "patch_crc",
    "set_producer_state",
]

#: base offset, length after itself, leader epoch, magic, CRC-32C of what follows, attributes, last offset delta,
#: base timestamp, largest timestamp, producer id, producer epoch, base sequence, record count
HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_SIZE = HEADER.size

#: The same in two: what the checksum does not cover, and what it covers, from the attributes on.
HEAD = struct.Struct(">qiibI")
SUMMED = struct.Struct(">hiqqqhii")

FAR_APART = "timestamps that are more than 63 bits apart do not fit one batch"

_CRC = struct.Struct(">I")
_CRC_AT = 17
_CRC_FROM = 21  # the checksum covers everything from here to the end
_PRODUCER = struct.Struct(">qhi")
_PRODUCER_AT = 43


def patch_crc(batch: bytearray) -> None:
    """Write the checksum that belongs to the batch as it is."""
    _CRC.pack_into(batch, _CRC_AT, crc32c(memoryview(batch)[_CRC_FROM:]))


def is_crc_right(data: Buffer, start: int, end: int) -> bool:
    """True if the batch at ``data[start:end]`` has the checksum that its header says."""
    (stated,) = _CRC.unpack_from(data, start + _CRC_AT)
    return int(stated) == crc32c(memoryview(data)[start + _CRC_FROM : end])


def set_producer_state(batch: Buffer, producer_id: int, producer_epoch: int, base_sequence: int) -> bytearray:
    """The batch with another producer id, epoch and first sequence; a bytearray is changed in place."""
    patched = batch if isinstance(batch, bytearray) else bytearray(batch)
    _PRODUCER.pack_into(patched, _PRODUCER_AT, producer_id, producer_epoch, base_sequence)
    patch_crc(patched)
    return patched
