"""Paths: each kind of node is found again by its path, and no name leads elsewhere."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka08.errors import ConfigError
from pykafka08.zookeeper import paths
from pykafka08.zookeeper.nodes.document import Plain

MADE = (
    (paths.broker(1), "broker", {"broker": "1"}),
    (paths.topic("t"), "topic", {"topic": "t"}),
    (paths.partitions("t"), "partitions", {"topic": "t"}),
    (paths.partition("t", 3), "partition", {"topic": "t", "partition": "3"}),
    (paths.partition_state("t", 3), "partition_state", {"topic": "t", "partition": "3"}),
    (paths.consumer_group("g"), "consumer_group", {"group": "g"}),
    (paths.consumer_ids("g"), "consumer_ids", {"group": "g"}),
    (paths.consumer_id("g", "m"), "consumer_id", {"group": "g", "member": "m"}),
    (paths.group_owners("g"), "group_owners", {"group": "g"}),
    (paths.owners("g", "t"), "owners", {"group": "g", "topic": "t"}),
    (paths.owner("g", "t", 0), "owner", {"group": "g", "topic": "t", "partition": "0"}),
    (paths.group_offsets("g"), "group_offsets", {"group": "g"}),
    (paths.offsets("g", "t"), "offsets", {"group": "g", "topic": "t"}),
    (paths.offset("g", "t", 0), "offset", {"group": "g", "topic": "t", "partition": "0"}),
    (paths.deleted_topic("t"), "deleted_topic", {"topic": "t"}),
    (paths.topic_config("t"), "topic_config", {"topic": "t"}),
    (paths.client_config("a b"), "client_config", {"client": "a b"}),
    (paths.user_config("CN=a,O=b/c"), "user_config", {"user": "CN=a,O=b/c"}),
    (paths.user_client_config("u", "c/d"), "user_client_config", {"user": "u", "client": "c/d"}),
    (paths.broker_config(1), "broker_config", {"name": "1"}),
    (paths.broker_config(None), "broker_config", {"name": "<default>"}),
    (paths.ip_config("::1"), "ip_config", {"address": "::1"}),
    (paths.entity_config("users/u/clients/c"), "user_client_config", {"user": "u", "client": "c"}),
    (paths.config_change() + "0000000007", "config_change", {"sequence": "0000000007"}),
    (paths.acl("Topic", "*"), "acl", {"type": "Topic", "resource": "*"}),
    (paths.acl_change() + "0000000007", "acl_change", {"sequence": "0000000007"}),
    (paths.extended_acl("Group", "g"), "extended_acl", {"pattern": "prefixed", "type": "Group", "resource": "g"}),
    (paths.extended_acl_change() + "0000000007", "extended_acl_change", {"sequence": "0000000007"}),
    (paths.CONTROLLER, "controller", {}),
    ("/", "root", {}),
    ("/config/changes", "config_changes", {}),
)


@pytest.mark.parametrize(("path", "kind", "names"), MADE)
def test_what_a_path_means(path: str, kind: str, names: dict[str, str]) -> None:
    found = paths.match(path)
    assert found is not None
    assert (found.kind.name, dict(found.names)) == (kind, names)


def test_every_kind_is_told_from_all_others() -> None:
    for kind in paths.KINDS:
        path = re.sub(r"\{(\w+)\}", lambda name: "0000000001" if name[1] == "sequence" else "7", kind.template)
        found = paths.match(path)
        assert found is not None
        assert found.kind is kind
    assert len({kind.name for kind in paths.KINDS}) == len(paths.KINDS)


def test_parents_stand_before_their_children() -> None:
    seen: set[str] = set()
    for kind in paths.KINDS:
        assert kind.template == "/" or paths.parent(kind.template) in seen | {"/"}, kind
        seen.add(kind.template)


def test_what_kafka_has_not() -> None:
    assert paths.match("/brokers/ids/one") is None
    assert paths.match("/brokers/topics/t/partitions/0/else") is None
    assert paths.match("/hbase") is None
    assert paths.decode("/hbase", b"\xff") == Plain(b"\xff")


def test_names_as_kafka_encodes_them() -> None:
    assert paths.user_config("a b*~+%/") == "/config/users/a%20b%2A%7E%2B%25%2F"
    assert paths.client_config("<default>") == "/config/clients/<default>"
    assert paths.client_config("a-b_c.d") == "/config/clients/a-b_c.d"


MAKERS: tuple[Callable[[str], str], ...] = (
    paths.topic,
    paths.consumer_ids,
    lambda name: paths.consumer_id("g", name),
    lambda name: paths.offset(name, "t", 0),
    lambda name: paths.owner("g", name, 0),
    paths.topic_config,
    paths.deleted_topic,
    lambda name: paths.acl("Topic", name),
    paths.ip_config,
)


@pytest.mark.parametrize("name", ["", "a/b", "..", ".", "a\0"])
def test_a_name_that_would_lead_elsewhere_is_refused(name: str) -> None:
    for make in MAKERS:
        with pytest.raises(ConfigError, match="cannot be the name"):
            make(name)


@given(st.text(min_size=1).filter(lambda name: name not in (".", "..")))
def test_users_and_clients_of_any_name_are_found_again(name: str) -> None:
    try:
        path = paths.user_client_config(name, name)
    except UnicodeEncodeError:
        return
    found = paths.match(path)
    assert found is not None
    assert dict(found.names) == {"user": name, "client": name}
