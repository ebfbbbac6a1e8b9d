"""Whether the event loop stood still for so long that the membership is in danger; it beats from that loop.

One sleep that is woken late tells.  The warning comes while the session lasts, as long as one standstill leaves a part
of it; where it took all of the session, the partitions are lost first (``machine``), and the warning says why.
"""

from __future__ import annotations

from collections.abc import Callable

import anyio

from pykafka08.logs import LibraryLogger

__all__ = ["DANGEROUS_SHARE", "blocked_for", "watch_loop"]

DANGEROUS_SHARE = 1 / 3
"""Of the session: as much as the interval between heartbeats usually is, so that none may have come in between."""
LOOKS_PER_SESSION = 10
IDLE_SECONDS = 1.0


def blocked_for(session_timeout: float, slept: float, wanted: float) -> float | None:
    """Seconds for which the loop did not run, if they are a dangerous share of the session; else None."""
    late = slept - wanted
    return late if session_timeout > 0 and late > DANGEROUS_SHARE * session_timeout else None


async def watch_loop(log: LibraryLogger, session_timeout: Callable[[], float]) -> None:
    """Warn each time; ``session_timeout`` gives seconds, 0 outside of the group.  Runs until cancelled."""
    while True:
        limit = session_timeout()
        wanted = limit / LOOKS_PER_SESSION if limit > 0 else IDLE_SECONDS
        began = anyio.current_time()
        await anyio.sleep(wanted)
        blocked = blocked_for(limit, anyio.current_time() - began, wanted)
        if blocked is not None:
            log.warning(
                "group.loop_blocked",
                seconds=round(blocked, 3),
                session_timeout=limit,
                cause="no heartbeat could be sent: the event loop was kept busy by a call that does not await",
            )
