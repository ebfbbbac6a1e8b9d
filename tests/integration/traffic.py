"""Numbered records through a cluster while things happen to it, and the judgement of what came out.

Every partition gets the numbers 0, 1, 2 ... in order, several unacknowledged at a time. A reader follows from the
beginning. What was acknowledged, when, and what was read are compared at the end.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import NamedTuple

import anyio

from pykafka08 import Consumer, Producer
from pykafka08.records.record import TopicPartition

UNACKNOWLEDGED = 20
"""Records a partition's writer sends before it waits for their acknowledgements."""
BATCH_BYTES = 300
"""Some of those records: with idempotence several batches of a partition are in flight."""
CATCH_UP_S = 30
"""How long the reader may take over what is left when the writers have ended."""
PAUSE_S = 0.005
"""Between those: enough traffic to be always in the middle of something, without swamping two cores."""


class Acknowledged(NamedTuple):
    number: int
    offset: int
    at: float


@dataclass
class Traffic:
    """`write` and `read` run in a task group of the caller; `stop_writing` ends both."""

    bootstrap_servers: str
    topic: str
    partitions: int
    acknowledged: dict[int, list[Acknowledged]] = field(init=False)
    read_back: dict[int, list[tuple[int, int]]] = field(init=False)

    def __post_init__(self) -> None:
        self.acknowledged = {partition: [] for partition in range(self.partitions)}
        self.read_back = {partition: [] for partition in range(self.partitions)}
        self._is_writing = True
        self._written = anyio.Event()
        self._progress = anyio.Event()

    def stop_writing(self) -> None:
        self._is_writing = False

    @property
    def total(self) -> int:
        return sum(map(len, self.acknowledged.values()))

    async def write(self) -> None:
        """One writer a partition, over one producer, until told to stop; raises if a record is not acknowledged."""
        async with (
            Producer(bootstrap_servers=self.bootstrap_servers, acks="all", batch_size=BATCH_BYTES) as producer,
            anyio.create_task_group() as writers,
        ):
            for partition in range(self.partitions):
                writers.start_soon(self._write_partition, producer, partition)
        self._written.set()

    async def _write_partition(self, producer: Producer, partition: int) -> None:
        done = self.acknowledged[partition]
        while self._is_writing:
            first = len(done)
            deliveries = [
                producer.enqueue(self.topic, b"%d" % number, partition=partition)
                for number in range(first, first + UNACKNOWLEDGED)
            ]
            for number, delivery in enumerate(deliveries, first):
                metadata = await delivery
                done.append(Acknowledged(number, metadata.offset, time.monotonic()))
            self._note_progress()
            await anyio.sleep(PAUSE_S)

    async def read(self) -> None:
        """Follow the topic until `write` has ended and every acknowledged record has been read."""
        async with (
            Consumer(bootstrap_servers=self.bootstrap_servers, auto_offset_reset="earliest") as consumer,
            anyio.create_task_group() as tasks,
        ):
            consumer.assign([TopicPartition(self.topic, partition) for partition in range(self.partitions)])
            tasks.start_soon(self._read_all, consumer)
            await self._written.wait()
            try:
                with anyio.fail_after(CATCH_UP_S):
                    while self._missing():
                        await self._progress.wait()
            except TimeoutError:
                raise AssertionError(f"not read {CATCH_UP_S} s after the last write: {self._missing()}") from None
            tasks.cancel_scope.cancel()

    async def _read_all(self, consumer: Consumer) -> None:
        async for batch in consumer.batches():
            for record in batch:
                self.read_back[record.partition].append((record.offset, int(record.value or b"")))
            self._note_progress()

    def _note_progress(self) -> None:
        self._progress.set()
        self._progress = anyio.Event()

    def _missing(self) -> list[int]:
        """Partitions whose last acknowledged record has not been read."""
        return [
            partition
            for partition, done in self.acknowledged.items()
            if done and (not self.read_back[partition] or self.read_back[partition][-1][0] < done[-1].offset)
        ]

    async def wait_acknowledged(self, more: int, deadline_s: float) -> None:
        """Until each partition has this many more acknowledged records."""
        goals = {partition: len(done) + more for partition, done in self.acknowledged.items()}
        try:
            with anyio.fail_after(deadline_s):
                while any(len(self.acknowledged[partition]) < goal for partition, goal in goals.items()):
                    await self._progress.wait()
        except TimeoutError:
            short = [partition for partition, goal in goals.items() if len(self.acknowledged[partition]) < goal]
            raise AssertionError(f"no {more} acknowledgements in {deadline_s} s in partitions {short}") from None

    def first_acknowledged_after(self, partition: int, moment: float) -> float | None:
        """Seconds from the moment to the next acknowledgement of the partition."""
        return next((one.at - moment for one in self.acknowledged[partition] if one.at >= moment), None)

    def judge(self) -> int:
        """Check what was promised; the number of records that are in the log twice, none with idempotence."""
        repeats = 0
        for partition, done in self.acknowledged.items():
            got = self.read_back[partition]
            offsets = [offset for offset, _ in got]
            assert offsets == sorted(set(offsets)), f"partition {partition}: read twice or out of order"
            by_offset = dict(got)
            lost = [one for one in done if by_offset.get(one.offset) != one.number]
            assert not lost, f"partition {partition}: acknowledged and lost: {lost[:5]}"
            numbers = [number for _, number in got]
            firsts = list(dict.fromkeys(numbers))
            assert firsts == sorted(firsts), f"partition {partition}: written out of order"
            assert [one.number for one in done] == list(range(len(done)))
            repeats += len(numbers) - len(firsts)
        return repeats
