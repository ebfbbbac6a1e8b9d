"""A fetch session with one broker: it remembers what we read, so that a request names only what has changed.

Here: what to say next so that the broker believes what we want.  Not here: what we want (``plan``), the messages
(``requests``).  Source: KIP-227 (Fetch v7, Kafka 1.1), KIP-516 (topic ids instead of names from v13 on).

    session id 0, epoch 0     open a session; all partitions are named
    session id n, epoch e     go on with it; partitions that changed, and those to be forgotten, are named
    session id n, epoch 0     close session n, open another: whatever went wrong, we start from nothing

A session is lost when the broker has no room for it, restarts, or when we cannot know whether a request has arrived.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

from pykafka08.consumer.actions import FetchAsk, SendFetch
from pykafka08.error_codes import ErrorCode
from pykafka08.records.record import TopicPartition

__all__ = ["SESSION_ERRORS", "FetchSession", "SessionStep"]

NO_SESSION, FULL_FETCH = 0, 0
LAST_EPOCH = 2**31 - 1

SESSION_ERRORS = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)
"""The broker has lost the session, or it is not where we think: nothing is wrong with any partition."""


class SessionStep(NamedTuple):
    """What the next request of a session says."""

    session_id: int
    epoch: int
    named: tuple[FetchAsk, ...]
    forgotten: tuple[FetchAsk, ...]

    @property
    def is_incremental(self) -> bool:
        """True if the broker reads what it remembers, too, and answers only what is new."""
        return self.epoch != FULL_FETCH


class FetchSession:
    """Sessions with one broker, one after the other; one request at a time."""

    __slots__ = ("_epoch", "_have_ids", "_known", "_names", "_session_id", "_uses_ids")

    def __init__(self) -> None:
        self._session_id = NO_SESSION
        self._epoch = FULL_FETCH
        self._known: dict[TopicPartition, FetchAsk] = {}
        self._names: dict[UUID, str] = {}
        self._uses_ids = False
        self._have_ids = False

    def have_ids(self, fetch: SendFetch) -> bool:
        """Every partition of the fetch has a topic id; remembered, as the next one may name the renewed alone."""
        if fetch.renewed is None:
            self._have_ids = all([ask.topic_id is not None for ask in fetch.asks])
        elif fetch.renewed:
            self._have_ids = self._have_ids and all([ask.topic_id is not None for ask in fetch.renewed])
        return self._have_ids

    def step(
        self, asks: Iterable[FetchAsk], renewed: tuple[FetchAsk, ...] | None = None, *, uses_ids: bool
    ) -> SessionStep:
        """The next request, after which the broker reads ``asks`` and nothing else; all have topic ids, or none.

        ``renewed`` as in :class:`SendFetch`: then the others are not even looked at.
        """
        if renewed is not None and self._epoch != FULL_FETCH and uses_ids == self._uses_ids:
            for ask in renewed:
                self._known[ask.tp] = ask
            self._learn_names(renewed)
            return SessionStep(self._session_id, self._epoch, renewed, ())
        if uses_ids != self._uses_ids:
            self._epoch = FULL_FETCH  # a session is by names or by ids
            self._uses_ids = uses_ids
        known, self._known = self._known, {ask.tp: ask for ask in asks}
        if self._epoch == FULL_FETCH:
            self._names = {}
            self._learn_names(self._known.values())
            return SessionStep(self._session_id, FULL_FETCH, tuple(self._known.values()), ())
        named, forgotten = [], []
        for tp, ask in self._known.items():
            before = known.pop(tp, None)
            if before == ask:
                continue
            named.append(ask)
            if uses_ids and before is not None and before.topic_id != ask.topic_id:
                forgotten.append(before)  # a topic that was deleted, and made again
        forgotten += known.values()
        self._learn_names(named)
        return SessionStep(self._session_id, self._epoch, tuple(named), tuple(forgotten))

    def _learn_names(self, asks: Iterable[FetchAsk]) -> None:
        self._names.update({ask.topic_id: ask.tp.topic for ask in asks if ask.topic_id is not None})

    def name_of(self, topic_id: UUID) -> str:
        """The topic that was asked for by that id; empty if none was."""
        return self._names.get(topic_id, "")

    def answered(self, session_id: int) -> None:
        """The request was answered without an error of the session; 0 says that the broker keeps none."""
        self._session_id = session_id
        if session_id == NO_SESSION:
            self._epoch = FULL_FETCH
        else:
            self._epoch = 1 if self._epoch == LAST_EPOCH else self._epoch + 1

    def failed(self) -> None:
        """The request was refused, or its answer lost: open another session."""
        self._epoch = FULL_FETCH
