"""Request and response headers: what stands before a message in a frame.  The 4-byte size is ``framing``'s.

Request header v1: api key int16, version int16, correlation id int32, client id nullable string (always the old,
not-compact form, so that any broker can read it).  v2, used by flexible versions, adds a tagged section.  v0 of
ControlledShutdown alone has no client id.  Response header v0: correlation id int32; v1 adds a tagged section.
Responses to ApiVersions always have header v0: their reader does not know yet what the broker speaks (KIP-511).
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

from pykafka08.errors import LocalProtocolError, RemoteProtocolError
from pykafka08.protocol.messages import REGISTRY, ApiKey, request_class
from pykafka08.protocol.schema import Message, Request, Response
from pykafka08.wire import INT16, INT32, Buffer, read_unsigned_varint

__all__ = [
    "RequestHeader",
    "RequestHeads",
    "decode_request_header",
    "encode_request",
    "encode_response",
    "request_header_version",
    "request_parts",
    "response_header_version",
    "response_parts",
    "split_response",
]

_REQUEST_START = struct.Struct(">hhi")
_FRAME_START = struct.Struct(">ihhi")
_CONTROLLED_SHUTDOWN = 7
_LONGEST_CLIENT_ID = 0x7FFF


class RequestHeader(NamedTuple):
    """A request's header as a broker reads it.

    ``is_known`` is False if the API or the version is not declared: the correlation id is right all the same, and
    ``body_offset`` is only a guess for an unknown API.
    """

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body_offset: int
    is_known: bool


def request_header_version(message: type[Message], version: int) -> int:
    """2 for flexible versions, else 1."""
    return 2 if message.is_flexible(version) else 1


def response_header_version(message: type[Message], version: int) -> int:
    """1 for flexible versions, else 0; always 0 for ApiVersions."""
    return 1 if message.is_flexible(version) and message.api_key != ApiKey.API_VERSIONS else 0


def request_parts(message: Request[Any], version: int, correlation_id: int, client_id: str | None) -> list[Buffer]:
    """Header and body in pieces; record sets are not copied.  Errors as :meth:`Message.encode`."""
    start = _REQUEST_START.pack(message.api_key, version, correlation_id)
    end = _encoded_client_id(client_id) + _no_tags(type(message), version)
    return [start + end, *message.encode_parts(version)]


class RequestHeads:
    """What stands before the requests of one client id: the size of the frame and the header.

    Only the size and the correlation id change from request to request of one API and version; the rest is kept.
    """

    def __init__(self, client_id: str | None) -> None:
        self._client_id = client_id
        self._ends: dict[tuple[type[Message], int], bytes] = {}

    def frame(self, message: Request[Any], version: int, correlation_id: int) -> list[Buffer]:
        """The whole frame in pieces, its size among them; record sets are not copied.

        Errors as :meth:`Message.encode`.
        """
        kind = type(message)
        end = self._ends.get((kind, version))
        if end is None:
            end = self._ends[kind, version] = _encoded_client_id(self._client_id) + _no_tags(kind, version)
        parts = message.encode_parts(version)
        size = _FRAME_START.size - INT32.size + len(end) + sum(map(len, parts))
        return [_FRAME_START.pack(size, kind.api_key, version, correlation_id) + end, *parts]


def _encoded_client_id(client_id: str | None) -> bytes:
    """With its length; -1 for None."""
    encoded = None if client_id is None else client_id.encode()
    if encoded is None:
        return INT16.pack(-1)
    if len(encoded) > _LONGEST_CLIENT_ID:
        raise LocalProtocolError(f"the client id has {len(encoded)} bytes; at most {_LONGEST_CLIENT_ID} are possible")
    return INT16.pack(len(encoded)) + encoded


def _no_tags(message: type[Message], version: int) -> bytes:
    return b"\0" if message.is_flexible(version) else b""


def encode_request(message: Request[Any], version: int, correlation_id: int, client_id: str | None) -> bytes:
    """Header and body, without the 4-byte size."""
    return b"".join(request_parts(message, version, correlation_id, client_id))


def split_response(message: type[Message], version: int, frame: Buffer) -> tuple[int, int]:
    """Correlation id of a response frame, and the offset of its body.

    ``message`` is the request or the response class; ``version`` is the one that was asked for.
    """
    if len(frame) < INT32.size:
        raise RemoteProtocolError(f"a response of {len(frame)} bytes has no correlation id", api=message.name)
    (correlation_id,) = INT32.unpack_from(frame)
    offset = INT32.size
    if response_header_version(message, version):
        offset = _skip_tags(frame, offset, message.name)
    return correlation_id, offset


def decode_request_header(frame: Buffer) -> RequestHeader:
    """The header of a request frame, for a broker; RemoteProtocolError if even that cannot be read."""
    if len(frame) < 8:
        raise RemoteProtocolError(f"a request of {len(frame)} bytes has no header")
    api_key, version = struct.unpack_from(">hh", frame)
    (correlation_id,) = INT32.unpack_from(frame, 4)
    if api_key == _CONTROLLED_SHUTDOWN and version == 0:
        return RequestHeader(api_key, version, correlation_id, None, 8, is_known=False)
    client_id, offset = _read_client_id(frame, 8)
    if api_key not in REGISTRY:
        return RequestHeader(api_key, version, correlation_id, client_id, offset, is_known=False)
    message = request_class(api_key)
    if message.is_flexible(version):
        offset = _skip_tags(frame, offset, message.name)
    return RequestHeader(api_key, version, correlation_id, client_id, offset, version in message.versions)


def response_parts(message: Response, version: int, correlation_id: int) -> list[Buffer]:
    """Header and body in pieces; record sets are not copied."""
    tags = b"\0" if response_header_version(type(message), version) else b""
    return [INT32.pack(correlation_id) + tags, *message.encode_parts(version)]


def encode_response(message: Response, version: int, correlation_id: int) -> bytes:
    """Header and body, without the 4-byte size."""
    return b"".join(response_parts(message, version, correlation_id))


def _read_client_id(frame: Buffer, offset: int) -> tuple[str | None, int]:
    if len(frame) < offset + 2:
        raise RemoteProtocolError(f"a request of {len(frame)} bytes has no client id")
    (size,) = INT16.unpack_from(frame, offset)
    offset += 2
    if size == -1:
        return None, offset
    end = offset + size
    if size < 0 or end > len(frame):
        raise RemoteProtocolError(f"client id of {size} bytes in a request of {len(frame)} bytes")
    try:
        return str(frame[offset:end], "utf-8"), end
    except UnicodeDecodeError:
        raise RemoteProtocolError("the client id is not UTF-8") from None


def _skip_tags(frame: Buffer, offset: int, api: str) -> int:
    """The offset after a tagged section; no tag of a header has a meaning yet."""
    count, offset = read_unsigned_varint(frame, offset)
    for _ in range(count):
        _, offset = read_unsigned_varint(frame, offset)
        size, offset = read_unsigned_varint(frame, offset)
        offset += size
        if offset > len(frame):
            raise RemoteProtocolError(f"a tagged field of the header runs past the end of {len(frame)} bytes", api=api)
    return offset
