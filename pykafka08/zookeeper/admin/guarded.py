"""What stands before every change: is ZooKeeper the right place for it, and may it be made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any, TypeVar

import anyio

from pykafka08.config import ClientConfig, build
from pykafka08.errors import AdminRefusedError, ConfigError, RequestTimeoutError
from pykafka08.protocol.messages import ApiKey
from pykafka08.zookeeper.admin.release import REGISTERS_AS_0_8, Capabilities, ask_brokers, is_0_8_2, refuse_under_kraft
from pykafka08.zookeeper.admin.settings import check_settings
from pykafka08.zookeeper.bridge import ZooKeeper
from pykafka08.zookeeper.settings import without_secrets

__all__ = ["Guarded", "wait_until"]

G = TypeVar("G", bound="Guarded")

POLL_SECONDS = 0.1
DEFAULT_TIMEOUT = 30.0
"""Seconds that the brokers have to do what was asked for."""

_INSTEAD: Mapping[ApiKey, str] = {
    ApiKey.CREATE_TOPICS: "use pykafka08.Admin.create_topics",
    ApiKey.DELETE_TOPICS: "use pykafka08.Admin.delete_topics",
    ApiKey.CREATE_PARTITIONS: "use pykafka08.Admin.create_partitions",
    ApiKey.ALTER_CONFIGS: "use pykafka08.Admin.alter_topic_configs",
    ApiKey.CREATE_ACLS: "use Kafka's own kafka-acls",
    ApiKey.ELECT_LEADERS: "use Kafka's own kafka-leader-election",
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: "use Kafka's own kafka-reassign-partitions",
    ApiKey.ALTER_CLIENT_QUOTAS: "use Kafka's own kafka-configs",
}


class Guarded:
    """An open ZooKeeper and the checks before a change.

    ``zookeeper`` is ``host:port,.../chroot``, with ``settings`` of :class:`ZooKeeperConfig`, or an open ``ZooKeeper``,
    which stays open.  ``client`` has settings of :class:`ClientConfig`, for asking the brokers what they
    can do.
    """

    def __init__(
        self,
        zookeeper: str | ZooKeeper,
        *,
        force: bool = False,
        client: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        settings = without_secrets(settings)
        self._is_owner = isinstance(zookeeper, str)
        if settings and not isinstance(zookeeper, str):
            raise ConfigError(f"a ZooKeeper that is open takes no settings: {', '.join(settings)}")
        self.zk = ZooKeeper(zookeeper, **settings) if isinstance(zookeeper, str) else zookeeper
        self.is_forced = force
        given = {"default_api_timeout_ms": 10_000, **(client or {})}
        (self._client_config,) = build({"bootstrap_servers": "unknown:1", **given}, ClientConfig)

    async def __aenter__(self: G) -> G:
        if self._is_owner:
            await self.zk.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End the session with ZooKeeper, if it was opened here."""
        if self._is_owner:
            await self.zk.aclose()

    async def capabilities(self) -> Capabilities:
        """What the live brokers can do themselves, asked anew; brokers of 0.8 are not asked."""
        return await ask_brokers(self.zk, self._client_config)

    async def _check_writable(self, what: str, api: ApiKey | None) -> Capabilities:
        """AdminRefusedError where ZooKeeper is not, or no longer, the place for a change; with ``force`` never."""
        if not self.is_forced:
            await refuse_under_kraft(self.zk)
        found = await self.capabilities()
        broker_id = found.offering(api) if api is not None and not self.is_forced else None
        if broker_id is None or api is None:
            return found
        may = "may do that itself, but could not be asked" if broker_id in found.unasked else "does that itself"
        raise AdminRefusedError(f"{what}: broker {broker_id} {may}; {_INSTEAD[api]}, or force it")

    async def _check_settings(self, entity: str, settings: Mapping[str, str], found: Capabilities) -> None:
        """ConfigError for what the oldest broker does not take.  0.8.2 is told from 0.8.1 where that decides."""
        release = found.release or REGISTERS_AS_0_8
        try:
            check_settings(entity, settings, release)
        except ConfigError:
            if release != REGISTERS_AS_0_8:
                raise
            check_settings(entity, settings, "0.8.2")
            for broker in found.brokers.values():
                if broker.version == 1 and not await is_0_8_2(broker, self._client_config):
                    raise


async def wait_until(is_so: Callable[[], Awaitable[bool]], what: str, timeout: float | None) -> None:
    """Ask every 100 ms; RequestTimeoutError with ``what`` after ``timeout`` seconds."""
    with anyio.CancelScope(deadline=anyio.current_time() + (DEFAULT_TIMEOUT if timeout is None else timeout)):
        while not await is_so():  # noqa: ASYNC110 - what is waited for happens in another process
            await anyio.sleep(POLL_SECONDS)
        return
    raise RequestTimeoutError(what)
