"""Which partitions to ask of which broker in the next fetch, how much and how long: pure arithmetic over their states.

One fetch is in flight per broker, so a long poll holds up whatever cannot be part of it.  Two rules follow.  While a
partition of the broker sits out (its buffer is full, or its retry is near), the poll is short at first and grows with
the time of sitting out, so that a fast reader does not wait for an idle topic and a slow reader costs few requests.
And each broker has its share of the client's buffer, so that a poll that brings nothing takes no other broker's room.

:meth:`FetchPlanner.plan` looks at every partition, :meth:`FetchPlanner.go_on` at those that were answered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pykafka08.config import ConsumerConfig
from pykafka08.consumer.actions import EpochAsk, OffsetAsk, SendEpochs, SendFetch, SendListOffsets
from pykafka08.consumer.chunk import Answer, Chunk
from pykafka08.consumer.partition import PartitionState
from pykafka08.consumer.standing import Standing, fetch_ask, is_as_asked, is_at_rest
from pykafka08.records.record import TopicPartition

__all__ = ["FetchPlanner", "Group"]

Send = SendFetch | SendListOffsets | SendEpochs

NEVER = float("inf")
SHORTEST_POLL = 0.005
ANSWERS_IN_BUFFER = 16
"""As many have room: of fewer and larger ones the first would lie there half read, and nothing could come."""
UNREAD_POLL = 0.5
"""The longest while fetched records wait to be read: damage among them means that the partition is asked once more."""


class Group:
    """The partitions that are read from one broker, at one moment."""

    __slots__ = (
        "askable",
        "buffered",
        "flying",
        "follows_until",
        "is_calm",
        "retry_at",
        "sits_out",
        "unlocated",
        "unread",
        "unvalidated",
    )

    def __init__(self) -> None:
        self.askable: list[PartitionState] = []
        self.unlocated: list[PartitionState] = []
        self.unvalidated: list[PartitionState] = []
        self.flying: list[PartitionState] = []
        self.buffered: list[PartitionState] = []
        self.unread: set[Answer] = set()
        self.is_calm = True
        """All that are read take part in a fetch, and nothing is wrong with any."""
        self.follows_until = NEVER
        """When the first of them is asked of its leader again."""
        self.sits_out = False
        self.retry_at: float | None = None

    def add(self, state: PartitionState, now: float, full_at: int) -> None:
        if state.buffer:
            self.buffered.append(state)
            for each in state.buffer:
                if isinstance(each, Chunk):
                    self.unread.add(each.answer)
        if state.follower is not None:
            self.follows_until = min(self.follows_until, state.follower_until)
        if not (self._takes_part(state, now, full_at) or is_at_rest(state, now)) or state.failures:
            self.is_calm = False

    def _takes_part(self, state: PartitionState, now: float, full_at: int) -> bool:
        """It can be in the next fetch, or is in one and can be in the one after that."""
        if state.is_in_flight or state.is_halted:
            self.sits_out = True
            if state.is_halted or state.is_quiet or state.is_being_located or state.buffered_bytes > full_at:
                return False
            self.flying.append(state)
            return True
        if state.retry_at > now:
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
            if state.buffered_bytes <= full_at:
                self.askable.append(state)
                return True
            self.sits_out = True
        return False


class FetchPlanner:
    """Fetches and offset look-ups for all brokers; knows which have a fetch in flight."""

    def __init__(self, config: ConsumerConfig) -> None:
        self._config = config
        self._in_flight: dict[int, SendFetch] = {}
        self._capped: set[int] = set()
        self._sits_out_since: dict[int, float] = {}
        self._standing: dict[int, Standing] = {}
        self._is_steady = False
        """Each broker that is asked has a standing fetch, and nothing else is to be sent."""
        self._share = 1

    def landed(self, fetch: SendFetch) -> Standing | None:
        """It was answered, or failed: the broker may be asked again.  The standing fetch, if it can go on from that."""
        self._in_flight.pop(fetch.node_id, None)
        standing = self._standing.get(fetch.node_id)
        if standing is None or standing.fetch is not fetch:
            return None
        standing.has_landed = True
        return standing if self._is_steady else None

    def broker_answered(self, node_id: int, *, is_capped: bool) -> None:
        """``is_capped``: it keeps answers below the asked ``max_bytes`` (0.10.1 and later)."""
        (self._capped.add if is_capped else self._capped.discard)(node_id)

    def go_on(self, now: float) -> list[SendFetch] | None:
        """What to send, if nothing has changed but what answers brought and readers took; None: :meth:`plan` anew."""
        if not self._is_steady or any([now >= each.until for each in self._standing.values()]):
            return None
        landed = [each for each in self._standing.values() if each.has_landed]
        full_at = self._config.max_partition_fetch_bytes
        if not all([each.is_kept(full_at) for each in landed]):
            return None
        longest = self._config.fetch_max_wait_ms / 1000
        fetches = []
        for each in landed:
            unread = each.unread()
            max_bytes = self._max_bytes(unread)
            if max_bytes:
                fetch = each.next_fetch(max_bytes, min(longest, UNREAD_POLL) if unread else longest)
                self._in_flight[fetch.node_id] = fetch
                fetches.append(fetch)
        return fetches

    def plan(
        self, states: Mapping[TopicPartition, PartitionState], now: float
    ) -> tuple[list[Send], list[PartitionState]]:
        """What to send, and the partitions that nothing can be sent for, since no leader is known.

        The partitions of the actions are marked as in flight.
        """
        for standing in self._standing.values():
            standing.end(states)
        groups = self._group(states.values(), now)
        self._share = max(1, self._config.fetch_buffer_bytes // max(1, len(groups.keys() - {None})))
        actions: list[Send] = []
        fetches: dict[int, SendFetch] = {}
        for node_id, group in groups.items():
            if node_id is None:
                continue
            if group.unlocated:
                actions.append(_list_offsets(node_id, group))
            if group.unvalidated:
                actions.append(_ask_epochs(node_id, group))
            if group.askable and node_id not in self._in_flight:
                fetch = self._fetch(node_id, group, now)
                if fetch is not None:
                    actions.append(fetch)
                    fetches[node_id] = fetch
        self._settle(groups, fetches)
        leaderless = groups.get(None)
        missing = [] if leaderless is None else leaderless.askable + leaderless.unlocated + leaderless.unvalidated
        return actions, missing

    def _settle(self, groups: Mapping[int | None, Group], fetches: Mapping[int, SendFetch]) -> None:
        """Which brokers have a standing fetch from now on: none while anything is wrong anywhere."""
        before, self._standing = self._standing, {}
        self._is_steady = all([group.is_calm for group in groups.values()])
        if not self._is_steady:
            return
        for node_id, group in groups.items():
            if not (group.askable or group.flying):
                continue
            standing = None
            if node_id is not None:
                standing = self._standing_of(group, before.get(node_id), fetches.get(node_id))
            if standing is None:
                self._is_steady = False
            else:
                self._standing[standing.fetch.node_id] = standing

    @staticmethod
    def _standing_of(group: Group, before: Standing | None, fetch: SendFetch | None) -> Standing | None:
        if fetch is not None:
            is_whole = not group.flying and len(fetch.asks) == len(group.askable)
            return Standing(fetch, group.buffered, group.follows_until) if is_whole else None
        if before is None or before.has_landed or group.askable or len(group.flying) != len(before.asks):
            return None
        if not all([is_as_asked(state, before.asks.get(state.tp)) for state in group.flying]):
            return None
        before.buffered = dict.fromkeys(group.buffered)
        before.until = group.follows_until
        return before

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

    def _room(self, unread: Iterable[Answer]) -> int:
        """Bytes that are left of a broker's share; 0 where that is too little to ask for."""
        # Answers count whole, until the last chunk of each is read: they lie in memory for as long.
        used_bytes = sum([each.size for each in unread])
        room = self._share - used_bytes
        return 0 if used_bytes and room < min(self._share, self._config.max_partition_fetch_bytes) else room

    def _max_bytes(self, unread: Iterable[Answer]) -> int:
        """Most bytes of the next answer; 0 where there is no room for one."""
        most = max(self._share // ANSWERS_IN_BUFFER, self._config.max_partition_fetch_bytes)
        return min(self._config.fetch_max_bytes, self._room(unread), most)

    def _fetch(self, node_id: int, group: Group, now: float) -> SendFetch | None:
        max_wait = self._max_wait(node_id, group, now)
        max_bytes = self._max_bytes(group.unread)
        if not max_bytes:
            return None
        states = group.askable
        if node_id not in self._capped:
            # Such a broker answers as much as the partitions' limits add up to.
            states = _first_that_fit(states, self._room(group.unread))
            # All have had their turn after one whole poll.
            max_wait = max(SHORTEST_POLL, max_wait * len(states) / len(group.askable))
        asks = []
        for state in states:
            state.is_in_flight = True
            asks.append(fetch_ask(state))
        fetch = SendFetch(node_id, tuple(asks), max_bytes, max_wait)
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
