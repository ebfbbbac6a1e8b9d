"""How an old consumer is doing, in figures that it has at hand: nothing is asked of ZooKeeper or a broker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pykafka08.records.record import TopicPartition

__all__ = ["LegacyHealth"]


@dataclass(frozen=True, kw_only=True)
class LegacyHealth:
    """What :meth:`pykafka08.LegacyConsumer.health` gives."""

    trouble: str | None
    """What is wrong now, in words; None if nothing is."""
    state: str
    """Of the member: ``"settled"`` while it reads its share."""
    group_id: str
    member_id: str
    session_id: int | None
    """Of the session with ZooKeeper; None while there is none that can be relied on."""
    is_connected: bool
    """Is there a connection to ZooKeeper."""
    assignment: Mapping[TopicPartition, str]
    """The thread of each partition that is read."""
    idle_threads: tuple[str, ...]
    """Threads that have no partition, since there are more threads than partitions."""
    missing_topics: tuple[str, ...]
    """Topics that do not exist yet; they are waited for."""
    rebalances: int
    buffered_bytes: int
    """Fetched and not handed out."""
    lag: Mapping[TopicPartition, int | None]
    """Offsets between the position and the end of the log; None where either is not known."""
