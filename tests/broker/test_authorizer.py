"""Rules of the authorizer that no request of ``authorization_story`` shows."""

from __future__ import annotations

import pytest

from pykafka08.acl_operations import OPERATIONS, AclOperation, AclResourceType
from pykafka08.broker.access_control import ALLOW, DENY, PREFIXED, Acl, Acls
from pykafka08.broker.authorizer import Authorizer, authorizer_of
from pykafka08.broker.server import EmbeddedCluster
from pykafka08.errors import ConfigError
from pykafka08.protocol.messages import REGISTRY

TOPIC, LITERAL = AclResourceType.TOPIC, 3
READ, WRITE = AclOperation.READ, AclOperation.WRITE
ALICE, BOB, HOST = "User:alice", "User:bob", "10.0.0.1"


def acls(*entries: Acl) -> Acls:
    stored = Acls()
    for each in entries:
        stored.add(each)
    return stored


def acl(name: str, operation: AclOperation = READ, permission: int = ALLOW, pattern: int = LITERAL) -> Acl:
    return Acl(TOPIC, name, pattern, ALICE, "*", operation, permission)


def test_super_users_may_do_everything() -> None:
    authorizer = Authorizer(acls(acl("t", permission=DENY)), [ALICE])
    assert authorizer.authorize(ALICE, HOST, READ, (TOPIC, "t"))
    assert authorizer.may_on_any(ALICE, HOST, WRITE, TOPIC)
    assert not authorizer.authorize(BOB, HOST, READ, (TOPIC, "t"))


@pytest.mark.parametrize(("name", "is_open"), [("t", False), ("other", True)])
def test_resources_without_any_entry_can_be_open_to_everyone(name: str, is_open: bool) -> None:
    stored = acls(acl("t"))
    assert Authorizer(stored, allows_if_no_acl=True).authorize(BOB, HOST, READ, (TOPIC, name)) is is_open
    assert not Authorizer(stored).authorize(BOB, HOST, READ, (TOPIC, name))


@pytest.mark.parametrize(
    ("denied", "may"),
    [
        (acl("other", WRITE, DENY), True),
        (acl("t", WRITE, DENY), False),
        (acl("t", READ, DENY), True),
        (acl("*", WRITE, DENY), False),
        (acl("", WRITE, DENY, PREFIXED), False),
        (acl("tt", WRITE, DENY, PREFIXED), True),
    ],
)
def test_one_resource_is_enough_if_no_entry_denies_all_of_it(denied: Acl, may: bool) -> None:
    assert Authorizer(acls(acl("t", WRITE), denied)).may_on_any(ALICE, HOST, WRITE, TOPIC) is may


def test_there_is_no_authorizer_without_the_property() -> None:
    assert authorizer_of(Acls(), {"super.users": ALICE}) is None
    made = authorizer_of(Acls(), {"authorizer.class.name": "any", "super.users": f"{ALICE}; {BOB}"})
    assert made is not None
    assert made.authorize(BOB, HOST, WRITE, (TOPIC, "t"))


def test_every_api_of_the_table_exists() -> None:
    assert OPERATIONS.keys() <= {each.name for each in REGISTRY.values()}


def test_an_unknown_property_is_refused_as_before() -> None:
    with pytest.raises(ConfigError, match=r"super\.user"):
        EmbeddedCluster(properties={"super.user": ALICE})


GROUP, CLUSTER = AclResourceType.GROUP, AclResourceType.CLUSTER
ALL, DESCRIBE, DELETE, ALTER, CREATE, DESCRIBE_CONFIGS, ALTER_CONFIGS = (
    AclOperation.ALL,
    AclOperation.DESCRIBE,
    AclOperation.DELETE,
    AclOperation.ALTER,
    AclOperation.CREATE,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
)
TOPIC_OPERATIONS = (READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS)
EVERYTHING = frozenset(TOPIC_OPERATIONS)


@pytest.mark.parametrize(
    ("entries", "allowed"),
    [
        ([], set()),
        ([acl("t", READ)], {READ, DESCRIBE}),
        ([acl("t", WRITE)], {WRITE, DESCRIBE}),
        ([acl("t", DELETE)], {DELETE, DESCRIBE}),
        ([acl("t", ALTER)], {ALTER, DESCRIBE}),
        ([acl("t", CREATE)], {CREATE}),
        ([acl("t", DESCRIBE)], {DESCRIBE}),
        ([acl("t", ALTER_CONFIGS)], {ALTER_CONFIGS, DESCRIBE_CONFIGS}),
        ([acl("t", DESCRIBE_CONFIGS)], {DESCRIBE_CONFIGS}),
        ([acl("t", ALL)], EVERYTHING),
        # An entry that denies an operation denies none that it implies.
        ([acl("t", ALL), acl("t", READ, DENY)], EVERYTHING - {READ}),
        ([acl("t", ALL), acl("t", DESCRIBE, DENY)], EVERYTHING - {DESCRIBE}),
        ([acl("t", READ), acl("t", DESCRIBE, DENY)], {READ}),
        ([acl("t", ALL), acl("t", ALL, DENY)], set()),
        # DENY counts whatever the pattern, the principal or the host by which it applies.
        ([acl("t", ALL), acl("*", WRITE, DENY)], EVERYTHING - {WRITE}),
        ([acl("t", ALL), acl("", WRITE, DENY, PREFIXED)], EVERYTHING - {WRITE}),
        ([acl("*", ALL), acl("t", WRITE, DENY)], EVERYTHING - {WRITE}),
        ([acl("t", ALL), acl("t", WRITE, DENY)._replace(principal="User:*")], EVERYTHING - {WRITE}),
        ([acl("t", ALL), acl("t", WRITE, DENY)._replace(host=HOST)], EVERYTHING - {WRITE}),
        ([acl("t", ALL), acl("t", WRITE, DENY)._replace(host="10.0.0.2")], EVERYTHING),
        ([acl("t", ALL), acl("t", WRITE, DENY)._replace(principal=BOB)], EVERYTHING),
        ([acl("t", ALL), acl("other", WRITE, DENY)], EVERYTHING),
        # Patterns.
        ([acl("*", CREATE)], {CREATE}),
        ([acl("t", CREATE, pattern=PREFIXED)], {CREATE}),
        ([acl("tt", CREATE, pattern=PREFIXED)], set()),
        ([acl("*", CREATE, pattern=PREFIXED)], set()),
        ([acl("T", CREATE)], set()),
        # Principals, hosts and types of resources.
        ([acl("t", CREATE)._replace(principal="User:*")], {CREATE}),
        ([acl("t", CREATE)._replace(principal="Group:alice")], set()),
        ([acl("t", CREATE)._replace(host=HOST)], {CREATE}),
        ([acl("t", CREATE)._replace(host="10.0.0.2")], set()),
        ([acl("t", CREATE)._replace(resource_type=GROUP)], set()),
        ([acl("t", CREATE)._replace(resource_type=CLUSTER)], set()),
    ],
)
def test_the_rules_are_those_of_kafka(entries: list[Acl], allowed: set[AclOperation]) -> None:
    """Held against a broker of 4.3.1 with 900 random sets of entries and the requests of two users."""
    authorizer = Authorizer(acls(*entries))
    assert {each for each in TOPIC_OPERATIONS if authorizer.authorize(ALICE, HOST, each, (TOPIC, "t"))} == allowed
    backwards = Authorizer(acls(*entries[::-1]))
    assert {each for each in TOPIC_OPERATIONS if backwards.authorize(ALICE, HOST, each, (TOPIC, "t"))} == allowed


@pytest.mark.parametrize(
    ("entries", "may"),
    [
        ([], True),
        ([acl("t", READ)], True),
        ([acl("t", WRITE, DENY)], True),
        ([acl("*", WRITE, DENY)], False),
        # An entry about every name closes the resources that no other entry is about.
        ([acl("*", READ)], False),
        ([acl("*", READ)._replace(principal=BOB)], False),
        ([acl("*", READ, pattern=PREFIXED)], True),
        ([acl("*", READ)._replace(principal=BOB), acl("t", WRITE)], True),
        ([acl("*", WRITE), acl("*", WRITE, DENY)], False),
        ([acl("*", WRITE), acl("t", WRITE, DENY, PREFIXED)], True),
        ([acl("*", READ)._replace(resource_type=GROUP)], True),
    ],
)
def test_any_resource_of_a_cluster_that_is_open_without_entries(entries: list[Acl], may: bool) -> None:
    assert Authorizer(acls(*entries), allows_if_no_acl=True).may_on_any(ALICE, HOST, WRITE, TOPIC) is may
