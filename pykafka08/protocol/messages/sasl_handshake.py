"""SaslHandshake (API key 17)."""

from __future__ import annotations

from pykafka08.protocol.schema import (
    Request,
    Response,
    array,
    int16,
    message,
    string,
)

__all__ = ["SaslHandshakeRequest", "SaslHandshakeResponse"]


@message(key=17, versions="0-1")
class SaslHandshakeRequest(Request["SaslHandshakeResponse"]):
    """SaslHandshakeRequest."""

    mechanism: str = string()


@message(key=17, versions="0-1")
class SaslHandshakeResponse(Response):
    """SaslHandshakeResponse."""

    error_code: int = int16()
    mechanisms: list[str] = array(string)
