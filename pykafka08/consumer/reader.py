"""The reading end of a consumer: waits for records, takes them out of the machine, and lets the event loop breathe.

``Consumer`` gives it its public shape.  Nothing here awaits between taking a record and handing it over, so that a
cancelled call loses none.
"""

from __future__ import annotations

from itertools import islice
from operator import length_hint

import anyio
import anyio.lowlevel

from pykafka08.consumer.cursor import Cursor
from pykafka08.consumer.fetcher import Fetcher
from pykafka08.consumer.machine import ConsumerMachine, HandedOut
from pykafka08.driver import Waiter
from pykafka08.errors import ClosedError, CorruptRecordError, KafkaError
from pykafka08.records.reader import FetchedBatch
from pykafka08.records.record import Record, TopicPartition

__all__ = ["Reader", "wait_for_news"]

#: After so many records without a pause the other tasks of the event loop get a turn.
RECORDS_PER_TURN = 2048


class Reader:
    """Reads from ``machine``; ``fetcher`` is None before the consumer is entered."""

    def __init__(self, machine: ConsumerMachine) -> None:
        self.fetcher: Fetcher | None = None
        self.cursor = Cursor()
        self.is_closed = False
        self._machine = machine
        self._in_hand: HandedOut | None = None
        """A batch that a cancelled call did not take with it."""
        self._kept_error: KafkaError | None = None
        self._records_in_turn = 0

    def open_fetcher(self) -> Fetcher:
        """The fetcher, if the consumer is open and well; ClosedError or ClientFailedError if not."""
        if self.is_closed:
            raise ClosedError("the consumer is closed")
        if self.fetcher is None:
            raise ClosedError("use the consumer with 'async with'")
        self.fetcher.check()
        return self.fetcher

    def close(self) -> None:
        """End all waiting."""
        self.is_closed = True
        self.cursor.drop()
        if self.fetcher is not None:
            self.fetcher.stop()

    # Records

    async def load(self, deadline: float | None) -> bool:
        """Have records in the cursor; False if none came before the deadline."""
        while True:
            fetcher = self.open_fetcher()
            news = fetcher.news
            loaded = 0 if length_hint(self.cursor.records) else self._load_nowait()
            await self._take_turn(fetcher, loaded)
            if length_hint(self.cursor.records):
                return True
            if loaded:
                continue  # they were dropped in that turn
            if not news.is_done and not await wait_for_news(news, deadline):
                return False

    async def take(self, most: int, deadline: float | None) -> list[Record]:
        """Up to ``most`` records that are there, else the first that come; empty at the deadline."""
        records: list[Record] = []
        while not records and await self.load(deadline):
            records += islice(self.cursor.records, most)
        try:
            while len(records) < most and self._load_nowait():
                records += islice(self.cursor.records, most - len(records))
        except KafkaError as error:
            if not records:
                raise
            self._kept_error = error  # for the next call: these records must not be lost
        self._records_in_turn += len(records)
        return records

    def _load_nowait(self) -> int:
        """Have records in the cursor, if there are any: how many."""
        self._raise_kept()
        while True:
            try:
                loaded = self.cursor.load()
            except CorruptRecordError as error:
                self._damage_met(error)
                continue
            if loaded:
                return loaded
            in_hand, self._in_hand = self._in_hand or self._hand_out(), None
            if in_hand is None:
                return 0
            self.cursor.open(in_hand.batch, in_hand.start)

    def _damage_met(self, error: CorruptRecordError) -> None:
        tp, position = self.cursor.tp, self.cursor.position
        assert tp is not None
        assert position is not None
        self.cursor.drop()
        self._machine.records_damaged(tp, position, error, anyio.current_time())

    # Batches

    async def next_batch(self) -> FetchedBatch:
        """The next batch; waits for it without end."""
        if (tp := self.cursor.tp) is not None:
            # Its records were taken one by one so far, and not all: the rest comes as a batch of its own.
            self._machine.assignment.seek(tp, self.position(tp) or 0)
            self.cursor.drop()
        while True:
            fetcher = self.open_fetcher()
            news = fetcher.news
            if self._in_hand is None:
                self._raise_kept()
                self._in_hand = self._hand_out()
                await self._take_turn(fetcher, len(self._in_hand.batch) if self._in_hand is not None else 0)
            if self._in_hand is not None:
                in_hand, self._in_hand = self._in_hand, None
                return in_hand.batch
            if not news.is_done:
                await news

    def _hand_out(self) -> HandedOut | None:
        try:
            return self._machine.next_batch(anyio.current_time())
        except KafkaError:
            if self.fetcher is not None:
                self.fetcher.pump()  # the other partitions go on
            raise

    async def _take_turn(self, fetcher: Fetcher, records: int) -> None:
        """Let fetches out, and other tasks run, before ``records`` are worked on."""
        is_sent = self._machine.assignment.is_dirty and fetcher.pump()
        self._records_in_turn += records
        if is_sent or self._records_in_turn >= RECORDS_PER_TURN:
            self._records_in_turn = 0
            await anyio.lowlevel.checkpoint()

    # Positions

    def position(self, tp: TopicPartition) -> int | None:
        """The offset of the next record; None while it is looked up."""
        if self._in_hand is not None and self._in_hand.tp == tp:
            return self._in_hand.start
        return self.cursor.position if self.cursor.tp == tp else self._machine.position(tp)

    def forget(self, tp: TopicPartition) -> None:
        """What was fetched of the partition must not be read."""
        if self.cursor.tp == tp:
            self.cursor.drop()
        if self._in_hand is not None and self._in_hand.tp == tp:
            self._in_hand = None
        error = self._kept_error
        if error is not None and (error.topic, error.partition) == tuple(tp):
            self._kept_error = None

    def _raise_kept(self) -> None:
        error, self._kept_error = self._kept_error, None
        if error is not None:
            raise error


async def wait_for_news(news: Waiter[None], deadline: float | None) -> bool:
    """True when there are news, False at the deadline."""
    if deadline is None:
        await news
        return True
    with anyio.CancelScope(deadline=deadline):
        await news
        return True
    return False
