"""Reads ranges of offsets on an executor as Arrow record batches in Spark's columns.

The next fetch is on its way before the last answer is decoded, and lies in the kernel's buffers when it is wanted.  A
range ends by position, not by count: offsets have holes.  What error codes mean is the consumer's own table
(``consumer.reactions``); what a lost offset means is ``failOnDataLoss``.

Memory: one answer that is decoded, one that is on its way, and one RecordBatch, in the Python worker.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from anyio.lowlevel import checkpoint

from pykafka08.cluster.client import Client, Purpose
from pykafka08.config import ClientConfig
from pykafka08.consumer.actions import OffsetAsk
from pykafka08.consumer.chunk import Chunk, backward_error
from pykafka08.consumer.partition import EARLIEST, LATEST
from pykafka08.consumer.reactions import Reaction, reaction_to, reaction_to_failure
from pykafka08.consumer.requests import ListOffsetsCall
from pykafka08.driver import Waiter, Wakeup, clock, library_logger
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import ClosedError, KafkaError, RecordTooLargeError, RequestTimeoutError
from pykafka08.errors.broker import broker_error
from pykafka08.errors.deadline import at_deadline
from pykafka08.protocol.messages.fetch import FetchResponse
from pykafka08.records.frontier import read_entries
from pykafka08.records.reader import FetchedBatch
from pykafka08.records.record import TopicPartition
from pykafka08.records.scratch import keep_freed_pages
from pykafka08.spark.data_loss import report_data_loss
from pykafka08.spark.fetching import Asked, Fetched, FetchTerms, Place, RangeFetch, pick
from pykafka08.spark.ranges import Range, ReadSettings, ReadTask
from pykafka08.spark.rows import MAX_BYTES, MAX_ROWS, Rows, cut, default_columns
from pykafka08.spark.runtime import runtime

if TYPE_CHECKING:
    import pyarrow

__all__ = ["read_ranges"]

log = library_logger("spark")

LEAST_FETCH_BYTES = 512 * 1024
"""Asked of a leader at least, however many share the task's bytes."""
SETTLING_S = 10.0
"""How long a partition may be unknown, or end before its range does, before that is believed: leaders change.

Half of the task's patience where that is less, so that lost data is told as such, and not as a time-out.
"""
WAIT_SHARE = 1 / 4
HOLD_SHARE = 1 / 8
"""Of that patience, how long one answer and one backoff may take: in its second half there is an answer to go by."""


_averages: dict[tuple[ClientConfig, str], float] = {}
"""Bytes of a record, by cluster and topic, as this worker's tasks have found: what a micro-batch fetches beyond its
small ranges is fetched for nothing."""


def read_ranges(task: ReadTask, columns: Sequence[str] | None = None) -> Iterator[pyarrow.RecordBatch]:
    """The records of the task's ranges; of each partition in the order of offsets, partitions in any.

    ``columns`` names those that are made, in their order; all if it is None.

    A batch has at most 32,768 rows and some 16 MiB.  RequestTimeoutError with topic, partition and offset when a
    range makes no progress for ``poll_timeout_ms``, or SecurityError if its leader refuses this client; DataLossError
    by ``failOnDataLoss``; CorruptRecordError; BrokerError for what waiting cannot mend.
    """
    keep_freed_pages()
    present = runtime()
    rows = Rows(default_columns(include_headers=task.settings.include_headers) if columns is None else columns)
    reading = _Reading(present.client(task.settings.client), task)
    try:
        while fetched := present.run(reading.next_answers()):
            for each in fetched:
                yield from _decoded(each, rows, task)
    finally:
        present.run(reading.aclose())


def _decoded(fetched: Fetched, rows: Rows, task: ReadTask) -> Iterator[pyarrow.RecordBatch]:
    """The rows of one partition's answer."""
    asked = fetched.place.range
    tp, records, behind = TopicPartition(asked.topic, asked.partition), fetched.records, None
    frontier, _, backward_at = read_entries(records)
    if frontier is not None and backward_at is not None:
        behind = backward_error(tp, frontier, int.from_bytes(records[backward_at : backward_at + 8], "big"))
        records = records[:backward_at]
    chunk = Chunk(
        records,
        tp,
        fetched.offset,
        fetched.next_offset or fetched.offset,
        aborted=fetched.aborted,
        check_crcs=task.settings.consumer.check_crcs,
        max_unpacked_bytes=task.settings.consumer.max_unpacked_bytes,
        behind=behind,
    )
    group: list[FetchedBatch] = []
    count = size = 0
    while (batch := chunk.next_batch()) is not None and batch.base_offset < asked.end:
        if group and (count + len(batch) > MAX_ROWS or size + batch.unpacked_bytes > MAX_BYTES):
            yield from cut(rows.make(group, asked.end))
            group, count, size = [], 0, 0
        group.append(batch)
        count += len(batch)
        size += batch.unpacked_bytes
    if group:
        yield from cut(rows.make(group, asked.end))


def _terms(settings: ReadSettings) -> FetchTerms:
    consumer = settings.consumer
    return FetchTerms(
        is_committed_only=consumer.isolation_level == "read_committed",
        max_wait_ms=min(consumer.fetch_max_wait_ms, int(settings.poll_timeout_ms * WAIT_SHARE)),
        min_bytes=consumer.fetch_min_bytes,
        rack=consumer.client_rack or "",
    )


class _Reading:
    """The fetches of one task: one at a time to each broker."""

    def __init__(self, client: Client, task: ReadTask) -> None:
        self._client = client
        self._settings = task.settings
        self._patience = task.settings.poll_timeout_ms / 1000
        self._settling = min(SETTLING_S, self._patience / 2)
        self._terms = _terms(task.settings)
        self._ranges = [each for each in task.ranges if each.start < each.end]
        self._places: list[Place] | None = None
        self._pending: dict[int, RangeFetch] = {}
        self._answers: list[tuple[int, RangeFetch, Waiter[FetchResponse]]] = []
        self._suspects: list[Place] = []
        self._wakeup = Wakeup()

    async def next_answers(self) -> list[Fetched]:
        """The next partitions with records; the fetches after them are sent.  Empty when every range is read."""
        self._now = clock()
        if self._places is None:
            await self._begin()
        while True:
            self._client.tasks.check()
            taken = self._take_answers()
            await self._look_at_suspects()
            self._note_done()
            self._send()
            if taken or not self._places:
                await checkpoint()  # what was submitted is written in the loop's next turn
                return taken
            await self._wakeup.wait(self._wait_until())
            self._check_progress()

    async def aclose(self) -> None:
        """Close the connections whose answers nobody will read."""
        for node in self._pending:
            self._client.hang_up(node, Purpose.FETCH, ClosedError("the task has ended"))
        await checkpoint()

    async def _begin(self) -> None:
        now = self._now()
        config = self._settings.client
        self._places = [Place(each, now, _averages.get((config, each.topic), 0.0)) for each in self._ranges]
        topics = {each.topic for each in self._ranges}
        self._client.use_topics(topics)
        while any(topic not in self._client.metadata.topics for topic in topics):
            await self._client.refresh(timeout=self._patience)

    def _note_done(self) -> None:
        """Ranges that are read need nothing any more, but tell how large records are."""
        for place in self._open_places():
            if place.is_done and place.average_bytes:
                _averages[self._settings.client, place.range.topic] = place.average_bytes
        self._places = [place for place in self._open_places() if not place.is_done]

    def _open_places(self) -> list[Place]:
        return self._places or []

    # --- sending ----------------------------------------------------------------------------------------------------

    def _send(self) -> None:
        """A fetch to every broker that has none and has something to read."""
        snapshot, now = self._client.metadata, self._now()
        of_nodes: dict[int, list[Place]] = {}
        is_leaderless = False
        for place in self._open_places():
            leader = snapshot.leader(place.range.topic, place.range.partition)
            if self._is_other_topic(place):
                self._suspect(place)
            elif leader is None:
                is_leaderless = True
                if now - place.progressed_at > self._settling:
                    self._suspect(place)
            elif place.not_before <= now:
                of_nodes.setdefault(leader if place.replica is None else place.replica, []).append(place)
        if is_leaderless:
            self._client.invalidate(snapshot.generation)
        most = self._settings.fetch_bytes
        budget = max(most // max(1, len(of_nodes)), min(most, LEAST_FETCH_BYTES))
        for node, places in of_nodes.items():
            if node not in self._pending:
                self._fetch(node, pick(places, budget, self._settings.partition_fetch_bytes), budget)

    def _fetch(self, node: int, picked: list[tuple[Place, int]], budget: int) -> None:
        snapshot = self._client.metadata
        asked = [
            Asked(
                place,
                place.position,
                wanted,
                snapshot.leader_epoch(place.range.topic, place.range.partition),
                place.range.topic_id or snapshot.topic_id(place.range.topic),
            )
            for place, wanted in picked
        ]
        fetch = RangeFetch(asked, self._terms, max_bytes=max(budget, *(wanted for _, wanted in picked)))
        self._pending[node] = fetch
        timeout = (self._client.config.request_timeout_ms + self._terms.max_wait_ms) / 1000
        waiter = self._client.submit(node, fetch, timeout=timeout, purpose=Purpose.FETCH)
        waiter.add_done_callback(partial(self._answered, node, fetch))

    def _answered(self, node: int, fetch: RangeFetch, waiter: Waiter[FetchResponse]) -> None:
        self._answers.append((node, fetch, waiter))
        self._wakeup.set()

    # --- answers ----------------------------------------------------------------------------------------------------

    def _take_answers(self) -> list[Fetched]:
        """What has come: places move on, errors are dealt with; the partitions with records."""
        answers, self._answers = self._answers, []
        taken = []
        for node, fetch, waiter in answers:
            del self._pending[node]
            if waiter.error is not None:
                self._failed(fetch, waiter.error)
                continue
            for each in fetch.read(waiter.result()):
                if each.offset != each.place.position:
                    continue  # a new leader was asked for the same meanwhile, and has answered
                if each.error_code and each.place.replica is not None:
                    self._leave_replica(each.place)
                elif each.error_code:
                    self._refused(each)
                elif each.preferred_replica >= 0 and not len(each.records):
                    self._follow(each.place, each.preferred_replica)
                elif each.next_offset is not None and each.next_offset > each.offset:
                    each.place.advance(each.next_offset, len(each.records), self._now())
                    taken.append(each)
                elif len(each.records) and each.cut_off_size is None:
                    self._hold(each.place)
                    taken.append(each)  # damage: decoding tells what it is
                else:
                    self._came_empty(each)
        return taken

    def _failed(self, fetch: RangeFetch, error: BaseException) -> None:
        """There was no answer."""
        if not isinstance(error, KafkaError) or reaction_to_failure(error) is Reaction.RAISE:
            raise error
        log.info("spark.fetch_failed", cause=str(error))
        self._client.invalidate(self._client.metadata.generation)
        for place in fetch.places:
            self._leave_replica(place)

    def _follow(self, place: Place, replica: int) -> None:
        """The leader names a replica in the reader's rack."""
        if replica in self._client.metadata.brokers:
            place.replica = replica
        else:
            self._client.invalidate(self._client.metadata.generation)
            self._hold(place)

    def _leave_replica(self, place: Place) -> None:
        """Ask the leader next: it knows whether what a replica says is true, and which one to read from then."""
        place.replica = None
        self._hold(place)

    def _refused(self, fetched: Fetched) -> None:
        place = fetched.place
        reaction = reaction_to(fetched.error_code)
        if reaction in (Reaction.RAISE, Reaction.RAISE_ONCE):
            raise broker_error(
                fetched.error_code, api="Fetch", topic=place.range.topic, partition=place.range.partition
            )
        if reaction in (Reaction.REFRESH, Reaction.REFRESH_THEN_RAISE):
            self._client.invalidate(self._client.metadata.generation)
        self._hold(place)
        is_over = self._now() - place.progressed_at > self._settling
        if reaction is Reaction.RESET or (reaction is Reaction.REFRESH_THEN_RAISE and is_over):
            self._suspect(place)

    def _came_empty(self, fetched: Fetched) -> None:
        """Without an error: an entry larger than the fetch, a request that was full, or a log that ends here."""
        place, size = fetched.place, fetched.cut_off_size
        if size is not None:
            if size > self._client.config.receive_message_max_bytes:
                raise RecordTooLargeError(
                    f"{place.name}: the batch at offset {fetched.offset} has {size} bytes, more than "
                    f"receive_message_max_bytes={self._client.config.receive_message_max_bytes}",
                    topic=place.range.topic,
                    partition=place.range.partition,
                    offset=fetched.offset,
                )
            place.grow(size)
            return
        if fetched.high_watermark <= fetched.offset:
            self._leave_replica(place)
            if self._now() - place.progressed_at > self._settling:
                self._suspect(place)

    def _hold(self, place: Place) -> None:
        """Ask again after a backoff that grows."""
        config = self._client.config
        pause = min(config.retry_backoff_ms * 2**place.attempts, config.retry_backoff_max_ms) / 1000
        place.attempts += 1
        place.not_before = self._now() + min(pause, self._patience * HOLD_SHARE)

    # --- time -------------------------------------------------------------------------------------------------------

    def _wait_until(self) -> float:
        """When to look again though no answer came."""
        now = self._now()
        places = self._open_places()
        held = [place.not_before for place in places if place.not_before > now]
        # A place without a leader waits for metadata, which wakes nobody here.
        return min([*held, now + 0.1, *(place.progressed_at + self._patience for place in places)])

    def _check_progress(self) -> None:
        now = self._now()
        for place in self._open_places():
            if now - place.progressed_at > self._patience:
                leader = self._client.metadata.leader(place.range.topic, place.range.partition)
                broker = self._client.metadata.brokers.get(leader) if leader is not None else None
                late = RequestTimeoutError(
                    f"Cannot fetch record for offset {place.position} of {place.name} in "
                    f"{self._settings.poll_timeout_ms} milliseconds",
                    broker=broker.name if broker is not None else None,
                    topic=place.range.topic,
                    partition=place.range.partition,
                    offset=place.position,
                )
                raise at_deadline(late, self._client.refusal(None if leader is None else [leader]))

    # --- lost data --------------------------------------------------------------------------------------------------

    def _is_other_topic(self, place: Place) -> bool:
        """True if the topic of the plan was deleted and made again."""
        known = self._client.metadata.topic_id(place.range.topic)
        return place.range.topic_id is not None and known is not None and known != place.range.topic_id

    def _is_gone(self, asked: Range) -> bool:
        """True if the cluster says so; not if the topic has another error for the moment."""
        snapshot = self._client.metadata
        error = snapshot.topic_error(asked.topic)
        is_known = asked.partition in snapshot.partitions(asked.topic)
        return not is_known and error in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def _suspect(self, place: Place) -> None:
        if place not in self._suspects:
            self._suspects.append(place)

    async def _look_at_suspects(self) -> None:
        """Ask where the partitions begin and end whose records do not come; move over what is lost, or raise."""
        suspects, self._suspects = self._suspects, []
        if suspects:  # a worker's metadata can be older than the plan
            await self._client.refresh(timeout=self._patience)
        for place in suspects:
            asked = place.range
            if self._is_other_topic(place):
                self._lose(place, asked.end, f"the topic {asked.topic} was deleted and created again")
                continue
            leader = self._client.metadata.leader(asked.topic, asked.partition)
            if self._is_gone(asked):
                self._lose(place, asked.end, f"the partition {place.name} is gone")
            elif leader is not None:
                earliest, latest = await self._bounds(leader, place)
                if place.position < earliest:
                    self._lose(place, min(earliest, asked.end), f"{place.name} begins at offset {earliest} now")
                elif latest < asked.end:
                    self._lose(place, asked.end, f"{place.name} ends at offset {latest} now")

    def _lose(self, place: Place, to: int, why: str) -> None:
        """Go on at ``to``, if losing what lies before is no failure."""
        report_data_loss(
            f"The offsets {place.position} to {to - 1} of {place.name} cannot be read: {why}",
            is_failure=self._settings.fail_on_data_loss,
            topic=place.range.topic,
            partition=place.range.partition,
            offset=place.position,
        )
        place.advance(to, 0, self._now())

    async def _bounds(self, leader: int, place: Place) -> tuple[int, int]:
        """The partition's first offset, and the one after its last; the place's own where the broker does not say."""
        tp = TopicPartition(place.range.topic, place.range.partition)
        timeout = self._client.config.request_timeout_ms / 1000
        found = []
        for timestamp, otherwise in ((EARLIEST, place.position), (LATEST, place.range.end)):
            call = ListOffsetsCall([OffsetAsk(tp, timestamp)], is_committed_only=False, timeout=timeout)
            try:
                listed = call.read(await self._client.request(leader, call))
            except KafkaError as error:
                log.info("spark.bounds_failed", cause=str(error))
                listed = []
            is_known = bool(listed) and listed[0].error_code == ErrorCode.NONE
            found.append(listed[0].offset if is_known else otherwise)
        return found[0], found[1]
