"""What the settings of a member come to with the broker that it meets."""

from __future__ import annotations

import pytest

from pykafka08.errors import UnsupportedVersionError
from pykafka08.group.actions import Join
from pykafka08.group.requests import JoinCall
from pykafka08.group.settings import GroupConfig
from pykafka08.protocol.messages.join_group import JoinGroupResponse
from pykafka08.protocol.versions import BrokerVersions
from tests.group.world import World

JOIN = Join(1, 0, "", (("range", b""),), "test")


@pytest.mark.parametrize(
    ("release", "told"),
    [("0.9.0", "(6000 to 30000 by default before Kafka 0.10.1)"), ("2.8", "(from 6000 by default)")],
)
def test_a_session_that_the_broker_refuses_is_named(release: str, told: str) -> None:
    world = World(session_timeout_ms=5_000)
    world.machine.subscribe(["t"])
    world.found()
    join = world.one(Join)
    call = JoinCall(GroupConfig(group_id="g", session_timeout_ms=5_000), join)
    call(BrokerVersions.of_release(release))
    response = JoinGroupResponse(error_code=26, protocol_name="", leader="", member_id="")
    timeout = call.session_timeout
    world.machine.joined(join.attempt, response, world.now, session_timeout=timeout, is_v0=call.is_v0)
    text = str(world.machine.error)
    assert "session_timeout_ms=5000 is outside the brokers' group.min.session.timeout.ms and group.max" in text
    assert told in text


def test_a_static_member_needs_a_broker_that_has_them() -> None:
    call = JoinCall(GroupConfig(group_id="g", group_instance_id="a"), JOIN)
    assert call(BrokerVersions.of_release("2.3")).group_instance_id == "a"
    for release in ("0.9.0", "2.2"):
        with pytest.raises(UnsupportedVersionError) as caught:
            call(BrokerVersions.of_release(release))
        for words in ("group_instance_id='a'", "need Kafka 2.3", f"the broker is Kafka {release}"):
            assert words in str(caught.value)
