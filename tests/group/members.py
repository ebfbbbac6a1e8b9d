"""Members for tests on embedded and real clusters: they note what their listener hears."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import anyio

from pykafka08.cluster.client import Client
from pykafka08.config import ClientConfig, parse_bootstrap_servers
from pykafka08.group.coordinator import GroupCoordinator
from pykafka08.group.settings import GroupConfig
from pykafka08.records.record import TopicPartition

FAST = {"retry_backoff_ms": 5, "retry_backoff_max_ms": 50, "reconnect_backoff_ms": 5, "reconnect_backoff_max_ms": 50}
QUICK = {"heartbeat_interval_ms": 50, "max_poll_interval_ms": 10_000}
DEADLINE_S = 90


class Heard:
    """A listener that keeps (what, partitions), and holds each call until ``gate`` is open.

    Whoever is among its ``rivals`` must not own what it is given.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[TopicPartition]]] = []
        self.owned: set[TopicPartition] = set()
        self.gate = anyio.Event()
        self.gate.set()
        self.on_revoked: Any = None
        self.rivals: list[Member] = []

    async def partitions_assigned(self, added: Iterable[TopicPartition]) -> None:
        self.calls.append(("assigned", sorted(added)))
        assert not self.owned & set(added)
        for rival in self.rivals:
            assert rival.heard is self or not rival.group.assignment & set(added), "two owners at one time"
        self.owned |= set(added)
        await self.gate.wait()

    async def partitions_revoked(self, partitions: Iterable[TopicPartition]) -> None:
        self.calls.append(("revoked", sorted(partitions)))
        if self.on_revoked is not None:
            await self.on_revoked(partitions)
        await self.gate.wait()
        assert self.owned >= set(partitions)
        self.owned -= set(partitions)

    async def partitions_lost(self, partitions: Iterable[TopicPartition]) -> None:
        self.calls.append(("lost", sorted(partitions)))
        await self.gate.wait()
        assert self.owned >= set(partitions)
        self.owned -= set(partitions)


class Member:
    """One member, its client and what it heard."""

    def __init__(self, client: Client, coordinator: GroupCoordinator, heard: Heard) -> None:
        self.client = client
        self.group = coordinator
        self.heard = heard

    @property
    def partitions(self) -> list[TopicPartition]:
        return sorted(self.group.assignment)


@asynccontextmanager
async def member(
    bootstrap_servers: str, *topics: str, group_id: str = "g", close_timeout: float = 5.0, **settings: Any
) -> AsyncIterator[Member]:
    """A member of the group that reads the topics; with none it stays outside."""
    of_client = {name: settings.pop(name) for name in tuple(settings) if name in ClientConfig.__dataclass_fields__}
    config = ClientConfig(bootstrap_servers=parse_bootstrap_servers(bootstrap_servers), **{**FAST, **of_client})
    async with Client(config, allow_auto_topic_creation=False) as client:
        heard = Heard()
        group = GroupCoordinator(client, GroupConfig(group_id=group_id, **{**QUICK, **settings}), heard)
        try:
            if topics:
                group.subscribe(topics)
            yield Member(client, group, heard)
        finally:
            await group.aclose(timeout=close_timeout)


async def wait_shared(
    members: Iterable[Member], partitions: Iterable[TopicPartition], within: float = DEADLINE_S
) -> None:
    """Until these members are stable in one generation and own these partitions, each one member's."""
    group, wanted = list(members), sorted(partitions)
    with anyio.fail_after(within):
        while True:
            news = [each.group.news for each in group]
            for each in group:
                each.group.check()
            owned = sorted(tp for each in group for tp in each.heard.owned)
            settled = all(each.group._machine.is_settled for each in group)
            if owned == wanted and settled and len({each.group.generation for each in group}) == 1:
                return
            with anyio.move_on_after(1):  # any one of them may be the next to change
                async with anyio.create_task_group() as waiting:
                    for waiter in news:
                        waiting.start_soon(_first, waiter, waiting.cancel_scope)


async def _first(news: Any, scope: anyio.CancelScope) -> None:
    await news
    scope.cancel()


def all_of(topic: str, count: int) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in range(count)]
