"""W2: members of one group share a topic; they leave, with and without a commit, and die, at random.

It is over when the group has committed the whole topic.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import anyio

from pykafka08 import Consumer, KafkaError, NewRecord, NoBrokersError, Producer, Record
from pykafka08.errors import PollIntervalExceededError
from pykafka08.records.record import TopicPartition
from tests.faults.history import Acked, Assigned, Committed, Drained, Fault, Released, Sent
from tests.faults.ownership import owned_until
from tests.faults.produce import name_of, note_polled, padded
from tests.faults.stage import Stage

__all__ = ["GROUP_APIS", "NEW_GROUP_APIS", "Life", "Share", "fill"]

GROUP_APIS = ("FindCoordinator", "JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit", "OffsetFetch")
NEW_GROUP_APIS = ("FindCoordinator", "ConsumerGroupHeartbeat", "OffsetCommit", "OffsetFetch")
GROUP = "g"
COMMIT_S = 2.0
ENDS = ("leaves", "leaves without a commit", "dies")


async def fill(stage: Stage, topic: str, partitions: int) -> None:
    """As many records as the stage's goal, evenly over the partitions."""
    chance = random.Random(stage.seed)
    async with Producer(stage.bootstrap_servers, compression_type="lz4", **stage.settings) as producer:
        for first in range(0, stage.goal, 1000):
            names = [f"r{number}" for number in range(first, min(stage.goal, first + 1000))]
            records = [
                NewRecord(padded(name, chance), partition=(first + index) % partitions)
                for index, name in enumerate(names)
            ]
            for index, name in enumerate(names):
                stage.history.note(Sent("filler", TopicPartition(topic, (first + index) % partitions), name))
            for name, metadata in zip(names, await producer.send_many(topic, records), strict=True):
                stage.history.note(Acked(name, metadata.offset))


@dataclass
class Share:
    """The workload.  Each member commits after ``commit_every`` records and stays for two to four times as many."""

    stage: Stage
    topic: str = "w2"
    partitions: int = 6
    members: int = 3
    commit_every: int = 100
    settings: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.seen: set[str] = set()
        self.committed: dict[TopicPartition, int] = {}
        self.places = [TopicPartition(self.topic, number) for number in range(self.partitions)]
        self.ends: dict[TopicPartition, int] = {}

    async def run(self) -> None:
        per_partition, rest = divmod(self.stage.goal, self.partitions)
        self.ends = {place: per_partition + (place.partition < rest) for place in self.places}
        async with anyio.create_task_group() as members:
            for number in range(self.members):
                members.start_soon(self._take_turns, number)
        self.stage.history.note(Drained(GROUP, self.ends))

    @property
    def is_done(self) -> bool:
        return all(self.committed.get(place, 0) >= end for place, end in self.ends.items())

    async def _take_turns(self, number: int) -> None:
        """One life after the other."""
        chance = random.Random(f"{self.stage.seed} {number}")
        turn = 0
        while not self.is_done:
            turn += 1
            life = Life(self, f"{number}.{turn}", chance)
            await life.live(self.commit_every * chance.randint(2, 4), chance.choice(ENDS))
        self.stage.finish()

    def note(self, member: str, records: list[Record]) -> None:
        note_polled(self.stage.history, GROUP, member, records)
        before = len(self.seen)
        self.seen.update(map(name_of, records))
        self.stage.advance(len(self.seen) - before)


class Life:
    """One member, from its joining to its end; it is its own rebalance listener."""

    def __init__(self, work: Share, name: str, chance: random.Random) -> None:
        self._work = work
        self._name = name
        self._history = work.stage.history
        self._chance = chance
        self._owned: set[TopicPartition] = set()
        self._read: dict[TopicPartition, int] = {}
        self._commits_when_revoked = True
        self._is_dead = False
        self._noted_at = 0.0
        self._consumer = Consumer(
            work.topic,
            bootstrap_servers=work.stage.bootstrap_servers,
            group_id=GROUP,
            client_id=f"m{name}",
            listener=self,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            **{
                "max_poll_interval_ms": 5_000,
                **work.stage.group_settings,
                **work.stage.settings,
                **work.settings,
            },
        )

    async def live(self, span: int, end: str) -> None:
        """Read about so many records, then end in one of ENDS; at the end of all work, leave."""
        try:
            await self._consumer.__aenter__()
        except NoBrokersError:
            return
        try:
            await self._read_on(span, end)
        finally:
            await self._consumer.__aexit__()

    async def _read_on(self, span: int, end: str) -> None:
        work = self._work
        count = uncommitted = 0
        while not work.is_done and count < span:
            try:
                records = await self._consumer.getmany(max_records=50, timeout=0.1)
            except PollIntervalExceededError:  # commits waited for too long; the next call joins again
                continue
            work.note(self._name, records)
            self._noted_at = anyio.current_time()
            for record in records:
                self._read[TopicPartition(record.topic, record.partition)] = record.offset + 1
            count += len(records)
            uncommitted += len(records)
            if uncommitted >= work.commit_every or not records:
                await self._commit(self._owned)
                uncommitted = 0
            if not records:
                await self._ask_committed()
        if work.is_done or end == "leaves":
            return
        self._commits_when_revoked = False
        if end == "dies":
            await self._die()

    async def _die(self) -> None:
        """As a process that is killed: no word to anybody."""
        self._is_dead = True
        self._history.note(Fault(f"member {self._name} dies"))
        self._release(self._owned, is_clean=False)
        await self._consumer._tasks.__aexit__()

    async def _commit(self, places: Iterable[TopicPartition]) -> bool:
        """Commit what was read of these; whether all of it is known to be committed."""
        offsets = {place: self._read[place] for place in places if place in self._read}
        if not offsets:
            return True
        try:
            refused = await self._consumer.commit(offsets, timeout=COMMIT_S)
        except KafkaError:
            return False
        for place, offset in offsets.items():
            if place not in refused:
                self._note_committed(place, offset)
        return not refused

    async def _ask_committed(self) -> None:
        """A commit whose answer was lost may have been the last of a partition."""
        try:
            found = await self._consumer.committed(sorted(self._owned), timeout=COMMIT_S)
        except KafkaError:
            return
        for place, committed in found.items():
            if committed is not None and place in self._owned:
                self._note_committed(place, committed.offset)

    def _note_committed(self, place: TopicPartition, offset: int) -> None:
        if offset == self._work.committed.get(place):
            return  # no news
        self._history.note(Committed(GROUP, place, offset))
        self._work.committed[place] = max(offset, self._work.committed.get(place, 0))

    def _release(self, places: Iterable[TopicPartition], *, is_clean: bool) -> None:
        gone = set(places) & self._owned
        at = owned_until(self._consumer, self._noted_at)
        self._history.note(Released(GROUP, self._name, sorted(gone), is_clean), at)
        self._owned -= gone
        for place in gone:
            self._read.pop(place, None)

    async def partitions_assigned(self, added: Iterable[TopicPartition]) -> None:
        if not self._is_dead:
            self._owned |= set(added)
            self._history.note(Assigned(GROUP, self._name, sorted(added)))
            self._noted_at = anyio.current_time()

    async def partitions_revoked(self, partitions: Iterable[TopicPartition]) -> None:
        is_clean = self._commits_when_revoked and await self._commit(partitions)
        if not self._is_dead:
            self._release(partitions, is_clean=is_clean)

    async def partitions_lost(self, partitions: Iterable[TopicPartition]) -> None:
        if not self._is_dead:
            self._release(partitions, is_clean=False)
