"""Headers of requests and responses, from both sides."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka08.errors import LocalProtocolError, RemoteProtocolError
from pykafka08.protocol.headers import (
    RequestHeader,
    RequestHeads,
    decode_request_header,
    encode_request,
    encode_response,
    request_header_version,
    request_parts,
    response_header_version,
    response_parts,
    split_response,
)
from pykafka08.protocol.messages import REGISTRY, request_class
from pykafka08.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from pykafka08.protocol.messages.metadata import MetadataRequest, MetadataResponse
from pykafka08.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData


@pytest.mark.parametrize(
    ("version", "client_id", "expected"),
    [
        (1, "ab", "000300010000000700026162ffffffff"),
        (1, None, "0003000100000007ffffffffffff"),
        (9, "ab", "000300090000000700026162000001000000"),
    ],
)
def test_request_bytes(version: int, client_id: str | None, expected: str) -> None:
    assert encode_request(MetadataRequest(topics=None), version, 7, client_id).hex() == expected


@given(
    st.sampled_from(sorted(REGISTRY)),
    st.integers(-(2**31), 2**31 - 1),
    st.none() | st.text(st.characters(exclude_categories=["Cs"])),
)
def test_a_broker_reads_what_a_client_writes(key: int, correlation_id: int, client_id: str | None) -> None:
    request = request_class(key)
    for version in (request.versions.min, request.versions.max):
        frame = encode_request(request(), version, correlation_id, client_id)
        header = decode_request_header(frame)
        assert header == RequestHeader(key, version, correlation_id, client_id, header.body_offset, True)
        assert frame[header.body_offset :] == request().encode(version)
        assert request.decode(frame, version, header.body_offset) == request()


@given(st.sampled_from(sorted(REGISTRY)), st.integers(-(2**31), 2**31 - 1))
def test_a_client_reads_what_a_broker_writes(key: int, correlation_id: int) -> None:
    request = request_class(key)
    response = request.response
    for version in (response.versions.min, response.versions.max):
        frame = encode_response(response(), version, correlation_id)
        for side in (request, response):
            found, offset = split_response(side, version, frame)
            assert found == correlation_id
            assert frame[offset:] == response().encode(version)


def test_header_versions() -> None:
    assert [request_header_version(MetadataRequest, version) for version in (8, 9)] == [1, 2]
    assert [response_header_version(MetadataResponse, version) for version in (8, 9)] == [0, 1]
    assert [request_header_version(ApiVersionsRequest, version) for version in (2, 3)] == [1, 2]
    assert [response_header_version(ApiVersionsResponse, version) for version in (2, 3)] == [0, 0]


def test_api_versions_responses_never_have_a_tagged_section() -> None:
    assert encode_response(ApiVersionsResponse(), 3, 5)[:6].hex() == "000000050000"
    assert split_response(ApiVersionsRequest, 3, encode_response(ApiVersionsResponse(), 3, 5)) == (5, 4)


def test_a_version_that_is_too_new_still_gives_its_correlation_id() -> None:
    frame = bytes.fromhex("001200630000002a00016100") + b"what nobody knows"
    assert decode_request_header(frame) == RequestHeader(18, 99, 42, "a", 12, False)


def test_an_unknown_api_still_gives_its_correlation_id() -> None:
    frame = bytes.fromhex("700000010000002affff") + b"body"
    assert decode_request_header(frame) == RequestHeader(0x7000, 1, 42, None, 10, False)


def test_the_one_request_without_a_client_id() -> None:
    assert decode_request_header(bytes.fromhex("000700000000002a00000001")).body_offset == 8


def test_tags_of_headers_are_skipped() -> None:
    tags = bytes.fromhex("0200036162630500")
    body = MetadataRequest().encode(9)
    header = decode_request_header(bytes.fromhex("00030009000000010000") + tags + body)
    assert header.body_offset == 10 + len(tags)
    answer = bytes.fromhex("00000009") + tags + b"rest"
    assert split_response(MetadataResponse, 9, answer) == (9, 4 + len(tags))


@pytest.mark.parametrize(
    "frame",
    [
        "",
        "00030009000000",
        "0003000900000001",
        "000300090000000100",
        "0003000900000001000261",
        "0003000900000001fffe",
        "00030009000000010002c32800",
        "00030009000000010000",
        "0003000900000001000001",
        "0003000900000001000001000500",
        "00030009000000010000ffffffffff",
    ],
)
def test_request_headers_that_cannot_be_read(frame: str) -> None:
    with pytest.raises(RemoteProtocolError):
        decode_request_header(bytes.fromhex(frame))


@pytest.mark.parametrize("frame", ["", "000000", "00000001", "0000000101", "0000000101007f00"])
def test_response_headers_that_cannot_be_read(frame: str) -> None:
    with pytest.raises(RemoteProtocolError):
        split_response(MetadataResponse, 9, bytes.fromhex(frame))


def test_a_client_id_that_is_too_long() -> None:
    with pytest.raises(LocalProtocolError, match="32768 bytes"):
        encode_request(MetadataRequest(), 1, 1, "x" * 32768)


def test_parts_are_the_whole_without_copies() -> None:
    records = b"r" * 1000
    request = ProduceRequest(
        topic_data=[TopicProduceData(name="t", partition_data=[PartitionProduceData(records=records)])]
    )
    parts = request_parts(request, 9, 1, "c")
    assert any(part is records for part in parts)
    assert b"".join(parts) == encode_request(request, 9, 1, "c")
    assert b"".join(response_parts(MetadataResponse(), 9, 1)) == encode_response(MetadataResponse(), 9, 1)


@pytest.mark.parametrize("client_id", [None, "", "a-client", "ünïcode"])
def test_kept_heads_make_the_same_frames(client_id: str | None) -> None:
    heads = RequestHeads(client_id)
    for correlation_id in (0, 1, 2**31 - 1):
        for version in range(MetadataRequest.versions.min, MetadataRequest.versions.max + 1):
            frame = b"".join(heads.frame(MetadataRequest(), version, correlation_id))
            body = encode_request(MetadataRequest(), version, correlation_id, client_id)
            assert frame == len(body).to_bytes(4, "big") + body


def test_a_client_id_that_does_not_fit_is_told_with_each_request() -> None:
    heads = RequestHeads("x" * 32768)
    for _ in range(2):
        with pytest.raises(LocalProtocolError, match="client id has 32768 bytes"):
            heads.frame(MetadataRequest(), 1, 1)
