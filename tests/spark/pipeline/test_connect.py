"""The pipeline on a Spark Connect server: the same commands, tables and proof as with a session of its own."""

from __future__ import annotations

import platform
import socket
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline import connect
from tests.spark.connect_server import connect_server
from tests.spark.pipeline import evidence, orders
from tests.spark.pipeline.killing import Run, command, kill_driver

SECOND = """
[sources.web]
bootstrap_servers = "{}"
topics = ["orders"]

[decode]"""
BY_SQL = """
[aggregates.daily]
watermark = "30 days"
sql = "SELECT window, kind, count_if(kind <> '{}') AS orders FROM silver GROUP BY window(event_time, '1 day'), kind;"

[spark]"""


def written_config(folder: Path, master: str, shop: str, web: str = "") -> Path:
    """The pipeline of orders, with a second source if ``web`` is given; the server has the settings of the JVM."""
    path = orders.written_config(folder, shop)
    text, _, _ = path.read_text().partition("[spark]")
    if web:
        text = text.replace("\n[decode]", SECOND.format(web))
    path.write_text(f'{text}[spark]\nmaster = "{master}"\n')
    return path


class Conf:
    """The settings of a session on a server."""

    def __init__(self, **there: str) -> None:
        self.getAll = there

    def set(self, name: str, value: str) -> None:
        self.getAll[name] = value

    def isModifiable(self, name: str) -> bool:
        return name.startswith("spark.sql.")


def test_a_setting_that_only_the_server_can_have_is_named() -> None:
    spark: Any = SimpleNamespace(conf=Conf(**{"spark.jars": "a.jar", "spark.speculation": "true"}))
    chosen = {"spark.jars": "a.jar", "spark.sql.shuffle.partitions": "2", "spark.hadoop.fs.s3a.threads.max": "9"}
    with pytest.raises(ConfigError) as caught:
        connect._configure(spark, {"spark.speculation": "false"}, {**chosen, "spark.executor.memory": "2g"})
    assert str(caught.value).splitlines() == [
        "spark.conf.spark.executor.memory: the Spark Connect server has to have it from its start; start the server "
        "with it, or remove it here",
        "spark.master: the server has spark.speculation=true; start it with false",
    ]
    assert spark.conf.getAll["fs.s3a.threads.max"] == "9"
    assert spark.conf.getAll["spark.sql.shuffle.partitions"] == "2"
    spark.conf.set("spark.speculation", "false")
    connect._configure(spark, {"spark.speculation": "false"}, chosen)


def test_a_server_that_does_not_answer_is_reported_without_the_token() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(ConfigError) as caught:
        connect.connected(f"sc://127.0.0.1:{port}/;token=secret", {}, {})
    said = f"spark.master: no Spark Connect server answers at sc://127.0.0.1:{port}/: Connection refused"
    assert str(caught.value) == said


def completed(*words: str) -> str:
    done = command(*words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_a_pipeline_on_a_server_survives_its_client(tmp_path: Path) -> None:
    with connect_server(tmp_path) as master, orders.broker() as shop:
        config = written_config(tmp_path, master, shop)
        sent = killed_and_completed(config, shop)
        proof = completed("verify", str(config))
        assert proof.count("ok ") == len(proof.splitlines()), proof
        evidence.check_silver(tmp_path / "out", sent)


@pytest.mark.spark
@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_every_command_on_a_server(tmp_path: Path) -> None:
    """With two sources, a backfill, and an aggregate in SQL that is added later."""
    with connect_server(tmp_path) as master, orders.broker() as shop, orders.broker() as web:
        config = written_config(tmp_path, master, shop, web)
        interpreter = f"Python {platform.python_version()} at {sys.executable}"
        assert f"server: {interpreter}; workers: {interpreter}\n" in completed("validate", str(config))
        sent = evidence.Sent()
        sent.produce(web, range(1001, 1040), "web")
        killed_and_completed(config, shop, sent)
        completed("backfill", str(config), "--from", "2024-03-01", "--to", "2024-03-01")
        config.write_text(config.read_text().replace("\n[spark]", BY_SQL))
        completed("run", str(config), "--no-charts", "--no-compaction", "--stage", "aggregate-daily")
        proof = completed("verify", str(config))
        assert proof.count("ok ") == len(proof.splitlines()), proof
        evidence.check_silver(tmp_path / "out", sent)


def killed_and_completed(config: Path, shop: str, sent: evidence.Sent | None = None) -> evidence.Sent:
    """Kill the client of a run in its first batch of silver, run again with more records, and check all tables."""
    folder, sent = config.parent, sent or evidence.Sent()
    sent.produce(shop, range(1, 150))
    run = Run(config, folder / "run.log")
    try:
        assert run.is_struck("silver/data/decode-shop-*/**/*.parquet", kill_driver), run.text()
    finally:
        run.end()
    sent.produce(shop, range(145, 180))
    completed("run", str(config), "--no-charts")
    evidence.check(folder / "out", shop, sent)
    logs = [one.read_text() for one in folder.glob("out/runs/*/progress.jsonl")]
    assert '"quality": {"read": ' in "".join(logs)  # counted on the server
    return sent
