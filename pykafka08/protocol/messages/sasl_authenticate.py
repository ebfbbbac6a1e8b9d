"""SaslAuthenticate: carries SASL tokens (API key 36).

Comes after SaslHandshake 1, as often as the mechanism has steps.

Versions, the first release with each, and what is new in it:

     0  1.0     (KIP-152)
     1  2.2     how long the session lasts before it must be renewed (KIP-368)
     2  2.5     compact forms, tagged fields (KIP-482)
"""

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
    """The client's token."""

    auth_bytes: bytes = bytes_()


@message(key=36, versions="0-2", flexible="2+")
class SaslAuthenticateResponse(Response):
    """The broker's token, or why it refused."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    auth_bytes: bytes = bytes_()
    session_lifetime_ms: int = int64(versions="1+", ignorable=True)  # 0 for no limit
