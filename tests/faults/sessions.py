"""F12: sessions that end, as heartbeats are missed, members are thrown out, or the event loop stands still.

Times are those of `stage.FAST_GROUP` and of the cluster: sessions of two seconds.
"""

from __future__ import annotations

import time

import anyio

from pykafka08 import EmbeddedCluster
from pykafka08.error_codes import ErrorCode
from tests.faults.embedded import BreakIt, broken, shares
from tests.faults.stage import Stage

__all__ = ["SESSION_FAULTS"]

BEYOND_SESSION_S = 2.6
HEARTBEATS = ("Heartbeat", "ConsumerGroupHeartbeat")
THROWN_OUT = {
    "Heartbeat": (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION),
    "ConsumerGroupHeartbeat": (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH),
    "OffsetCommit": (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION),
    "TxnOffsetCommit": (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION),
}


async def miss_heartbeats(stage: Stage, cluster: EmbeddedCluster) -> None:
    """Once they do not arrive, once their answers do not."""
    for share, way in ((0.2, "close_before"), (0.6, "drop_answer")):
        await stage.at(share)
        async with broken(stage, f"heartbeats are missed ({way})"):
            for api in HEARTBEATS:
                getattr(cluster.faults, way)(api, times=None)
            await anyio.sleep(BEYOND_SESSION_S)  # the time in which none is answered is the fault
            cluster.faults.clear()


async def throw_out(stage: Stage, cluster: EmbeddedCluster) -> None:
    """Members hear that they are none, at heartbeats and at commits: what they own is lost at once."""
    async with broken(stage, "members are thrown out"):
        for share in shares(0.1, 0.8, 4):
            await stage.at(share)
            api = stage.chance.choice([api for api in THROWN_OUT if api in stage.apis])
            cluster.faults.answer(api, stage.chance.choice(THROWN_OUT[api]))
        cluster.faults.clear()


async def stand_still(stage: Stage, cluster: EmbeddedCluster) -> None:
    """Nothing runs for longer than a session: the broker's timers, and what lies fetched, are due at one time."""
    for share in (0.2, 0.6):
        await stage.at(share)
        async with broken(stage, "the event loop stands still"):
            time.sleep(BEYOND_SESSION_S)  # noqa: ASYNC251


SESSION_FAULTS: dict[str, BreakIt] = {
    "F12 missed heartbeats": miss_heartbeats,
    "F12 thrown out": throw_out,
    "F12 standstill": stand_still,
}
