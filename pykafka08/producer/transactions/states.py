"""The states of a transactional producer, and which may follow which.  Source: KIP-98; Java's TransactionManager."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

__all__ = ["TRANSITIONS", "TransactionState"]


class TransactionState(Enum):
    """What the producer is at; the value says it in words."""

    UNINITIALIZED = "not started"
    INITIALIZING = "asking for an epoch, which fences the ones before"
    READY = "ready for a transaction"
    IN_TRANSACTION = "in a transaction"
    COMMITTING = "committing"
    ABORTABLE_ERROR = "in a transaction that can only be aborted"
    ABORTING = "aborting"
    FATAL_ERROR = "of no use any more"


_S = TransactionState

TRANSITIONS: Mapping[TransactionState, frozenset[TransactionState]] = {
    _S.UNINITIALIZED: frozenset({_S.INITIALIZING}),
    _S.INITIALIZING: frozenset({_S.READY, _S.FATAL_ERROR}),
    _S.READY: frozenset({_S.IN_TRANSACTION, _S.FATAL_ERROR}),
    _S.IN_TRANSACTION: frozenset({_S.COMMITTING, _S.ABORTABLE_ERROR, _S.ABORTING, _S.FATAL_ERROR}),
    _S.COMMITTING: frozenset({_S.READY, _S.INITIALIZING, _S.ABORTABLE_ERROR, _S.FATAL_ERROR}),
    _S.ABORTABLE_ERROR: frozenset({_S.ABORTING, _S.FATAL_ERROR}),
    _S.ABORTING: frozenset({_S.READY, _S.INITIALIZING, _S.FATAL_ERROR}),
    _S.FATAL_ERROR: frozenset(),
}
"""INITIALIZING after the end of a transaction: a new epoch, so that nothing of it can arrive in the next one."""
