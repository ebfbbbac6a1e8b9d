"""Fetch sessions of one broker: it remembers what a reader asks for, so that requests and answers name only changes.

Source: KIP-227.  A session is at an epoch; each request of it has the next one.  What is read and when the broker
answers stands in ``handlers/fetch``.
"""

from __future__ import annotations

from itertools import count
from typing import NamedTuple
from uuid import UUID

from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.fetch import FetchPartition, FetchRequest, PartitionData

__all__ = ["FetchSession", "FetchSessions", "PartitionKey"]

SESSIONLESS, NEW_SESSION = -1, 0
LAST_EPOCH = 2**31 - 1
MOST_SESSIONS = 1000  # max.incremental.fetch.session.cache.slots


class PartitionKey(NamedTuple):
    """A partition as the reader names it: by topic name (to v12) or topic id; the other is empty."""

    topic: str
    topic_id: UUID
    partition: int


class FetchSession:
    """The partitions of one reader, in the order in which they are to be read, and what it was last told of each."""

    def __init__(self, session_id: int, *, uses_ids: bool) -> None:
        self.session_id = session_id
        self.uses_ids = uses_ids
        self.epoch = NEW_SESSION + 1
        self.partitions: dict[PartitionKey, FetchPartition] = {}
        self._told: dict[PartitionKey, tuple[int, int]] = {}

    def update(self, request: FetchRequest) -> None:
        """Add and change what the request names, drop what it forgets."""
        for forgotten in request.forgotten_topics_data:
            for partition in forgotten.partitions:
                key = PartitionKey(forgotten.topic, forgotten.topic_id, partition)
                self.partitions.pop(key, None)
                self._told.pop(key, None)
        for topic in request.topics:
            for asked in topic.partitions:
                self.partitions[PartitionKey(topic.topic, topic.topic_id, asked.partition)] = asked

    def is_news(self, key: PartitionKey, data: PartitionData) -> bool:
        """True if the reader must be told: records, an error, a moved bound, another replica.  Remembers that it was.

        Partitions that gave records go to the end of the order, so that each has its turn.
        """
        bounds = data.high_watermark, data.log_start_offset
        has_records = bool(data.records)
        is_new = has_records or data.error_code != 0 or self._told.get(key) != bounds
        if data.diverging_epoch.epoch >= 0 or data.preferred_read_replica >= 0:
            is_new = True
        if data.error_code:
            self._told.pop(key, None)
        else:
            self._told[key] = bounds
        if has_records and key in self.partitions:
            self.partitions[key] = self.partitions.pop(key)
        return is_new


class FetchSessions:
    """All sessions of a broker; the oldest goes when there is no room."""

    def __init__(self) -> None:
        self._sessions: dict[int, FetchSession] = {}
        self._ids = count(1)

    def __len__(self) -> int:
        return len(self._sessions)

    def resolve(self, request: FetchRequest, *, uses_ids: bool) -> tuple[FetchSession | None, bool, ErrorCode]:
        """The session of a request (None without one), whether it is incremental, and the error if there is one."""
        if request.session_epoch in (SESSIONLESS, NEW_SESSION):
            self._sessions.pop(request.session_id, None)
            if request.session_epoch == SESSIONLESS or not request.topics:
                return None, False, ErrorCode.NONE
            session = self._open(uses_ids=uses_ids)
            session.update(request)
            return session, False, ErrorCode.NONE
        known = self._sessions.get(request.session_id)
        if known is None:
            return None, True, ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if known.epoch != request.session_epoch:
            return None, True, ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if known.uses_ids != uses_ids:
            return None, True, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        known.epoch = 1 if known.epoch == LAST_EPOCH else known.epoch + 1
        known.update(request)
        self._sessions[known.session_id] = self._sessions.pop(known.session_id)
        return known, True, ErrorCode.NONE

    def _open(self, *, uses_ids: bool) -> FetchSession:
        if len(self._sessions) >= MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        session_id = next(self._ids)
        session = self._sessions[session_id] = FetchSession(session_id, uses_ids=uses_ids)
        return session
