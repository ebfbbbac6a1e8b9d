"""``log_dir``: the state of a cluster after a stop or kill."""

from __future__ import annotations

import logging
import os
import random
import shutil
from pathlib import Path

import pytest

from pykafka08.broker.append import append, append_marker
from pykafka08.broker.journal import Journal, JournalDamagedError, read_journal
from pykafka08.broker.log import PartitionLog
from pykafka08.broker.log_files import OpenFiles, SegmentFiles, load_log
from pykafka08.broker.log_manager import LogManager
from pykafka08.broker.personality import Personality
from pykafka08.broker.server import EmbeddedCluster
from pykafka08.broker.state import Partition, Topics
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import ConfigError
from pykafka08.logs import library_logger
from pykafka08.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from pykafka08.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from pykafka08.protocol.messages.end_txn import EndTxnRequest
from pykafka08.protocol.messages.init_producer_id import InitProducerIdRequest
from pykafka08.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from pykafka08.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from pykafka08.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from pykafka08.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from pykafka08.records.compression import Codec
from pykafka08.records.writer import encode_batch
from pykafka08.wire import Buffer
from tests.broker.raw import Raw, batch, connect, produce, produce_request, values

EARLIER = "3.5"  # a release whose leaders do not verify transactions with the coordinator


def file_partition(directory: Path, **limits: int) -> Partition:
    """A partition whose records are in files."""
    partition = Topics(lambda: [0]).create("t", 1, 1).partitions[0]
    partition.log.files = SegmentFiles(directory, partition.log, OpenFiles(), lambda *_: None)
    for name, value in limits.items():
        setattr(partition.log, name, value)
    return partition


def put(partition: Partition, records: bytes, release: str = "4.3") -> None:
    played = Personality(release)
    result = append(partition, records, played, version=min(9, played.versions[0].max), now_ms=1000)
    assert result.error_code == 0, result.message


def loaded(directory: Path, start_offset: int = 0) -> tuple[PartitionLog, int]:
    log = PartitionLog("t", 0)
    return log, load_log(log, directory, start_offset)


def bounds(log: PartitionLog) -> list[tuple[int, int, int]]:
    return [(each.base_offset, each.count, each.size) for each in log.segments]


@pytest.mark.parametrize(
    ("release", "magic", "codec"),
    [
        ("0.8.2", 0, Codec.NONE),
        ("0.9", 0, Codec.GZIP),
        ("0.10.2", 1, Codec.NONE),
        ("0.10.2", 1, Codec.SNAPPY),
        ("4.3", 2, Codec.NONE),
        ("4.3", 2, Codec.ZSTD),
    ],
)
def test_a_loaded_log_equals_the_written_one(tmp_path: Path, release: str, magic: int, codec: Codec) -> None:
    partition = file_partition(tmp_path / "t-0", segment_bytes=300)
    for index in range(9):
        put(partition, batch(b"a%d" % index, b"b%d" % index, magic=magic, codec=codec), release)
    log, lost = loaded(tmp_path / "t-0")
    assert lost == 0
    assert (log.start_offset, log.end_offset) == (0, 18)
    assert log.records() == partition.log.records()
    assert [(base, size) for base, _, size in bounds(log)] == [(base, size) for base, _, size in bounds(partition.log)]
    assert log.offset_for_time(1001) == partition.log.offset_for_time(1001)._replace(
        leader_epoch=log.offset_for_time(1001).leader_epoch
    )


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_a_torn_end_is_truncated_at_every_byte(tmp_path: Path, magic: int) -> None:
    release = ("0.9", "0.10.2", "4.3")[magic]
    partition = file_partition(tmp_path / "t-0")
    put(partition, batch(b"first", magic=magic), release)
    whole = partition.log.size
    put(partition, batch(b"second", magic=magic), release)
    (path,) = (tmp_path / "t-0").glob("*.log")
    data = path.read_bytes()
    for end in range(len(data)):
        path.write_bytes(data[:end])
        log, lost = loaded(tmp_path / "t-0")
        assert log.end_offset == (1 if end >= whole else 0)
        assert lost == end - (whole if end >= whole else 0)
        assert path.exists() == (end >= whole)


def test_a_log_ends_at_the_first_damaged_batch(tmp_path: Path) -> None:
    partition = file_partition(tmp_path / "t-0", segment_bytes=200)
    for value in (b"0", b"1", b"2", b"3", b"4"):
        put(partition, batch(value))
    second = sorted((tmp_path / "t-0").glob("*.log"))[1]
    damaged = bytearray(second.read_bytes())
    damaged[-1] ^= 1
    second.write_bytes(damaged)
    log, lost = loaded(tmp_path / "t-0")
    assert lost > 0
    assert values(log.records()) == [b"0", b"1", b"2"]
    assert loaded(tmp_path / "t-0")[1] == 0


def test_files_follow_trimming_truncation_compaction_and_deletion(tmp_path: Path) -> None:
    partition = file_partition(tmp_path / "t-0", segment_bytes=200)
    for value in (b"0", b"1", b"2", b"3", b"4", b"5"):
        put(partition, batch(value))
    log = partition.log
    log.trim(3)
    assert values(loaded(tmp_path / "t-0", 3)[0].records()) == [b"3", b"4", b"5"]
    log.truncate(5)
    assert values(loaded(tmp_path / "t-0", 3)[0].records()) == [b"3", b"4"]
    log.compacted(4, [])
    put(partition, batch(b"6"))
    again, _ = loaded(tmp_path / "t-0", 3)
    assert [record.offset for record in again.records()] == [4, 5]
    assert again.start_offset == 3
    log.trim(6)
    assert (loaded(tmp_path / "t-0", 6)[0].start_offset, loaded(tmp_path / "t-0", 6)[0].end_offset) == (6, 6)
    log.delete()
    assert not (tmp_path / "t-0").exists()


@pytest.mark.parametrize("seed", range(20))
def test_compaction_keeps_the_latest_values_in_memory_and_in_files(tmp_path: Path, seed: int) -> None:
    chosen = random.Random(seed)
    topics = Topics(lambda: [0])
    manager = LogManager(topics, topics.memory, library_logger("broker"), 1 << 30)
    config = {"cleanup.policy": "compact", "segment.bytes": "400", "delete.retention.ms": "30"}
    partition = topics.create("t", 1, 1, config).partitions[0]
    log = partition.log
    log.files = SegmentFiles(tmp_path / "t-0", log, OpenFiles(), lambda *_: None)
    written: list[tuple[bytes, bytes | None]] = []
    for now_ms in range(0, 400, 10):
        pairs = [
            (b"%d" % chosen.randrange(6), chosen.choice([b"v", b"w" * 50, None]))
            for _ in range(chosen.choice([1, 2, 3]))
        ]
        producer = {"producer_id": chosen.randrange(2), "producer_epoch": 0}
        producer["base_sequence"] = sum(
            batch.last_sequence + 1
            for id_, _, batch in log.sequences.latest()
            if id_ == producer["producer_id"] and batch
        )
        records = encode_batch(
            2,
            chosen.choice([Codec.NONE, Codec.GZIP]),
            timestamps=[now_ms] * len(pairs),
            keys=[key for key, _ in pairs],
            values=[value for _, value in pairs],
            headers=None,
            **producer,
        )
        put(partition, bytes(records))
        written += pairs
        if not chosen.randrange(4):
            manager.compact(now_ms)
    kept = {record.offset: (record.key, record.value) for record in log.records()}
    assert len(kept) < len(written) == log.end_offset
    assert all(written[offset] == pair for offset, pair in kept.items())
    latest = dict(written)
    found = dict(kept.values())
    assert {key: found.get(key) for key in latest} == latest
    again, lost = loaded(tmp_path / "t-0")
    assert (lost, again.end_offset, again.records()) == (0, log.end_offset, log.records())
    assert sorted(again.sequences.latest()) == sorted(log.sequences.latest())
    assert topics.memory.used == sum(batch.memory_bytes for batch in log.stored(0, log.end_offset))


def test_sequences_and_open_transactions_are_restored(tmp_path: Path) -> None:
    partition = file_partition(tmp_path / "t-0")
    transactional = {"producer_epoch": 0, "is_transactional": True}
    put(partition, batch(b"0", producer_id=1, producer_epoch=3, base_sequence=7))
    put(partition, batch(b"1", producer_id=2, base_sequence=0, **transactional))
    append_marker(partition, 2, 0, is_commit=False, now_ms=1)
    put(partition, batch(b"3", producer_id=4, base_sequence=0, **transactional))
    log, _ = loaded(tmp_path / "t-0")
    assert log.stable_offset == 3
    assert log.aborted() == partition.log.aborted()
    assert log.sequences.latest() == partition.log.sequences.latest()


def test_a_failed_write_is_an_error_and_leaves_no_record(tmp_path: Path) -> None:
    partition = file_partition(tmp_path / "t-0")
    put(partition, batch(b"0"))

    class Full(SegmentFiles):
        def append(self, segment_offset: int, data: Buffer) -> None:
            raise OSError(28, "No space left on device")

    kept, partition.log.files = partition.log.files, Full(tmp_path / "t-0", partition.log, OpenFiles(), lambda *_: None)
    result = append(partition, batch(b"1"), Personality("4.3"), version=9, now_ms=1000)
    assert result.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert "log_dir" in (result.message or "")
    partition.log.files = kept
    put(partition, batch(b"2"))
    assert values(loaded(tmp_path / "t-0")[0].records()) == values(partition.log.records()) == [b"0", b"2"]


def test_a_journal_ends_at_a_torn_line_and_is_rewritten_when_it_has_grown(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(path, lambda: iter([("a", 1)]))
    journal.note("lost", 0)  # not open yet
    journal.rewrite()
    journal.note("b", "tëxt", None, [1, 2])
    expected = [["a", 1], ["b", "tëxt", None, [1, 2]]]
    assert list(read_journal(path)) == expected
    data = path.read_bytes()
    for end in range(len(data)):
        path.write_bytes(data[:end])
        assert list(read_journal(path)) == expected[: data[:end].count(b"\n")]
    path.write_bytes(data)
    journal._rewrite_at = len(data) + 10
    journal.note("c")
    journal.note("d")
    assert list(read_journal(path)) == [["a", 1], ["d"]]
    journal.close()


def test_a_journal_that_is_written_anew_keeps_the_entry_whose_change_is_still_to_come(tmp_path: Path) -> None:
    state: list[tuple[object, ...]] = [("a",)]
    journal = Journal(tmp_path / "journal", lambda: iter(state))
    journal.rewrite()
    journal._rewrite_at = 0
    journal.note("b")
    journal._rewrite_at = 1 << 20
    journal.note("c")
    assert list(read_journal(tmp_path / "journal")) == [["a"], ["b"], ["c"]]
    journal.close()


def test_damage_before_the_last_line_of_a_journal_is_an_error(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal", lambda: iter([("a",)]))
    journal.rewrite()
    journal.note("b")
    journal.close()
    data = bytearray((tmp_path / "journal").read_bytes())
    data[2] ^= 1
    (tmp_path / "journal").write_bytes(data)
    with pytest.raises(JournalDamagedError, match="line 1 of journal"):
        list(read_journal(tmp_path / "journal"))


def test_segments_are_loaded_as_their_files_are_though_segment_bytes_is_lower_now(tmp_path: Path) -> None:
    partition = file_partition(tmp_path / "t-0")
    for value in (b"0", b"1", b"2", b"3"):
        put(partition, batch(value))
    log = PartitionLog("t", 0)
    log.segment_bytes = 100
    load_log(log, tmp_path / "t-0", 0)
    log.files = SegmentFiles(tmp_path / "t-0", log, OpenFiles(), lambda *_: None)
    partition.log = log
    put(partition, batch(b"4"))
    assert [each.base_offset for each in log.segments] == [0, 4]
    log.trim(2)
    assert values(loaded(tmp_path / "t-0", 2)[0].records()) == [b"2", b"3", b"4"]


def test_files_shrink_as_the_log_does_within_a_segment(tmp_path: Path) -> None:
    partition = file_partition(tmp_path / "t-0")
    log = partition.log
    for _ in range(40):
        put(partition, batch(bytes(200_000)))
        log.trim(log.end_offset - 3)
        size = sum(path.stat().st_size for path in (tmp_path / "t-0").iterdir())
        assert size <= log.size + max(log.size, 1 << 20) + 300_000
    again, lost = loaded(tmp_path / "t-0", log.start_offset)
    assert (lost, again.start_offset, again.end_offset) == (0, 37, 40)
    assert again.records() == log.records()


def test_files_of_other_programs_in_a_directory_of_a_log_are_left_alone(tmp_path: Path) -> None:
    partition = file_partition(tmp_path / "t-0")
    put(partition, batch(b"0"))
    (tmp_path / "t-0" / "other.log").write_text("text")
    log, lost = loaded(tmp_path / "t-0")
    assert (log.end_offset, lost) == (1, 0)


# -- whole clusters


async def commit(raw: Raw, offset: int) -> None:
    asked = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="m")
    request = OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=[OffsetCommitRequestTopic(name="t", partitions=[asked])],
    )
    response = await raw.ask(request, 7)
    assert response.topics[0].partitions[0].error_code == 0


async def committed(raw: Raw) -> int:
    request = OffsetFetchRequest(group_id="g", topics=[OffsetFetchRequestTopic(name="t", partition_indexes=[0])])
    return (await raw.ask(request, 5)).topics[0].partitions[0].committed_offset


async def described(raw: Raw) -> MetadataResponse:
    return await raw.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12)


@pytest.mark.anyio
@pytest.mark.parametrize("is_killed", [False, True])
async def test_a_cluster_restores_its_state_after_a_stop_or_kill(tmp_path: Path, is_killed: bool) -> None:
    directory = tmp_path / "one"
    topics = {"t": {"partitions": 2, "replication_factor": 2, "config": {"retention.ms": "-1"}}, "gone": 1}
    async with EmbeddedCluster(3, log_dir=directory, topics=topics) as cluster, connect(cluster) as raw:
        for value in (b"0", b"1", b"2"):
            await produce(raw, batch(value), 9)
        async with connect(cluster, cluster.coordinator("g")) as coordinator:
            await commit(coordinator, 2)
        cluster.delete_records("t", 0, 1)
        cluster.delete_topic("gone")
        cluster.move_leader("t", 1, 0)
        cluster.move_leader("t", 0, 2)  # a replica from now on
        before = await described(raw)
        producer = await raw.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000), 2)
        if is_killed:  # after a kill, only the current content of the files is left
            shutil.copytree(directory, tmp_path / "two")
    directory = tmp_path / "two" if is_killed else directory
    async with EmbeddedCluster(3, log_dir=directory, topics={"t": 1}) as cluster, connect(cluster) as raw:
        assert cluster.topics == {"t": 2}
        assert values(cluster.records("t", 0)) == [b"1", b"2"]
        assert (cluster.log_start_offset("t", 0), cluster.log_end_offset("t", 0)) == (1, 3)
        after = await described(raw)
        assert after.cluster_id == before.cluster_id
        assert after.topics[0].topic_id == before.topics[0].topic_id
        for old, new in zip(before.topics[0].partitions, after.topics[0].partitions, strict=True):
            assert new.leader_epoch > old.leader_epoch
            assert new.replica_nodes == old.replica_nodes
        async with connect(cluster, cluster.coordinator("g")) as coordinator:
            assert await committed(coordinator) == 2
        again = await raw.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000), 2)
        assert again.producer_id > producer.producer_id
        assert cluster._state.topics.find("t").config == {"retention.ms": "-1"}  # type: ignore[union-attr]
    assert not (directory / "gone-0").exists()


@pytest.mark.anyio
@pytest.mark.parametrize("is_decided", [False, True])
async def test_transactions_are_restored_after_a_kill(tmp_path: Path, is_decided: bool) -> None:
    async with (
        EmbeddedCluster(
            version=EARLIER, log_dir=tmp_path / "one", topics={"t": 1}, transaction_marker_delay_ms=60_000
        ) as cluster,
        connect(cluster) as raw,
    ):
        made = await raw.ask(InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000), 2)
        who = {"transactional_id": "x", "producer_id": made.producer_id, "producer_epoch": made.producer_epoch}
        await raw.ask(
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id="x",
                v3_and_below_producer_id=made.producer_id,
                v3_and_below_producer_epoch=made.producer_epoch,
                v3_and_below_topics=[AddPartitionsToTxnTopic(name="t", partitions=[0])],
            ),
            1,
        )
        await raw.ask(AddOffsetsToTxnRequest(group_id="g", **who), 1)
        records = batch(
            b"0",
            producer_id=made.producer_id,
            producer_epoch=made.producer_epoch,
            base_sequence=0,
            is_transactional=True,
        )
        request = produce_request(records)
        request.transactional_id = "x"
        assert (await raw.ask(request, 9)).responses[0].partition_responses[0].error_code == 0
        part = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
        await raw.ask(
            TxnOffsetCommitRequest(
                group_id="g", topics=[TxnOffsetCommitRequestTopic(name="t", partitions=[part])], **who
            ),
            2,
        )
        if is_decided:
            assert (await raw.ask(EndTxnRequest(committed=True, **who), 1)).error_code == 0
        shutil.copytree(tmp_path / "one", tmp_path / "two")
    async with EmbeddedCluster(version=EARLIER, log_dir=tmp_path / "two") as cluster, connect(cluster) as raw:
        if not is_decided:
            assert cluster.transactions == {"x": "Ongoing"}
            assert cluster.last_stable_offset("t", 0) == 0
            assert (await raw.ask(EndTxnRequest(committed=True, **who), 1)).error_code == 0
        assert cluster.transactions == {"x": "CompleteCommit"}
        assert values(cluster.records("t", 0, committed=True)) == [b"0"]
        assert await committed(raw) == 1


@pytest.mark.anyio
async def test_a_directory_serves_one_cluster_at_a_time(tmp_path: Path) -> None:
    async with EmbeddedCluster(log_dir=tmp_path):
        with pytest.raises(ConfigError, match="is in use by another broker"):
            async with EmbeddedCluster(log_dir=tmp_path):
                pass
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="log_dir="):
        async with EmbeddedCluster(log_dir=tmp_path / "file"):
            pass


@pytest.mark.anyio
async def test_a_directory_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "web-0").mkdir()
    (tmp_path / "web-0" / "access.log").write_text("text")
    with pytest.raises(ConfigError, match=r"is not empty .*'web-0'"):
        async with EmbeddedCluster(log_dir=tmp_path, topics={"web": 1}):
            pass
    assert (tmp_path / "web-0" / "access.log").read_text() == "text"


@pytest.mark.anyio
async def test_only_directories_of_deleted_topics_are_removed_at_the_start(tmp_path: Path) -> None:
    async with EmbeddedCluster(log_dir=tmp_path, topics={"t": 1}) as cluster, connect(cluster) as raw:
        await produce(raw, batch(b"0"), 9)
        shutil.copytree(tmp_path / "t-0", tmp_path / "kept")
        cluster.delete_topic("t")
        shutil.copytree(tmp_path / "kept", tmp_path / "t-0")  # as if the process ended before it removed them
    async with EmbeddedCluster(log_dir=tmp_path, topics={"t": 1}) as cluster:
        assert cluster.records("t", 0) == []
    assert (tmp_path / "kept").exists()


@pytest.mark.anyio
async def test_a_damaged_journal_is_an_error_and_no_record_is_deleted(tmp_path: Path) -> None:
    async with EmbeddedCluster(log_dir=tmp_path, topics={"t": 1}) as cluster, connect(cluster) as raw:
        await produce(raw, batch(b"0"), 9)
    data = bytearray((tmp_path / "cluster.journal").read_bytes())
    data[2] ^= 1
    (tmp_path / "cluster.journal").write_bytes(data)
    with pytest.raises(ConfigError, match=r"line 1 of cluster\.journal is damaged"):
        async with EmbeddedCluster(log_dir=tmp_path):
            pass
    assert list((tmp_path / "t-0").glob("*.log"))


@pytest.mark.anyio
async def test_a_topic_without_partitions_is_left_out(tmp_path: Path) -> None:
    async with EmbeddedCluster(log_dir=tmp_path, topics={"t": 1}):
        pass
    journal = tmp_path / "cluster.journal"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(line for line in lines if b'"partition"' not in line))
    async with EmbeddedCluster(log_dir=tmp_path) as cluster:
        assert cluster.topics == {}


@pytest.mark.anyio
async def test_replicas_that_have_changed_are_known_again(tmp_path: Path) -> None:
    topics = {"t": {"partitions": 1, "replication_factor": 1}}
    async with EmbeddedCluster(3, log_dir=tmp_path / "one", topics=topics) as cluster:
        partition = cluster._state.topics.find_partition("t", 0)
        assert partition is not None
        cluster._state.topics.reassign(partition, [2, 1])
        cluster.move_leader("t", 0, 0)
        shutil.copytree(tmp_path / "one", tmp_path / "two")
    async with EmbeddedCluster(3, log_dir=tmp_path / "two") as cluster, connect(cluster) as raw:
        assert (await described(raw)).topics[0].partitions[0].replica_nodes == [2, 1, 0]


@pytest.mark.anyio
async def test_the_bound_on_memory_holds_for_what_is_loaded(tmp_path: Path) -> None:
    async with EmbeddedCluster(log_dir=tmp_path, topics={"t": 1}) as cluster, connect(cluster) as raw:
        for _ in range(5):
            await produce(raw, batch(bytes(1000)), 9)
    async with EmbeddedCluster(log_dir=tmp_path, max_memory_bytes=4000) as cluster:
        assert cluster._state.topics.memory.used <= 4000
        assert 0 < cluster.log_start_offset("t", 0) < cluster.log_end_offset("t", 0) == 5


@pytest.mark.anyio
async def test_records_that_were_cut_off_are_in_the_log_of_the_process(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with EmbeddedCluster(log_dir=tmp_path, topics={"t": 1}) as cluster, connect(cluster) as raw:
        await produce(raw, batch(b"0"), 9)
        await produce(raw, batch(b"1"), 9)
    (path,) = (tmp_path / "t-0").glob("*.log")
    os.truncate(path, path.stat().st_size - 1)
    async with EmbeddedCluster(log_dir=tmp_path) as cluster:
        assert values(cluster.records("t", 0)) == [b"0"]
    warned = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert [(record.topic, record.log_end_offset) for record in warned] == [("t", 1)]
