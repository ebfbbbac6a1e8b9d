"""A client of single requests, with nothing of the library's client in it: the test sees what goes over the wire."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import anyio
import anyio.abc
from anyio.streams.buffered import BufferedByteReceiveStream

from pykafka08.broker.server import EmbeddedCluster
from pykafka08.protocol.headers import encode_request, split_response
from pykafka08.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from pykafka08.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from pykafka08.protocol.schema import ZERO_UUID, Request, Response
from pykafka08.records.compression import Codec
from pykafka08.records.reader import read_batches
from pykafka08.records.record import Record
from pykafka08.records.writer import encode_batch

R = TypeVar("R", bound=Response)


class Raw:
    """One connection."""

    def __init__(self, stream: anyio.abc.SocketStream) -> None:
        self.stream = stream
        self._receive = BufferedByteReceiveStream(stream)
        self._correlation_id = 0

    async def send(self, request: Request[Any], version: int, *, client_id: str | None = "raw") -> int:
        """Send and do not wait; the correlation id."""
        self._correlation_id += 1
        await self.send_frame(encode_request(request, version, self._correlation_id, client_id))
        return self._correlation_id

    async def send_frame(self, frame: bytes) -> None:
        await self.stream.send(len(frame).to_bytes(4, "big") + frame)

    async def receive_frame(self) -> bytes:
        """The next answer's frame; EndOfStream or IncompleteRead where the broker closed."""
        size = int.from_bytes(await self._receive.receive_exactly(4), "big")
        return await self._receive.receive_exactly(size)

    async def receive(self, kind: type[R], version: int) -> tuple[int, R]:
        """Correlation id and response."""
        frame = await self.receive_frame()
        correlation_id, offset = split_response(kind, version, frame)
        return correlation_id, kind.decode(memoryview(frame)[offset:], version)

    async def ask(self, request: Request[R], version: int) -> R:
        sent = await self.send(request, version)
        got, response = await self.receive(type(request).response, version)
        assert got == sent
        return response

    async def is_closed_by_peer(self) -> bool:
        """True once the broker has closed; False if it sends anything."""
        try:
            await self._receive.receive_exactly(1)
        except (anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError):
            return True
        return False


@asynccontextmanager
async def connected(address: str) -> AsyncIterator[Raw]:
    """A connection to ``"host:port"``."""
    host, _, port = address.rpartition(":")
    async with await anyio.connect_tcp(host, int(port)) as stream:
        yield Raw(stream)


@asynccontextmanager
async def connect(cluster: EmbeddedCluster, node_id: int = 0) -> AsyncIterator[Raw]:
    node = cluster.brokers[node_id]
    async with await anyio.connect_tcp(node.host, node.port) as stream:
        yield Raw(stream)


def batch(*values: bytes | None, magic: int = 2, codec: Codec = Codec.NONE, at_ms: int = 1000, **more: Any) -> bytes:
    """One batch or message set; record i is stamped ``at_ms`` + i and has the key ``b"k"``."""
    return bytes(
        encode_batch(
            magic,
            codec,
            timestamps=[at_ms + index for index in range(len(values))],
            keys=[b"k"] * len(values),
            values=list(values),
            headers=None,
            **more,
        )
    )


def produce_request(
    records: bytes | None,
    *,
    topic: str = "t",
    partition: int = 0,
    acks: int = 1,
    timeout_ms: int = 1000,
    transactional_id: str | None = None,
) -> ProduceRequest:
    data = PartitionProduceData(index=partition, records=records)
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )


async def produce(raw: Raw, records: bytes, version: int, **more: Any) -> PartitionProduceResponse:
    """The answer for the one partition."""
    response = await raw.ask(produce_request(records, **more), version)
    return response.responses[0].partition_responses[0]


def fetch_request(
    offset: int = 0,
    *,
    topic: str = "t",
    topic_id: Any = ZERO_UUID,
    partition: int = 0,
    max_bytes: int = 1 << 20,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    **more: Any,
) -> FetchRequest:
    wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        topics=[FetchTopic(topic=topic, topic_id=topic_id, partitions=[wanted])],
        **more,
    )


async def fetch(raw: Raw, version: int, offset: int = 0, **more: Any) -> PartitionData:
    """The answer for the one partition."""
    response = await raw.ask(fetch_request(offset, **more), version)
    return response.responses[0].partitions[0]


def decoded(data: PartitionData, offset: int = 0) -> list[Record]:
    """The records that an answer carries."""
    return [
        record
        for each in read_batches(data.records or b"", topic="t", partition=data.partition_index, fetch_offset=offset)
        for record in each
    ]


def values(records: Sequence[Record]) -> list[bytes | None]:
    return [record.value for record in records]
