"""TLS handshakes in memory."""

from __future__ import annotations

import ssl
from typing import Any

import pytest

from pykafka08.errors import TlsError
from pykafka08.security.settings import SecurityConfig
from pykafka08.security.tls import TlsContexts
from pykafka08.security.tls_errors import tls_error

__all__ = ["ADDRESS", "HOST", "config", "handshake", "refused"]

HOST, ADDRESS = "kafka.example.com", "kafka.example.com:9093"


def config(**settings: Any) -> SecurityConfig:
    return SecurityConfig(security_protocol="SSL", **settings)


def handshake(client: ssl.SSLContext, server: ssl.SSLContext, host: str = HOST) -> ssl.SSLObject:
    """A handshake in memory; returns the server's side.  Raises what the client raises, else what the server raises."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(to_client, to_server, server_hostname=host)
    theirs = server.wrap_bio(to_server, to_client, server_side=True)
    refusal: ssl.SSLError | None = None
    for _ in range(6):
        try:
            ours.do_handshake()
            ours.read(1)  # what comes after the handshake of TLS 1.3
        except ssl.SSLWantReadError:
            pass
        try:
            theirs.do_handshake()
            theirs.write(b"x" * 20)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            refusal = refusal or error
    if refusal is not None:
        raise refusal
    return theirs


def refused(settings: SecurityConfig, server: ssl.SSLContext, host: str = HOST) -> TlsError:
    with pytest.raises(ssl.SSLError) as caught:
        handshake(TlsContexts(settings).current(), server, host)
    return tls_error(caught.value, host, ADDRESS, settings)
