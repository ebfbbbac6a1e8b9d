"""Faults on an embedded cluster, each a function that breaks things while a workload gets on.

The numbers are those of the fault matrix in docs/reliability.md.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import anyio

from pykafka08 import EmbeddedCluster
from pykafka08.error_codes import ErrorCode
from tests.faults.history import Fault, Healed
from tests.faults.stage import Stage

__all__ = ["FAULTS", "BreakIt"]

BreakIt: TypeAlias = Callable[[Stage, EmbeddedCluster], Coroutine[Any, Any, None]]

DATA_APIS = ("Produce", "Fetch")
COORDINATOR_CODES = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)

SAID_AFTER_APPEND = (
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)
_OF_TRANSACTIONS = (
    *COORDINATOR_CODES,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.TRANSACTION_ABORTABLE,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.UNKNOWN_PRODUCER_ID,
)
REFUSALS: dict[str, tuple[ErrorCode, ...]] = {
    "Produce": (
        *SAID_AFTER_APPEND,
        *_OF_TRANSACTIONS,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
    ),
    "InitProducerId": _OF_TRANSACTIONS,
    "AddPartitionsToTxn": _OF_TRANSACTIONS,
    "AddOffsetsToTxn": _OF_TRANSACTIONS,
    "TxnOffsetCommit": (*_OF_TRANSACTIONS, ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS),
    "EndTxn": _OF_TRANSACTIONS,
}
"""By API: what F10 has brokers say."""


@asynccontextmanager
async def broken(stage: Stage, what: str) -> AsyncIterator[None]:
    """Note the fault for as long as it lasts."""
    stage.history.note(Fault(what))
    yield
    stage.history.note(Healed(what))


def shares(first: float, last: float, steps: int) -> list[float]:
    """So many points of the work, evenly."""
    return [first + (last - first) * step / (steps - 1) for step in range(steps)]


async def kill(stage: Stage, cluster: EmbeddedCluster) -> None:
    """F1: brokers go without a word, one at a time."""
    for share in shares(0.1, 0.8, 4):
        await stage.at(share)
        victim = stage.chance.choice([node.node_id for node in cluster.brokers])
        async with broken(stage, f"broker {victim} is killed"):
            await cluster.stop_broker(victim)
            await stage.at(share + 0.1)
            await cluster.start_broker(victim)


async def pause(stage: Stage, cluster: EmbeddedCluster) -> None:
    """F2: a broker answers late, once within the time-out of a request and once beyond it."""
    for share, seconds in ((0.2, 0.5), (0.5, 2.5)):
        await stage.at(share)
        async with broken(stage, f"answers come {seconds} s late"):
            for api in stage.chance.sample(stage.apis, 2):
                cluster.faults.delay(api, seconds, times=2)
            await stage.at(share + 0.2)
            cluster.faults.clear()


async def restart_all(stage: Stage, cluster: EmbeddedCluster) -> None:
    """F3: a rolling restart."""
    for share, node in zip(shares(0.1, 0.8, len(cluster.brokers)), cluster.brokers, strict=True):
        await stage.at(share)
        async with broken(stage, f"broker {node.node_id} restarts"):
            await cluster.stop_broker(node.node_id)
            await anyio.lowlevel.checkpoint()
            await cluster.start_broker(node.node_id)


async def move_leaders(stage: Stage, cluster: EmbeddedCluster) -> None:
    """F4: leaders move, twenty times."""
    for share in shares(0.05, 0.9, 20):
        await stage.at(share)
        topic, partitions = stage.chance.choice(sorted(cluster.topics.items()))
        partition = stage.chance.randrange(partitions)
        node = stage.chance.choice([node.node_id for node in cluster.brokers])
        stage.history.note(Healed(f"{topic} {partition} moves to broker {node}"))
        cluster.move_leader(topic, partition, node)


async def garble_answers(stage: Stage, cluster: EmbeddedCluster) -> None:
    """F9: answers come twice, never, after the next one, or cut off."""
    faults = cluster.faults
    async with broken(stage, "answers are doubled, lost, swapped and cut"):
        for share in shares(0.05, 0.8, 16):
            await stage.at(share)
            api = stage.chance.choice((*stage.apis, "Metadata"))
            way = stage.chance.choice(("duplicate_answer", "drop_answer", "swap_answers", "cut_answer"))
            if way == "cut_answer":
                faults.cut_answer(api, stage.chance.randrange(60))
            else:
                getattr(faults, way)(api)
        faults.clear()


async def trouble_coordinators(stage: Stage, cluster: EmbeddedCluster) -> None:
    """F11: coordinators move, load, and are not there."""
    async with broken(stage, "coordinators move"):
        for share in shares(0.05, 0.8, 10):
            await stage.at(share)
            key = stage.chance.choice(("g", "x-0", "x-1"))
            cluster.move_coordinator(key, stage.chance.choice([node.node_id for node in cluster.brokers]))
            asked = [api for api in stage.apis if api not in DATA_APIS]
            if asked:
                cluster.faults.answer(stage.chance.choice(asked), stage.chance.choice(COORDINATOR_CODES))
        cluster.faults.clear()


async def refuse_records(stage: Stage, cluster: EmbeddedCluster) -> None:
    """F15: what a leader may answer to records, before and after it stored them."""
    refused = (
        (ErrorCode.KAFKA_STORAGE_ERROR, False),
        (ErrorCode.NOT_ENOUGH_REPLICAS, False),
        (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, True),
        (ErrorCode.REQUEST_TIMED_OUT, True),
        (ErrorCode.REQUEST_TIMED_OUT, False),
    )
    async with broken(stage, "records are refused"):
        for share in shares(0.05, 0.8, 12):
            await stage.at(share)
            code, performed = stage.chance.choice(refused)
            cluster.faults.answer("Produce", code, performed=performed)
        cluster.faults.clear()


async def call_too_large(stage: Stage, cluster: EmbeddedCluster) -> None:
    """F15: batches are too large, with others in flight behind them.  Alone: no broker stores such a one first."""
    async with broken(stage, "batches are too large"):
        for share in shares(0.05, 0.8, 12):
            await stage.at(share)
            cluster.faults.answer("Produce", ErrorCode.MESSAGE_TOO_LARGE, partition=stage.chance.randrange(6))
        cluster.faults.clear()


async def black_out(stage: Stage, cluster: EmbeddedCluster) -> None:
    """F18: all brokers are down, and come back."""
    await stage.at(0.3)
    async with broken(stage, "all brokers are down"):
        for node in cluster.brokers:
            await cluster.stop_broker(node.node_id)
        await anyio.sleep(0.5)  # a time of nothing but refused connections: that is the fault
        for node in cluster.brokers:
            await cluster.start_broker(node.node_id)


async def shorten_lives(stage: Stage, cluster: EmbeddedCluster) -> None:
    """F19: connections live for half a second to one and a half."""
    stage.pause_s = 0.1
    async with broken(stage, "connections have short lives"):
        cluster.faults.connection_lives(0.5, 1.5, seed=stage.seed)
        await stage.at(0.9)
        cluster.faults.clear()


async def add_partitions(stage: Stage, cluster: EmbeddedCluster) -> None:
    """F5: topics get more partitions, and leaders move as in a reassignment."""
    for share in shares(0.1, 0.8, 6):
        await stage.at(share)
        for topic, partitions in sorted(cluster.topics.items()):
            cluster.add_partitions(topic, partitions + 1)
            stage.partitions[topic] = partitions + 1
            partition = stage.chance.randrange(partitions + 1)
            node = stage.chance.choice([node.node_id for node in cluster.brokers])
            stage.history.note(Healed(f"{topic} has a partition more, and {partition} moves to broker {node}"))
            cluster.move_leader(topic, partition, node)


async def refuse_numbers(stage: Stage, cluster: EmbeddedCluster) -> None:
    """F10: what leaders and coordinators say of producer ids, their numbers and transactions."""
    async with broken(stage, "producer ids, numbers and transactions are refused"):
        for share in shares(0.05, 0.85, 14):
            await stage.at(share)
            api = stage.chance.choice([api for api in REFUSALS if api in stage.apis])
            code = stage.chance.choice(REFUSALS[api])
            # A leader that says these has the batch.
            cluster.faults.answer(api, code, times=stage.chance.choice((1, 2)), performed=code in SAID_AFTER_APPEND)
        cluster.faults.clear()


FAULTS: dict[str, BreakIt] = {
    "F01 kill": kill,
    "F02 pause": pause,
    "F03 restart": restart_all,
    "F04 leaders": move_leaders,
    "F09 answers": garble_answers,
    "F11 coordinators": trouble_coordinators,
    "F15 refusals": refuse_records,
    "F15 too large": call_too_large,
    "F18 blackout": black_out,
    "F19 lives": shorten_lives,
    "F05 partitions": add_partitions,
    "F10 numbers": refuse_numbers,
}
