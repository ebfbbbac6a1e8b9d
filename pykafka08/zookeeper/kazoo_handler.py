"""What kazoo runs on: its one thread, its sockets and its waiting.  Everything here happens in that thread, save abort.

kazoo's own handler has two more threads, for watches and for results, between which the order of things is lost; here
both are called at once, in the connection's thread, and hand over to the event loop.  Sockets are opened here, so that
TLS is checked, a hang can be cut short, and what a server answered first can be looked at.
"""

from __future__ import annotations

import os
import selectors
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from kazoo.handlers.threading import SequentialThreadingHandler

from pykafka08.config import Address
from pykafka08.errors import ConfigError

__all__ = ["Connection", "DialFailure", "Handler"]

# The length of the answer to a connection request, without and (from 3.4 on) with the flag of a read-only server.
ANSWER_LENGTHS = (36, 37)
ANSWER_HEAD = struct.Struct(">iii")  # length, protocol version, time-out in milliseconds
LEAST_DIAL_SECONDS = 1.0

_Selector: type[selectors.BaseSelector] = getattr(selectors, "PollSelector", selectors.SelectSelector)
"""One is made for each wait: these cost no system calls but the waiting itself, and epoll has five."""

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


class DialFailure(Exception):
    """Why an address could not be used; ``is_final`` if another try will end like this one."""

    def __init__(self, address: Address, text: str, *, is_final: bool = False) -> None:
        super().__init__(text)
        self.address = address
        self.text = text
        self.is_final = is_final


class Connection:
    """A socket as kazoo uses one, which notes what was agreed on in the first answer."""

    def __init__(self, sock: socket.socket, failed: Callable[[str], None]) -> None:
        self._socket = sock
        self._failed = failed
        self._head = b""
        self.opened_at = time.monotonic()
        self.session_timeout: float | None = None
        """Seconds, as the server has decided."""

    def fileno(self) -> int:
        return self._socket.fileno()

    def setblocking(self, flag: bool) -> None:
        self._socket.setblocking(bool(flag))

    def getpeername(self) -> Any:
        return self._socket.getpeername()

    def pending(self) -> int:
        """Bytes that TLS has unpacked and nobody has read: no selector sees them."""
        return self._socket.pending() if isinstance(self._socket, ssl.SSLSocket) else 0

    def send(self, data: Any) -> int:
        return self._socket.send(data)

    def recv(self, size: int) -> bytes:
        data = self._socket.recv(size)
        if len(self._head) < ANSWER_HEAD.size:
            self._look_at(data)
        return data

    def _look_at(self, data: bytes) -> None:
        if not data:
            self._failed("the connection was closed without an answer")
            return
        self._head += data
        if len(self._head) >= 4 and int.from_bytes(self._head[:4], "big") not in ANSWER_LENGTHS:
            self._failed("the answer is not ZooKeeper's")
            raise OSError("the answer is not ZooKeeper's")
        if len(self._head) >= ANSWER_HEAD.size:
            self.session_timeout = ANSWER_HEAD.unpack_from(self._head)[2] / 1000

    def drop(self) -> None:
        """From any thread: whoever reads it sees its end."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._socket.close()


class _Bell:
    """The writing end of the pair that wakes kazoo's thread.

    A full pair blocks the caller, which is the event loop; it then holds more bytes than there are calls to wake for.
    """

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._socket = sock

    def send(self, data: bytes) -> int:
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return len(data)

    def close(self) -> None:
        self._socket.close()


class Handler(SequentialThreadingHandler):  # type: ignore[misc]
    """``failed`` hears of each address that could not be used, ``crashed`` of an error that ended the thread."""

    name = "pykafka08"

    def __init__(
        self,
        thread_name: str,
        new_tls_context: Callable[[], ssl.SSLContext | None],
        *,
        failed: Callable[[DialFailure], None],
        crashed: Callable[[BaseException], None],
    ) -> None:
        super().__init__()
        self._thread_name = thread_name
        self._new_tls_context = new_tls_context
        self._failed = failed
        self._crashed = crashed
        self._is_aborted = threading.Event()
        self._abort_seen, self._abort = socket.socketpair()
        self.connection: Connection | None = None

    # -- threads

    @property
    def running(self) -> bool:
        """kazoo calls back at once if not."""
        return False

    def start(self) -> None:
        """No threads but the connection's."""

    def stop(self) -> None:
        """Nothing was started."""

    def spawn(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> threading.Thread:
        def run() -> None:
            try:
                func(*args, **kwargs)
            except Exception as error:  # noqa: BLE001 - the outer edge of the thread: told to the event loop
                self._crashed(error)

        thread = threading.Thread(target=run, name=self._thread_name, daemon=True)
        thread.start()
        return thread

    def dispatch_callback(self, callback: Any) -> None:
        callback.func(*callback.args)

    def sleep_func(self, seconds: float) -> None:
        self._is_aborted.wait(seconds)

    # -- ending

    def abort(self) -> None:
        """From any thread: every wait ends now, every later one at once."""
        self._is_aborted.set()
        with suppress(OSError):
            self._abort.send(b"\0")

    def close(self) -> None:
        self._abort.close()
        self._abort_seen.close()

    # -- sockets

    def create_socket_pair(self) -> tuple[socket.socket, _Bell]:
        reading, writing = socket.socketpair()
        return reading, _Bell(writing)

    def select(
        self, to_read: Sequence[Any], to_write: Sequence[Any], _: Sequence[Any], timeout: float | None = None
    ) -> tuple[list[Any], list[Any], list[Any]]:
        pending = [each for each in to_read if isinstance(each, Connection) and each.pending()]
        wanted = {READ: to_read, WRITE: to_write}
        with _Selector() as selector:
            for events, files in wanted.items():
                for file in files:
                    selector.register(file, events)
            selector.register(self._abort_seen, READ)
            found = selector.select(0 if pending else timeout)
        if self._is_aborted.is_set():
            raise OSError("the client is being closed")
        readable = [key.fileobj for key, events in found if events & READ]
        readable += [each for each in pending if each not in readable]
        return readable, [key.fileobj for key, events in found if events & WRITE], []

    def create_connection(self, address: Address, *, hostname: str, timeout: float, **_: Any) -> Connection:
        """kazoo's arguments for TLS do not matter: the files are read here, since they may have changed on disk."""
        named = (hostname, address[1])
        deadline = time.monotonic() + max(LEAST_DIAL_SECONDS, timeout)
        sock = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET, socket.SOCK_STREAM)
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setblocking(False)
            self._connect(sock, address, deadline)
            context = self._new_tls_context()
            if context is not None:
                sock = context.wrap_socket(sock, server_hostname=hostname, do_handshake_on_connect=False)
                self._shake_hands(sock, deadline)
        except (OSError, ConfigError) as error:
            sock.close()
            self._failed(_failure(named, error))
            raise OSError(getattr(error, "strerror", None) or str(error)) from error
        self.connection = Connection(sock, lambda text: self._failed(DialFailure(named, text)))
        return self.connection

    def _connect(self, sock: socket.socket, address: Address, deadline: float) -> None:
        with suppress(BlockingIOError):
            sock.connect(address)
            return
        self._wait(sock, WRITE, deadline)
        code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise OSError(code, os.strerror(code))

    def _shake_hands(self, sock: ssl.SSLSocket, deadline: float) -> None:
        while (wanted := _handshake_step(sock)) is not None:
            self._wait(sock, wanted, deadline)

    def _wait(self, sock: socket.socket, events: int, deadline: float) -> None:
        readable, writable, _ = self.select(
            [sock] if events == READ else [],
            [sock] if events == WRITE else [],
            [],
            max(0.0, deadline - time.monotonic()),
        )
        if not readable and not writable:
            raise TimeoutError("no answer in time")


def _handshake_step(sock: ssl.SSLSocket) -> int | None:
    """What to wait for, None when it is done."""
    try:
        sock.do_handshake()
    except ssl.SSLWantReadError:
        return READ
    except ssl.SSLWantWriteError:
        return WRITE
    return None


def _failure(address: Address, error: OSError | ConfigError) -> DialFailure:
    if isinstance(error, ConfigError):
        return DialFailure(address, str(error))
    if isinstance(error, ssl.SSLCertVerificationError):
        return DialFailure(address, f"its certificate was refused: {error.verify_message}", is_final=True)
    if isinstance(error, ssl.SSLError):
        return DialFailure(address, f"no TLS there: {error.reason or error}")
    return DialFailure(address, str(error.strerror or error))
