"""ZooKeeper for asyncio and trio: kazoo brought to the event loop, with a session clock of our own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pykafka08.zookeeper.events import Event
from pykafka08.zookeeper.operations import Acl, Node, Operation, Stat

__all__ = ["ZooKeeper"]


class ZooKeeper:
    """One client of a ZooKeeper ensemble.  Paths are below the chroot; every ``timeout`` is in seconds, and kept.

        async with ZooKeeper("h1:2181,h2:2181/chroot") as zk:
            node = await zk.read("/brokers/ids/0")

    Reads are repeated over a lost connection until their deadline; so is the creation of an ephemeral node.  Other
    changes end with ZooKeeperConnectionError, whose ``may_be_written`` says whether they had left.  Calls of a session
    that is lost end with SessionExpiredError; calls made while there is no connection wait for one.
    """

    def __init__(
        self,
        servers: str,
        *,
        session_timeout_ms: int = 6000,
        connection_timeout_ms: int | None = None,
        request_timeout_ms: int = 15_000,
        auth: Sequence[tuple[str, str]] = (),
        acl: Acl | None = None,
        sasl_mechanism: str | None = None,
        sasl_username: str | None = None,
        sasl_password: str | None = None,
        tls: bool = False,
        tls_ca_file: str | None = None,
        tls_certificate_file: str | None = None,
        tls_key_file: str | None = None,
        tls_key_password: str | None = None,
        tls_check_hostname: bool = True,
        name: str = "",
    ) -> None: ...

    async def __aenter__(self) -> ZooKeeper:
        """Connect; NoNodeError if the chroot does not exist, ZooKeeperConnectionError, ZooKeeperAuthError."""
        raise NotImplementedError

    async def __aexit__(self, *exc_info: Any) -> None: ...

    async def aclose(self) -> None:
        """End the session, and with it its ephemeral nodes; nothing of it remains in this process."""

    @property
    def session_id(self) -> int | None:
        """None while there is no session that can be relied on."""
        raise NotImplementedError

    @property
    def session_number(self) -> int:
        """1 for the first session, one more for each after it.  Changes at SessionLost."""
        raise NotImplementedError

    @property
    def session_timeout_ms(self) -> int:
        """As agreed on with the server; what was asked for until there is a session."""
        raise NotImplementedError

    @property
    def is_connected(self) -> bool:
        raise NotImplementedError

    @property
    def delivery_deadline(self) -> float:
        """Until when (event loop's clock) the session surely lives on the server; ``-inf`` without a session.

        Nothing that rests on an ephemeral node may be handed out after it.  Ask at EACH hand-over: timers and events
        come late in a loop that stood still, this does not.
        """
        raise NotImplementedError

    def is_session_sure(self, session_number: int) -> bool:
        """True while that session is the one we have, and surely alive now.  Costs a clock reading."""
        raise NotImplementedError

    async def next_event(self, timeout: float | None = None) -> Event | None:
        """The next of the one ordered stream of events; None when ``timeout`` passes first.  For one reader."""
        raise NotImplementedError

    def next_event_nowait(self) -> Event | None:
        raise NotImplementedError

    async def read(self, path: str, *, watch: bool = False, timeout: float | None = None) -> Node:
        """Data and stat; NoNodeError."""
        raise NotImplementedError

    async def exists(self, path: str, *, watch: bool = False, timeout: float | None = None) -> Stat | None:
        raise NotImplementedError

    async def children(self, path: str, *, watch: bool = False, timeout: float | None = None) -> list[str]:
        """Names, sorted; NoNodeError."""
        raise NotImplementedError

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
        raise NotImplementedError

    async def write(self, path: str, data: bytes, *, version: int = -1, timeout: float | None = None) -> Stat:
        """BadVersionError, NoNodeError."""
        raise NotImplementedError

    async def delete(self, path: str, *, version: int = -1, timeout: float | None = None) -> None:
        """BadVersionError, NoNodeError, NotEmptyError."""
        raise NotImplementedError

    async def multi(self, operations: Sequence[Operation], *, timeout: float | None = None) -> list[str | Stat | None]:
        """All or none; UnsupportedVersionError before ZooKeeper 3.4.  What each gave: path, stat, or None."""
        raise NotImplementedError

    async def acl(self, path: str, *, timeout: float | None = None) -> Acl:
        raise NotImplementedError

    async def sync(self, path: str = "/", *, timeout: float | None = None) -> None:
        """Wait until the server we talk to has seen what the leader had when this was asked."""
        raise NotImplementedError
