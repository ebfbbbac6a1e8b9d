"""Who is alive until when: pure.  Times are seconds; a session ends at the tick after its time-out, as in ZooKeeper."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Session", "Sessions"]

FIRST_ID = 0x0100_0000_0000_0000
PASSWORD_BYTES = 16
FOREVER = math.inf


@dataclass
class Session:
    id: int
    password: bytes
    timeout: float
    expires_at: float


class Sessions:
    """``tick`` seconds; time-outs are held between ``least`` and ``most``."""

    def __init__(self, tick: float, least: float, most: float) -> None:
        self.tick = tick
        self.least = least
        self.most = most
        self._sessions: dict[int, Session] = {}
        self._next_id = FIRST_ID

    def __iter__(self) -> Iterator[Session]:
        return iter(tuple(self._sessions.values()))

    def __len__(self) -> int:
        return len(self._sessions)

    def find(self, session_id: int) -> Session | None:
        return self._sessions.get(session_id)

    def open(self, timeout: float, now: float) -> Session:
        session_id = self._next_id
        self._next_id += 1
        password = hashlib.sha256(session_id.to_bytes(8, "big")).digest()[:PASSWORD_BYTES]
        session = Session(session_id, password, min(max(timeout, self.least), self.most), 0.0)
        self._sessions[session_id] = session
        self.touch(session_id, now)
        return session

    def open_lasting(self) -> Session:
        """One of this process, which ends when it is told to."""
        session = self.open(self.least, 0.0)
        session.expires_at = FOREVER
        return session

    def resume(self, session_id: int, password: bytes, now: float) -> Session | None:
        """The session, alive again for its whole time-out; None if it is over or is somebody else's."""
        session = self._sessions.get(session_id)
        if session is None or session.password != password:
            return None
        self.touch(session_id, now)
        return session

    def touch(self, session_id: int, now: float) -> None:
        session = self._sessions.get(session_id)
        if session is not None and session.expires_at != FOREVER:
            session.expires_at = (math.floor((now + session.timeout) / self.tick) + 1) * self.tick

    def restarted(self, now: float) -> None:
        """Every session has its whole time-out again, as after a server's start."""
        for session_id in self._sessions:
            self.touch(session_id, now)

    def close(self, session_id: int) -> bool:
        return self._sessions.pop(session_id, None) is not None

    def due(self, now: float) -> list[int]:
        return [each.id for each in self if each.expires_at <= now]

    def next_expiry(self) -> float | None:
        """When the next one ends if nothing is heard of it."""
        soonest = min((each.expires_at for each in self._sessions.values()), default=FOREVER)
        return None if soonest == FOREVER else soonest
