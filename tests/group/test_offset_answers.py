"""Commits and look-ups of offsets with answers that are invalid, incomplete, or always errors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from pykafka08.backoff import Backoff
from pykafka08.cluster.metadata import Broker
from pykafka08.config import ClientConfig, parse_bootstrap_servers
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import AuthorizationError, BrokerError, KafkaError, RemoteProtocolError, RequestTimeoutError
from pykafka08.group.machine import GroupMachine
from pykafka08.group.offsets import GroupOffsets
from pykafka08.group.requests import OffsetAndMetadata
from pykafka08.group.settings import GroupConfig
from pykafka08.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from pykafka08.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from pykafka08.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from pykafka08.protocol.versions import BrokerVersions
from pykafka08.records.record import TopicPartition
from tests.virtual_loop import VirtualLoop

TP, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)
BROKER = "kafka-7:9092 (id 7)"
FOUND = FindCoordinatorResponse(
    coordinators=[Coordinator(key="g", node_id=7, host="kafka-7", port=9092, error_code=0, error_message=None)]
)
VERSIONS = BrokerVersions.of_release("3.9")


def committed(*codes: int) -> OffsetCommitResponse:
    partitions = [OffsetCommitResponsePartition(partition_index=i, error_code=code) for i, code in enumerate(codes)]
    return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="t", partitions=partitions)])


def fetched(
    *offsets: int, code: int = 0, group_code: int = 0, epoch: int = -1, group_id: str = "g"
) -> OffsetFetchResponse:
    partitions = [
        OffsetFetchResponsePartitions(
            partition_index=i, committed_offset=offset, committed_leader_epoch=epoch, metadata="", error_code=code
        )
        for i, offset in enumerate(offsets)
    ]
    topics = [OffsetFetchResponseTopics(name="t", partitions=partitions)] if offsets else []
    group = OffsetFetchResponseGroup(group_id=group_id, topics=topics, error_code=group_code)
    return OffsetFetchResponse(groups=[group])


class FakeClient:
    """A client that always returns the same answer for each API."""

    def __init__(self, answers: dict[type[Any], Any]) -> None:
        self._answers = {FindCoordinatorRequest: FOUND, **answers}
        self.config = ClientConfig(bootstrap_servers=parse_bootstrap_servers("kafka-7:9092"))
        brokers = {7: Broker(7, "kafka-7", 9092)}
        self.metadata = SimpleNamespace(brokers=brokers, topic_id=lambda _: None, generation=1)
        self.tasks = SimpleNamespace(check=lambda: None)
        self.requests = 0

    def _answer(self, call: Any) -> Any:
        self.requests += 1
        request = call(VERSIONS)
        answer = next(answer for kind, answer in self._answers.items() if isinstance(request, kind))
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def request(self, _: int, call: Any, **__: Any) -> Any:
        return self._answer(call)

    async def ask_any(self, call: Any, **_: Any) -> tuple[int, Any]:
        return 7, self._answer(call)

    def invalidate(self, _: int) -> None: ...


def outcome(client: FakeClient, use: Callable[[GroupOffsets], Awaitable[Any]]) -> Any:
    config = GroupConfig(group_id="g")
    machine = GroupMachine(config, Backoff(0.1, 1.0, lambda: 0.5))
    offsets = GroupOffsets(client, config, machine, lambda: None)  # type: ignore[arg-type]

    async def run() -> Any:
        try:
            return await use(offsets)
        except KafkaError as error:
            return error

    loop = VirtualLoop()
    try:
        return loop.run_until_complete(run())
    finally:
        loop.close()


async def commit(offsets: GroupOffsets) -> Any:
    return await offsets.commit({TP: OffsetAndMetadata(5), OTHER: OffsetAndMetadata(5)}, is_member=False, timeout=60)


async def look_up(offsets: GroupOffsets) -> Any:
    return await offsets.committed([TP, OTHER], timeout=60)


GARBLED = RemoteProtocolError("the answer cannot be decoded", broker=BROKER, api="OffsetFetch")


@pytest.mark.parametrize(
    ("use", "answers", "match"),
    [
        (commit, {OffsetCommitRequest: GARBLED}, "cannot be decoded"),
        (look_up, {OffsetFetchRequest: GARBLED}, "cannot be decoded"),
        (look_up, {FindCoordinatorRequest: GARBLED}, "cannot be decoded"),
        (commit, {OffsetCommitRequest: committed(0)}, "leaves the partition out"),
        (look_up, {OffsetFetchRequest: fetched(4)}, "leaves the partition out"),
        (look_up, {OffsetFetchRequest: fetched()}, "leaves the partition out"),
        (look_up, {OffsetFetchRequest: fetched(4, -2)}, "committed offset is -2"),
        (look_up, {OffsetFetchRequest: fetched(4, 5, epoch=-7)}, "leader epoch of the committed offset is -7"),
        (look_up, {FindCoordinatorRequest: FindCoordinatorResponse(coordinators=[])}, "leaves the group out"),
        (
            look_up,
            {
                FindCoordinatorRequest: FindCoordinatorResponse(
                    coordinators=[Coordinator(key="g", node_id=-1, host="", port=-1, error_code=0, error_message=None)]
                )
            },
            "coordinator is broker -1",
        ),
    ],
)
def test_an_invalid_answer_is_the_error_at_the_deadline(
    use: Callable[[GroupOffsets], Awaitable[Any]], answers: dict[type[Any], Any], match: str
) -> None:
    """It is neither a time-out nor UNKNOWN_SERVER_ERROR, which no broker sent."""
    client = FakeClient(answers)
    error = outcome(client, use)
    assert isinstance(error, RemoteProtocolError)
    assert match in error.message
    assert (error.group, error.broker) == ("g", BROKER)
    assert "UNKNOWN_SERVER_ERROR" not in str(error)
    assert client.requests < 200, "pauses have grown"


@pytest.mark.parametrize(
    ("use", "answers"),
    [
        (commit, {OffsetCommitRequest: committed(14, 14)}),
        (look_up, {OffsetFetchRequest: fetched(-1, -1, code=14)}),
        (look_up, {OffsetFetchRequest: fetched(group_code=14)}),
    ],
)
def test_repeated_error_answers_are_not_reported_as_silence(
    use: Callable[[GroupOffsets], Awaitable[Any]], answers: dict[type[Any], Any]
) -> None:
    error = outcome(FakeClient(answers), use)
    assert isinstance(error, RequestTimeoutError)
    assert "did not answer" not in str(error)
    assert "COORDINATOR_LOAD_IN_PROGRESS (14)" in str(error)
    assert "group 'g'" in str(error)
    assert BROKER in str(error)
    assert isinstance(error.__cause__, BrokerError)


@pytest.mark.parametrize(
    ("use", "answers"),
    [
        (commit, {OffsetCommitRequest: committed(30, 30)}),
        (look_up, {OffsetFetchRequest: fetched(-1, -1, code=30)}),
        (look_up, {OffsetFetchRequest: fetched(group_code=30)}),
        (
            look_up,
            {
                FindCoordinatorRequest: FindCoordinatorResponse(
                    coordinators=[Coordinator(key="g", node_id=-1, host="", port=-1, error_code=30, error_message="no")]
                )
            },
        ),
    ],
)
def test_errors_of_group_requests_name_broker_and_group(
    use: Callable[[GroupOffsets], Awaitable[Any]], answers: dict[type[Any], Any]
) -> None:
    error = outcome(FakeClient(answers), use)
    assert isinstance(error, AuthorizationError)
    assert error.code is ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert (error.group, error.broker) == ("g", BROKER)
    assert "group 'g'" in str(error)


def test_a_silent_coordinator_is_reported_as_silent() -> None:
    error = outcome(FakeClient({OffsetCommitRequest: RequestTimeoutError("late", broker=BROKER)}), commit)
    assert "did not answer in time" in str(error)
    assert "group 'g'" in str(error)
