"""The driver of an old group's member: what it makes of the session's events, whenever it hears them."""

from __future__ import annotations

from typing import cast

import pytest

from pykafka08.zookeeper.bridge import ZooKeeper
from pykafka08.zookeeper.events import Connected, Event, SessionLost
from pykafka08.zookeeper.legacy.membership import Membership
from pykafka08.zookeeper.legacy.reading import Reading
from pykafka08.zookeeper.machine import LegacyMember, State
from pykafka08.zookeeper.rebalance import Profile
from pykafka08.zookeeper.steps import ReadNodes

pytestmark = pytest.mark.anyio


class Session:
    """Where the session stands when the events are taken."""

    servers, trouble = "zk:2181", None
    session_id: int | None = 1
    session_number = 1


class NoReading:
    session_number = 0

    def session_began(self, number: int) -> None:
        self.session_number = number

    def session_lost(self) -> None: ...
    def wake(self) -> None: ...


@pytest.mark.parametrize("losses", [1, 2, 3])
async def test_sessions_that_were_lost_before_any_was_heard_of_end_in_the_last_one(losses: int) -> None:
    profile = Profile(group="g", member="g_one", topics={"t": 1})
    machine = LegacyMember(profile, b"{}", max_retries=4, backoff=2, session_timeout=6)
    session, reading = Session(), NoReading()
    membership = Membership(cast("ZooKeeper", session), machine, cast("Reading", reading))
    membership._take_connected(is_new=True)
    assert machine.state is State.REBALANCING
    session.session_id = session.session_number = 1 + losses  # the loop stood still meanwhile
    events: list[Event] = []
    for number in range(1, 1 + losses):
        events += [SessionLost(number), Connected(number + 1, is_new=True)]
    for event in events:
        membership._take(event)
    assert (machine.state, reading.session_number) == (State.REBALANCING, 1 + losses)
    assert machine.poll(1e9) is not None, "it takes its share"


async def test_a_session_that_is_known_is_not_taken_for_a_new_one() -> None:
    profile = Profile(group="g", member="g_one", topics={"t": 1})
    machine = LegacyMember(profile, b"{}", max_retries=4, backoff=2, session_timeout=6)
    membership = Membership(cast("ZooKeeper", Session()), machine, cast("Reading", NoReading()))
    membership._take_connected(is_new=True)
    first = machine.poll(1e9)
    assert first is not None
    membership._take(Connected(1, is_new=True))  # told of what was seen already
    machine.step_done({} if isinstance(first, ReadNodes) else set())
    assert machine.poll(1e9) is not None, "what was begun goes on"
