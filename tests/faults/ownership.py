"""Until when a member had its partitions, for one that learns late that it has them no more."""

from __future__ import annotations

import anyio

from pykafka08 import Consumer

__all__ = ["owned_until"]


def owned_until(consumer: Consumer, noted_at: float) -> float:
    """Now, or the end of the session if that came before, in seconds of the event loop's clock.

    Until then no coordinator may give the partitions away; from then on it may, while a process that stands still, or
    whose broker does, knows of nothing.  Not before ``noted_at``, when the member was last seen to have them.
    """
    assert consumer._member is not None
    heartbeats = consumer._member.coordinator._machine.heartbeats
    return max(noted_at, min(anyio.current_time(), heartbeats.expires_at))
