"""The border between a connection and its bytes: what each asks of the other, and what all transports share.

Here: the two sides of the border, and the one place where exceptions of the operating system and of the event loops
become ours.  Not here: name resolution and TCP (``tcp``, with ``tcp_asyncio`` and ``tcp_streams``), memory for tests
(``memory``), and what the frames mean (``machine``).

A frame that was started is written whole or the connection is closed: no caller's cancellation reaches a transport.
"""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Callable
from typing import NamedTuple, Protocol

from pykafka08.driver import TaskTree
from pykafka08.errors import KafkaError, TlsError, TransportError
from pykafka08.protocol.framing import FrameSplitter
from pykafka08.security.ssl_causes import ssl_error_in
from pykafka08.wire import Buffer

__all__ = ["Dial", "Link", "Security", "Tls", "Transport", "deliver", "lost_connection", "reason_of"]


class Link(Protocol):
    """What a transport asks of its owner.  Plain calls, all in the event loop's thread."""

    def data_to_send(self) -> list[Buffer]: ...

    def data_sent(self) -> None: ...

    def frame_received(self, frame: Buffer) -> None: ...

    def connection_lost(self, error: KafkaError) -> None:
        """The last call, made once, unless the owner closed it."""


class Transport(Protocol):
    """An open connection."""

    def wake_writer(self, *, at_once: bool = False) -> None:
        """The link has data to send: take and send it in this turn of the loop or as soon as the peer takes more.

        With ``at_once`` it may be taken before this returns; ``data_sent`` is called then, too.
        """

    def allow_frames(self, max_frame_bytes: int) -> None:
        """Take frames of up to so many bytes from now on."""

    def close(self) -> None:
        """Close at once; what is not sent is dropped and the link hears no more."""

    async def wait_closed(self) -> None:
        """Return when no socket and no task is left."""


class Tls(Protocol):
    """How connections are encrypted."""

    async def context(self) -> ssl.SSLContext:
        """The context for the next connection; certificates that have changed on disk are read again."""

    def error_of(self, error: BaseException, host: str, address: str) -> KafkaError:
        """The error of a handshake that failed with the peer at ``address``."""


class Security(NamedTuple):
    """What one TLS handshake needs: the context, and the name that the certificate must have."""

    context: ssl.SSLContext
    host: str


class Dial(Protocol):
    """Opens a transport before ``deadline`` (event loop's clock).

    TransportError, or TlsError if the TLS handshake failed, both without the broker.
    """

    async def __call__(
        self, link: Link, host: str, port: int, *, deadline: float, max_frame_bytes: int, tasks: TaskTree
    ) -> Transport: ...


def deliver(splitter: FrameSplitter, link: Callable[[], Link | None]) -> None:
    """Hand whole frames to the link, which may go away while it takes one."""
    for frame in splitter:
        receiver = link()
        if receiver is None:
            return
        receiver.frame_received(frame)


def reason_of(error: BaseException) -> str:
    """The operating system's words for an error, which anyio may have wrapped."""
    inner: BaseException | None = error
    while inner is not None and not (isinstance(inner, OSError) and inner.errno):
        inner = inner.__cause__ or inner.__context__
    if isinstance(inner, ssl.SSLError):  # its numbers are those of OpenSSL
        from pykafka08.security.tls_errors import openssl_reason  # here: a client without TLS need not load it

        return f"TLS: {openssl_reason(inner).replace('_', ' ').lower()}"
    if isinstance(inner, socket.gaierror):  # its numbers are not those of the system
        return inner.strerror or str(inner)
    if isinstance(inner, OSError) and inner.errno:
        return os.strerror(inner.errno)
    return str(error) or type(error).__name__


def lost_connection(error: BaseException | None, splitter: FrameSplitter) -> KafkaError:
    """The client's error for the end of a stream; ``error`` is None if the peer closed the connection.

    An alert is a TlsError: in TLS 1.3 a broker refuses a client's certificate after the client's part of the handshake.
    Kafka up to 3.0 sends bytes that cannot be decrypted before such an alert.  If the peer sends bytes that are not TLS
    instead of the first response, the error is a TlsError too, because another connection would fail in the same way.
    """
    if error is None:
        return TransportError("the peer closed the connection" + " inside a frame" * splitter.is_mid_frame)
    if (refusal := _tls_refusal_of(error, is_first=not splitter.has_received)) is not None:
        return refusal
    lost = TransportError(f"the connection was lost: {reason_of(error)}")
    lost.__cause__ = error
    return lost


def _tls_refusal_of(error: BaseException, *, is_first: bool) -> TlsError | None:
    inner = ssl_error_in(error)
    if inner is None:
        return None
    if "ALERT" not in (inner.reason or "") and not is_first:
        return None
    from pykafka08.security.tls_errors import alert_error, is_end  # here: a client without TLS need not load it

    if is_end(inner):
        return None
    refused = alert_error(inner)
    refused.__cause__ = error
    return refused
