"""The classic group protocol as one member speaks it.  Pure; times are monotonic seconds.

Here: when to join, sync, beat and leave, what is owned when, and in which order the application hears of it.  Not here:
requests and callbacks themselves (``coordinator``), committed offsets (``offsets``), who gets what (``assignors``); the
states are in ``states``, what errors do in ``reactions``.  Source: KIP-62, KIP-134, KIP-345, KIP-394, KIP-429, KIP-814;
``AbstractCoordinator`` of Kafka's clients.

Heartbeats run in every state but JOINING, SYNCING and ENDED, for as long as there is a generation.  The application is
told one thing at a time.  Eager members give everything up before they join; cooperative ones keep it, give up after
SyncGroup what others shall have, and join once more.  A generation that is lost takes the partitions with it at once;
the application hears of it next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from pykafka08.backoff import Backoff
from pykafka08.errors import BrokerError, KafkaError, RemoteProtocolError, broker_error
from pykafka08.group.actions import Action, FindCoordinator, Heartbeat, Join, Leave, Membership, Note, Sync, UseTopics
from pykafka08.group.heartbeats import HeartbeatClock
from pykafka08.group.leader import Leadership
from pykafka08.group.ownership import Ownership, Partitions
from pykafka08.group.reactions import Api, Reaction, reaction_to, reaction_to_failure
from pykafka08.group.settings import GroupConfig
from pykafka08.group.states import SILENT, State
from pykafka08.group.subscription import decode_assignment
from pykafka08.protocol.messages.join_group import JoinGroupResponse
from pykafka08.protocol.messages.sync_group import SyncGroupResponse

__all__ = ["GroupMachine"]


class GroupMachine:
    """One member of one group."""

    def __init__(self, config: GroupConfig, backoff: Backoff) -> None:
        self.state = State.UNJOINED
        self.membership = Membership()
        self.coordinator: int | None = None
        self.error: KafkaError | None = None
        self.heartbeats = HeartbeatClock(config.heartbeat_interval_ms / 1000)
        self._config = config
        self._backoff = backoff
        self._topics: frozenset[str] = frozenset()
        self._counts: Mapping[str, int] = {}
        self._protocol = ""
        self._attempts = 0
        self._finding: int | None = None
        self._flight: int | None = None
        self._not_before = 0.0
        self._sync_sent_at = 0.0
        self._reason: str | None = None
        self._is_prepared = False
        self._is_leaving = False
        self._owned = Ownership()
        self._leadership: Leadership | None = None
        self._notes: list[Action] = []

    # --- inputs: the application ------------------------------------------------------------------------------------

    def subscribe(self, topics: Iterable[str]) -> None:
        """What to read; joins, or joins again if that differs from before."""
        wanted = frozenset(topics)
        if wanted != self._topics:
            self._topics = wanted
            self._reason = "the subscription has changed"

    def listener_ended(self) -> None:
        """The application has heard what it was told last."""
        self._owned.end()

    def leave(self) -> None:
        """Give everything up, say so to the coordinator (unless static), and end."""
        if self.state is State.ENDED or self._is_leaving:
            return
        self._is_leaving = True
        self._flight = self._finding = None
        self._owned.revoke_all()
        self.state = State.PREPARING

    # --- inputs: the cluster ----------------------------------------------------------------------------------------

    def metadata_changed(self, counts: Mapping[str, int]) -> None:
        """Partitions per topic, of all topics that metadata tells of; 0 for those that it has no partitions of."""
        self._counts = counts
        if self._leadership is not None and self.state in (State.ASSIGNING, State.STABLE):
            changed = self._leadership.changed_topics(counts)
            if changed:
                self._rejoin(f"the number of partitions of {', '.join(changed)} has changed")

    def coordinator_found(self, attempt: int, node_id: int) -> None:
        if attempt == self._finding:
            self._finding = None
            self.coordinator = node_id

    def coordinator_lost(self, node_id: int) -> None:
        """Somebody heard that this broker does not coordinate the group any more."""
        if self.coordinator == node_id:
            self.coordinator = None

    def joined(self, attempt: int, response: JoinGroupResponse, now: float, *, session_timeout: float) -> None:
        if attempt != self._flight:
            return
        if response.error_code == 0:
            self._flight = None
            self._entered(response, now, session_timeout)
            return
        if reaction_to(Api.JOIN_GROUP, response.error_code) is Reaction.TAKE_MEMBER_ID:
            self.membership = Membership(response.member_id)
        self.request_failed(attempt, Api.JOIN_GROUP, broker_error(response.error_code, api=Api.JOIN_GROUP.value), now)

    def synced(self, attempt: int, response: SyncGroupResponse, now: float) -> None:
        if attempt != self._flight:
            return
        if response.error_code:
            error = broker_error(response.error_code, api=Api.SYNC_GROUP.value)
            self.request_failed(attempt, Api.SYNC_GROUP, error, now)
            return
        self._flight = None
        try:
            assigned = decode_assignment(response.assignment)
        except RemoteProtocolError as error:
            self._fail(error)
            return
        # The broker's clock may have begun when it took SyncGroup: an answer that came late is no sign of life.
        self.heartbeats.restart(self._sync_sent_at)
        self._backoff.succeeded()
        self._take(assigned)

    def heartbeat_answered(self, attempt: int, code: int, now: float) -> None:
        if not self.heartbeats.awaits(attempt):
            return
        if code:
            self.request_failed(attempt, Api.HEARTBEAT, broker_error(code, api=Api.HEARTBEAT.value), now)
            return
        self.heartbeats.answered()
        self._backoff.succeeded()

    def left(self, attempt: int) -> None:
        """Whatever the coordinator said: the session's end does the same."""
        if attempt == self._flight:
            self._flight = None
            self._end(None)

    def request_failed(self, attempt: int, api: Api, error: KafkaError, now: float) -> None:
        """An error code, or no answer."""
        if api is Api.HEARTBEAT:
            if not self.heartbeats.awaits(attempt):
                return
            self.heartbeats.drop()
        elif api is Api.FIND_COORDINATOR:
            if attempt != self._finding:
                return
            self._finding = None
        elif attempt != self._flight:
            return
        else:
            self._flight = None
            self.state = State.UNJOINED
        self._react(reaction_to_failure(api, error), api, error, now)

    def commit_refused(self, membership: Membership, error: BrokerError, now: float) -> None:
        """A commit heard that the member is not what it takes itself for; news only if that is still so."""
        # While JoinGroup or SyncGroup is under way, its own answer tells.
        if membership == self.membership and self._is_beating():
            self._react(reaction_to(Api.OFFSET_COMMIT, int(error.code)), Api.OFFSET_COMMIT, error, now)

    # --- outputs ----------------------------------------------------------------------------------------------------

    def poll(self, now: float) -> list[Action]:
        if self._is_beating() and now >= self.heartbeats.expires_at:
            # Others own the partitions by now.
            late = now - self.heartbeats.heard_at
            self._lose(f"no heartbeat was answered for {late:.1f} s: the session is over")
        self._advance()
        actions, self._notes = self._notes, []
        if self._owned.is_due:
            actions.append(self._owned.begin())
        for make in (self._find, self._join, self._assign, self._sync, self._heartbeat, self._leave):
            actions += make(now)
        return actions

    def next_wakeup(self) -> float | None:
        times = []
        if self._owned.is_due:
            times.append(0.0)
        if self._wants_coordinator() or self._may_join() or self._may_sync():
            times.append(self._not_before)
        if self._is_assigning():
            assert self._leadership is not None
            times.append(self._leadership.assign_by)
        if self._is_beating():
            times.append(self.heartbeats.expires_at)
            if not self.heartbeats.is_in_flight and self.coordinator is not None:
                times.append(self.heartbeats.due_at)
        return min(times, default=None)

    @property
    def assigned(self) -> Partitions:
        """What this member owns now."""
        return self._owned.assigned

    @property
    def is_settled(self) -> bool:
        """True if the member has its assignment, the application knows it, and there is no reason to join again."""
        return self.state is State.STABLE and self._reason is None

    @property
    def is_leader(self) -> bool:
        """True if this member assigns the group's partitions in this generation."""
        return self._leadership is not None

    @property
    def is_idle(self) -> bool:
        """True if the machine has ended and the application has heard everything."""
        return self.state is State.ENDED and self._owned.is_told

    # --- inside -----------------------------------------------------------------------------------------------------

    def _is_beating(self) -> bool:
        return self.membership.generation >= 0 and self.state not in SILENT

    def _advance(self) -> None:
        """Follow what needs no time and no answer."""
        if self.state is State.ASSIGNING and self._owned.is_told:
            self.state = State.STABLE
        if self.state is State.STABLE and self._reason is not None and self.coordinator is not None:
            self.state = State.UNJOINED
        if self.state is State.UNJOINED and not self._is_prepared and self._reason is not None:
            self._prepare()
        if self.state is State.PREPARING and self._owned.is_told and not self._is_leaving:
            self.state, self._is_prepared = State.UNJOINED, True

    def _prepare(self) -> None:
        """Give up what cannot be kept while joining."""
        self.state = State.PREPARING
        keeps = self._config.is_cooperative
        self._owned.revoke(frozenset(tp for tp in self.assigned if not keeps or tp.topic not in self._topics))

    def _wants_coordinator(self) -> bool:
        if self.coordinator is not None or self._finding is not None or self.state is State.ENDED:
            return False
        return bool(self.membership.member_id) if self._is_leaving else bool(self._topics)

    def _find(self, now: float) -> list[Action]:
        if not self._wants_coordinator() or now < self._not_before:
            return []
        self._finding = self._next_attempt()
        return [FindCoordinator(self._finding)]

    def _may_join(self) -> bool:
        return self.state is State.UNJOINED and self._is_prepared and self.coordinator is not None

    def _join(self, now: float) -> list[Action]:
        if not self._may_join() or now < self._not_before:
            return []
        assert self.coordinator is not None
        self.state = State.JOINING
        reason, self._reason = self._reason or "an attempt to join failed", None
        self.heartbeats.drop()
        protocols = self._owned.offer(self._config.assignors, self._topics, self.membership.generation)
        self._flight = self._next_attempt()
        return [Join(self._flight, self.coordinator, self.membership.member_id, protocols, reason)]

    def _is_assigning(self) -> bool:
        return self.state is State.SYNCING and self._leadership is not None and self._leadership.assignments is None

    def _assign(self, now: float) -> list[Action]:
        """The leader's part before SyncGroup."""
        if not self._is_assigning():
            return []
        assert self._leadership is not None
        unknown = self._leadership.try_to_assign(self._counts, now)
        return [UseTopics(unknown)] if unknown else []

    def _may_sync(self) -> bool:
        is_waiting = self._flight is not None or self.coordinator is None
        return self.state is State.SYNCING and not is_waiting and not self._is_assigning()

    def _sync(self, now: float) -> list[Action]:
        if not self._may_sync() or now < self._not_before:
            return []
        assert self.coordinator is not None
        assignments = self._leadership.assignments if self._leadership is not None else None
        self._flight = self._next_attempt()
        self._sync_sent_at = now
        return [Sync(self._flight, self.coordinator, self.membership, self._protocol, assignments or ())]

    def _heartbeat(self, now: float) -> list[Action]:
        clock = self.heartbeats
        if not self._is_beating() or clock.is_in_flight or self.coordinator is None or now < clock.due_at:
            return []
        beat = Heartbeat(self._next_attempt(), self.coordinator, self.membership)
        clock.sent(beat.attempt, now)
        return [beat]

    def _leave(self, now: float) -> list[Action]:
        if not self._is_leaving or self.state is State.ENDED or self._flight or not self._owned.is_told:
            return []
        if not self.membership.member_id or self._config.group_instance_id is not None:
            self._end(None)
            return []
        if self.coordinator is None:
            return []
        self._flight = self._next_attempt()
        return [Leave(self._flight, self.coordinator, self.membership)]

    def _next_attempt(self) -> int:
        self._attempts += 1
        return self._attempts

    def _entered(self, response: JoinGroupResponse, now: float, session_timeout: float) -> None:
        assignor = next((each for each in self._config.assignors if each.name == response.protocol_name), None)
        if assignor is None:
            text = f"the group chose assignor {response.protocol_name!r}, which was not offered"
            self._fail(RemoteProtocolError(text, api=Api.JOIN_GROUP.value))
            return
        self.membership = Membership(response.member_id, response.generation_id)
        self.heartbeats.session_timeout = session_timeout
        self._protocol = assignor.name
        self.state = State.SYNCING
        self.heartbeats.restart(now)
        self._leadership = Leadership.of(response, assignor, self._counts, now)
        for member_id, error in self._leadership.unreadable.items() if self._leadership is not None else ():
            self._note("group.member_unreadable", member_id=member_id, cause=str(error))

    def _take(self, assigned: Partitions) -> None:
        """The new assignment, minus what is no longer wanted."""
        wanted = frozenset(tp for tp in assigned if tp.topic in self._topics)
        if wanted != assigned:
            self._reason = "the subscription has changed"
        self._is_prepared = False
        self.state = State.ASSIGNING
        if self._owned.take(wanted, self.membership.generation):
            self._reason = "partitions were given up for other members"
        self.metadata_changed(self._counts)

    def _react(self, reaction: Reaction, api: Api, error: KafkaError, now: float) -> None:
        if self._is_leaving and api is Api.LEAVE_GROUP:
            self._end(None)
            return
        if reaction is Reaction.FAIL:
            self._fail(error)
            return
        self._note("group.trouble", api=api.value, reaction=reaction.name, cause=str(error))
        table: dict[Reaction, Callable[[], None]] = {
            Reaction.FIND_COORDINATOR: self._forget_coordinator,
            Reaction.REJOIN: lambda: self._rejoin("the group is rebalancing"),
            Reaction.LOSE_GENERATION: lambda: self._lose(str(error)),
            Reaction.LOSE_MEMBERSHIP: lambda: self._lose(str(error), keeps_id=False),
        }
        if reaction in table:
            table[reaction]()
        if reaction is Reaction.TAKE_MEMBER_ID or (reaction is Reaction.REJOIN and api is not Api.JOIN_GROUP):
            return  # part of the protocol, no trouble
        self._not_before = now + self._backoff.failed()
        if api is Api.HEARTBEAT:
            self.heartbeats.due_at = self._not_before

    def _forget_coordinator(self) -> None:
        self.coordinator = None
        self.heartbeats.drop()

    def _rejoin(self, reason: str) -> None:
        if self._reason is None:
            self._reason = reason

    def _lose(self, why: str, *, keeps_id: bool = True) -> None:
        """The generation is over for this member, and whatever it owned with it."""
        self._forget_membership(why, keeps_id=keeps_id)
        if not self._is_leaving:
            self._rejoin("the member was lost to the group")
            self._is_prepared = False
        self.state = State.PREPARING

    def _forget_membership(self, why: str, *, keeps_id: bool) -> None:
        self.membership = Membership(self.membership.member_id if keeps_id else "")
        self._flight = None
        self.heartbeats.drop()
        self._leadership = None
        self._owned.lose_all(why)

    def _fail(self, error: KafkaError) -> None:
        self._forget_membership(str(error), keeps_id=False)
        self._end(error)

    def _end(self, error: KafkaError | None) -> None:
        self.error = error
        self.state = State.ENDED
        self.membership = Membership()
        self._finding = self._flight = None
        self.heartbeats.drop()

    def _note(self, event: str, **facts: object) -> None:
        self._notes.append(Note(event, facts))
