"""What a broker does to record bytes: numbering a produced set, converting between the three formats.

A client does not need this; the embedded broker and the tests do.  Source: KIP-31, KIP-32, KIP-98, and what released
brokers do (0.8 and 0.9 pack a compressed set anew with absolute offsets, 0.10 and later number the wrapper alone).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from pykafka08.errors import CorruptRecordError, LocalProtocolError, UnsupportedVersionError
from pykafka08.records import message_set
from pykafka08.records.batch import HEADER, HEADER_SIZE, patch_crc
from pykafka08.records.batch_packing import encode_batch
from pykafka08.records.checksums import crc32
from pykafka08.records.compression import DEFAULT_UNPACK_LIMIT, Codec
from pykafka08.records.message_set import TIMESTAMP_TYPE_BIT
from pykafka08.records.reader import FetchedBatch, read_produced
from pykafka08.records.record import Record, TimestampType
from pykafka08.wire import INT64, Buffer

__all__ = ["NumberedSet", "assign_offsets", "convert", "retain"]

_ENTRY = struct.Struct(">qi")
_CRC = struct.Struct(">I")
_EPOCH_AT = 12
_ATTRIBUTES = struct.Struct(">h")
_ATTRIBUTES_AT = 21  # magic 2
_LAST_DELTA = struct.Struct(">i")
_LAST_DELTA_AT = 23  # magic 2
_LARGEST_TIMESTAMP_AT = 35  # magic 2


@dataclass(frozen=True, slots=True)
class NumberedSet:
    """A set as the log stores it; ``count`` is how many offsets it takes, ``max_timestamp`` is -1 in magic 0."""

    data: bytes
    count: int
    max_timestamp: int


def assign_offsets(
    buffer: Buffer,
    base_offset: int,
    *,
    leader_epoch: int = -1,
    log_append_time_ms: int | None = None,
    max_unpacked_bytes: int = DEFAULT_UNPACK_LIMIT,
) -> NumberedSet:
    """The produced set with offsets from ``base_offset`` on, in a new buffer, and how many offsets it takes.

    Batches of magic 2 are patched, not packed again.  CorruptRecordError for damage, a cut-off entry or no entry.
    """
    parts: list[Buffer] = []
    data = bytes(buffer)
    offset, end = base_offset, 0
    largest_timestamp = -1
    for start, end, batch in read_produced(data, max_unpacked_bytes=max_unpacked_bytes):
        entry = data[start:end]
        if batch.magic == 2:
            if len(batch) != batch.last_offset - batch.base_offset + 1:
                raise CorruptRecordError(f"produced batch has {len(batch)} records, its offsets say otherwise")
            parts.append(_number_batch(entry, offset, leader_epoch, log_append_time_ms))
        else:
            parts.append(_number_messages(entry, batch, offset, log_append_time_ms))
        offset += len(batch)
        timestamp = batch.max_timestamp_ms
        if batch.magic and log_append_time_ms is not None:
            timestamp = log_append_time_ms
        largest_timestamp = max(largest_timestamp, timestamp)
    if end != len(data) or not data:
        raise CorruptRecordError(f"{len(data) - end} bytes of the set are no whole entry")
    return NumberedSet(b"".join(parts), offset - base_offset, largest_timestamp)


def _number_batch(entry: bytes, offset: int, leader_epoch: int, append_time: int | None) -> bytearray:
    patched = bytearray(entry)
    INT64.pack_into(patched, 0, offset)
    struct.pack_into(">i", patched, _EPOCH_AT, leader_epoch)
    if append_time is not None:
        (attributes,) = _ATTRIBUTES.unpack_from(patched, _ATTRIBUTES_AT)
        _ATTRIBUTES.pack_into(patched, _ATTRIBUTES_AT, attributes | TIMESTAMP_TYPE_BIT)
        INT64.pack_into(patched, _LARGEST_TIMESTAMP_AT, append_time)
        patch_crc(patched)
    return patched


def _number_messages(entries: bytes, batch: FetchedBatch, offset: int, append_time: int | None) -> bytes | bytearray:
    count = len(batch)
    patched = bytearray(entries)
    if not batch.codec:
        position = 0
        for number in range(offset, offset + count):
            INT64.pack_into(patched, position, number)
            after = position + _ENTRY.size + _ENTRY.unpack_from(patched, position)[1]
            if batch.magic:
                _stamp(patched, position, after, append_time)
            position = after
        return patched
    inner = [record.offset for record in batch]
    if batch.magic == 0 or inner != list(range(inner[0], inner[0] + count)):
        return _pack(batch, list(range(offset, offset + count)), batch.magic, append_time)
    INT64.pack_into(patched, 0, offset + count - 1)
    _stamp(patched, 0, len(patched), append_time)
    return patched


def _stamp(entry: bytearray, start: int, end: int, append_time: int | None) -> None:
    """Write the append time and its bit into a message of magic 1."""
    if append_time is None:
        return
    entry[start + 17] |= TIMESTAMP_TYPE_BIT
    INT64.pack_into(entry, start + 18, append_time)
    _CRC.pack_into(entry, start + 12, crc32(memoryview(entry)[start + 16 : end]))


def convert(buffer: Buffer, to_magic: int) -> bytes:
    """The set in another format, as brokers convert it for requests of older or newer versions; offsets stay.

    What has the format already is copied.  Downwards, headers and control batches are lost, and so are timestamps in
    magic 0.  A cut-off entry at the end is dropped.  UnsupportedVersionError for zstd below magic 2.
    """
    parts: list[Buffer] = []
    data = bytes(buffer)
    for start, end, batch in read_produced(data):
        if batch.magic == to_magic:
            parts.append(data[start:end])
            continue
        if (batch.is_control and to_magic < 2) or not len(batch):
            continue
        offsets = [record.offset for record in batch]
        append_time = batch.max_timestamp_ms if batch.timestamp_type == TimestampType.LOG_APPEND_TIME else None
        parts.append(_pack(batch, offsets, to_magic, append_time))
    return b"".join(parts)


def retain(batch: FetchedBatch, records: Sequence[Record]) -> bytes | bytearray:
    """The batch with only ``records``, as after compaction; offsets and, in magic 2, the batch's range stay.

    Without records it is an empty, uncompressed batch; only magic 2 has these.
    """
    if not records:
        uses_append_time = batch.timestamp_type == TimestampType.LOG_APPEND_TIME
        attributes = uses_append_time << 3 | batch.is_transactional << 4 | batch.is_control << 5
        packed = bytearray(HEADER_SIZE)
        HEADER.pack_into(
            packed, 0, batch.base_offset, HEADER_SIZE - _ENTRY.size, batch.leader_epoch, 2, 0, attributes,
            batch.last_offset - batch.base_offset, -1, batch.max_timestamp_ms, batch.producer_id,
            batch.producer_epoch, batch.base_sequence, 0,
        )  # fmt: skip
        patch_crc(packed)
        return packed
    append_time = batch.max_timestamp_ms if batch.timestamp_type == TimestampType.LOG_APPEND_TIME else None
    columns = {
        "timestamps": [record.timestamp_ms for record in records],
        "keys": [record.key for record in records],
        "values": [record.value for record in records],
    }
    offsets = [record.offset for record in records]
    if batch.magic < 2:
        return message_set.encode_message_set(
            batch.magic,
            batch.codec,
            **columns,  # type: ignore[arg-type]
            offsets=offsets,
            log_append_time_ms=append_time if batch.magic else None,
        )
    packed = encode_batch(
        batch.codec,
        **columns,  # type: ignore[arg-type]
        headers=[record.headers for record in records],
        offset_deltas=[offset - batch.base_offset for offset in offsets],
        base_offset=batch.base_offset,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        is_transactional=batch.is_transactional,
        is_control=batch.is_control,
        log_append_time_ms=append_time,
        leader_epoch=batch.leader_epoch,
    )
    _LAST_DELTA.pack_into(packed, _LAST_DELTA_AT, batch.last_offset - batch.base_offset)
    patch_crc(packed)
    return packed


def _pack(batch: FetchedBatch, offsets: list[int], magic: int, append_time: int | None) -> bytes | bytearray:
    records = batch.records()
    timestamps = [record.timestamp_ms for record in records]
    keys = [record.key for record in records]
    values = [record.value for record in records]
    if magic < 2 and batch.codec == Codec.ZSTD:
        raise UnsupportedVersionError("batches packed with zstd cannot be read below magic 2")
    try:
        if magic < 2:
            return message_set.encode_message_set(
                magic, batch.codec, timestamps=timestamps, keys=keys, values=values, offsets=offsets,
                log_append_time_ms=append_time if magic else None,
            )  # fmt: skip
        return encode_batch(
            batch.codec,
            timestamps=timestamps,
            keys=keys,
            values=values,
            headers=[record.headers for record in records],
            offset_deltas=[offset - offsets[0] for offset in offsets],
            base_offset=offsets[0],
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
            is_transactional=batch.is_transactional,
            is_control=batch.is_control,
            log_append_time_ms=append_time,
            leader_epoch=batch.leader_epoch,
        )
    except LocalProtocolError as error:
        # Offsets or timestamps that no honest set has: what came in is at fault, not the caller.
        raise CorruptRecordError(f"set cannot be written in magic {magic}: {error.message}") from error
