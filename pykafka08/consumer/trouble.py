"""Partitions that cannot be read: the cause (failed or unanswered requests) and the time it began.  Pure.

``now`` is monotonic seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pykafka08.consumer.actions import Note, SendEpochs, SendFetch, SendListOffsets
from pykafka08.consumer.assignment import Assignment
from pykafka08.consumer.partition import PartitionState
from pykafka08.errors import KafkaError, RequestTimeoutError
from pykafka08.report_timer import REPORT_EVERY

__all__ = ["LATE", "REPORT_AFTER", "Send", "Trouble", "TroubleWatch"]

Send = SendFetch | SendListOffsets | SendEpochs

LATE = 5.0
"""Seconds after which an answer is late, in addition to the maximum wait of a long poll."""
REPORT_AFTER = 5.0
"""Seconds before trouble is reported: a leader election takes a few seconds."""

API_NAMES = {SendFetch: "Fetch", SendListOffsets: "ListOffsets", SendEpochs: "OffsetForLeaderEpoch"}


class Trouble(NamedTuple):
    """The cause for which a partition is not read; ``error`` names topic, partition and, if known, broker."""

    error: KafkaError
    since: float


class TroubleWatch:
    """The unanswered requests of one consumer, and the trouble that was reported."""

    def __init__(self, assignment: Assignment) -> None:
        self._assignment = assignment
        self._waiting: dict[int, tuple[Send, float]] = {}
        """By identity, because hashing a request takes time for each of its partitions."""
        self._began_at: dict[tuple[str, int], float] = {}
        """Trouble at the last check, by partition: it continues from one failed request to the next."""
        self._reported_at: float | None = None
        self._reported: set[tuple[str, int]] = set()

    def sent(self, request: Send, now: float) -> None:
        """Note that the request was sent."""
        self._waiting[id(request)] = (request, now)

    def ended(self, request: Send) -> None:
        """Note that the request was answered, or has failed."""
        self._waiting.pop(id(request), None)

    def of(self, state: PartitionState, now: float) -> Trouble | None:
        """The trouble of one partition; None if it is read."""
        return next((each for troubled, each in self._troubles(now) if troubled is state), None)

    def longest(self, now: float) -> Trouble | None:
        """The trouble that has lasted for longest."""
        return min((each for _, each in self._troubles(now)), key=lambda each: each.since, default=None)

    def look(self, now: float) -> Note | None:
        """The warning that is due, one for all unreported partitions; call this about once a second."""
        troubles = dict(self._troubles(now))
        self._began_at = {state.tp: trouble.since for state, trouble in troubles.items()}
        lasting = {state: each for state, each in troubles.items() if now - each.since >= REPORT_AFTER}
        self._reported &= self._began_at.keys()
        if all(state.tp in self._reported for state in lasting) and not self._is_due_again(now):
            return None
        self._reported.update(state.tp for state in lasting)
        if not lasting:
            return None
        self._reported_at = now
        first, trouble = min(lasting.items(), key=lambda item: item[1].since)
        facts = {"topic": first.tp.topic, "partition": first.tp.partition, "partitions": len(lasting)}
        return Note("partitions.in_trouble", {**facts, "seconds": now - trouble.since, "error": str(trouble.error)})

    def _is_due_again(self, now: float) -> bool:
        return self._reported_at is not None and now - self._reported_at >= REPORT_EVERY

    def _troubles(self, now: float) -> Iterator[tuple[PartitionState, Trouble]]:
        states = self._assignment.states
        late: set[PartitionState] = set()
        for request, sent_at in self._waiting.values():
            if now < sent_at + LATE + (request.max_wait if isinstance(request, SendFetch) else 0.0):
                continue
            for ask in request.asks:
                state = states.get(ask.tp)
                if state is not None and state.epoch == ask.epoch and state.is_in_flight and state.trouble is None:
                    late.add(state)
                    yield (
                        state,
                        self._trouble(state, _late(request, self._name(request), state, now - sent_at), sent_at),
                    )
        for state in states.values():
            if state.trouble is not None and state not in late:
                yield (
                    state,
                    self._trouble(state, state.trouble, now if state.troubled_since is None else state.troubled_since),
                )

    def _trouble(self, state: PartitionState, error: KafkaError, since: float) -> Trouble:
        return Trouble(error, min(since, self._began_at.get(state.tp, since)))

    def _name(self, request: Send) -> str | None:
        broker = self._assignment.snapshot.brokers.get(request.node_id)
        return None if broker is None else broker.name


def _late(request: Send, broker: str | None, state: PartitionState, seconds: float) -> RequestTimeoutError:
    topic, partition = state.tp
    api = API_NAMES[type(request)]
    return RequestTimeoutError(
        f"no complete answer for {seconds:.0f} s", broker=broker, api=api, topic=topic, partition=partition
    )
