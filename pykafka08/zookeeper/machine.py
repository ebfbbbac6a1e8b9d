"""When a member of an old group rebalances: one attempt at a time, events coalesced, retries, lost sessions.  Pure.

    connected ──► rebalancing ──► settled ──(event, half a minute)──► rebalancing
                      │  ▲
             blocked, failed: after a pause, or when what was in the way goes
                      ▼
                 out of tries: reported; tried again later

    suspended: steps wait for the connection.    session lost: all claims are forgotten, nothing of others is deleted.

What is done in an attempt is ``rebalance``'s.  That records are handed out only while the session surely lives is held
elsewhere, by the clock at each hand-over (``legacy/driver.py``): events may be late, and this machine with them.
"""

from __future__ import annotations

from collections.abc import Generator
from enum import Enum
from typing import Any

from pykafka08.errors import ConsumerRebalanceFailedError, KafkaError
from pykafka08.zookeeper.rebalance import Ending, Outcome, Profile, Share, rebalance
from pykafka08.zookeeper.steps import Step, StopReading

__all__ = ["LegacyMember", "State"]

DELAYS = (0.0, 0.5, 1.0, 2.0)
"""Seconds from an event to its rebalance: after a peace none, then more each time."""
PEACE = 5.0
"""Seconds without a rebalance after which the next event counts as a first one."""
UNBLOCKED_DELAY = 0.1
"""Seconds from the end of what was in the way to the next try: several ends mostly come together."""
RECHECK = 30.0
"""Seconds after which the group is looked at though nothing was told."""
EXPIRY_FACTOR = 1.5
"""A server looks for sessions to end at intervals: one that is over may be there for half its time more."""


class State(Enum):
    """Where a member stands."""

    DISCONNECTED = "no session, or no connection that it could be used over"
    REBALANCING = "taking its share of the group"
    WAITING = "its share is not free yet; tries again soon"
    SETTLED = "has its share"
    FAILED = "could not take its share in all its tries; tries again later"
    CLOSED = "has left"


class LegacyMember:
    """Inputs are named for what happened; :meth:`poll` hands out one step at a time, whose end is an input too."""

    def __init__(
        self, profile: Profile, registration: bytes, *, max_retries: int, backoff: float, session_timeout: float
    ) -> None:
        self.profile = profile
        self.share = Share(profile, registration)
        self.state = State.DISCONNECTED
        self.trouble: KafkaError | None = None
        """What keeps it from its share; None when nothing does."""
        self.failure: ConsumerRebalanceFailedError | None = None
        """Of a member that is out of tries, until it has its share."""
        self.outcome: Outcome | None = None
        self.rebalances = 0
        """Rebalances begun, each with all its attempts."""
        self.attempts = 0
        self.has_settled = False
        self._max_retries = max_retries
        self._backoff = backoff
        self._session_timeout = session_timeout
        self._is_connected = False
        self._work: Generator[Step, Any, Outcome] | None = None
        self._answer: Any = None
        self._is_outstanding = False
        self._is_void = False
        """The session ended while a step was under way: its answer means nothing."""
        self._lost = False
        """Reading is to be stopped at once, without a commit."""
        self._event_at: float | None = None
        self._unblocked_at: float | None = None
        self._unrest = 0
        """Rebalances since the last peace."""
        self._ended_at: float | None = None
        self._retry_at: float | None = None
        self._tries = 0
        self._trying_since = 0.0

    # Inputs

    def connected(self, now: float, *, is_new: bool) -> None:
        """A session can be used; watches of the time before may not have fired."""
        if self.state is State.CLOSED:
            return
        if is_new:
            self._forget_session()
            self._tries, self._trying_since = 0, now
        self._is_connected = True
        self.trouble = None
        self.share.looks_everywhere = True
        if self.state is State.DISCONNECTED:
            self.state = State.REBALANCING
        self._retry_at = now

    def suspended(self, error: KafkaError) -> None:
        """The connection is gone; claims stand until the session ends."""
        if self.state is not State.CLOSED:
            self._is_connected = False
            self.trouble = error
            self.state = State.DISCONNECTED

    def session_lost(self, error: KafkaError) -> None:
        """Ephemeral nodes are gone, or may be."""
        if self.state is not State.CLOSED:
            self.suspended(error)
            self._forget_session()

    def node_changed(self, path: str, now: float) -> None:
        """A watch fired."""
        if self.outcome is not None and path in self.outcome.blockers:
            self._unblocked_at = now if self._unblocked_at is None else self._unblocked_at
        elif self._event_at is None:
            self._event_at = now

    def closed(self) -> None:
        """Leave: what is read is stopped in a last step; nodes end with the session."""
        self._abandon()
        self._is_void = self._is_outstanding
        self.state = State.CLOSED
        self._event_at = self._unblocked_at = self._retry_at = None

    def step_done(self, answer: Any) -> None:
        """The outstanding step's answer."""
        self._is_outstanding = False
        if self._is_void:
            self._is_void = False
            return
        self._answer = answer

    def step_failed(self, error: KafkaError, now: float) -> None:
        """The outstanding step ended in an error: so does the attempt; what it claimed is looked at in the next."""
        self._is_outstanding = False
        if self._is_void:
            self._is_void = False
            return
        self._abandon()
        self.share.looks_everywhere = True
        self._attempt_failed(error, now)

    # Outputs

    def poll(self, now: float) -> Step | None:
        """The next step, if one is to be made now and none is under way."""
        if self._is_outstanding:
            return None
        if self._lost:
            self._lost = False
            return self._handed_out(StopReading(self._forget_reading(), is_lost=True))
        if self.state is State.CLOSED:
            return self._last_step()
        if not self._is_connected:
            return None
        if self._work is None:
            due = self._due_at()
            if due is None or now < due:
                return None
            self._begin(now)
        return self._advance(now)

    def next_wakeup(self) -> float | None:
        """When to poll again though nothing happened."""
        if self._is_outstanding or not self._is_connected or self.state is State.CLOSED or self._work is not None:
            return None
        return self._due_at()

    # One attempt

    def _due_at(self) -> float | None:
        times = []
        if self._retry_at is not None:
            times.append(self._retry_at)
        elif self._ended_at is not None:
            times.append(self._ended_at + RECHECK)
        if self._event_at is not None:
            is_peaceful = self._ended_at is None or self._event_at >= self._ended_at + PEACE
            times.append(self._event_at + DELAYS[0 if is_peaceful else min(self._unrest, len(DELAYS) - 1)])
        if self._unblocked_at is not None:
            times.append(self._unblocked_at + UNBLOCKED_DELAY)
        return min(times, default=None)

    def _begin(self, now: float) -> None:
        is_recheck = self._retry_at is None and self._event_at is None and self._unblocked_at is None
        if is_recheck:
            self.share.looks_everywhere = True
        if self._tries == 0:
            self._trying_since = now
            self.rebalances += not is_recheck
            is_peaceful = self._ended_at is None or now >= self._ended_at + PEACE
            self._unrest = 1 if is_peaceful else self._unrest + 1
        self.attempts += 1
        self._tries += 1
        self._event_at = self._unblocked_at = self._retry_at = None
        if self.state is not State.FAILED and not is_recheck:
            self.state = State.REBALANCING
        self._answer = None
        self._work = rebalance(self.share)

    def _advance(self, now: float) -> Step | None:
        assert self._work is not None
        answer, self._answer = self._answer, None
        try:
            return self._handed_out(self._work.send(answer))
        except StopIteration as end:
            self._work = None
            self._attempt_ended(end.value, now)
        except KafkaError as error:
            self._work = None
            self._attempt_failed(error, now)
        return None

    def _handed_out(self, step: Step) -> Step:
        self._is_outstanding = True
        return step

    def _attempt_ended(self, outcome: Outcome, now: float) -> None:
        self.outcome = outcome
        if outcome.ending in (Ending.SETTLED, Ending.NO_BROKERS):
            self._ended_at = now
            self._tries = 0
            self.state = State.SETTLED
            self.has_settled = True
            self.trouble = self.failure = None
            return
        if None in outcome.blockers.values():
            self._unblocked_at = now  # it went before it was watched
        group, member = self.profile.group, self.profile.member
        path, owner = min(outcome.blockers.items())
        if outcome.ending is Ending.FOREIGN:
            error = ConsumerRebalanceFailedError(
                f"another session has the name {member!r} in group {group!r}; this member owns nothing until that ends",
                path=path,
            )
        else:
            more = f" and {len(outcome.blockers) - 1} more" if len(outcome.blockers) > 1 else ""
            error = ConsumerRebalanceFailedError(
                f"{owner or 'another member'} still owns a partition of {member}'s share{more}", path=path
            )
        self._attempt_failed(error, now, is_foreign=outcome.ending is Ending.FOREIGN)

    def _attempt_failed(self, error: KafkaError, now: float, *, is_foreign: bool = False) -> None:
        self._ended_at = now
        self.trouble = error
        patience = self._backoff * (self._max_retries - 1)
        if is_foreign:
            patience = max(patience, EXPIRY_FACTOR * self._session_timeout)
        if not self._is_connected:
            self._tries = 0  # what fails for want of a connection is no try
            return
        if self._tries >= self._max_retries and now >= self._trying_since + patience:
            self.state = State.FAILED
            self.failure = ConsumerRebalanceFailedError(
                f"{self.profile.member} could not take its share of group {self.profile.group!r} in {self._tries} tries"
                f" over {now - self._trying_since:.1f} s; the last ended in: {error}; it tries again later",
                path=getattr(error, "path", None),
            )
            self.failure.__cause__ = error
            self._tries = 0
            self._retry_at = now + max(self._backoff * self._max_retries, self._session_timeout)
            return
        if self.state is not State.FAILED:
            self.state = State.WAITING
        self._retry_at = now + self._backoff

    # Ends

    def _abandon(self) -> None:
        if self._work is not None:
            self._work.close()
            self._work = None
        self._answer = None

    def _forget_session(self) -> None:
        self._abandon()
        self._is_void = self._is_outstanding
        self.share.claims.clear()
        self._lost = bool(self.share.reading)

    def _forget_reading(self) -> tuple[Any, ...]:
        gone = tuple(sorted(self.share.reading))
        self.share.reading.clear()
        return gone

    def _last_step(self) -> Step | None:
        if not self.share.reading:
            return None
        return self._handed_out(StopReading(self._forget_reading()))

    @property
    def is_done(self) -> bool:
        """True for a member that has left, and has nothing more to do."""
        return self.state is State.CLOSED and not self._is_outstanding and not self.share.reading
