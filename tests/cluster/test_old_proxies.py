"""Peers that close the connection on ApiVersions, as old proxies do: clients connect, and remember the handshake."""

from __future__ import annotations

import pytest

from pykafka08.cluster import connections
from pykafka08.cluster.client import Client, Purpose
from pykafka08.connection.handshake import NEWEST_PROBE
from pykafka08.errors import TransportError
from pykafka08.protocol.messages.metadata import MetadataRequest
from tests.connection.answers import Asked, usual_answer
from tests.connection.peers import Caller, Play, config, peer

pytestmark = pytest.mark.anyio

RELEASE = "2.8"


def proxy(highest: int, asked: list[tuple[int, str, int]]) -> Play:
    """A peer that closes on ApiVersions above ``highest``, and records connection, API and version of each request."""

    async def play(caller: Caller) -> None:
        while (request := await caller.request()) is not None:
            version = request.header.api_version
            asked.append((caller.number, request.name, version))
            answer = usual_answer(request, RELEASE, caller.address)
            if answer is None or (request.name == "ApiVersions" and version > highest):
                return
            await caller.send(answer)

    return play


def of(asked: list[tuple[int, str, int]], connection: int) -> list[tuple[str, int]]:
    return [(name, version) for number, name, version in asked if number == connection]


@pytest.mark.parametrize(
    ("highest", "second", "next_connection", "release"),
    [
        (2, [("ApiVersions", 0)], [("Metadata", 1), ("ApiVersions", 0)], RELEASE),
        (-1, [("ApiVersions", 0)], [("Metadata", 1)], "0.10.0"),
    ],
)
async def test_clients_connect_to_peers_that_close_on_api_versions(
    highest: int,
    second: list[tuple[str, int]],
    next_connection: list[tuple[str, int]],
    release: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[int, str, int]] = []
    async with peer(proxy(highest, asked)) as address:
        async with Client(config(address)) as client:
            assert of(asked, 1) == [("Metadata", 1), ("ApiVersions", 3)]
            assert of(asked, 2)[:1] == second
            versions = await client.versions(1)
            assert versions.release_guess == release
            before = max(number for number, _, _ in asked)
            await reconnect(client)
            again = of(asked, before + 1)
            assert again[: len(next_connection)] == next_connection
            assert ("ApiVersions", 3) not in again

            monkeypatch.setattr(connections, "clock", lambda: lambda: 1e12)  # a long time later
            assert client._connections._probe(address) == NEWEST_PROBE


async def reconnect(client: Client) -> None:
    """Close the control connection and make the next one."""
    broker = client.metadata.brokers[1]
    connection = client._connections.existing(broker, Purpose.CONTROL)
    assert connection is not None
    await connection.aclose()
    await client.request(1, MetadataRequest(topics=[]), timeout=10)


async def test_the_handshake_that_worked_is_used_for_the_next_connection() -> None:
    asked: list[tuple[int, str, int]] = []

    async def play(caller: Caller) -> None:
        is_first = True
        while (request := await caller.request()) is not None:
            asked.append((caller.number, request.name, request.header.api_version))
            if is_first and request.name != "ApiVersions":
                return
            is_first = False
            await caller.send(_answer(request, caller))

    async with peer(play) as address, Client(config(address)) as client:
        assert of(asked, 1) == [("Metadata", 1)]
        assert of(asked, 2)[:2] == [("ApiVersions", 0), ("Metadata", 1)]
        await reconnect(client)
        assert of(asked, 3)[:2] == [("ApiVersions", 0), ("Metadata", 1)]


async def test_a_broker_that_is_away_behind_a_proxy_is_not_taken_for_an_old_one() -> None:
    """The proxy accepts and closes each connection until the broker is back."""
    asked: list[tuple[int, str, int]] = []
    is_away = False

    async def play(caller: Caller) -> None:
        nonlocal is_away
        while (request := await caller.request()) is not None:
            asked.append((caller.number, request.name, request.header.api_version))
            is_away = is_away or (caller.number == 2 and request.name == "ApiVersions")
            if is_away:
                return
            await caller.send(_answer(request, caller))

    async with peer(play) as address, Client(config(address)) as client:
        with pytest.raises(TransportError):
            await reconnect(client)
        assert of(asked, 2) == [("Metadata", 1), ("ApiVersions", 3)]
        assert of(asked, 3) == [("ApiVersions", 0)]
        is_away = False
        await client.request(1, MetadataRequest(topics=[]))
        assert (await client.versions(1)).release_guess == RELEASE


async def test_a_broker_that_has_answered_api_versions_is_not_taken_for_an_old_one() -> None:
    """Its connections break before ApiVersions is answered, but not before Metadata is: too busy, or a bad network."""
    asked: list[tuple[int, str, int]] = []
    breaks = False

    async def play(caller: Caller) -> None:
        while (request := await caller.request()) is not None:
            asked.append((caller.number, request.name, request.header.api_version))
            if breaks and request.name == "ApiVersions":
                return
            await caller.send(_answer(request, caller))

    async with peer(play) as address, Client(config(address)) as client:
        breaks = True
        for _ in range(3):
            with pytest.raises(TransportError):
                await reconnect(client)
        assert asked.count((3, "ApiVersions", 0)) == 1
        assert (await client.versions(1)).release_guess == RELEASE
        breaks = False
        await client.request(1, MetadataRequest(topics=[]))
        assert (await client.versions(1)).release_guess == RELEASE


def _answer(request: Asked, caller: Caller) -> bytes:
    answer = usual_answer(request, RELEASE, caller.address)
    assert answer is not None
    return answer
