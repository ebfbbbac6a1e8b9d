"""Transactions that one producer fills and another process ends."""

from __future__ import annotations

import pickle

import pytest

from pykafka08 import EmbeddedCluster, KafkaError, Producer, ProducerFencedError, TransactionStateError
from pykafka08.cluster.client import Client
from pykafka08.config import ClientConfig, build
from pykafka08.producer.transactions.handed_over import OpenTransaction, end_transaction
from pykafka08.records.record import TopicPartition

pytestmark = pytest.mark.anyio


async def _filled(cluster: EmbeddedCluster, value: bytes) -> OpenTransaction:
    async with Producer(cluster.bootstrap_servers, transactional_id="x") as producer:
        async with producer.transaction():
            producer.enqueue("t", value)
            await producer.send_offsets({TopicPartition("t", 0): 7}, "g")
            handed = await producer.hand_over_transaction()
            with pytest.raises(TransactionStateError):
                await producer.send("t", b"late")
        with pytest.raises(TransactionStateError):
            async with producer.transaction():
                raise AssertionError("not entered")
    return pickle.loads(pickle.dumps(handed))  # type: ignore[no-any-return]


def _client(cluster: EmbeddedCluster) -> Client:
    (config,) = build({"bootstrap_servers": cluster.bootstrap_servers}, ClientConfig)
    return Client(config)


@pytest.mark.parametrize("version", ["0.11.0", "2.8", "4.3"])
@pytest.mark.parametrize("is_commit", [True, False])
async def test_another_client_ends_it(version: str, is_commit: bool) -> None:
    async with EmbeddedCluster(version=version, brokers=2, topics={"t": 1}) as cluster, _client(cluster) as client:
        handed = await _filled(cluster, b"v")
        assert cluster.records("t", 0, committed=True) == []
        await end_transaction(client, handed, is_commit=is_commit, timeout=30)
        values = [record.value for record in cluster.records("t", 0, committed=True)]
        assert values == ([b"v"] if is_commit else [])
        if is_commit:
            await end_transaction(client, handed, is_commit=True, timeout=30)  # as after a lost answer


async def test_the_next_producer_aborts_what_was_left() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, _client(cluster) as client:
        first = await _filled(cluster, b"first")
        second = await _filled(cluster, b"second")
        with pytest.raises(ProducerFencedError):
            await end_transaction(client, first, is_commit=True, timeout=30)
        await end_transaction(client, second, is_commit=True, timeout=30)
        assert [record.value for record in cluster.records("t", 0, committed=True)] == [b"second"]


async def test_one_that_took_too_long_cannot_be_committed() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, _client(cluster) as client:
        handed = await _filled(cluster, b"v")
        cluster.expire_transaction("x")
        with pytest.raises(KafkaError, match=r"transaction_timeout_ms|transaction"):
            await end_transaction(client, handed, is_commit=True, timeout=30)
        assert cluster.records("t", 0, committed=True) == []


async def test_the_coordinator_is_looked_for_again() -> None:
    async with EmbeddedCluster(brokers=2, topics={"t": 1}) as cluster, _client(cluster) as client:
        handed = await _filled(cluster, b"v")
        before = cluster.coordinator("x")
        cluster.move_coordinator("x", next(each.node_id for each in cluster.brokers if each.node_id != before))
        await end_transaction(client, handed, is_commit=True, timeout=30)
        assert len(cluster.records("t", 0, committed=True)) == 1


async def test_an_empty_transaction_is_not_handed_over() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        async with Producer(cluster.bootstrap_servers, transactional_id="x") as producer:
            async with producer.transaction():
                with pytest.raises(TransactionStateError, match="nothing in the transaction"):
                    await producer.hand_over_transaction()
            async with producer.transaction():
                await producer.send("t", b"v")
        assert len(cluster.records("t", 0, committed=True)) == 1
