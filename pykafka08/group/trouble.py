"""Failed and unanswered requests to a group's coordinator, and since when they fail.  Pure.

JoinGroup and SyncGroup are not late: a coordinator holds them until the other members have joined.  ``now`` is
monotonic seconds.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from pykafka08.errors import KafkaError, RequestTimeoutError
from pykafka08.group.contract import MemberMachine
from pykafka08.group.reactions import Api
from pykafka08.group.states import State
from pykafka08.report_timer import ReportTimer

__all__ = ["LATE", "REPORT_AFTER", "OffsetRequests", "Trouble", "TroubleWatch"]

LATE = 5.0
"""Seconds after which the answer to a heartbeat, FindCoordinator, OffsetFetch or OffsetCommit is late."""
REPORT_AFTER = 3.0
"""Seconds before trouble is reported: coordinators move within less."""
MEMORY = 10.0
"""Seconds after a failed call in which the next failure of the same API belongs to the same trouble."""


class Trouble(NamedTuple):
    """The error of requests to the coordinator, and the time since which they fail."""

    error: KafkaError
    since: float


class _Failure(NamedTuple):
    error: KafkaError
    since: float
    newest_at: float


class OffsetRequests:
    """The OffsetFetch and OffsetCommit requests of one group, with the FindCoordinator requests that they need."""

    def __init__(self, group_id: str) -> None:
        self._group_id = group_id
        self._calls: Counter[Api] = Counter()
        """Number of running calls by API; each call repeats its request until its deadline."""
        self._waiting: dict[object, tuple[Api, str | None, float]] = {}
        """API, broker and time of each request that waits for its answer."""
        self._failures: dict[Api, _Failure] = {}

    def call_began(self, api: Api) -> None:
        self._calls[api] += 1

    def call_ended(self, api: Api) -> None:
        self._calls[api] -= 1

    def sent(self, api: Api, broker: str | None, now: float) -> object:
        """Note a request; the result is for :meth:`ended`."""
        request = object()
        self._waiting[request] = (api, broker, now)
        return request

    def ended(self, request: object) -> None:
        """The request was answered, has failed or was cancelled."""
        del self._waiting[request]

    def failed(self, api: Api, error: KafkaError, began_at: float, now: float) -> None:
        """An attempt of a call failed, and may succeed when it is repeated."""
        before = self._recent(api, began_at)
        self._failures[api] = _Failure(error, began_at if before is None else min(before.since, began_at), now)

    def succeeded(self, api: Api) -> None:
        """The coordinator gave an answer that needs no other attempt."""
        self._failures.pop(api, None)

    def trouble(self, now: float, only: Api | None = None) -> Trouble | None:
        """The oldest trouble, of all APIs or of calls of ``only`` one."""
        found = [
            self._late(api, broker, sent_at, now)
            for api, broker, sent_at in self._waiting.values()
            if now >= sent_at + LATE and (only is None or api in (only, Api.FIND_COORDINATOR))
        ]
        if not found:
            found = [
                Trouble(failure.error, failure.since)
                for api, failure in self._failures.items()
                if (only is None or api is only) and self._lasts(api, failure, now)
            ]
        return min(found, key=lambda each: each.since, default=None)

    def _lasts(self, api: Api, failure: _Failure, now: float) -> bool:
        """False for a single call that failed within a short timeout; longer trouble lasts until the next call."""
        if self._calls[api]:
            return True
        return failure.newest_at >= failure.since + REPORT_AFTER and now <= failure.newest_at + MEMORY

    def _late(self, api: Api, broker: str | None, sent_at: float, now: float) -> Trouble:
        apis = self._failures if api is Api.FIND_COORDINATOR else (api,)
        recent = [self._recent(each, sent_at) for each in apis]
        since = min([sent_at, *(each.since for each in recent if each is not None)])
        error = RequestTimeoutError(f"no answer for {now - sent_at:.0f} s", broker=broker, api=api.value)
        error.group = self._group_id
        return Trouble(error, since)

    def _recent(self, api: Api, now: float) -> _Failure | None:
        failure = self._failures.get(api)
        return failure if failure is not None and now <= failure.newest_at + MEMORY else None


class TroubleWatch:
    """The trouble of one member and of its group's ``offsets``, looked at about once a second."""

    def __init__(self, offsets: OffsetRequests) -> None:
        self._offsets = offsets
        self._unknown_since: float | None = None
        """The time of the first look since which no coordinator is known."""
        self._since: float | None = None
        """The time at which the trouble of the last look began."""
        self._reports = ReportTimer(REPORT_AFTER)

    def of(self, machine: MemberMachine | None, now: float) -> Trouble | None:
        """The oldest trouble; ``machine`` is None outside of the group.

        If both began at the same time, the trouble of the offsets: heartbeats wait behind their request.
        """
        found = (self._offsets.trouble(now), None if machine is None else self._of_member(machine, now))
        return min((each for each in found if each is not None), key=lambda each: each.since, default=None)

    def _of_member(self, machine: MemberMachine, now: float) -> Trouble | None:
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

    def look(self, machine: MemberMachine | None, now: float) -> Trouble | None:
        """The trouble to warn of: once after ``REPORT_AFTER`` seconds, then once a minute while it lasts."""
        if machine is None or machine.coordinator is not None:
            self._unknown_since = None
        elif self._unknown_since is None:
            self._unknown_since = now
        trouble = self.of(machine, now)
        self._since = None if trouble is None else trouble.since
        if trouble is None:
            self._reports.reset()
            return None
        if now < self._reports.next_at(trouble.since):
            return None
        self._reports.reported(now)
        return trouble

    def _trouble(self, error: KafkaError, since: float) -> Trouble:
        return Trouble(error, since if self._since is None else min(since, self._since))


def _late(text: str, machine: MemberMachine, seconds: float) -> RequestTimeoutError:
    error = RequestTimeoutError(f"{text} for {seconds:.0f} s")
    error.group = machine.group_id
    return error
