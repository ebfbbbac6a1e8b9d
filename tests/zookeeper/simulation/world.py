"""A ZooKeeper and the members of an old group in virtual time: a heap of events, no I/O, no clock, all seeded.

The server keeps nodes, one-shot watches and sessions, and ends a session that was silent for its time.  A member is
the machine under test with the smallest possible driver: each step is one request that takes a while, may lose its
answer, and is refused once its session is over, as the bridge does it.  ``World.check`` is called after every event:
no partition may be readable by two members at once.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable
from typing import Any

from pykafka08.errors import SessionExpiredError, ZooKeeperConnectionError
from pykafka08.records.record import TopicPartition
from pykafka08.zookeeper import paths
from pykafka08.zookeeper.assignment import range_assignment, thread_ids
from pykafka08.zookeeper.machine import LegacyMember
from pykafka08.zookeeper.nodes.brokers import Topic
from pykafka08.zookeeper.rebalance import Profile
from pykafka08.zookeeper.steps import (
    CreateNodes,
    DeleteNodes,
    ListChildren,
    ReadNodes,
    Seen,
    StartReading,
    Step,
    StopReading,
)

SESSION_TIMEOUT = 6.0
PING_EVERY = SESSION_TIMEOUT / 3
GROUP, TOPIC = "g", "t"


class Server:
    """Nodes are ``{path: (data, session)}``, session 0 for those that stay."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.nodes: dict[str, tuple[bytes, int]] = {}
        self.watches: dict[str, set[SimulatedMember]] = {}
        self.heard: dict[int, float] = {}
        self.is_up = True

    def create(self, path: str, data: bytes, session: int = 0) -> bool:
        if path in self.nodes:
            return False
        self.nodes[path] = (data, session)
        self._fire(path, paths.parent(path))
        return True

    def delete(self, path: str) -> None:
        if self.nodes.pop(path, None) is not None:
            self._fire(path, paths.parent(path))

    def children(self, path: str) -> tuple[str, ...]:
        start = path + "/"
        return tuple(sorted(each[len(start) :] for each in self.nodes if each.startswith(start)))

    def watch(self, path: str, member: SimulatedMember) -> None:
        self.watches.setdefault(path, set()).add(member)

    def _fire(self, *changed: str) -> None:
        for path in changed:
            for member in sorted(self.watches.pop(path, ()), key=lambda each: each.name):
                member.watch_fired(path)

    def expire_sessions(self) -> None:
        if self.is_up:
            for session, heard in list(self.heard.items()):
                if self.world.now - heard > SESSION_TIMEOUT:
                    self.end(session)

    def end(self, session: int) -> None:
        self.heard.pop(session, None)
        for path in [path for path, (_, owner) in self.nodes.items() if owner == session]:
            self.delete(path)


class SimulatedMember:
    """One process: a machine, a connection that may be cut, an event loop that may stand still."""

    def __init__(self, world: World, name: str, streams: int = 1) -> None:
        self.world, self.name = world, name
        profile = Profile(group=GROUP, member=name, topics={TOPIC: streams})
        registration = profile.registration(0).encode()
        self.machine = LegacyMember(profile, registration, max_retries=4, backoff=2.0, session_timeout=SESSION_TIMEOUT)
        self.session = 0
        self.session_number = 0
        """Of the session under which the machine reads."""
        self.number = 0
        self.sure_until = float("-inf")
        self.reading: set[TopicPartition] = set()
        self.is_cut = self.is_frozen = self.is_dead = False
        self.is_connected = False
        self.settled_at: float | None = None
        self.reconnected_at: float | None = None
        self._held: list[Callable[[], None]] = []
        self._suspended_at: float | None = None

    # The network, and the process

    @property
    def reaches(self) -> bool:
        return not self.is_cut and self.world.server.is_up

    def delay(self) -> float:
        return self.world.dice.uniform(0.0005, self.world.latency)

    def run(self, action: Callable[[], None]) -> None:
        """In the event loop: later, if that stands still."""
        if self.is_dead:
            return
        if self.is_frozen:
            self._held.append(action)
        else:
            action()

    def thaw(self) -> None:
        self.is_frozen = False
        self.world.check()  # whoever runs first after a stand-still must not hand out what is another's
        held, self._held = self._held, []
        for action in held:
            self.run(action)

    def watch_fired(self, path: str) -> None:
        if self.is_connected and not self.is_dead:
            self.world.after(self.delay(), lambda: self.run(lambda: self._node_changed(path)))

    def _node_changed(self, path: str) -> None:
        self.machine.node_changed(path, self.world.now)
        self.pump()

    # The session, as the bridge has it: its clock runs from when the last answered sign of life was sent

    def tick(self) -> None:
        if self.is_dead:
            return
        self.world.after(0.5, self.tick)
        now = self.world.now
        if self.is_frozen:
            return
        if self.reaches:
            self.world.after(self.delay(), lambda: self._ping_arrives(now))
            return
        if self.is_connected:
            self.is_connected = False
            self.machine.suspended(ZooKeeperConnectionError("cut"))
        if self.session and now >= self.sure_until:
            self._lose()
        self.pump()

    def _ping_arrives(self, sent: float) -> None:
        server = self.world.server
        if not self.reaches:
            return
        if self.session and self.session in server.heard:
            server.heard[self.session] = self.world.now
            self.world.after(self.delay(), lambda: self.run(lambda: self._pong(sent, self.number)))
        elif self.session:
            self.world.after(self.delay(), lambda: self.run(self._lose))
        else:
            session = next(self.world.sessions)
            server.heard[session] = self.world.now
            self.world.after(self.delay(), lambda: self.run(lambda: self._new_session(session, sent)))

    def _new_session(self, session: int, sent: float) -> None:
        if self.session:
            return
        self.session = session
        self.number += 1
        self._pong(sent, self.number, is_new=True)

    def _pong(self, sent: float, number: int, *, is_new: bool = False) -> None:
        if number != self.number or not self.session:
            return
        self.sure_until = max(self.sure_until, sent + SESSION_TIMEOUT)
        if not self.is_connected:
            self.is_connected = True
            self.reconnected_at = self.world.now
            self.session_number = self.number
            self.machine.connected(self.world.now, is_new=is_new)
        self.pump()

    def _lose(self) -> None:
        if self.session:
            self.session = 0
            self.number += 1
            self.is_connected = False
            self.sure_until = float("-inf")
            self.reading.clear()
            self.machine.session_lost(SessionExpiredError("over"))
            self.pump()

    # What may be handed out now

    def hands_out(self) -> set[TopicPartition]:
        if self.is_dead or self.is_frozen:
            return set()
        is_sure = self.session_number == self.number and self.world.now < self.sure_until
        return self.reading if is_sure else set()

    # Steps

    def pump(self) -> None:
        if self.is_dead or self.is_frozen:
            return
        step = self.machine.poll(self.world.now)
        if step is not None:
            self._perform(step)
        elif (due := self.machine.next_wakeup()) is not None:
            self.world.after(max(0.0, due - self.world.now) + 1e-6, lambda: self.run(self._woken))
        if self.machine.state.name == "SETTLED" and self.settled_at is None:
            self.settled_at = self.world.now
        elif self.machine.state.name != "SETTLED":
            self.settled_at = None

    def _woken(self) -> None:
        due = self.machine.next_wakeup()
        if due is not None and due <= self.world.now:
            self.pump()

    def _perform(self, step: Step) -> None:
        if isinstance(step, StartReading):
            self.reading |= step.partitions.keys()
            self.world.check()
            self._answer(None)
        elif isinstance(step, StopReading):
            self.reading -= set(step.partitions)
            pause = 0.0 if step.is_lost else self.world.dice.uniform(0, self.world.commit_time)
            self.world.after(pause, lambda: self.run(lambda: self._answer(None)))
        else:
            self._request(step, self.session, self.number, self.world.now + 15)

    def _request(self, step: Any, session: int, number: int, deadline: float) -> None:
        """Repeated over a lost connection, refused once the session is over, as the bridge does it."""

        def fail(error: Exception) -> None:
            self.machine.step_failed(error, self.world.now)  # type: ignore[arg-type]
            self.pump()

        def arrive() -> None:
            server = self.world.server
            if not self.reaches or session not in server.heard:
                self.world.after(0.2, lambda: self.run(again))
                return
            answer = self._apply(step, session)
            if not self.reaches or self.world.dice.random() < self.world.loss:
                lost = ZooKeeperConnectionError("the answer was lost", may_be_written=True)
                # Reads and creations are asked again; a deletion that came twice could be of another's node.
                once_more = (lambda: fail(lost)) if isinstance(step, DeleteNodes) else again
                self.world.after(0.2, lambda: self.run(once_more))
            else:
                self.world.after(self.delay(), lambda: self.run(lambda: self._arrived(answer, number)))

        def again() -> None:
            if self.number != number:
                fail(SessionExpiredError("over"))
            elif self.world.now >= deadline:
                fail(ZooKeeperConnectionError("late"))
            else:
                self.world.after(self.delay(), arrive)

        again()

    def _arrived(self, answer: Any, number: int) -> None:
        if self.number != number:
            self.machine.step_failed(SessionExpiredError("over"), self.world.now)
            self.pump()
        else:
            self._answer(answer)

    def _answer(self, answer: Any) -> None:
        self.machine.step_done(answer)
        self.pump()

    def _apply(self, step: Step, session: int) -> Any:
        server = self.world.server
        if isinstance(step, ListChildren):
            if step.watch:
                server.watch(step.path, self)
            return server.children(step.path)
        if isinstance(step, ReadNodes):
            if step.watch:
                for path in step.paths:
                    server.watch(path, self)
            found = {path: server.nodes[path] for path in step.paths if path in server.nodes}
            return {path: Seen(data, owner == session) for path, (data, owner) in found.items()}
        if isinstance(step, CreateNodes):
            return {path for path, data in step.nodes.items() if server.create(path, data, session)}
        assert isinstance(step, DeleteNodes)
        for path in step.paths:
            if path in server.nodes:
                self.world.deletions.append((self.name, path, server.nodes[path][1] == session))
                server.delete(path)
        return None

    # Ends

    def kill(self) -> None:
        """Like SIGKILL: the server hears of it when the session has been silent for its time."""
        self.is_dead = True

    def leave(self) -> None:
        """Stop reading, and close the session."""
        self.machine.closed()
        self.pump()
        self.reading.clear()
        self.is_dead = True
        if self.reaches and self.session:
            self.world.server.end(self.session)


class World:
    """Time, chance, the server, all members that there ever were."""

    def __init__(self, seed: int, *, partitions: int = 8, latency: float = 0.02) -> None:
        self.dice = random.Random(seed)
        self.now = 0.0
        self.latency = latency
        self.loss = 0.0
        self.commit_time = 0.05
        self.sessions = itertools.count(1)
        self.deletions: list[tuple[str, str, bool]] = []
        self.dual: list[tuple[float, TopicPartition, str, str]] = []
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self.server = Server(self)
        self.members: list[SimulatedMember] = []
        self.partitions = partitions
        self.server.create(paths.broker(0), b"{}")
        topic = Topic(partitions={each: (0,) for each in range(partitions)})
        self.server.create(paths.topic(TOPIC), topic.encode())
        self._expire()

    def _expire(self) -> None:
        self.server.expire_sessions()
        self.after(0.5, self._expire)

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._heap, (self.now + seconds, next(self._order), action))

    def run_until(self, end: float) -> None:
        while self._heap and self._heap[0][0] <= end:
            self.now, _, action = heapq.heappop(self._heap)
            action()
            self.check()
        self.now = end

    def join(self, name: str, streams: int = 1) -> SimulatedMember:
        member = SimulatedMember(self, name, streams)
        self.members.append(member)
        member.tick()
        return member

    @property
    def living(self) -> list[SimulatedMember]:
        return [each for each in self.members if not each.is_dead]

    def check(self) -> None:
        """Two that may hand out records of one partition now are what must never be."""
        reader_of: dict[TopicPartition, str] = {}
        for member in self.members:
            for tp in member.hands_out():
                other = reader_of.setdefault(tp, member.name)
                if other != member.name:
                    self.dual.append((self.now, tp, other, member.name))

    # What is expected

    def expected(self) -> dict[TopicPartition, str]:
        """The assignment of those that live."""
        threads = [
            thread for each in self.living for thread in thread_ids(each.name, each.machine.profile.topics[TOPIC])
        ]
        return range_assignment({TOPIC: range(self.partitions)}, {TOPIC: threads})

    def owners(self) -> dict[TopicPartition, str]:
        """The owner nodes."""
        start = paths.owners(GROUP, TOPIC) + "/"
        return {
            TopicPartition(TOPIC, int(path[len(start) :])): data.decode()
            for path, (data, _) in self.server.nodes.items()
            if path.startswith(start)
        }

    def is_settled(self) -> bool:
        """Every living member reads exactly its share, and every owner node is of who reads."""
        expected = self.expected()
        reads = {tp: thread for each in self.living for tp, thread in each.machine.share.reading.items()}
        return reads == expected == self.owners()
