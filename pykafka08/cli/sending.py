"""From standard input to the brokers: what ``produce`` does once its options are understood."""

from __future__ import annotations

import time
from collections import deque
from contextlib import suppress
from functools import partial

from pykafka08.cli.exits import DONE, Interrupt
from pykafka08.cli.notes import note
from pykafka08.cli.produce import Plan, record_of
from pykafka08.cli.progress import Progress, shown_size
from pykafka08.cli.streams import read_chunks, split_lines, standard_input
from pykafka08.errors import BufferFullError
from pykafka08.producer.delivery import Delivery
from pykafka08.producer.producer import Producer

__all__ = ["send_lines"]


class Sender:
    """Hands lines to the producer and sees to it that each is acknowledged, in order."""

    def __init__(self, producer: Producer, plan: Plan, progress: Progress) -> None:
        self.lines = 0
        self.acknowledged = 0
        self.size = 0
        self._producer = producer
        self._plan = plan
        self._progress = progress
        self._pending: deque[Delivery] = deque()

    async def take(self, lines: list[bytes]) -> None:
        for line in lines:
            key, value = record_of(line, self.lines + 1, self._plan)
            self._pending.append(await self._enqueue(key, value))
            self.lines += 1
            self.size += len(line)
        await self._settle(only_done=True)

    async def finish(self) -> None:
        """Return when every line is acknowledged; raises the first failure."""
        await self._settle(only_done=False)

    async def _enqueue(self, key: bytes | None, value: bytes | None) -> Delivery:
        plan = self._plan
        enqueue = partial(
            self._producer.enqueue, plan.topic, value, key=key, partition=plan.partition, headers=plan.headers
        )
        while True:
            with suppress(BufferFullError):
                return enqueue()
            await self._producer.ready()

    async def _settle(self, *, only_done: bool) -> None:
        pending = self._pending
        while pending and (pending[0].is_done or not only_done):
            await pending[0]
            pending.popleft()
            self.acknowledged += 1
        self._progress.update(self.acknowledged, self.size)


async def send_lines(plan: Plan, interrupt: Interrupt) -> int:
    """Until the input ends or a signal comes; then until every line that was read is acknowledged."""
    source, progress = standard_input(), Progress.on_terminal()
    start = time.monotonic()
    async with Producer(**plan.settings) as producer:
        sender = Sender(producer, plan, progress)
        try:
            try:
                with interrupt.part():
                    async for lines in split_lines(read_chunks(source)):
                        await sender.take(lines)
            finally:
                await sender.finish()  # also the lines before one that cannot be sent
        finally:
            progress.clear()
            note(_summary(sender, time.monotonic() - start))
    return DONE


def _summary(sender: Sender, seconds: float) -> str:
    rate = sender.acknowledged / max(seconds, 1e-9)
    text = f"{sender.acknowledged:,} records, {shown_size(sender.size)}, {seconds:.2f} s, {rate:,.0f} records/s"
    missing = sender.lines - sender.acknowledged
    return f"{text}; {missing:,} not acknowledged" if missing else text
