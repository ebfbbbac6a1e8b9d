"""The dial for a client's security protocol."""

from __future__ import annotations

import ssl
from functools import partial

import anyio.to_thread

from pykafka08.connection.tcp import open_tcp
from pykafka08.connection.transport import Dial
from pykafka08.errors import KafkaError
from pykafka08.security.settings import SecurityConfig

__all__ = ["dial_for"]


def dial_for(config: SecurityConfig) -> Dial:
    """TCP, or TLS over TCP; ConfigError if the certificates or keys that the settings name cannot be used."""
    return partial(open_tcp, tls=_Contexts(config)) if config.uses_tls else open_tcp


class _Contexts:
    """The TLS contexts of one client (:class:`pykafka08.connection.transport.Tls`)."""

    def __init__(self, config: SecurityConfig) -> None:
        # Imported here: a client without TLS need not load it.
        from pykafka08.security.tls import TlsContexts
        from pykafka08.security.tls_errors import tls_error

        self._contexts = TlsContexts(config)
        self._error_of = partial(tls_error, config=config)

    async def context(self) -> ssl.SSLContext:
        if self._contexts.is_current:
            return self._contexts.current()
        return await anyio.to_thread.run_sync(self._contexts.current)

    def error_of(self, error: BaseException, host: str, address: str) -> KafkaError:
        return self._error_of(error, host, address)
