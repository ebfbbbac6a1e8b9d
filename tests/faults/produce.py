"""W1: records from several producers, one for each codec, into the partitions of one topic; read back as they come."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import anyio

from pykafka08 import Consumer, Delivery, KafkaError, NoBrokersError, Producer, Record
from pykafka08.errors import BufferFullError
from pykafka08.records.record import TopicPartition
from tests.faults.history import Acked, Drained, Failed, History, Polled, Sent
from tests.faults.stage import Stage

__all__ = ["CODECS", "Produce", "entered", "follow", "is_behind", "name_of", "note_polled", "padded"]

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

    async def run(self) -> None:
        stage = self.stage
        share, rest = divmod(stage.goal, len(self.codecs))
        self._places = [TopicPartition(self.topic, number) for number in range(self.partitions)]
        async with anyio.create_task_group() as readers:
            readers.start_soon(follow, stage, self._places)
            async with anyio.create_task_group() as writers:
                for index, codec in enumerate(self.codecs):
                    writers.start_soon(self._write, codec, share + (index < rest))
            stage.finish()

    async def _write(self, codec: str, count: int) -> None:
        stage = self.stage
        chance = random.Random(f"{stage.seed} {codec}")
        async with await entered(
            lambda: Producer(stage.bootstrap_servers, compression_type=codec, **stage.settings)
        ) as producer:
            for first in range(0, count, WINDOW):
                names = [f"{codec}-{number}" for number in range(first, min(count, first + WINDOW))]
                sent = [(name, await self._send(producer, codec, name, chance)) for name in names]
                for name, delivery in sent:
                    await self._note_outcome(name, delivery)
                await anyio.sleep(stage.pause_s)

    async def _send(self, producer: Producer, codec: str, name: str, chance: random.Random) -> Delivery:
        for number in range(len(self._places), self.stage.partitions.get(self.topic, 0)):
            self._places.append(TopicPartition(self.topic, number))
        partition = chance.randrange(len(self._places))
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
        except KafkaError as error:
            history.note(Failed(name, is_definite=not error.may_be_written))
        else:
            history.note(Acked(name, metadata.offset))
        self.stage.advance(1)


async def follow(
    stage: Stage,
    places: Sequence[TopicPartition],
    *,
    name: str = "reader",
    also: Callable[[list[Record]], None] = lambda _: None,
    **settings: Any,
) -> None:
    """Read these partitions alone from their beginnings, until the work is over and to what are their ends then.

    There may come to be more of them.  Their ends are those of the logs: where a transaction that somebody left open
    holds up what was committed behind it, its end is waited for.
    """
    history = stage.history

    async def read() -> None:
        if len(places) > len(consumer.assignment()):
            consumer.assign(places)
        records = await consumer.getmany(timeout=0.1)
        note_polled(history, name, name, records)
        also(records)

    async with await entered(
        lambda: Consumer(
            bootstrap_servers=stage.bootstrap_servers, auto_offset_reset="earliest", **stage.settings, **settings
        )
    ) as consumer:
        consumer.assign(places)
        while not stage.is_over:
            await read()
        async with await entered(
            lambda: Consumer(bootstrap_servers=stage.bootstrap_servers, **stage.settings)
        ) as other:
            ends = await other.end_offsets(places)
        consumer.assign(places)
        while await is_behind(consumer, ends):
            await read()
    history.note(Drained(name, ends))


C = TypeVar("C", Consumer, Producer)


async def entered(make: Callable[[], C]) -> _Entered[C]:
    """A new client, tried until it finds a broker: connections may not live long enough."""
    while True:
        client = make()
        try:
            await client.__aenter__()
        except NoBrokersError:
            await anyio.sleep(0.01)
        else:
            return _Entered(client)


class _Entered(Generic[C]):
    """A client that is open already, as a context."""

    def __init__(self, client: C) -> None:
        self._client: C = client

    async def __aenter__(self) -> C:
        return self._client

    async def __aexit__(self, *exc_info: Any) -> None:
        await self._client.__aexit__(*exc_info)


async def is_behind(consumer: Consumer, ends: Mapping[TopicPartition, int]) -> bool:
    """True while there is a partition that was not read to its end."""
    for place, end in ends.items():
        if await consumer.position(place) < end:
            return True
    return False
