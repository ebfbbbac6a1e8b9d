"""The errors that records end with: which broker, topic and partition, and why."""

from __future__ import annotations

from copy import copy

from pykafka08.cluster.metadata import Snapshot
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import (
    BrokerError,
    DeliveryTimeoutError,
    KafkaError,
    RecordTooLargeError,
    RemoteProtocolError,
    SecurityError,
    broker_error,
)
from pykafka08.errors.deadline import at_deadline
from pykafka08.producer.batch import Batch
from pykafka08.producer.queues import PartitionQueue, QueueState, TopicQueues

__all__ = [
    "broker_name",
    "expired",
    "in_doubt",
    "is_lasting",
    "left_out",
    "no_such_partition",
    "invalid_acknowledgement",
    "placed",
    "possibly_written",
    "produce_error",
    "refused_as_too_large",
]


IN_DOUBT = "the records may or may not be in the log"


def broker_name(snapshot: Snapshot, node_id: int) -> str:
    broker = snapshot.brokers.get(node_id)
    return broker.name if broker is not None else f"id {node_id}"


def produce_error(
    snapshot: Snapshot,
    node_id: int,
    batch: Batch,
    code: int,
    message: str | None,
    transactional_id: str | None = None,
) -> BrokerError:
    """The broker answered with ``code`` for the batch."""
    return broker_error(
        code,
        message,
        broker=broker_name(snapshot, node_id),
        api="Produce",
        topic=batch.topic,
        partition=batch.partition,
        transactional_id=transactional_id,
    )


def left_out(snapshot: Snapshot, node_id: int, batch: Batch) -> KafkaError:
    """The broker's answer does not mention the partition."""
    return RemoteProtocolError(
        "the broker's answer leaves the partition out",
        broker=broker_name(snapshot, node_id),
        api="Produce",
        topic=batch.topic,
        partition=batch.partition,
    )


def invalid_acknowledgement(snapshot: Snapshot, node_id: int, batch: Batch, said: str) -> KafkaError:
    """The error of an acknowledgement with impossible values."""
    return RemoteProtocolError(
        f"the broker acknowledges records with {said}",
        broker=broker_name(snapshot, node_id),
        api="Produce",
        topic=batch.topic,
        partition=batch.partition,
    )


def no_such_partition(topic: TopicQueues, partition: int) -> KafkaError:
    """The topic is known, and has no such partition."""
    return broker_error(
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        f"topic {topic.name!r} has {len(topic.partitions)} partitions, and no partition {partition}",
        topic=topic.name,
        partition=partition,
    )


def placed(error: KafkaError, batch: Batch) -> KafkaError:
    """What a whole request ended with, as the error of one of its batches."""
    if error.topic is not None or isinstance(error, BrokerError):
        return error
    own = copy(error)
    own.topic, own.partition = batch.topic, batch.partition if batch.partition >= 0 else None
    own.__cause__ = error.__cause__
    return own


def in_doubt(error: KafkaError) -> KafkaError:
    """The error of records that may be in the log all the same, and says so."""
    own = copy(error)
    own.may_be_written = True
    if not isinstance(error, DeliveryTimeoutError) and IN_DOUBT not in error.message:
        own.args = (f"{error.message}; {IN_DOUBT}",)
    own.__cause__ = error.__cause__
    return own


def refused_as_too_large(batch: Batch, error: KafkaError) -> KafkaError:
    """The broker refused a batch of one record for its size."""
    refusal = RecordTooLargeError(
        f"the broker refused a record of about {batch.record_bytes(0)} bytes: {error.message}",
        broker=error.broker,
        api=error.api,
        topic=batch.topic,
        partition=batch.partition,
    )
    refusal.__cause__ = error
    return refusal


def possibly_written(batch: Batch) -> KafkaError:
    """An attempt had no clear answer, and by its numbers the broker does not know the batch any more."""
    last = batch.last_error
    error = DeliveryTimeoutError(
        f"the broker knows the batch's numbers no more; {IN_DOUBT}; last: "
        + (last.message if last is not None else "no answer"),
        topic=batch.topic,
        partition=batch.partition,
        broker=last.broker if last is not None else None,
        api=last.api if last is not None else None,
    )
    error.may_be_written = True
    error.__cause__ = last
    return error


def expired(
    snapshot: Snapshot,
    batch: Batch,
    topic: TopicQueues,
    queue: PartitionQueue | None,
    no_identity: KafkaError | None = None,
    refusal: SecurityError | None = None,
) -> KafkaError:
    """The batch's deadline has passed; ``queue`` is None if it waited for metadata.

    ``no_identity`` is why there is no producer id; ``refusal`` is why the batch's broker refuses the producer.
    """
    seconds = batch.deadline - batch.created
    leader = queue.leader if queue is not None else None
    if leader is None and topic.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        # Kafka 0.10.1 to 0.11 say the same of a topic that the user may not DESCRIBE
        text = f"the cluster had no such topic for {seconds:g} s, or the user may not DESCRIBE it"
        return broker_error(topic.error, text, api="Metadata", topic=topic.name)
    if leader is None and topic.error:
        code = ErrorCode.of(topic.error)
        why = f"metadata says {code.name if isinstance(code, ErrorCode) else code} of the topic"
    elif queue is None:
        why = "no broker has told the topic's partitions"
    elif leader is None:
        why = "no leader of the partition is known"
    elif batch in queue.in_flight:
        why = f"the broker has not answered; {IN_DOUBT}"
    elif queue.state is QueueState.HELD:
        why = "no broker has given a producer id, or taken the partition into the transaction"
        if no_identity is not None:
            why += f"; last: {no_identity.message}"
    elif batch.attempts:
        why = f"{batch.attempts} attempts failed"
        if batch.is_in_doubt:
            why += f"; {IN_DOUBT}"
    else:
        why = "the broker was busy with earlier requests"
    broker = broker_name(snapshot, leader[0]) if leader is not None else None
    last = batch.last_error
    if last is not None:
        why += f"; last: {last.message}"
        if last.broker not in (None, broker):
            why += f" (broker {last.broker})"
    error = DeliveryTimeoutError(
        f"not acknowledged within {seconds:g} s: {why}",
        topic=batch.topic,
        partition=batch.partition if batch.partition >= 0 else None,
        broker=broker,
        api=last.api if last is not None else None,
    )
    error.__cause__ = last or (no_identity if queue is not None and queue.state is QueueState.HELD else None)
    return at_deadline(error, refusal)


def is_lasting(code: int) -> bool:
    """It is an error of a topic's metadata that asking again would not mend."""
    known: object = ErrorCode.of(code)
    return code != ErrorCode.NONE and not (isinstance(known, ErrorCode) and known.is_retriable)
