"""Produce requests out of batches in every version, and outcomes out of the answers."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka08.cluster.metadata import Snapshot, Topic
from pykafka08.errors import DeliveryTimeoutError, KafkaError, RequestTimeoutError, UnsupportedVersionError
from pykafka08.producer.batch import BATCH_OVERHEAD, RECORD_OVERHEAD, Batch, headers_size
from pykafka08.producer.reactions import Outcome
from pykafka08.producer.request import Encoding, build_request, magic_of, read_response
from pykafka08.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from pykafka08.protocol.schema import VersionRange
from pykafka08.protocol.versions import BrokerVersions
from pykafka08.records.compression import Codec
from pykafka08.records.reader import read_batches

IDS = {"t": UUID(int=1), "u": UUID(int=2)}
METADATA = Snapshot(1, topics={name: Topic(name, topic_id, 0, False, {}) for name, topic_id in IDS.items()})
PLAIN = Encoding(acks=-1, timeout_ms=1000, codec=Codec.NONE)


def broker(version: int, release: str = "test") -> BrokerVersions:
    return BrokerVersions({ProduceRequest.api_key: VersionRange(version, version)}, release)


def make_batch(topic: str = "t", partition: int = 0, values: list[bytes | None] | None = None) -> Batch:
    batch = Batch(topic, partition, 0.0, 120.0)
    for value in values if values is not None else [b"v"]:
        batch.append(value, None, (), 1_500_000_000_000, RECORD_OVERHEAD + len(value or b""))
    return batch


class Unnumbered:
    """The numbering of a producer without idempotence."""

    def is_numbered(self, batch: Batch) -> bool:
        return False

    def number(self, batch: Batch) -> None:
        raise AssertionError("nothing is numbered here")

    def take_back(self, batch: Batch) -> None:
        raise AssertionError("nothing is numbered here")


def never(batch: Batch, indices: list[int], error: KafkaError) -> Batch | None:
    raise AssertionError("nothing is refused here")


@pytest.mark.parametrize("version", list(range(14)))
def test_a_request_of_every_version_is_read_back(version: int) -> None:
    batches = [make_batch("t", 0, [b"a", None]), make_batch("u", 3, [b"b"]), make_batch("t", 2, [b"c"])]
    built = build_request(batches, broker(version), METADATA, PLAIN, Unnumbered(), never)
    read = ProduceRequest.decode(built.encode(version), version)
    assert (read.acks, read.timeout_ms) == (-1, 1000)
    found = {}
    for topic in read.topic_data:
        name = topic.name if version < 13 else next(name for name, each in IDS.items() if each == topic.topic_id)
        for data in topic.partition_data:
            assert data.records is not None
            for batch in read_batches(data.records, topic=name, partition=data.index, fetch_offset=0):
                assert batch.magic == magic_of(version)
                found[name, data.index] = list(batch.values())
                assert {record.timestamp_ms for record in batch} == {1_500_000_000_000 if batch.magic else -1}
    assert found == {("t", 0): [b"a", None], ("t", 2): [b"c"], ("u", 3): [b"b"]}


@pytest.mark.parametrize("version", [0, 2, 13])
def test_a_batch_that_has_ended_is_left_out_of_its_request(version: int) -> None:
    batches = [make_batch("t", 0), make_batch("t", 1), make_batch("u", 0)]
    for batch in (batches[0], batches[2]):
        batch.fail(DeliveryTimeoutError("too late"))
    built = build_request(batches, broker(version), METADATA, PLAIN, Unnumbered(), never)
    assert [[data.index for data in topic.partition_data] for topic in built.topic_data] == [[1]]
    answer = ProduceResponse(
        responses=[
            TopicProduceResponse(
                name="t", topic_id=IDS["t"], partition_responses=[PartitionProduceResponse(index=1, base_offset=7)]
            )
        ]
    )
    assert read_response(batches, built, answer, PLAIN) == [None, Outcome(0, 7, -1, None, []), None]


def test_no_request_is_made_of_batches_that_have_all_ended() -> None:
    batch = make_batch()
    batch.fail(DeliveryTimeoutError("too late"))
    with pytest.raises(RequestTimeoutError, match="ended before"):
        build_request([batch], broker(13), METADATA, PLAIN, Unnumbered(), never)


def test_a_batch_is_encoded_once_for_each_format() -> None:
    batch = make_batch()
    first = (
        build_request([batch], broker(9), METADATA, PLAIN, Unnumbered(), never).topic_data[0].partition_data[0].records
    )
    again = (
        build_request([batch], broker(13), METADATA, PLAIN, Unnumbered(), never).topic_data[0].partition_data[0].records
    )
    older = (
        build_request([batch], broker(2), METADATA, PLAIN, Unnumbered(), never).topic_data[0].partition_data[0].records
    )
    assert again is first
    assert older is not first
    assert batch.magic == 1


RECORDS = st.lists(
    st.tuples(
        st.one_of(st.none(), st.binary(max_size=300)),
        st.one_of(st.none(), st.binary(max_size=20)),
        st.lists(st.tuples(st.text(max_size=5), st.one_of(st.none(), st.binary(max_size=9))), max_size=2).map(tuple),
        st.integers(0, 2**63 - 1),
    ),
    min_size=1,
    max_size=40,
)


@pytest.mark.parametrize("version", [0, 2, 3, 13])
@given(records=RECORDS)
def test_the_size_of_a_batch_bounds_its_bytes_in_every_format(
    version: int, records: list[tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...], int]]
) -> None:
    batch = Batch("t", 0, 0.0, 120.0)
    for value, key, headers, timestamp_ms in records:
        carried = headers if version >= 3 else ()
        size = RECORD_OVERHEAD + len(value or b"") + len(key or b"") + headers_size(carried)
        batch.append(value, key, carried, timestamp_ms, size)
        assert batch.record_bytes(len(batch) - 1) == size
    request = build_request([batch], broker(version), METADATA, PLAIN, Unnumbered(), never)
    data = request.topic_data[0].partition_data[0].records
    assert data is not None
    assert len(data) <= batch.size
    assert batch.size == BATCH_OVERHEAD + sum(batch.record_bytes(i) for i in range(len(batch)))


def test_headers_are_refused_by_old_formats_and_the_rest_is_sent() -> None:
    batch = make_batch(values=[b"a"])
    batch.append(b"b", None, (("h", b""),), 5, 50)
    refused = []

    def refuse(given: Batch, indices: list[int], error: KafkaError) -> Batch | None:
        refused.append((given, indices, error))
        return make_batch(values=[b"a"])

    request = build_request([batch], broker(2, "0.10.2"), METADATA, PLAIN, Unnumbered(), refuse)
    assert len(request.topic_data[0].partition_data) == 1
    ((given, indices, error),) = refused
    assert (given, indices) == (batch, [1])
    assert isinstance(error, UnsupportedVersionError)
    assert "0.10.2" in str(error)
    with pytest.raises(UnsupportedVersionError, match="headers"):
        build_request([batch], broker(2), METADATA, PLAIN, Unnumbered(), lambda *_: None)


@pytest.mark.parametrize(
    ("codec", "version", "release", "needed"),
    [(Codec.ZSTD, 6, "2.0", "2.1"), (Codec.LZ4, 0, "0.8.1", "0.8.2"), (Codec.LZ4, 0, "0.8.0", "0.8.2")],
)
def test_codecs_that_a_release_lacks(codec: Codec, version: int, release: str, needed: str) -> None:
    encoding = Encoding(acks=-1, timeout_ms=1, codec=codec)
    with pytest.raises(UnsupportedVersionError, match=f"{codec.label}.*{needed}.*{release}"):
        build_request([make_batch()], broker(version, release), METADATA, encoding, Unnumbered(), never)


@pytest.mark.parametrize("codec", list(Codec))
def test_codecs_that_the_release_has(codec: Codec) -> None:
    encoding = Encoding(acks=-1, timeout_ms=1, codec=codec)
    request = build_request([make_batch()], broker(7), METADATA, encoding, Unnumbered(), never)
    data = request.topic_data[0].partition_data[0].records
    assert data is not None
    (batch,) = read_batches(b"".join(data), topic="t", partition=0, fetch_offset=0)
    assert batch.values() == [b"v"]


@pytest.mark.parametrize("version", [0, 2, 8, 12, 13])
def test_outcomes_stand_in_the_order_of_the_batches(version: int) -> None:
    batches = [make_batch("u", 3), make_batch("t", 0), make_batch("t", 1)]
    request = build_request(batches, broker(version), METADATA, PLAIN, Unnumbered(), never)
    answer = ProduceResponse(
        responses=[
            TopicProduceResponse(
                name="t",
                topic_id=IDS["t"],
                partition_responses=[PartitionProduceResponse(index=0, base_offset=7, log_append_time_ms=9)],
            ),
            TopicProduceResponse(
                name="u",
                topic_id=IDS["u"],
                partition_responses=[
                    PartitionProduceResponse(
                        index=3,
                        error_code=87,
                        base_offset=-1,
                        record_errors=[BatchIndexAndErrorMessage(batch_index=0, batch_index_error_message="no key")],
                        error_message="refused",
                    )
                ],
            ),
        ]
    )
    if version < 8:
        answer.responses[1].partition_responses[0].record_errors.clear()
    read = ProduceResponse.decode(answer.encode(version), version)
    detail = ("refused", [(0, "no key")]) if version >= 8 else (None, [])
    assert read_response(batches, request, read, PLAIN) == [
        Outcome(87, -1, -1, *detail),
        Outcome(0, 7, 9 if version >= 2 else -1, None, []),
        None,
    ]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("base_offset", -1),
        ("base_offset", -(1 << 63)),
        ("base_offset", (1 << 63) - 1),
        ("log_append_time_ms", -2),
        ("log_start_offset", -2),
    ],
)
def test_an_acknowledgement_with_impossible_values_is_invalid(field: str, value: int) -> None:
    batch = make_batch()
    request = build_request([batch], broker(9, "2.8"), METADATA, PLAIN, Unnumbered(), never)
    fields = {"base_offset": 5, "log_append_time_ms": -1, "log_start_offset": 0, field: value}
    said = PartitionProduceResponse(index=0, error_code=0, **fields)
    answer = ProduceResponse(responses=[TopicProduceResponse(name="t", partition_responses=[said])])
    (outcome,) = read_response([batch], request, answer, PLAIN)
    assert outcome is not None
    assert str(value) in (outcome.invalid or "")
    said.error_code = 6  # with an error code the values are ignored
    (outcome,) = read_response([batch], request, answer, PLAIN)
    assert outcome is not None
    assert outcome.invalid is None


@pytest.mark.parametrize(("codec", "is_explained"), [(Codec.LZ4, True), (Codec.GZIP, False)])
def test_what_0_8_1_says_of_lz4_is_explained(codec: Codec, is_explained: bool) -> None:
    batch, encoding = make_batch(), Encoding(acks=-1, timeout_ms=1, codec=codec)
    request = build_request([batch], broker(0, "0.8"), METADATA, encoding, Unnumbered(), never)
    refusal = PartitionProduceResponse(index=0, error_code=-1, base_offset=-1)
    answer = ProduceResponse(responses=[TopicProduceResponse(name="t", partition_responses=[refusal])])
    (outcome,) = read_response([batch], request, answer, encoding)
    assert outcome is not None
    assert outcome.code == -1
    assert ("0.8.2" in (outcome.message or "")) is is_explained
