"""What keeps a member from being in its group, and since when: failed requests, and requests without an answer.  Pure.

JoinGroup and SyncGroup are not late: a coordinator holds them until the other members have joined.  ``now`` is
monotonic seconds.
"""

from __future__ import annotations

from typing import NamedTuple

from pykafka08.errors import KafkaError, RequestTimeoutError
from pykafka08.group.contract import MemberMachine
from pykafka08.group.states import State

__all__ = ["LATE", "TELL_AFTER", "Trouble", "TroubleWatch"]

LATE = 5.0
"""Seconds after which an answer to a heartbeat or FindCoordinator is late."""
TELL_AFTER = 3.0
"""Seconds of trouble before it is told: a coordinator that moves is no trouble."""
TELL_AGAIN_AFTER = 60.0


class Trouble(NamedTuple):
    """Why the member is not well."""

    error: KafkaError
    since: float


class TroubleWatch:
    """The trouble of one member, looked at about once a second."""

    def __init__(self) -> None:
        self._unknown_since: float | None = None
        """When a look first found that the coordinator is not known."""
        self._since: float | None = None
        """When the trouble began that the last look found."""
        self._told_at: float | None = None

    def of(self, machine: MemberMachine, now: float) -> Trouble | None:
        """The trouble that there is."""
        if machine.state is State.ENDED:
            return None
        if machine.trouble is not None:
            return self._trouble(machine.trouble, now)
        beat_at = machine.heartbeats.waiting_since
        if beat_at is not None and now >= beat_at + LATE:
            return self._trouble(_late("no answer to the heartbeat", machine, now - beat_at), beat_at)
        unknown = self._unknown_since
        if machine.coordinator is None and unknown is not None and now >= unknown + LATE:
            return self._trouble(_late("no broker says which one is the coordinator", machine, now - unknown), unknown)
        return None

    def look(self, machine: MemberMachine, now: float) -> Trouble | None:
        """The trouble that is to be told: once when it has lasted, then once a minute while it lasts."""
        if machine.coordinator is not None:
            self._unknown_since = None
        elif self._unknown_since is None:
            self._unknown_since = now
        trouble = self.of(machine, now)
        self._since = None if trouble is None else trouble.since
        if trouble is None:
            self._told_at = None
            return None
        is_told = self._told_at is not None and now < self._told_at + TELL_AGAIN_AFTER
        if is_told or now < trouble.since + TELL_AFTER:
            return None
        self._told_at = now
        return trouble

    def _trouble(self, error: KafkaError, since: float) -> Trouble:
        return Trouble(error, since if self._since is None else min(since, self._since))


def _late(text: str, machine: MemberMachine, seconds: float) -> RequestTimeoutError:
    error = RequestTimeoutError(f"{text} for {seconds:.0f} s")
    error.group = machine.group_id
    return error
