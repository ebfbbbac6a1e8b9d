"""``pykafka08 pipeline`` with credentials that the brokers refuse: exit status, text, no secret; without Spark."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pykafka08 import EmbeddedCluster
from tests.brokers.properties import write_properties
from tests.cli.console import console_here
from tests.security.secrets_found import SecretSearch
from tests.spark.pipeline import orders

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]

PASSWORD, WRONG = "s3cret+of/alice=", "wr0ng+of/alice="
ADDRESS = 'bootstrap_servers = "BROKERS"'
STAGES = ["ingest-shop", "decode-shop", "dead-letters", "aggregate-hourly", "publish-hourly"]


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    topics = {orders.TOPIC: 1, orders.LETTERS: 1, orders.TOTALS: 1}
    async with EmbeddedCluster(security="SASL_PLAINTEXT", users={"alice": PASSWORD}, topics=topics) as started:
        yield started


def written(folder: Path, cluster: EmbeddedCluster, password: str) -> Path:
    """The orders' pipeline: the source with a properties file, the others with properties in the TOML."""
    properties = {name: value.replace(PASSWORD, password) for name, value in cluster.client_properties("alice").items()}
    write_properties(folder / "client.properties", properties)
    text = orders.CONFIG.replace(ADDRESS, 'properties = "client.properties"', 1)
    inline = "\n".join(f"{_quoted(name)} = {_quoted(value)}" for name, value in properties.items())
    path = folder / "orders.toml"
    path.write_text(text.replace(ADDRESS, inline.replace('"bootstrap.servers"', "bootstrap_servers")))
    return path


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


async def test_status_shows_what_it_knows_and_fails(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    search = SecretSearch(PASSWORD, WRONG)
    for password, status, lag in ((PASSWORD, 0, "0 offsets"), (WRONG, 1, "not known")):
        with search.of_logs():
            ended = await console_here("pipeline", "status", str(written(tmp_path, cluster, password)))
        search.of_text("stdout", ended.out)
        search.of_text("stderr", ended.err)
        lines = ended.out.decode().splitlines()
        assert lines[:2] == ["orders: nothing runs", f"ingest-shop: lag {lag}, -, batch -, last rows -"]
        assert [line.split(":")[0] for line in lines[1:] if not line.startswith(" ")] == STAGES
        assert ended.status == status
    assert ended.err.startswith("pykafka08 pipeline: sources.shop: the broker refused the credentials: ")
    assert len(ended.err.splitlines()) == 1
    assert search.found == []


@pytest.mark.parametrize(
    "words", [("plan",), ("run",), ("validate",), ("init", "--topic", orders.TOPIC), ("status", "--check")]
)
async def test_every_action_fails_in_one_line(
    cluster: EmbeddedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setattr("pykafka08.spark.pipeline.running.session", None)
    search = SecretSearch(PASSWORD, WRONG)
    config = written(tmp_path, cluster, WRONG)
    given: list[Any] = [str(config)]
    if words[0] == "init":
        given = ["--command-config", str(tmp_path / "client.properties"), "--output", str(tmp_path / "new.toml")]
    with search.of_logs():
        ended = await console_here("pipeline", *words, *given)
    search.of_text("stdout", ended.out)
    search.of_text("stderr", ended.err)
    assert ended.status == 1
    assert (": sources.shop: " in ended.err) == (words[0] != "init")
    assert "the broker refused the credentials" in ended.err
    assert len(ended.err.splitlines()) == 1
    assert search.found == []
    assert not (tmp_path / "new.toml").exists()


async def test_a_sink_with_wrong_credentials_is_named(
    cluster: EmbeddedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pykafka08.spark.pipeline.running.session", None)
    config = written(tmp_path, cluster, PASSWORD)
    config.write_text(config.read_text().replace(PASSWORD, WRONG))
    ended = await console_here("pipeline", "validate", str(config))
    assert (ended.status, ended.out) == (1, b"sources.shop: 1 partitions of 1 topics\n")
    assert ended.err.startswith("pykafka08 pipeline: dead_letters: the broker refused the credentials: ")
    assert WRONG not in ended.err
