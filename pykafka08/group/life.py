"""What a group member's machine does in either group protocol: find its coordinator, tell the application, end.

The protocols themselves are in ``machine`` (classic) and ``modern.machine`` (KIP-848).  Pure; times are monotonic
seconds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from pykafka08.backoff import Backoff
from pykafka08.errors import BrokerError, KafkaError, RemoteProtocolError, broker_error
from pykafka08.group.actions import Action, Membership, Note
from pykafka08.group.heartbeats import HeartbeatClock
from pykafka08.group.ownership import Ownership, Partitions
from pykafka08.group.pace import Pace
from pykafka08.group.reactions import Api, Reaction, invalid_answer_error, reaction_to
from pykafka08.group.search import CoordinatorSearch
from pykafka08.group.settings import GroupConfig
from pykafka08.group.states import State
from pykafka08.records.record import TopicPartition

__all__ = ["MemberLife"]

TRY_AGAIN = frozenset({Reaction.FIND_COORDINATOR, Reaction.FIND_THEN_FAIL, Reaction.BACK_OFF})
UNDECODABLE_TIMEOUT = 60.0
"""Default time in seconds after which answers that cannot be decoded end the membership."""


class MemberLife(ABC):
    """One member of one group."""

    def __init__(self, config: GroupConfig, backoff: Backoff, patience: float = UNDECODABLE_TIMEOUT) -> None:
        self.state = State.UNJOINED
        self.membership = Membership()
        self.error: KafkaError | None = None
        self.trouble: KafkaError | None = None
        """The newest failure, for as long as no heartbeat or assignment has come since."""
        self.heartbeats = HeartbeatClock(config.heartbeat_interval_ms / 1000)
        self._config = config
        self._backoff = backoff
        self._topics: frozenset[str] = frozenset()
        self._attempts = 0
        self._not_before = 0.0
        self._pace = Pace(backoff.fresh())
        self._patience = patience
        self._undecodable_since: dict[Api, float] = {}
        """By API, the time of the first undecodable answer since the last good one."""
        self._search = CoordinatorSearch()
        self._owned = Ownership()
        self._leaving: int | None = None
        """The attempt to say that we leave."""
        self._is_leaving = False
        self._notes: list[Action] = []

    # --- what it is -------------------------------------------------------------------------------------------------

    @property
    def group_id(self) -> str:
        return self._config.group_id

    @property
    def coordinator(self) -> int | None:
        """The broker that coordinates the group, None if unknown."""
        return self._search.node_id

    @property
    def assigned(self) -> Partitions:
        """What this member owns now."""
        return self._owned.assigned

    def tenure(self, tp: TopicPartition) -> int | None:
        """How often the partition has come to be this member's; None while it is not."""
        return self._owned.tenure(tp)

    @property
    def rebalance_timeout(self) -> float:
        """Seconds that a rebalance waits for this member, as its coordinator counts them."""
        clock = self.heartbeats
        return clock.session_timeout if clock.is_v0 else self._config.max_poll_interval_ms / 1000

    @property
    def is_idle(self) -> bool:
        """True if the machine has ended and the application has heard everything."""
        return self.state is State.ENDED and self._owned.is_told

    @property
    def is_leave_pending(self) -> bool:
        """True if all partitions are revoked and the coordinator has not confirmed LeaveGroup yet."""
        return self._is_gone and self.state is not State.ENDED

    @property
    def _is_gone(self) -> bool:
        """It leaves, and the application has given all up: its last commits are made."""
        return self._is_leaving and self._owned.is_told

    # --- inputs -----------------------------------------------------------------------------------------------------

    def listener_ended(self) -> None:
        """The application has heard what it was told last."""
        self._owned.end()

    def coordinator_found(self, attempt: int, node_id: int, broker: str | None = None) -> None:
        """``broker`` is the coordinator's name for error texts."""
        self._decoded(Api.FIND_COORDINATOR)
        self._search.found(attempt, node_id, broker)

    def coordinator_lost(self, node_id: int) -> None:
        """Somebody heard that this broker does not coordinate the group any more."""
        self._search.lost(node_id)

    def commit_refused(self, membership: Membership, error: BrokerError, now: float) -> None:
        """A commit heard that the member is not what it takes itself for; news only if that is still so."""
        if membership == self.membership and self._is_beating():
            self._react(reaction_to(Api.OFFSET_COMMIT, int(error.code)), Api.OFFSET_COMMIT, error, now)

    # --- what the protocols have of their own -----------------------------------------------------------------------

    @abstractmethod
    def _is_beating(self) -> bool:
        """True if heartbeats are due, and say whether the member is one."""

    @abstractmethod
    def _wants_coordinator(self) -> bool:
        """True if it is to be looked for."""

    @abstractmethod
    def _react(self, reaction: Reaction, api: Api, error: KafkaError, now: float) -> None: ...

    @abstractmethod
    def _lose(self, why: str) -> None:
        """The member is out, and whatever it owned with it."""

    # --- for them ---------------------------------------------------------------------------------------------------

    def _expire(self, now: float) -> None:
        """Others own the partitions by now."""
        late = now - self.heartbeats.heard_at
        self._lose(f"no heartbeat was answered for {late:.1f} s: the session is over")

    def _find(self, now: float) -> list[Action]:
        return (
            [self._search.begin(self._next_attempt())] if self._wants_coordinator() and now >= self._not_before else []
        )

    def _next_attempt(self) -> int:
        self._attempts += 1
        return self._attempts

    def _be_troubled(self, api: Api, reaction: Reaction, error: KafkaError) -> None:
        self.trouble = error
        self._note("group.trouble", api=api.value, reaction=reaction.name, cause=str(error))

    def _be_well(self) -> None:
        self.trouble = None
        self._backoff.succeeded()

    def _leaves_again(self, reaction: Reaction) -> bool:
        """True if LeaveGroup is sent again: otherwise the group waits until this member's session ends."""
        return self._is_leaving and reaction in TRY_AGAIN

    def _decoded(self, api: Api) -> None:
        """Note that an answer of that API was decoded."""
        self._undecodable_since.pop(api, None)

    def _is_undecodable_too_long(self, api: Api, reaction: Reaction, now: float) -> bool:
        """True if answers of that API could not be decoded for too long."""
        if reaction is not Reaction.FIND_THEN_FAIL:
            return False
        return now >= self._undecodable_since.setdefault(api, now) + self._patience

    def _refusal(self, api: Api, code: int, message: str | None = None, *, topic: str | None = None) -> BrokerError:
        """The coordinator's error code as an exception."""
        group, broker = self._config.group_id, self._search.broker
        return broker_error(code, message, api=api.value, topic=topic, group=group, broker=broker, needed="READ")

    def _invalid_answer(self, api: Api, fault: str) -> RemoteProtocolError:
        """The error for an impossible value in the coordinator's answer."""
        return invalid_answer_error(fault, api=api, group=self._config.group_id, broker=self._search.broker)

    def _end(self, error: KafkaError | None) -> None:
        self.error = error
        self.state = State.ENDED
        self.membership = Membership()
        self._search.stop()
        self._leaving = None
        self.heartbeats.drop()

    def _note(self, event: str, **facts: object) -> None:
        self._notes.append(Note(event, facts))
