"""Where everything lies in Kafka's ZooKeeper, from 0.8.0 to 3.9: one table of all nodes, and the path of each.

All paths are relative to the chroot.  What the nodes hold: ``zookeeper/nodes/``.  Kafka's own lists: ZkUtils (0.8 to
0.11), ZkData (1.0 to 3.9).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import NamedTuple
from urllib.parse import quote, unquote

from pykafka08.errors import ConfigError
from pykafka08.zookeeper.nodes.acls import AclChange, Acls, DelegationToken, ExtendedAclChange, TokenChange
from pykafka08.zookeeper.nodes.brokers import Broker, PartitionState, Topic
from pykafka08.zookeeper.nodes.cluster import (
    ClusterId,
    Controller,
    ControllerEpoch,
    Features,
    Migration,
    ProducerIdBlock,
)
from pykafka08.zookeeper.nodes.commands import DeletedTopics, PreferredElection, Reassignment
from pykafka08.zookeeper.nodes.configs import Config, ConfigChange
from pykafka08.zookeeper.nodes.consumers import Offset, Owner, Registration
from pykafka08.zookeeper.nodes.document import Node, Plain
from pykafka08.zookeeper.nodes.notices import IsrChange, LogDirEvent

__all__ = [
    "ACLS",
    "ACL_CHANGES",
    "BROKERS",
    "BROKER_IDS",
    "CLUSTER_ID",
    "CONFIG",
    "CONFIG_CHANGES",
    "CONSUMERS",
    "CONTROLLER",
    "CONTROLLER_EPOCH",
    "DEFAULT",
    "DELETE_TOPICS",
    "EXTENDED_ACLS",
    "EXTENDED_ACL_CHANGES",
    "KINDS",
    "MIGRATION",
    "PREFERRED_ELECTION",
    "REASSIGNMENT",
    "TOPICS",
    "Kind",
    "Life",
    "Match",
    "Writer",
    "acl",
    "acl_change",
    "broker",
    "broker_config",
    "client_config",
    "config_change",
    "consumer_group",
    "consumer_id",
    "consumer_ids",
    "decode",
    "deleted_topic",
    "entity_config",
    "extended_acl",
    "extended_acl_change",
    "group_offsets",
    "group_owners",
    "ip_config",
    "match",
    "offset",
    "offsets",
    "owner",
    "owners",
    "parent",
    "partition",
    "partition_state",
    "partitions",
    "topic",
    "topic_config",
    "user_client_config",
    "user_config",
]

BROKERS = "/brokers"
BROKER_IDS = "/brokers/ids"
TOPICS = "/brokers/topics"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
CONSUMERS = "/consumers"
DELETE_TOPICS = "/admin/delete_topics"
REASSIGNMENT = "/admin/reassign_partitions"
PREFERRED_ELECTION = "/admin/preferred_replica_election"
CONFIG = "/config"
CONFIG_CHANGES = "/config/changes"
CLUSTER_ID = "/cluster/id"
ACLS = "/kafka-acl"
ACL_CHANGES = "/kafka-acl-changes"
EXTENDED_ACLS = "/kafka-acl-extended"
EXTENDED_ACL_CHANGES = "/kafka-acl-extended-changes"
MIGRATION = "/migration"

DEFAULT = "<default>"
"""The name, never encoded, of the settings for all who have none of their own."""


def _segment(name: str, what: str) -> str:
    if not name or "/" in name or name in (".", "..") or "\0" in name:
        raise ConfigError(f"{name!r} cannot be the name of a {what}: it would be part of a path in ZooKeeper")
    return name


def _encoded(name: str, what: str) -> str:
    """As Kafka makes names of users and clients safe for a path."""
    return DEFAULT if name == DEFAULT else _segment(quote(name, safe="").replace("~", "%7E"), what)


def parent(path: str) -> str:
    """The path above; of ``/`` itself."""
    return path.rpartition("/")[0] or "/"


def broker(broker_id: int) -> str:
    return f"{BROKER_IDS}/{broker_id}"


def topic(name: str) -> str:
    return f"{TOPICS}/{_segment(name, 'topic')}"


def partitions(topic_name: str) -> str:
    return f"{topic(topic_name)}/partitions"


def partition(topic_name: str, number: int) -> str:
    return f"{partitions(topic_name)}/{number}"


def partition_state(topic_name: str, number: int) -> str:
    return f"{partition(topic_name, number)}/state"


def consumer_group(group: str) -> str:
    return f"{CONSUMERS}/{_segment(group, 'group')}"


def consumer_ids(group: str) -> str:
    return f"{consumer_group(group)}/ids"


def consumer_id(group: str, member: str) -> str:
    return f"{consumer_ids(group)}/{_segment(member, 'member')}"


def group_owners(group: str) -> str:
    return f"{consumer_group(group)}/owners"


def owners(group: str, topic_name: str) -> str:
    return f"{group_owners(group)}/{_segment(topic_name, 'topic')}"


def owner(group: str, topic_name: str, number: int) -> str:
    return f"{owners(group, topic_name)}/{number}"


def group_offsets(group: str) -> str:
    return f"{consumer_group(group)}/offsets"


def offsets(group: str, topic_name: str) -> str:
    return f"{group_offsets(group)}/{_segment(topic_name, 'topic')}"


def offset(group: str, topic_name: str, number: int) -> str:
    return f"{offsets(group, topic_name)}/{number}"


def deleted_topic(name: str) -> str:
    return f"{DELETE_TOPICS}/{_segment(name, 'topic')}"


def topic_config(name: str) -> str:
    return f"{CONFIG}/topics/{_segment(name, 'topic')}"


def client_config(client: str) -> str:
    return f"{CONFIG}/clients/{_encoded(client, 'client')}"


def user_config(user: str) -> str:
    return f"{CONFIG}/users/{_encoded(user, 'user')}"


def user_client_config(user: str, client: str) -> str:
    return f"{user_config(user)}/clients/{_encoded(client, 'client')}"


def broker_config(broker_id: int | None) -> str:
    """Of one broker, or with None of all brokers."""
    return f"{CONFIG}/brokers/{DEFAULT if broker_id is None else broker_id}"


def ip_config(address: str) -> str:
    return f"{CONFIG}/ips/{_segment(address, 'address')}"


def entity_config(entity_path: str) -> str:
    """The settings that a notice's ``entity_path`` means, such as ``topics/t``."""
    return f"{CONFIG}/{entity_path}"


def config_change() -> str:
    """What ZooKeeper appends ten digits to."""
    return f"{CONFIG_CHANGES}/config_change_"


def acl(resource_type: str, name: str) -> str:
    return f"{ACLS}/{_segment(resource_type, 'resource type')}/{_segment(name, 'resource')}"


def acl_change() -> str:
    """What ZooKeeper appends ten digits to."""
    return f"{ACL_CHANGES}/acl_changes_"


def extended_acl(resource_type: str, name: str, pattern: str = "prefixed") -> str:
    return f"{EXTENDED_ACLS}/{pattern}/{_segment(resource_type, 'resource type')}/{_segment(name, 'resource')}"


def extended_acl_change() -> str:
    """What ZooKeeper appends ten digits to."""
    return f"{EXTENDED_ACL_CHANGES}/acl_changes_"


class Life(Enum):
    """How long a node lasts."""

    PERSISTENT = "persistent"
    EPHEMERAL = "ephemeral"
    SEQUENTIAL = "sequential"


class Writer(Enum):
    """Who writes a kind of node."""

    TOOLS = "tools"
    """Administration: Kafka's tools, the brokers on their behalf, and this library."""
    CONSUMERS = "consumers"
    """Members of old groups, this library's among them."""
    BROKERS = "brokers"
    """Brokers alone: this library never does."""
    ZOOKEEPER = "zookeeper"


@dataclass(frozen=True)
class Kind:
    """One kind of node.  ``template`` has names in braces, each one segment of the path."""

    name: str
    template: str
    node: type[Node]
    writer: Writer
    life: Life = Life.PERSISTENT
    since: str = "0.8.0"

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        segments = (_segment_pattern(segment) for segment in self.template.split("/"))
        return re.compile("/".join(segments), re.ASCII | re.DOTALL)


_NUMBERS = frozenset({"partition", "broker"})
_SEQUENCE = "{sequence}"


def _segment_pattern(segment: str) -> str:
    before, brace, name = segment.rstrip("}").partition("{")
    if not brace:
        return re.escape(segment)
    if name == "sequence":
        return rf"{re.escape(before)}(?P<sequence>-?\d+)"
    return rf"(?P<{name}>\d+)" if name in _NUMBERS else rf"(?P<{name}>[^/]+)"


class Match(NamedTuple):
    """The kind of node that a path means, and the names in it, decoded; numbers as text."""

    kind: Kind
    names: Mapping[str, str]


_B, _T, _C, _Z = Writer.BROKERS, Writer.TOOLS, Writer.CONSUMERS, Writer.ZOOKEEPER
_E, _S, _P = Life.EPHEMERAL, Life.SEQUENTIAL, Life.PERSISTENT

KINDS: tuple[Kind, ...] = (
    Kind("root", "/", Plain, _T),
    Kind("brokers", BROKERS, Plain, _B),
    Kind("broker_ids", BROKER_IDS, Plain, _B),
    Kind("broker", f"{BROKER_IDS}/{{broker}}", Broker, _B, _E),
    Kind("broker_sequence", f"{BROKERS}/seqid", Plain, _B, since="0.9.0"),
    Kind("topics", TOPICS, Plain, _B),
    Kind("topic", f"{TOPICS}/{{topic}}", Topic, _T),
    Kind("partitions", f"{TOPICS}/{{topic}}/partitions", Plain, _B),
    Kind("partition", f"{TOPICS}/{{topic}}/partitions/{{partition}}", Plain, _B),
    Kind("partition_state", f"{TOPICS}/{{topic}}/partitions/{{partition}}/state", PartitionState, _B),
    Kind("controller", CONTROLLER, Controller, _B, _E),
    Kind("controller_epoch", CONTROLLER_EPOCH, ControllerEpoch, _B),
    Kind("consumers", CONSUMERS, Plain, _B),
    Kind("consumer_group", f"{CONSUMERS}/{{group}}", Plain, _C),
    Kind("consumer_ids", f"{CONSUMERS}/{{group}}/ids", Plain, _C),
    Kind("consumer_id", f"{CONSUMERS}/{{group}}/ids/{{member}}", Registration, _C, _E),
    Kind("group_owners", f"{CONSUMERS}/{{group}}/owners", Plain, _C),
    Kind("owners", f"{CONSUMERS}/{{group}}/owners/{{topic}}", Plain, _C),
    Kind("owner", f"{CONSUMERS}/{{group}}/owners/{{topic}}/{{partition}}", Owner, _C, _E),
    Kind("group_offsets", f"{CONSUMERS}/{{group}}/offsets", Plain, _C),
    Kind("offsets", f"{CONSUMERS}/{{group}}/offsets/{{topic}}", Plain, _C),
    Kind("offset", f"{CONSUMERS}/{{group}}/offsets/{{topic}}/{{partition}}", Offset, _C),
    Kind("admin", "/admin", Plain, _B),
    Kind("delete_topics", DELETE_TOPICS, DeletedTopics, _B, since="0.8.1"),
    Kind("deleted_topic", f"{DELETE_TOPICS}/{{topic}}", Plain, _T, since="0.8.1"),
    Kind("reassignment", REASSIGNMENT, Reassignment, _T),
    Kind("preferred_election", PREFERRED_ELECTION, PreferredElection, _T),
    Kind("config", CONFIG, Plain, _B, since="0.8.1"),
    Kind("topic_configs", f"{CONFIG}/topics", Plain, _B, since="0.8.1"),
    Kind("topic_config", f"{CONFIG}/topics/{{topic}}", Config, _T, since="0.8.1"),
    Kind("client_configs", f"{CONFIG}/clients", Plain, _B, since="0.9.0"),
    Kind("client_config", f"{CONFIG}/clients/{{client}}", Config, _T, since="0.9.0"),
    Kind("user_configs", f"{CONFIG}/users", Plain, _B, since="0.10.1"),
    Kind("user_config", f"{CONFIG}/users/{{user}}", Config, _T, since="0.10.1"),
    Kind("user_clients", f"{CONFIG}/users/{{user}}/clients", Plain, _T, since="0.10.1"),
    Kind("user_client_config", f"{CONFIG}/users/{{user}}/clients/{{client}}", Config, _T, since="0.10.1"),
    Kind("broker_configs", f"{CONFIG}/brokers", Plain, _B, since="0.10.1"),
    Kind("broker_config", f"{CONFIG}/brokers/{{name}}", Config, _T, since="0.10.1"),
    Kind("ip_configs", f"{CONFIG}/ips", Plain, _B, since="2.8.0"),
    Kind("ip_config", f"{CONFIG}/ips/{{address}}", Config, _T, since="2.8.0"),
    Kind("config_changes", CONFIG_CHANGES, Plain, _B, since="0.8.1"),
    Kind("config_change", f"{CONFIG_CHANGES}/config_change_{_SEQUENCE}", ConfigChange, _T, _S, "0.8.1"),
    Kind("isr_changes", "/isr_change_notification", Plain, _B, since="0.9.0"),
    Kind("isr_change", f"/isr_change_notification/isr_change_{_SEQUENCE}", IsrChange, _B, _S, "0.9.0"),
    Kind("log_dir_events", "/log_dir_event_notification", Plain, _B, since="1.0.0"),
    Kind("log_dir_event", f"/log_dir_event_notification/log_dir_event_{_SEQUENCE}", LogDirEvent, _B, _S, "1.0.0"),
    Kind("cluster", "/cluster", Plain, _B, since="0.10.1"),
    Kind("cluster_id", CLUSTER_ID, ClusterId, _B, since="0.10.1"),
    Kind("acls", ACLS, Plain, _T, since="0.9.0"),
    Kind("acl_type", f"{ACLS}/{{type}}", Plain, _T, since="0.9.0"),
    Kind("acl", f"{ACLS}/{{type}}/{{resource}}", Acls, _T, since="0.9.0"),
    Kind("acl_changes", ACL_CHANGES, Plain, _T, since="0.9.0"),
    Kind("acl_change", f"{ACL_CHANGES}/acl_changes_{_SEQUENCE}", AclChange, _T, _S, "0.9.0"),
    Kind("extended_acls", EXTENDED_ACLS, Plain, _T, since="2.0.0"),
    Kind("extended_acl_pattern", f"{EXTENDED_ACLS}/{{pattern}}", Plain, _T, since="2.0.0"),
    Kind("extended_acl_type", f"{EXTENDED_ACLS}/{{pattern}}/{{type}}", Plain, _T, since="2.0.0"),
    Kind("extended_acl", f"{EXTENDED_ACLS}/{{pattern}}/{{type}}/{{resource}}", Acls, _T, since="2.0.0"),
    Kind("extended_acl_changes", EXTENDED_ACL_CHANGES, Plain, _T, since="2.0.0"),
    Kind(
        "extended_acl_change",
        f"{EXTENDED_ACL_CHANGES}/acl_changes_{_SEQUENCE}",
        ExtendedAclChange,
        _T,
        _S,
        "2.0.0",
    ),
    Kind("delegation_token", "/delegation_token", Plain, _B, since="1.1.0"),
    Kind("tokens", "/delegation_token/tokens", Plain, _B, since="1.1.0"),
    Kind("token", "/delegation_token/tokens/{token}", DelegationToken, _B, since="1.1.0"),
    Kind("token_changes", "/delegation_token/token_changes", Plain, _B, since="1.1.0"),
    Kind("token_change", f"/delegation_token/token_changes/token_change_{_SEQUENCE}", TokenChange, _B, _S, "1.1.0"),
    Kind("producer_id_block", "/latest_producer_id_block", ProducerIdBlock, _B, since="0.11.0"),
    Kind("features", "/feature", Features, _B, since="2.7.0"),
    Kind("migration", MIGRATION, Migration, _B, since="3.4.0"),
    Kind("zookeeper", "/zookeeper", Plain, _Z),
    Kind("zookeeper_part", "/zookeeper/{part}", Plain, _Z),
)
"""Every kind of node, parents before children.  ``since`` is the first release that writes it."""

_ENCODED = frozenset({"user", "client"})


def match(path: str) -> Match | None:
    """What a path means; None for one that Kafka has not."""
    for kind in KINDS:
        found = kind.pattern.fullmatch(path)
        if found:
            names = {name: unquote(text) if name in _ENCODED else text for name, text in found.groupdict().items()}
            return Match(kind, names)
    return None


def decode(path: str, data: bytes) -> Node:
    """What the node holds, by its path: a ``Plain`` node where Kafka has none.  MalformedNodeError if it cannot be."""
    found = match(path)
    return (found.kind.node if found else Plain).decode(data, path)
