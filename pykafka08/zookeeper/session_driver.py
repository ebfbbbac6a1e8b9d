"""The driver of one client's sessions: calls wait here, kazoo gets them, and what it reports goes to clock and callers.

All of it runs in the event loop; kazoo's thread reaches it through the inbox alone, in the order things happen.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Any

import anyio

from pykafka08.driver import TaskTree, Waiter, Wakeup, library_logger
from pykafka08.errors import (
    ClosedError,
    KafkaError,
    SessionExpiredError,
    ZooKeeperAuthError,
    ZooKeeperConnectionError,
)
from pykafka08.zookeeper import requests
from pykafka08.zookeeper.events import Connected, Event, Kind, NodeEvent, SessionLost
from pykafka08.zookeeper.hand_over import Inbox
from pykafka08.zookeeper.kazoo_handler import DialFailure
from pykafka08.zookeeper.kazoo_session import (
    Call,
    CallEnded,
    Crashed,
    KazooSession,
    LinkDown,
    LinkUp,
    NotReached,
    Refused,
    Report,
    Stopped,
    WatchFired,
)
from pykafka08.zookeeper.session import DropConnection, Heartbeat, Renew, SessionClock, State, Tell
from pykafka08.zookeeper.settings import ZooKeeperConfig

__all__ = ["SessionDriver"]

MOST_IN_FLIGHT = 128
"""Calls that kazoo has at a time; the others wait here, where they can be taken back."""
HEARTBEAT = requests.exists("/")
GOODBYE_SECONDS = 2.0
ABORT_SECONDS = 5.0
RENEWAL_PAUSE = 0.1
"""A server whose answers kazoo dies of is not asked without pause."""


class SessionDriver:
    """One client: any number of sessions, one after the other."""

    def __init__(self, config: ZooKeeperConfig) -> None:
        self._config = config
        self.clock = SessionClock(self._config.session_timeout_ms / 1000)
        self._tasks = TaskTree()
        self._inbox: Inbox[tuple[KazooSession, Report]] = Inbox(self._put_in)
        self._kazoo: KazooSession | None = None
        self._to_renew: KazooSession | None = None
        self._stopping: dict[KazooSession, Waiter[None]] = {}
        self._outbox: deque[Call] = deque()
        self._waiting: set[Call] = set()
        """All calls whose end somebody waits for."""
        self._watches: set[tuple[str, bool]] = set()
        """Path, and whether its children are watched."""
        self._events: deque[Event] = deque()
        self._news = Wakeup()
        self._turn = Wakeup()
        self._causes: dict[str, str] = {}
        self._final: set[str] = set()
        self._failure: KafkaError | None = None
        self.is_opening = True
        self._is_closed = False
        self._log = library_logger("zookeeper")

    # -- life

    async def open(self) -> None:
        """Begin to connect; ``is_opening`` is set to False by whoever has seen that it works."""
        await self._tasks.__aenter__()
        self._inbox.open()
        self._start_kazoo()
        self._tasks.start("session", self._run)

    async def aclose(self) -> None:
        """End the session, and with it its ephemeral nodes; nothing of it remains in this process."""
        if self._is_closed:
            return
        self._tasks.check_affinity()
        self._is_closed = True
        self._end_calls(ClosedError("the ZooKeeper client is closed"))
        self._events.clear()
        self._news.set()
        with anyio.CancelScope(shield=True):
            if self._kazoo is not None:
                await self._stop_kazoo(self._kazoo)
            for stopped in tuple(self._stopping.values()):
                with anyio.move_on_after(ABORT_SECONDS):
                    await stopped
            await self._tasks.aclose()
        self._inbox.close()
        self.clock.expired(time.monotonic())

    def unreachable(self, when: str = "") -> ZooKeeperConnectionError:
        causes = "; ".join(f"{address}: {text}" for address, text in self._causes.items()) or "no answer"
        return ZooKeeperConnectionError(
            f"no ZooKeeper of {self._config.shown_servers} could be reached{when} ({causes})", causes=self._causes
        )

    def _start_kazoo(self) -> None:
        self._kazoo = KazooSession(self._config, lambda session, report: self._inbox.put((session, report)))
        self._kazoo.start()

    async def _stop_kazoo(self, session: KazooSession) -> None:
        """Say goodbye if there is a connection; no server can make this last long."""
        self._kazoo = None if session is self._kazoo else self._kazoo
        stopped = self._stopping[session] = Waiter()
        session.begin_stop()
        with anyio.CancelScope(shield=True):
            if session.is_open:
                with anyio.move_on_after(GOODBYE_SECONDS):
                    await stopped
            if not stopped.is_done:
                session.abort()
                with anyio.move_on_after(ABORT_SECONDS):
                    await stopped
        self._stopping.pop(session, None)
        if not stopped.is_done:
            self._log.warning("a thread of kazoo has not ended", servers=self._config.shown_servers)
        else:
            session.join()

    async def _renew(self, session: KazooSession) -> None:
        await self._stop_kazoo(session)
        await anyio.sleep(RENEWAL_PAUSE)
        if not self._is_closed:
            self._start_kazoo()

    async def _run(self) -> None:
        """The session's clock."""
        while True:
            self._drain()
            self._poll()
            session, self._to_renew = self._to_renew, None
            if session is not None:
                await self._renew(session)
                continue
            wakeup = self.clock.next_wakeup()
            now = time.monotonic()
            await self._turn.wait(None if wakeup is None else anyio.current_time() + max(0.0, wakeup - now))

    # -- what is known

    @property
    def is_connected(self) -> bool:
        return self.clock.state is State.CONNECTED

    @property
    def servers(self) -> str:
        """``host:port,host:port/chroot``, as given."""
        return self._config.shown_servers + self._config.chroot

    @property
    def trouble(self) -> str | None:
        """In words, what is wrong while there is no connection."""
        if self._failure is not None:
            return str(self._failure)
        if self.clock.state is State.CONNECTED or self._is_closed:
            return None
        causes = "; ".join(f"{address}: {text}" for address, text in self._causes.items())
        return f"no connection to ZooKeeper {self.servers}" + (f" ({causes})" if causes else "")

    # -- events

    async def next_event(self, timeout: float | None = None) -> Event | None:
        """The next of the one ordered stream of events; None when ``timeout`` passes first.  For one reader."""
        deadline = None if timeout is None else anyio.current_time() + timeout
        while True:
            event = self.next_event_nowait()
            if event is not None:
                return event
            if deadline is not None and anyio.current_time() >= deadline:
                return None
            await self._news.wait(deadline)

    def next_event_nowait(self) -> Event | None:
        if self._events:
            return self._events.popleft()
        self.check()
        return None

    async def ask(self, request: requests.Request, path: str | None, deadline: float) -> Any:
        self.check()
        call = self.send(request, path)
        try:
            with anyio.CancelScope(deadline=deadline):
                return await call.answer
        finally:
            self.forget(call)  # who has gone is not answered; what has not left, never leaves
        raise ZooKeeperConnectionError(
            self.trouble or f"ZooKeeper {self.servers} did not answer in time",
            path=path,
            causes=self._causes,
            may_be_written=call.sent_at is not None and request.is_change,
        )

    def _below(self, path: str) -> str:
        """Without the chroot."""
        return path[len(self._config.chroot) :] or "/"

    def send(self, request: requests.Request, path: str | None) -> Call:
        call = Call(request, path)
        self._waiting.add(call)
        self._outbox.append(call)
        self._flush()
        return call

    def forget(self, call: Call) -> None:
        """Nobody waits for it any more."""
        self._waiting.discard(call)
        if call in self._outbox:
            self._outbox.remove(call)

    def _flush(self) -> None:
        """Give kazoo what it may have; not over a connection that the clock does not know of."""
        kazoo = self._kazoo
        while self._outbox and kazoo is not None and self.is_connected and len(kazoo.in_flight) < MOST_IN_FLIGHT:
            call = self._outbox[0]
            call.session_number = self.clock.number
            if not kazoo.submit(call):
                return
            self._outbox.popleft()

    def check(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._is_closed:
            raise ClosedError("the ZooKeeper client is closed")
        self._tasks.check()

    def _end_calls(self, error: KafkaError) -> None:
        waiting, self._waiting = self._waiting, set()
        self._outbox.clear()
        for call in waiting:
            call.answer.set_exception(_of_call(error, call))

    # -- what kazoo reports

    def _put_in(self) -> None:
        """Handle reports of the session's thread, outside any task; the client's next call raises an error."""
        try:
            self._drain()
        except Exception as error:  # noqa: BLE001 - raised by a callback
            self._tasks.fail("the ZooKeeper client failed on a report of its thread", error)

    def _drain(self) -> None:
        for session, report in self._inbox.take():
            if isinstance(report, CallEnded):
                self._call_ended(session, report)
            elif isinstance(report, Stopped):
                self._stopping.pop(session, Waiter()).set_result(None)
            elif session is self._kazoo:
                self._reported(session, report)
        self._flush()
        if self.clock.has_actions:
            self._turn.set()

    def _reported(self, session: KazooSession, report: Report) -> None:
        now = time.monotonic()
        if isinstance(report, LinkUp):
            self._causes.clear()
            self.clock.connected(report.session_id, report.session_timeout, report.sent_at)
            self._turn.set()
        elif isinstance(report, LinkDown):
            (self.clock.expired if report.is_expired else self.clock.disconnected)(now)
        elif isinstance(report, WatchFired):
            self._watch_fired(self._below(report.path), report.kind)
        elif isinstance(report, NotReached):
            self._not_reached_at(report.failure)
        elif isinstance(report, Refused):
            self._fail(ZooKeeperAuthError(f"ZooKeeper {self.servers} refused the credentials"))
        elif isinstance(report, Crashed):
            self._crashed(session, report.error)

    def _watch_fired(self, path: str, kind: Kind) -> None:
        """A deleted node ends both of its watches, and is told of once."""
        ended = {(path, True), (path, False)} if kind is Kind.DELETED else {(path, kind is Kind.CHILDREN)}
        if self._watches & ended:
            self._watches -= ended
            self._tell(NodeEvent(path, kind))

    def _not_reached_at(self, failure: DialFailure) -> None:
        host, port = failure.address
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self._causes[address] = failure.text
        if failure.is_final:
            self._final.add(address)
        if self.is_opening and len(self._final) >= len(self._config.addresses):
            self._fail(self.unreachable())

    def _crashed(self, session: KazooSession, error: BaseException) -> None:
        if self._config.sasl_mechanism is not None and requests.is_sasl_failure(error):
            self._fail(ZooKeeperAuthError(f"ZooKeeper {self.servers} refused the credentials: {error}"))
            return
        self._log.warning("kazoo has failed; a new session is opened", error=repr(error), servers=self.servers)
        self.clock.expired(time.monotonic())
        self._to_renew = session
        self._turn.set()

    def _fail(self, error: KafkaError) -> None:
        """For good."""
        if self._failure is None:
            self._failure = error
            self._end_calls(error)
            self._news.set()

    def _call_ended(self, session: KazooSession, ended: CallEnded) -> None:
        call, error = ended.call, ended.error
        if call not in session.in_flight:
            return  # kazoo says some things twice
        session.in_flight.discard(call)
        if requests.is_servers_answer(error) and call.sent_at is not None:
            self.clock.answered(call.sent_at, call.session_number)
            if call.request.watches is not None and not isinstance(error, Exception):
                self._watches.add((self._below(call.request.watches), call.request.watches_children))
        if call not in self._waiting:
            return
        if error is not None and requests.is_connection_loss(error) and not call.request.is_change:
            self._outbox.append(call)
            return
        self._waiting.discard(call)
        if error is None:
            try:
                call.answer.set_result(call.request.value(ended.result))
            except KafkaError as failed:  # one of several operations
                call.answer.set_exception(failed)
        elif requests.is_connection_loss(error):
            call.answer.set_exception(
                ZooKeeperConnectionError(
                    f"the connection to ZooKeeper {self.servers} ended before the answer came; "
                    "the change may have been made",
                    path=call.path,
                    may_be_written=True,
                )
            )
        else:
            call.answer.set_exception(requests.error_of(error, call.path))

    # -- what the clock says

    def _poll(self) -> None:
        for action in self.clock.poll(time.monotonic()):
            if isinstance(action, Tell):
                self._tell(action.event)
            elif isinstance(action, Heartbeat):
                self._beat()
            elif self._kazoo is None:
                continue
            elif isinstance(action, DropConnection):
                self._log.info("ZooKeeper is silent; the connection is closed", servers=self.servers)
                self._kazoo.drop_connection()
            elif isinstance(action, Renew):
                self._to_renew = self._kazoo
        self._flush()

    def _beat(self) -> None:
        call = Call(HEARTBEAT, None)
        call.session_number = self.clock.number
        if self._kazoo is not None:
            self._kazoo.submit(call)

    def _tell(self, event: Event) -> None:
        self._events.append(event)
        self._news.set()
        if isinstance(event, NodeEvent):
            return
        self._log.info("session", change=type(event).__name__, servers=self.servers)
        if isinstance(event, SessionLost):
            self._end_calls(SessionExpiredError("the ZooKeeper session is over, or may be by now"))
        elif isinstance(event, Connected):
            watches, self._watches = self._watches, set()
            for path, is_of_children in sorted(watches):
                self._tell(NodeEvent(path, Kind.CHILDREN if is_of_children else Kind.CHANGED))


def _of_call(error: KafkaError, call: Call) -> KafkaError:
    """The error, with the path that this call was for."""
    if not isinstance(error, SessionExpiredError):
        return error
    return SessionExpiredError(error.message, path=call.path)
