"""A Produce request out of batches, and outcomes out of its answer.  Pure.

The message format follows the version of Produce that the leader serves; a batch is encoded once for each format, at
the moment when its leader's release is known.  Sources: KIP-32 (magic 1), KIP-98 (magic 2), KIP-110 (zstd).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from pykafka08.cluster.metadata import Broker, LeaderNews, Snapshot
from pykafka08.config import ClientConfig, ProducerConfig
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import ConfigError, KafkaError, LocalProtocolError, RequestTimeoutError, UnsupportedVersionError
from pykafka08.producer.batch import Batch
from pykafka08.producer.failures import placed
from pykafka08.producer.reactions import Outcome
from pykafka08.protocol.messages.init_producer_id import InitProducerIdRequest
from pykafka08.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from pykafka08.protocol.schema import ZERO_UUID, VersionRange
from pykafka08.protocol.versions import BrokerVersions
from pykafka08.records.compression import Codec, check_level
from pykafka08.records.writer import encode_parts
from pykafka08.wire import Buffer

__all__ = [
    "Encoding",
    "Numbering",
    "ProduceV1",
    "build_request",
    "encoding_of",
    "magic_of",
    "new_leaders",
    "read_response",
]

ZSTD_SINCE_PRODUCE = 7
LARGEST_SEQUENCE = 2**31 - 1
LARGEST_OFFSET = 2**63 - 1
LARGEST_PORT = 65_535
BROKER_SHARE = 0.9
"""Part of the request time-out in which the broker waits for replicas, so that its answer comes before ours ends."""
NO_LZ4 = ("0.8.0", "0.8.1")
"""Releases before lz4; an unnamed 0.8 may be 0.8.2, which has it."""

Refuse = Callable[[Batch, list[int], KafkaError], "Batch | None"]
"""``(batch, indices of its records, why) -> what is left of the batch``."""


class Numbering(Protocol):
    """Which batches have producer id and sequence numbers; the machine is it."""

    def is_numbered(self, batch: Batch) -> bool: ...

    def number(self, batch: Batch) -> None:
        """It is written now: if it has no numbers, these are its own for good."""

    def take_back(self, batch: Batch) -> None:
        """It was not written after all: the numbers that it was given last are those of the next one."""


class ProduceV1(ProduceRequest):
    """Adds no partition to the transaction (KIP-890)."""

    __slots__ = ()
    versions = VersionRange(ProduceRequest.versions.min, 11)


@dataclass(frozen=True, slots=True)
class Encoding:
    """The producer's settings that stand in each request."""

    acks: int
    timeout_ms: int
    codec: Codec
    level: int | None = None
    transactional_id: str | None = None


def encoding_of(client: ClientConfig, config: ProducerConfig) -> Encoding:
    """What the settings say; ConfigError for a codec or a level that there is not."""
    codec = Codec.parse(config.compression_type)
    if config.compression_level is not None:
        try:
            check_level(codec, config.compression_level)
        except ConfigError as error:
            given = f"compression_level={config.compression_level}, compression_type={codec.label!r}"
            raise ConfigError(f"{given}: {error.message}") from None
    return Encoding(
        acks=config.required_acks,
        timeout_ms=max(1, int(client.request_timeout_ms * BROKER_SHARE)),
        codec=codec,
        level=config.compression_level,
        transactional_id=config.transactional_id,
    )


def magic_of(produce_version: int) -> int:
    """The message format that goes with a version of Produce."""
    if produce_version >= 3:
        return 2
    return 1 if produce_version == 2 else 0


def build_request(
    batches: Sequence[Batch],
    versions: BrokerVersions,
    metadata: Snapshot,
    encoding: Encoding,
    numbering: Numbering,
    refuse: Refuse,
    kind: type[ProduceRequest] = ProduceRequest,
) -> ProduceRequest:
    """One request with all ``batches``, in the highest version of ``kind`` that the broker serves.

    Batches that have ended while the request waited for its connection are left out; RequestTimeoutError if all have.
    UnsupportedVersionError with the API InitProducerId if one is numbered, and the broker's release has no numbers.
    Records that its release cannot carry, or no batch with those before them, are given to ``refuse``;
    UnsupportedVersionError if that leaves none.
    """
    batches = [batch for batch in batches if not batch.is_done]
    if not batches:
        raise RequestTimeoutError("all records had ended before the request could be sent", api="Produce")
    version = versions.pick(kind)
    _check_codec(encoding.codec, version, versions)
    magic = magic_of(version)
    if magic < 2 and any(map(numbering.is_numbered, batches)):
        versions.pick(InitProducerIdRequest)
    topics: dict[str, TopicProduceData] = {}
    for batch in batches:
        if magic < 2:
            batch.unpack()
        sealed = _without_headers(batch, versions, refuse) if magic < 2 and batch.headers is not None else batch
        if sealed is None:
            continue
        data = sealed.encoded(magic)
        while data is None and sealed is not None:
            sealed, data = _numbered_and_encoded(sealed, magic, encoding, numbering, refuse)
        if sealed is None:
            continue
        topic = topics.get(sealed.topic)
        if topic is None:
            topic_id = metadata.topic_id(sealed.topic) or ZERO_UUID
            topic = topics[sealed.topic] = TopicProduceData(name=sealed.topic, topic_id=topic_id)
        # Encoders take the pieces as they are; what is decoded is always one.
        topic.partition_data.append(PartitionProduceData(index=sealed.partition, records=cast("Buffer", data)))
    if not topics:
        raise _no_headers(versions)
    return kind(
        transactional_id=encoding.transactional_id,
        acks=encoding.acks,
        timeout_ms=encoding.timeout_ms,
        topic_data=list(topics.values()),
    )


def _check_codec(codec: Codec, version: int, versions: BrokerVersions) -> None:
    since = None
    if codec is Codec.ZSTD and version < ZSTD_SINCE_PRODUCE:
        since = "2.1"
    elif codec is Codec.LZ4 and versions.release_guess in NO_LZ4:
        since = "0.8.2"
    if since is not None:
        raise UnsupportedVersionError(
            f"compression_type {codec.name.lower()!r} needs Kafka {since}; the broker is {versions.release_guess}",
            api="Produce",
        )


def _numbered_and_encoded(
    batch: Batch, magic: int, encoding: Encoding, numbering: Numbering, refuse: Refuse
) -> tuple[Batch | None, list[Buffer] | None]:
    """The batch and its bytes; without bytes what is left of it, or None, where records were refused."""
    is_first = batch.base_sequence < 0
    if numbering.is_numbered(batch):
        numbering.number(batch)
    try:
        return batch, _encode(batch, magic, encoding)
    except LocalProtocolError as error:
        if not is_first:
            raise
        if batch.base_sequence >= 0:
            numbering.take_back(batch)
        base = batch.timestamps[0]
        far = [index for index, each in enumerate(batch.timestamps) if not -(1 << 63) <= each - base < 1 << 63]
        return refuse(batch, far or list(range(len(batch))), placed(error, batch)), None


def _encode(batch: Batch, magic: int, encoding: Encoding) -> list[Buffer]:
    data = encode_parts(
        magic,
        encoding.codec,
        timestamps=batch.timestamps,
        keys=batch.keys,
        values=batch.values,
        headers=batch.headers,
        packed=batch.packed_records(),
        level=encoding.level,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence & LARGEST_SEQUENCE if batch.base_sequence > 0 else batch.base_sequence,
        is_transactional=encoding.transactional_id is not None,
    )
    batch.keep_encoded(magic, data)
    return data


def _without_headers(batch: Batch, versions: BrokerVersions, refuse: Refuse) -> Batch | None:
    assert batch.headers is not None
    indices = [index for index, headers in enumerate(batch.headers) if headers]
    return refuse(batch, indices, _no_headers(versions, batch)) if indices else batch


def _no_headers(versions: BrokerVersions, batch: Batch | None = None) -> UnsupportedVersionError:
    return UnsupportedVersionError(
        f"headers of records need Kafka 0.11; the broker is {versions.release_guess}",
        api="Produce",
        topic=batch.topic if batch is not None else None,
        partition=batch.partition if batch is not None else None,
    )


def read_response(
    batches: Sequence[Batch], request: ProduceRequest, response: ProduceResponse, encoding: Encoding
) -> list[Outcome | None]:
    """For each batch of ``request`` what the broker said of it, None if nothing."""
    names = {topic.topic_id: topic.name for topic in request.topic_data}
    answers = {
        (topic.name or names.get(topic.topic_id), answer.index): answer
        for topic in response.responses
        for answer in topic.partition_responses
    }
    return [_outcome(answers.get((batch.topic, batch.partition)), batch, encoding.codec) for batch in batches]


def new_leaders(request: ProduceRequest, response: ProduceResponse) -> tuple[list[LeaderNews], list[Broker]]:
    """What the answer says of partitions that are led elsewhere by now (v10, KIP-951), and where that is."""
    names = {topic.topic_id: topic.name for topic in request.topic_data}
    news = [
        LeaderNews(
            topic.name or names.get(topic.topic_id, ""),
            answer.index,
            answer.current_leader.leader_id,
            answer.current_leader.leader_epoch,
        )
        for topic in response.responses
        for answer in topic.partition_responses
        if answer.error_code and answer.current_leader.leader_id >= 0 and answer.current_leader.leader_epoch >= 0
    ]
    return news, [
        Broker(each.node_id, each.host, each.port, each.rack)
        for each in response.node_endpoints
        if each.node_id >= 0 and each.host and 0 < each.port <= LARGEST_PORT
    ]


def _outcome(answer: PartitionProduceResponse | None, batch: Batch, codec: Codec) -> Outcome | None:
    if answer is None:
        return None
    message = answer.error_message
    if answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR and codec is Codec.LZ4 and batch.magic == 0:
        message = "the broker met an error it has no code for; Kafka 0.8.0 and 0.8.1 have no lz4, which needs 0.8.2"
    return Outcome(
        answer.error_code,
        answer.base_offset,
        answer.log_append_time_ms,
        message,
        [(each.batch_index, each.batch_index_error_message) for each in answer.record_errors],
        answer.log_start_offset,
        _invalid(answer, batch) if answer.error_code == ErrorCode.NONE else None,
    )


def _invalid(answer: PartitionProduceResponse, batch: Batch) -> str | None:
    """The impossible value of an acknowledgement; None if it is valid."""
    if not 0 <= answer.base_offset <= LARGEST_OFFSET - len(batch):
        return f"base offset {answer.base_offset}"
    if answer.log_append_time_ms < -1:
        return f"log append time {answer.log_append_time_ms}"
    if answer.log_start_offset < -1:
        return f"log start offset {answer.log_start_offset}"
    return None
