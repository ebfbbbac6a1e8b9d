"""W3: members of one group copy a topic in transactions, the offsets they have read with them; now and then one dies.

It is over when the group has committed the whole input.  Two histories: that of the stage is about attempts, each copy
of a record under a name of its own; ``copies`` is about the input's records, of which each must be there once.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import anyio

from pykafka08 import Consumer, KafkaError, NoBrokersError, Producer, Record, RecordMetadata
from pykafka08.errors import ProducerFencedError, TransactionAbortedError
from pykafka08.records.record import TopicPartition
from tests.faults.history import Acked, Failed, Fault, History, Polled, Sent
from tests.faults.produce import follow, name_of
from tests.faults.share import GROUP_APIS
from tests.faults.stage import Stage

__all__ = ["COPY_APIS", "Copy"]

TRANSACTION_APIS = ("InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn")
COPY_APIS = ("Produce", "Fetch", *GROUP_APIS, *TRANSACTION_APIS)
GROUP = "g"
READER = "reader"


@dataclass
class Copy:
    """The workload; the input is filled before."""

    stage: Stage
    source: str = "in"
    target: str = "out"
    source_partitions: int = 2
    target_partitions: int = 3
    copiers: int = 2
    per_transaction: int = 50
    deaths: float = 0.05
    """The share of transactions in which the copier dies."""

    def __post_init__(self) -> None:
        self.copies = History(anyio.current_time)
        self.sources = [TopicPartition(self.source, number) for number in range(self.source_partitions)]
        self.targets = [TopicPartition(self.target, number) for number in range(self.target_partitions)]

    async def run(self) -> None:
        stage = self.stage
        for number in range(stage.goal):
            name = f"r{number}"
            self.copies.note(Sent(f"source {number % self.source_partitions}", self.target_of(name), name))
            self.copies.note(Acked(name, -1))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._read_copies)
            async with anyio.create_task_group() as copiers:
                for number in range(self.copiers):
                    copiers.start_soon(self._take_turns, number)
            stage.finish()
            for number in range(self.copiers):
                await self._end_transaction_of(number)

    async def _end_transaction_of(self, number: int) -> None:
        """What its last life left open: the reader need not wait until it is too old."""
        stage = self.stage
        with suppress(KafkaError):
            async with Producer(stage.bootstrap_servers, transactional_id=f"x-{number}", **stage.settings):
                pass

    def target_of(self, name: str) -> TopicPartition:
        return self.targets[zlib.crc32(name.encode()) % self.target_partitions]

    async def _read_copies(self) -> None:
        await follow(self.stage, self.targets, name=READER, isolation_level="read_committed", also=self._note_copies)
        # What the reader has drained in one history, it has in the other.
        self.copies.note(self.stage.history.events[-1][1])

    def _note_copies(self, records: Iterable[Record]) -> None:
        for record in records:
            place = TopicPartition(record.topic, record.partition)
            name = name_of(record).partition("#")[0]
            self.copies.note(Polled(READER, READER, place, [(record.offset, name)]))

    async def _take_turns(self, number: int) -> None:
        chance = random.Random(f"{self.stage.seed} {number}")
        turn = 0
        while not self.stage.is_over:
            turn += 1
            try:
                await Copier(self, number, turn, chance).live()
            except NoBrokersError:
                continue  # it could not begin


class Copier:
    """One life of a process that copies."""

    def __init__(self, work: Copy, number: int, turn: int, chance: random.Random) -> None:
        stage = work.stage
        self._work = work
        self._history = stage.history
        self._chance = chance
        self._name = f"{number}.{turn}"
        self._attempts = 0
        self._consumer = Consumer(
            work.source,
            bootstrap_servers=stage.bootstrap_servers,
            group_id=GROUP,
            client_id=f"c{self._name}",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
            **{"max_poll_interval_ms": 10_000, **stage.group_settings, **stage.settings},
        )
        self._producer = Producer(
            stage.bootstrap_servers,
            transactional_id=f"x-{number}",
            **{"transaction_timeout_ms": 4_000, "max_block_ms": 20_000, **stage.settings},
        )

    async def live(self) -> None:
        """Copy until all is done, or an error or death ends it."""
        work = self._work
        try:
            # The producer first: it ends what a former life left open, which the consumer's positions wait for.
            async with self._producer, self._consumer:
                while not work.stage.is_over:
                    records = await self._consumer.getmany(max_records=work.per_transaction, timeout=0.2)
                    if not records:
                        await self._look_for_the_end()
                    elif self._chance.random() < work.deaths:
                        await self._die(records)
                        return
                    elif not await self._copy(records):
                        return
                    await anyio.sleep(work.stage.pause_s)
        except NoBrokersError:
            raise
        except (KafkaError, TimeoutError):
            return  # the next life goes on from what is committed

    async def _copy(self, records: list[Record]) -> bool:
        """One transaction; False if this copier cannot know what became of it."""
        names: list[str] = []
        written: list[RecordMetadata] = []
        try:
            async with self._producer.transaction():
                deliveries = [self._send(record, names) for record in records]
                await self._producer.send_offsets(self._consumer)
                written += [await delivery for delivery in deliveries]
        except TransactionAbortedError as error:
            self._note_failed(names, is_definite=True, why=repr(error))
            return await self._go_back()
        except ProducerFencedError:
            self._note_failed(names, is_definite=False)
            return False
        except KafkaError:
            self._note_failed(names, is_definite=False)
            return False
        for name, metadata in zip(names, written, strict=True):
            self._history.note(Acked(name, metadata.offset))
        self._work.stage.advance(len(records))
        return True

    def _send(self, record: Record, names: list[str]) -> Any:
        source = name_of(record)
        self._attempts += 1
        name = f"{source}#{self._name}.{self._attempts}"
        place = self._work.target_of(source)
        delivery = self._producer.enqueue(place.topic, name.encode() + b" ", partition=place.partition)
        names.append(name)
        self._history.note(Sent(self._name, place, name))
        return delivery

    def _note_failed(self, names: list[str], *, is_definite: bool, why: str = "") -> None:
        for name in names:
            self._history.note(Failed(name, is_definite, why))

    async def _go_back(self) -> bool:
        """To what is committed: the records of the aborted transaction come again."""
        mine = self._consumer.assignment()
        for place, committed in (await self._consumer.committed(mine)).items():
            if place in self._consumer.assignment():
                await self._consumer.seek(place, 0 if committed is None else committed.offset)
        return True

    async def _die(self, records: list[Record]) -> None:
        """In the midst of a transaction, as a process that is killed: no word to anybody."""
        names: list[str] = []
        self._history.note(Fault(f"copier {self._name} dies"))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._begin_and_hang, records, names)
            await anyio.sleep(self._chance.random() * 0.05)
            for client in (self._producer, self._consumer):
                await client._tasks.__aexit__()
            tasks.cancel_scope.cancel()
        self._note_failed(names, is_definite=True, why="its copier died")

    async def _begin_and_hang(self, records: list[Record], names: list[str]) -> None:
        try:
            async with self._producer.transaction():
                for record in records:
                    self._send(record, names)
                await self._producer.send_offsets(self._consumer)
                await anyio.sleep_forever()
        except KafkaError:
            return

    async def _look_for_the_end(self) -> None:
        stage, sources = self._work.stage, self._work.sources
        ends = await self._consumer.end_offsets(sources)
        committed = await self._consumer.committed(sources)
        if sum(ends.values()) >= stage.goal and all(
            each is not None and each.offset >= ends[place] for place, each in committed.items()
        ):
            stage.finish()
