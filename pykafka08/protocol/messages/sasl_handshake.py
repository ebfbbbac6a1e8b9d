"""SaslHandshake: chooses the SASL mechanism of a connection (API key 17).

After version 0 the tokens follow as bare bytes with an int32 length, after 1 inside SaslAuthenticate.  Never flexible.
On UNSUPPORTED_SASL_MECHANISM the response tells which ones the broker has.

Versions, the first release with each, and what is new in it:

     0  0.10.0  bare tokens follow
     1  1.0     SaslAuthenticate follows (KIP-152)
"""

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
    """The mechanism that the client wants."""

    mechanism: str = string()


@message(key=17, versions="0-1")
class SaslHandshakeResponse(Response):
    """The mechanisms that the broker has."""

    error_code: int = int16()
    mechanisms: list[str] = array(string)
