"""The embedded broker refuses and allows, request by request, what real brokers with the same ACLs do."""

from __future__ import annotations

import json

import pytest

from pykafka08.broker.server import EmbeddedCluster
from tests.broker.authorization_story import CLIENT_ID, RECORDED, USER, cases, create_topics, tell
from tests.broker.raw import connect

pytestmark = pytest.mark.anyio

PROPERTIES = {"authorizer.class.name": "StandardAuthorizer", "super.users": "User:ANONYMOUS;User:admin"}
RELEASES = sorted(json.loads(RECORDED.read_text()))


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("release", RELEASES)
async def test_the_same_codes_as_a_real_broker(release: str) -> None:
    async with (
        EmbeddedCluster(1, ".".join(release.split(".")[:2]), properties=PROPERTIES) as cluster,
        connect(cluster) as admin,
        connect(cluster) as user,
    ):
        cluster.principals[CLIENT_ID] = USER
        await create_topics(admin, cluster.served_versions)
        ours = await tell(admin, user, cluster.served_versions)
    theirs = json.loads(RECORDED.read_text())[release]
    different = {name: (ours.get(name), theirs[name]) for name in theirs if ours.get(name) != theirs[name]}
    assert not different, "\n".join(f"{name}: ours, theirs = {both}" for name, both in different.items())
    assert list(ours) == list(theirs)


def test_case_names_are_unique() -> None:
    names = [case.name for case in cases()]
    assert len(names) == len(set(names))
