"""EmbeddedZooKeeper: a real ZooKeeper server on a loopback socket, and what can go wrong with one.

async with EmbeddedZooKeeper() as zookeeper:
    ...  # any ZooKeeper client at zookeeper.address
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from pykafka08.broker.checks import check_host, check_number
from pykafka08.broker.listener import Listener, Peer, bind, listen
from pykafka08.broker.security.protection import hidden_passwords
from pykafka08.broker.session import Output
from pykafka08.broker.zookeeper.access import OPEN
from pykafka08.broker.zookeeper.codes import Fault, Operation
from pykafka08.broker.zookeeper.conversation import Conversation
from pykafka08.broker.zookeeper.service import Observer, Service
from pykafka08.broker.zookeeper.sessions import Sessions
from pykafka08.broker.zookeeper.tree import EPHEMERAL, SEQUENCE
from pykafka08.driver import TaskTree, Wakeup
from pykafka08.errors import BadVersionError, ClosedError, ConfigError, NodeExistsError, NoNodeError, ZooKeeperError

__all__ = ["EmbeddedZooKeeper"]

T = TypeVar("T")

LOOPBACK = "127.0.0.1"
LONGEST_SESSION_MS = 2**31 - 1
_ERRORS = {"NO_NODE": NoNodeError, "NODE_EXISTS": NodeExistsError, "BAD_VERSION": BadVersionError}


def _words(given: Collection[str]) -> frozenset[str]:
    if isinstance(given, str) or not isinstance(given, Collection) or not all(isinstance(each, str) for each in given):
        raise ConfigError(f"four_letter_words={given!r:.100} is not a collection of words such as 'ruok'")
    return frozenset(given)


class EmbeddedZooKeeper:
    """One server that plays ZooKeeper ``release``: "3.3", "3.4" or "3.8".  Its nodes live in memory and go with it.

    Sessions are granted time-outs from ``min_session_timeout_ms`` to ``max_session_timeout_ms``; one that is silent
    ends at the next multiple of ``tick_ms`` after its time-out.  (Real servers have ticks of 2000 ms, and give a
    session two of them at least.)  ``four_letter_words`` are those that are answered; None for those of the release.

    ``users`` are names and passwords for SASL's DIGEST-MD5; for the scheme "digest" any will do, as in real servers.

    The plain calls act at once, as a client without a session that no access list binds; faults are those methods
    whose names say so: ``stop``, ``pause``, ``cut``, ``expire_session``, ``hold_answers``, ``lose_answer``.
    """

    def __init__(
        self,
        *,
        release: str = "3.8",
        host: str = LOOPBACK,
        port: int = 0,
        tick_ms: int = 100,
        min_session_timeout_ms: int | None = None,
        max_session_timeout_ms: int = 60_000,
        four_letter_words: Collection[str] | None = None,
        users: Mapping[str, str] | None = None,
    ) -> None:
        check_host(host)
        check_number("port", port, 0, 65535)
        check_number("tick_ms", tick_ms, 1, 60_000)
        check_number("max_session_timeout_ms", max_session_timeout_ms, 1, LONGEST_SESSION_MS)
        least = 2 * tick_ms if min_session_timeout_ms is None else min_session_timeout_ms
        check_number("min_session_timeout_ms", least, 1, max_session_timeout_ms)
        self._host, self._port = host, port
        words = None if four_letter_words is None else _words(four_letter_words)
        self._service = Service(
            release, Sessions(tick_ms / 1000, least / 1000, max_session_timeout_ms / 1000), allowed_words=words
        )
        self._service.touched = self._wake
        self._service.passwords = hidden_passwords(users)
        self._tasks = TaskTree()
        self._listener: Listener | None = None
        self._wakeup = Wakeup()
        self._resumed: list[Callable[[], None]] = []
        self._is_entered = False

    # -- life

    async def __aenter__(self) -> EmbeddedZooKeeper:
        if self._is_entered:
            raise ClosedError("an embedded ZooKeeper cannot be reused; create a new one")
        self._is_entered = True
        loop = asyncio._get_running_loop()
        if loop is not None:
            self._service.now = loop.time
        else:
            import trio

            self._service.now = trio.current_time
        await self._tasks.__aenter__()
        try:
            self._tasks.start("sessions of the embedded ZooKeeper", self._expire_sessions)
            await self.start()
        except BaseException:
            await self._tasks.aclose()
            raise
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: Any) -> None:
        if self._listener is not None:
            await self.stop()
        await self._tasks.aclose()
        if kind is None and self._tasks.failure is not None:
            raise self._tasks.failure

    async def aclose(self) -> None:
        """Stop the server, as leaving the block does; raises ClientFailedError if one of its tasks has failed."""
        await self.__aexit__(None)

    async def start(self) -> None:
        """Take connections, at the port it had; every session has its whole time-out again."""
        if self._listener is not None:
            raise ConfigError("the embedded ZooKeeper is running already")
        bound = bind(self._host, self._port)
        self._port = bound.getsockname()[1]
        self._service.is_paused = False
        self._service.sessions.restarted(self._service.now())
        self._listener = await listen(bound, self._connected, self._tasks)
        self._wake()
        for observer in tuple(self._resumed):
            observer()

    async def stop(self) -> None:
        """Close everything at once.  Nodes and sessions stay, and no time passes for them."""
        if self._listener is None:
            raise ConfigError("the embedded ZooKeeper is stopped already")
        listener, self._listener = self._listener, None
        self._service.is_paused = True
        await listener.aclose()

    def _connected(self, peer: Peer, output: Output) -> Conversation:
        return Conversation(self._service, peer.host, output)

    def _wake(self) -> None:
        self._wakeup.set()

    async def _expire_sessions(self) -> None:
        while True:
            await self._wakeup.wait(self._service.expire_due())

    # -- what it is

    @property
    def address(self) -> str:
        """``host:port``, as clients take it; a chroot may be put behind it."""
        return f"[{self._host}]:{self._port}" if ":" in self._host else f"{self._host}:{self._port}"

    @property
    def port(self) -> int:
        return self._port

    @property
    def is_running(self) -> bool:
        return self._listener is not None

    @property
    def is_serving(self) -> bool:
        """Neither stopped nor paused."""
        return self._listener is not None and not self._service.is_paused

    def when_serving(self, observer: Callable[[], None]) -> Callable[[], None]:
        """Call ``observer`` when it serves again; what is returned ends that."""
        self._resumed.append(observer)
        return lambda: self._resumed.remove(observer)

    @property
    def sessions(self) -> dict[int, float]:
        """The living sessions, and their time-outs in seconds."""
        return {each.id: each.timeout for each in self._service.sessions}

    @property
    def connections(self) -> int:
        return len(self._service.connections)

    @property
    def requests_served(self) -> int:
        return self._service.requests_served

    @property
    def watches(self) -> int:
        """How many are set."""
        return len(self._service.watches)

    # -- nodes

    def paths(self, below: str = "/") -> list[str]:
        """All nodes below a path, without ZooKeeper's own."""
        start = below.rstrip("/") + "/"
        found = [path for path in self._service.tree if path.startswith(start) and path != "/"]
        return [path for path in found if path.split("/")[1] != "zookeeper"]

    def dump(self, below: str = "/") -> dict[str, bytes]:
        """Paths and what the nodes hold."""
        return {path: self._service.tree.nodes[path].data for path in self.paths(below)}

    def exists(self, path: str) -> bool:
        return path in self._service.tree.nodes

    def read(self, path: str) -> bytes:
        return self._do(path, lambda: self._service.tree.find(path)).data

    def children(self, path: str) -> list[str]:
        """NoNodeError if there is no such node."""
        return sorted(self._do(path, lambda: self._service.tree.find(path)).children)

    def ephemeral_owner(self, path: str) -> int:
        """The session's id; 0 for a persistent node."""
        return self._do(path, lambda: self._service.tree.find(path)).owner

    def create(
        self, path: str, data: bytes = b"", *, session_id: int = 0, sequence: bool = False, make_parents: bool = True
    ) -> str:
        """A node; ephemeral if a session is named.  What is missing above it is made too."""
        parts = path.strip("/").split("/")
        for depth in range(1, len(parts)) if make_parents else ():
            above = "/" + "/".join(parts[:depth])
            if not self.exists(above):
                self.create(above, make_parents=False)
        flags = (EPHEMERAL if session_id else 0) | (SEQUENCE if sequence else 0)
        tree = self._service.stamp()
        return self._do(path, lambda: tree.change(lambda: tree.create(path, data, OPEN, flags, session_id)))

    def write(self, path: str, data: bytes, *, version: int = -1) -> None:
        tree = self._service.stamp()
        identities = self._all_identities(path)
        self._do(path, lambda: tree.change(lambda: tree.write(path, data, version, identities)))

    def delete(self, path: str, *, recursive: bool = False) -> None:
        for name in self.children(path) if recursive else ():
            self.delete(f"{path}/{name}", recursive=True)
        tree = self._service.stamp()
        identities = self._all_identities(path.rpartition("/")[0] or "/")
        self._do(path, lambda: tree.change(lambda: tree.delete(path, -1, identities)))

    def _all_identities(self, path: str) -> list[tuple[str, str]]:
        node = self._service.tree.nodes.get(path)
        return [(each.scheme, each.id) for each in node.acl] if node is not None else []

    def _do(self, path: str, act: Callable[[], T]) -> T:
        try:
            return act()
        except Fault as fault:
            kind = _ERRORS.get(fault.code.name, ZooKeeperError)
            raise kind(f"the embedded ZooKeeper refuses it: {fault.code.name}", path=path) from None

    def observe(self, observer: Observer) -> Callable[[], None]:
        """Call ``observer(event_type, path)`` after every change; what is returned ends that."""
        self._service.observers.append(observer)
        return lambda: self._service.observers.remove(observer)

    def open_session(self) -> int:
        """A session of this process, for ephemeral nodes; it lasts until it is expired."""
        return self._service.sessions.open_lasting().id

    # -- faults

    def pause(self) -> None:
        """Take connections and bytes, and do nothing with them, as a stopped process does."""
        self._service.is_paused = True

    def resume(self) -> None:
        """Go on.  Sessions whose time is over end first; then what has come is served."""
        self._service.is_paused = False
        self._service.expire_due()
        for connection in tuple(self._service.connections):
            connection.work()
        self._wake()
        for observer in tuple(self._resumed):
            observer()

    def cut(self, session_id: int | None = None, seconds: float | None = 0.0) -> None:
        """Close the connections of a session (of all), and refuse it for so long; None: until ``let_in``."""
        now = self._service.now()
        for each in [session_id] if session_id is not None else [*self.sessions]:
            self._service.cut_off[each] = None if seconds is None else now + seconds
            for connection in self._service.connections_of(each):
                connection.close()

    def let_in(self) -> None:
        """Undo every ``cut``."""
        self._service.cut_off.clear()

    def expire_session(self, session_id: int) -> None:
        """End a session: its ephemeral nodes go, its connection is closed."""
        if not self._service.end_session(session_id):
            raise ConfigError(f"the embedded ZooKeeper has no session {session_id:#x}")

    def hold_answers(self) -> None:
        """Serve requests, and keep answers and events back until ``release_answers``."""
        self._service.is_holding = True

    def release_answers(self) -> None:
        self._service.is_holding = False
        for connection in tuple(self._service.connections):
            connection.release()

    def lose_answer(self, operation: str) -> None:
        """Carry out the next ``"create"``, ``"set_data"``, ..., and close its connection instead of answering."""
        try:
            self._service.lost_answers.append(Operation[operation.upper()])
        except KeyError:
            raise ConfigError(
                f"{operation!r} is not one of {', '.join(each.name.lower() for each in Operation)}"
            ) from None

    def refuse_credentials(self, scheme: str = "digest") -> None:
        """From now on nobody is taken who proves who he is in this way."""
        self._service.refused_schemes.add(scheme)
