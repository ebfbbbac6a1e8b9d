"""Retention, compaction and the bound on memory: deleted records, times and errors of consumers."""

from __future__ import annotations

import gc
import logging
import weakref

import anyio
import pytest

from pykafka08.broker.append import append, append_marker
from pykafka08.broker.cluster_state import ClusterState, Node
from pykafka08.broker.configs import Configs
from pykafka08.broker.endpoints import Endpoint
from pykafka08.broker.groups import GroupLimits
from pykafka08.broker.log_manager import LogManager
from pykafka08.broker.personality import Personality
from pykafka08.broker.segments import Segment, deletable
from pykafka08.broker.server import EmbeddedCluster
from pykafka08.broker.state import Partition, Topics
from pykafka08.broker.timers import Timers
from pykafka08.error_codes import ErrorCode
from pykafka08.logs import library_logger
from pykafka08.protocol.messages.fetch import FetchResponse
from pykafka08.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from pykafka08.records.compression import Codec
from pykafka08.records.writer import encode_batch
from tests.broker.raw import batch, connect, decoded, fetch, fetch_request, produce, values

DAY_MS = 86_400_000
MAGIC_AT = 16
EACH_BATCH_A_SEGMENT = {"segment.bytes": "0"}
COMPACTED = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0", **EACH_BATCH_A_SEGMENT}


def topics_of(config: dict[str, str]) -> tuple[Topics, LogManager, Partition]:
    topics = Topics(lambda: [0])
    manager = LogManager(topics, topics.memory, library_logger("broker"), 1 << 30)
    return topics, manager, topics.create("t", 1, 1, config).partitions[0]


def keyed(*pairs: tuple[bytes, bytes | None], magic: int = 2, codec: Codec = Codec.NONE, **more: object) -> bytes:
    """One batch, whose records have timestamp 1000."""
    return bytes(
        encode_batch(
            magic,
            codec,
            timestamps=[1000] * len(pairs),
            keys=[key for key, _ in pairs],
            values=[value for _, value in pairs],
            headers=None,
            **more,  # type: ignore[arg-type]
        )
    )


def put(partition: Partition, records: bytes, *, release: str = "4.3", now_ms: int = 1000) -> None:
    played = Personality(release)
    result = append(partition, records, played, version=min(9, played.versions[0].max), now_ms=now_ms)
    assert result.error_code == 0, result.message


def kept(partition: Partition) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(record.offset, record.key, record.value) for record in partition.log.records()]


def segment(base_offset: int, size: int, latest_ms: int) -> Segment:
    made = Segment(base_offset, latest_ms)
    made.add(size, latest_ms, latest_ms)
    return made


@pytest.mark.parametrize(
    ("limits", "gone"),
    [
        ({}, 0),
        ({"retention_ms": 1000}, 0),
        ({"retention_ms": 999}, 1),
        ({"retention_ms": 0}, 2),
        ({"retention_bytes": 30}, 0),
        ({"retention_bytes": 21}, 0),
        ({"retention_bytes": 20}, 1),
        ({"retention_bytes": 0}, 3),
        ({"retention_ms": 999, "retention_bytes": 10}, 2),
    ],
)
def test_retention_deletes_the_oldest_segments_by_time_and_by_size(limits: dict[str, int], gone: int) -> None:
    segments = [segment(0, 10, 1000), segment(5, 10, 1500), segment(9, 10, 2000)]
    assert deletable(segments, now_ms=2000, **limits) == gone


def test_segments_roll_by_size_and_by_time() -> None:
    size = len(batch(b"x"))
    _, _, partition = topics_of({})
    partition.log.segment_bytes, partition.log.segment_ms = 2 * size, 1000
    for at_ms in (0, 0, 0, 1000, 2001):
        put(partition, batch(b"x", at_ms=at_ms))
    assert [(each.base_offset, each.count) for each in partition.log.segments] == [(0, 2), (2, 2), (4, 1)]
    assert partition.log.offsets_before(-1, 9) == [5, 4, 2, 0]


def test_retention_deletes_the_active_segment_once_it_is_old() -> None:
    _, manager, partition = topics_of({"retention.ms": "1000"})
    put(partition, batch(b"0", at_ms=5000))
    manager.delete_old_segments(6000)
    assert partition.log.start_offset == 0
    manager.delete_old_segments(6001)
    assert (partition.log.start_offset, partition.log.end_offset) == (1, 1)
    put(partition, batch(b"1", at_ms=7000))
    assert kept(partition) == [(1, b"k", b"1")]


def test_a_topic_that_is_only_compacted_has_no_retention() -> None:
    _, manager, partition = topics_of({**COMPACTED, "retention.ms": "1"})
    put(partition, batch(b"0"))
    manager.delete_old_segments(DAY_MS)
    assert partition.log.start_offset == 0


@pytest.mark.parametrize("name", ["log.retention.ms", "log.retention.minutes", "log.retention.hours"])
@pytest.mark.parametrize(("value", "gone"), [("-1", 0), ("1", 1)])
def test_retention_is_inherited_from_broker_properties_in_each_unit(name: str, value: str, gone: int) -> None:
    configs = Configs(Personality("4.3"), {name: value})
    topics = Topics(lambda: [0], configs)
    manager = LogManager(topics, topics.memory, library_logger("broker"), 1 << 30)
    partition = topics.create("t", 1, 1).partitions[0]
    put(partition, batch(b"0"), now_ms=0)
    manager.delete_old_segments(now_ms=DAY_MS)
    assert partition.log.start_offset == gone


def test_retention_of_an_open_transaction_moves_the_stable_offset() -> None:
    _, manager, partition = topics_of({"retention.ms": "1"})
    put(partition, batch(b"0", producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True))
    manager.delete_old_segments(DAY_MS)
    assert partition.log.stable_offset == partition.log.start_offset == 1


@pytest.mark.parametrize(
    ("release", "magic", "codec"),
    [
        ("0.8.2", 0, Codec.NONE),
        ("0.9", 0, Codec.GZIP),
        ("0.10", 1, Codec.NONE),
        ("0.10.2", 1, Codec.GZIP),
        ("4.3", 2, Codec.NONE),
        ("4.3", 2, Codec.ZSTD),
    ],
)
def test_compaction_keeps_the_latest_record_of_each_key_and_its_offset(release: str, magic: int, codec: Codec) -> None:
    _, manager, partition = topics_of(COMPACTED)
    put(partition, keyed((b"a", b"0"), (b"b", b"1"), (b"c", b"2"), magic=magic, codec=codec), release=release)
    put(partition, keyed((b"a", b"3"), (b"d", b"4"), magic=magic, codec=codec), release=release)
    put(partition, keyed((b"b", b"5"), magic=magic, codec=codec), release=release)  # the active segment
    before = partition.log.size
    manager.compact(DAY_MS)
    assert kept(partition) == [
        (1, b"b", b"1"),
        (2, b"c", b"2"),
        (3, b"a", b"3"),
        (4, b"d", b"4"),
        (5, b"b", b"5"),
    ]
    assert partition.log.end_offset == 6
    assert partition.log.size < before
    data, _ = partition.log.read(0, 1 << 20, whole_first=True)
    assert data[MAGIC_AT] == magic


def test_tombstones_stay_for_delete_retention_ms_and_empty_batches_are_deleted() -> None:
    _, manager, partition = topics_of({**COMPACTED, "delete.retention.ms": "100"})
    put(partition, keyed((b"a", b"0")))
    put(partition, keyed((b"a", None)))
    put(partition, keyed((b"b", b"2")))
    put(partition, keyed((b"b", b"3")))
    manager.compact(1000)
    assert kept(partition) == [(1, b"a", None), (2, b"b", b"2"), (3, b"b", b"3")]
    put(partition, keyed((b"b", b"4")))
    manager.compact(1099)
    assert kept(partition) == [(1, b"a", None), (3, b"b", b"3"), (4, b"b", b"4")]
    put(partition, keyed((b"b", b"5")))
    manager.compact(1100)
    assert kept(partition) == [(4, b"b", b"4"), (5, b"b", b"5")]
    assert [each.base_offset for each in partition.log.segments] == [4, 5]


def test_compaction_waits_for_enough_dirty_bytes_and_for_the_lag() -> None:
    _, manager, partition = topics_of(
        {"cleanup.policy": "compact", "min.compaction.lag.ms": "500", **EACH_BATCH_A_SEGMENT}
    )
    for value in (b"0", b"1", b"2"):
        put(partition, keyed((b"a", value)))
    manager.compact(1499)
    assert len(kept(partition)) == 3
    manager.compact(1500)
    assert len(kept(partition)) == 2
    put(partition, keyed((b"b", b"3")))  # half of the bytes are dirty: not above min.cleanable.dirty.ratio
    manager.compact(1500)
    assert len(kept(partition)) == 3
    partition.topic.config = {**partition.topic.config, "max.compaction.lag.ms": "600"}
    manager.compact(1601)
    assert [value for _, _, value in kept(partition)] == [b"2", b"3"]


def test_compaction_respects_transactions() -> None:
    _, manager, partition = topics_of({**COMPACTED, "delete.retention.ms": "0"})
    producer = {"producer_epoch": 0, "is_transactional": True}
    put(partition, keyed((b"a", b"0")))
    put(partition, keyed((b"a", b"1"), producer_id=1, base_sequence=0, **producer))
    append_marker(partition, 1, 0, is_commit=False, now_ms=1000)
    put(partition, keyed((b"b", b"3"), producer_id=2, base_sequence=0, **producer))
    append_marker(partition, 2, 0, is_commit=True, now_ms=1000)
    put(partition, keyed((b"c", b"5"), producer_id=3, base_sequence=0, **producer))  # stays open
    put(partition, keyed((b"a", b"6")))
    put(partition, keyed((b"a", b"7")))
    manager.compact(1000)
    # The aborted record is deleted, and does not replace earlier records; the open transaction ends the compaction.
    assert values(partition.log.records(is_committed=True)) == [b"0", b"3"]
    assert [each.base_offset for each in partition.log.batches() if each.is_control] == [2, 4]
    # An empty batch keeps the sequence of the producer whose record was deleted.
    assert [len(each) for each in partition.log.batches()][:2] == [1, 0]
    append_marker(partition, 3, 0, is_commit=True, now_ms=1000)
    put(partition, keyed((b"d", b"9")))
    manager.compact(1001)
    assert values(partition.log.records(is_committed=True)) == [b"3", b"5", b"7", b"9"]
    # The abort marker is deleted, because its transaction has no records left; commit markers stay.
    assert [each.base_offset for each in partition.log.batches() if each.is_control] == [4, 8]


def test_a_deleted_topic_frees_its_records_without_the_garbage_collector() -> None:
    topics, _, partition = topics_of({})
    put(partition, batch(bytes(1000)))
    assert topics.memory.used > 1000
    topic, is_there = partition.topic, weakref.ref(partition)
    topics.delete(topic)
    assert topics.memory.used == 0
    gc.disable()
    try:
        del partition
        assert is_there() is None
    finally:
        gc.enable()


@pytest.mark.anyio
async def test_a_deleted_topic_that_a_fetch_waited_for_frees_its_records_at_once() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, connect(cluster) as raw, connect(cluster) as reader:
        await produce(raw, batch(bytes(1000)), 9)
        await fetch(reader, 11, 0)
        arrived = anyio.Event()
        cluster.faults.run("Fetch", arrived.set)
        await reader.send(fetch_request(1, max_wait_ms=60_000), 11)
        await arrived.wait()
        is_there = weakref.ref(cluster._state.topics.find_partition("t", 0).log)  # type: ignore[union-attr]
        gc.collect()
        gc.disable()
        try:
            cluster.delete_topic("t")
            assert (await reader.receive(FetchResponse, 11))[1].responses
            assert is_there() is None
        finally:
            gc.enable()


def test_memory_is_bounded_and_the_oldest_records_are_deleted_with_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    topics, manager, first = topics_of({})
    second = topics.create("other", 1, 1).partitions[0]
    manager.max_memory_bytes = 100_000
    for at_ms in range(0, 100, 2):
        put(first, batch(bytes(10_000)), now_ms=at_ms)
        put(second, batch(bytes(10_000)), now_ms=at_ms + 1)
        manager.bound_memory()
        assert topics.memory.used <= 100_000
    assert abs(first.log.start_offset - second.log.start_offset) <= 1
    assert first.log.start_offset > 40
    warned = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert [record.topic for record in warned] == ["t", "other"]
    assert all(record.max_memory_bytes == 100_000 for record in warned)


def test_the_bound_on_memory_shortens_compacted_logs_last() -> None:
    topics, manager, compacted = topics_of(COMPACTED)
    plain = topics.create("plain", 1, 1).partitions[0]
    manager.max_memory_bytes = 25_000
    put(compacted, batch(bytes(10_000)), now_ms=0)
    put(compacted, batch(bytes(1)), now_ms=1)
    for at_ms in (2, 3, 4):
        put(plain, batch(bytes(10_000)), now_ms=at_ms)
    manager.bound_memory()
    assert (compacted.log.start_offset, plain.log.start_offset) == (0, 2)


def a_state(clock: list[float], **properties: str) -> ClusterState:
    state = ClusterState(
        Personality("4.3"),
        default_partitions=1,
        default_replication_factor=1,
        auto_create_topics=False,
        group_limits=GroupLimits(6000, 30_000, 0),
        configs=Configs(Personality("4.3"), properties),
        timers=Timers(lambda: clock[0]),
        now_ms=lambda: int(clock[0] * 1000),
    )
    state.nodes[0] = Node(0, [Endpoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 0)])
    state.nodes[0].is_running = True
    return state


def test_retention_that_fails_is_kept_as_a_failure_and_runs_again() -> None:
    clock = [0.0]
    state = a_state(clock)
    calls: list[int] = []

    def fail(now_ms: int) -> None:
        calls.append(now_ms)
        raise OSError(28, "No space left on device")

    state.log_manager.delete_old_segments = fail  # type: ignore[method-assign]
    state.start_log_manager()
    for clock[0] in (300.0, 600.0):
        state.timers.fire_due()
    assert calls == [300_000, 600_000]
    assert len(state.failures) == 2


def test_retention_and_compaction_run_at_the_intervals_of_the_brokers_configs() -> None:
    clock = [0.0]
    state = a_state(clock, **{"log.retention.check.interval.ms": "60000"})
    deleted = state.topics.create("deleted", 1, 1, {"retention.ms": "10000"}).partitions[0]
    compacted = state.topics.create("compacted", 1, 1, COMPACTED).partitions[0]
    state.start_log_manager()
    put(deleted, batch(b"0"))
    for _ in range(3):
        put(compacted, batch(b"0"))

    def at(seconds: float) -> tuple[int, int]:
        clock[0] = seconds
        state.timers.fire_due()
        return deleted.log.start_offset, len(kept(compacted))

    assert [at(seconds) for seconds in (14.9, 15.0, 59.9, 60.0)] == [(0, 3), (0, 2), (0, 2), (1, 2)]


@pytest.mark.anyio
async def test_fetching_deleted_records_is_offset_out_of_range() -> None:
    config = {"retention.ms": "1000", "segment.bytes": str(1 << 20)}
    async with EmbeddedCluster() as cluster, connect(cluster) as raw:
        cluster.create_topic("t", config=config)
        for at_ms in (1000, 5000, 9000):
            await produce(raw, batch(bytes(600_000), at_ms=at_ms), 9)
        cluster.clean_logs(now_ms=6001)
        assert cluster.log_start_offset("t", 0) == 2
        old = await fetch(raw, 12, 1)
        assert old.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        new = await fetch(raw, 12, 2)
        assert (new.log_start_offset, [record.offset for record in decoded(new)]) == (2, [2])
        asked = [ListOffsetsPartition(timestamp=at) for at in (-2, 0)]
        response = await raw.ask(ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=asked)]), 5)
        assert [each.offset for each in response.topics[0].partitions] == [2, 2]


@pytest.mark.anyio
async def test_produce_keeps_within_the_bound_on_memory(caplog: pytest.LogCaptureFixture) -> None:
    async with EmbeddedCluster(topics={"t": 1}, max_memory_bytes=100_000) as cluster, connect(cluster) as raw:
        for _ in range(12):
            await produce(raw, batch(bytes(10_000)), 9)
        assert cluster.log_start_offset("t", 0) > 0
        assert cluster.log_end_offset("t", 0) == 12
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
