"""Which partitions a consumer reads, and from where: assignment, seeks, pauses, new leaders, new partitions.

``Assignment`` is the part of the machine's state that both the requests and the reader change; where answers of brokers
move a partition is in ``locating``.  Pure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from uuid import UUID

from pykafka08.cluster.metadata import Snapshot
from pykafka08.config import ConsumerConfig
from pykafka08.consumer.actions import EpochAsk, FetchAsk, Note, OffsetAsk, StartAnew
from pykafka08.consumer.locating import COMMITTED, Locating
from pykafka08.consumer.partition import LATEST, Lookup, PartitionState, Purpose
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import ConfigError
from pykafka08.records.record import TopicPartition

__all__ = ["Assignment"]

SETTLED_FAILURES = 4
"""Failures in a row, about a second, that count as lasting: leaders of new partitions refuse the first requests."""
MISSING = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE})
"""Errors of a topic that does not exist, or not yet."""


class Assignment(Locating):
    """The partitions that are read.

    ``states`` is in the order in which they come next in a fetch, ``ready`` in the order in which they are read out;
    ``is_dirty`` asks for a new plan; ``is_shaken`` says that more has changed since the last one than what answers
    brought and readers took.  ``notes`` are actions that wait to be taken.
    """

    def __init__(self, config: ConsumerConfig) -> None:
        super().__init__(config)
        self.snapshot = Snapshot(0)
        self._is_subscribed = False
        self._topics: dict[str, None] = {}
        self._counted: set[str] = set()
        """Topics subscribed to by name, with or without a group."""
        self._assigned: set[str] = set()
        """Topics of the assigned partitions."""
        self._first_counts: dict[str, int] = {}
        """Number of partitions of each topic in the first metadata, 0 if it did not exist: later partitions are new."""
        self._ends: dict[TopicPartition, int] = {}
        """Last known ends of partitions that went: a fetch session tells an end again only when it has moved."""
        self._ids: dict[str, UUID] = {}
        """Of topics that were read; one that was replaced never comes back."""
        self._old_ids: set[UUID] = set()

    # What the application asks for

    def subscribe(self, topics: Iterable[str]) -> None:
        """Read all partitions of the topics; those that come into being later from their beginning.

        Topics that are left out are read while they are there (see :meth:`may_let_go`).
        """
        self._is_subscribed = True
        self._topics = dict.fromkeys(topics)
        self.count_partitions(self._topics)
        self._follow_topics()

    def topics_came(self, topics: Iterable[str]) -> None:
        """These did not exist when we began to read: all that they hold is new."""
        self._first_counts.update(dict.fromkeys(topics, 0))

    def assign(self, partitions: Iterable[TopicPartition], *, from_committed: bool = False) -> None:
        """Read these and no others; those that were assigned before go on where they are.

        New ones begin by the reset policy, or wait for :meth:`committed_found`.
        """
        wanted = dict.fromkeys(partitions)
        self._count_assigned({tp.topic for tp in wanted})
        for tp in self.states.keys() - wanted.keys():
            state = self.states.pop(tp)
            state.disown_flight(next(self._epochs))
            self._ends[tp] = state.end_offset
        self.ready = deque(state for state in self.ready if state.tp in wanted)
        for tp in wanted:
            if tp not in self.states:
                self._add(tp, COMMITTED if from_committed else None)
        self.shake()

    def _count_assigned(self, topics: set[str]) -> None:
        """Count the partitions of newly assigned topics: partitions that are added later are new."""
        for topic in self._assigned - topics - self._counted:
            self._first_counts.pop(topic, None)
        self._assigned = topics
        self.look_for_topics(self.snapshot)

    def partitions(self) -> tuple[TopicPartition, ...]:
        """What is read, sorted."""
        return tuple(sorted(self.states))

    def paused(self) -> tuple[TopicPartition, ...]:
        """What is paused, sorted."""
        return tuple(sorted(tp for tp, state in self.states.items() if state.is_paused))

    def is_settled(self) -> bool:
        """True if each partition has a position, or something in the way of it that may last."""
        return all(
            state.lookup is None or state.failures >= SETTLED_FAILURES or state.is_halted or state.tp in self.denied
            for state in self.states.values()
        )

    def deny(self, tp: TopicPartition) -> bool:
        """Note that the user may not read it; True if the application is to be told: once for the topic."""
        is_news = all(each.topic != tp.topic for each in self.denied)
        self.denied.add(tp)
        return is_news

    def allow(self, tp: TopicPartition) -> None:
        """Note that it was read: the next refusal is told, once no other partition of the topic is refused."""
        if self.denied:
            gone = {each for each in self.denied if each.topic == tp.topic and each not in self.states}
            self.denied -= {tp, *gone}

    def state(self, tp: TopicPartition) -> PartitionState:
        """ConfigError if the partition is not assigned."""
        state = self.states.get(tp)
        if state is None:
            raise ConfigError("the partition is not assigned to this consumer", topic=tp[0], partition=tp[1])
        return state

    def seek(self, tp: TopicPartition, offset: int, leader_epoch: int = -1) -> None:
        """Go on at ``offset``; the leader is asked whether it still holds the record before, of that leader epoch."""
        self.state(tp).move_to(offset, next(self._epochs), leader_epoch)
        self.shake()

    def seek_to_end_of_log(self, tp: TopicPartition, timestamp: int) -> None:
        """Go on at one end of the log, EARLIEST or LATEST; it is looked up now."""
        self.state(tp).locate(Lookup(Purpose.START, (timestamp,)), next(self._epochs))
        self.shake()

    def seek_to_committed(self, tp: TopicPartition) -> None:
        """Go on where :meth:`committed_found` says."""
        self.state(tp).locate(Lookup(Purpose.COMMITTED, ()), next(self._epochs))
        self.shake()

    def pause(self, tp: TopicPartition, offset: int | None) -> None:
        """Fetch and hand out nothing until :meth:`resume`, which goes on at ``offset``."""
        state = self.state(tp)
        state.is_paused = self.is_shaken = True  # nothing is to be sent for that
        if offset is not None:
            # What was fetched goes: kept, it would take the room of the partitions that are read.
            state.move_to(offset, next(self._epochs), state.position_epoch)

    def resume(self, tp: TopicPartition) -> None:
        """Undo :meth:`pause`."""
        state = self.state(tp)
        state.is_paused = False
        self.mark_ready(state)
        self.shake()

    def may_let_go(self, state: PartitionState) -> bool:
        """True for a topic that was among those of a pattern, and is not any more: it was deleted."""
        return self._is_subscribed and state.tp.topic not in self._topics

    def let_go(self, state: PartitionState) -> None:
        """Read it no more, and forget what was read of it."""
        self.note("topic.gone", state, position=state.position)
        self.notes.append(StartAnew(state.tp))
        self.give_up([state.tp])

    # What a group says

    def take_over(self, partitions: Iterable[TopicPartition], *, is_held: bool) -> None:
        """Read these too, from :meth:`committed_found` on, and only after :meth:`release` if they are held."""
        for tp in sorted(partitions):
            self._add(tp, COMMITTED)
            self.states[tp].is_held = is_held
        self.count_partitions({tp.topic for tp in partitions})

    def count_partitions(self, topics: Iterable[str]) -> None:
        """From now on, or from when metadata has them, partitions that are added to these hold only what is new."""
        self._counted |= set(topics)
        self.look_for_topics(self.snapshot)

    def look_for_topics(self, snapshot: Snapshot) -> None:
        """Note the number of partitions of each topic when it is first seen."""
        missing = {topic: 0 for topic in self._counted if _is_missing(snapshot, topic, None)}
        counts = {topic: len(snapshot.partitions(topic)) for topic in self._counted | self._assigned}
        self.topics_counted(missing | {topic: count for topic, count in counts.items() if count})

    def topics_counted(self, counts: Mapping[str, int]) -> None:
        """How many partitions each topic had when we first saw it, where others than metadata say so."""
        for topic, partitions in counts.items():
            self._first_counts.setdefault(topic, partitions)

    def hold(self, tp: TopicPartition) -> None:
        """Read nothing of it until :meth:`release`."""
        self.state(tp).is_held = self.is_shaken = True

    def release(self, partitions: Iterable[TopicPartition]) -> None:
        """Read those that were held."""
        for tp in partitions:
            state = self.states.get(tp)
            if state is not None:
                state.is_held = False
                self.mark_ready(state)
        self.shake()

    def give_up(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these no more."""
        self.assign(self.states.keys() - set(partitions))

    def awaiting_commit(self) -> dict[TopicPartition, int]:
        """Partitions that wait for :meth:`committed_found`, and what to tell it."""
        return {tp: state.epoch for tp, state in self.states.items() if state.awaits_commit and not state.is_halted}

    def committed_found(self, tp: TopicPartition, epoch: int, offset: int | None, leader_epoch: int = -1) -> bool:
        """The group's committed offset, None if it has none; False if nobody waits for it any more."""
        state = self.states.get(tp)
        if state is None or state.epoch != epoch or not state.awaits_commit:
            return False
        if offset is not None:
            self.seek(tp, offset, leader_epoch)
            state.is_where_committed = True
        else:
            self.locate(state, self._policy_for(state))
        return True

    def _policy_for(self, state: PartitionState) -> str:
        """The reset policy without a committed offset: a partition that was added later is read from its start."""
        policy = self._config.auto_offset_reset
        topic, partition = state.tp
        is_new = state.is_new or partition >= self._first_counts.get(topic, partition + 1)
        return "earliest" if is_new and policy != "none" else policy

    # What metadata says

    def metadata_changed(self, snapshot: Snapshot) -> None:
        before, self.snapshot = self.snapshot, snapshot
        self._follow_ids()
        self.look_for_topics(snapshot)
        for state in self.states.values():
            if state.lookup is not None and self._was_never_there(state):
                self._does_not_exist_yet(state, state.lookup)
            if before.partitions(state.tp.topic) and not snapshot.partitions(state.tp.topic):
                state.goes_away()
            self._follow_leader(state)
        self._follow_topics()
        self.shake()

    def _was_never_there(self, state: PartitionState) -> bool:
        topic, partition = state.tp
        is_known = state.has_been_seen or partition < self._first_counts.get(topic, 0)
        return not is_known and _is_missing(self.snapshot, topic, partition)

    def _does_not_exist_yet(self, state: PartitionState, lookup: Lookup) -> None:
        """Start a missing partition at its beginning: once it exists, its end may be after its first records."""
        state.is_new = True
        if lookup.purpose is Purpose.START and lookup.timestamps == (LATEST,) and lookup.lost_offset is None:
            self.locate(state, "earliest")

    def _follow_ids(self) -> None:
        for topic, known in self._ids.items():
            topic_id = self.snapshot.topic_id(topic)
            if topic_id not in (None, known) and topic_id not in self._old_ids:
                assert topic_id is not None
                self._old_ids.add(known)
                self._ids[topic] = topic_id
                # All that it holds is new, also to a group that gives it to us again.
                self._first_counts[topic] = 0
                if not any(tp.topic == topic for tp in self.states):
                    self.notes.append(Note("topic.made_again", {"topic": topic, "old_id": str(known)}))

    def _follow_topics(self) -> None:
        for topic in self._topics:
            for partition in self.snapshot.partitions(topic):
                tp = TopicPartition(topic, partition)
                if tp not in self.states:
                    self._add(tp)
                    self.shake()

    def _add(self, tp: TopicPartition, policy: str | None = None) -> None:
        """Read the partition from the offset that ``policy`` gives, by default the configured one."""
        state = PartitionState(tp, next(self._epochs), self._config.max_partition_fetch_bytes)
        if tp in self._ends:
            state.end_offset = self._ends.pop(tp)
            state.begin_log()  # what was handed out when it was ours before is not of this assignment
        self.states[tp] = state
        self.locate(state, policy or self._policy_for(state))
        self._follow_leader(state)

    def _follow_leader(self, state: PartitionState) -> None:
        topic, partition = state.tp
        topic_id = self.snapshot.topic_id(topic)
        if topic_id is not None:
            if topic_id != self._ids.setdefault(topic, topic_id):
                return  # a broker that has not heard yet that the topic was made again
            if state.topic_id is not None and state.topic_id != topic_id:
                self._start_anew(state)
            state.topic_id = topic_id
        state.led_in(self.snapshot.leader_epoch(topic, partition))
        leader = self.snapshot.leader(topic, partition)
        if state.follower is not None and (state.follower not in self.snapshot.brokers or leader != state.leader):
            state.follower = None
            state.disown_flight(next(self._epochs))
        if leader == state.leader:
            return
        if leader is not None:
            # Asked anew there, at once; what the old leader may still answer would come twice.
            state.disown_flight(next(self._epochs))
            state.retry_at = 0.0
        state.leader = leader

    def _start_anew(self, state: PartitionState) -> None:
        """The topic was deleted and made again: positions in the old one mean nothing in the new one of that name."""
        self.note("topic.made_again", state, position=state.position, old_id=str(state.topic_id))
        self.notes.append(StartAnew(state.tp))
        state.begin_log()
        state.end_offset = -1
        policy = self._config.auto_offset_reset
        if state.awaits_commit or state.is_where_committed:
            self.locate(state, COMMITTED)  # asked anew: others may have read, and committed, in the new one
        else:
            self.locate(state, "earliest" if policy != "none" else policy, lost=state.position)

    # Small things

    def read_from(self, state: PartitionState, node_id: int, until: float) -> bool:
        """Fetch from a replica that is nearer than the leader, for a while (KIP-392); False if it is not known."""
        if node_id not in self.snapshot.brokers:
            return False
        state.follower, state.follower_until = node_id, until
        self.is_shaken = True
        return True

    def owner(self, ask: FetchAsk | OffsetAsk | EpochAsk) -> PartitionState | None:
        """The partition that still waits for the answer to ``ask``; it waits no more."""
        state = self.states.get(ask.tp)
        if state is None or state.epoch != ask.epoch:
            return None
        state.is_in_flight = False
        return state

    def put_last(self, tp: TopicPartition) -> None:
        """Others come first in the next fetch: brokers fill an answer in the order of the request."""
        self.states[tp] = self.states.pop(tp)

    def broker_name(self, state: PartitionState) -> str | None:
        """``"host:port (id N)"`` of the broker that is asked."""
        source = state.source
        broker = None if source is None else self.snapshot.brokers.get(source)
        return None if broker is None else broker.name


def _is_missing(snapshot: Snapshot, topic: str, partition: int | None) -> bool:
    """True if the cluster does not have the topic, or that partition of it; False where the snapshot does not say.

    A topic that is being created has no partitions yet.  An answer without brokers says nothing about topics.
    """
    found = snapshot.topics.get(topic)
    if found is None or not any(node_id >= 0 for node_id in snapshot.brokers):
        return False
    if found.partitions:
        return partition is not None and partition not in found.partitions
    return found.error in MISSING
