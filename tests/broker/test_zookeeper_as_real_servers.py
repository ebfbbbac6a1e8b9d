"""The embedded ZooKeeper answers as real servers of each release do, in one long conversation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from pykafka08.broker.zookeeper import EmbeddedZooKeeper
from tests.broker.zookeeper_story import tell
from tests.integration.clusters import Clusters

RELEASES = ("3.3", "3.4", "3.8")
REAL = [("0.8.1.1", "3.3"), ("0.8.2.2", "3.4"), ("3.9.2", "3.8")]


def recorded(release: str) -> list[list[Any]]:
    path = Path(__file__).parent / "data" / f"zookeeper-{release}.json"
    lines: list[list[Any]] = json.loads(path.read_text())
    return lines


def numbers(release: str) -> tuple[int, int]:
    major, minor = release.split(".")
    return int(major), int(minor)


def as_json(lines: list[list[Any]]) -> Any:
    return json.loads(json.dumps(lines))


@pytest.mark.anyio
@pytest.mark.parametrize("release", RELEASES)
async def test_the_embedded_server(release: str) -> None:
    async with EmbeddedZooKeeper(release=release) as server:
        lines = await anyio.to_thread.run_sync(tell, server.address, numbers(release))
        assert as_json(lines) == recorded(release)


@pytest.mark.parametrize("version", ["0.8.2.2"])
def test_the_real_server_that_was_recorded(version: str, clusters: Clusters) -> None:
    release = dict(REAL)[version]
    address = clusters.running(version).zookeeper
    assert address is not None
    assert as_json(tell(address, numbers(release))) == recorded(release)
