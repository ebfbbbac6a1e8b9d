"""When an old consumer commits what, and that no commit outlives the claim to its partition.

Where offsets are kept, and how they are written, is ``offsets``'; what is read, ``reading``'s.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

import anyio

from pykafka08.consumer.reader import Reader
from pykafka08.consumer.renewals import CLOSE_AGE, MAX_AGE
from pykafka08.driver import current_time, library_logger
from pykafka08.errors import ClosedError, KafkaError, RequestTimeoutError
from pykafka08.errors.deadline import at_deadline
from pykafka08.records.record import TopicPartition
from pykafka08.short_names import only_name
from pykafka08.zookeeper.legacy.claims import Claims, revoked
from pykafka08.zookeeper.legacy.offsets import LegacyOffsets
from pykafka08.zookeeper.legacy.settings import LegacyConfig

__all__ = ["CLOSE_AGE", "Commits"]

log = library_logger("zookeeper")

COMMIT_SECONDS = 5.0


class Commits:
    """The commits of one consumer; ``reader_of`` has the reader of each partition that is claimed."""

    def __init__(
        self,
        config: LegacyConfig,
        claims: Claims,
        offsets: LegacyOffsets,
        reader_of: Callable[[TopicPartition], Reader],
    ) -> None:
        self._config = config
        self._claims = claims
        self._offsets = offsets
        self._reader_of = reader_of
        self._known: dict[TopicPartition, int] = {}
        """What is committed, of partitions that are claimed."""
        self._committed_at: dict[TopicPartition, float] = {}
        """Time of this consumer's last commit, by partition."""
        self._under_way: set[anyio.CancelScope] = set()
        self._is_closed = False

    # What is known

    def found(self, tp: TopicPartition, offset: int) -> None:
        """So the group's offset stands in its store."""
        self._known[tp] = offset

    def forget(self, tp: TopicPartition) -> None:
        self._known.pop(tp, None)
        self._committed_at.pop(tp, None)

    def finished(self, tp: TopicPartition) -> int | None:
        """The offset before which all of the partition is finished; None where that is not known, or it is not ours."""
        return self._reader_of(tp).finished(tp) if tp in self._claims.stream_of else None

    # Ends

    def session_lost(self) -> None:
        """Nothing more is sent by those that are under way."""
        for scope in tuple(self._under_way):
            scope.cancel()

    def close(self) -> None:
        """No commit is sent from now on; those under way end."""
        self._is_closed = True
        self.session_lost()

    # Commits

    async def commit(
        self, offsets: Mapping[TopicPartition, int] | None, *, timeout: float
    ) -> dict[TopicPartition, KafkaError]:
        """Commit these, or all that was handed out; what was refused, and why."""
        if offsets is None:
            found = {tp: self._reader_of(tp).position(tp) for tp in self._claims.stream_of}
            offsets = {tp: offset for tp, offset in found.items() if offset is not None}
            for tp, offset in offsets.items():
                self._reader_of(tp).acknowledge(tp, offset)
        return await self._send(offsets, timeout)

    async def commit_finished(
        self, partitions: Iterable[TopicPartition] | None = None, *, renewal_age: float = math.inf
    ) -> None:
        """Commit offsets of processed records that are not committed yet; failures are logged.

        Offsets in Kafka are committed again after ``renewal_age`` seconds, before ``offsets.retention.minutes``
        expires them.
        """
        found = {tp: self.finished(tp) for tp in (self._claims.stream_of if partitions is None else partitions)}
        offsets = {
            tp: each
            for tp, each in found.items()
            if each is not None and (each != self._known.get(tp) or self._is_old(tp, renewal_age))
        }
        if not offsets:
            return
        try:
            refused = await self._send(offsets, COMMIT_SECONDS)
        except KafkaError as error:
            log.warning("commit.failed", group_id=self._config.group_id, partitions=len(offsets), cause=str(error))
            return
        for tp, why in refused.items():
            log.warning(
                "commit.refused", group_id=self._config.group_id, topic=tp.topic, partition=tp.partition, cause=str(why)
            )

    def _is_old(self, tp: TopicPartition, age: float) -> bool:
        """True if the offset is in Kafka and this consumer has not committed it within ``age`` seconds."""
        if self._config.offsets_storage != "kafka":
            return False  # offsets in ZooKeeper do not expire
        committed_at = self._committed_at.get(tp)
        return committed_at is None or current_time() - committed_at >= age

    async def commit_now_and_then(self) -> None:
        while True:
            await anyio.sleep(self._config.auto_commit_interval_ms / 1000)
            await self.commit_finished(renewal_age=MAX_AGE)

    async def _send(self, offsets: Mapping[TopicPartition, int], timeout: float) -> dict[TopicPartition, KafkaError]:
        """No commit outlives the session, or the claim, under which the partition is ours."""
        self._check_open()
        objection = self._claims.objection()
        refused: dict[TopicPartition, KafkaError] = {tp: why for tp in offsets if (why := objection(tp)) is not None}
        taken = {tp: offset for tp, offset in offsets.items() if tp not in refused}
        if not taken:
            return refused
        sent_at = anyio.current_time()
        with anyio.CancelScope(deadline=sent_at + timeout) as scope:
            self._under_way.add(scope)
            try:
                answered = await self._offsets.commit(taken, objection, timeout=timeout)
            finally:
                self._under_way.discard(scope)
            for tp in taken.keys() - answered.keys():
                if objection(tp) is None:
                    self._known[tp] = taken[tp]
                    self._committed_at[tp] = sent_at
            return refused | answered
        self._check_open()
        if anyio.current_time() >= scope.deadline:
            late = RequestTimeoutError(
                f"the offsets of {len(taken)} partitions were not committed within {timeout:g} s",
                topic=only_name({tp.topic for tp in taken}),
            )
            late.group = self._config.group_id
            raise at_deadline(late, self._offsets.refusal())
        return refused | {tp: revoked(tp, "the session with ZooKeeper ended during the commit") for tp in taken}

    def _check_open(self) -> None:
        if self._is_closed:
            raise ClosedError("the consumer is closed")
