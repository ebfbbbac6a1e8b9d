"""What the settings of a member come to with the broker that it meets."""

from __future__ import annotations

import pytest

from pykafka08.errors import UnsupportedVersionError
from pykafka08.group.actions import Join
from pykafka08.group.requests import JoinCall
from pykafka08.group.settings import GroupConfig
from pykafka08.protocol.versions import BrokerVersions

JOIN = Join(1, 0, "", (("range", b""),), "test")


def test_a_static_member_needs_a_broker_that_has_them() -> None:
    call = JoinCall(GroupConfig(group_id="g", group_instance_id="a"), JOIN)
    assert call(BrokerVersions.of_release("2.3")).group_instance_id == "a"
    for release in ("0.9.0", "2.2"):
        with pytest.raises(UnsupportedVersionError) as caught:
            call(BrokerVersions.of_release(release))
        for words in ("group_instance_id='a'", "need Kafka 2.3", f"the broker is Kafka {release}"):
            assert words in str(caught.value)
