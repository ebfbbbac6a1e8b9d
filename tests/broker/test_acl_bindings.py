"""ACLs of the embedded cluster as its users write them."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka08 import AuthorizationError, ConfigError, EmbeddedCluster, Producer
from pykafka08.protocol.messages.describe_acls import DescribeAclsRequest
from tests.broker.raw import connect
from tests.broker.test_access_and_quotas import EVERYTHING

ALLOWED = ("User:alice", "READ", "topic", "orders")


def described(*texts: str, version: str = "4.3") -> list[str]:
    return list(EmbeddedCluster(acls=texts, version=version).acls)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("User:alice READ topic orders", None),
        ("allow User:alice Read Topic orders literal", "User:alice READ topic orders"),
        ("deny User:* ALL topic * from 10.0.0.1", None),
        ("User:alice CREATE cluster", None),
        ("User:alice Create cluster kafka-cluster", "User:alice CREATE cluster"),
        ("User:alice WRITE transactional-id tx- prefixed", None),
        (
            "User:alice Write TransactionalId tx- prefixed from ::1",
            "User:alice WRITE transactional-id tx- prefixed from ::1",
        ),
        ("User:CN=Alice Smith,O=A B READ group of two words", None),
        ("User:alice describe_configs topic orders", "User:alice DESCRIBE_CONFIGS topic orders"),
        ("User:alice AlterConfigs topic READ", "User:alice ALTER_CONFIGS topic READ"),
        ("User:alice CREATE_TOKENS user User:bob", None),
    ],
)
def test_a_text_is_read_and_written(text: str, written: str | None) -> None:
    assert described(text) == [written or text]
    assert described(written or text) == [written or text]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is not of the form"),
        ("alice READ topic orders", r"is not of the form \[allow.*such as 'User:alice READ topic orders'"),
        ("User:alice REED topic orders", "is not of the form"),
        ("User:alice READ topic", "resource_name=None is not a text"),
        ("User:alice CREATE cluster other", "the cluster's name is kafka-cluster"),
        ("User:alice WRITE group g", "operation='WRITE' does not exist for a group; set one of ALTER_CONFIGS, DELETE"),
        ("User:alice READ topic orders from example.com", "host='example.com' is not an IP address"),
    ],
)
def test_a_text_without_meaning_is_refused(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as caught:
        described(text)
    assert f"acls: {text!r}" in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"acls": "User:alice READ topic orders"}, "acls='User.*' is not a list of texts"),
        ({"acls": 3}, "acls=3 is not a list of texts"),
        ({"acls": [], "version": "0.8.2"}, "acls: Kafka 0.8.2.* has no ACLs; set version to '0.9.0' or later"),
        ({"acls": ["User:a READ topic t prefixed"], "version": "1.1"}, "pattern_type='PREFIXED': Kafka 1.1.* has no"),
    ],
)
def test_acls_that_a_cluster_cannot_have_are_refused(arguments: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        EmbeddedCluster(**arguments)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"principal": "alice"}, "principal 'alice' is not of the form type:name"),
        ({"principal": None}, "principal=None is not a text"),
        ({"operation": "reed"}, "operation='reed' is not one of ALL, READ"),
        ({"resource_type": "queue"}, "resource_type='queue' is not one of TOPIC, GROUP"),
        ({"resource_name": ""}, "the resource's name must not be empty"),
        ({"pattern_type": "MATCH"}, "pattern_type='MATCH' is not one of LITERAL, PREFIXED"),
        ({"host": 1.5}, "host=1.5 is not an IP address"),
    ],
)
def test_arguments_without_meaning_are_refused(changed: dict[str, Any], why: str) -> None:
    names = ("principal", "operation", "resource_type", "resource_name")
    acls = EmbeddedCluster(acls=[]).acls
    for change in (acls.allow, acls.deny):
        with pytest.raises(ConfigError, match=why):
            change(**{**dict(zip(names, ALLOWED, strict=True)), **changed})
    assert list(acls) == []


def test_a_cluster_without_authorizer_takes_no_acls() -> None:
    with pytest.raises(ConfigError, match=r"no authorizer: set acls=\[\], or the property authorizer.class.name"):
        EmbeddedCluster().acls.allow(*ALLOWED)
    acls = EmbeddedCluster(properties={"authorizer.class.name": "any"}).acls
    acls.allow(*ALLOWED)
    assert list(acls) == [" ".join(ALLOWED)]


def test_acls_are_removed_by_what_they_have_in_common() -> None:
    acls = EmbeddedCluster(acls=[]).acls
    acls.allow(*ALLOWED)
    acls.allow(*ALLOWED)  # it is there already
    acls.deny(*ALLOWED, host="10.0.0.1")
    acls.allow("User:bob", "WRITE", "topic", "or", pattern_type="PREFIXED")
    acls.allow("User:bob", "READ", "group", "g")
    assert acls.remove("User:carol") == 0
    assert acls.remove(host="10.0.0.1") == 1
    assert acls.remove(pattern_type="prefixed") == 1
    assert acls.remove(operation="read", resource_type="topic") == 1
    assert list(acls) == ["User:bob READ group g"]
    assert acls.remove() == 1
    assert list(acls) == []
    with pytest.raises(ConfigError, match="resource_type='topics' is not one of"):
        acls.remove(resource_type="topics")


@pytest.mark.anyio
@pytest.mark.parametrize("version", ["1.1", "2.8", "4.3"])
async def test_brokers_enforce_and_describe_them(version: str) -> None:
    async with EmbeddedCluster(
        version=version, topics={"t": 1}, acls=["User:ANONYMOUS DESCRIBE cluster", "User:ANONYMOUS WRITE topic t"]
    ) as cluster:
        async with Producer(cluster.bootstrap_servers, enable_idempotence=False) as producer, connect(cluster) as raw:
            await producer.send("t", b"1")
            answer = await raw.ask(
                DescribeAclsRequest(**{**EVERYTHING, "pattern_type_filter": 3}), 0 if version == "1.1" else 1
            )
            assert {each.resource_name for each in answer.resources} == {"kafka-cluster", "t"}
            cluster.acls.deny("User:*", "WRITE", "topic", "t")
            with pytest.raises(AuthorizationError, match="WRITE topic 't'"):
                await producer.send("t", b"2")
            cluster.acls.remove("User:*")
            await producer.send("t", b"3")
        assert [record.value for record in cluster.records("t", 0)] == [b"1", b"3"]
