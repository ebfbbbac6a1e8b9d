"""What a broker checks and changes before record bytes enter a log: format, size, checksums, sequence, offsets.

Answers are error codes, never exceptions of other kinds.  Source: Kafka's LogValidator and UnifiedLog, as the releases
behave; KIP-32 (timestamps), KIP-98 (sequences, markers).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from struct import Struct
from typing import NamedTuple

from pykafka08.broker.log import ENTRY_HEADER, MAGIC_AT, StoredBatch
from pykafka08.broker.personality import Personality
from pykafka08.broker.sequences import SequenceError
from pykafka08.broker.state import Partition, Topic
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import CorruptRecordError, RecordTooLargeError, UnsupportedVersionError
from pykafka08.records.batch_packing import encode_batch
from pykafka08.records.checksums import crc32c
from pykafka08.records.compression import Codec, decompress
from pykafka08.records.reader import EVERY_OFFSET, ControlType, FetchedBatch, read_batches
from pykafka08.records.rewrite import NumberedSet, assign_offsets, convert
from pykafka08.wire import INT32, INT64, Buffer

__all__ = ["Admission", "AppendResult", "append", "append_marker"]

ZSTD_PRODUCE_VERSION = 7
ONE_BATCH_PRODUCE_VERSION = 3

LEADER_EPOCH_AT = 12  # of a batch of magic 2; its checksum does not cover it
BATCH_COVERED_FROM = 21  # the checksum covers the bytes from here on
BATCH_CODEC_AT = 22  # the low byte of its attributes
BATCH_BODY_AT = 61
MESSAGE_CODEC_AT = 17  # in a message of magic 0 or 1
CODEC_BITS = 7
MANY_RECORDS = 200  # from this number on, columns are faster than values
WRAPPED_VALUE_AT = 26  # of a magic 0 wrapper: after offset, size, crc, magic, attributes, null key, length
MARKER_KEY = Struct(">hh")  # version, type
MARKER_VALUE = Struct(">hi")  # version, epoch of the coordinator
LZ4_MAGIC = b"\x04\x22\x4d\x18"
OLD_LZ4_CHECKSUMS = {b"\x60\x40": 0x1A, b"\x60\x50": 0x77, b"\x60\x60": 0xD6, b"\x60\x70": 0x10}


Admission = Callable[[int, int], int]
"""May this producer (id, epoch) write to the partition in its transaction?  An error code, 0 for yes."""


def _admit(producer_id: int, epoch: int) -> int:
    """What brokers before 3.6 say of everybody."""
    return ErrorCode.NONE


class AppendResult(NamedTuple):
    """The outcome for one partition; ``log_append_time_ms`` is -1 where records keep their own timestamps."""

    error_code: int = ErrorCode.NONE
    message: str | None = None
    base_offset: int = -1
    log_append_time_ms: int = -1


class _Refused(Exception):
    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


def append(
    partition: Partition,
    records: Buffer | None,
    personality: Personality,
    *,
    version: int,
    now_ms: int,
    admission: Admission = _admit,
) -> AppendResult:
    """Append what Produce ``version`` carried for one partition, whole or not at all.

    ``admission`` is asked about transactional batches.
    """
    try:
        return _append(partition, records or b"", personality, version, now_ms, admission)
    except (_Refused, SequenceError) as refusal:
        return AppendResult(refusal.code, str(refusal))
    except CorruptRecordError as error:
        is_packing = _has_right_checksum(records or b"") and not _can_unpack(records or b"")
        return AppendResult(ErrorCode.UNKNOWN_SERVER_ERROR if is_packing else ErrorCode.CORRUPT_MESSAGE, error.message)
    except RecordTooLargeError as error:
        # Real brokers read such a batch record by record; Java's producer splits the batch when it gets this code.
        return AppendResult(ErrorCode.MESSAGE_TOO_LARGE, error.message)
    except OSError as error:
        return AppendResult(ErrorCode.KAFKA_STORAGE_ERROR, f"the records cannot be written to log_dir: {error}")
    except UnsupportedVersionError as error:
        return AppendResult(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, error.message)


def append_marker(partition: Partition, producer_id: int, epoch: int, *, is_commit: bool, now_ms: int) -> None:
    """Append the control batch that ends a producer's transaction."""
    log, offset = partition.log, partition.log.end_offset
    kind = ControlType.COMMIT if is_commit else ControlType.ABORT
    data = encode_batch(
        Codec.NONE,
        timestamps=[now_ms],
        keys=[MARKER_KEY.pack(0, kind)],
        values=[MARKER_VALUE.pack(0, 0)],
        base_offset=offset,
        producer_id=producer_id,
        producer_epoch=epoch,
        is_transactional=True,
        is_control=True,
        leader_epoch=partition.leader_epoch,
    )
    _store(partition, bytes(data), offset, 1, now_ms, now_ms)
    log.sequences.epoch_ended(producer_id, epoch)
    log.transactions.ended(producer_id, offset, is_commit=is_commit)
    partition.changed()


def _append(
    partition: Partition,
    records: Buffer,
    personality: Personality,
    version: int,
    now_ms: int,
    admission: Admission,
) -> AppendResult:
    log, topic = partition.log, partition.topic
    # Offsets in a produced set mean nothing: some clients write -1.
    batches = list(read_batches(records, topic=topic.name, partition=partition.index, fetch_offset=EVERY_OFFSET))
    _check(records, batches, topic, personality, version)
    if not batches:
        return AppendResult(base_offset=-1)
    head = batches[0]
    _check_transaction(head, partition, admission)
    if head.producer_id >= 0:
        known = log.sequences.check(head.producer_id, head.producer_epoch, head.base_sequence, len(head))
        if known is not None:
            return AppendResult(base_offset=known.base_offset, log_append_time_ms=known.timestamp_ms)
    base_offset = log.end_offset
    magic = personality.magic_of(topic.config)
    append_time = now_ms if topic.uses_log_append_time and magic > 0 else None
    stamped = -1 if append_time is None else append_time
    numbered = _number(records, batches, magic, base_offset, partition.leader_epoch, append_time)
    _store(partition, numbered.data, base_offset, numbered.count, numbered.max_timestamp, now_ms)
    if head.producer_id >= 0:
        log.sequences.appended(
            head.producer_id, head.producer_epoch, head.base_sequence, len(head), base_offset, stamped
        )
    if head.is_transactional:
        log.transactions.written(head.producer_id, base_offset)
    partition.changed()
    return AppendResult(base_offset=base_offset, log_append_time_ms=stamped)


def _check_transaction(head: FetchedBatch, partition: Partition, admission: Admission) -> None:
    if head.is_transactional:
        code = admission(head.producer_id, head.producer_epoch)
        if code:
            raise _Refused(code, f"the transaction of producer {head.producer_id} at epoch {head.producer_epoch}")
    elif head.producer_id in partition.log.transactions:
        raise _Refused(
            ErrorCode.INVALID_TXN_STATE, f"producer {head.producer_id} has a transaction open, and wrote outside of it"
        )


def _number(
    records: Buffer,
    batches: list[FetchedBatch],
    magic: int,
    base_offset: int,
    leader_epoch: int,
    append_time: int | None,
) -> NumberedSet:
    """The bytes as they are stored: in the topic's format, with offsets."""
    head = batches[0]
    if len(batches) == 1 and head.magic == magic == 2 and append_time is None:
        # What every modern client sends is checked already, and nothing that its checksum covers changes.
        stored = bytearray(records)
        INT64.pack_into(stored, 0, base_offset)
        INT32.pack_into(stored, LEADER_EPOCH_AT, leader_epoch)
        return NumberedSet(bytes(stored), len(head), head.max_timestamp_ms)
    data = records if all(batch.magic == magic for batch in batches) else convert(records, magic)
    return assign_offsets(data, base_offset, leader_epoch=leader_epoch, log_append_time_ms=append_time)


def _store(partition: Partition, data: bytes, base_offset: int, count: int, max_timestamp: int, now_ms: int) -> None:
    """Magic 2 goes in batch by batch, so that a fetch starts at the batch it asks for; older sets stay in one piece."""
    log, epoch = partition.log, partition.leader_epoch
    pieces = [(base_offset, base_offset + count - 1, data)]
    if data[MAGIC_AT] == 2 and ENTRY_HEADER + INT32.unpack_from(data, 8)[0] != len(data):
        pieces = [(base, last, data[start:end]) for base, last, start, end in _batch_bounds(data)]
    for base, last, piece in pieces:
        log.append(
            StoredBatch(base, last, piece, max_timestamp_ms=max_timestamp, appended_at_ms=now_ms, leader_epoch=epoch)
        )


def _batch_bounds(data: bytes) -> list[tuple[int, int, int, int]]:
    """First offset, last offset, start and end of each magic 2 batch."""
    bounds, position = [], 0
    while position < len(data):
        end = position + ENTRY_HEADER + INT32.unpack_from(data, position + 8)[0]
        base = int.from_bytes(data[position : position + 8], "big")
        bounds.append((base, base + INT32.unpack_from(data, position + 23)[0], position, end))
        position = end
    return bounds


def _check(records: Buffer, batches: list[FetchedBatch], topic: Topic, personality: Personality, version: int) -> None:
    if version >= ONE_BATCH_PRODUCE_VERSION and (len(batches) != 1 or batches[0].magic != 2):
        raise _Refused(
            personality.invalid_record_code, f"Produce v{version} takes exactly one batch of magic 2 for a partition"
        )
    _check_sizes(records, topic.max_message_bytes)
    for batch in batches:
        _check_codec(records, batch.codec, personality, version)
        if batch.producer_id >= 0 and personality.magic_of(topic.config) < 2:
            raise _Refused(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, "the topic's format has no producer ids")
        if batch.magic > personality.max_magic:
            raise _Refused(ErrorCode.CORRUPT_MESSAGE, f"magic {batch.magic} is not known to {personality.release}")
        if batch.is_control:
            raise _Refused(ErrorCode.INVALID_RECORD, "clients may not write control batches")
        if batch.magic == 2 and batch.last_offset - batch.base_offset + 1 != len(batch):
            raise _Refused(personality.invalid_record_code, f"{len(batch)} records cannot end at {batch.last_offset}")
        _decode(batch)  # finds damage inside the records
        if topic.is_compacted and None in list(batch.keys()):
            raise _Refused(personality.invalid_record_code, "records of a compacted topic need a key")


def _decode(batch: FetchedBatch) -> None:
    """CorruptRecordError if the records are damaged.  Large batches create no per-record objects."""
    if len(batch) < MANY_RECORDS:
        batch.values()
    else:
        batch.columns()


def _check_sizes(records: Buffer, limit: int) -> None:
    position = 0
    while position + ENTRY_HEADER <= len(records):
        size = ENTRY_HEADER + INT32.unpack_from(records, position + 8)[0]
        if size < ENTRY_HEADER:
            raise _Refused(ErrorCode.CORRUPT_MESSAGE, f"an entry claims {size} bytes")
        if size > limit:
            raise _Refused(ErrorCode.MESSAGE_TOO_LARGE, f"an entry of {size} bytes is above the limit of {limit}")
        position += size
    if position != len(records):
        raise _Refused(ErrorCode.CORRUPT_MESSAGE, "the record bytes end inside an entry")


def _check_codec(records: Buffer, codec: Codec, personality: Personality, version: int) -> None:
    if codec not in personality.codecs:  # brokers without a codec cannot name the error
        raise _Refused(ErrorCode.UNKNOWN_SERVER_ERROR, f"codec {codec} is not known to {personality.release}")
    if codec == Codec.ZSTD and version < ZSTD_PRODUCE_VERSION:
        raise _Refused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"zstd needs Produce v{ZSTD_PRODUCE_VERSION}")
    if codec == Codec.LZ4 and personality < (0, 10) and not _has_old_lz4_header(records):
        raise _Refused(ErrorCode.UNKNOWN_SERVER_ERROR, "0.8.2 and 0.9 read LZ4 with their own header checksum only")


def _has_right_checksum(records: Buffer) -> bool:
    """True if the records begin with a whole entry with a valid checksum."""
    data = memoryview(records)
    end = ENTRY_HEADER + INT32.unpack_from(data, 8)[0] if len(data) > MAGIC_AT else 0
    if not MAGIC_AT < end <= len(data):
        return False
    if data[MAGIC_AT] < 2:
        return zlib.crc32(data[MAGIC_AT:end]) == int.from_bytes(data[12:16], "big")
    return end > BATCH_BODY_AT and crc32c(data[BATCH_COVERED_FROM:end]) == int.from_bytes(data[17:21], "big")


def _can_unpack(records: Buffer) -> bool:
    """False if the first entry has an unknown codec, or data that its codec cannot unpack."""
    data = memoryview(records)
    magic, end = data[MAGIC_AT], ENTRY_HEADER + INT32.unpack_from(data, 8)[0]
    codec = data[BATCH_CODEC_AT if magic == 2 else MESSAGE_CODEC_AT] & CODEC_BITS
    body = data[BATCH_BODY_AT if magic == 2 else WRAPPED_VALUE_AT + 8 * magic : end]
    try:
        decompress(Codec(codec), body, magic=magic)
    except (ValueError, CorruptRecordError, RecordTooLargeError):
        return False
    return True


def _has_old_lz4_header(records: Buffer) -> bool:
    """True if a magic 0 wrapper's LZ4 frame has the header checksum that Kafka computed wrongly (KAFKA-3160)."""
    frame = bytes(records[WRAPPED_VALUE_AT : WRAPPED_VALUE_AT + 7])
    return frame[:4] == LZ4_MAGIC and OLD_LZ4_CHECKSUMS.get(frame[4:6]) == frame[6]
