"""The TLS fault behind an error of a stream.  Small: a client without TLS loads it too."""

from __future__ import annotations

import ssl

__all__ = ["ssl_error_in"]

_NO_FAULTS = (ssl.SSLWantReadError, ssl.SSLWantWriteError)
"""OpenSSL waits for the socket.  If the socket then fails, its error has one of these as its context."""


def ssl_error_in(error: BaseException | None) -> ssl.SSLError | None:
    """The first TLS fault among an error and its causes; None if the connection failed for another reason."""
    inner = error
    while inner is not None and (not isinstance(inner, ssl.SSLError) or isinstance(inner, _NO_FAULTS)):
        inner = inner.__cause__ or inner.__context__
    return inner
