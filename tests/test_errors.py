"""Errors carry their facts, as attributes and in their text."""

from __future__ import annotations

import ast
import copy
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from pykafka08 import errors
from pykafka08.errors import (
    AuthorizationError,
    BrokerError,
    ConfigError,
    KafkaError,
    OffsetOutOfRangeError,
    RequestTimeoutError,
    UnknownTopicError,
    broker_error,
)


def test_the_text_has_the_facts() -> None:
    error = KafkaError("it failed", broker="h:1", api="Fetch", topic="t", partition=0, offset=7)
    assert str(error) == "it failed [broker h:1, api Fetch, topic 't', partition 0, offset 7]"
    assert error.message == "it failed"
    assert str(KafkaError("it failed")) == "it failed"


@pytest.mark.parametrize(
    ("code", "kind"), [(1, OffsetOutOfRangeError), (3, UnknownTopicError), (29, AuthorizationError), (7, BrokerError)]
)
def test_the_class_of_a_code(code: int, kind: type[BrokerError]) -> None:
    error = broker_error(code, topic="t")
    assert type(error) is kind
    assert (error.code, error.topic) == (code, "t")


def test_a_code_that_nobody_knows() -> None:
    error = broker_error(12345)
    assert "12345" in str(error)
    assert not error.is_retriable


def test_what_is_also_an_error_of_python() -> None:
    assert issubclass(ConfigError, ValueError)
    assert issubclass(RequestTimeoutError, TimeoutError)


@pytest.mark.parametrize(
    ("code", "setting"),
    [
        (10, "message.max.bytes"),
        (12, "offset.metadata.max.bytes"),
        (18, "segment.bytes"),
        (26, "session_timeout_ms"),
        (28, "max.message.bytes"),
        (50, "transaction.max.timeout.ms"),
        (81, "group.max.size"),
    ],
)
def test_errors_over_a_size_limit_name_the_setting(code: int, setting: str) -> None:
    assert setting in str(broker_error(code))


@pytest.mark.parametrize(
    ("error", "text", "resource"),
    [
        (broker_error(29, api="Produce", topic="t"), "may not WRITE topic 't': TOPIC_AUTHORIZATION_FAILED (29)",
         ("topic", "t", "WRITE")),
        (broker_error(30, api="JoinGroup", group="g"), "may not READ group 'g': GROUP_AUTHORIZATION_FAILED (30)",
         ("group", "g", "READ")),
        (broker_error(31, api="CreateAcls"), "may not ALTER on the cluster: CLUSTER_AUTHORIZATION_FAILED (31)",
         ("cluster", "kafka-cluster", "ALTER")),
        (broker_error(53, api="EndTxn", transactional_id="tx"), "may not WRITE transactional id 'tx': TRANSACTIONAL_ID",
         ("transactional id", "tx", "WRITE")),
        (broker_error(65, api="RenewDelegationToken"), "may not ALTER a delegation token: DELEGATION_TOKEN",
         ("delegation token", None, "ALTER")),
        (broker_error(29), "may not use a topic: TOPIC_AUTHORIZATION_FAILED (29); add an ACL", ("topic", None, None)),
    ],
    ids=str,
)  # fmt: skip
def test_an_authorization_error_names_resource_and_operation(
    error: AuthorizationError, text: str, resource: tuple[str, str | None, str | None]
) -> None:
    for each in (error, copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert text in str(each)
        assert (each.resource_type, each.resource_name, each.operation) == resource


@pytest.mark.parametrize("error", [broker_error(3, topic="t"), RequestTimeoutError("late", api="Fetch")], ids=str)
def test_copies_say_the_same(error: KafkaError) -> None:
    assert str(copy.copy(error)) == str(pickle.loads(pickle.dumps(error))) == str(error)


FACTS = {"broker", "topic", "partition", "group", "path", "api", "transactional_id", "mechanism"}
NAMED_ELSEWHERE = {
    # module or folder -> why its errors need not name a broker, topic or group
    "admin/asking.py": "the cluster has no broker to name",
    "affinity.py": "the traceback shows the wrong call",
    "cluster/client.py": "the cluster has no controller to name",
    "cluster/connections.py": "ConnectionMachine adds the broker",
    "connection": "ConnectionMachine adds the broker",
    "consumer/member.py": "the group is set on the error",
    "consumer/processing.py": "the traceback shows the handler that was cancelled",
    "group/exchange.py": "ConnectionMachine adds the broker",
    "group/offsets.py": "the cluster has no broker to name",
    "producer/transactions/block.py": "the traceback shows the wrong call",
    "producer/transactions/transactor.py": "the record's batch adds topic and partition",
    "protocol": "ConnectionMachine adds broker and API",
    "records": "the consumer adds topic, partition and offset",
    "zookeeper": "the error is about the only session with ZooKeeper",
}


def is_constant(text: ast.expr) -> bool:
    if isinstance(text, ast.JoinedStr):
        return all(isinstance(part, ast.Constant) for part in text.values)
    return isinstance(text, ast.Constant)


def unnamed_errors() -> Iterator[str]:
    """The modules with an error that names no resource: its text is constant, and it has none of ``FACTS``."""
    kinds = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, KafkaError)}
    kinds -= {"KafkaError", "ConfigError", "ClosedError"}
    root = Path(errors.__file__).parents[1]
    for path in sorted(root.rglob("*.py")):
        module = path.relative_to(root).as_posix()
        if module.startswith(("broker/", "cli/", "errors/")):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            is_error = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in kinds
            if is_error and not FACTS & {each.arg for each in node.keywords} and all(map(is_constant, node.args[:1])):
                yield module


def test_each_error_names_something() -> None:
    modules = set(unnamed_errors())
    assert {each for each in modules if not each.startswith(tuple(NAMED_ELSEWHERE))} == set()
    assert [each for each in NAMED_ELSEWHERE if not any(module.startswith(each) for module in modules)] == []
