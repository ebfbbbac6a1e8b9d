"""SaslAuthenticate: the tokens of the chosen mechanism.  Source: KIP-152, KIP-368."""

from __future__ import annotations

import time

from pykafka08.broker.call import Call, Reply
from pykafka08.broker.handlers import handles
from pykafka08.broker.security.mechanisms import Refused
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse

__all__ = ["sasl_authenticate"]

NOT_SASL = "SaslAuthenticate request received on a listener without SASL"


@handles(SaslAuthenticateRequest)
def sasl_authenticate(call: Call, request: SaslAuthenticateRequest) -> Reply:
    code = call.scripted_error()
    if code:
        return SaslAuthenticateResponse(error_code=code)
    if call.sasl is None:
        return SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=NOT_SASL)
    try:
        token, lifetime_ms = call.sasl.authenticate(bytes(request.auth_bytes), time.time())
    except Refused as refused:
        return SaslAuthenticateResponse(error_code=refused.code, error_message=str(refused), auth_bytes=b"")
    return SaslAuthenticateResponse(auth_bytes=token, session_lifetime_ms=lifetime_ms)
