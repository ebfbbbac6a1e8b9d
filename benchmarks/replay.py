"""A replaying server: takes the broker out of the measure.

    python -m benchmarks.replay [CERTIFICATE]

Prints ``REPLAY=host:port`` and serves until its standard input ends.  With CERTIFICATE, a PEM file that has the private
key too, it speaks TLS.  What is fetched are batches that were encoded
once, with nothing but their base offsets changed; what is produced is counted and thrown away.  Topics are named as
``benchmarks.topics`` does, and hold what their names say.  It announces the versions that Kafka 4.3 does, so that every
client speaks as it does with a real broker.

One thread for each connection, with blocking calls: the client decides the pace, and the server sleeps in the kernel.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from benchmarks.topics import Profile, ReadTopic, partitions_of
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.headers import decode_request_header, response_parts
from pykafka08.protocol.messages import ApiKey, request_class
from pykafka08.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from pykafka08.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from pykafka08.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from pykafka08.protocol.messages.init_producer_id import InitProducerIdResponse
from pykafka08.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from pykafka08.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from pykafka08.protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse

__all__ = ["Canned", "ReplayServer", "encode_batches", "replaying"]

SERVED = {
    ApiKey.PRODUCE: (0, 12),
    ApiKey.FETCH: (4, 17),
    ApiKey.LIST_OFFSETS: (1, 10),
    ApiKey.METADATA: (0, 13),
    ApiKey.FIND_COORDINATOR: (0, 6),
    ApiKey.API_VERSIONS: (0, 4),
    ApiKey.INIT_PRODUCER_ID: (0, 5),
}
"""Versions as Kafka 4.3 announces them, of what a client without a group needs."""
NODE_ID = 1
FIRST_TIMESTAMP_MS = 1_700_000_000_000
_COUNT_AT = 57
_LONGEST_IOV = 512
_BASE_OFFSET = struct.Struct(">q")
_SIZE = struct.Struct(">i")


def encode_batches(profile: Profile) -> list[bytes]:
    """The distinct batches of a profile in wire format 2, as aiokafka writes them: by none of the code under test."""
    from aiokafka.record.default_records import DefaultRecordBatchBuilder

    values, keys = profile.pool()
    codecs = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
    batches, per_batch = [], profile.records_per_batch
    for number in range(profile.distinct_batches):
        builder = DefaultRecordBatchBuilder(2, codecs[profile.codec], 0, -1, -1, -1, 1 << 30)
        for index in range(per_batch):
            at = number * per_batch + index
            key = keys[at] if keys else None
            builder.append(index, FIRST_TIMESTAMP_MS + at // 4, key, values[at], [])
        batches.append(bytes(builder.build()))
    return batches


class Canned:
    """The log of each partition of a topic that is read."""

    def __init__(self, topic: ReadTopic, batches: list[bytes]) -> None:
        self.end_offset = topic.partition_records
        self._per_batch = topic.profile.records_per_batch
        self._bodies = [memoryview(batch)[8:] for batch in batches]

    def fetch(self, offset: int, max_bytes: int) -> bytes | None:
        """Whole batches from the one that holds ``offset``: as many as fit, and at least one.  None at the end."""
        if offset >= self.end_offset:
            return None
        parts: list[bytes | memoryview] = []
        at, size = offset // self._per_batch, 0
        while at * self._per_batch < self.end_offset:
            body = self._bodies[at % len(self._bodies)]
            size += len(body) + 8
            if parts and size > max_bytes:
                break
            parts += (_BASE_OFFSET.pack(at * self._per_batch), body)
            at += 1
        return b"".join(parts)


class ReplayServer:
    """Listens on 127.0.0.1 from the moment it is made; ``serve`` takes connections until ``close``."""

    def __init__(self, port: int = 0, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self._socket = socket.create_server(("127.0.0.1", port), backlog=128)
        self.port: int = self._socket.getsockname()[1]
        self._lock = threading.Lock()
        self._logs: dict[str, Canned | None] = {}
        self._names: dict[UUID, str] = {}
        self._written: defaultdict[tuple[str, int], int] = defaultdict(int)

    def serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                threading.Thread(target=self._serve_one, args=(connection,), daemon=True).start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes accept
        self._socket.close()

    def _serve_one(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(OSError):  # the client may go at any time
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True)
            self._serve_requests(connection)
        connection.close()

    def _serve_requests(self, connection: socket.socket) -> None:
        with contextlib.suppress(ConnectionError):
            while True:
                (size,) = _SIZE.unpack(_exactly(connection, _SIZE.size))
                parts = self._answer(_exactly(connection, size))
                if parts:
                    _send_all(connection, parts)

    def _answer(self, frame: bytearray) -> list[Any]:
        """The frame that answers a request, in pieces; empty for a produce request that wants no answer."""
        header = decode_request_header(frame)
        served = SERVED.get(ApiKey(header.api_key))
        if header.api_key == ApiKey.API_VERSIONS and (served is None or header.api_version > served[1]):
            response: Any = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[])
            version = 0
        else:
            version = header.api_version
            request = request_class(header.api_key).decode(memoryview(frame), version, header.body_offset)
            response = _ANSWERS[ApiKey(header.api_key)](self, request, version)
        if response is None:
            return []
        parts = response_parts(response, version, header.correlation_id)
        return [_SIZE.pack(sum(map(len, parts))), *parts]

    def _log(self, topic: str) -> Canned | None:
        """None for a topic that is written."""
        if topic not in self._logs:
            try:
                read = ReadTopic.from_name(topic)
            except ValueError:
                self._logs[topic] = None
            else:
                self._logs[topic] = Canned(read, _batches(read.profile))
        return self._logs[topic]

    def _end_offset(self, topic: str, partition: int) -> int:
        log = self._log(topic)
        return self._written[topic, partition] if log is None else log.end_offset

    def _topic_id(self, name: str) -> UUID:
        topic_id = uuid5(NAMESPACE_URL, name)
        self._names[topic_id] = name
        return topic_id

    def _api_versions(self, request: Any, version: int) -> ApiVersionsResponse:
        keys = [ApiVersion(api_key=key, min_version=low, max_version=high) for key, (low, high) in SERVED.items()]
        return ApiVersionsResponse(error_code=0, api_keys=keys)

    def _metadata(self, request: Any, version: int) -> MetadataResponse:
        topics = []
        for each in request.topics or ():
            name = each.name if each.name is not None else self._names[each.topic_id]
            with self._lock:
                self._log(name)
            partitions = [
                MetadataResponsePartition(
                    error_code=0,
                    partition_index=index,
                    leader_id=NODE_ID,
                    leader_epoch=0,
                    replica_nodes=[NODE_ID],
                    isr_nodes=[NODE_ID],
                )
                for index in range(partitions_of(name))
            ]
            topics.append(
                MetadataResponseTopic(error_code=0, name=name, topic_id=self._topic_id(name), partitions=partitions)
            )
        broker = MetadataResponseBroker(node_id=NODE_ID, host="127.0.0.1", port=self.port)
        return MetadataResponse(brokers=[broker], cluster_id="replay", controller_id=NODE_ID, topics=topics)

    def _find_coordinator(self, request: Any, version: int) -> FindCoordinatorResponse:
        if version < 4:
            return FindCoordinatorResponse(node_id=NODE_ID, host="127.0.0.1", port=self.port)
        found = [
            Coordinator(key=key, node_id=NODE_ID, host="127.0.0.1", port=self.port, error_code=0)
            for key in request.coordinator_keys
        ]
        return FindCoordinatorResponse(coordinators=found)

    def _init_producer_id(self, request: Any, version: int) -> InitProducerIdResponse:
        return InitProducerIdResponse(error_code=0, producer_id=1000, producer_epoch=0)

    def _list_offsets(self, request: Any, version: int) -> ListOffsetsResponse:
        topics = []
        for topic in request.topics:
            partitions = []
            for asked in topic.partitions:
                offset = 0 if asked.timestamp == -2 else self._end_offset(topic.name, asked.partition_index)
                partitions.append(
                    ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=0, offset=offset)
                )
            topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=partitions))
        return ListOffsetsResponse(topics=topics)

    def _fetch(self, request: Any, version: int) -> FetchResponse:
        """Sessions are declined: each request names all its partitions, as clients without sessions do."""
        left, topics, is_empty = request.max_bytes, [], True
        for topic in request.topics:
            name = topic.topic if version < 13 else self._names[topic.topic_id]
            partitions = []
            for asked in topic.partitions:
                log = self._log(name)
                records = None
                if log is not None and left > 0:
                    records = log.fetch(asked.fetch_offset, min(asked.partition_max_bytes, left))
                left -= len(records or b"")
                is_empty = is_empty and not records
                end = self._end_offset(name, asked.partition)
                partitions.append(
                    PartitionData(
                        partition_index=asked.partition,
                        error_code=0,
                        high_watermark=end,
                        last_stable_offset=end,
                        log_start_offset=0,
                        records=records or b"",
                    )
                )
            topic_id = topic.topic_id if version >= 13 else UUID(int=0)
            topics.append(
                FetchableTopicResponse(topic=name if version < 13 else "", topic_id=topic_id, partitions=partitions)
            )
        if is_empty:
            time.sleep(request.max_wait_ms / 1000)  # nothing will come: what is read is all there from the start
        return FetchResponse(session_id=0, responses=topics)

    def _produce(self, request: Any, version: int) -> ProduceResponse | None:
        topics = []
        for topic in request.topic_data:
            partitions = []
            for written in topic.partition_data:
                place, records = (topic.name, written.index), memoryview(written.records)
                (count,) = _SIZE.unpack_from(records, _COUNT_AT)
                with self._lock:
                    base_offset = self._written[place]
                    self._written[place] += count
                partitions.append(PartitionProduceResponse(index=written.index, error_code=0, base_offset=base_offset))
            topics.append(TopicProduceResponse(name=topic.name, partition_responses=partitions))
        return ProduceResponse(responses=topics) if request.acks else None


_ANSWERS: dict[int, Any] = {
    ApiKey.API_VERSIONS: ReplayServer._api_versions,
    ApiKey.METADATA: ReplayServer._metadata,
    ApiKey.FIND_COORDINATOR: ReplayServer._find_coordinator,
    ApiKey.INIT_PRODUCER_ID: ReplayServer._init_producer_id,
    ApiKey.LIST_OFFSETS: ReplayServer._list_offsets,
    ApiKey.FETCH: ReplayServer._fetch,
    ApiKey.PRODUCE: ReplayServer._produce,
}


@lru_cache(maxsize=8)
def _batches(profile: Profile) -> list[bytes]:
    return encode_batches(profile)


def _exactly(connection: socket.socket, size: int) -> bytearray:
    buffer = bytearray(size)
    view = memoryview(buffer)
    while view:
        received = connection.recv_into(view)
        if not received:
            raise ConnectionError("the client closed the connection")
        view = view[received:]
    return buffer


def _send_all(connection: socket.socket, parts: list[Any]) -> None:
    if isinstance(connection, ssl.SSLSocket):
        connection.sendall(b"".join(parts))
        return
    waiting = [memoryview(part) for part in parts if len(part)]
    at = 0
    while at < len(waiting):
        sent = connection.sendmsg(waiting[at : at + _LONGEST_IOV])
        while at < len(waiting) and sent >= len(waiting[at]):
            sent -= len(waiting[at])
            at += 1
        if sent:
            waiting[at] = waiting[at][sent:]


@contextmanager
def replaying(tls: ssl.SSLContext | None = None) -> Iterator[ReplayServer]:
    """A server in a thread of this process."""
    server = ReplayServer(tls=tls)
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.close()
        thread.join()


def main() -> None:
    tls = None
    if len(sys.argv) > 1:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(sys.argv[1])
    with replaying(tls) as server:
        print(f"REPLAY=127.0.0.1:{server.port}", flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
