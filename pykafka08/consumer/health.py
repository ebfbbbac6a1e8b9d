"""How a consumer is doing, in figures that it has at hand: nothing is asked of a broker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from pykafka08.cluster.health import ClientHealth
from pykafka08.consumer.partition import PartitionState
from pykafka08.consumer.reader import Reader
from pykafka08.consumer.trouble import Trouble
from pykafka08.errors import KafkaError
from pykafka08.group.coordinator import GroupCoordinator
from pykafka08.records.record import TopicPartition

__all__ = ["ConsumerHealth", "GroupHealth", "consumer_health"]


@dataclass(frozen=True, kw_only=True)
class GroupHealth:
    """The membership of a consumer."""

    group_id: str
    state: str
    """Of the member: ``"stable"`` while it reads its share, else what it is at, as ``"joining"``."""
    state_age: float
    """Seconds in that state."""
    trouble: KafkaError | None
    """What the coordinator refused last, or why it could not be asked: None again when all is well."""
    coordinator: str | None
    """The broker that coordinates the group, ``"host:port (id N)"``; None while it is looked for."""
    member_id: str
    """Empty before the first answer."""
    generation: int
    """The generation, or the member's epoch in the new group protocol; -1 outside of the group."""
    heartbeat_age: float | None
    """Seconds since the newest heartbeat with a good answer was sent; None outside of the group."""


@dataclass(frozen=True, kw_only=True)
class ConsumerHealth(ClientHealth):
    """What :meth:`pykafka08.Consumer.health` gives."""

    group: GroupHealth | None
    """None without a ``group_id``."""
    fetch_age: float | None
    """Seconds since a broker has answered a fetch; None before the first answer."""
    buffered_bytes: int
    """Fetched and not handed out; ``fetch_buffer_bytes`` bounds it."""
    trouble: KafkaError | None
    """The error of the partition that has gone unread for longest; None if all partitions are read."""
    trouble_age: float | None
    """Seconds since that trouble began."""
    lag: Mapping[TopicPartition, int | None]
    """Offsets between the position and the end of the log that the newest fetch told; None where neither is known."""


def _group_health(coordinator: GroupCoordinator, now: float) -> GroupHealth:
    heard_at = coordinator.last_heartbeat
    return GroupHealth(
        group_id=coordinator.group_id,
        state=coordinator.state.value,
        state_age=max(0.0, now - coordinator.state_since),
        trouble=coordinator.trouble,
        coordinator=coordinator.broker,
        member_id=coordinator.member_id,
        generation=coordinator.generation,
        heartbeat_age=None if heard_at is None else max(0.0, now - heard_at),
    )


def consumer_health(
    client: ClientHealth,
    reader: Reader,
    states: Mapping[TopicPartition, PartitionState],
    coordinator: GroupCoordinator | None,
    trouble: Trouble | None,
    now: float,
) -> ConsumerHealth:
    answered_at = None if reader.fetcher is None else reader.fetcher.answered_at
    return ConsumerHealth(
        **{field.name: getattr(client, field.name) for field in fields(client)},
        group=None if coordinator is None else _group_health(coordinator, now),
        fetch_age=None if answered_at is None else max(0.0, now - answered_at),
        buffered_bytes=sum(state.buffered_bytes for state in states.values()),
        trouble=None if trouble is None else trouble.error,
        trouble_age=None if trouble is None else max(0.0, now - trouble.since),
        lag={tp: _lag(reader.position(tp), state.end_offset) for tp, state in states.items()},
    )


def _lag(position: int | None, end_offset: int) -> int | None:
    return None if position is None or end_offset < 0 else max(0, end_offset - position)
