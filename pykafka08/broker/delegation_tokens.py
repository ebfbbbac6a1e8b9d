"""Refusals of the delegation-token APIs, as brokers without a secret key have them (KIP-48)."""

from __future__ import annotations

from pykafka08.broker.call import Call
from pykafka08.error_codes import ErrorCode

__all__ = ["no_time", "token_error"]


def token_error(call: Call) -> int:
    """The error of each request: clients without authentication may not ask, and tokens are switched off."""
    code = call.scripted_error()
    if code:
        return code
    if not call.is_authenticated:
        return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    return ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED


def no_time(call: Call, code: int) -> int:
    """The timestamps of a refusal; the controllers of KRaft leave them out."""
    is_forwarded = code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED and not call.personality.has_zookeeper
    return 0 if is_forwarded else -1
