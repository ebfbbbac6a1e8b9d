"""What a broker refuses to append, and what appending changes in the bytes."""

from __future__ import annotations

import zlib
from typing import Any

import pytest

from pykafka08.broker.append import AppendResult, append
from pykafka08.broker.configs import Configs
from pykafka08.broker.personality import Personality
from pykafka08.broker.state import Partition, Topics
from pykafka08.error_codes import ErrorCode
from pykafka08.records.batch import patch_crc
from pykafka08.records.compression import Codec
from pykafka08.records.record import TimestampType
from pykafka08.records.writer import encode_batch
from tests.broker.raw import batch

NOW_MS = 7_000


def partition(release: str = "4.3", **config: str) -> Partition:
    properties = {name.replace("_", "."): value for name, value in config.items()}
    configs = Configs(Personality(release))
    return Topics(lambda: [0], configs).create("t", 1, 1, properties).partitions[0]


def put(
    records: bytes | None, release: str = "4.3", *, into: Partition | None = None, version: int = -1
) -> AppendResult:
    target = partition(release) if into is None else into
    played = Personality(release)
    version = played.versions[0].max if version < 0 else version
    before = target.log.end_offset
    result = append(target, records, played, version=version, now_ms=NOW_MS)
    if result.error_code:
        assert target.log.end_offset == before
        assert result.base_offset == -1
    return result


def test_a_batch_gets_the_next_offsets_and_the_leader_epoch() -> None:
    target = partition()
    assert put(batch(b"0", b"1"), into=target).base_offset == 0
    target.lead(-1)
    target.lead(0)
    assert put(batch(b"2"), into=target).base_offset == 2
    assert [(each.base_offset, each.leader_epoch) for each in target.log.batches()] == [(0, 0), (2, 2)]


@pytest.mark.parametrize(("release", "magic"), [("0.8.0", 0), ("0.10.2", 1), ("2.8", 2)])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY])
def test_every_format_is_numbered(release: str, magic: int, codec: Codec) -> None:
    target = partition()
    for _ in range(2):
        assert put(batch(b"a", b"b", magic=magic, codec=codec), release, into=target).error_code == 0
    assert [record.offset for each in target.log.batches() for record in each] == [0, 1, 2, 3]


def test_log_append_time_replaces_the_records_own() -> None:
    target = partition(message_timestamp_type="LogAppendTime")
    assert put(batch(b"a", b"b"), into=target).log_append_time_ms == NOW_MS
    records = [record for each in target.log.batches() for record in each]
    assert {(record.timestamp_ms, record.timestamp_type) for record in records} == {
        (NOW_MS, TimestampType.LOG_APPEND_TIME)
    }
    assert target.log.offset_for_time(NOW_MS)[:2] == (0, NOW_MS)


def test_magic_0_has_no_time_to_replace() -> None:
    target = partition(message_timestamp_type="LogAppendTime")
    assert put(batch(b"a", magic=0), "0.9.0", into=target).log_append_time_ms == -1


def damaged() -> bytes:
    records = bytearray(batch(b"value"))
    records[-1] ^= 1
    return bytes(records)


def two_batches() -> bytes:
    return batch(b"a") + batch(b"b")


def count_that_lies() -> bytes:
    """Right checksum, but the last offset says two records."""
    records = bytearray(batch(b"a"))
    records[23:27] = (1).to_bytes(4, "big")
    patch_crc(records)
    return bytes(records)


def records_that_lie() -> bytes:
    """Right checksum over a record that runs past the end."""
    records = bytearray(batch(b"value"))
    records[61] = 0x7E
    patch_crc(records)
    return bytes(records)


@pytest.mark.parametrize(
    ("release", "version", "records", "code"),
    [
        ("4.3", 9, damaged(), ErrorCode.CORRUPT_MESSAGE),
        ("4.3", 9, batch(b"value")[:-3], ErrorCode.INVALID_RECORD),
        ("4.3", 9, batch(b"value") + b"\0" * 7, ErrorCode.CORRUPT_MESSAGE),
        ("4.3", 9, batch(b"value") + b"\0" * 8 + b"\xff\xff\xff\xf4" + b"\0\0", ErrorCode.CORRUPT_MESSAGE),
        ("4.3", 9, two_batches(), ErrorCode.INVALID_RECORD),
        ("2.3", 7, two_batches(), ErrorCode.CORRUPT_MESSAGE),
        ("4.3", 9, batch(b"old", magic=1), ErrorCode.INVALID_RECORD),
        ("4.3", 9, b"", ErrorCode.INVALID_RECORD),
        ("4.3", 9, None, ErrorCode.INVALID_RECORD),
        ("4.3", 9, b"nonsense" * 10, ErrorCode.INVALID_RECORD),
        ("4.3", 9, count_that_lies(), ErrorCode.INVALID_RECORD),
        ("4.3", 9, records_that_lie(), ErrorCode.CORRUPT_MESSAGE),
        ("4.3", 9, batch(b"x" * 1_048_588), ErrorCode.MESSAGE_TOO_LARGE),
        ("0.8.2", 0, batch(b"x" * 1_000_012, magic=0), ErrorCode.MESSAGE_TOO_LARGE),
        ("0.10.2", 2, batch(b"new", magic=2), ErrorCode.CORRUPT_MESSAGE),
        ("0.9.0", 1, batch(b"new", magic=1), ErrorCode.CORRUPT_MESSAGE),
        ("2.1", 6, batch(b"z", codec=Codec.ZSTD), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ("2.0", 7, batch(b"z", codec=Codec.ZSTD), ErrorCode.UNKNOWN_SERVER_ERROR),
        ("0.8.1", 0, batch(b"z", magic=0, codec=Codec.LZ4), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_refusals(release: str, version: int, records: bytes | None, code: ErrorCode) -> None:
    result = put(records, release, version=version)
    assert result.error_code == code, result.message
    assert result.message


def packed_by(codec: int, magic: int) -> bytes:
    """gzip data with a valid checksum and another codec in its attributes."""
    records = bytearray(batch(b"z" * 50, magic=magic, codec=Codec.GZIP))
    if magic == 2:
        records[22] = codec
        patch_crc(records)
    else:
        records[17] = codec
        records[12:16] = zlib.crc32(records[16:]).to_bytes(4, "big")
    return bytes(records)


@pytest.mark.parametrize(
    ("release", "version", "records"),
    [
        ("0.11.0", 3, batch(b"z", codec=Codec.ZSTD)),
        ("1.1", 5, batch(b"z", codec=Codec.ZSTD)),
        ("0.9.0", 1, packed_by(4, 0)),
        ("0.10.2", 2, packed_by(4, 1)),
        ("0.10.2", 2, packed_by(2, 1)),
        ("1.1", 5, packed_by(5, 2)),
        ("2.8", 7, packed_by(4, 2)),
        ("4.3", 9, packed_by(7, 2)),
        ("4.3", 9, packed_by(2, 2)),
    ],
)
def test_records_that_a_release_cannot_unpack_are_an_unknown_server_error(
    release: str, version: int, records: bytes
) -> None:
    """Brokers of 0.9.0.1, 0.10.2.2, 0.11.0.3, 1.1.1, 2.8.2 and 4.3.1 answer -1, not 76 or 2."""
    result = put(records, release, version=version)
    assert result.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert result.message


def test_a_compacted_topic_wants_keys() -> None:
    keyless = bytes(
        encode_batch(2, Codec.NONE, timestamps=[1, 1], keys=[b"k", None], values=[b"a", b"b"], headers=None)
    )
    assert put(keyless, into=partition(cleanup_policy="compact,delete")).error_code == ErrorCode.INVALID_RECORD
    assert put(keyless).error_code == 0


def test_a_topic_can_lower_the_largest_size() -> None:
    target = partition(max_message_bytes="200")
    assert put(batch(b"x" * 200), into=target).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert put(batch(b"x" * 100), into=target).error_code == 0


def test_an_empty_set_of_an_old_version_is_nothing() -> None:
    assert put(b"", "0.9.0") == AppendResult()


def test_0_8_2_and_0_9_take_lz4_with_their_own_header_checksum_only() -> None:
    ours = batch(b"a" * 100, magic=0, codec=Codec.LZ4)
    assert ours[32] == 0x1A
    assert put(ours, "0.9.0").error_code == 0
    right = bytearray(ours)
    right[32] = 0x82
    right[12:16] = zlib.crc32(right[16:]).to_bytes(4, "big")
    assert put(bytes(right), "0.9.0").error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert put(bytes(right), "0.10.0", version=2).error_code == 0


# -- idempotent producers


def numbered(base_sequence: int, *what: bytes, epoch: int = 0, producer_id: int = 7) -> bytes:
    more: dict[str, Any] = {"producer_id": producer_id, "producer_epoch": epoch, "base_sequence": base_sequence}
    return batch(*what, **more)


def test_a_duplicate_is_answered_with_its_first_offset_and_not_appended() -> None:
    target = partition()
    for sequence in range(3):
        assert put(numbered(sequence, b"v"), into=target).base_offset == sequence
    assert put(numbered(1, b"v"), into=target).base_offset == 1
    assert target.log.end_offset == 3


def test_a_duplicate_out_of_memory_is_out_of_order() -> None:
    target = partition()
    for sequence in range(6):
        put(numbered(sequence, b"v"), into=target)
    assert put(numbered(1, b"v"), into=target).base_offset == 1
    assert put(numbered(0, b"v"), into=target).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_gaps_and_old_epochs_are_refused() -> None:
    target = partition()
    put(numbered(0, b"a", b"b"), into=target)
    assert put(numbered(3, b"v"), into=target).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert put(numbered(2, b"v"), into=target).error_code == 0
    assert put(numbered(4, b"v", epoch=1), into=target).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert put(numbered(0, b"v", epoch=1), into=target).error_code == 0
    assert put(numbered(3, b"v", epoch=0), into=target).error_code == ErrorCode.INVALID_PRODUCER_EPOCH


def test_producers_do_not_know_each_other_and_may_start_anywhere() -> None:
    target = partition()
    put(numbered(0, b"a"), into=target)
    assert put(numbered(41, b"a", producer_id=8), into=target).error_code == 0
    assert put(numbered(42, b"a", producer_id=8), into=target).error_code == 0


def test_sequences_go_round() -> None:
    target = partition()
    last = 2**31 - 1
    assert put(numbered(last - 1, b"a", b"b", b"c"), into=target).error_code == 0
    assert put(numbered(1, b"d"), into=target).error_code == 0
    assert put(numbered(last - 1, b"a", b"b", b"c"), into=target).base_offset == 0
