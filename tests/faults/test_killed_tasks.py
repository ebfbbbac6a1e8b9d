"""Every internal task of a client is killed in turn: the user hears of it at the next await, and nothing is left.

The tasks are numbered as they are started; each dies after its first wait, and again after later ones.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from pykafka08 import ClientFailedError, Consumer, EmbeddedCluster, KafkaError, Producer, TopicPartition
from tests.faults.produce import is_behind
from tests.faults.stage import FAST
from tests.faults.steps import Killed, KillingTree, groups_watched, nothing_left

pytestmark = pytest.mark.anyio

SOON_S = 60
"""Far above what is promised: one second, on a quiet machine."""
RECORDS = 40


class Work:
    """Calls of a user, one after the other, to a client of which a task may die."""

    def __init__(self, tasks: KillingTree) -> None:
        self.tasks = tasks
        self.error: KafkaError | None = None
        self.done: list[bytes] = []

    async def call(self, call: Callable[[], Awaitable[bytes]]) -> bool:
        """One call; False when there are to be no more.  What the client knows of, the next call must raise."""
        was_failed = self.tasks.failure is not None
        try:
            self.done.append(await call())
        except KafkaError as error:
            self.error = error
            return False
        assert not was_failed, f"{self.tasks.failure!r} was not raised"
        return True

    async def hear_of_death(self, call: Callable[[], Awaitable[object]]) -> None:
        """A task died while there was work: the client knows soon, and says so at the next await."""
        if self.tasks.is_dead and self.error is None:
            while self.tasks.failure is None:
                await anyio.lowlevel.checkpoint()
            with pytest.raises(ClientFailedError) as raised:
                await call()
            self.error = raised.value

    def judge(self) -> None:
        failure = self.tasks.failure
        if self.error is not None:
            assert self.tasks.is_dead
            assert failure is not None
            assert isinstance(failure.__cause__, Killed)


async def produce(cluster: EmbeddedCluster, tasks: KillingTree) -> Work:
    """Send records one by one; ``done`` are those acknowledged."""
    work = Work(tasks)
    producer = Producer(cluster.bootstrap_servers, linger_ms=0, **FAST)
    producer._tasks = tasks
    with anyio.fail_after(SOON_S):
        try:
            async with producer:
                for number in range(RECORDS):

                    async def send(number: int = number) -> bytes:
                        value = b"%d" % number
                        await producer.send("t", value, partition=number % 2)
                        return value

                    if not await work.call(send):
                        break
                await work.hear_of_death(producer.flush)
        except KafkaError as error:  # on entering or leaving
            work.error = work.error or error
    work.judge()
    return work


async def consume(cluster: EmbeddedCluster, tasks: KillingTree) -> Work:
    """Read records one by one."""
    work = Work(tasks)
    settings: dict[str, Any] = {"auto_offset_reset": "earliest", "max_partition_fetch_bytes": 100}
    consumer = Consumer("t", bootstrap_servers=cluster.bootstrap_servers, **settings, **FAST)
    consumer._tasks = tasks
    with anyio.fail_after(SOON_S):
        try:
            async with consumer:

                async def read() -> bytes:
                    return (await consumer.getone()).value or b""

                while len(work.done) < RECORDS:
                    if not await work.call(read):
                        break
                await work.hear_of_death(consumer.getone)
        except KafkaError as error:
            work.error = work.error or error
    work.judge()
    return work


async def count_tasks(run: Callable[[EmbeddedCluster, KillingTree], Awaitable[Work]], cluster: EmbeddedCluster) -> int:
    """How many tasks the client has when nobody is killed."""
    with groups_watched():
        work = await run(cluster, KillingTree())
    assert work.error is None
    assert len(work.tasks.names) > 4
    return len(work.tasks.names)


@pytest.mark.parametrize("wait", [1, 3])
async def test_producing(wait: int) -> None:
    async with EmbeddedCluster(brokers=2, topics={"t": 2}) as cluster:
        heard = 0
        for victim in range(await count_tasks(produce, cluster)):
            async with nothing_left():
                cluster.delete_topic("t")
                cluster.create_topic("t", 2)
                with groups_watched():
                    work = await produce(cluster, KillingTree(victim, wait))
            heard += work.error is not None
            for partition in range(2):
                stored = [record.value for record in cluster.records("t", partition)]
                # What was acknowledged is there, once and in order; of the one under way nothing was promised.
                acked = [value for value in work.done if int(value) % 2 == partition]
                assert stored[: len(acked)] == acked
                assert len(stored) <= len(acked) + 1
        assert heard > 0


async def share(cluster: EmbeddedCluster, tasks: KillingTree) -> Work:
    """Read records one by one in a group, and commit now and then; the next member goes on."""
    work = Work(tasks)
    settings: dict[str, Any] = {
        "group_id": "g",
        "auto_offset_reset": "earliest",
        "auto_commit_interval_ms": 20,
        "session_timeout_ms": 20_000,  # none ends by the clock
        "heartbeat_interval_ms": 30,
        "max_partition_fetch_bytes": 100,
    }
    consumer = Consumer("t", bootstrap_servers=cluster.bootstrap_servers, **settings, **FAST)
    consumer._tasks = tasks
    with anyio.fail_after(SOON_S):
        try:
            async with consumer:

                async def read() -> bytes:
                    return (await consumer.getone()).value or b""

                async def commit() -> None:
                    await consumer.commit()

                while len(work.done) < RECORDS:
                    if not await work.call(read):
                        break
                await work.hear_of_death(commit)
        except KafkaError as error:
            work.error = work.error or error
    work.judge()
    return work


async def copy(cluster: EmbeddedCluster, tasks: KillingTree) -> Work:
    """Send records in transactions of two; ``done`` are those committed."""
    work = Work(tasks)
    settings: dict[str, Any] = {"transactional_id": "x", "linger_ms": 0, "max_block_ms": 5_000}
    producer = Producer(cluster.bootstrap_servers, **settings, **FAST)
    producer._tasks = tasks
    with anyio.fail_after(SOON_S):
        try:
            async with producer:
                for number in range(RECORDS // 2):

                    async def send(number: int = number) -> bytes:
                        async with producer.transaction():
                            for partition in range(2):
                                await producer.send("t", b"%d" % number, partition=partition)
                        return b"%d" % number

                    if not await work.call(send):
                        break
                await work.hear_of_death(producer.flush)
        except KafkaError as error:
            work.error = work.error or error
    work.judge()
    return work


@pytest.mark.parametrize("wait", [1, 3])
async def test_a_member_of_a_group(wait: int) -> None:
    async with EmbeddedCluster(brokers=2, topics={"t": 2}) as cluster:
        await produce(cluster, KillingTree())
        heard = 0
        tasks = await count_tasks(share, cluster)
        for victim in range(tasks):
            forget_group(cluster)
            async with nothing_left():
                with groups_watched():
                    work = await share(cluster, KillingTree(victim, wait))
            heard += work.error is not None
            read = sorted(map(int, work.done))
            assert work.error is not None or read == list(range(RECORDS))
            # Whoever comes next is given what was not committed, and nothing is left out between the two.
            expire_group(cluster)
            with groups_watched():
                rest = await read_rest(cluster)
            assert set(read) | set(rest) == set(range(RECORDS))
        assert heard > 0


@pytest.mark.parametrize("wait", [1, 3])
async def test_transactions(wait: int) -> None:
    async with EmbeddedCluster(brokers=2, topics={"t": 2}) as cluster:
        heard = 0
        for victim in range(await count_tasks(copy, cluster)):
            async with nothing_left():
                cluster.delete_topic("t")
                cluster.create_topic("t", 2)
                with groups_watched():
                    work = await copy(cluster, KillingTree(victim, wait))
            heard += work.error is not None
            stored = [
                [record.value for record in cluster.records("t", partition, committed=True)] for partition in range(2)
            ]
            assert stored[0] == stored[1]
            assert stored[0][: len(work.done)] == work.done
            assert len(stored[0]) <= len(work.done) + 1
        assert heard > 0


def expire_group(cluster: EmbeddedCluster) -> None:
    """Its members, if it has any, do not live any more."""
    cluster._state.groups.expire("g", None)


def forget_group(cluster: EmbeddedCluster) -> None:
    """The next member is the first of a new group."""
    expire_group(cluster)
    cluster._state.groups.delete("g")


async def read_rest(cluster: EmbeddedCluster) -> list[int]:
    """What a new member of the group is given."""
    places = [TopicPartition("t", partition) for partition in range(2)]
    rest: list[int] = []
    with anyio.fail_after(SOON_S):
        async with Consumer(
            "t", bootstrap_servers=cluster.bootstrap_servers, group_id="g", auto_offset_reset="earliest", **FAST
        ) as consumer:
            ends = await consumer.end_offsets(places)
            while await is_behind(consumer, ends):
                rest += [int(record.value or b"") for record in await consumer.getmany(timeout=0.05)]
    return rest


@pytest.mark.parametrize("wait", [1, 3])
async def test_consuming(wait: int) -> None:
    async with EmbeddedCluster(brokers=2, topics={"t": 2}) as cluster:
        await produce(cluster, KillingTree())
        heard = 0
        for victim in range(await count_tasks(consume, cluster)):
            async with nothing_left():
                with groups_watched():
                    work = await consume(cluster, KillingTree(victim, wait))
            heard += work.error is not None
            for partition in range(2):
                read = [int(value) for value in work.done if int(value) % 2 == partition]
                assert read == list(range(partition, RECORDS, 2))[: len(read)]
            assert work.error is not None or len(work.done) == RECORDS
        assert heard > 0
