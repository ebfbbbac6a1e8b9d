"""Releases of brokers, from their registration or their own answer, and the error if they refuse the request."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from pykafka08 import AuthenticationError, EmbeddedCluster
from pykafka08.config import ClientConfig, build
from pykafka08.errors import AdminRefusedError
from pykafka08.protocol.messages import ApiKey
from pykafka08.protocol.versions import BrokerVersions
from pykafka08.zookeeper import paths
from pykafka08.zookeeper.admin.release import Capabilities, ask_brokers, bootstrap_servers, is_0_8_2
from pykafka08.zookeeper.nodes.brokers import Broker
from pykafka08.zookeeper.nodes.configs import ChangeFormat
from tests.zookeeper.stage import NOBODY, PATIENT_CLIENT, Stage, staged

pytestmark = pytest.mark.anyio

DEADLINE_S = 60
ALICE = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN", "sasl_plain_username": "alice"}
WRONG: list[tuple[dict[str, Any], str]] = [
    ({**ALICE, "sasl_plain_password": "wrong"}, "refused the credentials"),
    ({}, "wants SASL"),
]
"""Settings of clients that a broker with SASL refuses."""


def config(settings: dict[str, Any]) -> ClientConfig:
    (made,) = build({"bootstrap_servers": "unknown:1", **PATIENT_CLIENT, **settings}, ClientConfig)
    assert isinstance(made, ClientConfig)
    return made


def secured() -> EmbeddedCluster:
    return EmbeddedCluster(security="SASL_PLAINTEXT", users={"alice": "right"}, mechanisms=["PLAIN"], version="2.8")


async def register_secured(stage: Stage, address: str, protocol: str) -> None:
    """A broker at the address, which says that this is its protocol there."""
    node = Broker(version=4, endpoints=(f"ANY://{address}",), protocols={"ANY": protocol}, timestamp="1")
    await stage.put(paths.broker(7), node.encode())


async def test_brokers_are_asked_unless_they_are_of_0_8_or_have_no_such_listener() -> None:
    async with EmbeddedCluster(version="1.1") as new, EmbeddedCluster(version="0.8.2") as old, staged(0) as stage:
        await stage.register({1: old.bootstrap_servers}, version=1)
        await stage.register({2: new.bootstrap_servers}, version=4)
        await stage.register({3: NOBODY}, version=3)
        await register_secured(stage, new.bootstrap_servers, "SSL")
        found = await ask_brokers(stage.zk, config({}))
        assert old.requests == []
        assert {number: each.release_guess for number, each in found.versions.items()} == {
            1: "0.8.1", 2: "1.1", 3: "0.10.0", 7: "3.9"
        }  # fmt: skip
        assert found.unasked == {3, 7}
        assert (found.release, found.release_for_sure) == ("0.8.1", "0.8.1")
        assert found.offering(ApiKey.CREATE_TOPICS) == 2
        assert found.offering(ApiKey.ALTER_PARTITION_REASSIGNMENTS) == 7


@pytest.mark.parametrize(("settings", "text"), WRONG)
async def test_a_broker_that_refuses_the_credentials_is_an_error(settings: dict[str, Any], text: str) -> None:
    """It is not judged by its registration: what is done next would fail, too, or be done without the broker."""
    async with secured() as cluster, staged({1: NOBODY}, version=3) as stage:
        await register_secured(stage, cluster.bootstrap_servers, settings.get("security_protocol", "PLAINTEXT"))
        for ask in (lambda: ask_brokers(stage.zk, config(settings)), lambda: _is_0_8_2(cluster, settings)):
            with anyio.fail_after(DEADLINE_S), pytest.raises(AuthenticationError, match=text):
                await ask()
        stage.admin._client_config = config(settings)
        with anyio.fail_after(DEADLINE_S), pytest.raises(AuthenticationError, match=text):
            await stage.admin.create_topic("t")
        assert await stage.text(paths.topic("t")) is None


async def _is_0_8_2(cluster: EmbeddedCluster, settings: dict[str, Any]) -> bool:
    protocol = settings.get("security_protocol", "PLAINTEXT")
    broker = Broker(version=4, endpoints=(f"ANY://{cluster.bootstrap_servers}",), protocols={"ANY": protocol})
    return await is_0_8_2(broker, config(settings))


async def test_with_the_right_credentials_it_answers() -> None:
    settings = {**ALICE, "sasl_plain_password": "right"}
    async with secured() as cluster, staged(0) as stage:
        await register_secured(stage, cluster.bootstrap_servers, "SASL_PLAINTEXT")
        found = await ask_brokers(stage.zk, config(settings))
        assert (found.unasked, found.release) == (frozenset(), "2.8")


@pytest.mark.parametrize(("version", "expected"), [("0.8.0", False), ("0.8.1", False), ("0.8.2", True)])
async def test_0_8_2_shows_itself(version: str, expected: bool) -> None:
    async with EmbeddedCluster(version=version) as cluster:
        host, _, port = cluster.bootstrap_servers.rpartition(":")
        broker = Broker(version=1, host=host, port=int(port))
        assert await is_0_8_2(broker, config({})) is expected
        assert not await is_0_8_2(broker, config({"security_protocol": "SSL"}))  # nowhere to ask
    assert not await is_0_8_2(Broker(version=1, host="127.0.0.1", port=1), config({"default_api_timeout_ms": 300}))


def capabilities(*registered: tuple[int, str], unasked: tuple[int, ...] = ()) -> Capabilities:
    """Brokers with the version of their registration and the release that they are taken for."""
    brokers = {number: Broker(version=version, endpoints=()) for number, (version, _) in enumerate(registered)}
    versions = {number: BrokerVersions.of_release(release) for number, (_, release) in enumerate(registered)}
    return Capabilities(brokers, versions, frozenset(unasked))


@pytest.mark.parametrize(
    ("registered", "unasked", "release", "for_sure", "form"),
    [
        ([(1, "0.8.1"), (5, "3.9")], (), "0.8.1", "0.8.1", ChangeFormat.TOPIC_NAME),
        ([(2, "0.9.0")], (), "0.9.0", "0.9.0", ChangeFormat.TYPE_AND_NAME),
        ([(3, "0.10.0"), (4, "1.1")], (), "0.10.0", "0.10.0", ChangeFormat.TYPE_AND_NAME),
        ([(4, "1.1"), (5, "2.8")], (), "1.1", "1.1", ChangeFormat.PATH),
        ([(4, "3.9")], (0,), "3.9", "0.10.2", ChangeFormat.PATH),
        ([(5, "3.9"), (4, "2.0")], (0,), "2.0", "2.0", ChangeFormat.PATH),
        ([(9, "3.9")], (0,), "3.9", "2.7", ChangeFormat.PATH),
    ],
)
def test_the_oldest_broker_decides(
    registered: list[tuple[int, str]], unasked: tuple[int, ...], release: str, for_sure: str, form: ChangeFormat
) -> None:
    found = capabilities(*registered, unasked=unasked)
    assert (found.release, found.release_for_sure, found.change_format) == (release, for_sure, form)


def test_without_brokers_nothing_is_known() -> None:
    found = capabilities()
    assert (found.release, found.release_for_sure, found.offering(ApiKey.METADATA)) == (None, None, None)
    with pytest.raises(AdminRefusedError, match="no broker is alive"):
        _ = found.change_format


def test_addresses_are_those_of_the_protocol() -> None:
    both = ("INNER://10.0.0.1:9092", "OUTER://[2001:db8::1]:9093")
    named = Broker(version=4, endpoints=both, protocols={"INNER": "PLAINTEXT", "OUTER": "SASL_SSL"})
    old = Broker(version=1, host="10.0.0.2", port=9092)
    brokers = {2: old, 1: named}
    assert bootstrap_servers(brokers) == ["10.0.0.1:9092", "10.0.0.2:9092"]
    assert bootstrap_servers(brokers, "sasl_ssl") == ["[2001:db8::1]:9093"]
    assert bootstrap_servers(brokers, "SSL") == []
