"""Dialling: from a host and a port to an open TCP connection, on whichever event loop runs."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from typing import Any

import anyio

from pykafka08.connection import tcp_asyncio, tcp_streams
from pykafka08.connection.tcp_asyncio import AsyncioTransport
from pykafka08.connection.tcp_streams import StreamTransport
from pykafka08.connection.transport import Link, Security, Tls, Transport, reason_of
from pykafka08.driver import TaskTree
from pykafka08.errors import TransportError
from pykafka08.short_names import address_text, shortened

__all__ = ["open_tcp"]

SocketAddress = tuple[int, Any]
"""Address family, and what ``socket.connect`` takes."""


async def open_tcp(
    link: Link,
    host: str,
    port: int,
    *,
    deadline: float,
    max_frame_bytes: int,
    tasks: TaskTree,
    tls: Tls | None = None,
) -> Transport:
    """Connect to the first address of ``host`` that answers; the time left is shared among those not tried yet.

    With ``tls`` the connection is encrypted, and the peer's certificate is checked against ``host``.
    """
    # What a broker advertises may be anything, and the system's calls refuse it with errors of many kinds, or not.
    if not 0 < port < 65_536:
        raise TransportError(f"cannot connect to {address_text(host, port)}: ports are from 1 to 65535")
    if "\0" in host:
        raise TransportError(f"cannot connect to {shortened(host)!r}: it is not a host name")
    security = Security(await tls.context(), host) if tls is not None else None
    addresses = await resolve(host, port, deadline)
    failures = []
    for index, (family, address) in enumerate(addresses):
        now = anyio.current_time()
        share = max(0.0, deadline - now) / (len(addresses) - index)
        step = "answer"
        try:
            with anyio.fail_after(share):
                if asyncio._get_running_loop() is not None:
                    raw = await tcp_asyncio.connected(family, address)
                    step = "TLS handshake" if tls is not None else step
                    return await AsyncioTransport.over(link, raw, max_frame_bytes, security)
                stream = await tcp_streams.connected(address)
                step = "TLS handshake" if tls is not None else step
                return await StreamTransport.over(link, stream, max_frame_bytes, tasks, security)
        except TimeoutError:
            failures.append(_of(address[0], host) + f"no {step} within {share:.3g} s")
        except (OSError, anyio.BrokenResourceError, anyio.EndOfStream) as error:
            if tls is not None and step == "TLS handshake":
                raise tls.error_of(error, host, address_text(host, port)) from error
            failures.append(_of(address[0], host) + reason_of(error))
    raise TransportError(f"cannot connect to {address_text(host, port)} ({'; '.join(failures)})")


def _of(address: str, host: str) -> str:
    """The address as a prefix of its error; empty if the host was given as an address."""
    return "" if address == host else f"{address}: "


async def resolve(host: str, port: int, deadline: float) -> list[SocketAddress]:
    """All addresses of ``host``, in the system's order, each once."""
    try:
        version = ipaddress.ip_address(host).version
    except ValueError:
        pass
    else:
        return [(socket.AF_INET6, (host, port, 0, 0)) if version == 6 else (socket.AF_INET, (host, port))]
    try:
        with anyio.fail_after(max(0.0, deadline - anyio.current_time())):
            found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except TimeoutError:
        raise TransportError(f"the name {shortened(host)!r} was not resolved in time") from None
    except (OSError, UnicodeError) as error:
        raise TransportError(f"the name {shortened(host)!r} cannot be resolved: {reason_of(error)}") from error
    return list(dict.fromkeys((int(family), address) for family, _, _, _, address in found))
