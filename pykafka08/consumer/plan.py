"""Which partitions to ask of which broker in the next fetch, how much and how long: pure arithmetic over their states.

One fetch is in flight per broker, so a long poll holds up whatever cannot be part of it.  Two rules follow.  While a
partition of the broker sits out (its buffer is full, or its retry is near), the poll is short at first and grows with
the time of sitting out, so that a fast reader does not wait for an idle topic and a slow reader costs few requests.
And each broker has its share of the client's buffer, so that a poll that brings nothing takes no other broker's room.
"""

from __future__ import annotations

from collections.abc import Iterable

from pykafka08.config import ConsumerConfig
from pykafka08.consumer.actions import EpochAsk, FetchAsk, OffsetAsk, SendEpochs, SendFetch, SendListOffsets
from pykafka08.consumer.chunk import Answer, Chunk
from pykafka08.consumer.partition import PartitionState

__all__ = ["FetchPlanner", "Group"]

Send = SendFetch | SendListOffsets | SendEpochs

SHORTEST_POLL = 0.005
ANSWERS_IN_BUFFER = 16
"""As many have room: of fewer and larger ones the first would lie there half read, and nothing could come."""
UNREAD_POLL = 0.5
"""The longest while fetched records wait to be read: damage among them means that the partition is asked once more."""


class Group:
    """The partitions that are read from one broker, at one moment."""

    __slots__ = ("askable", "retry_at", "sits_out", "unlocated", "unread", "unvalidated")

    def __init__(self) -> None:
        self.askable: list[PartitionState] = []
        self.unlocated: list[PartitionState] = []
        self.unvalidated: list[PartitionState] = []
        self.unread: set[Answer] = set()
        self.sits_out = False
        self.retry_at: float | None = None

    def add(self, state: PartitionState, now: float, full_at: int) -> None:
        for each in state.buffer:
            if isinstance(each, Chunk):
                self.unread.add(each.answer)
        if state.is_in_flight or state.is_halted:
            self.sits_out = True
        elif state.retry_at > now:
            if self.retry_at is None or state.retry_at < self.retry_at:
                self.retry_at = state.retry_at
        elif state.awaits_commit:
            self.sits_out = True
        elif state.lookup is not None:
            # Located in a moment, if it can be asked at all.
            self.unlocated.append(state)
            self.sits_out = True
        elif state.is_unvalidated:
            self.unvalidated.append(state)
            self.sits_out = True
        elif not state.is_quiet:
            if state.buffered_bytes > full_at:
                self.sits_out = True
            else:
                self.askable.append(state)


class FetchPlanner:
    """Fetches and offset look-ups for all brokers; knows which have a fetch in flight."""

    def __init__(self, config: ConsumerConfig) -> None:
        self._config = config
        self._in_flight: dict[int, SendFetch] = {}
        self._capped: set[int] = set()
        self._sits_out_since: dict[int, float] = {}

    def landed(self, fetch: SendFetch) -> None:
        """It was answered, or failed: the broker may be asked again."""
        self._in_flight.pop(fetch.node_id, None)

    def broker_answered(self, node_id: int, *, is_capped: bool) -> None:
        """``is_capped``: it keeps answers below the asked ``max_bytes`` (0.10.1 and later)."""
        (self._capped.add if is_capped else self._capped.discard)(node_id)

    def plan(self, states: Iterable[PartitionState], now: float) -> tuple[list[Send], list[PartitionState]]:
        """What to send, and the partitions that nothing can be sent for, since no leader is known.

        The partitions of the actions are marked as in flight.
        """
        groups = self._group(states, now)
        leaderless = groups.pop(None, None)
        share = max(1, self._config.fetch_buffer_bytes // max(1, len(groups)))
        actions: list[Send] = []
        for node_id, group in groups.items():
            assert node_id is not None
            if group.unlocated:
                actions.append(_list_offsets(node_id, group))
            if group.unvalidated:
                actions.append(_ask_epochs(node_id, group))
            if group.askable and node_id not in self._in_flight:
                fetch = self._fetch(node_id, group, now, share)
                if fetch is not None:
                    actions.append(fetch)
        missing = [] if leaderless is None else leaderless.askable + leaderless.unlocated + leaderless.unvalidated
        return actions, missing

    def _group(self, states: Iterable[PartitionState], now: float) -> dict[int | None, Group]:
        """By the broker to ask; None stands for no leader."""
        groups: dict[int | None, Group] = {}
        for state in states:
            if state.follower is not None and now >= state.follower_until:
                state.follower = None
            source = state.source
            group = groups.get(source)
            if group is None:
                group = groups[source] = Group()
            group.add(state, now, self._config.max_partition_fetch_bytes)
        return groups

    def _fetch(self, node_id: int, group: Group, now: float, share: int) -> SendFetch | None:
        max_wait = self._max_wait(node_id, group, now)
        # Answers count whole, until the last chunk of each is read: they lie in memory for as long.
        used_bytes = sum(each.size for each in group.unread)
        room = share - used_bytes
        if used_bytes and room < min(share, self._config.max_partition_fetch_bytes):
            return None
        states = group.askable
        if node_id not in self._capped:
            # Such a broker answers as much as the partitions' limits add up to.
            states = _first_that_fit(states, room)
            # All have had their turn after one whole poll.
            max_wait = max(SHORTEST_POLL, max_wait * len(states) / len(group.askable))
        asks = []
        for state in states:
            state.is_in_flight = True
            asks.append(_fetch_ask(state))
        most = max(share // ANSWERS_IN_BUFFER, self._config.max_partition_fetch_bytes)
        fetch = SendFetch(node_id, tuple(asks), min(self._config.fetch_max_bytes, room, most), max_wait)
        self._in_flight[node_id] = fetch
        return fetch

    def _max_wait(self, node_id: int, group: Group, now: float) -> float:
        max_wait = self._config.fetch_max_wait_ms / 1000
        if group.sits_out:
            since = self._sits_out_since.setdefault(node_id, now)
            max_wait = min(max_wait, max(SHORTEST_POLL, now - since))
        else:
            self._sits_out_since.pop(node_id, None)
        if group.unread:
            max_wait = min(max_wait, UNREAD_POLL)
        if group.retry_at is not None:
            max_wait = min(max_wait, max(SHORTEST_POLL, group.retry_at - now))
        return max_wait


def _first_that_fit(states: list[PartitionState], room: int) -> list[PartitionState]:
    """As many as may answer in full; at least one."""
    total = 0
    for index, state in enumerate(states):
        total += state.max_bytes
        if index and total > room:
            return states[:index]
    return states


def _fetch_ask(state: PartitionState) -> FetchAsk:
    assert state.fetch_offset is not None
    return FetchAsk(
        state.tp,
        state.fetch_offset,
        state.max_bytes,
        state.epoch,
        state.leader_epoch,
        state.topic_id,
        -1 if state.doubted_in is not None else state.fetch_epoch,
    )


def _ask_epochs(node_id: int, group: Group) -> SendEpochs:
    asks = []
    for state in group.unvalidated:
        state.is_in_flight = True
        asks.append(EpochAsk(state.tp, state.fetch_epoch, state.epoch, state.leader_epoch))
    return SendEpochs(node_id, tuple(asks))


def _list_offsets(node_id: int, group: Group) -> SendListOffsets:
    asks = []
    for state in group.unlocated:
        assert state.lookup is not None
        state.is_in_flight = True
        asks.append(OffsetAsk(state.tp, state.lookup.timestamp, state.epoch, state.leader_epoch))
    return SendListOffsets(node_id, tuple(asks))
