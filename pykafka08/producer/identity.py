"""The producer id: whether there is to be one, whom to ask for it, and what a refusal means.  Pure.

Any broker gives an id to an idempotent producer.  Not here: the numbers that go with it (``sequences``).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from pykafka08.cluster.metadata import Snapshot
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import (
    BrokerError,
    ClosedError,
    KafkaError,
    RemoteProtocolError,
    RequestTimeoutError,
    SecurityError,
    TransportError,
)
from pykafka08.producer.actions import AskIdentity, IdempotenceOff
from pykafka08.producer.sequences import Identity

__all__ = ["IdentityKeeper", "IdentityState"]

ASK_AGAIN = (TransportError, RequestTimeoutError, RemoteProtocolError, ClosedError, SecurityError)
ASK_AGAIN_CODES = {ErrorCode.UNKNOWN_SERVER_ERROR}
"""0.11 says it while it cannot reach ZooKeeper for a block of ids."""


class IdentityState(Enum):
    """OFF is where a producer stays that needs no id, or that found none and can do without."""

    OFF = "records are sent without a producer id"
    WANTED = "a broker is to be asked, maybe after a backoff"
    ASKED = "for a broker's answer"
    KNOWN = "there is an id"
    REFUSED = "the cluster gives none, and the application demands one"


class IdentityKeeper:
    """``is_demanded`` False lets a producer go on without an id where the cluster has none to give.

    With ``is_given`` nobody is asked here: somebody else calls :meth:`given`.
    """

    def __init__(self, *, is_wanted: bool, is_demanded: bool, is_given: bool, backoff: Callable[[int], float]) -> None:
        self.state = IdentityState.WANTED if is_wanted else IdentityState.OFF
        self.is_demanded = is_demanded
        self.is_given = is_given
        self.identity: Identity | None = None
        self.error: KafkaError | None = None
        """Why there is none."""
        self._backoff = backoff
        self._attempts = 0
        self._ask_at = 0.0
        self._invalid_answers = 0
        """Consecutive successful answers without a valid producer id."""
        self._brokers = 1
        """Number of brokers when one was last asked."""
        self._has_warned = False
        self._warning: IdempotenceOff | None = None

    @property
    def is_on(self) -> bool:
        """Batches are numbered, or will be when there is an id."""
        return self.state is not IdentityState.OFF

    @property
    def refusal(self) -> KafkaError | None:
        """The error of every record; None unless REFUSED, the credentials fail or all brokers' answers are invalid."""
        is_final = self.state is IdentityState.REFUSED or isinstance(self.error, SecurityError)
        return self.error if is_final or self._has_only_invalid_answers else None

    @property
    def _has_only_invalid_answers(self) -> bool:
        return self._invalid_answers >= self._brokers

    def poll(self, snapshot: Snapshot, now: float) -> list[AskIdentity | IdempotenceOff]:
        """Whom to ask, each broker in turn; what to warn of."""
        actions: list[AskIdentity | IdempotenceOff] = []
        if self.state is IdentityState.WANTED and not self.is_given and self._ask_at <= now and snapshot.brokers:
            self.state = IdentityState.ASKED
            nodes = sorted(snapshot.brokers)
            self._brokers = len(nodes)
            actions.append(AskIdentity(nodes[self._attempts % len(nodes)]))
        if self._warning is not None:
            actions.append(self._warning)
            self._warning = None
        return actions

    def next_wakeup(self) -> float | None:
        return self._ask_at if self.state is IdentityState.WANTED and self._ask_at and not self.is_given else None

    def given(self, identity: Identity) -> None:
        self.state, self.identity, self.error = IdentityState.KNOWN, identity, None
        self._attempts, self._ask_at, self._invalid_answers = 0, 0.0, 0

    def failed(self, error: KafkaError, now: float, *, is_invalid: bool = False) -> None:
        """Note that a broker gave no producer id; ``is_invalid``: its answer had impossible values."""
        self.error = error
        self._invalid_answers = self._invalid_answers + 1 if is_invalid else 0
        if isinstance(error, BrokerError):
            code = error.code
            may_ask_again = code in ASK_AGAIN_CODES or (isinstance(code, ErrorCode) and code.is_retriable)
        else:
            may_ask_again = isinstance(error, ASK_AGAIN)
        if may_ask_again:
            self._attempts += 1
            self._ask_at = now + self._backoff(self._attempts)
            self.state = IdentityState.WANTED
        else:
            self.state = IdentityState.REFUSED if self.is_demanded else IdentityState.OFF
            self.records_go_plain(error)

    def renew(self, producer_id: int) -> None:
        """That id is used up or refused: another one is needed."""
        if self.identity is not None and self.identity.producer_id == producer_id:
            self.state, self.identity = IdentityState.WANTED, None

    def records_go_plain(self, error: KafkaError) -> None:
        """Some or all records go without numbers: the application is told once, unless it is by an error."""
        if not self._has_warned and not self.is_demanded:
            self._has_warned = True
            self._warning = IdempotenceOff(error)
