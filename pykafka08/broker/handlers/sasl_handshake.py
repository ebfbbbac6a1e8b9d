"""SaslHandshake: the mechanism of a connection.  Source: KIP-43, KIP-152."""

from __future__ import annotations

import time

from pykafka08.broker.call import Call, Reply
from pykafka08.broker.handlers import handles
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

__all__ = ["sasl_handshake"]


@handles(SaslHandshakeRequest)
def sasl_handshake(call: Call, request: SaslHandshakeRequest) -> Reply:
    code = call.scripted_error()
    if code:
        return SaslHandshakeResponse(error_code=code)
    if call.sasl is None:
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    mechanisms = call.cluster.protection.mechanisms
    code = call.sasl.handshake(request.mechanism, call.version, time.monotonic())
    return SaslHandshakeResponse(error_code=code, mechanisms=list(mechanisms))
