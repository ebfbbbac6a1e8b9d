"""``ssl.principal.mapping.rules``, with the results of Kafka's SslPrincipalMapper."""

from __future__ import annotations

import pytest

from pykafka08 import Admin, EmbeddedCluster
from pykafka08.broker.security.mechanisms import Refused
from pykafka08.broker.security.principal_mapping import principal_mapping
from pykafka08.errors import ConfigError, KafkaError

ALICE = "CN=Alice,OU=Sales,O=Ex/ample"


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        ("DEFAULT", ALICE),
        ("RULE:^CN=(.*?),OU=(.*?),.*$/$1@$2/", "Alice@Sales"),
        ("RULE:^CN=(.*?),OU=(.*?),.*$/$1@$2/L , DEFAULT", "alice@sales"),
        ("RULE:^CN=(.*?),OU=(.*?),.*$/$1@$2/U", "ALICE@SALES"),
        ("RULE:^CN=Bob,.*$/x/,RULE:^CN=(.*?),.*$/$1/", "Alice"),
        ("RULE:CN=Alice/x/,DEFAULT", ALICE),
        (r"RULE:^.*,O=Ex\/(ample)$/$1\/$1/", "ample/ample"),
        (r"RULE:^CN=(.*?),.*$/$1$2\$1/", "Alice$2$1"),
        ("RULE:.*/x/", "xx"),
        ("RULE:^.*$//,DEFAULT", ""),
    ],
)
def test_the_first_rule_that_matches_names_the_user(rules: str, name: str) -> None:
    assert principal_mapping(rules)(ALICE) == name


@pytest.mark.parametrize("rules", ["RULE:^CN=Bob$/x/", ""])
def test_a_subject_that_no_rule_matches_is_refused(rules: str) -> None:
    with pytest.raises(Refused, match=r"no rule of ssl\.principal\.mapping\.rules matches"):
        principal_mapping(rules)(ALICE)


@pytest.mark.parametrize("rules", ["RULE:", "RULE:a/b", "rule:a/b/", "DEFAULT DEFAULT", "RULE:(/x/", "RULE:a/b/X"])
def test_wrong_rules_are_an_error_at_once(rules: str) -> None:
    with pytest.raises(ConfigError, match=r"ssl\.principal\.mapping\.rules"):
        EmbeddedCluster(properties={"ssl.principal.mapping.rules": rules})


@pytest.mark.anyio
async def test_the_brokers_apply_the_rules() -> None:
    properties = {
        "authorizer.class.name": "any",
        "super.users": "User:alice;User:bob",
        "ssl.principal.mapping.rules": "RULE:^CN=(a.*)$/$1/",
    }
    async with EmbeddedCluster(
        listeners={"SSL": "SSL", "SASL_SSL": "SASL_SSL"},
        users={"bob": "secret"},
        client_auth="required",
        properties=properties,
    ) as cluster:
        for user, listener in (("alice", "SSL"), ("bob", "SASL_SSL")):
            async with Admin(**cluster.client_settings(user, listener=listener)) as admin:
                assert (await admin.describe_broker_configs(0))["ssl.principal.mapping.rules"].value
        with pytest.raises(KafkaError):
            async with Admin(**cluster.client_settings("bob"), default_api_timeout_ms=1000):
                pass
