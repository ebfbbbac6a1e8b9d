"""Each kind of node: as Kafka writes it, with what it does not know, and broken."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka08.errors import ConfigError, MalformedNodeError
from pykafka08.zookeeper import paths
from pykafka08.zookeeper.nodes.acls import Acl, AclChange, Acls
from pykafka08.zookeeper.nodes.brokers import Broker, Endpoint, PartitionState, Topic
from pykafka08.zookeeper.nodes.cluster import Controller, Migration
from pykafka08.zookeeper.nodes.commands import DeletedTopics, PartitionName, PartitionReassignment, Reassignment
from pykafka08.zookeeper.nodes.configs import ChangeFormat, Config, ConfigChange
from pykafka08.zookeeper.nodes.consumers import Offset, Owner, Registration
from pykafka08.zookeeper.nodes.document import Plain

AS_WRITTEN = (
    ("/brokers/ids/1", '{"jmx_port":-1,"timestamp":"1403061802981","host":"h","version":1,"port":9092}'),
    (
        "/brokers/ids/2",
        '{"jmx_port":-1,"timestamp":"1","endpoints":["PLAINTEXT://h:9092","SSL://h:9093"],"host":"h","version":2,"port":9092}',
    ),
    (
        "/brokers/ids/3",
        '{"jmx_port":1,"timestamp":"1","endpoints":["SSL://[::1]:9093"],"host":null,"version":3,"port":-1,"rack":"r1"}',
    ),
    (
        "/brokers/ids/4",
        '{"listener_security_protocol_map":{"CLIENT":"SSL"},"endpoints":["CLIENT://h:9092"],"jmx_port":-1,"host":null,'
        '"timestamp":"1","port":-1,"version":4}',
    ),
    (
        "/brokers/ids/5",
        '{"features":{"f":{"min":1}},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},'
        '"endpoints":["PLAINTEXT://:9092"],"jmx_port":-1,"port":9092,"host":"","version":5,"timestamp":"1"}',
    ),
    ("/brokers/seqid", ""),
    ("/brokers/topics/t", '{"version":1,"partitions":{"1":[1,2],"0":[2,1]}}'),
    (
        "/brokers/topics/t",
        '{"version":2,"partitions":{"0":[1]},"adding_replicas":{"0":[3]},"removing_replicas":{}}',
    ),
    (
        "/brokers/topics/t",
        '{"removing_replicas":{},"partitions":{"0":[1]},"topic_id":"gWGeBrXhQ12345678901_w","adding_replicas":{},"version":3}',
    ),
    ("/brokers/topics/t/partitions", ""),
    ("/brokers/topics/t/partitions/0", ""),
    (
        "/brokers/topics/t/partitions/0/state",
        '{"controller_epoch":1,"leader":2,"version":1,"leader_epoch":0,"isr":[2,1]}',
    ),
    (
        "/brokers/topics/t/partitions/0/state",
        '{"controller_epoch":1,"leader":-1,"version":1,"leader_epoch":7,"isr":[],"leader_recovery_state":0}',
    ),
    ("/controller", '{"version":1,"brokerid":3,"timestamp":"1403061802981"}'),
    ("/controller", '{"version":2,"brokerid":3,"timestamp":"1403061802981","kraftControllerEpoch":-1}'),
    ("/controller", "3"),
    ("/controller_epoch", "17"),
    (
        "/consumers/g/ids/g_h-1-a",
        '{"version":1,"subscription":{"t1":2,"t2":2},"pattern":"static","timestamp":"1416810012297"}',
    ),
    ("/consumers/g/ids/m", '{"version":1,"subscription":{"a\\\\.b":1},"pattern":"white_list","timestamp":7}'),
    ("/consumers/g/owners/t/0", "g_h-1-a-0"),
    ("/consumers/g/offsets/t/0", "123456789012"),
    (
        "/admin/reassign_partitions",
        '{"version":1,"partitions":[{"topic":"Foo","partition":1,"replicas":[0,1,3],"new":1}]}',
    ),
    ("/admin/preferred_replica_election", '{"version":1,"partitions":[{"topic":"Foo","partition":1}]}'),
    ("/admin/delete_topics", ""),
    ("/admin/delete_topics", '{"version":1,"topics":["foo"]}'),
    ("/admin/delete_topics/t", ""),
    ("/config/topics/t", '{"version":1,"config":{"retention.ms":"1000"}}'),
    ("/config/clients/c", '{"version":1,"config":{"producer_byte_rate":"1000"}}'),
    ("/config/users/u%20v/clients/%3Cdefault%3E", '{"version":1,"config":{}}'),
    ("/config/users/<default>", '{"version":1,"config":{"SCRAM-SHA-256":"salt=..,iterations=4096"}}'),
    ("/config/brokers/1", '{"version":1,"config":{}}'),
    ("/config/ips/10.0.0.1", '{"version":1,"config":{"connection_creation_rate":"1"}}'),
    ("/config/changes/config_change_0000000001", '"topic"'),
    (
        "/config/changes/config_change_0000000002",
        '{"version":1,"entity_type":"clients","entity_name":"x"}',
    ),
    ("/config/changes/config_change_0000000003", '{"version":2,"entity_path":"users/u/clients/c"}'),
    (
        "/isr_change_notification/isr_change_0000000003",
        '{"version":1,"partitions":[{"topic":"t","partition":0}]}',
    ),
    ("/log_dir_event_notification/log_dir_event_0000000000", '{"version":1,"broker":0,"event":1}'),
    ("/cluster/id", '{"version":"1","id":"jO4JjzqQQ1y1B5B1B1B1Bg"}'),
    (
        "/kafka-acl/Topic/foo",
        '{"version":1,"acls":[{"principal":"User:alice","permissionType":"Allow","operation":"Read","host":"*"}]}',
    ),
    ("/kafka-acl-changes/acl_changes_0000000000", "TOPIC:foo:bar"),
    ("/kafka-acl-extended/prefixed/Topic/foo", '{"version":1,"acls":[]}'),
    (
        "/kafka-acl-extended-changes/acl_changes_0000000000",
        '{"version":1,"resourceType":"TOPIC","name":"foo","patternType":"PREFIXED"}',
    ),
    (
        "/delegation_token/tokens/x",
        '{"version":1,"owner":"User:a","renewers":["User:b"],"issueTimestamp":1690000000000,"maxTimestamp":1690000000000,'
        '"expiryTimestamp":1690000000000,"tokenId":"x"}',
    ),
    ("/delegation_token/token_changes/token_change_0000000000", "x"),
    ("/latest_producer_id_block", '{"version":1,"broker":0,"block_start":"0","block_end":"999"}'),
    ("/latest_producer_id_block", ""),
    ("/feature", '{"version":2,"features":{},"status":1}'),
    (
        "/migration",
        '{"version":0,"kraft_controller_id":-1,"kraft_controller_epoch":-1,"kraft_metadata_offset":-1,"kraft_metadata_epoch":-1}',
    ),
)


def normalised(data: bytes) -> object:
    """JSON without regard to the order of keys; other text as it is."""
    try:
        return json.loads(data)
    except ValueError:
        return data


@pytest.mark.parametrize(("path", "text"), AS_WRITTEN)
def test_what_kafka_writes_is_read_and_written_back(path: str, text: str) -> None:
    node = paths.decode(path, text.encode())
    assert normalised(node.encode()) == normalised(text.encode())
    assert type(node).decode(node.encode(), path) == node
    found = paths.match(path)
    assert found is not None
    assert type(node) is found.kind.node


@pytest.mark.parametrize(("path", "text"), [each for each in AS_WRITTEN[1:] if each[1].startswith("{")])
def test_an_unknown_key_and_a_higher_version_are_kept(path: str, text: str) -> None:
    document = {**json.loads(text), "from_the_future": {"a": [1.5, None]}, "version": 99}
    newer = paths.decode(path, json.dumps(document).encode())
    written = json.loads(newer.encode())
    assert written["from_the_future"] == {"a": [1.5, None]}
    assert written["version"] == 99
    assert {name: written[name] for name in document} == document


def test_json_is_written_as_kafka_writes_it() -> None:
    registration = Registration(subscription={"a\\.b": 2}, pattern="white_list", timestamp="1416810012297")
    assert registration.encode() == (
        b'{"version":1,"subscription":{"a\\\\.b":2},"pattern":"white_list","timestamp":"1416810012297"}'
    )
    assert Topic(partitions={0: [1, 2]}).encode() == b'{"version":1,"partitions":{"0":[1,2]}}'
    assert Topic(version=2, partitions={0: [1]}).encode() == (
        b'{"version":2,"partitions":{"0":[1]},"adding_replicas":{},"removing_replicas":{}}'
    )
    assert Config().encode() == b'{"version":1,"config":{}}'
    assert Config(config={"name": "höhe"}).encode() == '{"version":1,"config":{"name":"höhe"}}'.encode()
    state = PartitionState(leader=2, leader_epoch=0, isr=[2, 1], controller_epoch=1)
    assert state.encode() == b'{"controller_epoch":1,"leader":2,"version":1,"leader_epoch":0,"isr":[2,1]}'
    moved = Reassignment(partitions=[PartitionReassignment(topic="Foo", partition=1, replicas=[0, 1, 3])])
    assert moved.encode() == b'{"version":1,"partitions":[{"topic":"Foo","partition":1,"replicas":[0,1,3]}]}'


def test_what_is_changed_keeps_the_rest() -> None:
    topic = Topic.decode(b'{"version":3,"partitions":{"0":[1]},"topic_id":"x","later":[1]}', "/brokers/topics/t")
    grown = replace(topic, partitions={**topic.partitions, 1: (2,)})
    assert json.loads(grown.encode()) == {
        "version": 3,
        "partitions": {"0": [1], "1": [2]},
        "adding_replicas": {},
        "removing_replicas": {},
        "topic_id": "x",
        "later": [1],
    }


BROKEN = (
    ("/brokers/ids/1", "", "it is empty, where JSON is expected"),
    ("/brokers/ids/1", "{", "its data is not JSON"),
    ("/brokers/ids/1", "[]", "its data is no JSON object but []"),
    ("/brokers/ids/1", '{"version":0,"host":"h","port":1}', "the key 'version' is 0, which is below 1"),
    ("/brokers/ids/1", '{"version":1,"host":null,"port":1}', "the key 'host' is null"),
    ("/brokers/ids/1", '{"version":1,"host":"h","port":"1"}', "the key 'port' is no whole number but '1'"),
    ("/brokers/ids/1", '{"version":1,"host":"h","port":true}', "the key 'port' is no whole number but True"),
    ("/brokers/ids/1", '{"version":2,"host":"h","port":1}', "the key 'endpoints' is missing"),
    ("/brokers/ids/1", '{"version":2,"host":"h","port":1,"endpoints":["h:1"]}', "has 'h:1', which is no endpoint"),
    ("/brokers/topics/t", '{"version":1}', "the key 'partitions' is missing"),
    ("/brokers/topics/t", '{"partitions":{"x":[1]}}', "has 'x', which is no partition number"),
    ("/brokers/topics/t", '{"partitions":{"0":1}}', "is no list but 1"),
    ("/brokers/topics/t", '{"partitions":{"0":[2147483648]}}', "is 2147483648, which has more than 32 bits"),
    ("/brokers/topics/t", '{"partitions":{"0":[NaN]}}', "NaN is no JSON number"),
    ("/consumers/g/ids/m", "{}", "the key 'subscription' is missing"),
    ("/consumers/g/ids/m", '{"subscription":{"t":1}}', "the key 'pattern' is missing"),
    ("/consumers/g/ids/m", '{"subscription":{"t":0},"pattern":"static"}', "gives 't' 0 streams"),
    ("/consumers/g/ids/m", '{"subscription":{"t":"1"},"pattern":"static"}', "is no whole number but '1'"),
    ("/consumers/g/ids/m", "topic", "its data is not JSON"),
    ("/consumers/g/offsets/t/0", "ten", "its data is no decimal number but ten"),
    ("/consumers/g/offsets/t/0", "9" * 19, "no decimal number"),
    ("/consumers/g/offsets/t/0", "", "no decimal number"),
    ("/consumers/g/offsets/t/0", "1_0", "no decimal number"),
    ("/controller", '"x"', "neither a JSON object nor a broker id"),
    ("/config/topics/t", '{"config":{"a":1}}', "is no string but 1"),
    ("/config/changes/config_change_0000000001", "[]", "neither a JSON object nor a topic's name"),
    ("/config/changes/config_change_0000000001", '{"version":1}', "neither the key 'entity_path'"),
    ("/admin/reassign_partitions", '{"partitions":[1]}', "the key 'partitions' has 1, which is no object"),
    ("/admin/reassign_partitions", '{"partitions":[{"topic":"t"}]}', "where the key 'partition' is missing"),
    ("/admin/delete_topics", '{"topics":[1]}', "the key 'topics' is no string but 1"),
    ("/kafka-acl-changes/acl_changes_0000000000", "foo", "not of the form Type:name"),
    ("/kafka-acl/Topic/t", '{"acls":[{"principal":"User:a"}]}', "the key 'permissionType' is missing"),
)


@pytest.mark.parametrize(("path", "text", "why"), BROKEN)
def test_a_malformed_node_is_named(path: str, text: str, why: str) -> None:
    with pytest.raises(MalformedNodeError) as caught:
        paths.decode(path, text.encode())
    assert caught.value.path == path
    assert path in str(caught.value)
    assert why in str(caught.value)


@pytest.mark.parametrize("data", [b"\xff", b"[" * 100_000, b"9" * 10_000, b'{"a":' * 50_000])
def test_no_bytes_are_too_odd_for_a_clear_error(data: bytes) -> None:
    for kind in paths.KINDS:
        with suppress(MalformedNodeError):
            kind.node.decode(data, "/somewhere")


def test_where_a_broker_listens() -> None:
    first = Broker(version=1, host="h", port=9092)
    assert first.listeners == (Endpoint("PLAINTEXT", "PLAINTEXT", "h", 9092),)
    assert first.address_for("PLAINTEXT") == ("h", 9092)
    named = Broker(version=4, endpoints=["IN://[::1]:1", "OUT://h:2"], protocols={"IN": "SSL", "OUT": "PLAINTEXT"})
    assert named.listeners == (Endpoint("IN", "SSL", "::1", 1), Endpoint("OUT", "PLAINTEXT", "h", 2))
    assert named.address_for("PLAINTEXT") == ("h", 2)
    assert named.address_for("SSL") == ("::1", 1)
    assert Broker(version=2, endpoints=["SSL://h:1"]).address_for("PLAINTEXT") is None


def test_a_regex_of_0_8_0_that_is_no_json_is_read_as_it_was_meant() -> None:
    raw = rb'{"version":1,"subscription":{"a\.b\d":1},"pattern":"white_list","timestamp":"1"}'
    assert Registration.decode(raw, "/x").wildcard == (r"a\.b\d", 1)
    escaped = rb'{"version":1,"subscription":{"a\\.b\/":1},"pattern":"black_list","timestamp":"1"}'
    assert Registration.decode(escaped, "/x").wildcard == (r"a\.b/", 1)
    twice = rb'{"version":1,"subscription":{"a\\\\.b":1},"pattern":"white_list","timestamp":"1"}'
    assert Registration.decode(twice, "/x").wildcard == (r"a\\.b", 1)


def test_any_other_pattern_reads_as_static() -> None:
    assert Registration(subscription={"t": 1}, pattern="something").wildcard is None
    assert Registration(subscription={}, pattern="white_list").wildcard is None


def test_a_number_that_kafka_cannot_read_is_not_written() -> None:
    with pytest.raises(ConfigError, match="more than 32 bits"):
        Registration(subscription={"t": 1 << 31}).encode()
    with pytest.raises(ConfigError, match="more than 32 bits"):
        Topic(partitions={0: [1 << 31]}).encode()


def test_the_formats_of_a_change() -> None:
    topic = ConfigChange("topics/t", ChangeFormat.TOPIC_NAME)
    assert topic.encode() == b'"t"'
    assert replace(topic, format=ChangeFormat.TYPE_AND_NAME).encode() == (
        b'{"version":1,"entity_type":"topics","entity_name":"t"}'
    )
    assert ConfigChange("users/u/clients/c").encode() == b'{"version":2,"entity_path":"users/u/clients/c"}'
    with pytest.raises(ConfigError, match="settings of topics only"):
        ConfigChange("clients/c", ChangeFormat.TOPIC_NAME).encode()
    with pytest.raises(ConfigError, match="know no settings of 'users/u/clients/c'"):
        ConfigChange("users/u/clients/c", ChangeFormat.TYPE_AND_NAME).encode()


def test_the_rest() -> None:
    assert Offset(7).encode() == b"7"
    assert Owner("c-0").encode() == b"c-0"
    assert Plain.decode(b"\xff", "/x").encode() == b"\xff"
    assert Controller.decode(b"3", "/controller").broker_id == 3
    assert DeletedTopics.decode(b'{"version":1,"topics":["a"]}', "/x").topics == ("a",)
    assert DeletedTopics(["a"]).encode() == b'{"version":1,"topics":["a"]}'
    assert AclChange("Group:a:b").resource == ("Group", "a:b")
    assert json.loads(Acls(acls=[Acl(principal="User:a", operation="Read")]).encode())["acls"] == [
        {"principal": "User:a", "permissionType": "Allow", "operation": "Read", "host": "*"}
    ]
    assert PartitionName(topic="t", partition=0) == PartitionName(topic="t", partition=0)
    state = Migration(
        kraft_controller_id=3000, kraft_controller_epoch=1, kraft_metadata_offset=1, kraft_metadata_epoch=1
    )
    assert state.has_begun
    assert not replace(state, kraft_controller_id=-1).has_begun


OBJECTS: dict[str, list[str]] = {}
for each_path, each_text in AS_WRITTEN:
    if each_text.startswith("{"):
        OBJECTS.setdefault(paths.match(each_path).kind.name, []).append(each_text)

KEYS = sorted({key.name for kind in paths.KINDS for key in getattr(kind.node, "KEYS", ())} | {"topics", "entity_path"})
SCALARS = (
    st.none() | st.booleans() | st.integers(-(1 << 40), 1 << 40) | st.text(max_size=5) | st.sampled_from(["0", "h:1"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["0", "1", *KEYS]), inner, max_size=3),
    max_leaves=6,
)


@given(kind=st.sampled_from(paths.KINDS), changes=st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=3))
def test_whatever_is_read_is_written_so_that_it_reads_the_same(kind: paths.Kind, changes: dict[str, object]) -> None:
    """Documents of every kind with keys and values put in at random: an error with the path, or nothing is lost."""
    for text in OBJECTS.get(kind.name, ["{}"]):
        data = json.dumps({**json.loads(text), **changes}).encode()
        try:
            node = kind.node.decode(data, "/x")
        except MalformedNodeError:
            continue
        assert kind.node.decode(node.encode(), "/x") == node


@given(kind=st.sampled_from(paths.KINDS), data=st.binary(max_size=40))
def test_any_bytes_are_a_node_or_a_clear_error(kind: paths.Kind, data: bytes) -> None:
    with suppress(MalformedNodeError):
        node = kind.node.decode(data, "/x")
        assert kind.node.decode(node.encode(), "/x") == node
