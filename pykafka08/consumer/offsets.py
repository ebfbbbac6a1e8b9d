"""Offsets by timestamp, and both ends of a log, for the application: ListOffsets with retries up to a deadline.

The machine's own look-ups (where to start reading) are not here.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import anyio

from pykafka08.backoff import Backoff
from pykafka08.cluster.client import Client
from pykafka08.consumer.actions import ListedOffset, OffsetAsk
from pykafka08.consumer.answer_checks import listing_fault
from pykafka08.consumer.partition import EARLIEST
from pykafka08.consumer.reactions import Reaction, reaction_to, reaction_to_failure
from pykafka08.consumer.requests import ListOffsetsCall
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import (
    BrokerError,
    KafkaError,
    RemoteProtocolError,
    RequestTimeoutError,
    SecurityError,
    broker_error,
)
from pykafka08.errors.deadline import at_deadline, refusal_of
from pykafka08.records.record import TopicPartition

__all__ = ["OffsetAndTimestamp", "look_up_offsets"]


class OffsetAndTimestamp(NamedTuple):
    """Where a record is; ``timestamp_ms`` is -1 where the broker does not tell (before 0.10.1)."""

    offset: int
    timestamp_ms: int


class OffsetLookUp:
    """One call for many partitions: what is still wanted, what was found, what went wrong last."""

    def __init__(self, client: Client, wanted: Mapping[TopicPartition, int], *, is_committed_only: bool) -> None:
        self.wanted = dict(wanted)
        self.found: dict[TopicPartition, ListedOffset] = {}
        self.error: KafkaError | None = None
        self._client = client
        self._is_committed_only = is_committed_only

    async def ask_leaders(self, deadline: float) -> None:
        """Ask every leader once, all at the same time; raises what no retry can mend."""
        snapshot = self._client.metadata
        by_leader: dict[int, list[OffsetAsk]] = {}
        for tp, timestamp in self.wanted.items():
            leader = snapshot.leader(*tp)
            if leader is None:
                is_known = tp.partition in snapshot.partitions(tp.topic)
                code = ErrorCode.LEADER_NOT_AVAILABLE if is_known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                self._refused(tp, snapshot.topic_error(tp.topic) or code, None)
            else:
                ask = OffsetAsk(tp, timestamp, leader_epoch=snapshot.leader_epoch(*tp))
                by_leader.setdefault(leader, []).append(ask)
        timeout = max(0.0, min(deadline - anyio.current_time(), self._client.config.request_timeout_ms / 1000))
        flights = []
        for node_id, asks in by_leader.items():
            call = ListOffsetsCall(asks, is_committed_only=self._is_committed_only, timeout=timeout)
            flights.append((snapshot.brokers[node_id].name, call, self._client.submit(node_id, call, timeout=timeout)))
        for broker, call, waiter in flights:
            try:
                response = await waiter
            except KafkaError as error:
                self._failed(error)
                continue
            for listed in call.read(response):
                self._listed(listed, broker, is_by_segment=call.is_by_segment)

    def _listed(self, listed: ListedOffset, broker: str, *, is_by_segment: bool) -> None:
        tp = listed.tp
        if tp not in self.wanted:
            return
        if listed.error_code:
            self._refused(tp, listed.error_code, broker)
        elif listed.offset < 0 and is_by_segment and self.wanted[tp] != EARLIEST:
            # Every segment is younger, so the log's start is the last offset not after that time.
            self.wanted[tp] = EARLIEST
        elif (fault := listing_fault(listed, self.wanted[tp])) is not None:
            self.error = RemoteProtocolError(fault, api="ListOffsets", topic=tp[0], partition=tp[1], broker=broker)
        else:
            del self.wanted[tp]
            self.found[tp] = listed

    def _refused(self, tp: TopicPartition, code: int, broker: str | None) -> None:
        error = broker_error(
            code, api="ListOffsets", topic=tp.topic, partition=tp.partition, broker=broker, needed="READ"
        )
        reaction = reaction_to(code)
        if reaction in (Reaction.RAISE, Reaction.RAISE_ONCE, Reaction.RESET):
            raise error
        self.error = error
        if reaction is not Reaction.BACK_OFF:
            self._client.invalidate(self._client.metadata.generation)

    def _failed(self, error: KafkaError) -> None:
        if reaction_to_failure(error) is Reaction.RAISE:
            raise error
        self.error = error
        self._client.invalidate(self._client.metadata.generation)


async def look_up_offsets(
    client: Client, wanted: Mapping[TopicPartition, int], *, timeout: float, is_committed_only: bool
) -> dict[TopicPartition, ListedOffset]:
    """What ListOffsets says for each partition and timestamp (ms, LATEST or EARLIEST), within ``timeout`` seconds."""
    client.tasks.check()
    deadline = anyio.current_time() + timeout
    await client.wait_for_topics({tp.topic for tp in wanted}, timeout=timeout, needed="READ")
    backoff = Backoff(client.config.retry_backoff_ms / 1000, client.config.retry_backoff_max_ms / 1000, random.random)
    look_up = OffsetLookUp(client, wanted, is_committed_only=is_committed_only)
    cause: KafkaError | None = None
    refusal: SecurityError | None = None
    while look_up.wanted:
        look_up.error = None
        await look_up.ask_leaders(deadline)
        client.tasks.check()
        if look_up.error is not None:
            if cause is None or not isinstance(look_up.error, RequestTimeoutError):
                cause = look_up.error  # a last attempt that was given no time tells less
            refusal = refusal_of(look_up.error) or refusal
            pause = backoff.failed()
            if anyio.current_time() + pause >= deadline:
                raise at_deadline(_late(cause, look_up.wanted), refusal)
            await anyio.sleep(pause)
    return look_up.found


def _late(error: KafkaError, wanted: Iterable[TopicPartition]) -> KafkaError:
    if isinstance(error, BrokerError) and reaction_to(int(error.code)) is Reaction.REFRESH_THEN_RAISE:
        return error
    first = next(iter(wanted))
    late = RequestTimeoutError(
        f"offsets were not found in time; the last attempt ended in: {error.message}",
        topic=first.topic,
        partition=first.partition,
        broker=error.broker,
        api="ListOffsets",
    )
    late.__cause__ = error
    return late
