"""Fetch over the wire: long polls, bounds, formats that old readers know, epochs, sessions."""

from __future__ import annotations

import anyio
import pytest

from pykafka08.broker.server import EmbeddedCluster
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ForgottenTopic
from pykafka08.protocol.messages.metadata import MetadataRequest
from pykafka08.records.compression import Codec
from pykafka08.records.reader import only_partial, read_batches
from tests.broker.raw import Raw, batch, connect, decoded, fetch, fetch_request, produce, produce_request, values

pytestmark = pytest.mark.anyio

FOR_EVER_MS = 2**31 - 1


@pytest.mark.parametrize(
    ("release", "magic", "versions"),
    [("0.8.0", 0, [0]), ("0.10.2", 1, range(4)), ("3.9", 2, range(13)), ("4.3", 2, range(4, 13))],
)
async def test_every_version_in_a_format_that_it_knows(release: str, magic: int, versions: list[int]) -> None:
    async with EmbeddedCluster(version=release, topics={"t": 1}) as cluster, connect(cluster) as raw:
        write = max(3, 0) if magic == 2 else magic and 2
        await produce(raw, batch(b"0", b"1", magic=magic), write)
        await produce(raw, batch(b"2", b"3", magic=magic, codec=Codec.GZIP), write)
        for version in versions:
            data = await fetch(raw, version, 1)
            assert (data.error_code, data.high_watermark) == (0, 4)
            assert values(decoded(data, 1)) == [b"1", b"2", b"3"]
            known = 0 if version < 2 else 1 if version < 4 else 2
            stored = {each.magic for each in read_batches(data.records or b"", topic="", partition=0, fetch_offset=0)}
            assert stored == {min(known, magic)}


@pytest.mark.parametrize("version", [13, 17, 18])
async def test_topics_by_id(version: int) -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, connect(cluster) as raw:
        topic_id = (await raw.ask(MetadataRequest(topics=None), 12)).topics[0].topic_id
        await produce(raw, batch(b"v"), 9)
        response = await raw.ask(fetch_request(topic_id=topic_id), version)
        assert response.responses[0].topic_id == topic_id
        assert values(decoded(response.responses[0].partitions[0])) == [b"v"]
        cluster.delete_topic("t")
        response = await raw.ask(fetch_request(topic_id=topic_id), version)
        assert response.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


async def test_zstd_cannot_be_converted_for_old_readers() -> None:
    async with EmbeddedCluster(version="2.8", topics={"t": 1}) as cluster, connect(cluster) as raw:
        await produce(raw, batch(b"v", codec=Codec.ZSTD), 7)
        data = await fetch(raw, 3)
        assert (data.error_code, data.records) == (ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, b"")


async def test_offsets_outside_the_log() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, connect(cluster) as raw:
        await produce(raw, batch(b"0", b"1", b"2"), 9)
        cluster.delete_records("t", 0, 1)
        for offset, code in ((0, 1), (1, 0), (3, 0), (4, 1)):
            data = await fetch(raw, 12, offset, max_wait_ms=0)
            assert data.error_code == code
        assert (await fetch(raw, 12, 3)).records == b""
        assert (await fetch(raw, 5, 1)).log_start_offset == 1


async def test_unknown_partitions_and_epochs() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, connect(cluster) as raw:
        assert (await fetch(raw, 12, partition=9, max_wait_ms=FOR_EVER_MS)).error_code == 3
        assert (await fetch(raw, 12, topic="x", max_wait_ms=FOR_EVER_MS)).error_code == 3
        cluster.move_leader("t", 0, 0)
        for epoch, code in ((-1, 0), (0, 0), (1, ErrorCode.UNKNOWN_LEADER_EPOCH)):
            request = fetch_request()
            request.topics[0].partitions[0].current_leader_epoch = epoch
            response = await raw.ask(request, 12)
            assert response.responses[0].partitions[0].error_code == code


async def test_a_reader_from_a_lost_branch_is_told_where_it_ends() -> None:
    async with EmbeddedCluster(brokers=2, topics={"t": 1}) as cluster, connect(cluster, 0) as raw:
        cluster.move_leader("t", 0, 0)
        await produce(raw, batch(b"0"), 9)
        request = fetch_request(1)
        request.topics[0].partitions[0].last_fetched_epoch = 99
        data = (await raw.ask(request, 12)).responses[0].partitions[0]
        epoch = cluster.records("t", 0)[0].leader_epoch
        assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == (epoch, 1)


# -- bounds


async def test_old_versions_cut_the_first_batch_and_new_ones_do_not() -> None:
    async with EmbeddedCluster(version="3.9", topics={"t": 1}) as cluster, connect(cluster) as raw:
        await produce(raw, batch(b"v" * 1000), 9)
        cut = await fetch(raw, 2, max_bytes=100)
        assert len(cut.records or b"") == 100
        assert only_partial(cut.records or b"")
        assert values(decoded(await fetch(raw, 3, max_bytes=100))) == [b"v" * 1000]
        assert values(decoded(await fetch(raw, 12, max_bytes=100))) == [b"v" * 1000]


async def test_the_whole_answer_has_a_bound() -> None:
    async with EmbeddedCluster(topics={"t": 3}) as cluster, connect(cluster) as raw:
        for partition in range(3):
            await produce(raw, batch(b"v" * 1000), 9, partition=partition)
        request = fetch_request(max_bytes=1 << 20)
        request.max_bytes = 1500
        request.topics[0].partitions = [
            FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20) for index in range(3)
        ]
        parts = (await raw.ask(request, 12)).responses[0].partitions
        assert len(decoded(parts[0])) == 1
        assert parts[2].records == b""


# -- long polls


async def test_a_long_poll_is_answered_by_a_produce() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, connect(cluster) as reader, connect(cluster) as writer:
        await reader.send(fetch_request(max_wait_ms=FOR_EVER_MS), 12)
        await produce(writer, batch(b"news"), 9)
        _, response = await reader.receive(FetchResponse, 12)
        assert values(decoded(response.responses[0].partitions[0])) == [b"news"]


async def test_a_long_poll_waits_for_enough_bytes() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, connect(cluster) as reader, connect(cluster) as writer:
        size = len(batch(b"v" * 100))
        await reader.send(fetch_request(max_wait_ms=FOR_EVER_MS, min_bytes=3 * size), 12)
        for _ in range(3):
            await produce(writer, batch(b"v" * 100), 9)
        _, response = await reader.receive(FetchResponse, 12)
        assert len(decoded(response.responses[0].partitions[0])) == 3


async def test_a_long_poll_ends_at_its_time() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, connect(cluster) as raw:
        data = await fetch(raw, 12, max_wait_ms=20)
        assert (data.error_code, data.records) == (0, b"")


async def test_a_long_poll_holds_up_its_own_connection_only() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, connect(cluster) as held, connect(cluster) as other:
        first = await held.send(fetch_request(max_wait_ms=FOR_EVER_MS), 12)
        second = await held.send(produce_request(batch(b"behind")), 9)
        assert (await produce(other, batch(b"before"), 9)).base_offset == 0
        answered, _ = await held.receive(FetchResponse, 12)
        assert answered == first
        frame = await held.receive_frame()
        assert int.from_bytes(frame[:4], "big") == second
        assert values(cluster.records("t", 0)) == [b"before", b"behind"]


@pytest.mark.parametrize("change", ["move", "delete"])
async def test_a_long_poll_learns_of_changes(change: str) -> None:
    async with EmbeddedCluster(brokers=2, topics={"t": 1}) as cluster:
        leader = cluster.leader("t", 0)
        version = 10  # later ones may be read from a follower, too
        async with connect(cluster, leader) as raw:
            await raw.send(fetch_request(max_wait_ms=FOR_EVER_MS), version)
            await raw.send(fetch_request(partition=5), version)
            while len(cluster.requests) < 1:
                await anyio.lowlevel.checkpoint()
            if change == "move":
                cluster.move_leader("t", 0, 1 - leader)
            else:
                cluster.delete_topic("t")
            _, response = await raw.receive(FetchResponse, version)
            assert response.responses[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_a_reader_is_sent_to_the_replica_in_its_rack_and_served_there() -> None:
    async with EmbeddedCluster(brokers=3, topics={"t": 1}, racks=["a", "b", "b"]) as cluster:
        cluster.move_leader("t", 0, 0)
        async with connect(cluster, 0) as leader, connect(cluster, 1) as follower:
            await produce(leader, batch(b"v"), 9)
            data = await fetch(leader, 12, rack_id="b")
            assert (data.error_code, data.records) == (0, b"")
            assert data.preferred_read_replica in (1, 2)
            for rack in ("", "a", "c"):
                assert (await fetch(leader, 12, rack_id=rack)).preferred_read_replica == -1
            session = (await leader.ask(fetch_request(rack_id="b", session_epoch=0), 12)).session_id
            for epoch in (1, 2):  # not left out, though nothing has changed since it was told first
                again = change(session, epoch)
                again.rack_id = "b"
                told = (await leader.ask(again, 12)).responses[0].partitions[0]
                assert told.preferred_read_replica == data.preferred_read_replica
            data = await fetch(follower, 12, rack_id="b")
            assert (data.preferred_read_replica, values(decoded(data))) == (-1, [b"v"])
            assert (await fetch(follower, 10)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            cluster.delete_topic("t")
            assert (await fetch(follower, 12)).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_an_unclean_election_cuts_the_log() -> None:
    async with EmbeddedCluster(brokers=2, topics={"t": 1}) as cluster:
        cluster.move_leader("t", 0, 0)
        async with connect(cluster, 0) as raw, connect(cluster, 1) as other:
            for value in (b"0", b"1", b"2"):
                await produce(raw, batch(value), 9)
            before = cluster._partition("t", 0).leader_epoch
            cluster.elect_unclean_leader("t", 0, 1, 1)
            assert (cluster.leader("t", 0), cluster.log_end_offset("t", 0)) == (1, 1)
            wanted = FetchPartition(fetch_offset=3, last_fetched_epoch=before, partition_max_bytes=1000)
            request = FetchRequest(max_wait_ms=FOR_EVER_MS, topics=[FetchTopic(topic="t", partitions=[wanted])])
            data = (await other.ask(request, 12)).responses[0].partitions[0]
            assert data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE  # of the log, before epochs are looked at
            await produce(other, batch(b"x"), 9)
            await produce(other, batch(b"y"), 9)
            data = (await other.ask(request, 12)).responses[0].partitions[0]
            assert (data.error_code, data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == (0, before, 1)
            assert values(cluster.records("t", 0)) == [b"0", b"x", b"y"]


async def test_a_reader_that_goes_away_is_forgotten() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        async with connect(cluster) as raw:
            await raw.send(fetch_request(max_wait_ms=FOR_EVER_MS), 12)
            while not cluster.requests:
                await anyio.lowlevel.checkpoint()
        async with connect(cluster) as raw:
            assert (await produce(raw, batch(b"v"), 9)).error_code == 0


async def test_a_reader_that_does_not_read_is_not_worked_for() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, connect(cluster) as lazy, connect(cluster) as busy:
        await produce(busy, batch(b"v" * 1_000_000), 9)
        for _ in range(200):
            await lazy.send(fetch_request(), 12)
        for _ in range(200):
            assert (await fetch(busy, 12, 1)).error_code == 0
        assert sum(request.client_id == "raw" for request in cluster.requests) < 1 + 200 + 100
        for _ in range(200):
            _, response = await lazy.receive(FetchResponse, 12)
            assert len(response.responses[0].partitions[0].records or b"") > 1_000_000


# -- sessions


def change(session_id: int, epoch: int, *partitions: tuple[int, int], forgotten: tuple[int, ...] = ()) -> FetchRequest:
    """A request of a session that names these partitions with their offsets."""
    topics = [
        FetchTopic(
            topic="t",
            partitions=[
                FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
                for index, offset in partitions
            ],
        )
    ]
    return FetchRequest(
        min_bytes=1,
        session_id=session_id,
        session_epoch=epoch,
        topics=topics if partitions else [],
        forgotten_topics_data=[ForgottenTopic(topic="t", partitions=list(forgotten))] if forgotten else [],
    )


def told(response: FetchResponse) -> dict[int, list[bytes | None]]:
    return {data.partition_index: values(decoded(data)) for topic in response.responses for data in topic.partitions}


async def test_a_session_tells_changes_only() -> None:
    async with EmbeddedCluster(topics={"t": 3}) as cluster, connect(cluster) as raw:
        opened = await raw.ask(change(0, 0, (0, 0), (1, 0), (2, 0)), 12)
        session = opened.session_id
        assert session > 0
        assert told(opened) == {0: [], 1: [], 2: []}
        assert told(await raw.ask(change(session, 1), 12)) == {}
        await produce(raw, batch(b"v"), 9, partition=1)
        assert told(await raw.ask(change(session, 2), 12)) == {1: [b"v"]}
        assert told(await raw.ask(change(session, 3, (1, 1)), 12)) == {}
        cluster.delete_records("t", 1, 1)
        assert told(await raw.ask(change(session, 4), 12)) == {1: []}
        await produce(raw, batch(b"w"), 9, partition=2)
        assert told(await raw.ask(change(session, 5, forgotten=(2,)), 12)) == {}


async def test_a_long_poll_of_a_session_waits_on_all_its_partitions() -> None:
    async with EmbeddedCluster(topics={"t": 2}) as cluster, connect(cluster) as raw, connect(cluster) as writer:
        session = (await raw.ask(change(0, 0, (0, 0), (1, 0)), 12)).session_id
        request = change(session, 1)
        request.max_wait_ms = FOR_EVER_MS
        await raw.send(request, 12)
        await produce(writer, batch(b"v"), 9, partition=1)
        _, response = await raw.receive(FetchResponse, 12)
        assert told(response) == {1: [b"v"]}


async def test_sessions_have_epochs_and_end() -> None:
    async def code(raw: Raw, session_id: int, epoch: int) -> int:
        return (await raw.ask(change(session_id, epoch), 12)).error_code

    async with EmbeddedCluster(topics={"t": 1}) as cluster, connect(cluster) as raw:
        session = (await raw.ask(change(0, 0, (0, 0)), 12)).session_id
        assert await code(raw, session, 2) == ErrorCode.INVALID_FETCH_SESSION_EPOCH
        assert await code(raw, session + 1, 1) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        assert await code(raw, session, 1) == 0
        closed = await raw.ask(change(session, -1, (0, 0)), 12)
        assert (closed.error_code, closed.session_id) == (0, 0)
        assert await code(raw, session, 2) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


async def test_a_broker_that_was_stopped_has_forgotten_its_sessions() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        async with connect(cluster) as raw:
            session = (await raw.ask(change(0, 0, (0, 0)), 12)).session_id
        await cluster.stop_broker(0)
        await cluster.start_broker(0)
        async with connect(cluster) as raw:
            assert (await raw.ask(change(session, 1), 12)).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


async def test_partitions_with_records_go_to_the_end_of_the_order() -> None:
    async with EmbeddedCluster(topics={"t": 2}) as cluster, connect(cluster) as raw:
        for partition in range(2):
            await produce(raw, batch(b"%d" % partition * 1000), 9, partition=partition)
        opening = change(0, 0, (0, 0), (1, 0))
        opening.max_bytes = 100
        opened = await raw.ask(opening, 12)
        assert {index: len(records) for index, records in told(opened).items()} == {0: 1, 1: 0}
        following = change(opened.session_id, 1)
        following.max_bytes = 100
        assert list(told(await raw.ask(following, 12))) == [1]
