"""From the source's fetches to the target's batches, a unit at a time: records, and the word of how far that is.

Where the target has transactions (0.11) both are in one: they count together or not at all.  Before, the word is
committed after the records were acknowledged.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field

import anyio

from pykafka08.admin import Admin
from pykafka08.consumer.batches import Batches
from pykafka08.consumer.consumer import Consumer
from pykafka08.errors import MirrorError, NoOffsetError, RequestTimeoutError
from pykafka08.group.requests import OffsetAndMetadata
from pykafka08.mirror.checkpoint import Checkpoint, Point
from pykafka08.mirror.columns import columns_of
from pykafka08.mirror.copy_state import CopyState
from pykafka08.mirror.ranges import Ranges, next_within
from pykafka08.producer.delivery import SentRecords
from pykafka08.producer.producer import Producer
from pykafka08.records.reader import FetchedBatch
from pykafka08.records.record import TopicPartition

__all__ = ["Copier"]

UNIT_BYTES = 16 * 1024 * 1024
UNIT_S = 0.5
"""A unit takes no more, and no longer."""
RENEW_S = 3600.0
"""How often all places are kept anew: brokers forget them after ``offsets.retention.minutes``, at least a day."""
LOOK_S = 10.0
"""How long looking at what others wrote may take, within a transaction."""
MOST_PLACES = 100
"""That are committed in one request: brokers write them as one batch, which may have a megabyte."""
IDLE_S = 0.1
GATHER_S = 0.01
"""How long a unit that was begun waits for another batch."""


@dataclass
class Share:
    """What one unit has of one partition: the runs of records that were sent, and where the source goes on."""

    next: int
    records: int = 0
    size: int = 0
    runs: list[tuple[int, SentRecords]] = field(default_factory=list)
    """Each with the source's offset of its first record."""


class Copier:
    """Copies assigned partitions from ``consumer`` to ``producer``; ``admin`` keeps the word without transactions."""

    def __init__(
        self,
        consumer: Consumer,
        producer: Producer,
        admin: Admin | None,
        states: Sequence[CopyState],
        *,
        read_target: Callable[[], Ranges],
        leader_of: Callable[[TopicPartition], Awaitable[str | None]],
        group_id: str,
        skips_lost: bool,
        on_unit: Callable[[], None],
    ) -> None:
        self._consumer = consumer
        self._producer = producer
        self._admin = admin
        self._states = {state.source: state for state in states}
        self._group_id = group_id
        self._skips_lost = skips_lost
        self._on_unit = on_unit
        self._batches: Batches = consumer.batches()
        self._read_target = read_target
        self._leader_of = leader_of
        self._now = anyio.current_time
        self._renew_at = math.inf

    async def renew(self) -> None:
        """Keep all places again, copied or not, with this run's mark."""
        async with self._unit():
            await self._keep({tp: state.checkpoint(state.next, state.to) for tp, state in self._states.items()})
        self._renew_at = self._now() + RENEW_S

    async def copy_some(self) -> bool:
        """One unit, or a short wait; True if there was one."""
        if self._now() >= self._renew_at:
            await self.renew()
        batch = await self._next_batch(IDLE_S)
        moved = [] if batch is not None else await self._moved()
        if batch is None and not moved:
            return False
        shares: dict[TopicPartition, Share] = {}
        async with self._unit():
            for state, position in moved:
                shares[state.source] = Share(position)
            deadline, size = self._now() + UNIT_S, 0
            while batch is not None:
                size += await self._send(batch, shares)
                is_full = size >= UNIT_BYTES or self._now() >= deadline
                batch = None if is_full else await self._next_batch(GATHER_S)
            await self._producer.flush()
            kept = {tp: await self._kept(self._states[tp], share) for tp, share in shares.items()}
            await self._keep(kept)
        for tp, share in shares.items():
            state = self._states[tp]
            state.is_at(kept[tp])
            state.copied += share.records
            state.size += share.size
        self._on_unit()
        return True

    async def look_up_ends(self) -> None:
        """How far there is to copy, as the source says now."""
        for tp, end in (await self._consumer.end_offsets(self._states)).items():
            self._states[tp].end = end

    @asynccontextmanager
    async def _unit(self) -> AsyncIterator[None]:
        if self._admin is not None:
            yield
            return
        async with self._producer.transaction():
            yield

    async def _next_batch(self, seconds: float) -> FetchedBatch | None:
        try:
            return await next_within(self._batches, seconds)
        except NoOffsetError as error:
            await self._lost(error)
            return None

    async def _lost(self, error: NoOffsetError) -> None:
        """The source's log does not have the offset any more."""
        tp = TopicPartition(error.topic or "", error.partition or 0)
        state = self._states[tp]
        offset = error.offset if error.offset is not None else state.next
        if offset > error.latest:
            raise MirrorError(
                f"the source ends at offset {error.latest}, before offset {offset} that was to be copied next: "
                "it was made anew, or has lost records",
                topic=tp.topic,
                partition=tp.partition,
            ) from error
        if not self._skips_lost:
            raise MirrorError(
                f"the source has deleted offsets {offset} to {error.earliest - 1} before they were copied; "
                "skip_lost (--skip-lost) goes on behind them",
                topic=tp.topic,
                partition=tp.partition,
            ) from error
        state.lost += max(0, error.earliest - offset)
        await self._consumer.seek(tp, error.earliest)

    async def _moved(self) -> list[tuple[CopyState, int]]:
        """Partitions whose end was reached behind the last record, over markers and gaps."""
        moved = []
        for state in self._states.values():
            if state.next < state.end:
                position = await self._consumer.position(state.source)
                if position > state.next:
                    moved.append((state, position))
        return moved

    async def _send(self, batch: FetchedBatch, shares: dict[TopicPartition, Share]) -> int:
        tp = TopicPartition(batch.topic, batch.partition)
        share = shares.setdefault(tp, Share(batch.next_offset))
        share.next = batch.next_offset
        if not len(batch):
            return 0
        columns = columns_of(batch)
        target = self._states[tp].target
        sent = await self._producer.enqueue_columns(
            target.topic, target.partition, columns.values, columns.keys, columns.headers, columns.timestamps
        )
        size = sum(map(len, filter(None, columns.values))) + sum(map(len, filter(None, columns.keys or ())))
        share.runs.append((columns.first, sent))
        share.records += len(columns.values)
        share.size += size
        return size + 16 * len(columns.values)

    async def _kept(self, state: CopyState, share: Share) -> Checkpoint:
        """The word after this unit; MirrorError where the target is not the one that was written to before."""
        if not share.runs:
            return state.checkpoint(share.next, state.to)
        for _, sent in share.runs:
            sent.raise_first_error()
        first, last = share.runs[0][1][0].offset, share.runs[-1][1][-1].offset
        if first < state.to:
            raise state.error(f"a copy was written at offset {first}, after others up to {state.to}: it was made anew")
        if self._admin is not None:  # without transactions nothing but a repeated batch lies between the records
            state.duplicates += last + 1 - first - share.records
        elif first > state.seen:
            await self._check_gap(state, first)
        state.seen = last + 2  # the marker of this transaction
        points: list[Point] = [(share.runs[0][0], first)]
        return state.checkpoint(share.next, last + 1, points)

    async def _check_gap(self, state: CopyState, first: int) -> None:
        """MirrorError where another program's records lie between the last copy and the one at offset ``first``."""
        is_open = False
        with anyio.move_on_after(LOOK_S):
            async with self._read_target() as target, aclosing(target.records(state.target, state.to, first)) as found:
                is_open = True
                async for record in found:
                    raise state.error(
                        f"the record at offset {record.offset} is not this mirror's: "
                        "another program, or a mirror of another name, writes to it"
                    )
            return
        why = "their transaction may be open" if is_open else "the target did not answer"
        raise RequestTimeoutError(
            f"offsets {state.to} to {first - 1} of the target, which others have written, were not read within "
            f"{LOOK_S:g} s: {why}",
            broker=await self._leader_of(state.target),
            topic=state.target.topic,
            partition=state.target.partition,
            offset=state.to,
        )

    async def _keep(self, kept: dict[TopicPartition, Checkpoint]) -> None:
        offsets = {
            self._states[tp].target: OffsetAndMetadata(each.offset, -1, each.metadata()) for tp, each in kept.items()
        }
        each = list(offsets.items())
        for first in range(0, len(each), MOST_PLACES):
            await self._commit(dict(each[first : first + MOST_PLACES]))

    async def _commit(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
        if self._admin is None:
            await self._producer.send_offsets(offsets, self._group_id)
            return
        for error in (await self._admin.alter_group_offsets(self._group_id, offsets)).values():
            raise error
