"""The states of a group member; ``machine`` moves between them.

State       What runs                                         Goes to
UNJOINED    nothing, or the look-up of the coordinator         PREPARING, JOINING
PREPARING   the application gives partitions up                UNJOINED, then JOINING
JOINING     JoinGroup, held until all members have joined      SYNCING; UNJOINED after an error
SYNCING     SyncGroup; the leader assigns before it            ASSIGNING; UNJOINED after an error
ASSIGNING   the application hears of its new partitions        STABLE
STABLE      heartbeats                                         PREPARING or JOINING, when there is a reason
ENDED       nothing: left, or ``error`` is set
"""

from __future__ import annotations

from enum import Enum

__all__ = ["REBALANCING", "SILENT", "State"]


class State(Enum):
    UNJOINED = "unjoined"
    PREPARING = "preparing"
    JOINING = "joining"
    SYNCING = "syncing"
    ASSIGNING = "assigning"
    STABLE = "stable"
    ENDED = "ended"


SILENT = frozenset({State.JOINING, State.SYNCING, State.ENDED})
"""States without heartbeats: the broker takes a held JoinGroup or SyncGroup for life."""

REBALANCING = frozenset({State.UNJOINED, State.JOINING, State.SYNCING})
"""States in which a member that leaves goes on: the coordinator may be in a generation that it does not know yet, and
takes its last commits in that one alone."""
