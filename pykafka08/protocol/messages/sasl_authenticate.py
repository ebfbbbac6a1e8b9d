"""SaslAuthenticate (API key 36)."""

from __future__ import annotations

from pykafka08.protocol.schema import (
    Request,
    Response,
    bytes_,
    int16,
    int64,
    message,
    string,
)

__all__ = ["SaslAuthenticateRequest", "SaslAuthenticateResponse"]


@message(key=36, versions="0-2", flexible="2+")
class SaslAuthenticateRequest(Request["SaslAuthenticateResponse"]):
    """SaslAuthenticateRequest."""

    auth_bytes: bytes = bytes_()


@message(key=36, versions="0-2", flexible="2+")
class SaslAuthenticateResponse(Response):
    """SaslAuthenticateResponse."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    auth_bytes: bytes = bytes_()
    session_lifetime_ms: int = int64(versions="1+", ignorable=True)
