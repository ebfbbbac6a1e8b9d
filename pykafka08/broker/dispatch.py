"""From a frame to the handler of its API, and from the answer back to bytes.

Which requests a release knows, and what it does with the others, is the personality's; which of them a test wants to go
wrong is the script's.
"""

from __future__ import annotations

import time
from typing import Any

from pykafka08.broker.call import Call, CloseConnection, Reply
from pykafka08.broker.cluster_state import ClusterState, Node
from pykafka08.broker.connection_context import ConnectionContext
from pykafka08.broker.faults import LoggedRequest
from pykafka08.broker.handlers import Handler, load_handlers
from pykafka08.broker.personality import Manners, Personality
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.headers import RequestHeader, decode_request_header, response_parts
from pykafka08.protocol.messages import REGISTRY, ApiKey, request_class
from pykafka08.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from pykafka08.protocol.schema import Response, VersionRange
from pykafka08.wire import INT32, Buffer

__all__ = ["begin", "encode_answer", "served_apis"]

WITHOUT_ZOOKEEPER = (ApiKey.DESCRIBE_QUORUM, ApiKey.LIST_CONFIG_RESOURCES)
"""APIs of a release that its brokers do not offer with ZooKeeper."""

_HANDLERS: dict[int, Handler] = {}


def served_apis(personality: Personality) -> dict[int, VersionRange]:
    """The versions of each API that has a handler, by API key."""
    handlers = load_handlers()
    return {
        key: versions
        for key, versions in personality.versions.items()
        if key in handlers and not (personality.has_zookeeper and key in WITHOUT_ZOOKEEPER)
    }


def begin(cluster: ClusterState, node: Node, frame: Buffer, connection: ConnectionContext) -> tuple[Call, Reply]:
    """Hand a request to its handler.

    CloseConnection or RemoteProtocolError where the connection is to be closed.
    """
    header = decode_request_header(frame)
    manners, version = cluster.personality.manners(header.api_key, header.api_version, cluster.served)
    script = cluster.faults.for_request(header.api_key, node.node_id)
    call = Call(cluster, node, header, version, script, connection)
    _log(call)
    sasl = connection.sasl
    if sasl is not None and not sasl.allows(header.api_key, time.time()):
        raise CloseConnection(f"{_name(header)} before authentication, or after the session's end")
    script.act()
    if script.takes("close_before"):
        raise CloseConnection("scripted: closed before the request was performed")
    if manners is Manners.CLOSE:
        raise CloseConnection(f"{_name(header)} v{header.api_version} is not known to {cluster.personality.release}")
    if manners is Manners.IGNORE:
        return call, None
    if manners is Manners.UNSUPPORTED:
        return call, _unsupported_api_versions(cluster)
    offset = _body_offset(header, frame, version)
    request, left = request_class(header.api_key).decode_start(memoryview(frame), version, offset)
    if left:
        cluster.requests[-1] = cluster.requests[-1]._replace(trailing_bytes=left)
    return call, handler_of(header.api_key)(call, request)


def encode_answer(call: Call, response: Response) -> bytes:
    """A whole frame, size included."""
    parts = response_parts(response, call.version, call.header.correlation_id)
    size = sum(map(len, parts))
    return b"".join((INT32.pack(size), *parts))


def handler_of(key: int) -> Handler:
    if not _HANDLERS:
        _HANDLERS.update(load_handlers())
    return _HANDLERS[key]


def _name(header: RequestHeader) -> str:
    return REGISTRY[header.api_key].name if header.api_key in REGISTRY else f"API {header.api_key}"


def _log(call: Call) -> None:
    header, cluster = call.header, call.cluster
    cluster.log_request(
        LoggedRequest(cluster.timers.now(), call.node.node_id, _name(header), header.api_version, header.client_id)
    )


def _body_offset(header: RequestHeader, frame: Buffer, version: int) -> int:
    """Where the body starts for a broker that reads it as ``version``: old ones know no tags in a header."""
    if version == header.api_version:
        return header.body_offset
    message: Any = request_class(header.api_key)
    if message.is_flexible(version):
        return header.body_offset
    size = int.from_bytes(bytes(frame[8:10]), "big", signed=True)
    return 10 + max(0, size)


def _unsupported_api_versions(cluster: ClusterState) -> ApiVersionsResponse:
    """KIP-511: since 2.4 the answer names the range of ApiVersions itself."""
    keys = []
    if cluster.personality >= (2, 4):
        own = cluster.served[ApiKey.API_VERSIONS]
        keys.append(ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=own.min, max_version=own.max))
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=keys)
