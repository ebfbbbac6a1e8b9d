"""Trouble of transactional requests: missing answers and repeated retriable errors, with their duration.  Pure.

``now`` is monotonic seconds.
"""

from __future__ import annotations

from typing import NamedTuple

from pykafka08.errors import KafkaError, RequestTimeoutError
from pykafka08.producer.transactions.actions import Call, FindCoordinator
from pykafka08.producer.transactions.judgement import named
from pykafka08.report_timer import ReportTimer

__all__ = ["REPORT_AFTER", "TransactionTrouble", "TransactionTroubleWatch"]

REPORT_AFTER = 5.0
"""Seconds before trouble is reported: a coordinator moves or writes markers within a few seconds."""


class TransactionTrouble(NamedTuple):
    """The error that keeps a transactional request from completing."""

    error: KafkaError
    since: float
    """The time at which the request was first sent."""
    api: str
    node_id: int | None
    """The coordinator; None if any broker can answer."""


class TransactionTroubleWatch:
    """Decides when to report the trouble of one producer's transactional requests; one at a time is in flight."""

    def __init__(self, transactional_id: str) -> None:
        self._transactional_id = transactional_id
        self._call: Call | None = None
        """The request in flight."""
        self._sent_at = 0.0
        self._since: float | None = None
        self._error: KafkaError | None = None
        self._failed: Call | None = None
        """The request of the error."""
        self._reports = ReportTimer(REPORT_AFTER)

    # --- events -------------------------------------------------------------------------------------------------------

    def sent(self, call: Call, now: float) -> None:
        self._call, self._sent_at = call, now
        if self._since is None:
            self._since = now

    def failed(self, call: Call, error: KafkaError) -> None:
        """Note that the request will be repeated."""
        self._call, self._failed, self._error = None, call, error

    def found(self) -> None:
        """Note that a preliminary request succeeded; the trouble of the request after it continues."""
        self._call = None
        if self._error is None:
            self._since = None

    def ended(self) -> None:
        """Note that the request succeeded or will not be repeated."""
        self._call = self._failed = self._error = self._since = None
        self._reports.reset()

    # --- reports ------------------------------------------------------------------------------------------------------

    def of(self, now: float) -> TransactionTrouble | None:
        """The trouble that has lasted for ``REPORT_AFTER`` seconds."""
        since = self._since
        if since is None or now < since + REPORT_AFTER:
            return None
        call = self._call
        if call is not None and (self._error is None or now >= self._sent_at + REPORT_AFTER):
            text = f"no answer for {now - self._sent_at:.0f} s ({named(call, self._transactional_id)})"
            return TransactionTrouble(RequestTimeoutError(text, api=call.api), since, call.api, _node_id(call))
        if self._error is None or self._failed is None:
            return None
        return TransactionTrouble(self._error, since, self._failed.api, _node_id(self._failed))

    def look(self, now: float) -> TransactionTrouble | None:
        """The trouble to warn of: one warning after ``REPORT_AFTER``, then one a minute."""
        look_at = self.look_at
        if look_at is None or now < look_at:
            return None
        self._reports.reported(now)
        return self.of(now)

    @property
    def look_at(self) -> float | None:
        """The time of the next warning."""
        return None if self._since is None else self._reports.next_at(self._since)


def _node_id(call: Call) -> int | None:
    return None if isinstance(call, FindCoordinator) else call.node_id
