"""One kazoo client, as the event loop sees it: calls go in, and everything that happens comes out as a list of reports.

kazoo's thread and the event loop meet in two places: :meth:`KazooSession.submit`, under a lock that also says whether
there is a connection, and ``report``, which the thread calls in the order things happen.  No secret is logged: kazoo's
lines of DEBUG and below, which show credentials and the session's password, are dropped, and its exceptions are logged
without their frames, whose local variables are the credentials.
"""

from __future__ import annotations

import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient
from kazoo.protocol.states import EventType, KazooState, KeeperState
from kazoo.retry import KazooRetry

from pykafka08.driver import Waiter, library_logger
from pykafka08.zookeeper.events import Kind
from pykafka08.zookeeper.kazoo_handler import DialFailure, Handler
from pykafka08.zookeeper.requests import Request
from pykafka08.zookeeper.settings import ZooKeeperConfig

__all__ = [
    "Call",
    "CallEnded",
    "Crashed",
    "KazooSession",
    "LinkDown",
    "LinkUp",
    "NotReached",
    "Refused",
    "Report",
    "Stopped",
    "WatchFired",
]

log = library_logger("zookeeper")

_KINDS = {
    EventType.CREATED: Kind.CREATED,
    EventType.DELETED: Kind.DELETED,
    EventType.CHANGED: Kind.CHANGED,
    EventType.CHILD: Kind.CHILDREN,
}
RECONNECT_DELAY = 0.1
MOST_RECONNECT_DELAY = 0.5
"""kazoo's own is an hour."""
MOST_PLACES = 5
"""Frames of an exception that a log line names."""


class Call:
    """One request on its way, and where its answer is awaited."""

    __slots__ = ("answer", "path", "request", "sent_at", "session_number")

    def __init__(self, request: Request, path: str | None) -> None:
        self.request = request
        self.path = path
        self.answer: Waiter[Any] = Waiter()
        self.sent_at: float | None = None
        """When it was given to kazoo; None until then."""
        self.session_number = 0


@dataclass(frozen=True)
class CallEnded:
    call: Call
    result: Any
    error: Exception | None


@dataclass(frozen=True)
class LinkUp:
    session_id: int
    session_timeout: float
    sent_at: float


@dataclass(frozen=True)
class LinkDown:
    is_expired: bool


@dataclass(frozen=True)
class Refused:
    """The credentials were; kazoo has given up."""


@dataclass(frozen=True)
class NotReached:
    failure: DialFailure


@dataclass(frozen=True)
class WatchFired:
    path: str
    """With the chroot."""
    kind: Kind


@dataclass(frozen=True)
class Crashed:
    error: BaseException


@dataclass(frozen=True)
class Stopped:
    pass


Report = CallEnded | LinkUp | LinkDown | Refused | NotReached | WatchFired | Crashed | Stopped


class KazooSession:
    """``report(session, what)`` is called in kazoo's thread, or in the caller's, and must not block."""

    def __init__(self, config: ZooKeeperConfig, report: Callable[[KazooSession, Report], None]) -> None:
        self._report: Callable[[Report], None] = lambda what: report(self, what)
        self._lock = threading.Lock()
        self._is_open = False
        self._handler = Handler(
            f"pykafka08 zookeeper {config.name}".rstrip(),
            config.tls_context,
            failed=lambda failure: self._report(NotReached(failure)),
            crashed=lambda error: self._report(Crashed(error)),
        )
        self._client = KazooClient(
            hosts=config.shown_servers,
            timeout=config.session_timeout_ms / 1000,
            handler=self._handler,
            auth_data=config.credentials(),
            sasl_options=config.sasl_options(),
            connection_retry=KazooRetry(
                max_tries=-1,
                delay=RECONNECT_DELAY,
                max_delay=MOST_RECONNECT_DELAY,
                sleep_func=self._handler.sleep_func,
            ),
            logger=_KazooLog(config.name, self._unresolved),
            use_ssl=config.tls,
        )
        self._ports = dict(config.addresses)
        self._client.add_listener(self._state_changed)
        self._closer: threading.Thread | None = None
        self.in_flight: set[Call] = set()

    @property
    def is_open(self) -> bool:
        """kazoo has a connection."""
        return self._is_open

    def start(self) -> None:
        """Connect, and go on doing so, in a thread."""
        self._client.start_async()

    def submit(self, call: Call) -> bool:
        """Send it now; False if there is no connection."""
        with self._lock:
            if not self._is_open:
                return False
            call.sent_at = time.monotonic()
            self.in_flight.add(call)
            try:
                pending = call.request.start(self._client, self._watch_fired)
            except Exception as error:  # noqa: BLE001 - what kazoo finds wrong with the arguments
                self._report(CallEnded(call, None, error))
                return True
        pending.rawlink(lambda ended: self._report(CallEnded(call, ended.value, ended.exception)))
        return True

    def _watch_fired(self, event: Any) -> None:
        """The one watcher of all watches.  Without a path: kazoo has dropped them with the connection."""
        if event.path is not None:
            self._report(WatchFired(event.path, _KINDS[event.type]))

    def drop_connection(self) -> None:
        connection = self._handler.connection
        if connection is not None:
            connection.drop()

    def begin_stop(self) -> None:
        """End the session if a server can be told, and the thread; :class:`Stopped` is reported at the end."""
        self._closer = threading.Thread(target=self._stop, name="pykafka08 zookeeper close", daemon=True)
        self._closer.start()

    def join(self) -> None:
        """After :class:`Stopped`, whose report is the last thing that its thread does."""
        if self._closer is not None:
            self._closer.join(timeout=1)

    def abort(self) -> None:
        """Do not wait for servers any more."""
        self._handler.abort()
        self.drop_connection()

    def _stop(self) -> None:
        try:
            _end(self._client.stop)
            _end(self._client.close)
            self._handler.close()
        finally:
            self._report(Stopped())

    def _unresolved(self, host: str, error: OSError) -> None:
        address = (host, self._ports.get(host, 0))
        is_final = error.errno == socket.EAI_NONAME
        self._report(NotReached(DialFailure(address, "the name is not known", is_final=is_final)))

    def _state_changed(self, state: str) -> None:
        if state == KazooState.CONNECTED:
            connection = self._handler.connection
            assert connection is not None
            timeout = connection.session_timeout or 0.0
            with self._lock:
                self._is_open = True
            self._report(LinkUp(self._client.client_id[0], timeout, connection.opened_at))
            return
        with self._lock:
            self._is_open = False
        if state == KazooState.SUSPENDED:
            # A call that slipped in after kazoo had failed the others would leave with the next connection, when
            # nobody waits for it any more.
            self._client._notify_pending(KeeperState.CONNECTING)
            self._report(LinkDown(is_expired=False))
        elif self._client.client_state == KeeperState.AUTH_FAILED:
            self._report(Refused())
        else:
            self._report(LinkDown(is_expired=True))


def _end(call: Callable[[], object]) -> None:
    try:
        call()
    except Exception as error:  # noqa: BLE001 - kazoo's own; its thread ends all the same
        log.debug("zookeeper.close_failed", cause=repr(error))


class _KazooLog:
    """kazoo's logger: what it says at INFO and above, as our DEBUG, without the arguments that could hold a secret."""

    def __init__(self, name: str, unresolved: Callable[[str, OSError], None]) -> None:
        self._unresolved = unresolved
        self._log = library_logger("zookeeper.kazoo")
        self._facts = {"client": name} if name else {}

    def _say(self, template: str, *args: Any, **_: Any) -> None:
        if template.startswith("Cannot resolve"):
            self._unresolved(args[0], args[1])  # kazoo tells of it in no other way
        text = template % args if "request" not in template else template
        self._log.debug("kazoo", says=text, **self._facts)

    info = warning = warn = error = _say

    def exception(self, template: str, *args: Any, **_: Any) -> None:
        kind, error, frames = sys.exc_info()
        places = [f"{Path(each.filename).name}:{each.lineno} {each.name}" for each in traceback.extract_tb(frames)]
        cause = f"{kind.__name__}: {error}" if kind is not None else None
        self._log.debug("kazoo", says=template, cause=cause, places=places[-MOST_PLACES:], **self._facts)

    def debug(self, *_: Any, **__: Any) -> None:
        """Dropped."""

    def log(self, level: int, *_: Any, **__: Any) -> None:
        """kazoo uses it for DEBUG and less alone."""
