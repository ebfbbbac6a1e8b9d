"""``Consumer.process``: order, concurrency, what is committed, errors, rebalances and ends."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import random
from collections import defaultdict
from collections.abc import Awaitable

import anyio
import anyio.lowlevel
import pytest

from pykafka08 import (
    ClientFailedError,
    ClosedError,
    ConfigError,
    Consumer,
    EmbeddedCluster,
    NewRecord,
    PollIntervalExceededError,
    Producer,
    Record,
    TopicPartition,
)
from pykafka08.consumer import processing
from tests.consumer.embedded import fill, read, values
from tests.consumer.groups import committed_in, consumer, spread, until

pytestmark = pytest.mark.anyio

T0 = TopicPartition("t", 0)


class Done(Exception):
    """A test has seen enough."""


class Works:
    """A handler that takes a random number of turns, keeps what it did, and ends the call after ``enough`` records."""

    def __init__(self, enough: int, seed: int = 0) -> None:
        self.begun: list[Record] = []
        self.finished: list[tuple[int, int]] = []
        self.running = 0
        self.most = 0
        self._enough = enough
        self._chance = random.Random(seed)

    async def __call__(self, record: Record) -> None:
        self.begun.append(record)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            for _ in range(self._chance.randrange(6)):
                await anyio.lowlevel.checkpoint()
        finally:
            self.running -= 1
        self.finished.append((record.partition, record.offset))
        if len(self.finished) == self._enough:
            raise Done


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("order", ["partition", "key"])
async def test_random_schedules_keep_the_order_and_lose_nothing(order: str, seed: int) -> None:
    async with EmbeddedCluster(topics={"t": 3}) as cluster:
        await spread(cluster, "t", 3, 100)
        works = Works(300, seed)
        async with consumer(cluster, "t", auto_commit_interval_ms=5) as reader:
            with pytest.raises(Done):
                await reader.process(works, concurrency=4, order=order)
            # The record that raised is not finished, whatever its handler had done.
            last = works.finished[-1]
            again = await reader.getone(timeout=20)
            assert (again.partition, again.offset) == last
        assert sorted(works.finished) == [(partition, offset) for partition in range(3) for offset in range(100)]
        assert works.most == (4 if order == "key" else 3)
        lanes: dict[object, list[int]] = defaultdict(list)
        for record in works.begun:
            lanes[record.partition if order == "partition" else (record.partition, record.key)].append(record.offset)
        assert all(offsets == sorted(offsets) for offsets in lanes.values())
        committed = await committed_in(cluster, [TopicPartition("t", number) for number in range(3)])
        assert committed == {number: last[1] if number == last[0] else 100 for number in range(3)}


async def test_only_the_finished_prefix_is_committed() -> None:
    """A record of a partition is stuck; those behind it are finished.  The other partition makes for more commits."""
    async with EmbeddedCluster(topics={"t": 2}) as cluster:
        await spread(cluster, "t", 1, 20)
        gate, handled = anyio.Event(), list[int]()

        async def handle(record: Record) -> None:
            if record.partition == 1:
                return
            if record.offset == 3:
                await gate.wait()
            handled.append(record.offset)

        async with consumer(cluster, "t", auto_commit_interval_ms=5) as reader:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lambda: reader.process(handle, concurrency=4, order="key"))
                others = {offset for offset in range(20) if offset % 5 != 3}
                await until(lambda: set(handled) >= others)
                seen = [await committed(reader)]
                while seen[-1] < 3:
                    seen.append(await committed(reader))
                commits = count_commits(cluster)
                await fill(cluster, "t", [b"more"], partition=1)
                await until(lambda: count_commits(cluster) > commits)
                seen.append(await committed(reader))
                assert max(seen) == 3
                gate.set()
                await until(lambda: len(handled) == 20)
                tasks.cancel_scope.cancel()
        assert (await committed_in(cluster, [T0])) == {0: 20}
        assert handled[-4:] == [3, 8, 13, 18]


async def committed(reader: Consumer) -> int:
    found = (await reader.committed([T0]))[T0]
    return found.offset if found is not None else 0


def count_commits(cluster: EmbeddedCluster) -> int:
    return sum(request.api == "OffsetCommit" for request in cluster.requests)


@pytest.mark.parametrize("is_auto", [True, False])
@pytest.mark.parametrize(("acknowledges", "expected"), [(False, 7), (True, 8)])
async def test_a_commit_in_a_handler_leaves_out_what_is_read_ahead(
    is_auto: bool, acknowledges: bool, expected: int
) -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 100))

        async def handle(record: Record) -> None:
            if record.offset == 7:
                if acknowledges:
                    reader.acknowledge(record)
                assert await reader.commit() == {}
                raise Done

        async with consumer(cluster, "t", enable_auto_commit=is_auto) as reader:
            with pytest.raises(Done):
                await reader.process(handle)
            assert await committed(reader) == expected
            await reader.aclose(commit=False)


async def test_offsets_of_a_transaction_are_not_taken_from_a_handler() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 20))

        async def handle(_: Record) -> None:
            reader.group_offsets()

        async with consumer(cluster, "t", enable_auto_commit=False) as reader:
            with pytest.raises(ConfigError, match="process"):
                await reader.process(handle)
            assert reader.group_offsets()[1][T0].offset == 0


async def test_an_error_ends_it_after_what_is_finished_was_committed() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 50))

        async def handle(record: Record) -> None:
            if record.offset == 20:
                raise Done

        async with consumer(cluster, "t", auto_commit_interval_ms=60_000) as reader:
            with pytest.raises(Done):
                await reader.process(handle)
            assert await committed(reader) == 20
            assert [record.offset for record in await read(reader, 2)] == [20, 21]


async def test_cancelled_it_goes_on_at_what_is_not_finished() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 50))
        async with consumer(cluster, "t") as reader:
            with anyio.CancelScope() as scope:

                async def handle(record: Record) -> None:
                    if record.offset == 7:
                        scope.cancel()
                        await anyio.sleep_forever()

                await reader.process(handle)
            assert scope.cancelled_caught
            assert (await read(reader, 1))[0].offset == 7
        assert await committed_in(cluster, [T0]) == {0: 7}


async def test_without_a_group_it_handles_all_the_same() -> None:
    async with EmbeddedCluster(topics={"t": 2}) as cluster:
        await spread(cluster, "t", 2, 10)
        works = Works(20)
        async with consumer(cluster, "t", group_id=None) as reader:
            with pytest.raises(Done):
                await reader.process(works, concurrency=2)
        assert len(set(works.finished)) == 20


@pytest.mark.parametrize("is_auto", [True, False])
async def test_partitions_that_go_wait_for_their_handlers_and_begin_no_more(is_auto: bool) -> None:
    async with EmbeddedCluster(topics={"t": 2}) as cluster:
        await spread(cluster, "t", 2, 30)
        gate, handled = anyio.Event(), list[tuple[int, int]]()

        async def handle(record: Record) -> None:
            if record.offset == 5:
                await gate.wait()
            handled.append((record.partition, record.offset))

        async with (
            consumer(cluster, "t", enable_auto_commit=is_auto) as first,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(lambda: first.process(handle, concurrency=2))
            await until(lambda: len(handled) == 10)
            second = consumer(cluster, "t", enable_auto_commit=is_auto)
            tasks.start_soon(open_and_set, first, gate)
            async with second:
                mine = second.assignment()[0].partition
                assert (mine, 5) in handled, "it was under way when the partition was asked back, and waited for"
                taken = await read(second, 24)
                assert [record.offset for record in taken] == list(range(6 if is_auto else 0, 30))[:24]
                other = 1 - mine
                if is_auto:  # else both begin at the beginning
                    await until(lambda: sum(partition == other for partition, _ in handled) == 30)
            tasks.cancel_scope.cancel()
        assert not is_auto or len(handled) == len(set(handled))
        assert sorted(offset for partition, offset in handled if partition == mine) == list(range(6))


async def open_and_set(reader: Consumer, gate: anyio.Event) -> None:
    """Let the handlers end when the rebalance holds the partitions."""
    await until(lambda: any(state.is_held for state in reader._assignment.states.values()))
    gate.set()


@pytest.mark.parametrize("is_auto", [True, False])
async def test_closing_lets_handlers_end_and_commits_them(is_auto: bool) -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 30))
        begun, gate, handled = anyio.Event(), anyio.Event(), list[int]()

        async def handle(record: Record) -> None:
            if record.offset == 9:
                begun.set()
                await gate.wait()
            handled.append(record.offset)

        async with (
            consumer(cluster, "t", enable_auto_commit=is_auto) as reader,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(lambda: reader.process(handle))
            await begun.wait()
            tasks.start_soon(reader.aclose)
            await until(lambda: reader._reader.is_closed)
            for _ in range(100):  # turns in which it could leave
                await anyio.lowlevel.checkpoint()
            assert not any(request.api == "LeaveGroup" for request in cluster.requests)
            gate.set()
        assert handled == list(range(10))
        assert await committed_in(cluster, [T0]) == ({0: 10} if is_auto else {})
        with pytest.raises(ClosedError):
            await reader.process(handle)


@pytest.mark.parametrize(("group_id", "timeout"), [("g", 5), (None, 0.5)])
async def test_closing_ends_handlers_that_do_not(group_id: str | None, timeout: float) -> None:
    """With a group the time has room for the commit, and for a machine on which this process stands still."""
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 30))
        begun = anyio.Event()

        async def handle(record: Record) -> None:
            if record.offset == 9:
                begun.set()
                await anyio.sleep_forever()

        async with consumer(cluster, "t", group_id=group_id) as reader, anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: reader.process(handle, concurrency=2))
            await begun.wait()
            await reader.aclose(timeout=timeout)
        if group_id is not None:
            assert await committed_in(cluster, [T0]) == {0: 9}


async def test_a_handler_may_close_the_consumer_which_does_not_wait_for_it() -> None:
    async with EmbeddedCluster(topics={"t": 2}) as cluster:
        await spread(cluster, "t", 2, 30)
        handled, ends = [], []

        async def handle(record: Record) -> None:
            if len(handled) == 9:
                reader.acknowledge(record)
                await reader.aclose(timeout=1000)
                ends.append(record)
            handled.append((record.partition, record.offset))

        async with consumer(cluster, "t") as reader:
            await reader.process(handle)
        assert len(ends) == 1
        assert sum((await committed_in(cluster, [T0, TopicPartition("t", 1)])).values()) == len(handled) == 10


async def test_handlers_that_close_at_the_same_time_wait_for_neither_each_other_nor_themselves() -> None:
    async with EmbeddedCluster(topics={"t": 2}) as cluster:
        await spread(cluster, "t", 2, 3)
        closing, ends = anyio.Event(), list[int]()

        async def handle(record: Record) -> None:
            if record.partition == 1:
                closing.set()
            await closing.wait()
            await reader.aclose(timeout=1000)
            ends.append(record.partition)

        async with consumer(cluster, "t") as reader:
            with anyio.fail_after(60):
                await reader.process(handle, concurrency=2)
        assert sorted(ends) == [0, 1]
        assert await committed_in(cluster, [T0, TopicPartition("t", 1)]) == {0: 0, 1: 0}


@pytest.mark.parametrize("count", [1, 100])
async def test_a_handler_that_hangs_is_not_asking_for_records(count: int) -> None:
    """Nothing more is there to be read ahead, or as much as is read ahead at most."""
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, count))
        cancelled = []

        async def handle(record: Record) -> None:
            try:
                await anyio.sleep_forever()
            finally:
                cancelled.append(record.offset)

        async with consumer(cluster, "t", max_poll_interval_ms=500) as reader:
            with anyio.fail_after(30), pytest.raises(PollIntervalExceededError):
                await reader.process(handle, concurrency=2)
            assert cancelled == [0]
            assert (await reader.getone(timeout=20)).offset == 0


async def test_what_means_nothing_is_refused() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, consumer(cluster, "t") as reader:
        with pytest.raises(ConfigError, match="concurrency"):
            await reader.process(Works(1), concurrency=0)
        with pytest.raises(ConfigError, match="order"):
            await reader.process(Works(1), order="topic")
        for handler in (print, lambda _: None, None, "handle", functools.partial(print, "x"), Works):
            with pytest.raises(ConfigError, match="no coroutine function"):
                await reader.process(handler)  # type: ignore[arg-type]


async def test_what_can_be_awaited_is_a_handler() -> None:
    works = Works(1)

    async def handle(_: str, record: Record) -> None:
        await works(record)

    @functools.wraps(works.__call__)
    def wrapped(record: Record) -> Awaitable[None]:
        return works(record)

    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 1))
        for handler in (works, works.__call__, functools.partial(handle, "x"), functools.partial(works), wrapped):
            works.finished.clear()
            async with consumer(cluster, "t", enable_auto_commit=False) as reader:
                with pytest.raises(Done):
                    await reader.process(handler)


class Once:
    """Notes what is handled; records of the key "slow", and those far behind them, wait for the gate."""

    def __init__(self) -> None:
        self.gate = anyio.Event()
        self.handled: list[tuple[int, int]] = []

    async def __call__(self, record: Record) -> None:
        if record.key == b"slow" or record.offset > 20:
            await self.gate.wait()
        self.handled.append((record.partition, record.offset))


RECORDS = 30
"""In a partition."""


async def slow_and_fast(cluster: EmbeddedCluster, partitions: int = 1) -> None:
    """In each partition a slow record, a fast one behind it, three times, then only fast ones."""
    async with Producer(bootstrap_servers=cluster.bootstrap_servers, linger_ms=0) as producer:
        records = [
            NewRecord(b"", key=key, partition=partition)
            for key in (b"slow", b"fast", b"slow", b"fast", b"slow", b"fast", *[b"fast"] * (RECORDS - 6))
            for partition in range(partitions)
        ]
        await producer.send_many("t", records)


@pytest.mark.parametrize("concurrency", [2, 8])
async def test_what_was_finished_out_of_turn_is_handled_once_though_the_consumer_closes(concurrency: int) -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await slow_and_fast(cluster)
        once = Once()
        async with consumer(cluster, "t") as first, anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: first.process(once, concurrency=concurrency, order="key"))
            await until(lambda: (0, 5) in once.handled)
            tasks.start_soon(first.aclose)
            await until(lambda: first._reader.is_closed)
            once.gate.set()
        async with consumer(cluster, "t") as second, anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: second.process(once, concurrency=concurrency, order="key"))
            await until(lambda: len(once.handled) >= RECORDS)
            tasks.cancel_scope.cancel()
        assert sorted(once.handled) == [(0, offset) for offset in range(RECORDS)]


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
async def test_what_was_finished_out_of_turn_is_handled_once_though_partitions_go(strategy: str) -> None:
    async with EmbeddedCluster(topics={"t": 2}) as cluster:
        await slow_and_fast(cluster, 2)
        once = Once()
        async with (
            consumer(cluster, "t", partition_assignment_strategy=strategy) as first,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(lambda: first.process(once, concurrency=4, order="key"))
            await until(lambda: {(0, 5), (1, 5)} <= set(once.handled))
            second = consumer(cluster, "t", partition_assignment_strategy=strategy)
            tasks.start_soon(open_and_set, first, once.gate)
            async with second:
                tasks.start_soon(lambda: second.process(once, concurrency=4, order="key"))
                await until(lambda: len(once.handled) >= 2 * RECORDS)
                tasks.cancel_scope.cancel()
        assert sorted(once.handled) == [(partition, offset) for partition in range(2) for offset in range(RECORDS)]


@pytest.mark.parametrize("ends", ["raises", "is cancelled"])
async def test_what_was_finished_out_of_turn_is_handled_once_though_the_call_ends(ends: str) -> None:
    """The next call leaves it out; the record whose handler had not come to its end is handled again."""
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await slow_and_fast(cluster)
        once = Once()

        async def handle(record: Record) -> None:
            if ends == "raises" and record.offset == 7 and not once.gate.is_set():
                raise Done
            await once(record)

        async with consumer(cluster, "t") as reader:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(raising_done, reader.process(handle, concurrency=3, order="key"))
                await until(lambda: (0, 5) in once.handled)
                if ends == "is cancelled":
                    tasks.cancel_scope.cancel()
            once.gate.set()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lambda: reader.process(handle, concurrency=3, order="key"))
                await until(lambda: len(once.handled) >= RECORDS)
                tasks.cancel_scope.cancel()
        assert sorted(once.handled) == [(0, offset) for offset in range(RECORDS)]
        assert await committed_in(cluster, [T0]) == {0: RECORDS}


async def test_what_was_finished_out_of_turn_outlives_a_call_that_reads_nothing() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await slow_and_fast(cluster)
        once = Once()

        async def fail(record: Record) -> None:
            if record.offset == 7:
                raise Done
            await once(record)

        async with consumer(cluster, "t") as reader:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(raising_done, reader.process(fail, concurrency=3, order="key"))
                await until(lambda: (0, 5) in once.handled)
            with anyio.CancelScope() as scope:
                scope.cancel()
                await reader.process(once, concurrency=3, order="key")
            once.gate.set()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lambda: reader.process(once, concurrency=3, order="key"))
                await until(lambda: len(once.handled) >= RECORDS)
                tasks.cancel_scope.cancel()
        assert sorted(once.handled) == [(0, offset) for offset in range(RECORDS)]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # trio's tasks are cancelled by their scopes alone
async def test_a_handler_that_brings_a_cancellation_with_it_is_an_error() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 20))

        async def handle(record: Record) -> None:
            if record.offset == 7:
                gone = asyncio.get_running_loop().create_future()
                gone.cancel()
                await gone

        async with consumer(cluster, "t") as reader:
            with pytest.raises(ClientFailedError, match="a handler was cancelled") as caught:
                await reader.process(handle)
            assert isinstance(caught.value.__cause__, asyncio.CancelledError)
            assert (await reader.getone(timeout=60)).offset == 7


async def raising_done(call: Awaitable[object]) -> None:
    with contextlib.suppress(Done):
        await call


async def test_what_is_finished_behind_a_record_that_is_not_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processing, "FINISHED_AHEAD", 50)
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 300))
        gate, handled = anyio.Event(), list[int]()

        async def handle(record: Record) -> None:
            if record.offset == 0:
                await gate.wait()
            handled.append(record.offset)

        async with consumer(cluster, "t") as reader, anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: reader.process(handle, concurrency=2, order="key"))
            await until(lambda: len(handled) == 50 + 2 * 16 - 1)
            for _ in range(100):  # turns in which it could go on
                await anyio.lowlevel.checkpoint()
            assert len(handled) == 50 + 2 * 16 - 1
            gate.set()
            await until(lambda: len(handled) == 300)
            tasks.cancel_scope.cancel()
        assert await committed_in(cluster, [T0]) == {0: 300}


async def test_a_seek_makes_what_was_handled_be_handled_again() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await slow_and_fast(cluster)
        once = Once()
        async with consumer(cluster, "t") as reader:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lambda: reader.process(once, concurrency=3, order="key"))
                await until(lambda: (0, 5) in once.handled)
                tasks.cancel_scope.cancel()
            await reader.seek(T0, 0)
            once.handled.clear()
            once.gate.set()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lambda: reader.process(once, concurrency=3, order="key"))
                await until(lambda: len(once.handled) >= RECORDS)
                tasks.cancel_scope.cancel()
        assert sorted(once.handled) == [(0, offset) for offset in range(RECORDS)]


async def test_after_an_error_nothing_behind_it_is_begun() -> None:
    """Handlers that never wait would go on until somebody else had a turn."""
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 30))
        begun: list[int] = []
        gate, goes_on = anyio.Event(), anyio.Event()

        async def handle(record: Record) -> None:
            begun.append(record.offset)
            if record.offset == 0:
                await gate.wait()
                goes_on.set()
                raise Done
            if record.offset == 1:
                await goes_on.wait()

        async with consumer(cluster, "t") as reader, anyio.create_task_group() as tasks:
            tasks.start_soon(raising_done, reader.process(handle, concurrency=2, order="key"))
            await until(lambda: begun == [0, 1])
            gate.set()
        assert begun == [0, 1]
