"""A machine of the classic protocol in virtual time, with the broker's answers given by hand."""

from __future__ import annotations

from typing import TypeVar

from pykafka08.backoff import Backoff
from pykafka08.group.actions import (
    Action,
    Assign,
    FindCoordinator,
    Heartbeat,
    Join,
    ListenerCall,
    Lost,
    Note,
    Revoke,
    Sync,
)
from pykafka08.group.machine import GroupMachine
from pykafka08.group.settings import GroupConfig
from pykafka08.group.states import State
from pykafka08.group.subscription import encode_assignment
from pykafka08.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from pykafka08.protocol.messages.sync_group import SyncGroupResponse
from pykafka08.records.record import TopicPartition

__all__ = ["INTERVAL", "ME", "SESSION", "World", "parts"]

A = TypeVar("A", bound=Action)

SESSION = 10.0
INTERVAL = 3.0
ME = "me"


def parts(*numbers: int, topic: str = "t") -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(topic, number) for number in numbers)


class World:
    """A machine, its clock, and the broker's answers, given by hand."""

    def __init__(self, *strategy: str, **settings: object) -> None:
        config = GroupConfig(
            group_id="g", heartbeat_interval_ms=3000, partition_assignment_strategy=strategy or ("range",), **settings
        )
        self.machine = GroupMachine(config, Backoff(0.1, 1.0, lambda: 0.5))
        self.machine.metadata_changed({"t": 4})
        self.now = 0.0
        self.heard: list[ListenerCall] = []

    def poll(self) -> list[Action]:
        """What is to be done; twice in a row gives nothing the second time, or the loop would spin."""
        actions = self.machine.poll(self.now)
        assert self.machine.poll(self.now) == []
        return [action for action in actions if not isinstance(action, Note)]

    def one(self, kind: type[A]) -> A:
        """The next action, which is of that kind and alone."""
        actions = self.poll()
        assert [type(action) for action in actions] == [kind], actions
        (action,) = actions
        assert isinstance(action, kind)
        return action

    def sleep(self) -> None:
        """Until the machine wants to be polled."""
        wakeup = self.machine.next_wakeup()
        assert wakeup is not None
        assert wakeup > self.now, "the machine would spin"
        self.now = wakeup

    def tell(self, kind: type[A]) -> A:
        """The application hears of one thing, and is done with it."""
        call = self.one(kind)
        self.machine.listener_ended()
        assert isinstance(call, (Revoke, Assign, Lost))
        self.heard.append(call)
        return call

    def found(self) -> None:
        self.machine.coordinator_found(self.one(FindCoordinator).attempt, 1)

    def joined(
        self,
        join: Join,
        generation: int = 1,
        leader: str = "you",
        members: tuple[str, ...] = (),
        *,
        is_v0: bool = False,
        **more: object,
    ) -> None:
        protocol, metadata = join.protocols[0]
        response = JoinGroupResponse(
            generation_id=generation,
            protocol_name=protocol,
            leader=leader,
            member_id=ME,
            members=[JoinGroupResponseMember(member_id=each, metadata=metadata) for each in members],
            **more,
        )
        self.machine.joined(join.attempt, response, self.now, session_timeout=SESSION, is_v0=is_v0)

    def join_refused(self, join: Join, code: int, member_id: str = "") -> None:
        response = JoinGroupResponse(error_code=code, protocol_name="", leader="", member_id=member_id)
        self.machine.joined(join.attempt, response, self.now, session_timeout=SESSION)

    def synced(self, sync: Sync, assigned: frozenset[TopicPartition]) -> None:
        self.machine.synced(sync.attempt, SyncGroupResponse(assignment=encode_assignment(assigned)), self.now)

    def beaten(self, beat: Heartbeat, code: int = 0) -> None:
        self.machine.heartbeat_answered(beat.attempt, code, self.now)

    def enter(
        self, assigned: frozenset[TopicPartition] = parts(0, 1), generation: int = 1, *, is_v0: bool = False
    ) -> None:
        """From the join to a stable generation."""
        self.joined(self.one(Join), generation, is_v0=is_v0)
        self.synced(self.one(Sync), assigned)
        while self.machine.state is State.ASSIGNING:
            actions = self.poll()
            for action in actions:
                assert isinstance(action, (Revoke, Assign))
                self.heard.append(action)
                self.machine.listener_ended()
            if not actions:
                break

    @classmethod
    def stable(cls, *strategy: str, **settings: object) -> World:
        world = cls(*strategy, **settings)
        world.machine.subscribe(["t"])
        world.found()
        world.enter()
        assert world.poll() == []
        assert world.machine.state is State.STABLE
        world.heard.clear()
        return world
