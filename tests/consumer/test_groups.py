"""The consumer as a member of a group, on embedded clusters: where it starts, what it commits and shares."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import pytest

from pykafka08 import (
    AuthorizationError,
    BrokerError,
    ClosedError,
    ConfigError,
    Consumer,
    EmbeddedCluster,
    ErrorCode,
    KafkaError,
    NoOffsetError,
    OffsetAndMetadata,
    PartitionRevokedError,
    PollIntervalExceededError,
    RebalanceListener,
    Record,
    RequestTimeoutError,
    TopicPartition,
    UnsupportedVersionError,
)
from pykafka08.records.topic_name import INTERNAL_TOPICS
from tests.consumer.embedded import fill, read, values
from tests.consumer.groups import committed_in, consumer, spread, until

pytestmark = pytest.mark.anyio

T0 = TopicPartition("t", 0)


async def loop_and_break(reader: Consumer) -> None:
    await read(reader, 10)


async def loop_and_acknowledge(reader: Consumer) -> None:
    reader.acknowledge((await read(reader, 10))[-1])


async def acknowledge_some(reader: Consumer) -> None:
    records = await reader.getmany(max_records=10)
    reader.acknowledge(records[6])
    reader.acknowledge(records[3])


async def one_by_one(reader: Consumer) -> None:
    for _ in range(10):
        await reader.getone()


async def one_by_one_and_none(reader: Consumer) -> None:
    """Asking for a record that never comes is asking for it."""
    await reader.getmany(max_records=100)
    with pytest.raises(RequestTimeoutError):
        await reader.getone(timeout=0.01)


async def many(reader: Consumer) -> None:
    await reader.getmany(max_records=7)
    await reader.getmany(max_records=7)


async def one_after_many(reader: Consumer) -> None:
    await reader.getmany(max_records=7)
    await reader.getone()


async def loop_after_many(reader: Consumer) -> None:
    await reader.getmany(max_records=7)
    await read(reader, 1)


async def a_batch(reader: Consumer) -> None:
    async for _ in reader.batches():
        break


async def an_acknowledged_batch(reader: Consumer) -> None:
    async for batch in reader.batches():
        reader.acknowledge(batch)
        break


async def commit_in_hand(reader: Consumer) -> None:
    await read(reader, 10)
    assert await reader.commit() == {}


async def seek_back(reader: Consumer) -> None:
    await read(reader, 50)
    await reader.seek(T0, 4)


async def pause_in_hand(reader: Consumer) -> None:
    await read(reader, 10)
    reader.pause(T0)


@pytest.mark.parametrize(
    ("work", "expected"),
    [
        (loop_and_break, 9),
        (loop_and_acknowledge, 10),
        (acknowledge_some, 7),
        (one_by_one, 9),
        (one_by_one_and_none, 100),
        (many, 7),
        (one_after_many, 7),
        (loop_after_many, 7),
        (a_batch, 0),
        (an_acknowledged_batch, 100),
        (commit_in_hand, 10),
        (seek_back, 4),
        (pause_in_hand, 9),
    ],
)
async def test_what_is_finished_is_committed_at_the_end(
    work: Callable[[Consumer], Awaitable[None]], expected: int
) -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 100))
        async with consumer(cluster, "t") as reader:
            await work(reader)
        assert await committed_in(cluster, [T0]) == {0: expected}
        if expected < 100:
            async with consumer(cluster, "t") as reader:
                assert (await read(reader, 1))[0].offset == expected


async def test_the_last_record_of_each_chunk_is_in_hand_too() -> None:
    """Records are made 256 at a time."""
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 600))
        for count in (1, 256, 257, 512, 600):
            async with consumer(cluster, "t", group_id=f"g{count}") as reader:
                await read(reader, count)
            assert await committed_in(cluster, [T0], f"g{count}") == {0: count - 1}


async def test_auto_commit_now_and_then_and_what_it_leaves_alone() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 20))
        async with consumer(cluster, "t", auto_commit_interval_ms=20) as reader:
            await read(reader, 10)
            with anyio.fail_after(30):
                while (await reader.committed([T0]))[T0] != OffsetAndMetadata(9, -1, ""):
                    pass
            before = commits(cluster)
            await anyio.sleep(0.1)
            assert commits(cluster) == before, "nothing is finished that was not"
            await read(reader, 10)
            await until(lambda: commits(cluster) > before)
            await reader.aclose(commit=False)
        assert await committed_in(cluster, [T0]) == {0: 19}


def commits(cluster: EmbeddedCluster) -> int:
    return sum(request.api == "OffsetCommit" for request in cluster.requests)


async def test_without_auto_commit_only_commits_commit() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 20))
        async with consumer(cluster, "t", enable_auto_commit=False) as reader:
            await read(reader, 10)
            assert await reader.commit({T0: 3}) == {}
            await read(reader, 5)
        assert await committed_in(cluster, [T0]) == {0: 3}
        assert commits(cluster) == 1


async def test_auto_commit_without_a_group_does_nothing() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 5))
        async with consumer(cluster, "t", group_id=None, auto_commit_interval_ms=1) as reader:
            await read(reader, 5)
            with pytest.raises(ConfigError, match="group_id"):
                await reader.commit()
            with pytest.raises(ConfigError, match="group_id"):
                await reader.committed([T0])
        assert not {"OffsetCommit", "FindCoordinator"} & {request.api for request in cluster.requests}


async def test_a_failed_auto_commit_is_tried_again() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 5))
        cluster.faults.answer("OffsetCommit", ErrorCode.OFFSET_METADATA_TOO_LARGE, times=2)
        async with consumer(cluster, "t", auto_commit_interval_ms=20) as reader:
            await read(reader, 5)
            await until(lambda: commits(cluster) >= 3)
            with pytest.raises(RequestTimeoutError):
                await reader.getone(timeout=0.01)
        assert await committed_in(cluster, [T0]) == {0: 5}


async def test_a_commit_that_another_took_the_place_of_is_not_known_to_have_been_made() -> None:
    """The second is cancelled before the group has anything, and so is the first: the end commits all."""
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 20))
        async with consumer(cluster, "t", auto_commit_interval_ms=60_000) as reader:
            await reader.getmany(max_records=20)
            cluster.faults.answer("OffsetCommit", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, times=None)
            outcomes = []

            async def commit() -> None:
                outcomes.append(await reader.commit())

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(commit)
                await until(lambda: any(request.api == "OffsetCommit" for request in cluster.requests))
                async with anyio.create_task_group() as others:
                    others.start_soon(commit)
                    await until(lambda: sum(request.api == "OffsetCommit" for request in cluster.requests) >= 5)
                    others.cancel_scope.cancel()
                assert not outcomes
                tasks.cancel_scope.cancel()
            cluster.faults.clear()
        assert await committed_in(cluster, [T0]) == {0: 20}


async def test_positions_are_committed_though_nothing_was_read() -> None:
    """One that began at the end of the log begins there again, whatever has come meanwhile."""
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 5))
        async with consumer(cluster, "t", auto_offset_reset="latest"):
            pass
        await fill(cluster, "t", values(5, 8))
        async with consumer(cluster, "t", auto_offset_reset="latest") as reader:
            assert [record.offset for record in await read(reader, 3)] == [5, 6, 7]


async def test_no_committed_offset_and_no_policy() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 5))
        async with consumer(cluster, "t", auto_offset_reset="none") as reader:
            with pytest.raises(NoOffsetError):
                await reader.getone(timeout=20)
            await reader.seek(T0, 2)
            assert (await reader.getone(timeout=20)).offset == 2


@pytest.mark.parametrize("version", ["0.9.0", "0.10.2", "1.1", "2.8", "4.3"])
async def test_two_share_and_one_takes_over(version: str) -> None:
    async with EmbeddedCluster(brokers=2, version=version, topics={"t": 4}) as cluster:
        await spread(cluster, "t", 4, 50)
        seen: list[tuple[int, int]] = []
        async with consumer(cluster, "t") as first:
            seen += [(record.partition, record.offset) for record in await first.getmany(max_records=60)]
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(read_into, first, seen, 200, tasks.cancel_scope)
                async with consumer(cluster, "t") as second:
                    assert len(second.assignment()) == len(first.assignment()) == 2
                    assert not set(first.assignment()) & set(second.assignment())
                    tasks.start_soon(read_into, second, seen, 200, tasks.cancel_scope)
                    await until(lambda: len(set(seen)) == 200)
                    tasks.cancel_scope.cancel()
        assert sorted(set(seen)) == [(partition, offset) for partition in range(4) for offset in range(50)]
        assert len(seen) == 200, "handed out twice, though everybody came back for more before giving up"


async def read_into(reader: Consumer, seen: list[tuple[int, int]], enough: int, scope: anyio.CancelScope) -> None:
    async for record in reader:
        seen.append((record.partition, record.offset))
        if len(seen) >= enough:
            scope.cancel()


async def test_what_was_fetched_of_a_revoked_partition_is_not_read() -> None:
    """Not the rest of the batch that is being read, nor what waits behind it."""
    async with EmbeddedCluster(topics={"t": 2}) as cluster:
        await spread(cluster, "t", 2, 300)
        async with consumer(cluster, "t") as first:
            begun = await read(first, 10)
            half_read = begun[-1].partition
            async with consumer(cluster, "t") as second:
                assert len(first.assignment()) == 1
                kept = first.assignment()[0].partition
                rest = await read(first, 300 if kept != half_read else 290)
                assert {record.partition for record in rest} == {kept}
                taken = await read(second, 1)
                assert taken[0].partition != kept
                if kept != half_read:
                    assert taken[0].offset == 9, "the record in hand was not finished"


async def test_cooperative_members_go_on_with_what_they_keep() -> None:
    strategy = {"partition_assignment_strategy": ["cooperative-sticky"]}
    async with EmbeddedCluster(topics={"t": 4}) as cluster:
        await spread(cluster, "t", 4, 10)
        heard = Heard()
        async with consumer(cluster, "t", listener=heard, **strategy) as first:
            await first.getmany(max_records=40)
            positions = {tp: await first.position(tp) for tp in first.assignment()}
            await first.commit()
            async with consumer(cluster, "t", **strategy) as second:
                await until(lambda: len(first.assignment()) == len(second.assignment()) == 2)
                assert {tp: await first.position(tp) for tp in first.assignment()} == {
                    tp: offset for tp, offset in positions.items() if tp in first.assignment()
                }
                gone = frozenset(second.assignment())
                assert [call for call in heard.calls if call[0] != "assigned"] == [("revoked", gone)]


class Heard:
    """A listener that keeps what it hears, and does what it is told."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, frozenset[TopicPartition]]] = []
        self.reader: Consumer | None = None
        self.on_assigned: Callable[[frozenset[TopicPartition]], Awaitable[object]] | None = None
        self.on_revoked: Callable[[frozenset[TopicPartition]], Awaitable[object]] | None = None

    async def partitions_assigned(self, added: frozenset[TopicPartition]) -> None:
        self.calls.append(("assigned", added))
        if self.on_assigned is not None:
            await self.on_assigned(added)

    async def partitions_revoked(self, partitions: frozenset[TopicPartition]) -> None:
        self.calls.append(("revoked", partitions))
        if self.on_revoked is not None:
            await self.on_revoked(partitions)

    async def partitions_lost(self, partitions: frozenset[TopicPartition]) -> None:
        self.calls.append(("lost", partitions))


async def test_a_listener_may_seek_commit_and_ask_for_positions() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 50))
        heard = Heard()
        reader = consumer(cluster, "t", listener=heard, enable_auto_commit=False)
        positions = []

        async def assigned(added: frozenset[TopicPartition]) -> None:
            for tp in added:
                positions.append(await reader.position(tp))
                await reader.seek(tp, 30)

        async def revoked(_: frozenset[TopicPartition]) -> None:
            assert await reader.commit() == {}

        heard.on_assigned, heard.on_revoked = assigned, revoked
        async with reader:
            assert [record.offset for record in await read(reader, 5)] == [30, 31, 32, 33, 34]
        assert positions == [0]
        assert [what for what, _ in heard.calls] == ["assigned", "revoked"]
        assert await committed_in(cluster, [T0]) == {0: 35}


async def test_nothing_is_read_before_the_listener_has_heard() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 50))
        heard, gate = Heard(), anyio.Event()
        heard.on_assigned = lambda _: gate.wait()
        async with anyio.create_task_group() as tasks:

            async def open_later() -> None:
                await until(lambda: bool(heard.calls))
                assert not [request for request in cluster.requests if request.api == "Fetch"]
                gate.set()

            tasks.start_soon(open_later)
            async with consumer(cluster, "t", listener=heard) as reader:
                assert (await read(reader, 1))[0].offset == 0


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
async def test_lost_partitions_go_and_come_back(strategy: str) -> None:
    async with EmbeddedCluster(topics={"t": 2}) as cluster:
        await spread(cluster, "t", 2, 20)
        heard = Heard()
        async with consumer(cluster, "t", listener=heard, partition_assignment_strategy=strategy) as reader:
            await reader.getmany(max_records=10)
            await reader.commit()
            where = {tp: await reader.position(tp) for tp in reader.assignment()}
            cluster.expire_sessions("g")
            await until(lambda: [what for what, _ in heard.calls] == ["assigned", "lost", "assigned"])
            assert {tp: await reader.position(tp) for tp in reader.assignment()} == where
            rest = await read(reader, 30)
            assert len({(record.partition, record.offset) for record in rest}) == 30


async def test_a_commit_for_what_another_owns_is_an_outcome() -> None:
    async with EmbeddedCluster(topics={"t": 2}) as cluster:
        await spread(cluster, "t", 2, 5)
        async with consumer(cluster, "t") as first, consumer(cluster, "t") as second:
            await until(lambda: len(first.assignment()) == len(second.assignment()) == 1)
            mine, theirs = first.assignment()[0], second.assignment()[0]
            refused = await first.commit({mine: 2, theirs: OffsetAndMetadata(3)})
            assert list(refused) == [theirs]
            assert isinstance(refused[theirs], PartitionRevokedError)
            assert (refused[theirs].topic, refused[theirs].partition) == tuple(theirs)
            assert (await first.committed([mine]))[mine] == OffsetAndMetadata(2, -1, "")


async def asked_until_heard(lazy: Consumer) -> Record:
    """Its next record; where this process stood still between two calls, it has left again, and is asked again."""
    while True:
        try:
            return await lazy.getone(timeout=20)
        except PollIntervalExceededError:
            continue


async def test_who_asks_for_nothing_leaves_and_may_come_back() -> None:
    async with EmbeddedCluster(topics={"t": 2}) as cluster:
        await spread(cluster, "t", 2, 10)
        async with consumer(cluster, "t", max_poll_interval_ms=500) as lazy:
            first = await lazy.getone()
            assert lazy._client is not None
            told = len(lazy._client._callbacks), len(lazy._tasks._on_failure)
            async with consumer(cluster, "t") as other:
                await until(lambda: len(other.assignment()) == 2)
                assert lazy.assignment() == ()
                again = await read(other, 20)
                assert (first.partition, first.offset) in {(each.partition, each.offset) for each in again}
                await other.commit()
                await spread(cluster, "t", 2, 5, first=10)
                with pytest.raises(PollIntervalExceededError) as raised:
                    await lazy.getone(timeout=20)
                assert raised.value.idle > raised.value.limit == 0.5
                assert (await asked_until_heard(lazy)).offset == 10
                assert len(lazy.assignment()) == 1
                assert told == (len(lazy._client._callbacks), len(lazy._tasks._on_failure)), "who left hears on"


class Stuck(RebalanceListener):
    """Its first revocation waits for ``gate``; ``is_over`` once that call has ended."""

    def __init__(self) -> None:
        self.gate = anyio.Event()
        self.has_begun = self.is_over = False

    async def partitions_revoked(self, partitions: frozenset[TopicPartition]) -> None:
        if not self.is_over:
            self.has_begun = True
            try:
                await self.gate.wait()
            finally:
                self.is_over = True


async def test_a_listener_that_outlives_its_membership_takes_nothing_from_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The member is static: it has its partition back at once, and nothing is committed: there are records to read.

    On a machine that stood still the call may be cancelled before the listener hears of anything.
    """
    monkeypatch.setattr("pykafka08.consumer.member.CLOSE_SECONDS", 0.2)
    stuck = Stuck()
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await spread(cluster, "t", 1, 5)
        settings = {"group_instance_id": "one", "listener": stuck, "enable_auto_commit": False}
        async with consumer(cluster, "t", **settings) as reader:
            await read(reader, 5)
            member = reader._member
            assert member is not None
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(member._leave_for_a_while, 21.0, 20.0)
                await until(lambda: member._exceeded is not None)
                with pytest.raises(PollIntervalExceededError):
                    await reader.getmany(timeout=20)
            assert len(await reader.getmany(timeout=20)) > 0
            stuck.gate.set()
            await until(lambda: stuck.is_over or not stuck.has_begun)
            await spread(cluster, "t", 1, 5, first=5)
            assert (await reader.getone(timeout=20)).partition == 0
            assert reader.assignment() == (T0,)


@pytest.mark.parametrize(("version", "patience"), [("0.9.0", 3.0), ("0.10.0", 3.0), ("0.10.1", 10.0), ("4.3", 10.0)])
async def test_handlers_are_waited_for_as_long_as_the_group_waits(
    version: str, patience: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the session before Kafka 0.10.1, half of the poll interval from then on."""
    async with EmbeddedCluster(version=version, topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 1))
        began, gate, waits = anyio.Event(), anyio.Event(), []

        async def handle(_: object) -> None:
            began.set()
            await gate.wait()

        async def wait_finished(_: object, deadline: float) -> None:
            waits.append(deadline - anyio.current_time())

        async with consumer(cluster, "t", session_timeout_ms=6_000, max_poll_interval_ms=20_000) as reader:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(reader.process, handle)
                with anyio.fail_after(60):
                    await began.wait()
                assert reader._member is not None
                with monkeypatch.context() as patch:
                    patch.setattr(reader._member._reader, "wait_finished", wait_finished)
                    await reader._member._finish(frozenset({T0}))
                gate.set()
                await reader.aclose()
        assert patience - 2 < waits[0] <= patience


async def test_who_still_joins_need_not_ask_for_records() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 1))
        cluster.faults.delay("JoinGroup", 0.6)
        async with consumer(cluster, "t", max_poll_interval_ms=200) as reader:
            assert (await reader.getone(timeout=20)).offset == 0


async def test_who_waits_for_records_asks_for_them() -> None:
    """Longer in all than the limit, which is longer than a busy machine may let this process stand still."""
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        async with consumer(cluster, "t", max_poll_interval_ms=4000) as reader:
            with pytest.raises(RequestTimeoutError):
                await reader.getone(timeout=4.5)
            await fill(cluster, "t", values(0, 200))
            async for record in reader:  # all of one batch, but slowly
                await anyio.sleep(0.1)
                if record.offset == 45:
                    break
            assert not [request for request in cluster.requests if request.api == "LeaveGroup"]


@pytest.mark.parametrize("version", ["0.8.1", "0.8.2", "0.9.0", "4.3"])
async def test_assigned_partitions_with_a_group_are_no_member(version: str) -> None:
    async with EmbeddedCluster(version=version, topics={"t": 2}) as cluster:
        await spread(cluster, "t", 2, 10)
        parts = [TopicPartition("t", 0), TopicPartition("t", 1)]
        async with consumer(cluster) as reader:
            reader.assign(parts)
            records = await read(reader, 20)
            reader.acknowledge(records[-1])
            await reader.seek(parts[1], 4)
        assert not [request for request in cluster.requests if request.api == "JoinGroup"]
        assert await committed_in(cluster, parts) == {0: 10, 1: 4}
        async with consumer(cluster) as reader:
            reader.assign(parts)
            assert [await reader.position(tp) for tp in parts] == [10, 4]
            assert await reader.commit({parts[0]: 1}) == {}
            await reader.seek(parts[0], 1)  # auto-commit would go on where it reads
            reader.assign([])
            reader.assign(parts[:1])
            assert await reader.position(parts[0]) == 1
            await reader.getmany(max_records=3)
            await reader.getmany(max_records=3)
            reader.assign(parts[1:])
            with anyio.fail_after(30):
                while (await reader.committed(parts[:1]))[parts[0]] != OffsetAndMetadata(4, -1, ""):
                    pass


async def test_a_release_that_keeps_no_offsets_says_so() -> None:
    async with EmbeddedCluster(version="0.8.0", topics={"t": 1}) as cluster:
        async with consumer(cluster) as reader:
            reader.assign([T0])
            with pytest.raises(UnsupportedVersionError, match="keeps no offsets"):
                await reader.getone(timeout=20)


async def test_offsets_that_may_not_be_read_are_an_error_and_then_may() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 5))
        cluster.faults.answer("OffsetFetch", ErrorCode.GROUP_AUTHORIZATION_FAILED)
        async with consumer(cluster, "t") as reader:
            with pytest.raises(AuthorizationError):
                await reader.getone(timeout=20)
            assert (await reader.getone(timeout=20)).offset == 0


async def test_a_group_that_may_not_be_joined_is_an_error_when_entered() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        cluster.faults.answer("JoinGroup", ErrorCode.GROUP_AUTHORIZATION_FAILED)
        with pytest.raises(AuthorizationError):
            async with consumer(cluster, "t"):
                raise AssertionError


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("when", ["assigned", "revoked", "closing"])
async def test_a_listener_may_close_the_consumer_which_does_not_wait_for_it(when: str, protocol: str) -> None:
    """Long time-outs: whoever waited for the other would not be seen to end."""
    settings = {"group_protocol": protocol, "partition_assignment_strategy": "cooperative-sticky"}
    async with EmbeddedCluster(topics={"t": 4}) as cluster:
        await spread(cluster, "t", 4, 5)
        closed = []

        class Closes(RebalanceListener):
            async def partitions_assigned(self, _: object) -> None:
                if when == "assigned":
                    await first.aclose(timeout=1000)
                    closed.append(when)

            async def partitions_revoked(self, _: object) -> None:
                await first.aclose(timeout=1000)
                closed.append("revoked")

        first = consumer(cluster, "t", listener=Closes(), max_poll_interval_ms=1_000_000, **settings)
        with anyio.fail_after(50):
            if when == "assigned":
                with pytest.raises(ClosedError):
                    await first.__aenter__()
            else:
                async with first:
                    await read(first, 1)
                    if when == "revoked":
                        async with consumer(cluster, "t", **settings) as second:
                            await until(lambda: len(second.assignment()) == 4)
                    else:
                        await first.aclose(timeout=1000)
            assert when in closed or when == "closing"
            assert "revoked" in closed
        async with consumer(cluster, "t", **settings) as another:
            assert len(another.assignment()) == 4, "it has left"


async def test_a_membership_that_ends_is_raised_where_one_waits() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        async with consumer(cluster, "t") as reader:
            cluster.faults.answer("Heartbeat", ErrorCode.FENCED_INSTANCE_ID)
            with pytest.raises(BrokerError, match="FENCED_INSTANCE_ID"):
                await reader.getone(timeout=20)


@pytest.mark.parametrize("version", ["0.9", "4.3"])  # metadata marks internal topics from 0.10 on
async def test_a_pattern_leaves_internal_topics_out(version: str) -> None:
    topics = {name: 1 for name in ("a", "__mine", *INTERNAL_TOPICS)}
    async with EmbeddedCluster(version=version, topics=topics) as cluster:
        async with consumer(cluster, pattern=".*", group_id=None) as reader:
            assert {tp.topic for tp in reader.assignment()} == {"a", "__mine"}
        async with consumer(cluster, *INTERNAL_TOPICS, group_id=None) as reader:
            assert {tp.topic for tp in reader.assignment()} == INTERNAL_TOPICS  # subscribing by name still works


async def test_a_pattern_follows_topics_with_a_group_and_without() -> None:
    for group_id in ("g", None):
        async with EmbeddedCluster(topics={"orders-a": 1, "orders": 1, "other": 1}) as cluster:
            await fill(cluster, "orders-a", [b"a"])
            settings = {"group_id": group_id, "metadata_max_age_ms": 50, "auto_offset_reset": "latest"}
            async with consumer(cluster, pattern="orders-.*", **settings) as reader:
                assert reader.assignment() == (TopicPartition("orders-a", 0),)
                topic = "orders-b"
                cluster.create_topic(topic, 1)
                await fill(cluster, topic, [b"new"])
                record = await reader.getone(timeout=20)
                assert (record.topic, record.value) == (topic, b"new"), "made while we read: read from its beginning"
    with pytest.raises(ConfigError, match="regular expression"):
        Consumer(bootstrap_servers="h", pattern="(")
    with pytest.raises(ConfigError, match="not both"):
        Consumer("t", bootstrap_servers="h", pattern="t")


async def test_closing_is_bounded_with_all_brokers_down() -> None:
    cluster = EmbeddedCluster(topics={"t": 1})
    async with cluster:
        await fill(cluster, "t", values(0, 5))
        reader = consumer(cluster, "t")
        await reader.__aenter__()
        await read(reader, 3)
    with anyio.fail_after(20):
        await reader.aclose(timeout=0.5)
        await reader.__aexit__(None, None, None)


async def test_new_partitions_are_read_from_their_beginning() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        settings = {"auto_offset_reset": "latest", "metadata_max_age_ms": 50}
        async with consumer(cluster, "t", **settings) as reader:
            topic = cluster._state.topics.find("t")
            assert topic is not None
            cluster._state.topics.grow(topic, 2, 1)
            await fill(cluster, "t", [b"new"], partition=1)
            assert (await reader.getone(timeout=20)).value == b"new"


async def test_a_static_member_comes_back_to_its_partitions_without_a_rebalance() -> None:
    async with EmbeddedCluster(topics={"t": 2}) as cluster:
        async with consumer(cluster, "t", group_instance_id="a") as other:
            async with consumer(cluster, "t", group_instance_id="b") as reader:
                await until(lambda: len(other.assignment()) == len(reader.assignment()) == 1)
                mine = reader.assignment()
            async with consumer(cluster, "t", group_instance_id="b") as reader:
                assert reader.assignment() == mine
        assert not [request for request in cluster.requests if request.api == "LeaveGroup"]


@pytest.mark.parametrize(
    "settings",
    [
        {"partition_assignment_strategy": "range"},
        {"partition_assignment_strategy": "cooperative-sticky"},
        {"group_protocol": "consumer"},
    ],
    ids=lambda each: next(iter(each.values())),
)
async def test_a_static_member_goes_on_where_it_was(settings: dict[str, str]) -> None:
    """What it has finished is committed as it closes; nobody else has its partitions meanwhile."""
    async with EmbeddedCluster(topics={"t": 2}, group_consumer_heartbeat_interval_ms=50) as cluster:
        await spread(cluster, "t", 2, 50)
        async with consumer(cluster, "t", group_instance_id="a", **settings) as other:
            async with consumer(cluster, "t", group_instance_id="b", **settings) as reader:
                await until(lambda: len(other.assignment()) == len(reader.assignment()) == 1)
                mine, theirs = reader.assignment(), other.assignment()
                records = await read(reader, 10)
                reader.acknowledge(records[-1])
                await reader.aclose()
            found = (await other.committed(mine))[mine[0]]
            assert found is not None
            assert found.offset == 10
            async with consumer(cluster, "t", group_instance_id="b", **settings) as reader:
                assert (reader.assignment(), other.assignment()) == (mine, theirs)
                assert [record.offset for record in await read(reader, 40)] == list(range(10, 50))
        assert not [request for request in cluster.requests if request.api == "LeaveGroup"]


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
async def test_a_fenced_instance_is_raised_by_every_call(strategy: str) -> None:
    settings = {"group_instance_id": "a", "partition_assignment_strategy": strategy}
    async with EmbeddedCluster(topics={"t": 2}) as cluster:
        await spread(cluster, "t", 2, 50)
        async with consumer(cluster, "t", **settings) as zombie:
            await read(zombie, 10)
            async with consumer(cluster, "t", **settings) as reader:
                # Until its next heartbeat it does not know.
                await until(lambda: zombie.health().group.state == "ended")  # type: ignore[union-attr]
                for _ in range(2):
                    with pytest.raises(BrokerError, match="FENCED_INSTANCE_ID"):
                        await zombie.commit()
                    with pytest.raises(BrokerError, match="FENCED_INSTANCE_ID"):
                        await zombie.getone(timeout=0.01)
                assert len(reader.assignment()) == 2
                await read(reader, 10)


async def test_errors_of_reading_are_the_librarys() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        reader = consumer(cluster, "t")
        with pytest.raises(KafkaError, match="async with"):
            await reader.commit()


async def test_an_event_loop_that_stood_still_hands_out_nothing_of_a_lost_session() -> None:
    """What had come before it stood still lies ready, and others may have read it meanwhile."""
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await spread(cluster, "t", 1, 2000)
        heard = Heard()
        async with consumer(cluster, "t", listener=heard) as reader:
            await read(reader, 10)
            await reader.commit()
            assert reader._member is not None
            clock = reader._member.coordinator._machine.heartbeats
            clock.session_timeout = 0.0  # it is over, and the next task to run is this one
            assert await reader.getmany(timeout=0) == []
            records = await reader.getmany(max_records=10, timeout=20)
            assert [what for what, _ in heard.calls] == ["assigned", "lost", "assigned"]
            assert records[0].offset == 10


@pytest.mark.parametrize("api", ["OffsetFetch", "OffsetCommit"])
@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.REBALANCE_IN_PROGRESS,
    ],
)
async def test_trouble_with_offsets_is_waited_out(api: str, code: ErrorCode) -> None:
    """Nothing is read from another place meanwhile, and what was finished is committed in the end."""
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 20))
        async with consumer(cluster) as outsider:
            assert await outsider.commit({T0: 5}) == {}
        cluster.faults.answer(api, code, times=3)
        async with consumer(cluster, "t") as reader:
            assert [record.offset for record in await read(reader, 10)] == list(range(5, 15))
        assert await committed_in(cluster, [T0]) == {0: 14}


async def test_a_coordinator_that_moves_keeps_the_group_and_its_offsets() -> None:
    async with EmbeddedCluster(brokers=2, topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 20))
        async with consumer(cluster, "t", auto_commit_interval_ms=20) as reader:
            await read(reader, 10)
            before = cluster.coordinator("g")
            cluster.move_coordinator("g", next(node.node_id for node in cluster.brokers if node.node_id != before))
            await read(reader, 5)
            with anyio.fail_after(30):
                while (await reader.committed([T0]))[T0] != OffsetAndMetadata(14, -1, ""):
                    pass
            assert cluster.coordinator("g") != before
        assert await committed_in(cluster, [T0]) == {0: 14}
