"""Partition logs: what is read where, by offset and by time."""

from __future__ import annotations

import pytest

from pykafka08.broker.append import append
from pykafka08.broker.personality import Personality
from pykafka08.broker.state import Partition, Topics
from pykafka08.records.compression import Codec
from pykafka08.records.reader import read_batches
from tests.broker.raw import batch, values

NOW_MS = 5_000_000


def partition_of(release: str, *sets: bytes, config: dict[str, str] | None = None) -> Partition:
    """A partition with these sets appended, each at a later second."""
    topic = Topics(lambda: [0]).create("t", 1, 1, config)
    partition = topic.partitions[0]
    played = Personality(release)
    version = played.versions[0].max
    for index, records in enumerate(sets):
        result = append(partition, records, played, version=version, now_ms=NOW_MS + 1000 * index)
        assert result.error_code == 0, result.message
    return partition


def read(partition: Partition, offset: int, max_bytes: int = 1 << 20, *, whole_first: bool = True) -> list[int]:
    """Offsets of the whole records that a read gives, those before the asked offset too."""
    data, _ = partition.log.read(offset, max_bytes, whole_first=whole_first)
    return [record.offset for each in read_batches(data, topic="t", partition=0, fetch_offset=0) for record in each]


def test_reading_starts_at_the_batch_that_holds_the_offset() -> None:
    partition = partition_of("4.3", batch(b"0", b"1"), batch(b"2"), batch(b"3", b"4"))
    assert partition.log.end_offset == 5
    assert read(partition, 0) == [0, 1, 2, 3, 4]
    assert read(partition, 1) == [0, 1, 2, 3, 4]
    assert read(partition, 2) == [2, 3, 4]
    assert read(partition, 4) == [3, 4]
    assert read(partition, 5) == []


@pytest.mark.parametrize("magic", [0, 1])
def test_plain_messages_of_old_formats_are_read_from_the_very_offset(magic: int) -> None:
    partition = partition_of(
        "0.10.2" if magic else "0.9.0", batch(b"0", b"1", b"2", magic=magic), batch(b"3", magic=magic)
    )
    assert read(partition, 1) == [1, 2, 3]
    assert read(partition, 2) == [2, 3]


@pytest.mark.parametrize("magic", [0, 1])
def test_a_compressed_set_of_an_old_format_is_read_whole(magic: int) -> None:
    packed = batch(b"0", b"1", b"2", magic=magic, codec=Codec.GZIP)
    partition = partition_of("0.10.2" if magic else "0.9.0", packed, packed)
    assert read(partition, 4) == [3, 4, 5]


def test_max_bytes_cuts_inside_a_batch() -> None:
    partition = partition_of("4.3", batch(b"x" * 100), batch(b"y" * 100))
    size = partition.log.bytes_from(0, 1 << 20) // 2
    assert len(partition.log.read(0, size + 10, whole_first=True)[0]) == size + 10
    assert read(partition, 0, size + 10) == [0]


def test_the_first_batch_comes_whole_or_not() -> None:
    partition = partition_of("4.3", batch(b"x" * 100), batch(b"y" * 100))
    assert read(partition, 0, 10) == [0]
    data, _ = partition.log.read(0, 10, whole_first=False)
    assert len(data) == 10


def test_counting_bytes_stops_when_there_are_enough() -> None:
    partition = partition_of("4.3", *(batch(b"x") for _ in range(5)))
    one = partition.log.bytes_from(4, 1)
    assert partition.log.bytes_from(0, one + 1) == 2 * one
    assert partition.log.bytes_from(5, 1) == 0


def test_trimming_moves_the_start_and_drops_whole_batches() -> None:
    partition = partition_of("4.3", batch(b"0", b"1"), batch(b"2", b"3"))
    log = partition.log
    log.trim(1)
    assert (log.start_offset, log.end_offset) == (1, 4)
    assert values([record for each in log.batches() for record in each]) == [b"1", b"2", b"3"]
    log.trim(2)
    assert read(partition, 2) == [2, 3]
    log.trim(99)
    assert (log.start_offset, log.end_offset, log.batches()) == (4, 4, [])
    log.trim(0)
    assert log.start_offset == 4


def test_offsets_by_time() -> None:
    partition = partition_of("4.3", batch(b"0", b"1", at_ms=1000), batch(b"2", b"3", at_ms=2000))
    log = partition.log
    assert log.offset_for_time(0)[:2] == (0, 1000)
    assert log.offset_for_time(1001)[:2] == (1, 1001)
    assert log.offset_for_time(1500)[:2] == (2, 2000)
    assert log.offset_for_time(2002)[:2] == (-1, -1)
    assert log.offset_of_max_time()[:2] == (3, 2001)
    log.trim(4)
    assert log.offset_of_max_time()[:2] == (-1, -1)


def test_the_first_of_equal_greatest_times_is_found() -> None:
    partition = partition_of("4.3", batch(b"0", at_ms=9), batch(b"1", at_ms=9), batch(b"2", at_ms=3))
    assert partition.log.offset_of_max_time()[:2] == (0, 9)


def test_list_offsets_v0_lists_segment_bases_newest_first() -> None:
    log = partition_of("0.8.2", batch(b"0", b"1", magic=0), batch(b"2", magic=0)).log
    assert log.offsets_before(-1, 10) == [3, 0]
    assert log.offsets_before(-1, 1) == [3]
    assert log.offsets_before(-2, 10) == [0]
    assert log.offsets_before(NOW_MS + 1000, 10) == [0]
    assert log.offsets_before(NOW_MS, 10) == []
    assert log.offsets_before(-1, 0) == []
    assert partition_of("0.8.2").log.offsets_before(-1, 10) == [0]


def test_epochs_end_where_the_next_began() -> None:
    topic = Topics(lambda: [0, 1]).create("t", 1, 2)
    partition, played = topic.partitions[0], Personality("4.3")

    def add(*what: bytes) -> None:
        append(partition, batch(*what), played, version=9, now_ms=0)

    assert partition.log.epoch_end(5) == (-1, -1)
    add(b"0", b"1")
    partition.lead(1)
    add(b"2")
    partition.lead(0)
    partition.lead(1)
    add(b"3")
    assert partition.leader_epoch == 3
    assert [partition.log.epoch_end(epoch) for epoch in (0, 1, 2, 3, 9)] == [(0, 2), (1, 3), (1, 3), (3, 4), (3, 4)]


def test_old_sets_in_a_new_broker_become_batches() -> None:
    partition = partition_of("4.3", batch(b"0"))
    played = Personality("3.9")
    result = append(partition, batch(b"1", b"2", magic=1, codec=Codec.GZIP), played, version=2, now_ms=0)
    assert (result.error_code, result.base_offset) == (0, 1)
    assert [each.magic for each in partition.log.batches()] == [2, 2]
    assert read(partition, 2) == [1, 2]


def test_new_batches_in_a_topic_of_an_old_format_become_messages() -> None:
    partition = partition_of("2.8", batch(b"0", b"1"), batch(b"2"), config={"message.format.version": "0.10.0"})
    assert {each.magic for each in partition.log.batches()} == {1}
    assert read(partition, 1) == [1, 2]
