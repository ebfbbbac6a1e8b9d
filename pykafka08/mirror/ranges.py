"""Reading a stretch of one partition: for comparing what is there, and counting records between two offsets."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import anyio

from pykafka08.consumer.batches import Batches
from pykafka08.consumer.consumer import Consumer
from pykafka08.records.reader import FetchedBatch
from pykafka08.records.record import Record, TopicPartition

__all__ = ["Ranges", "next_within"]

PATIENCE_S = 0.05
"""How long no batch may come before it is looked whether the end was reached: markers and gaps at the end are none."""


async def next_within(batches: Batches, seconds: float) -> FetchedBatch | None:
    """The next batch, None if none is there in time; what was fetched by then stays for the next call."""
    with anyio.move_on_after(seconds):
        return await anext(batches)
    return None


class Ranges:
    """A reader of stretches of one cluster's partitions; it sees committed records alone."""

    def __init__(self, bootstrap_servers: Any, settings: dict[str, Any]) -> None:
        self._consumer = Consumer(
            bootstrap_servers=bootstrap_servers,
            **{**settings, "isolation_level": "read_committed", "auto_offset_reset": "earliest"},
        )
        self._batches = self._consumer.batches()

    async def __aenter__(self) -> Ranges:
        await self._consumer.__aenter__()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._consumer.__aexit__(*exc_info)

    async def bounds(
        self, partitions: list[TopicPartition]
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
        """The first offset of each, and the one after its last committed record."""
        if not partitions:
            return {}, {}
        return await self._consumer.beginning_offsets(partitions), await self._consumer.end_offsets(partitions)

    async def batches(self, tp: TopicPartition, start: int, end: int) -> AsyncGenerator[FetchedBatch, None]:
        """The batches that have offsets from ``start`` to before ``end``; the last may reach beyond it."""
        consumer = self._consumer
        consumer.assign([tp])
        try:
            await consumer.seek(tp, start)
            while start < end:
                batch = await next_within(self._batches, PATIENCE_S)
                if batch is None:
                    start = max(start, await consumer.position(tp))
                    continue
                start = batch.next_offset
                if batch.base_offset < end:
                    yield batch
        finally:
            consumer.assign([])

    async def records(self, tp: TopicPartition, start: int, end: int) -> AsyncGenerator[Record, None]:
        """The records from ``start`` to before ``end``."""
        async with aclosing(self.batches(tp, start, end)) as batches:
            async for batch in batches:
                for record in batch:
                    if start <= record.offset < end:
                        yield record
