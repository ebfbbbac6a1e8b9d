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
