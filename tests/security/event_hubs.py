"""A proxy with the limits of Azure Event Hubs, in front of any broker.

It serves ApiVersions up to version 2, resets the connection on version 4 and above, lacks the APIs that Event Hubs
lacks, advertises one address for the whole namespace, and closes connections that are idle for too long (four minutes
there).
"""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.abc
from anyio.streams.tls import TLSListener

from pykafka08.protocol.headers import decode_request_header, encode_response, split_response
from pykafka08.protocol.messages import ApiKey, request_class
from pykafka08.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse

__all__ = ["MISSING", "EventHubs", "event_hubs"]

LOOPBACK = "127.0.0.1"
NEWEST_API_VERSIONS = 2
RESET_FROM = 4

MISSING = frozenset(
    {
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        ApiKey.DESCRIBE_ACLS,
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        ApiKey.DESCRIBE_LOG_DIRS,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.DESCRIBE_CLUSTER,
        ApiKey.DESCRIBE_PRODUCERS,
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
    }
)
"""APIs that the namespace does not announce."""


@dataclass
class EventHubs:
    """What the proxy has seen."""

    port: int
    reset_from: int = RESET_FROM
    requests: list[tuple[int, str, int]] = field(default_factory=list)
    """Connection, API and version of each request."""
    resets: int = 0
    idle_closes: int = 0
    _idle: anyio.Event | None = None

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    async def wait_idle_close(self) -> None:
        """Until the next connection is closed because it was idle."""
        self._idle = anyio.Event()
        await self._idle.wait()

    def closed_idle(self) -> None:
        self.idle_closes += 1
        if self._idle is not None:
            self._idle.set()


class _Passage:
    """One client connection and the connection to the broker behind it."""

    def __init__(
        self, hubs: EventHubs, client: anyio.abc.ByteStream, broker: anyio.abc.ByteStream, number: int
    ) -> None:
        self._hubs = hubs
        self._client = client
        self._broker = broker
        self._number = number
        self._asked: dict[int, tuple[type[Any], int]] = {}

    async def requests(self, idle_s: float) -> None:
        """Pass requests on until the client goes, is idle, or asks what resets the connection."""
        while True:
            with anyio.move_on_after(idle_s) as idle:
                frame = await _frame(self._client)
            if idle.cancelled_caught:
                self._hubs.closed_idle()
                return
            if frame is None:
                return
            header = decode_request_header(frame)
            kind = request_class(header.api_key)
            self._hubs.requests.append((self._number, kind.name, header.api_version))
            if header.api_key == ApiKey.API_VERSIONS and header.api_version > NEWEST_API_VERSIONS:
                if header.api_version >= self._hubs.reset_from:
                    self._hubs.resets += 1
                    _reset(self._client)
                    return
                await self._client.send(_refusal(header.correlation_id))
                continue
            self._asked[header.correlation_id] = (kind, header.api_version)
            await self._broker.send(struct.pack(">i", len(frame)) + frame)

    async def answers(self) -> None:
        """Pass answers back, with one address for every broker and without the APIs that are missing."""
        while (frame := await _frame(self._broker)) is not None:
            (correlation_id,) = struct.unpack_from(">i", frame)
            kind, version = self._asked.pop(correlation_id)
            body = self._changed(kind, version, frame, correlation_id)
            await self._client.send(struct.pack(">i", len(body)) + body)

    def _changed(self, kind: type[Any], version: int, frame: bytes, correlation_id: int) -> bytes:
        if kind.api_key not in (ApiKey.API_VERSIONS, ApiKey.METADATA, ApiKey.FIND_COORDINATOR):
            return frame
        _, offset = split_response(kind.response, version, frame)
        answer = kind.response.decode(frame, version, offset)
        if kind.api_key == ApiKey.API_VERSIONS:
            answer.api_keys = [_limited(each) for each in answer.api_keys if each.api_key not in MISSING]
        elif kind.api_key == ApiKey.METADATA:
            for broker in answer.brokers:
                broker.host, broker.port = LOOPBACK, self._hubs.port
        else:
            for found in [answer, *answer.coordinators]:
                if found.port > 0:
                    found.host, found.port = LOOPBACK, self._hubs.port
        return encode_response(answer, version, correlation_id)


def _limited(entry: ApiVersion) -> ApiVersion:
    if entry.api_key == ApiKey.API_VERSIONS:
        entry.max_version = NEWEST_API_VERSIONS
    return entry


def _refusal(correlation_id: int) -> bytes:
    """ApiVersions with error 35, in the layout of version 0."""
    known = ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=0, max_version=NEWEST_API_VERSIONS)
    body = encode_response(ApiVersionsResponse(error_code=35, api_keys=[known]), 0, correlation_id)
    return struct.pack(">i", len(body)) + body


def _reset(stream: anyio.abc.ByteStream) -> None:
    """Make the close of the connection a reset."""
    raw = stream.extra(anyio.abc.SocketAttribute.raw_socket)
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


async def _frame(stream: anyio.abc.ByteStream) -> bytes | None:
    """The next frame; None at the end of the stream."""
    try:
        (size,) = struct.unpack(">i", await _exactly(stream, 4))
        return await _exactly(stream, size)
    except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
        return None


async def _exactly(stream: anyio.abc.ByteStream, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += await stream.receive(size - len(data))
    return data


@asynccontextmanager
async def event_hubs(
    upstream: str,
    *,
    tls: ssl.SSLContext | None = None,
    upstream_tls: ssl.SSLContext | None = None,
    idle_s: float = 240,
    reset_from: int = RESET_FROM,
) -> AsyncIterator[EventHubs]:
    """The proxy in front of the broker at ``upstream`` ("host:port"); ``tls`` is the TLS context of the proxy.

    ``reset_from`` is the first version of ApiVersions that resets the connection.
    """
    host, _, port = upstream.rpartition(":")
    async with AsyncExitStack() as stack:
        listener: Any = await stack.enter_async_context(await anyio.create_tcp_listener(local_host=LOOPBACK))
        hubs = EventHubs(listener.extra(anyio.abc.SocketAttribute.local_port), reset_from)
        if tls is not None:
            listener = TLSListener(listener, tls, standard_compatible=False)
        count = 0

        async def serve(client: anyio.abc.ByteStream) -> None:
            nonlocal count
            count += 1
            number = count
            async with client:
                if upstream_tls is None:
                    broker: Any = await anyio.connect_tcp(host, int(port))
                else:
                    broker = await anyio.connect_tcp(
                        host, int(port), ssl_context=upstream_tls, tls_standard_compatible=False
                    )
                async with broker, anyio.create_task_group() as group:
                    passage = _Passage(hubs, client, broker, number)

                    async def either(run: Any, *args: Any) -> None:
                        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # one of the two has gone
                            await run(*args)
                        group.cancel_scope.cancel()

                    group.start_soon(either, passage.requests, idle_s)
                    group.start_soon(either, passage.answers)

        group = await stack.enter_async_context(anyio.create_task_group())
        group.start_soon(listener.serve, serve)
        yield hubs
        group.cancel_scope.cancel()
