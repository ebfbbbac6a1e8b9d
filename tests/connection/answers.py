"""What a broker would answer, for tests that play one: frames cut, headers read, answers built."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from pykafka08.protocol.headers import RequestHeader, decode_request_header, encode_response
from pykafka08.protocol.messages import request_class
from pykafka08.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from pykafka08.protocol.messages.list_groups import ListGroupsResponse
from pykafka08.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from pykafka08.protocol.schema import Response
from pykafka08.protocol.versions import BrokerVersions

Address = tuple[str, int]


class Asked(NamedTuple):
    """A request as a broker reads it."""

    header: RequestHeader
    request: Any

    @property
    def name(self) -> str:
        return str(self.request.name)


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def answer_to(asked: Asked, response: Response, version: int | None = None) -> bytes:
    """The answer's whole frame; ``version`` for brokers that answer in another than was asked."""
    used = asked.header.api_version if version is None else version
    return framed(encode_response(response, used, asked.header.correlation_id))


def read_request(frame: bytes) -> Asked:
    header = decode_request_header(frame)
    request = request_class(header.api_key).decode(frame, header.api_version, header.body_offset)
    return Asked(header, request)


def read_requests(stream: bytes) -> list[Asked]:
    """The requests in a run of bytes that must hold nothing but whole frames."""
    found = []
    while stream:
        (size,) = struct.unpack_from(">i", stream)
        assert len(stream) >= 4 + size, "a frame is cut off"
        found.append(read_request(bytes(stream[4 : 4 + size])))
        stream = stream[4 + size :]
    return found


def api_versions(release: str = "4.3") -> ApiVersionsResponse:
    ranges = BrokerVersions.of_release(release).ranges
    return ApiVersionsResponse(
        api_keys=[ApiVersion(api_key=int(key), min_version=r.min, max_version=r.max) for key, r in ranges.items()]
    )


def list_groups() -> ListGroupsResponse:
    return ListGroupsResponse()


def metadata(
    brokers: Sequence[tuple[int, str, int]] = ((1, "127.0.0.1", 9092),),
    topics: Iterable[MetadataResponseTopic] = (),
) -> MetadataResponse:
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=node_id, host=host, port=port) for node_id, host, port in brokers],
        controller_id=brokers[0][0] if brokers else -1,
        topics=list(topics),
    )


def topic(name: str, leaders: Sequence[int] = (1,), *, error: int = 0, **fields: Any) -> MetadataResponseTopic:
    """A topic whose partitions 0, 1, ... are led by ``leaders`` (-1: none)."""
    partitions = [
        MetadataResponsePartition(
            error_code=0 if leader >= 0 else 5,
            partition_index=index,
            leader_id=leader,
            replica_nodes=[leader] if leader >= 0 else [],
            isr_nodes=[leader] if leader >= 0 else [],
        )
        for index, leader in enumerate(leaders)
    ]
    return MetadataResponseTopic(error_code=error, name=name, partitions=[] if error else partitions, **fields)


def usual_answer(asked: Asked, release: str, address: Address) -> bytes | None:
    """What broker 1 of ``release`` at ``address`` answers to the first requests of a connection; None: it closes."""
    old = release.startswith(("0.8", "0.9"))
    if asked.name == "Metadata":
        names = [each.name for each in asked.request.topics or []]
        answer = metadata([(1, *address)], [topic(name) for name in names])
        return answer_to(asked, answer, 0 if old else None)
    if asked.name == "ApiVersions":
        assert not old, "ApiVersions must not reach 0.8 and 0.9"
        return answer_to(asked, api_versions(release))
    if asked.name == "ListGroups":
        return None if release.startswith("0.8") else answer_to(asked, list_groups())
    raise AssertionError(f"no usual answer to {asked.name}")
