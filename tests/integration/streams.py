"""Write and read a long stream of records while sessions are renewed and the user's credentials change."""

from __future__ import annotations

import hashlib
import logging
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from pykafka08 import Admin, AuthenticationError, Consumer, Producer
from pykafka08.cluster.client import Client
from pykafka08.config import ClientConfig, build
from pykafka08.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from tests.integration.clusters import RealCluster
from tests.integration.reading import read_records

__all__ = ["check_stream", "delete_scram_user", "set_scram_password", "wait_until_accepted"]

STEPS = 100
RENEWED_S = 60
HASHES = {"SCRAM-SHA-256": (1, "sha256"), "SCRAM-SHA-512": (2, "sha512")}
"""The number of each mechanism in Kafka's protocol, and its hash."""
ITERATIONS = 4096


async def check_stream(
    cluster: RealCluster,
    settings: dict[str, Any],
    log: pytest.LogCaptureFixture,
    *,
    count: int,
    seconds: float,
    change: Callable[[], Awaitable[object]] | None = None,
) -> None:
    """Write ``count`` records in about ``seconds`` and read them in a group; ``change`` is called halfway.

    No record may be lost, duplicated or out of order.  Producer and consumer renew sessions, and no renewal comes when
    the broker takes none.  A renewal during the change may fail: its password may be the old one.
    """
    log.set_level(logging.DEBUG, logger="pykafka08.connection")
    topic = cluster.new_topic("streamed")
    half = anyio.Event()

    async def write() -> None:
        async with Producer(client_id=f"{topic}-producer", **settings) as producer:
            for start in range(0, count, count // STEPS):
                for number in range(start, start + count // STEPS):
                    producer.enqueue(topic, b"%d" % number)
                if start == count // 2:
                    half.set()
                await anyio.sleep(seconds / STEPS)
            await producer.flush()
            await _until_renewed(log, f"{topic}-producer")

    async def change_halfway() -> None:
        await half.wait()
        if change is not None:
            await change()

    async with anyio.create_task_group() as group:
        group.start_soon(write)
        group.start_soon(change_halfway)
        async with Consumer(
            topic, group_id=topic, auto_offset_reset="earliest", client_id=f"{topic}-consumer", **settings
        ) as consumer:
            got = await read_records(consumer, count)
            await _until_renewed(log, f"{topic}-consumer")
    refused = [
        message
        for message in map(logging.LogRecord.getMessage, log.records)
        if f"client_id={topic}-" in message and "refused SaslHandshake" in message
    ]
    assert not refused
    assert [record.value for record in got] == [b"%d" % number for number in range(count)]


async def _until_renewed(log: pytest.LogCaptureFixture, client_id: str) -> None:
    """Wait for an authentication that is not the first of its connection: on a busy machine, one may come too late."""
    with anyio.fail_after(RENEWED_S):
        while True:
            events = Counter(
                str(vars(record).get("event")) for record in log.records if vars(record).get("client_id") == client_id
            )
            if events["connection.authenticated"] > events["connection.ready"]:
                return
            await anyio.sleep(0.05)


async def set_scram_password(cluster: RealCluster, user: str, mechanism: str, password: str) -> None:
    """Create a user, or change the password (Kafka 2.7 and later)."""
    number, name = HASHES[mechanism]
    salt = secrets.token_bytes(24)
    credential = ScramCredentialUpsertion(
        name=user,
        mechanism=number,
        iterations=ITERATIONS,
        salt=salt,
        salted_password=hashlib.pbkdf2_hmac(name, password.encode(), salt, ITERATIONS),
    )
    await _alter(cluster, AlterUserScramCredentialsRequest(upsertions=[credential]))


async def wait_until_accepted(settings: dict[str, Any]) -> None:
    """Wait until a new user can log in: the broker gets the user from the controller."""
    while True:
        try:
            async with Admin(**settings):
                return
        except AuthenticationError:
            await anyio.sleep(0.05)


async def delete_scram_user(cluster: RealCluster, user: str, mechanism: str) -> None:
    number, _ = HASHES[mechanism]
    deletion = ScramCredentialDeletion(name=user, mechanism=number)
    await _alter(cluster, AlterUserScramCredentialsRequest(deletions=[deletion]))


async def _alter(cluster: RealCluster, request: AlterUserScramCredentialsRequest) -> None:
    (config,) = build({"bootstrap_servers": cluster.bootstrap}, ClientConfig)
    async with Client(config) as client:
        response = await client.request_any(request)
    assert [each.error_code for each in response.results] == [0], response
