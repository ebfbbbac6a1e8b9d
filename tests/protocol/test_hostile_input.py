"""Damaged bytes: whatever comes in, only RemoteProtocolError comes out, and nothing is allocated on its word."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pykafka08.errors import RemoteProtocolError
from pykafka08.protocol.messages import REGISTRY, request_class, response_class
from pykafka08.protocol.messages.api_versions import ApiVersionsResponse
from pykafka08.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from pykafka08.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsResponse
from pykafka08.protocol.messages.fetch import FetchResponse
from pykafka08.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from pykafka08.protocol.messages.offset_fetch import OffsetFetchResponse
from pykafka08.protocol.schema import Message
from tests.conformance.check_vectors import read_lines
from tests.protocol.strategies import ALL_MESSAGES

VECTORS = Path(__file__).parents[1] / "conformance" / "data" / "messages-4.3.0.jsonl.gz"
LONGEST = 400


def _samples() -> Iterator[tuple[type[Message], int, bytes]]:
    """The longest vector of at most 400 bytes for each API and direction, in its newest version."""
    chosen: dict[tuple[int, str], tuple[int, bytes]] = {}
    for line in read_lines(VECTORS):
        key, data = (line["api_key"], line["kind"]), bytes.fromhex(line["hex"])
        if line["api_key"] in REGISTRY and len(data) <= LONGEST:
            chosen[key] = max(
                chosen.get(key, (0, b"")), (line["version"], data), key=lambda each: (each[0], len(each[1]))
            )
    for (api_key, kind), (version, data) in chosen.items():
        yield (request_class if kind == "request" else response_class)(api_key), version, data


SAMPLES = [pytest.param(*sample, id=f"{sample[0].__name__}-{sample[1]}") for sample in _samples()]


@pytest.mark.parametrize(("message", "version", "data"), SAMPLES)
def test_cut_off_anywhere(message: type[Message], version: int, data: bytes) -> None:
    for size in range(len(data)):
        with pytest.raises(RemoteProtocolError) as caught:
            message.decode(data[:size], version)
        assert str(caught.value).startswith(f"{message.__name__} version {version}: ")
        assert caught.value.api == message.name


@pytest.mark.parametrize(("message", "version", "data"), SAMPLES)
def test_another_byte_anywhere(message: type[Message], version: int, data: bytes) -> None:
    for index in range(len(data)):
        for value in (0x00, 0x7F, 0x80, 0xFF, data[index] ^ 0x01):
            damaged = data[:index] + bytes((value,)) + data[index + 1 :]
            try:
                decoded = message.decode(damaged, version)
            except RemoteProtocolError:
                continue
            decoded.encode(version)  # what was accepted can be written


@settings(max_examples=300)
@given(st.sampled_from(ALL_MESSAGES), st.data())
def test_random_bytes(message: type[Message], data: st.DataObject) -> None:
    version = data.draw(st.integers(message.versions.min, message.versions.max))
    noise = data.draw(st.binary(max_size=64))
    try:
        decoded = message.decode(noise, version)
    except RemoteProtocolError:
        return
    assert type(decoded) is message


@pytest.mark.parametrize(
    ("message", "version", "data", "text"),
    [
        (MetadataRequest, 0, "7fffffff", "topics: count 2147483647 with 0 bytes left"),
        (MetadataRequest, 0, "fffffffe", "topics: negative length -2"),
        (MetadataRequest, 0, "ffffffff", "topics: null where this version has no null"),
        (MetadataRequest, 1, "fffffffe", "topics: negative length -2"),
        (MetadataRequest, 0, "00000001ffff", "topics[0].name: null where this version has no null"),
        (MetadataRequest, 0, "0000000200016100026262ff", "1 bytes left over after byte 11"),
        (MetadataRequest, 0, "0000000200016100036262", "topics[1].name: length 3 with 2 bytes left"),
        (MetadataRequest, 0, "000000010002c328", "topics[0].name: text that is not UTF-8 (byte 6 of 8)"),
        (MetadataRequest, 9, "ffffffffff", "varint at byte 0 does not fit 32 bits"),
        (MetadataRequest, 9, "00000000ff", "varint at byte 4 is cut off"),
        (MetadataRequest, 9, "000000000205000500", "tagged field 5 occurs twice"),
        (MetadataRequest, 9, "00000000010503", "tagged fields: length 3 with 0 bytes left"),
        (MetadataRequest, 9, "00000000ffffffff0f", "count 4294967295 with 0 bytes left"),
        (ApiVersionsResponse, 3, "000001000000000101090000000000000005ff", "tagged field 1 is not 9 bytes"),
    ],
)
def test_the_text_says_what_and_where(message: type[Message], version: int, data: str, text: str) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        message.decode(bytes.fromhex(data), version)
    assert text in str(caught.value)


def test_a_nested_path_names_every_index() -> None:
    partition = MetadataResponsePartition(replica_nodes=[], isr_nodes=[])
    topics = [MetadataResponseTopic(name="a"), MetadataResponseTopic(name="b", partitions=[partition, partition])]
    data = bytearray(MetadataResponse(topics=topics).encode(0))
    data[-8:-4] = b"\x7f\xff\xff\xff"
    with pytest.raises(RemoteProtocolError, match=r"topics\[1\]\.partitions\[1\]\.replica_nodes: count 2147483647"):
        MetadataResponse.decode(data, 0)


def test_neither_null_nor_struct() -> None:
    data = bytearray(DescribeTopicPartitionsResponse().encode(0))
    assert data[-2:] == b"\xff\x00"
    data[-2] = 7
    with pytest.raises(RemoteProtocolError, match="next_cursor: neither null nor a struct: 7"):
        DescribeTopicPartitionsResponse.decode(data, 0)


@pytest.mark.parametrize(
    ("message", "version", "data"),
    [
        (MetadataResponse, 0, "7fffffff"),
        (MetadataResponse, 12, "00000000ffffffff0f"),
        (FetchResponse, 12, "00000000000000000000ffffffff0f"),
        (OffsetFetchResponse, 0, "7ffffff0"),
    ],
)
def test_a_count_that_lies_costs_no_memory(message: type[Message], version: int, data: str) -> None:
    raw = bytes.fromhex(data) + bytes(2000)
    with pytest.raises(RemoteProtocolError):
        message.decode(raw, version)  # compiles the decoder
    tracemalloc.start()
    try:
        with pytest.raises(RemoteProtocolError):
            message.decode(raw, version)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 200_000


def _texts_for_people() -> Iterator[tuple[type[Message], int, str]]:
    """Every message with a human-readable field at its top level, in its newest version."""
    for key in REGISTRY:
        message = response_class(key)
        for field in message.schema:
            if field.name == "error_message" and message.versions.max in field.versions:
                yield message, message.versions.max, field.name


@pytest.mark.parametrize(("message", "version", "name"), list(_texts_for_people()))
def test_an_error_message_that_is_not_utf_8_does_not_hide_its_code(
    message: type[Message], version: int, name: str
) -> None:
    made = message(**{name: "~~~~", "error_code": 14})
    damaged = made.encode(version).replace(b"~~~~", b"\xff~\xfe~")
    read = message.decode(damaged, version)
    assert read.error_code == 14  # type: ignore[attr-defined]
    assert getattr(read, name) == "\ufffd~\ufffd~"


def test_a_name_that_is_not_utf_8_is_refused() -> None:
    made = MetadataResponse(topics=[MetadataResponseTopic(name="~~~~")])
    with pytest.raises(RemoteProtocolError):
        MetadataResponse.decode(made.encode(9).replace(b"~~~~", b"\xff~\xfe~"), 9)


def test_an_error_message_inside_an_answer_does_not_hide_its_code() -> None:
    made = CreateTopicsResponse(topics=[CreatableTopicResult(name="t", error_code=44, error_message="~~~~")])
    (read,) = CreateTopicsResponse.decode(made.encode(7).replace(b"~~~~", b"\xff~\xfe~"), 7).topics
    assert (read.name, read.error_code, read.error_message) == ("t", 44, "\ufffd~\ufffd~")
