"""ZooKeeper for asyncio and trio: kazoo brought to the event loop, with a session clock of our own.

Here: the public calls, the queue of events, how opening fails.  Not here: what waits for a connection
(``session_driver``), when a session counts as lost (``session``), kazoo and its thread (``kazoo_session``).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import anyio

from pykafka08.config import build
from pykafka08.driver import current_time, library_logger
from pykafka08.errors import (
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    SessionExpiredError,
    UnsupportedVersionError,
    ZooKeeperConnectionError,
)
from pykafka08.zookeeper import requests
from pykafka08.zookeeper.events import Event
from pykafka08.zookeeper.kazoo_session import Call
from pykafka08.zookeeper.operations import Acl, Node, Operation, Stat
from pykafka08.zookeeper.probes import find_kafka, find_release
from pykafka08.zookeeper.session import State
from pykafka08.zookeeper.session_driver import SessionDriver
from pykafka08.zookeeper.settings import ZooKeeperConfig, without_secrets

__all__ = ["ZooKeeper"]

log = library_logger("zookeeper")
MOST_IN_FLIGHT = 128
"""Calls that kazoo has at a time; the others wait here, where they can be taken back."""
SINCE_MULTI = (3, 4)
SILENCE_BEFORE_PROBE = 1.0
HEARTBEAT = requests.exists("/")
GOODBYE_SECONDS = 2.0
ABORT_SECONDS = 5.0


class ZooKeeper:
    """One client of a ZooKeeper ensemble.  Paths are below the chroot; every ``timeout`` is in seconds, and kept.

        async with ZooKeeper("h1:2181,h2:2181/chroot") as zk:
            node = await zk.read("/brokers/ids/0")

    Reads are repeated over a lost connection until their deadline; so is the creation of an ephemeral node.  Other
    changes end with ZooKeeperConnectionError, whose ``may_be_written`` says whether they had left.  Calls of a session
    that is lost end with SessionExpiredError; calls made while there is no connection wait for one.
    """

    def __init__(self, servers: str, **settings: Any) -> None:
        """``settings`` are the fields of :class:`ZooKeeperConfig`."""
        self._config: ZooKeeperConfig
        settings = without_secrets(settings)
        (self._config,) = build({"servers": servers, **settings}, ZooKeeperConfig, page="docs/zookeeper.md")
        self._config.tls_context()  # wrong files are found at once
        if self._config.tls_insecure_skip_hostname_check:
            log.warning("zookeeper.tls_hostname_not_checked", servers=self._config.shown_servers)
        self._driver = SessionDriver(self._config)
        self._clock = self._driver.clock
        self._release: tuple[int, int] | None = None

    def __repr__(self) -> str:
        return f"ZooKeeper({self._config.shown_servers + self._config.chroot!r}, session_id={self.session_id})"

    # -- life

    async def __aenter__(self) -> ZooKeeper:
        """Connect; NoNodeError if the chroot does not exist, ZooKeeperConnectionError, ZooKeeperAuthError."""
        try:
            await self._driver.open()
            await self._wait_opened()
        except BaseException:
            await self.aclose()
            raise
        self._driver.is_opening = False
        return self

    async def __aexit__(self, *exc_info: Any) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End the session, and with it its ephemeral nodes; nothing of it remains in this process."""
        await self._driver.aclose()

    async def _wait_opened(self) -> None:
        timeout = (self._config.connection_timeout_ms or self._config.session_timeout_ms) / 1000
        deadline = anyio.current_time() + timeout
        root = self._config.chroot or "/"
        while True:
            try:
                is_there = await self._has_root(root, deadline, timeout)
                break
            except SessionExpiredError:  # on a busy machine it may end before its first answer; a new one follows
                if anyio.current_time() >= deadline:
                    raise
        if not is_there:
            raise NoNodeError(
                f"ZooKeeper {self._config.shown_servers} has no node {root}, which was given as the chroot; the right "
                "one stands in the brokers' zookeeper.connect, after the last server",
                path=root,
            )

    async def _has_root(self, root: str, deadline: float, timeout: float) -> bool:
        """An answer says that a server was reached, that it took the credentials, and whether the chroot is there."""
        call = self._driver.send(requests.exists(root), root)
        with (
            anyio.CancelScope(deadline=min(deadline, anyio.current_time() + SILENCE_BEFORE_PROBE)),
            suppress(NoAuthError),
        ):
            await call.answer
        if not call.answer.is_done:
            await self._wait_suspiciously(call, deadline)
        self._driver.forget(call)
        if not call.answer.is_done:
            raise self._driver.unreachable(f" within {timeout:g} s")
        try:
            return call.answer.result() is not None
        except NoAuthError:
            return True  # and who may not look at it may look below it

    # -- what is known

    async def _wait_suspiciously(self, call: Call, deadline: float) -> None:
        """Look meanwhile whether Kafka listens there."""
        found: list[str] = []
        async with anyio.create_task_group() as tasks:

            async def look() -> None:
                kafka = await find_kafka(self._config.addresses, deadline)
                if kafka:
                    found.append(kafka)
                    tasks.cancel_scope.cancel()

            call.answer.add_done_callback(lambda _: tasks.cancel_scope.cancel())
            tasks.start_soon(look)
            await anyio.sleep_until(deadline)
            tasks.cancel_scope.cancel()
        if found and not call.answer.is_done:
            raise ZooKeeperConnectionError(
                f"{found[0]} is a Kafka broker, not a ZooKeeper server (ZooKeeper's usual port is 2181)",
                causes={found[0]: "a Kafka broker"},
            )

    @property
    def session_id(self) -> int | None:
        """None while there is no session that can be relied on."""
        return self._clock.session_id

    @property
    def session_number(self) -> int:
        """1 for the first session, one more for each after it.  Changes at SessionLost."""
        return self._clock.number

    @property
    def session_timeout_ms(self) -> int:
        """As agreed on with the server; what was asked for until there is a session."""
        return round(self._clock.timeout * 1000)

    @property
    def is_connected(self) -> bool:
        return self._clock.state is State.CONNECTED

    @property
    def servers(self) -> str:
        """``host:port,host:port/chroot``, as given."""
        return self._config.shown_servers + self._config.chroot

    @property
    def trouble(self) -> str | None:
        """In words, what is wrong while there is no connection."""
        return self._driver.trouble

    @property
    def delivery_deadline(self) -> float:
        """Until when (``time.monotonic()``) the session surely lives on the server; ``-inf`` without a session.

        Nothing that rests on an ephemeral node may be handed out after it.  Ask at EACH hand-over: timers and events
        come late in a loop that stood still, this does not.
        """
        return self._clock.delivery_deadline

    def is_session_sure(self, session_number: int) -> bool:
        """True while that session is the one we have, and surely alive now.  Costs a clock reading."""
        return session_number == self._clock.number and time.monotonic() < self._clock.delivery_deadline

    # -- events

    async def next_event(self, timeout: float | None = None) -> Event | None:
        """The next of the one ordered stream of events; None when ``timeout`` passes first.  For one reader."""
        return await self._driver.next_event(timeout)

    def next_event_nowait(self) -> Event | None:
        return self._driver.next_event_nowait()

    # -- calls

    async def read(self, path: str, *, watch: bool = False, timeout: float | None = None) -> Node:
        """Data and stat; NoNodeError."""
        request = requests.read(self._full(path), watch=watch)
        node: Node = await self._driver.ask(request, path, self._deadline(timeout))
        return node

    async def exists(self, path: str, *, watch: bool = False, timeout: float | None = None) -> Stat | None:
        request = requests.exists(self._full(path), watch=watch)
        stat: Stat | None = await self._driver.ask(request, path, self._deadline(timeout))
        return stat

    async def children(self, path: str, *, watch: bool = False, timeout: float | None = None) -> list[str]:
        """Names, sorted; NoNodeError."""
        request = requests.children(self._full(path), watch=watch)
        names: list[str] = await self._driver.ask(request, path, self._deadline(timeout))
        return names

    async def acl(self, path: str, *, timeout: float | None = None) -> Acl:
        entries: Acl = await self._driver.ask(requests.acl(self._full(path)), path, self._deadline(timeout))
        return entries

    async def sync(self, path: str = "/", *, timeout: float | None = None) -> None:
        """Wait until the server we talk to has seen what the leader had when this was asked."""
        await self._driver.ask(requests.sync(self._full(path)), path, self._deadline(timeout))

    async def create(
        self,
        path: str,
        data: bytes = b"",
        *,
        ephemeral: bool = False,
        sequence: bool = False,
        make_parents: bool = False,
        acl: Acl | None = None,
        timeout: float | None = None,
    ) -> str:
        """The path made, with its number if ``sequence``; NodeExistsError, NoNodeError for a missing parent."""
        deadline = self._deadline(timeout)
        acl = self._config.acl if acl is None else acl
        request = requests.create(self._full(path), data, ephemeral=ephemeral, sequence=sequence, acl=acl)
        number, may_be_ours = self._clock.number, False
        while True:
            try:
                made: str = await self._driver.ask(request, path, deadline)
                return self._below(made)
            except NoNodeError:
                if not make_parents:
                    raise
                await self._make_parents(path, acl, deadline)
            except ZooKeeperConnectionError as error:
                # Whether it was made can be found out, as an ephemeral node says whose it is.
                if not ephemeral or sequence or not error.may_be_written or anyio.current_time() >= deadline:
                    raise
                may_be_ours = True
            except NodeExistsError:
                if may_be_ours and await self._is_ours(path, data, deadline):
                    return path
                raise
            if number != self._clock.number:
                raise SessionExpiredError("the session ended while an ephemeral node was made in it", path=path)

    async def _is_ours(self, path: str, data: bytes, deadline: float) -> bool:
        try:
            node = await self.read(path, timeout=deadline - anyio.current_time())
        except NoNodeError:
            return False
        return node.stat.ephemeral_owner == self.session_id and node.data == data

    async def _make_parents(self, path: str, acl: Acl | None, deadline: float) -> None:
        parts = path.split("/")[1:-1]
        for depth in range(1, len(parts) + 1):
            parent = "/" + "/".join(parts[:depth])
            request = requests.create(self._full(parent), b"", ephemeral=False, sequence=False, acl=acl)
            if await self._driver.ask(requests.exists(self._full(parent)), parent, deadline) is not None:
                continue
            try:
                await self._driver.ask(request, parent, deadline)
            except NodeExistsError:
                continue

    async def write(self, path: str, data: bytes, *, version: int = -1, timeout: float | None = None) -> Stat:
        """BadVersionError, NoNodeError."""
        request = requests.write(self._full(path), data, version)
        stat: Stat = await self._driver.ask(request, path, self._deadline(timeout))
        return stat

    async def delete(self, path: str, *, version: int = -1, timeout: float | None = None) -> None:
        """BadVersionError, NoNodeError, NotEmptyError."""
        await self._driver.ask(requests.delete(self._full(path), version), path, self._deadline(timeout))

    async def multi(self, operations: Sequence[Operation], *, timeout: float | None = None) -> list[str | Stat | None]:
        """All or none; UnsupportedVersionError before ZooKeeper 3.4.  What each gave: path, stat, or None."""
        request = requests.multi(operations, self._full, self._config.acl)
        deadline = self._deadline(timeout)
        if self._release is None:  # TLS came with 3.5
            self._release = None if self._config.tls else await find_release(self._config.addresses, deadline)
        if self._release is not None and self._release < SINCE_MULTI:
            raise UnsupportedVersionError(
                f"ZooKeeper {self._release[0]}.{self._release[1]} cannot do several things at once; multi() needs 3.4"
            )
        results: list[Any] = await self._driver.ask(request, None, deadline)
        return [self._below(each) if isinstance(each, str) else each for each in results]

    def _full(self, path: str) -> str:
        return requests.full_path(self._config.chroot, path)

    def _below(self, path: str) -> str:
        """Without the chroot."""
        return path[len(self._config.chroot) :] or "/"

    def _deadline(self, timeout: float | None) -> float:
        return current_time() + (self._config.request_timeout_ms / 1000 if timeout is None else timeout)
