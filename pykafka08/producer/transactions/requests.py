"""Requests of a transaction in the version that a broker serves, and what its answers say.  Pure.

Before the cluster has agreed on KIP-890 a client keeps to the versions before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from pykafka08.errors import RemoteProtocolError, UnsupportedVersionError
from pykafka08.producer.sequences import NO_IDENTITY, Identity
from pykafka08.producer.transactions.actions import (
    AddOffsets,
    AddPartitions,
    Answer,
    Call,
    CommitOffsets,
    EndTransaction,
    FindCoordinator,
    InitProducer,
)
from pykafka08.producer.transactions.judgement import named
from pykafka08.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from pykafka08.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from pykafka08.protocol.messages.end_txn import EndTxnRequest
from pykafka08.protocol.messages.find_coordinator import FindCoordinatorRequest
from pykafka08.protocol.messages.init_producer_id import InitProducerIdRequest
from pykafka08.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from pykafka08.protocol.schema import Request, VersionRange
from pykafka08.protocol.versions import BrokerVersions
from pykafka08.records.record import TopicPartition

__all__ = ["TransactionRequests", "checks_identity"]

MANY_KEYS_VERSION = 4
IDENTITY_VERSION = 3
MEMBER_VERSION = 3
T = TypeVar("T")


def _up_to(request: type[Any], version: int) -> VersionRange:
    return VersionRange(request.versions.min, version)


class AddPartitionsOfClient(AddPartitionsToTxnRequest):
    """Later versions are for brokers."""

    __slots__ = ()
    versions = _up_to(AddPartitionsToTxnRequest, 3)


class TxnOffsetCommitV1(TxnOffsetCommitRequest):
    """The group is a part of the transaction before."""

    __slots__ = ()
    versions = _up_to(TxnOffsetCommitRequest, 4)


class EndTxnV1(EndTxnRequest):
    """The epoch stays."""

    __slots__ = ()
    versions = _up_to(EndTxnRequest, 4)


class InitProducerIdStable(InitProducerIdRequest):
    """Version 6 is for two-phase commits."""

    __slots__ = ()
    versions = _up_to(InitProducerIdRequest, 5)


def checks_identity(versions: BrokerVersions) -> bool:
    """The coordinator gives a new epoch only to the identity that has the last one (KIP-360)."""
    return versions.serves(InitProducerIdRequest) and versions.pick(InitProducerIdStable) >= IDENTITY_VERSION


class TransactionRequests:
    """Of one transactional id; ``timeout_ms`` is when the coordinator aborts a transaction by itself."""

    def __init__(self, transactional_id: str, timeout_ms: int) -> None:
        self._id = transactional_id
        self._timeout_ms = timeout_ms

    def make(self, call: Call) -> Callable[[BrokerVersions], Request[Any]]:
        """The request, once the broker's release is known.  UnsupportedVersionError below 0.11."""

        def make(versions: BrokerVersions) -> Request[Any]:
            if not versions.serves(InitProducerIdRequest):
                raise UnsupportedVersionError(
                    f"transactions need Kafka 0.11; the broker is {versions.release_guess}",
                    api=InitProducerIdRequest.name,
                )
            return _MAKERS[type(call)](self, call, versions)

        return make

    def find_coordinator(self, call: FindCoordinator, versions: BrokerVersions) -> FindCoordinatorRequest:
        if versions.pick(FindCoordinatorRequest) >= MANY_KEYS_VERSION:
            return FindCoordinatorRequest(key_type=call.key_type, coordinator_keys=[call.key])
        return FindCoordinatorRequest(key_type=call.key_type, key=call.key)

    def init_producer(self, call: InitProducer, versions: BrokerVersions) -> InitProducerIdRequest:
        request = InitProducerIdStable(transactional_id=self._id, transaction_timeout_ms=self._timeout_ms)
        if call.expected is not None and versions.pick(InitProducerIdStable) >= IDENTITY_VERSION:
            request.producer_id, request.producer_epoch = call.expected
        return request

    def add_partitions(self, call: AddPartitions, versions: BrokerVersions) -> AddPartitionsToTxnRequest:
        topics = [
            AddPartitionsToTxnTopic(name=topic, partitions=partitions)
            for topic, partitions in _by_topic(call.partitions).items()
        ]
        return AddPartitionsOfClient(
            v3_and_below_transactional_id=self._id,
            v3_and_below_producer_id=call.identity.producer_id,
            v3_and_below_producer_epoch=call.identity.epoch,
            v3_and_below_topics=topics,
        )

    def add_offsets(self, call: AddOffsets, versions: BrokerVersions) -> AddOffsetsToTxnRequest:
        return AddOffsetsToTxnRequest(
            transactional_id=self._id,
            producer_id=call.identity.producer_id,
            producer_epoch=call.identity.epoch,
            group_id=call.group_id,
        )

    def commit_offsets(self, call: CommitOffsets, versions: BrokerVersions) -> TxnOffsetCommitRequest:
        kind = TxnOffsetCommitRequest if call.is_v2 else TxnOffsetCommitV1
        member, offsets = call.order.member, call.order.left
        request = kind(
            transactional_id=self._id,
            group_id=member.group_id,
            producer_id=call.identity.producer_id,
            producer_epoch=call.identity.epoch,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        TxnOffsetCommitRequestPartition(
                            partition_index=partition,
                            committed_offset=offsets[TopicPartition(topic, partition)].offset,
                            committed_leader_epoch=offsets[TopicPartition(topic, partition)].leader_epoch,
                            committed_metadata=offsets[TopicPartition(topic, partition)].metadata,
                        )
                        for partition in partitions
                    ],
                )
                for topic, partitions in _by_topic(offsets).items()
            ],
        )
        if versions.pick(kind) < MEMBER_VERSION:
            if member.generation >= 0:
                raise _without_members(versions)
        else:
            request.generation_id, request.member_id = member.generation, member.member_id
            request.group_instance_id = member.instance_id
        return request

    def end_transaction(self, call: EndTransaction, versions: BrokerVersions) -> EndTxnRequest:
        kind = EndTxnRequest if call.is_v2 else EndTxnV1
        return kind(
            transactional_id=self._id,
            producer_id=call.identity.producer_id,
            producer_epoch=call.identity.epoch,
            committed=call.is_commit,
        )

    def read(self, call: Call, response: Any, broker: str | None) -> Answer:
        """The broker's answer to the call; RemoteProtocolError for impossible values."""
        if isinstance(call, FindCoordinator):
            answer = self._coordinator(call, response, broker)
        elif isinstance(call, AddPartitions):
            codes = {
                TopicPartition(topic.name, each.partition_index): each.partition_error_code
                for topic in response.results_by_topic_v3_and_below
                for each in topic.results_by_partition
            }
            answer = Answer(codes=self._codes(call, call.partitions, codes, broker), broker=broker)
        elif isinstance(call, CommitOffsets):
            codes = {
                TopicPartition(topic.name, each.partition_index): each.error_code
                for topic in response.topics
                for each in topic.partitions
            }
            answer = Answer(codes=self._codes(call, call.order.left, codes, broker), broker=broker)
        else:
            identity = None
            if isinstance(call, (InitProducer, EndTransaction)) and not response.error_code:
                identity = self._identity(call, response, broker)
            answer = Answer(response.error_code, identity=identity, broker=broker)
        return answer

    def _coordinator(self, call: FindCoordinator, response: Any, broker: str | None) -> Answer:
        found = next((each for each in response.coordinators if each.key == call.key), None)
        if found is None:
            if response.coordinators:
                raise self._invalid(call, "names the coordinators of other keys", broker)
            found = response
        if not found.error_code and (found.node_id < 0 or not found.host):
            raise self._invalid(call, f"names {found.host!r:.300}, id {found.node_id}, as the coordinator", broker)
        return Answer(found.error_code, message=found.error_message, node_id=found.node_id, broker=broker)

    def _codes(
        self,
        call: Call,
        asked: Iterable[TopicPartition],
        codes: Mapping[TopicPartition, int],
        broker: str | None,
    ) -> dict[TopicPartition, int]:
        """The error codes of the requested partitions.  One may be missing only if another has an error."""
        known = {partition: codes[partition] for partition in asked if partition in codes}
        missing = next((partition for partition in asked if partition not in codes), None)
        if missing is not None and not any(known.values()):
            raise self._invalid(call, "leaves the partition out", broker, missing)
        return known

    def _identity(self, call: InitProducer | EndTransaction, response: Any, broker: str | None) -> Identity | None:
        """The producer id and epoch in the answer; None for an EndTxn answer without them."""
        identity = Identity(response.producer_id, response.producer_epoch)
        if isinstance(call, InitProducer):
            before = call.expected
        else:
            if not call.is_v2 or identity == NO_IDENTITY:
                return None
            before = call.identity
        is_older = before is not None and identity.producer_id == before.producer_id and identity.epoch <= before.epoch
        if not identity.is_valid or is_older:
            after = f" after id {before.producer_id}, epoch {before.epoch}" if before is not None else ""
            said = f"gives producer id {identity.producer_id}, epoch {identity.epoch}{after}"
            raise self._invalid(call, said, broker)
        return identity

    def _invalid(
        self, call: Call, said: str, broker: str | None, partition: TopicPartition | None = None
    ) -> RemoteProtocolError:
        return RemoteProtocolError(
            f"the broker's answer {said} ({named(call, self._id)})",
            broker=broker,
            api=call.api,
            topic=partition.topic if partition is not None else None,
            partition=partition.partition if partition is not None else None,
        )


def _without_members(versions: BrokerVersions) -> UnsupportedVersionError:
    return UnsupportedVersionError(
        f"offsets of a group's member need Kafka 2.5 (KIP-447); the broker is {versions.release_guess}: a partition "
        "that goes to another member in a transaction would be processed twice; assign() partitions instead, with a "
        "transactional_id of their own, or send_offsets(mapping, group_id)",
        api=TxnOffsetCommitRequest.name,
    )


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return topics


_MAKERS: Mapping[type[Any], Callable[[TransactionRequests, Any, BrokerVersions], Request[Any]]] = {
    FindCoordinator: TransactionRequests.find_coordinator,
    InitProducer: TransactionRequests.init_producer,
    AddPartitions: TransactionRequests.add_partitions,
    AddOffsets: TransactionRequests.add_offsets,
    CommitOffsets: TransactionRequests.commit_offsets,
    EndTransaction: TransactionRequests.end_transaction,
}
