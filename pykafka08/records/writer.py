"""From columns to the record bytes of a Produce request, in the format that the broker's release knows.

``encode_batch`` picks the layout by magic: 0 for Kafka 0.8 and 0.9, 1 for 0.10, 2 since 0.11.  What a broker does with
a set afterwards (numbering, conversion) is in ``rewrite``.
"""

from __future__ import annotations

from collections.abc import Sequence

from pykafka08.errors import LocalProtocolError, UnsupportedVersionError
from pykafka08.records import batch_packing, message_set
from pykafka08.records.batch import HEADER_SIZE, set_producer_state
from pykafka08.records.compression import Codec
from pykafka08.records.reader import read_batches
from pykafka08.records.record import Headers
from pykafka08.records.rewrite import assign_offsets, convert
from pykafka08.wire import Buffer

__all__ = [
    "assign_offsets",
    "batch_overhead",
    "convert",
    "encode_batch",
    "encode_parts",
    "packed",
    "record_size",
    "set_producer_state",
    "unpacked",
]


def encode_batch(
    magic: int,
    codec: Codec,
    *,
    timestamps: Sequence[int],
    keys: Sequence[bytes | None] | None,
    values: Sequence[bytes | None],
    headers: Sequence[Headers] | None = None,
    level: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    is_transactional: bool = False,
    leader_epoch: int = -1,
) -> bytes | bytearray:
    """:func:`encode_parts`, joined."""
    parts = encode_parts(
        magic,
        codec,
        timestamps=timestamps,
        keys=keys,
        values=values,
        headers=headers,
        level=level,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        is_transactional=is_transactional,
        leader_epoch=leader_epoch,
    )
    return bytearray().join(parts)


def encode_parts(
    magic: int,
    codec: Codec,
    *,
    timestamps: Sequence[int],
    keys: Sequence[bytes | None] | None,
    values: Sequence[bytes | None],
    headers: Sequence[Headers] | None = None,
    packed: Sequence[Buffer] | None = None,
    level: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    is_transactional: bool = False,
    leader_epoch: int = -1,
) -> list[Buffer]:
    """One set with offsets 0, 1, 2, ... from columns of one length, at least one record; in pieces, to be sent as such.

    Timestamps are milliseconds, ignored in magic 0; ``keys`` and ``headers`` None: no record has one.  ``packed``, for
    magic 2 alone, has the records in place of these and of ``values``.
    UnsupportedVersionError for headers below magic 2 (Kafka 0.11) and for zstd below magic 2; LocalProtocolError for
    what cannot be encoded, such as a value that is not bytes.
    """
    if magic == 2:
        return batch_packing.encode_parts(
            codec,
            timestamps=timestamps,
            keys=keys,
            values=values,
            headers=headers,
            packed=packed,
            level=level,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            is_transactional=is_transactional,
            leader_epoch=leader_epoch,
        )
    if magic not in (0, 1):
        raise LocalProtocolError(f"magic {magic} is unknown")
    if headers is not None and any(headers):
        raise UnsupportedVersionError("headers of records need magic 2, which came with Kafka 0.11")
    if keys is None:
        keys = [None] * len(values)
    return [message_set.encode_message_set(magic, codec, timestamps=timestamps, keys=keys, values=values, level=level)]


def packed(
    timestamps: Sequence[int],
    keys: Sequence[bytes | None] | None,
    values: Sequence[bytes | None],
    headers: Sequence[Headers] | None,
) -> list[bytes]:
    """Records of magic 2 in pieces, as ``packed`` of :func:`encode_parts` has them; LocalProtocolError as there."""
    try:
        return batch_packing.records_of(timestamps, keys, values, headers, None)
    except batch_packing.NOT_ENCODED as error:
        raise LocalProtocolError(f"a record cannot be encoded: {error}") from error


def unpacked(
    timestamps: Sequence[int], packed: Sequence[Buffer]
) -> tuple[list[bytes | None] | None, list[bytes | None], list[Headers] | None]:
    """Keys, values and headers of records that were packed; keys and headers None where no record has one."""
    data = encode_parts(2, Codec.NONE, timestamps=timestamps, keys=None, values=[], packed=packed)
    (batch,) = read_batches(b"".join(data), topic="", partition=0, fetch_offset=0, check_crcs=False)
    keys, headers = batch.keys(), [record.headers for record in batch]
    return None if keys.count(None) == len(keys) else keys, batch.values(), headers if any(headers) else None


def record_size(magic: int, key: bytes | None, value: bytes | None, headers: Headers = ()) -> int:
    """Most bytes that one record adds to a set before compression."""
    if magic == 2:
        return batch_packing.largest_record_size(key, value, headers)
    return message_set.largest_message_size(magic, key, value)


def batch_overhead(magic: int) -> int:
    """Bytes of a set that do not belong to any one record: the header of magic 2, the wrapper of magic 0 and 1."""
    return HEADER_SIZE if magic == 2 else message_set.largest_message_size(magic, None, None)
