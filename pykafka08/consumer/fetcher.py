"""The driver beside the consumer's machine: sends its fetches and offset look-ups, feeds it the answers, wakes readers.

A fault in here ends a task of the client, and with it the client, in the open: what fails where an answer arrives is
raised in such a task by the connection, what came of other requests is put aside and taken in by the driver's task.
The next fetch is on its way before a reader is woken to decode the last one, unless that is decoded sooner than the
fetch is made: who follows a slow topic is given each record at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio

from pykafka08.cluster.client import Client, Purpose
from pykafka08.cluster.metadata import Snapshot
from pykafka08.config import ConsumerConfig
from pykafka08.consumer.actions import (
    Action,
    CutOff,
    Note,
    RefreshMetadata,
    SendEpochs,
    SendFetch,
    SendListOffsets,
    StartAnew,
)
from pykafka08.consumer.machine import ConsumerMachine
from pykafka08.consumer.requests import FetchCall, ListOffsetsCall, ask_epochs, found_epochs
from pykafka08.consumer.session import FetchSession
from pykafka08.driver import Driver, TaskScope, Waiter, clock, library_logger
from pykafka08.errors import KafkaError
from pykafka08.protocol.messages.fetch import FetchResponse
from pykafka08.records.record import TopicPartition
from pykafka08.records.scratch import keep_freed_pages

__all__ = ["Fetcher"]

log = library_logger("consumer")

LOOK_SECONDS = 1.0
"""Seconds between two checks for partitions that cannot be read."""
HURRIED_BYTES = 4096
"""Records of an answer up to which a reader comes before the next fetch."""


class Fetcher:
    """Performs what ``machine`` says, from :meth:`start` until the client closes."""

    def __init__(self, client: Client, machine: ConsumerMachine, config: ConsumerConfig) -> None:
        self._client = client
        self._machine = machine
        self._config = config
        self.now = clock()
        self._on_start_anew: list[Callable[[TopicPartition], None]] = []
        self._on_cut_off: list[Callable[[TopicPartition, int], None]] = []
        self._inbox: list[Callable[[float], None]] = []
        self._sessions: dict[int, FetchSession] = {}
        self.answered_at: float | None = None
        """When a broker has answered a fetch last, in seconds of the event loop's clock."""
        self._news: Waiter[None] = Waiter()
        self._is_hurried = False
        self._log = log.bind(**client.facts)
        self._scope = TaskScope()
        self._watch_scope = TaskScope()
        self._driver: Driver[Action | WakeReaders] = Driver(self, self._perform)
        self._perform_of: dict[type, Callable[[Any], object]] = {
            SendFetch: self._send_fetch,
            SendListOffsets: self._send_list_offsets,
            SendEpochs: self._send_epochs,
            RefreshMetadata: lambda action: client.invalidate(action.generation),
            StartAnew: lambda action: [callback(action.tp) for callback in self._on_start_anew],
            CutOff: lambda action: [callback(action.tp, action.end_offset) for callback in self._on_cut_off],
            Note: lambda action: self._log.warning(action.event, **action.facts),
            WakeReaders: lambda _: self.wake_readers(),
        }
        self._is_committed_only = config.isolation_level == "read_committed"

    def start(self) -> None:
        """Begin to fetch."""
        keep_freed_pages()
        self._machine.metadata_changed(self._client.metadata)
        self._client.on_metadata(self._metadata_changed)
        self._client.tasks.on_failure(lambda _: self.wake_readers())
        self._client.tasks.start("fetcher", self._run)
        self._client.tasks.start("trouble of partitions", self._watch_trouble)

    async def _run(self) -> None:
        with self._scope.entered():
            await self._driver.run()

    async def _watch_trouble(self) -> None:
        """Warn of partitions that cannot be read."""
        with self._watch_scope.entered():
            while True:
                await anyio.sleep(LOOK_SECONDS)
                note = self._machine.trouble.look(self.now())
                if note is not None:
                    self._perform(note)

    def stop(self) -> None:
        """Fetch no more, and end all waiting."""
        self._scope.cancel()
        self._watch_scope.cancel()
        self.wake_readers()

    def on_start_anew(self, callback: Callable[[TopicPartition], None]) -> None:
        """Call ``callback(tp)`` when its topic was made again, before anything of the new one is fetched."""
        self._on_start_anew.append(callback)

    def on_cut_off(self, callback: Callable[[TopicPartition, int], None]) -> None:
        """Call ``callback(tp, end_offset)`` when a log was cut, before anything of what follows there is fetched."""
        self._on_cut_off.append(callback)

    # For readers

    @property
    def news(self) -> Waiter[None]:
        """Ends when something changes that a reader may wait for: take it before looking, await it after."""
        return self._news

    def check(self) -> None:
        """Raise if a background task of the client has died."""
        self._client.tasks.check()

    def check_affinity(self) -> None:
        """WrongEventLoopError in another thread, event loop or process than the client was opened in."""
        self._client.tasks.check_affinity()

    def wake_readers(self) -> None:
        """Something has changed."""
        news, self._news = self._news, Waiter()
        news.set_result(None)

    def lets_reader_first(self) -> bool:
        """True, once, after an answer that is read sooner than the next fetch is made: that goes in the next turn."""
        is_hurried, self._is_hurried = self._is_hurried, False
        return is_hurried

    def pump(self) -> bool:
        """Do at once what the driver's task would do in its turn; True if a request was made."""
        before = self._machine.next_wakeup()
        actions = self.poll(self.now())
        for action in actions:
            self._perform(action)
        if self._machine.next_wakeup() != before:
            self._driver.wake()
        return any(isinstance(action, (SendFetch, SendListOffsets, SendEpochs)) for action in actions)

    # The loop of the driver

    def poll(self, now: float) -> list[Action | WakeReaders]:
        self._is_hurried = False
        inbox, self._inbox = self._inbox, []
        for take_in in inbox:
            take_in(now)
        actions: list[Action | WakeReaders] = [*self._machine.poll(now)]
        if inbox:
            # Last: a reader that decodes holds up the sending of what stands before.
            actions.append(WakeReaders())
        return actions

    def next_wakeup(self) -> float | None:
        return self._machine.next_wakeup()

    def _take_in(self, news: Callable[[float], None]) -> None:
        self._inbox.append(news)
        self._driver.wake()

    def _metadata_changed(self, snapshot: Snapshot) -> None:
        # At once: commits go by the newest topic ids of the client, and positions in a topic that was made again would
        # be committed under its new id until the turn of our driver.
        self._machine.metadata_changed(snapshot)
        for note in self._machine.assignment.take_notes():
            self._perform(note)
        self._take_in(_nothing)

    def _perform(self, action: Action | WakeReaders) -> None:
        self._perform_of[type(action)](action)

    def _send_fetch(self, fetch: SendFetch) -> None:
        self._log.debug("fetch.send", node_id=fetch.node_id, partitions=len(fetch.asks), max_wait=fetch.max_wait)
        session = self._sessions.setdefault(fetch.node_id, FetchSession())
        call = FetchCall(
            fetch,
            session,
            min_bytes=self._config.fetch_min_bytes,
            is_committed_only=self._is_committed_only,
            rack=self._config.client_rack or "",
        )
        timeout = fetch.max_wait + self._client.config.request_timeout_ms / 1000
        waiter = self._client.submit(fetch.node_id, call, timeout=timeout, purpose=Purpose.FETCH)

        def take_in_failure(now: float) -> None:
            assert waiter.error is not None
            call.fail()
            self._machine.fetch_failed(fetch, _own(waiter.error), now)

        def ended(_: object) -> None:
            # A request may fail while it is sent, which is amid a list of actions; an answer comes by itself.
            if waiter.error is not None:
                self._take_in(take_in_failure)
            else:
                self._fetch_answered(fetch, call, waiter.result())

        waiter.add_done_callback(ended)

    def _fetch_answered(self, fetch: SendFetch, call: FetchCall, response: FetchResponse) -> None:
        now = self.answered_at = self.now()
        partitions = call.read(response)
        self._log.debug("fetch.answered", node_id=fetch.node_id, partitions=len(partitions), **call.facts)
        self._machine.fetch_answered(fetch, partitions, now, is_capped=call.is_capped, is_partial=call.is_partial)
        news, brokers = call.leaders(response)
        if news:
            self._client.leaders_learned(news, brokers)
        if 0 < sum(len(each.records) for each in partitions if each.records) <= HURRIED_BYTES:
            self._is_hurried = True
            self.wake_readers()
            self._driver.wake()
        else:
            self._take_in(_nothing)

    def _send_list_offsets(self, listing: SendListOffsets) -> None:
        self._log.debug("list_offsets.send", node_id=listing.node_id, partitions=len(listing.asks))
        timeout = self._client.config.request_timeout_ms / 1000
        call = ListOffsetsCall(listing.asks, is_committed_only=self._is_committed_only, timeout=timeout)
        waiter = self._client.submit(listing.node_id, call, timeout=timeout)

        def take_in(now: float) -> None:
            if waiter.error is not None:
                self._machine.listing_failed(listing, _own(waiter.error), now)
            else:
                self._machine.offsets_listed(listing, call.read(waiter.result()), now)

        waiter.add_done_callback(lambda _: self._take_in(take_in))

    def _send_epochs(self, question: SendEpochs) -> None:
        self._log.debug("epochs.send", node_id=question.node_id, partitions=len(question.asks))
        timeout = self._client.config.request_timeout_ms / 1000
        waiter = self._client.submit(question.node_id, ask_epochs(question.asks), timeout=timeout)

        def take_in(now: float) -> None:
            if waiter.error is not None:
                self._machine.epochs_failed(question, _own(waiter.error), now)
            else:
                self._machine.epochs_answered(question, found_epochs(waiter.result()), now)

        waiter.add_done_callback(lambda _: self._take_in(take_in))


def _nothing(_: float) -> None:
    """What is put aside of news that were taken in where they arrived: readers are woken after what is to be sent."""


class WakeReaders:
    """The action after all others: answers were taken in."""


def _own(error: BaseException) -> KafkaError:
    """``error`` as one of the library's; anything else is a fault in the library, and raised."""
    if isinstance(error, KafkaError):
        return error
    raise error
