"""The consumer's decisions: what is fetched next, what an answer means.

No I/O and no clock; ``now`` is monotonic seconds.  What happens to a partition::

    assigned --> located (ListOffsets) --> compared (OffsetForLeaderEpoch) --> fetched --> handed out
                    ^                          ^                                 |
                    |                          +------ new leader epoch ---------+
                    +---- out of range, log cut, topic made again ---------------+

A request's answer counts only for partitions whose epoch has not changed since it was sent: seek, pause, a new leader
and damaged records change it.  What an error code means is in ``reactions``, which partitions share a fetch in
``plan``, which partitions are read in ``assignment`` and from where in ``locating``, what is handed out in ``handing``,
which records an application may see in ``chunk``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence

from pykafka08.backoff import pause_after
from pykafka08.cluster.metadata import Snapshot
from pykafka08.config import ClientConfig, ConsumerConfig
from pykafka08.consumer.actions import (
    Action,
    EpochAsk,
    FetchAsk,
    FetchedPartition,
    FoundEpoch,
    ListedOffset,
    OffsetAsk,
    RefreshMetadata,
    SendEpochs,
    SendFetch,
    SendListOffsets,
)
from pykafka08.consumer.answer_checks import LEFT_OUT, epoch_fault, fetch_fault, listing_fault
from pykafka08.consumer.chunk import Answer, Chunk, backward_error
from pykafka08.consumer.handing import Handing
from pykafka08.consumer.locating import place
from pykafka08.consumer.partition import PartitionState
from pykafka08.consumer.plan import FetchPlanner
from pykafka08.consumer.reactions import Reaction, reaction_to, reaction_to_failure
from pykafka08.consumer.trouble import Send, TroubleWatch
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import (
    CorruptRecordError,
    KafkaError,
    RecordTooLargeError,
    RemoteProtocolError,
    UnsupportedVersionError,
    broker_error,
)
from pykafka08.records.frontier import read_entries
from pykafka08.records.reader import first_entry_size, only_partial

__all__ = ["ConsumerMachine"]


class ConsumerMachine(Handing):
    """One consumer.

    :attr:`assignment` takes what the application asks for; the inputs here are named after what happened;
    :meth:`poll` says what to send, :meth:`next_batch` hands out what came.  ``jitter`` gives numbers from 0 to 1.
    """

    def __init__(self, config: ConsumerConfig, client: ClientConfig, jitter: Callable[[], float]) -> None:
        super().__init__(config, client)
        self._planner = FetchPlanner(config)
        self._config = config
        self._jitter = jitter
        self._lease = client.metadata_max_age_ms / 1000
        self._is_stale = False
        self._wake_at: float | None = None
        self.trouble = TroubleWatch(self.assignment)

    # What happened

    def metadata_changed(self, snapshot: Snapshot) -> None:
        self.assignment.metadata_changed(snapshot)

    def fetch_answered(
        self,
        fetch: SendFetch,
        answers: Iterable[FetchedPartition],
        now: float,
        *,
        is_capped: bool,
        is_partial: bool = False,
    ) -> None:
        """``is_capped``: this broker keeps an answer below the asked ``max_bytes`` (Fetch v3 and later).

        ``is_partial``: partitions that are not named have nothing new; otherwise each must be.
        """
        self.trouble.ended(fetch)
        by_tp = {answer.tp: answer for answer in answers}
        self.assignment.is_dirty = True
        standing = self._planner.landed(fetch)
        self._planner.broker_answered(fetch.node_id, is_capped=is_capped)
        asks: Iterable[FetchAsk] = fetch.asks
        if standing is not None and is_partial and is_capped and not self.assignment.is_shaken:
            asks = standing.answered(by_tp, self.assignment.states)  # the others stay as they are
        else:
            self.assignment.shake()
        whole = Answer(sum(len(answer.records) for answer in by_tp.values() if answer.records))
        jitter = self._jitter()
        for ask in asks:
            state = self.assignment.owner(ask)
            if state is None:
                continue
            answer = by_tp.get(ask.tp)
            if answer is None:
                if is_partial:
                    self.assignment.allow(state.tp)
                    state.be_healthy()
                    continue
                self._answer_unusable(state, LEFT_OUT, "Fetch", now, jitter)
                continue
            if answer.error_code:
                self._fetch_refused(state, ask, answer.error_code, now, jitter)
                continue
            if (fault := answer.fault or fetch_fault(answer, ask, fetch.node_id)) is not None:
                self._answer_unusable(state, fault, "Fetch", now, jitter)
                continue
            if answer.preferred_replica >= 0:
                self._redirected(state, answer.preferred_replica, now)
                continue
            self.assignment.allow(state.tp)
            state.is_served(answer.end_offset)
            if answer.diverging is not None:
                self.assignment.compare_logs(state, answer.diverging)
                continue
            if answer.records:
                self._keep(state, answer, whole)
            if answer.records or not is_capped:
                self.assignment.put_last(ask.tp)

    def _redirected(self, state: PartitionState, node_id: int, now: float) -> None:
        """Read from the replica that the broker names; if a replica names another one, wait as long as for a retry."""
        self.assignment.is_shaken = True
        if state.follower is not None or not self.assignment.read_from(state, node_id, now + self._lease):
            state.follower = None
            state.retry_at = now + self._client.retry_backoff_ms / 1000
            self._is_stale = True

    def fetch_failed(self, fetch: SendFetch, error: KafkaError, now: float) -> None:
        self.trouble.ended(fetch)
        self._planner.landed(fetch)
        self._request_failed(fetch.asks, error, now)

    def offsets_listed(self, listing: SendListOffsets, answers: Iterable[ListedOffset], now: float) -> None:
        self.trouble.ended(listing)
        self.assignment.shake()
        by_tp = {answer.tp: answer for answer in answers}
        jitter = self._jitter()
        for ask in listing.asks:
            state = self.assignment.owner(ask)
            if state is None:
                continue
            answer = by_tp.get(ask.tp)
            if answer is None:
                self._answer_unusable(state, LEFT_OUT, "ListOffsets", now, jitter)
            elif answer.error_code:
                self._code_received(state, answer.error_code, "ListOffsets", now, jitter)
            elif (fault := listing_fault(answer, ask.timestamp)) is not None:
                self._answer_unusable(state, fault, "ListOffsets", now, jitter)
            else:
                state.be_healthy()
                self.assignment.offset_found(state, answer.offset)
                if state.resets > 1:  # the broker refuses an offset that it has itself listed as an end of the log
                    first, most = self._client.retry_backoff_ms, self._client.retry_backoff_max_ms
                    state.retry_at = now + pause_after(state.resets - 1, first, most, jitter) / 1000

    def listing_failed(self, listing: SendListOffsets, error: KafkaError, now: float) -> None:
        self.trouble.ended(listing)
        self._request_failed(listing.asks, error, now)

    def epochs_answered(self, question: SendEpochs, answers: Iterable[FoundEpoch], now: float) -> None:
        self.trouble.ended(question)
        self.assignment.shake()
        by_tp = {answer.tp: answer for answer in answers}
        jitter = self._jitter()
        for ask in question.asks:
            state = self.assignment.owner(ask)
            if state is None:
                continue
            answer = by_tp.get(ask.tp)
            if answer is None:
                self._answer_unusable(state, LEFT_OUT, "OffsetForLeaderEpoch", now, jitter)
            elif answer.error_code:
                self._code_received(state, answer.error_code, "OffsetForLeaderEpoch", now, jitter)
            elif (fault := epoch_fault(answer.end, ask)) is not None:
                self._answer_unusable(state, fault, "OffsetForLeaderEpoch", now, jitter)
            else:
                state.be_healthy()
                self.assignment.compare_logs(state, answer.end)

    def epochs_failed(self, question: SendEpochs, error: KafkaError, now: float) -> None:
        self.trouble.ended(question)
        if not isinstance(error, UnsupportedVersionError):
            self._request_failed(question.asks, error, now)
            return
        self.assignment.shake()
        for ask in question.asks:
            state = self.assignment.owner(ask)
            if state is not None:
                state.is_unvalidated = False  # brokers before 2.3 tell other brokers only

    def _keep(self, state: PartitionState, answer: FetchedPartition, whole: Answer) -> None:
        assert answer.records is not None
        assert state.fetch_offset is not None
        records = answer.records
        fetch_offset, (frontier, leader_epoch, backward_at) = state.fetch_offset, read_entries(records)
        if frontier is None and only_partial(records):
            self.assignment.is_shaken = True
            self._grow(state, first_entry_size(records) or 0, len(records))
            return
        backward = None
        if backward_at is not None:
            assert frontier is not None
            backward = backward_error(state.tp, frontier, int.from_bytes(records[backward_at : backward_at + 8], "big"))
            if self.assignment.is_first_damage(state, fetch_offset, backward):
                return
            records = records[:backward_at]
        chunk = Chunk(
            records,
            state.tp,
            fetch_offset,
            max(fetch_offset, frontier or 0),
            answer=whole,
            aborted=answer.aborted,
            leader_epoch=leader_epoch,
            check_crcs=self._config.check_crcs,
            max_unpacked_bytes=self._config.max_unpacked_bytes,
        )
        state.append_chunk(chunk)
        state.max_bytes = self._config.max_partition_fetch_bytes
        if backward is not None:
            backward.broker = self.assignment.broker_name(state)
            self.assignment.halt(state, backward)
        elif chunk.next_offset == fetch_offset:
            # Reading the chunk will say what is wrong with it; this is for the case that it finds nothing wrong.
            text = "the broker answered with records, but with none at or above the asked offset"
            self.assignment.halt(state, CorruptRecordError(text, **place(state), offset=fetch_offset))
        self.assignment.mark_ready(state)

    def _grow(self, state: PartitionState, needed: int, held: int) -> None:
        """The first batch did not fit: brokers before 0.10.1 cut it off."""
        where, broker = place(state), self.assignment.broker_name(state)
        if 0 < needed <= state.max_bytes:
            text = f"a batch claims {needed} bytes, and the answer, which might have had as many, holds {held}"
            self.assignment.halt(state, CorruptRecordError(text, **where, offset=state.fetch_offset, broker=broker))
            return
        most = max(self._config.fetch_max_bytes, self._config.max_partition_fetch_bytes)
        if needed > most or state.max_bytes >= most:
            size = needed or f"more than {state.max_bytes}"
            text = f"a batch of {size} bytes is larger than fetch_max_bytes={most}: raise that, or seek past it"
            error = RecordTooLargeError(text, **where, offset=state.fetch_offset, api="Fetch", broker=broker)
            self.assignment.halt(state, error)
            return
        state.max_bytes = min(most, max(needed, 2 * state.max_bytes))
        self.assignment.note("fetch.grows", state, max_bytes=state.max_bytes)

    # Trouble

    def _fetch_refused(self, state: PartitionState, ask: FetchAsk, code: int, now: float, jitter: float) -> None:
        is_out_of_range = code == ErrorCode.OFFSET_OUT_OF_RANGE
        self.assignment.is_shaken = True
        if state.follower is not None:
            state.follower = None
            if is_out_of_range:
                # A follower may lag behind: the leader knows, and may send us there again.
                state.retry_at = now + self._client.retry_backoff_ms / 1000 if state.failures else 0.0
                state.failures += 1
                return
        elif is_out_of_range and state.doubts(ask, self.assignment.snapshot.generation):
            if ask.topic_id is not None:
                self._is_stale = True
                state.retry_at = now + self._client.retry_backoff_ms / 1000
            return
        self._code_received(state, code, "Fetch", now, jitter)

    def _request_failed(self, asks: Sequence[FetchAsk | OffsetAsk | EpochAsk], error: KafkaError, now: float) -> None:
        self.assignment.shake()
        reaction, jitter = reaction_to_failure(error), self._jitter()
        for ask in asks:
            state = self.assignment.owner(ask)
            if state is not None:
                state.follower = None
                own = copy.copy(error)
                own.topic, own.partition = state.tp
                self._react(state, reaction, own, now, jitter)

    def _code_received(self, state: PartitionState, code: int, api: str, now: float, jitter: float) -> None:
        if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            state.goes_away()
        broker = self.assignment.broker_name(state)
        error = broker_error(code, api=api, broker=broker, offset=state.fetch_offset, needed="READ", **place(state))
        reaction = reaction_to(code)
        if reaction is Reaction.RESET and api != "Fetch":
            reaction = Reaction.REFRESH_THEN_RAISE  # no position was asked about
        self._react(state, reaction, error, now, jitter)

    def _answer_unusable(self, state: PartitionState, fault: str, api: str, now: float, jitter: float) -> None:
        """Discard an answer with impossible fields, and retry."""
        broker = self.assignment.broker_name(state)
        state.follower = None
        error = RemoteProtocolError(fault, api=api, broker=broker, **place(state))
        self._react(state, reaction_to_failure(error), error, now, jitter)

    def _miss_leaders(self, states: Iterable[PartitionState], now: float) -> None:
        snapshot, jitter = self.assignment.snapshot, self._jitter()
        for state in states:
            topic, partition = state.tp
            code = snapshot.topic_error(topic)
            if not code and partition not in snapshot.partitions(topic):
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            self._code_received(state, code or ErrorCode.LEADER_NOT_AVAILABLE, "Metadata", now, jitter)

    def _react(self, state: PartitionState, reaction: Reaction, error: KafkaError, now: float, jitter: float) -> None:
        """``jitter`` is one for all partitions of a request, so that they are asked again together."""
        self.assignment.is_shaken = True
        if reaction is Reaction.RESET:
            state.resets += 1
            self.assignment.note("offset.out_of_range", state, offset=state.fetch_offset)
            self.assignment.halt(state, None)
            return
        if reaction is Reaction.RAISE or (reaction is Reaction.RAISE_ONCE and self.assignment.deny(state.tp)):
            self.assignment.halt(state, error)
            return
        if reaction is Reaction.RAISE_ONCE:
            state.trouble, state.troubled_since = error, state.troubled_since or now
            state.retry_at = now + self._client.retry_backoff_max_ms / 1000
            self._is_stale = self._is_stale or error.api == "Metadata"
            return
        state.failures += 1
        state.trouble = error
        first, most = self._client.retry_backoff_ms, self._client.retry_backoff_max_ms
        state.retry_at = now + pause_after(state.failures, first, most, jitter) / 1000
        if state.troubled_since is None:
            state.troubled_since = now
        if reaction is not Reaction.BACK_OFF:
            self._is_stale = True
        raises_at = state.troubled_since + self._client.default_api_timeout_ms / 1000
        if reaction is Reaction.REFRESH_THEN_RAISE:
            if now >= raises_at and self.assignment.may_let_go(state):
                self.assignment.let_go(state)
            elif now >= raises_at:
                state.troubled_since = now
                self.assignment.halt(state, error)
            else:
                state.retry_at = min(state.retry_at, raises_at)

    # What to do

    def poll(self, now: float) -> list[Action]:
        """What is to be done now; at most one fetch is in flight per broker."""
        actions: list[Action] = []
        is_due = self._wake_at is not None and now >= self._wake_at
        if self.assignment.is_dirty or is_due:
            self.assignment.is_dirty = False
            requests: Sequence[Send] | None = None
            if not (is_due or self.assignment.is_shaken):
                requests = self._planner.go_on(now)
            requests = self._plan_all(now) if requests is None else requests
            for request in requests:
                self.trouble.sent(request, now)
            actions += requests
            if self._is_stale:
                self._is_stale = False
                actions.append(RefreshMetadata(self.assignment.snapshot.generation))
        if self.assignment.notes:
            actions += self.assignment.take_notes()
        return actions

    def _plan_all(self, now: float) -> Sequence[Send]:
        """Look at every partition."""
        self.assignment.is_shaken = False
        requests, leaderless = self._planner.plan(self.assignment.states, now)
        self._miss_leaders(leaderless, now)
        retries = [state.retry_at for state in self.assignment.states.values() if state.retry_at > now]
        self._wake_at = min(retries, default=None)
        return requests

    def next_wakeup(self) -> float | None:
        """When a partition is to be asked again after a failure; None if nothing waits for time."""
        return self._wake_at
