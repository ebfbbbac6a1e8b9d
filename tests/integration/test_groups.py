"""Groups of consumers on real brokers: members come, leave, are killed and paused, and Java's consumer is one of them.

What they did is checked by `tests.faults.checker`: nothing lost, nothing read by two, nothing twice after a clean
leave, no committed offset that goes back.
"""

from __future__ import annotations

import signal
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import anyio.to_thread
import pytest

from pykafka08 import Consumer, NewRecord, Producer, TopicPartition
from tests.faults.checker import check
from tests.faults.history import Acked, Assigned, Committed, Event, History, Polled, Released, Sent
from tests.group.test_real_brokers import java_member
from tests.integration.clusters import Clusters, RealCluster
from tests.integration.group_member import STEADY, GroupMember, event_of

PARTITIONS = 12
ROUND = 600
"""Records, as many to each partition."""
DEADLINE_S = 90
"""For one step: a session of 6 s has to end, and a rebalance waits for those who are silent."""
LONG_SESSION: dict[str, Any] = {"session_timeout_ms": 30_000}
"""Of those who need not die; no longer, as brokers before 0.10.1 refuse it."""
ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(420)]


@pytest.fixture
def anyio_backend() -> str:
    """One loop: what differs between the two is tested on embedded clusters, which need no minutes."""
    return "asyncio"


class Run:
    """One topic, one group, and all that happened."""

    def __init__(self, brokers: RealCluster, topic: str, tasks: anyio.abc.TaskGroup) -> None:
        self.brokers = brokers
        self.topic = topic
        self.parts = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        self.history = History(time.monotonic)
        self.tasks = tasks
        self.read: dict[str, int] = defaultdict(int)
        self.owned: dict[str, set[TopicPartition]] = defaultdict(set)
        self._sent = 0
        self._members: list[GroupMember] = []
        self._longest_silence = 0.0

    def note(self, event: Event) -> None:
        self.note_at(None, event)

    def note_at(self, at: float | None, event: Event) -> None:
        self.history.note(event, at)
        if isinstance(event, Polled):
            for _, value in event.records:
                self.read[str(value)] += 1
        elif isinstance(event, Assigned):
            self.owned[event.member] |= set(event.places)
        elif isinstance(event, Released):
            self.owned[event.member] -= set(event.places)

    async def produce(self) -> None:
        """A round of records to every partition."""
        async with Producer(bootstrap_servers=self.brokers.bootstrap) as producer:
            deliveries = []
            for _ in range(ROUND):
                value, tp = f"v{self._sent}", self.parts[self._sent % PARTITIONS]
                self._sent += 1
                self.note(Sent("p", tp, value))
                await producer.ready()
                deliveries.append((value, producer.enqueue(tp.topic, value.encode(), partition=tp.partition)))
            for value, delivery in deliveries:
                self.note(Acked(value, (await delivery).offset))

    async def until(self, what: str, condition: Callable[[], bool]) -> None:
        """Looked at often: members are other processes, too."""
        with anyio.move_on_after(DEADLINE_S):
            while not condition():  # noqa: ASYNC110
                await anyio.sleep(0.02)
            return
        owned = {name: len(places) for name, places in self.owned.items()}
        raise AssertionError(f"not in {DEADLINE_S} s: {what}; read {len(self.read)} of {self._sent}, owned {owned}")

    async def until_shared(self, *names: str) -> None:
        share = PARTITIONS // len(names)
        await self.until(f"shared by {names}", lambda: all(len(self.owned[name]) == share for name in names))

    async def until_read(self) -> None:
        await self.until("all read", lambda: len(self.read) == self._sent)

    def member(self, name: str) -> GroupMember:
        """One in this process."""
        member = GroupMember(self.brokers.bootstrap, self.topic, self.topic, name, self.note_at, **LONG_SESSION)
        self._members.append(member)
        self.tasks.start_soon(member.run)
        return member

    async def leave(self, member: GroupMember) -> None:
        member.stop.set()
        await self.until(f"{member.name} has left", lambda: not self.owned[member.name])

    @asynccontextmanager
    async def process(self, name: str) -> AsyncIterator[anyio.abc.Process]:
        """One in a process of its own."""
        words = [self.brokers.bootstrap, self.topic, self.topic, name]
        command = [sys.executable, "-m", "tests.integration.group_member", *words]
        async with await anyio.open_process(command, cwd=ROOT, stderr=None) as process:
            try:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._listen, process)
                    yield process
                    tasks.cancel_scope.cancel()
            finally:
                if process.returncode is None:
                    process.kill()

    async def _listen(self, process: anyio.abc.Process) -> None:
        assert process.stdout is not None
        rest = b""
        async for data in process.stdout:
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                at, event = event_of(line.decode())
                self.note_at(at, event)

    def is_dead(self, name: str) -> None:
        """Killed now: the others may have what it had."""
        self.note(Released(self.topic, name, sorted(self.owned[name])))

    async def watch_commits(self) -> None:
        """Note the group's committed offsets whenever they differ, and how long it took at most to ask for them."""
        last: dict[TopicPartition, int] = {}
        async with Consumer(bootstrap_servers=self.brokers.bootstrap, group_id=self.topic) as outsider:
            while True:
                at = time.monotonic()
                for tp, found in (await outsider.committed(self.parts)).items():
                    if found is not None and found.offset != last.get(tp):
                        last[tp] = found.offset
                        self.note_at(at, Committed(f"{self.topic} as seen", tp, found.offset))
                await anyio.sleep(0.1)
                self._longest_silence = max(self._longest_silence, time.monotonic() - at)

    def judge(self) -> None:
        """Who was let live is lost to the group only if the machine stood still: then the outsider was not answered."""
        if self._longest_silence < LONG_SESSION["session_timeout_ms"] / 1000 / 2:
            assert [member.losses for member in self._members] == [0, 0], self.story()
        report = check(self.history, stuck_after=DEADLINE_S)
        assert report.is_clean, f"{report}\n{self.story()}"

    def story(self) -> str:
        """What happened to the group, in short."""
        lines = []
        for at, event in self.history.events:
            if isinstance(event, Polled):
                first, last = event.records[0][0], event.records[-1][0]
                lines.append(f"{at:.3f} {event.member} polled {event.place.partition}: {first} to {last}")
            elif isinstance(event, (Assigned, Released)):
                numbers = [place.partition for place in event.places]
                clean = " (clean)" if isinstance(event, Released) and event.is_clean else ""
                lines.append(f"{at:.3f} {event.member} {type(event).__name__.lower()}{clean}: {numbers}")
            elif isinstance(event, Committed):
                lines.append(f"{at:.3f} {event.group} committed {event.place.partition}: {event.offset}")
        return "\n".join(lines)


@pytest.mark.parametrize("version", ["0.9.0.1", "0.10.2.2", "1.1.1", "2.8.2", "3.9.2", "4.3.1"])
async def test_one_to_four_members_killed_paused_added_and_gone(version: str, clusters: Clusters) -> None:
    brokers = clusters.running(version)
    topic = brokers.new_topic("members", PARTITIONS)
    async with anyio.create_task_group() as tasks:
        run = Run(brokers, topic, tasks)
        await run.produce()
        first = run.member("first")
        await run.until_shared("first")
        tasks.start_soon(run.watch_commits)
        second = run.member("second")
        async with run.process("killed") as killed, run.process("paused") as paused:
            await run.until_shared("first", "second", "killed", "paused")
            await run.produce()
            await run.until_read()
            run.is_dead("killed")
            killed.kill()
            paused.send_signal(signal.SIGSTOP)
            run.owned["paused"].clear()  # when it goes on it tells since when it had nothing: that is judged
            await run.produce()
            await run.until_shared("first", "second")
            await run.until_read()
            paused.send_signal(signal.SIGCONT)
            await run.until_shared("first", "second", "paused")
            await run.leave(first)
            await run.until_shared("second", "paused")
            await run.produce()
            await run.until_read()
            paused.terminate()
            await run.until_shared("second")
        await run.leave(second)
        await check_end(run)
        tasks.cancel_scope.cancel()
    run.judge()


async def check_end(run: Run) -> None:
    """All is committed, and read once, but for what those who died had in hand."""
    async with Consumer(bootstrap_servers=run.brokers.bootstrap, group_id=run.topic) as outsider:
        committed = await outsider.committed(run.parts)
        ends = await outsider.end_offsets(run.parts)
    assert {tp: found.offset for tp, found in committed.items() if found is not None} == ends


@pytest.mark.parametrize("version", ["0.9.0.1", "1.1.1", "4.3.1"])
async def test_one_group_with_javas_consumer(version: str, clusters: Clusters, tmp_path: Path) -> None:
    """Each record is read once, by either: also what is left when one of them leaves."""
    brokers = clusters.running(version)
    topic = brokers.new_topic("with-java", 4)
    values, ours = list[str](), list[str]()
    printed = tmp_path / "java"

    async def produce(count: int) -> None:
        new = [f"{version} {number}" for number in range(len(values), len(values) + count)]
        values.extend(new)
        async with Producer(bootstrap_servers=brokers.bootstrap) as producer:
            await producer.send_many(
                topic, [NewRecord(value.encode(), partition=number % 4) for number, value in enumerate(new)]
            )

    def javas() -> list[str]:
        return printed.read_text(encoding="utf-8").split("\n")[:-1]

    async def read_until(consumer: Consumer, enough: Callable[[], bool]) -> None:
        with anyio.fail_after(DEADLINE_S):
            while not enough():
                records = await consumer.getmany(max_records=100, timeout=0.2)
                ours.extend((record.value or b"").decode() for record in records)

    async with joined(brokers, topic) as consumer:
        await produce(200)
        await read_until(consumer, lambda: len(ours) == 200)
        settings = ("heartbeat.interval.ms=500", "auto.offset.reset=earliest")
        with printed.open("wb") as output, java_member(brokers, topic, settings, output):
            await read_until(consumer, lambda: len(consumer.assignment()) == 2)
            await produce(200)
            await read_until(consumer, lambda: len(ours) + len(javas()) == 400)
            assert len(ours) == 300
            await consumer.commit()
            await consumer.aclose()
            await produce(200)
            with anyio.fail_after(DEADLINE_S):
                while len(ours) + len(javas()) < 600:  # noqa: ASYNC110
                    await anyio.sleep(0.1)
    async with joined(brokers, topic) as consumer:
        await produce(100)
        await read_until(consumer, lambda: len(ours) + len(javas()) >= 700)
    assert sorted(ours + javas()) == sorted(values)


@asynccontextmanager
async def joined(brokers: RealCluster, topic: str) -> AsyncIterator[Consumer]:
    settings = {**STEADY, **LONG_SESSION}
    async with Consumer(topic, bootstrap_servers=brokers.bootstrap, group_id=topic, **settings) as consumer:
        yield consumer
