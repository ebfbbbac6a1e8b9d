"""The reason why a topic cannot be created: the request to the controller, and the answers that count."""

from __future__ import annotations

import pytest

from pykafka08.cluster.topic_creation import creation_check, creation_refusal
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import UnsupportedVersionError
from pykafka08.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from pykafka08.protocol.versions import BrokerVersions


def test_the_controller_is_asked_to_change_nothing_with_the_brokers_defaults() -> None:
    request = creation_check("a_b", 5.0)(BrokerVersions.of_release("4.3"))
    assert request.validate_only
    (topic,) = request.topics
    assert (topic.name, topic.num_partitions, topic.replication_factor) == ("a_b", -1, -1)


def test_old_brokers_are_not_asked() -> None:
    with pytest.raises(UnsupportedVersionError):
        creation_check("a_b", 5.0)(BrokerVersions.of_release("1.1"))


@pytest.mark.parametrize("code", list(ErrorCode), ids=lambda code: code.name)
def test_only_errors_of_the_topic_itself_count(code: ErrorCode) -> None:
    result = CreatableTopicResult(name="a_b", error_code=code, error_message="the reason")
    error = creation_refusal("a_b", CreateTopicsResponse(topics=[result]), "h:9092 (id 1)")
    if code.name in ("INVALID_TOPIC_EXCEPTION", "POLICY_VIOLATION", "INVALID_CONFIG", "INVALID_PARTITIONS"):
        assert error is not None
        assert "the reason" in str(error)
        assert (error.broker, error.api, error.topic) == ("h:9092 (id 1)", "CreateTopics", "a_b")
    else:
        assert error is None


def test_other_topics_do_not_count() -> None:
    result = CreatableTopicResult(name="other", error_code=ErrorCode.POLICY_VIOLATION)
    assert creation_refusal("a_b", CreateTopicsResponse(topics=[result]), None) is None
