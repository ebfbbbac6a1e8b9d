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
from pykafka08.errors import KafkaError, RemoteProtocolError
from pykafka08.group.actions import Action, HangUp, Heartbeat, Join, Leave, Membership, Sync, UseTopics
from pykafka08.group.answers import join_fault, sync_fault
from pykafka08.group.held import HeldRequest, Sight
from pykafka08.group.leader import Leadership
from pykafka08.group.life import UNDECODABLE_TIMEOUT, MemberLife
from pykafka08.group.ownership import Partitions
from pykafka08.group.reactions import Api, Reaction, join_message, reaction_to, reaction_to_failure
from pykafka08.group.settings import GroupConfig
from pykafka08.group.states import REBALANCING, SILENT, State
from pykafka08.group.subscription import decode_assignment
from pykafka08.protocol.messages.join_group import JoinGroupResponse
from pykafka08.protocol.messages.sync_group import SyncGroupResponse

__all__ = ["GroupMachine"]


REJOIN_APIS = frozenset({Api.SYNC_GROUP, Api.HEARTBEAT})
"""APIs in whose answers a coordinator asks its members to join again, with REBALANCE_IN_PROGRESS."""


class GroupMachine(MemberLife):
    """One member of one group."""

    def __init__(self, config: GroupConfig, backoff: Backoff, patience: float = UNDECODABLE_TIMEOUT) -> None:
        super().__init__(config, backoff, patience)
        self._counts: Mapping[str, int] = {}
        self._protocol = ""
        self._held = HeldRequest()
        self._reason: str | None = None
        self._is_prepared = False
        self._leadership: Leadership | None = None
        self._offered: frozenset[str] = frozenset()
        """The topics in the last JoinGroup request."""

    # --- inputs: the application ------------------------------------------------------------------------------------

    def subscribe(self, topics: Iterable[str]) -> None:
        """What to read; joins, or joins again if that differs from before."""
        wanted = frozenset(topics)
        if wanted != self._topics:
            self._topics = wanted
            self._reason = "the subscription has changed"

    def leave(self) -> None:
        """Give everything up, say so to the coordinator (unless static), and end."""
        if self.state is State.ENDED or self._is_leaving:
            return
        self._is_leaving = True
        self._search.stop()
        self._owned.revoke_all()
        if self.state not in REBALANCING:
            self.state = State.PREPARING

    # --- inputs: the cluster ----------------------------------------------------------------------------------------

    def metadata_changed(self, counts: Mapping[str, int]) -> None:
        """Partitions per topic, of all topics that metadata tells of; 0 for those that it has no partitions of."""
        self._counts = counts
        if self._leadership is not None and self.state in (State.ASSIGNING, State.STABLE):
            changed = self._leadership.changed_topics(counts)
            if changed:
                self._rejoin(f"the number of partitions of {', '.join(changed)} has changed")

    def joined(
        self, attempt: int, response: JoinGroupResponse, now: float, *, session_timeout: float, is_v0: bool = False
    ) -> None:
        if attempt != self._held.attempt:
            return
        self._decoded(Api.JOIN_GROUP)
        if response.error_code == 0:
            self._held.ended()
            self.heartbeats.is_v0 = is_v0
            self._entered(response, now, session_timeout)
            return
        if reaction_to(Api.JOIN_GROUP, response.error_code) is Reaction.TAKE_MEMBER_ID:
            if not response.member_id:
                self._fail(self._invalid_answer(Api.JOIN_GROUP, "MEMBER_ID_REQUIRED without a member id"))
                return
            self.membership = Membership(response.member_id)
            self._reason = self._reason or "the coordinator gave a member id"
        message = join_message(response.error_code, session_timeout, is_v0=is_v0)
        error = self._refusal(Api.JOIN_GROUP, response.error_code, message)
        self.request_failed(attempt, Api.JOIN_GROUP, error, now)

    def synced(self, attempt: int, response: SyncGroupResponse, now: float) -> None:
        if attempt != self._held.attempt:
            return
        self._decoded(Api.SYNC_GROUP)
        if response.error_code:
            error = self._refusal(Api.SYNC_GROUP, response.error_code)
            self.request_failed(attempt, Api.SYNC_GROUP, error, now)
            return
        sent_at = self._held.sent_at
        self._held.ended()
        try:
            assigned = decode_assignment(response.assignment)
            fault = sync_fault(response, self._protocol)
        except RemoteProtocolError as error:
            fault = error.message
        if fault is not None:
            self._fail(self._invalid_answer(Api.SYNC_GROUP, fault))
            return
        # The broker's clock may have begun when it took SyncGroup: an answer that came late is no sign of life.
        # What a look has found held since then is one.
        self.heartbeats.restart(max(sent_at, self.heartbeats.heard_at))
        self._be_well()
        self._held.losses = 0
        self._take(assigned)

    def heartbeat_answered(self, attempt: int, code: int, now: float) -> None:
        if not self.heartbeats.awaits(attempt):
            return
        self._decoded(Api.HEARTBEAT)
        if reaction_to(Api.HEARTBEAT, code) is Reaction.REJOIN:
            self.heartbeats.told_to_rejoin()
        if code:
            self.request_failed(attempt, Api.HEARTBEAT, self._refusal(Api.HEARTBEAT, code), now)
            return
        self.heartbeats.answered()
        self._pace.rest()
        self._be_well()

    def left(self, attempt: int, code: int, now: float) -> None:
        """LeaveGroup was answered."""
        if attempt != self._leaving:
            return
        if code:
            self.request_failed(attempt, Api.LEAVE_GROUP, self._refusal(Api.LEAVE_GROUP, code), now)
        else:
            self._end(None)

    def request_failed(self, attempt: int, api: Api, error: KafkaError, now: float) -> None:
        """An error code, or no answer."""
        if api is Api.HEARTBEAT:
            if not self.heartbeats.awaits(attempt):
                return
            self.heartbeats.drop()
        elif api is Api.FIND_COORDINATOR:
            if not self._search.failed(attempt):
                return
        elif api is Api.LEAVE_GROUP:
            if attempt != self._leaving:
                return
            self._leaving = None
        elif attempt != self._held.attempt:
            return
        else:
            self._held.ended()
            self.state = State.UNJOINED
        self._react(reaction_to_failure(api, error), api, error, now)

    def looked(self, attempt: int, sight: Sight | None, now: float) -> None:
        """What a look at the group has seen; None if nothing, as nobody has answered."""
        if not self._held.awaits(attempt):
            return
        if sight is not None and sight.holds(self.state, self.membership.member_id):
            self.heartbeats.heard_at = max(self.heartbeats.heard_at, self._held.found_held(now))
        elif (lost := self._held.found_nothing(now)) is not None:
            api = Api.JOIN_GROUP if self.state is State.JOINING else Api.SYNC_GROUP
            self._note("group.answer_lost", api=api.value, group_state=None if sight is None else sight.state)
            self._notes.append(HangUp(*lost, api.value))

    def look_refused(self, attempt: int) -> None:
        """This member may not look at the group, or its coordinator cannot be asked."""
        if self._held.awaits(attempt):
            self._held.hide()

    # --- outputs ----------------------------------------------------------------------------------------------------

    def poll(self, now: float) -> list[Action]:
        if self._may_expire() and now >= self.heartbeats.expires_at:
            self._expire(now)
        self._advance()
        actions, self._notes = self._notes, []
        if self._owned.is_due:
            actions.append(self._owned.begin())
        for make in (self._find, self._join, self._assign, self._sync, self._look, self._heartbeat, self._leave):
            actions += make(now)
        return actions

    def next_wakeup(self) -> float | None:
        times = []
        if self._owned.is_due:
            times.append(0.0)
        if self._wants_coordinator() or self._may_sync():
            times.append(self._not_before)
        if self._may_join():
            times.append(self._join_at)
        if self._is_assigning():
            assert self._leadership is not None
            times.append(self._leadership.assign_by)
        if self._may_expire():
            times.append(self.heartbeats.expires_at)
        if self._is_beating() and not self.heartbeats.is_in_flight and self.coordinator is not None:
            times.append(self.heartbeats.due_at)
        if self._held.look_at is not None:
            times.append(self._held.look_at)
        if self._may_leave() and self.coordinator is not None:
            times.append(self._not_before)
        return min(times, default=None)

    @property
    def is_settled(self) -> bool:
        """True if the member has its assignment, the application knows it, and there is no reason to join again."""
        return self.state is State.STABLE and self._reason is None

    @property
    def is_rejoining(self) -> bool:
        """True while the coordinator may be in a newer generation than ``membership`` says."""
        # Unjoined again: a JoinGroup whose answer is lost may have begun one.
        is_between = self.state is State.UNJOINED and self._is_prepared and self.membership.generation >= 0
        return is_between or self.state in (State.JOINING, State.SYNCING)

    @property
    def is_leader(self) -> bool:
        """True if this member assigns the group's partitions in this generation."""
        return self._leadership is not None

    # --- inside -----------------------------------------------------------------------------------------------------

    def _is_beating(self) -> bool:
        return self.membership.generation >= 0 and self.state not in SILENT

    def _may_expire(self) -> bool:
        """While a request is held, looks at the group take the place of heartbeats."""
        is_seen = self._held.attempt is not None and not self._held.is_hidden
        return self._is_beating() or (self.membership.generation >= 0 and is_seen)

    def _advance(self) -> None:
        """Follow what needs no time and no answer."""
        if self._is_gone and self.state in REBALANCING:
            self._held.ended()  # whatever comes of the rebalance
            self.state = State.PREPARING
        if self.state is State.ASSIGNING and self._owned.is_told:
            self.state = State.STABLE
        if self.state is State.STABLE and self._reason is not None and self.coordinator is not None:
            self.state = State.UNJOINED
        is_willing = self._reason is not None and not self._is_leaving
        if self.state is State.UNJOINED and not self._is_prepared and is_willing:
            self._prepare()
        if self.state is State.PREPARING and self._owned.is_told and not self._is_leaving:
            self.state, self._is_prepared = State.UNJOINED, True

    def _prepare(self) -> None:
        """Give up what cannot be kept while joining."""
        self.state = State.PREPARING
        keeps = self._config.is_cooperative
        self._owned.revoke(frozenset(tp for tp in self.assigned if not keeps or tp.topic not in self._topics))

    def _wants_coordinator(self) -> bool:
        if not self._search.is_idle or self.state is State.ENDED:
            return False
        return bool(self.membership.member_id) if self._is_leaving else bool(self._topics)

    def _may_join(self) -> bool:
        return self.state is State.UNJOINED and self._is_prepared and self.coordinator is not None

    @property
    def _join_at(self) -> float:
        return max(self._not_before, self._pace.not_before)

    def _join(self, now: float) -> list[Action]:
        if not self._may_join() or now < self._join_at:
            return []
        assert self.coordinator is not None
        self._pace.step(now)
        self.state = State.JOINING
        reason, self._reason = self._reason or "an attempt to join failed", None
        self.heartbeats.drop()
        self._offered = self._topics
        protocols = self._owned.offer(self._config.assignors, self._topics, self.membership.generation)
        return [Join(self._send(now), self.coordinator, self.membership.member_id, protocols, reason)]

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
        is_waiting = self._held.attempt is not None or self.coordinator is None
        return self.state is State.SYNCING and not is_waiting and not self._is_assigning()

    def _sync(self, now: float) -> list[Action]:
        if not self._may_sync() or now < self._not_before:
            return []
        assert self.coordinator is not None
        assignments = self._leadership.assignments if self._leadership is not None else None
        return [Sync(self._send(now), self.coordinator, self.membership, self._protocol, assignments or ())]

    def _send(self, now: float) -> int:
        """JoinGroup or SyncGroup, which may be held; the attempt."""
        assert self.coordinator is not None
        left = self.heartbeats.expires_at - now if self.membership.generation >= 0 else None
        session_timeout = self.heartbeats.session_timeout or self._config.session_timeout
        attempt = self._next_attempt()
        self._held.sent(attempt, self.coordinator, now, session_timeout, left=left)
        return attempt

    def _look(self, now: float) -> list[Action]:
        """At the group: does it still hold what is out?"""
        is_due = self._held.look_at is not None and now >= self._held.look_at
        return [self._held.look(self._next_attempt(), now)] if is_due else []

    def _heartbeat(self, now: float) -> list[Action]:
        clock = self.heartbeats
        if not self._is_beating() or clock.is_in_flight or self.coordinator is None or now < clock.due_at:
            return []
        beat = Heartbeat(self._next_attempt(), self.coordinator, self.membership)
        clock.sent(beat.attempt, now)
        return [beat]

    def _may_leave(self) -> bool:
        return self._is_gone and self.state is State.PREPARING and self._leaving is None

    def _leave(self, now: float) -> list[Action]:
        if not self._may_leave():
            return []
        if not self.membership.member_id or self._config.group_instance_id is not None:
            self._end(None)
            return []
        if self.coordinator is None or now < self._not_before:
            return []
        self._leaving = self._next_attempt()
        return [Leave(self._leaving, self.coordinator, self.membership)]

    def _entered(self, response: JoinGroupResponse, now: float, session_timeout: float) -> None:
        assignor = next((each for each in self._config.assignors if each.name == response.protocol_name), None)
        fault = join_fault(response, self.membership.member_id)
        if assignor is None or fault is not None:
            text = fault or f"the group chose assignor {response.protocol_name!r}, which was not offered"
            self._fail(self._invalid_answer(Api.JOIN_GROUP, text))
            return
        self.membership = Membership(response.member_id, response.generation_id)
        self.heartbeats.session_timeout = session_timeout
        self._protocol = assignor.name
        self.state = State.SYNCING
        self.heartbeats.restart(now)
        self._leadership = Leadership.of(response, assignor, self._counts, now)
        if self._leadership is not None:
            self._lead(self._leadership, response)

    def _lead(self, leadership: Leadership, response: JoinGroupResponse) -> None:
        """Assign as the leader.  Damaged subscriptions of others are logged; a damaged own one ends the membership."""
        fault = leadership.own_fault(response.member_id, self._offered)
        if fault is not None and not response.skip_assignment:
            self._fail(self._invalid_answer(Api.JOIN_GROUP, fault))
            return
        for member_id, error in leadership.unreadable.items():
            self._note("group.member_unreadable", member_id=member_id, cause=str(error))

    def _take(self, assigned: Partitions) -> None:
        """The new assignment, minus what is no longer wanted."""
        if self._is_leaving:
            self.state = State.PREPARING  # all that was wanted is a generation in which to commit
            return
        wanted = frozenset(tp for tp in assigned if tp.topic in self._topics)
        if wanted != assigned and self._reason is None:
            foreign = ", ".join(sorted({tp.topic for tp in assigned - wanted}))
            fault = f"the assignment has topics that this member does not read: {foreign}"
            self._be_troubled(Api.SYNC_GROUP, Reaction.REJOIN, self._invalid_answer(Api.SYNC_GROUP, fault))
            self._reason = "the assignment has topics that this member does not read"
        self._is_prepared = False
        self.state = State.ASSIGNING
        if self._owned.take(wanted, self.membership.generation):
            self._reason = "partitions were given up for other members"
        self.metadata_changed(self._counts)

    def _react(self, reaction: Reaction, api: Api, error: KafkaError, now: float) -> None:
        if api is Api.LEAVE_GROUP and not self._leaves_again(reaction):
            self._end(None)
            return
        if reaction is Reaction.FAIL or self._is_undecodable_too_long(api, reaction, now):
            self._fail(error)
            return
        is_step = reaction is Reaction.TAKE_MEMBER_ID or (reaction is Reaction.REJOIN and api is Api.HEARTBEAT)
        if not is_step:  # these are normal steps of a join or rebalance
            self._be_troubled(api, reaction, error)
        table: dict[Reaction, Callable[[], None]] = {
            Reaction.FIND_COORDINATOR: self._forget_coordinator,
            Reaction.FIND_THEN_FAIL: self._forget_coordinator,
            Reaction.REJOIN: lambda: self._rejoin("the group is rebalancing"),
            Reaction.LOSE_GENERATION: lambda: self._lose(str(error)),
            Reaction.LOSE_MEMBERSHIP: lambda: self._lose(str(error), keeps_id=False),
        }
        if reaction in table:
            table[reaction]()
        if reaction is Reaction.TAKE_MEMBER_ID or (reaction is Reaction.REJOIN and api in REJOIN_APIS):
            return  # part of the protocol, no trouble
        self._not_before = now + self._backoff.failed()
        if api is Api.HEARTBEAT:
            self.heartbeats.due_at = self._not_before

    def _forget_coordinator(self) -> None:
        self._search.node_id = None
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
        self._held.ended()
        self.heartbeats.drop()
        self._leadership = None
        self._owned.lose_all(why)

    def _fail(self, error: KafkaError) -> None:
        self._config.setting_names.in_error(error)
        self._forget_membership(str(error), keeps_id=False)
        self._end(error)

    def _end(self, error: KafkaError | None) -> None:
        super()._end(error)
        self._held.ended()
