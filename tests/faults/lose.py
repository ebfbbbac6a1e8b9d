"""W4: members of a group read a topic whose logs are lost in part or whole, again and again, while a producer goes on.

Nothing of what is left, or comes after, may be passed over; what is lost must be reported. In the history each log of a
partition is a place of its own, for offsets come again: "w4#2" has what was written after the second loss.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio

from pykafka08 import Consumer, EmbeddedCluster, NewRecord, Producer, Record
from pykafka08.broker.log import StoredBatch
from pykafka08.errors import LogTruncationError, NoOffsetError
from pykafka08.records.batch_packing import encode_batch
from pykafka08.records.compression import Codec
from pykafka08.records.record import TopicPartition
from tests.faults.history import Acked, Failed, Fault, Healed, Polled, Sent
from tests.faults.stage import Stage

__all__ = ["LOSSES", "Lose", "Loss", "Report"]

TOPIC, GROUP = "w4", "g"
PARTITIONS = 2
MOST = 40
"""Records that are written to a partition between two losses, at most; one at least."""


@dataclass(frozen=True)
class Report:
    """What the client said of a loss, in its log or by an error."""

    kind: str
    partition: int
    end: int
    """Where reading goes on."""


@dataclass(frozen=True)
class Loss:
    """A fault; ``lose`` does it, and notes what is left."""

    what: str
    lose: Callable[[Lose], None]
    leaves_read: bool = True
    """It may come while records lie unread."""
    waits_for_report: bool = False
    """Nothing is written until the client has noticed: with these releases it cannot after that."""
    reads_again: bool = False
    """Nobody can tell what is left of what was read: it is read again."""


@dataclass
class Lose:
    """The workload: ``loss`` happens ``times``."""

    stage: Stage
    cluster: EmbeddedCluster
    loss: Loss
    policy: str
    times: int = 6
    settings: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.stage.seed)
        self.log = 0
        self.alive: dict[int, dict[int, str]] = {number: {} for number in range(PARTITIONS)}
        """What the log of each partition holds: value by offset."""
        self.handed: dict[int, int] = dict.fromkeys(range(PARTITIONS), 0)
        """The offset after the last record of what is left that a member was given."""
        self.reports: list[Report] = []
        self.expected: list[Report] = []
        self.strange_commits: list[str] = []
        self.read: set[str] = set()
        self.resumed: list[float] = []
        """Seconds from each loss, and the first record after it, to its reading."""
        self._place: dict[str, TopicPartition] = {}
        self._unacknowledged: set[str] = set()
        """Written, perhaps: a member may have them before the producer hears of it."""
        self._written_at: float | None = None
        self._changed = anyio.Event()

    async def run(self) -> None:
        self.cluster.create_topic(TOPIC, PARTITIONS)
        with self._listening(), self._watching_commits():
            async with self._consumer() as outsider:
                await outsider.commit({TopicPartition(TOPIC, number): 0 for number in range(PARTITIONS)})
            async with anyio.create_task_group() as members:
                for name in ("a", "b"):
                    await members.start(self._live, name)
                for _ in range(self.times):
                    await self._write()
                    await self._until_read(self.chance.choice((0.5, 1.0)) if self.loss.leaves_read else 1.0)
                    await self._lose()
                await self._write()
                await self._until_read(1.0)
                await self._until_committed()
                members.cancel_scope.cancel()
        self.stage.finish()

    # What happens to the log

    def drop(self, partition: int, is_gone: Callable[[int], bool]) -> None:
        """Records that are not in the log any more; who has not read them need not."""
        for offset in [offset for offset in self.alive[partition] if is_gone(offset)]:
            value = self.alive[partition].pop(offset)
            if value not in self.read:
                self.stage.history.note(Failed(value))

    def append(self, partition: int, count: int) -> int:
        """Records that no waiting fetch hears of: the offset of the first."""
        log = self.cluster._partition(TOPIC, partition).log
        first, values = log.end_offset, self._new_values(partition, count)
        data = encode_batch(
            Codec.NONE,
            timestamps=[1] * count,
            keys=[None] * count,
            values=[value.encode() for value in values],
            base_offset=first,
            leader_epoch=0,
        )
        log.append(StoredBatch(first, first + count - 1, data, max_timestamp_ms=1, appended_at_ms=1, leader_epoch=0))
        for offset, value in enumerate(values, first):
            self._written_to(partition, offset, value)
        return first

    def _new_values(self, partition: int, count: int) -> list[str]:
        values = [f"r{len(self._place) + each}" for each in range(count)]
        place = TopicPartition(f"{TOPIC}#{self.log}", partition)
        for value in values:
            self._place[value] = place
            self._unacknowledged.add(value)
            self.stage.history.note(Sent(f"filler {partition}", place, value))
        return values

    def _written_to(self, partition: int, offset: int, value: str) -> None:
        self.stage.history.note(Acked(value, offset))
        self.alive[partition][offset] = value
        self._unacknowledged.discard(value)
        self._written_at = self._written_at or anyio.current_time()

    async def _lose(self) -> None:
        before = len(self.reports)
        self.stage.history.note(Fault(self.loss.what))
        self.log += 1
        self._written_at = None
        self.loss.lose(self)
        self.stage.history.note(Healed(self.loss.what))
        if self.loss.waits_for_report:
            await self._until(lambda: len({each.partition for each in self.reports[before:]}) == PARTITIONS)

    async def _write(self) -> None:
        """Some records to each partition, in batches of five."""
        async with Producer(self.stage.bootstrap_servers, linger_ms=0, **self.stage.settings) as producer:
            for number in range(PARTITIONS):
                count = self.chance.randint(1, MOST)
                for first in range(0, count, 5):
                    values = self._new_values(number, min(5, count - first))
                    sent = [NewRecord(value.encode(), partition=number) for value in values]
                    for value, metadata in zip(values, await producer.send_many(TOPIC, sent), strict=True):
                        self._written_to(number, metadata.offset, value)

    # Who reads

    def _consumer(self, *topics: str) -> Consumer:
        return Consumer(
            *topics,
            bootstrap_servers=self.stage.bootstrap_servers,
            group_id=GROUP,
            auto_offset_reset=self.policy,
            fetch_max_wait_ms=50,
            auto_commit_interval_ms=10,
            **{**self.stage.group_settings, **self.stage.settings, **self.settings},
        )

    async def _live(self, name: str, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        async with self._consumer(TOPIC) as consumer:
            task_status.started()
            while True:
                try:
                    self._note(name, await consumer.getmany(max_records=20, timeout=0.2))
                except (NoOffsetError, LogTruncationError) as error:
                    if isinstance(error, LogTruncationError):
                        kind, end = "log.truncated", error.end_offset or 0
                    else:
                        kind, end = "position.reset", error.earliest or 0
                    tp = TopicPartition(TOPIC, error.partition or 0)
                    self._reported(Report(kind, tp.partition, end))
                    await consumer.seek(tp, end)

    def _note(self, name: str, records: list[Record]) -> None:
        for record in records:
            value = (record.value or b"").decode()
            place = self._place[value]
            self.stage.history.note(Polled(GROUP, name, place, [(record.offset, value)]))
            if value in self._unacknowledged or self.alive[record.partition].get(record.offset) == value:
                self.handed[record.partition] = max(self.handed[record.partition], record.offset + 1)
            if self._written_at is not None and place.topic == f"{TOPIC}#{self.log}" and value not in self.read:
                self.resumed.append(anyio.current_time() - self._written_at)
                self._written_at = None
            self.read.add(value)
        self.stage.advance(len(records))
        self._wake()

    # What is waited for

    async def _until_read(self, share: float) -> None:
        """As much of what is there, of each partition."""

        def is_read() -> bool:
            return all(
                sum(value in self.read for value in held.values()) >= share * len(held) for held in self.alive.values()
            )

        await self._until(is_read)

    async def _until_committed(self) -> None:
        ends = {number: self.cluster.log_end_offset(TOPIC, number) for number in range(PARTITIONS)}
        groups = self.cluster._state.groups

        def is_committed() -> bool:
            found = groups.offsets(GROUP)
            return all((TOPIC, each) in found and found[TOPIC, each].offset == end for each, end in ends.items())

        while not is_committed():  # noqa: ASYNC110 - by members that are not told
            await anyio.sleep(0.01)

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            await self._changed.wait()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    # What is said

    def _reported(self, report: Report) -> None:
        self.reports.append(report)
        self._wake()

    @contextmanager
    def _listening(self) -> Iterator[None]:
        """To the warnings of the members."""
        work = self

        class Listener(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                facts = vars(record)
                if facts.get("event") in ("log.truncated", "position.reset", "topic.made_again"):
                    # Where the leader knows nothing as old, the log is searched for its beginning.
                    work._reported(Report(facts["event"], facts.get("partition", -1), facts.get("to") or 0))

        listener, logger = Listener(), logging.getLogger("pykafka08.consumer")
        logger.addHandler(listener)
        try:
            yield
        finally:
            logger.removeHandler(listener)

    @contextmanager
    def _watching_commits(self) -> Iterator[None]:
        """An offset beyond all that a member was given of the log that is there is one of another log."""
        groups = self.cluster._state.groups
        commit = groups.commit

        def watched(group_id: str, topic: str, partition: int, committed: Any) -> None:
            if committed.offset > self.handed[partition]:
                text = f"{topic} {partition} log {self.log}: {committed.offset} beyond {self.handed[partition]}"
                self.strange_commits.append(text)
            commit(group_id, topic, partition, committed)

        groups.commit = watched  # type: ignore[method-assign]
        try:
            yield
        finally:
            groups.commit = commit  # type: ignore[method-assign]

    def unreported(self) -> list[Report]:
        """Losses that the client must have told of, and did not."""
        return [each for each in self.expected if each not in self.reports]


# The losses


def retention(work: Lose) -> None:
    """F13, low: records go before they are fetched; those behind them stay."""
    for number in range(PARTITIONS):
        first = work.append(number, 10)
        start = first + work.chance.randint(1, 9)
        work.cluster.delete_records(TOPIC, number, start)
        work.drop(number, lambda offset, start=start: offset < start)  # type: ignore[misc]
        work.handed[number] = start
        work.expected.append(Report("position.reset", number, start))
        work.cluster._partition(TOPIC, number).changed()


def election(work: Lose) -> None:
    """F13, high, and F16: the new leader, or the old one in a new epoch, has less."""
    cluster = work.cluster
    for number in range(PARTITIONS):
        end = cluster.log_end_offset(TOPIC, number)
        leader = work.chance.choice([node.node_id for node in cluster.brokers])
        cluster.elect_unclean_leader(TOPIC, number, leader, work.chance.randrange(end // 2, end))
        end = cluster.log_end_offset(TOPIC, number)
        work.drop(number, lambda offset, end=end: offset >= end)  # type: ignore[misc]
        if work.loss.waits_for_report:
            work.expected.append(Report("position.reset", number, 0))
        elif work.handed[number] > end:
            work.expected.append(Report("log.truncated", number, end))
        work.handed[number] = min(work.handed[number], end)


def deletion(work: Lose) -> None:
    """F14: the topic is deleted, and another one has its name."""
    work.cluster.delete_topic(TOPIC)
    work.cluster.create_topic(TOPIC, PARTITIONS)
    for number in range(PARTITIONS):
        work.drop(number, lambda _: True)
        work.handed[number] = 0
        if work.loss.waits_for_report:
            work.expected.append(Report("position.reset", number, 0))


LOSSES = {
    "F13 low": Loss("retention deletes what was not read", retention),
    "F13 high": Loss("the log is shorter", election, leaves_read=False, waits_for_report=True, reads_again=True),
    "F14 with ids": Loss("the topic is made again", deletion),
    "F14 without": Loss("the topic is made again", deletion, leaves_read=False, waits_for_report=True),
    "F16": Loss("an unclean election", election),
}
