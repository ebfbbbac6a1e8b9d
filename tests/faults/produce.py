"""W1: records from several producers, one for each codec, into the partitions of one topic; read back as they come."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import anyio

from pykafka08 import Consumer, Delivery, KafkaError, Producer, Record
from pykafka08.errors import BufferFullError, RecordTooLargeError
from pykafka08.records.record import TopicPartition
from tests.faults.history import Acked, Drained, Failed, History, Polled, Sent
from tests.faults.stage import Stage

__all__ = ["CODECS", "Produce", "follow", "is_behind", "name_of", "note_polled", "padded"]

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
WINDOW = 50
"""Records that a writer has unacknowledged at a time, at most."""
LARGEST = 4096
_TEXT = bytes(random.Random(1).choices(b"abcdefgh", k=2 * LARGEST))


def padded(name: str, chance: random.Random) -> bytes:
    """The name, and up to 4 KiB behind it."""
    start = chance.randrange(LARGEST)
    return name.encode() + b" " + _TEXT[start : start + chance.randrange(LARGEST - 64)]


def name_of(record: Record) -> str:
    """What `padded` was given."""
    return (record.value or b"").partition(b" ")[0].decode()


def note_polled(history: History, group: str, member: str, records: Iterable[Record]) -> None:
    """One event for each run of records of one partition."""
    runs: dict[TopicPartition, list[tuple[int, str]]] = {}
    for record in records:
        place = TopicPartition(record.topic, record.partition)
        runs.setdefault(place, []).append((record.offset, name_of(record)))
    for place, run in runs.items():
        history.note(Polled(group, member, place, run))


@dataclass
class Produce:
    """The workload."""

    stage: Stage
    topic: str = "w1"
    partitions: int = 6
    codecs: Sequence[str] = CODECS
    pause_s: float = 0.0
    """Between two windows of a writer: time for faults that need some."""

    async def run(self) -> None:
        stage = self.stage
        share, rest = divmod(stage.goal, len(self.codecs))
        places = [TopicPartition(self.topic, number) for number in range(self.partitions)]
        async with anyio.create_task_group() as readers:
            readers.start_soon(follow, stage, places)
            async with anyio.create_task_group() as writers:
                for index, codec in enumerate(self.codecs):
                    writers.start_soon(self._write, codec, share + (index < rest))
            stage.finish()

    async def _write(self, codec: str, count: int) -> None:
        stage = self.stage
        chance = random.Random(f"{stage.seed} {codec}")
        async with Producer(stage.bootstrap_servers, compression_type=codec, **stage.settings) as producer:
            for first in range(0, count, WINDOW):
                names = [f"{codec}-{number}" for number in range(first, min(count, first + WINDOW))]
                sent = [(name, await self._send(producer, codec, name, chance)) for name in names]
                for name, delivery in sent:
                    await self._note_outcome(name, delivery)
                if self.pause_s:
                    await anyio.sleep(self.pause_s)

    async def _send(self, producer: Producer, codec: str, name: str, chance: random.Random) -> Delivery:
        partition = chance.randrange(self.partitions)
        self.stage.history.note(Sent(codec, TopicPartition(self.topic, partition), name))
        value = padded(name, chance)
        while True:
            try:
                return producer.enqueue(self.topic, value, partition=partition)
            except BufferFullError:
                await producer.ready()

    async def _note_outcome(self, name: str, delivery: Delivery) -> None:
        history = self.stage.history
        try:
            metadata = await delivery
        except RecordTooLargeError:
            history.note(Failed(name, is_definite=True))
        except KafkaError:
            history.note(Failed(name))
        else:
            history.note(Acked(name, metadata.offset))
        self.stage.advance(1)


async def follow(stage: Stage, places: Sequence[TopicPartition], *, name: str = "reader", **settings: Any) -> None:
    """Read these partitions alone from their beginnings, until the work is over and to what are their ends then."""
    history = stage.history
    async with Consumer(
        bootstrap_servers=stage.bootstrap_servers, auto_offset_reset="earliest", **stage.settings, **settings
    ) as consumer:
        consumer.assign(places)
        while not stage.is_over:
            note_polled(history, name, name, await consumer.getmany(timeout=0.1))
        ends = await consumer.end_offsets(places)
        while await is_behind(consumer, ends):
            note_polled(history, name, name, await consumer.getmany(timeout=0.1))
    history.note(Drained(name, ends))


async def is_behind(consumer: Consumer, ends: Mapping[TopicPartition, int]) -> bool:
    """True while there is a partition that was not read to its end."""
    for place, end in ends.items():
        if await consumer.position(place) < end:
            return True
    return False
