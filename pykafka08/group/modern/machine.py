"""The new group protocol as one member speaks it.  Pure; times are monotonic seconds.

Here: when to beat and with what, what is owned when, and in which order the application hears of it.  Not here:
requests and callbacks themselves (``exchange``, ``coordinator``), committed offsets (``offsets``); what errors do is in
``reactions``.  Source: KIP-848; ``ConsumerMembershipManager`` of Kafka's clients.

One request does it all: with epoch 0 it joins, with the member's epoch it lives and tells what has changed, with -1 it
leaves (-2 for a static member, which is expected back).  The broker moves a member in steps: it takes partitions out of
the assignment, hears in a heartbeat that they are given up, and adds others when those who had them have done the same.
States are those of ``states``, without PREPARING but for losses and leaving, and without SYNCING.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from uuid import UUID

from pykafka08.backoff import Backoff
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import BrokerError, KafkaError
from pykafka08.group.actions import Action, Beat, FallBack, LookUpTopics, Membership
from pykafka08.group.answers import beat_fault
from pykafka08.group.life import UNDECODABLE_TIMEOUT, MemberLife
from pykafka08.group.modern.reactions import explained, reaction_to_beat
from pykafka08.group.modern.report import Report, Truth
from pykafka08.group.modern.target import TargetAssignment
from pykafka08.group.reactions import Api, Reaction, reaction_to_failure
from pykafka08.group.settings import GroupConfig
from pykafka08.group.states import State
from pykafka08.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from pykafka08.short_names import only_name, shortened

__all__ = ["ModernMachine"]

API = Api.CONSUMER_GROUP_HEARTBEAT
JOINING, LEFT, LEFT_FOR_A_WHILE = 0, -1, -2
SHORTEST_INTERVAL = 0.05
"""Minimum seconds between heartbeats, whatever interval the broker asks for."""
MOST_NAMED = 10
"""Topics that the error of a refused heartbeat names."""
RELEASE_PATIENCE = 60.0
"""How long a static member waits for its former self to expire: no broker's session is longer by default."""


class ModernMachine(MemberLife):
    """One member of one group; ``member_id`` is its own choice, for as long as it lives."""

    is_leader = False
    is_rejoining = False

    def __init__(
        self, config: GroupConfig, backoff: Backoff, member_id: str, patience: float = UNDECODABLE_TIMEOUT
    ) -> None:
        super().__init__(config, backoff, patience)
        # The broker has its own, which it does not tell; 45 s is its default and least.
        self.heartbeats.session_timeout = config.session_timeout
        self._member_id = member_id
        self._pattern = ""
        self._target = TargetAssignment()
        self._report = Report()
        self._is_new = False
        self._is_known = False
        self._was_member = False
        self._must_release = False
        self._unreleased_since: float | None = None
        self._fall_back_to: KafkaError | None = None

    # --- inputs: the application ------------------------------------------------------------------------------------

    def subscribe(self, topics: Iterable[str]) -> None:
        """What to read, beside what the pattern matches."""
        self._topics = frozenset(topics)

    def subscribe_pattern(self, pattern: str) -> None:
        """Topics by a regular expression of the broker's (RE2, Kafka 4.0); empty for none."""
        self._pattern = pattern

    def leave(self) -> None:
        """Give everything up, say so to the coordinator, and end."""
        if self.state is State.ENDED or self._is_leaving:
            return
        self._is_leaving = True
        self._search.stop()
        self._owned.revoke_all()
        self.state = State.PREPARING

    # --- inputs: the cluster ----------------------------------------------------------------------------------------

    def topics_named(self, names: Mapping[UUID, str]) -> None:
        """Names of topics, as they are known now; those known before stay."""
        self._target.name(names)

    def look_up_ended(self, attempt: int, now: float) -> None:
        """Whatever was found; the rest is looked up again after a pause."""
        if attempt == self._target.looking_up:
            self._target.looking_up = None
            self._target.look_up_at = now + self._backoff.failed()

    def beaten(self, attempt: int, response: ConsumerGroupHeartbeatResponse, now: float) -> None:
        self._decoded(API)
        if response.error_code:
            self.request_failed(attempt, API, self._beat_refusal(response), now)
        elif attempt == self._leaving:
            self._left()
        elif self.heartbeats.awaits(attempt):
            self._take(response, now)

    def _beat_refusal(self, response: ConsumerGroupHeartbeatResponse) -> BrokerError:
        """The coordinator's error code as an exception; the answer does not say which topic is refused."""
        message, topics = response.error_message, sorted(self._topics)
        if response.error_code != ErrorCode.TOPIC_AUTHORIZATION_FAILED or not topics:
            return self._refusal(API, response.error_code, message)
        if len(topics) > 1:
            names = ", ".join(map(shortened, topics[:MOST_NAMED]))
            more = f" and {len(topics) - MOST_NAMED} more" if len(topics) > MOST_NAMED else ""
            message = f"{message or 'at least one topic is refused'}; the member subscribes to {names}{more}"
        return self._refusal(API, response.error_code, message, topic=only_name(topics))

    def request_failed(self, attempt: int, api: Api, error: KafkaError, now: float) -> None:
        """An error code, or no answer."""
        if self._search.failed(attempt):
            self._react(reaction_to_failure(api, error), api, error, now)
        elif attempt == self._leaving:
            self._refused_to_leave(reaction_to_failure(api, error), error, now)
        elif self.heartbeats.awaits(attempt):
            self.heartbeats.drop()
            self._report.forget()
            is_joining = self.membership.generation < 0
            if is_joining:
                self.state = State.PREPARING
            self._react(reaction_to_beat(error, is_joining=is_joining), api, error, now)

    # --- outputs ----------------------------------------------------------------------------------------------------

    def poll(self, now: float) -> list[Action]:
        if self._is_beating() and now >= self.heartbeats.expires_at:
            self._expire(now)
        self._advance()
        actions, self._notes = self._notes, []
        if self._owned.is_due:
            actions.append(self._owned.begin())
        for make in (self._find, self._look_up, self._beat, self._release, self._leave, self._fall_back):
            actions += make(now)
        return actions

    def next_wakeup(self) -> float | None:
        times = []
        if self._owned.is_due or self._may_fall_back():
            times.append(0.0)
        says_goodbye = self._may_leave() and self.coordinator is not None
        if self._wants_coordinator() or self._may_release() or says_goodbye:
            times.append(self._not_before)
        if self._may_join():
            times.append(self._at_once)
        if self._may_look_up():
            times.append(self._target.look_up_at)
        if self._is_beating():
            times.append(self.heartbeats.expires_at)
            if not self.heartbeats.is_in_flight and self.coordinator is not None:
                times.append(self._beat_at)
        return min(times, default=None)

    @property
    def is_settled(self) -> bool:
        """True if the member has its assignment, the application knows it, and the broker knows that."""
        return self.state is State.STABLE and not self._has_news()

    # --- inside: life -----------------------------------------------------------------------------------------------

    def _is_beating(self) -> bool:
        return self.membership.generation >= 0 and self.state is not State.ENDED

    def _advance(self) -> None:
        """Follow what needs no time and no answer."""
        if not self._owned.is_told or self._is_leaving or self.state is State.ENDED:
            return
        if self.state is State.PREPARING and self._fall_back_to is None:
            self.state = State.UNJOINED
        if not self._is_beating():
            return
        wanted = self._target.partitions()
        if wanted != self.assigned or (self._is_new and not self._target.nameless):
            self._is_new = False
            self._owned.take(wanted, self.membership.generation)
            self.state = State.ASSIGNING
        elif not self._target.nameless:
            self.state = State.STABLE

    def _wants_coordinator(self) -> bool:
        if not self._search.is_idle or self.state is State.ENDED:
            return False
        return self._is_known if self._is_leaving else bool(self._topics or self._pattern)

    def _may_look_up(self) -> bool:
        return self._target.looking_up is None and not self._is_leaving and bool(self._target.nameless)

    def _look_up(self, now: float) -> list[Action]:
        if not self._may_look_up() or now < self._target.look_up_at:
            return []
        attempt = self._target.looking_up = self._next_attempt()
        return [LookUpTopics(attempt, self._target.nameless)]

    # --- inside: heartbeats -----------------------------------------------------------------------------------------

    def _truth(self) -> Truth:
        return Truth(self._topics, self._pattern, self._target.by_id(self.assigned))

    def _has_news(self) -> bool:
        """Who leaves must keep up with the broker's epoch until its last commits are made."""
        return not self._is_gone and self._report.is_due(self._truth())

    def _may_join(self) -> bool:
        is_ready = self.state is State.UNJOINED and self.coordinator is not None
        return is_ready and not self._must_release and bool(self._topics or self._pattern)

    @property
    def _at_once(self) -> float:
        """The earliest time of a heartbeat that does not wait for the interval."""
        return max(self._not_before, self._pace.not_before)

    @property
    def _beat_at(self) -> float:
        due_at = self.heartbeats.due_at
        return min(self._at_once, due_at) if self._has_news() else due_at

    def _beat(self, now: float) -> list[Action]:
        if self.coordinator is None or self.heartbeats.is_in_flight:
            return []
        if self._may_join() and now >= self._at_once:
            self.state = State.JOINING
            self._report.forget()
            self._is_known = True
            self._pace.step(now)
            return [self._say(Membership(self._member_id, JOINING), now)]
        if not self._is_beating() or now < self._beat_at:
            return []
        if self._has_news():
            self._pace.step(now)
        else:
            self._pace.rest()
        return [self._say(self.membership, now)]

    def _say(self, membership: Membership, now: float) -> Beat:
        assert self.coordinator is not None
        beat = Beat(self._next_attempt(), self.coordinator, membership, **self._report.say(self._truth()))
        self.heartbeats.sent(beat.attempt, now)
        return beat

    def _take(self, response: ConsumerGroupHeartbeatResponse, now: float) -> None:
        """Take a heartbeat's answer without an error code."""
        is_joining = self.membership.generation < 0
        fault = beat_fault(response, None if is_joining else self._member_id)
        if fault is not None:
            self._fail(self._invalid_answer(API, fault))
            return
        self._report.heard()
        self._be_well()
        self._unreleased_since = None
        self._was_member = True
        self.heartbeats.interval = max(SHORTEST_INTERVAL, response.heartbeat_interval_ms / 1000)
        self.heartbeats.answered()
        self.heartbeats.due_at = now + self.heartbeats.interval
        if is_joining and not self._is_leaving:
            self.state = State.ASSIGNING
            self._is_new = True
        self._member_id = response.member_id or self._member_id
        self.membership = Membership(self._member_id, response.member_epoch)
        if response.assignment is not None:
            self._target.replace(response.assignment.topic_partitions)

    # --- inside: ends -----------------------------------------------------------------------------------------------

    def _may_release(self) -> bool:
        is_ready = self.state is State.UNJOINED and self.coordinator is not None
        return is_ready and self._must_release and self._leaving is None

    def _release(self, now: float) -> list[Action]:
        """The broker still has the member of before its loss: let that one leave."""
        return [self._say_goodbye()] if self._may_release() and now >= self._not_before else []

    def _leave(self, now: float) -> list[Action]:
        if not self._may_leave():
            return []
        if not self._is_known:
            self._end(None)
        elif self.coordinator is not None and now >= self._not_before:
            return [self._say_goodbye()]
        return []

    def _may_leave(self) -> bool:
        return self._is_gone and self.state is not State.ENDED and self._leaving is None

    def _say_goodbye(self) -> Beat:
        assert self.coordinator is not None
        self._leaving = self._next_attempt()
        epoch = LEFT if self._config.group_instance_id is None else LEFT_FOR_A_WHILE
        return Beat(self._leaving, self.coordinator, Membership(self._member_id, epoch))

    def _left(self) -> None:
        """Whatever the coordinator said: the session's end does the same."""
        self._leaving = None
        self._must_release = False
        if self._is_leaving:
            self._end(None)

    def _refused_to_leave(self, reaction: Reaction, error: KafkaError, now: float) -> None:
        if self._leaves_again(reaction):
            self._leaving = None
            self._react(reaction, API, error, now)
        else:
            self._left()

    def _may_fall_back(self) -> bool:
        return self._fall_back_to is not None and self.state is not State.ENDED and self._owned.is_told

    def _fall_back(self, now: float) -> list[Action]:
        if not self._may_fall_back():
            return []
        assert self._fall_back_to is not None
        cause = self._fall_back_to
        self._end(None)
        return [FallBack(cause)]

    def _react(self, reaction: Reaction, api: Api, error: KafkaError, now: float) -> None:
        if self._is_leaving and reaction is Reaction.FALL_BACK:
            self._end(None)
            return
        if reaction is Reaction.RELEASE and not self._can_wait_for_release(now):
            reaction = Reaction.FAIL
        is_refused = reaction is Reaction.FALL_BACK and not self._can_fall_back()
        if reaction is Reaction.FAIL or is_refused or self._is_undecodable_too_long(api, reaction, now):
            self._fail(explained(error, self._wish()))
            return
        self._be_troubled(api, reaction, error)
        table: dict[Reaction, Callable[[], None]] = {
            Reaction.FIND_COORDINATOR: self._forget_coordinator,
            Reaction.FIND_THEN_FAIL: self._forget_coordinator,
            Reaction.LOSE_GENERATION: lambda: self._lose(str(error)),
            Reaction.LOSE_MEMBERSHIP: lambda: self._lose(str(error)),
            Reaction.RELEASE: self._want_release,
            Reaction.FALL_BACK: lambda: self._begin_to_fall_back(error),
        }
        if reaction in table:
            table[reaction]()
        self._not_before = now + self._backoff.failed()
        self.heartbeats.due_at = max(self.heartbeats.due_at, self._not_before)

    def _forget_coordinator(self) -> None:
        self._search.node_id = None
        self.heartbeats.drop()
        self._report.forget()

    def _can_wait_for_release(self, now: float) -> bool:
        if self._unreleased_since is None:
            self._unreleased_since = now
        return now < self._unreleased_since + RELEASE_PATIENCE

    def _want_release(self) -> None:
        """Only of a former self that was this very member: another's place is not ours to give up."""
        self._must_release = self._was_member or self._config.group_instance_id is None

    def _can_fall_back(self) -> bool:
        return self._config.group_protocol == "auto" and not self._pattern

    def _wish(self) -> str:
        return "a pattern of the broker's" if self._pattern else f"group_protocol={self._config.group_protocol!r}"

    def _begin_to_fall_back(self, cause: KafkaError) -> None:
        if self.membership.generation >= 0:
            self._lose(str(cause))
        self.state = State.PREPARING
        self._fall_back_to = cause

    def _lose(self, why: str) -> None:
        """The member is out, and whatever it owned is gone."""
        self._forget_membership(why)
        self.state = State.PREPARING

    def _forget_membership(self, why: str) -> None:
        self.membership = Membership()
        self.heartbeats.drop()
        self._target.clear()
        self._report.forget()
        self._is_new = False
        self._owned.lose_all(why)

    def _fail(self, error: KafkaError) -> None:
        self._config.setting_names.in_error(error)
        self._forget_membership(str(error))
        self._end(error)
