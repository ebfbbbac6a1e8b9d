"""Every log line of a client has its ``client_id``, and its group or transactional id."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Any

import anyio
import pytest

from pykafka08 import Admin, Consumer, EmbeddedCluster, KafkaError, NewTopic, Producer, TopicPartition

pytestmark = pytest.mark.anyio

OWNERS: dict[str, dict[str, str]] = {
    "plain": {},
    "writer": {"transactional_id": "tx"},
    "classic": {"group_id": "g"},
    "second": {"group_id": "g"},
    "modern": {"group_id": "h"},
    "assigns": {"group_id": "i"},
    "reader": {},
    "operator": {},
}
"""Clients by ``client_id``, and the other facts in each of their log lines."""


def facts_of(record: logging.LogRecord) -> dict[str, Any]:
    names = ("client_id", "group_id", "transactional_id")
    return {name: getattr(record, name) for name in names if hasattr(record, name)}


async def test_every_log_line_names_its_client(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="pykafka08")
    with anyio.fail_after(60):
        async with EmbeddedCluster(brokers=2, topics={"t": 2}, group_consumer_heartbeat_interval_ms=20) as cluster:
            servers = cluster.bootstrap_servers
            common: dict[str, Any] = {
                "bootstrap_servers": servers,
                "auto_offset_reset": "earliest",
                "retry_backoff_ms": 5,
                "heartbeat_interval_ms": 20,
            }
            async with (
                Producer(servers, client_id="plain", retry_backoff_ms=5) as plain,
                Producer(servers, client_id="writer", transactional_id="tx", retry_backoff_ms=5) as writer,
                Admin(servers, client_id="operator") as admin,
                Consumer("t", client_id="classic", group_id="g", **common) as classic,
                Consumer("t", client_id="modern", group_id="h", group_protocol="consumer", **common) as modern,
                Consumer(client_id="assigns", group_id="i", **common) as assigns,
                Consumer("t", client_id="reader", **common) as reader,
            ):
                await plain.send("t", b"1")
                async with writer.transaction():
                    await writer.send("t", b"2")
                with suppress(ZeroDivisionError):
                    async with writer.transaction():
                        await writer.send("t", b"3")
                        raise ZeroDivisionError
                assigns.assign([TopicPartition("t", 0), TopicPartition("t", 1)])
                for consumer in (classic, modern, assigns, reader):
                    await consumer.getone()
                    if consumer is not reader:
                        await consumer.commit()
                async with Consumer("t", client_id="second", group_id="g", **common):
                    await admin.create_topics([NewTopic("u")])
                cluster.move_coordinator("g", 1 - cluster.coordinator("g"))
                cluster.expire_sessions("h")
                await cluster.stop_broker(cluster.leader("t", 0))
                await plain.send("t", b"4", partition=0)
                await classic.commit({TopicPartition("t", 7): 1})

    found: dict[str, int] = {}
    for record in caplog.records:
        if record.name == "pykafka08" or record.name.startswith("pykafka08."):
            facts = facts_of(record)
            assert "client_id" in facts, record.getMessage()
            client_id = facts.pop("client_id")
            assert facts == OWNERS[client_id], record.getMessage()
            assert f"client_id={client_id}" in record.getMessage()
            found[client_id] = found.get(client_id, 0) + 1
    assert found.keys() == OWNERS.keys()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_the_steps_of_a_join_are_not_trouble(protocol: str, caplog: pytest.LogCaptureFixture) -> None:
    """The coordinator answers MEMBER_ID_REQUIRED, and the join of a second member begins a rebalance."""
    caplog.set_level(logging.DEBUG, logger="pykafka08")
    settings: dict[str, Any] = {"group_id": "g", "group_protocol": protocol, "heartbeat_interval_ms": 20}
    with anyio.fail_after(60):
        async with EmbeddedCluster(topics={"t": 2}, group_consumer_heartbeat_interval_ms=20) as cluster:
            servers = cluster.bootstrap_servers
            async with Consumer("t", bootstrap_servers=servers, **settings) as first:
                async with Consumer("t", bootstrap_servers=servers, **settings) as second:
                    assert health_trouble(first) is health_trouble(second) is None
    lines = [record.getMessage() for record in caplog.records]
    assert [line for line in lines if "trouble" in line or "fail" in line or "MEMBER_ID_REQUIRED" in line] == []


def health_trouble(consumer: Consumer) -> KafkaError | None:
    group = consumer.health().group
    assert group is not None
    return group.trouble
