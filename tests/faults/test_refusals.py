"""F10: what becomes of a record or a transaction for each code that concerns producer ids, numbers and transactions."""

from __future__ import annotations

from typing import NamedTuple

import anyio
import pytest

from pykafka08 import (
    EmbeddedCluster,
    ErrorCode,
    KafkaError,
    Producer,
    ProducerFencedError,
    TopicPartition,
    TransactionAbortedError,
)
from pykafka08.errors import BrokerError
from tests.faults.stage import PATIENT

pytestmark = pytest.mark.anyio

E = ErrorCode
ACKNOWLEDGED, RAISED, ABORTABLE, FATAL, FENCED = "acknowledged", "raised", "abortable", "fatal", "fenced"
DEADLINE_S = 60
CODES = (
    E.COORDINATOR_LOAD_IN_PROGRESS,
    E.COORDINATOR_NOT_AVAILABLE,
    E.NOT_COORDINATOR,
    E.CONCURRENT_TRANSACTIONS,
    E.TRANSACTION_ABORTABLE,
    E.INVALID_TXN_STATE,
    E.INVALID_PRODUCER_ID_MAPPING,
    E.UNKNOWN_PRODUCER_ID,
    E.INVALID_PRODUCER_EPOCH,
    E.PRODUCER_FENCED,
)
ANSWERS = (
    ACKNOWLEDGED,
    ACKNOWLEDGED,
    ACKNOWLEDGED,
    ACKNOWLEDGED,
    ABORTABLE,
    FATAL,
    ABORTABLE,
    ABORTABLE,
    FENCED,
    FENCED,
)
"""To a transaction, whichever of its requests is answered so."""


class Row(NamedTuple):
    """A code that a leader says twice, and what it means."""

    code: ErrorCode
    idempotent: str
    transactional: str
    is_said_after_append: bool = False


ROWS = [
    Row(E.DUPLICATE_SEQUENCE_NUMBER, ACKNOWLEDGED, ACKNOWLEDGED, True),
    Row(E.OUT_OF_ORDER_SEQUENCE_NUMBER, ACKNOWLEDGED, ABORTABLE),
    Row(E.UNKNOWN_PRODUCER_ID, ACKNOWLEDGED, ABORTABLE),
    Row(E.INVALID_PRODUCER_EPOCH, ACKNOWLEDGED, ABORTABLE),
    Row(E.PRODUCER_FENCED, ACKNOWLEDGED, FATAL),
    Row(E.INVALID_PRODUCER_ID_MAPPING, ACKNOWLEDGED, ABORTABLE),
    Row(E.INVALID_TXN_STATE, RAISED, ABORTABLE),
    Row(E.TRANSACTION_ABORTABLE, RAISED, ABORTABLE),
    Row(E.CONCURRENT_TRANSACTIONS, ACKNOWLEDGED, ACKNOWLEDGED),
    Row(E.COORDINATOR_LOAD_IN_PROGRESS, ACKNOWLEDGED, ACKNOWLEDGED),
    Row(E.COORDINATOR_NOT_AVAILABLE, ACKNOWLEDGED, ACKNOWLEDGED),
    Row(E.NOT_COORDINATOR, ACKNOWLEDGED, ACKNOWLEDGED),
    Row(E.NOT_ENOUGH_REPLICAS, ACKNOWLEDGED, ACKNOWLEDGED),
    Row(E.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ACKNOWLEDGED, ACKNOWLEDGED, True),
    Row(E.UNKNOWN_SERVER_ERROR, RAISED, ABORTABLE, True),
]


def values(cluster: EmbeddedCluster) -> list[bytes | None]:
    """What readers of committed records see."""
    return [record.value for record in cluster.records("t", 0, committed=True)]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.code.name)
async def test_a_leader_says_it_of_a_record(row: Row) -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        cluster.faults.answer("Produce", row.code, times=2, performed=row.is_said_after_append)
        async with Producer(cluster.bootstrap_servers, enable_idempotence=True, **PATIENT) as producer:
            with anyio.fail_after(DEADLINE_S):
                if row.idempotent is ACKNOWLEDGED:
                    await producer.send("t", b"one")
                else:
                    with pytest.raises(BrokerError) as raised:
                        await producer.send("t", b"one")
                    assert raised.value.code is row.code
                    assert raised.value.may_be_written is row.is_said_after_append
                cluster.faults.clear()
                await producer.send("t", b"two")
        is_there = row.idempotent is ACKNOWLEDGED or row.is_said_after_append
        assert values(cluster) == [b"one"] * is_there + [b"two"]


async def outcome(producer: Producer, *, with_offsets: bool = True) -> str:
    """Of one transaction."""
    try:
        async with producer.transaction():
            producer.enqueue("t", b"v")
            if with_offsets:
                await producer.send_offsets({TopicPartition("t", 0): 1}, "g")
    except TransactionAbortedError:
        return ABORTABLE
    except ProducerFencedError:
        return FENCED
    except KafkaError:
        return FATAL
    return ACKNOWLEDGED


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.code.name)
async def test_a_leader_says_it_in_a_transaction(row: Row) -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        async with Producer(cluster.bootstrap_servers, transactional_id="x", linger_ms=0, **PATIENT) as producer:
            cluster.faults.answer("Produce", row.code, times=2, performed=row.is_said_after_append)
            with anyio.fail_after(DEADLINE_S):
                first = await outcome(producer, with_offsets=False)
                cluster.faults.clear()
                second = await outcome(producer)
        assert first.replace(FENCED, FATAL) == row.transactional
        assert (second.replace(FENCED, FATAL) == FATAL) is (first in (FATAL, FENCED))
        assert len(values(cluster)) == [first, second].count(ACKNOWLEDGED)


@pytest.mark.parametrize("anyio_backend", ["asyncio"], indirect=True)
@pytest.mark.parametrize("api", ["AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn"])
@pytest.mark.parametrize(("code", "expected"), list(zip(CODES, ANSWERS, strict=True)), ids=str)
async def test_a_coordinator_says_it(api: str, code: ErrorCode, expected: str) -> None:
    """Of 3.9, where each of these is asked."""
    if api == "AddPartitionsToTxn" and code is E.TRANSACTION_ABORTABLE:
        expected = FATAL  # the versions that clients use have no such code: INVALID_TXN_STATE stands for it
    async with EmbeddedCluster(version="3.9", topics={"t": 1}) as cluster:
        async with Producer(cluster.bootstrap_servers, transactional_id="x", linger_ms=0, **PATIENT) as producer:
            cluster.faults.answer(api, code)
            with anyio.fail_after(DEADLINE_S):
                first, second = await outcome(producer), await outcome(producer)
        assert first == expected
        assert second == (first if first in (FATAL, FENCED) else ACKNOWLEDGED)
        assert len(values(cluster)) == [first, second].count(ACKNOWLEDGED)
