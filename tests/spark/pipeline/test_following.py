"""``pipeline run --follow``: all stages at once until told to end; then there is a summary, and nothing is lost."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.spark.pipeline import evidence, orders
from tests.spark.pipeline.killing import Run, command

AS_SQL = """
[aggregates.as-sql]
watermark = "30 days"
sql_file = "as.sql"
bootstrap_servers = "BROKERS"
topic = "orders-as-sql"

[spark]"""
QUERY = """
WITH dated AS (SELECT *, event_time AS moment FROM silver WHERE id IS NOT NULL)
SELECT kind, window.start AS window_start, window.end AS window_end, count(*) AS orders, sum(amount) AS amount
FROM dated GROUP BY window(moment, '1 hour'), kind -- the aggregate "hourly" of the settings
"""


def told(number: signal.Signals) -> Callable[[Run], bool]:
    def strike(run: Run) -> bool:
        run.process.send_signal(number)
        return True

    return strike


@pytest.mark.spark
@pytest.mark.timeout(900)
@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.soak)])
def test_it_compacts_and_ends_well_when_told(tmp_path: Path, number: signal.Signals) -> None:
    sent = evidence.Sent()
    with orders.broker() as brokers:
        config = orders.written_config(tmp_path, brokers)
        text = config.read_text().replace("\n[spark]", AS_SQL.replace("BROKERS", brokers))
        config.write_text(f'trigger = "1 second"\ncompaction = {{ every_seconds = 1 }}\n{text}')
        (tmp_path / "as.sql").write_text(QUERY)
        sent.produce(brokers, range(1, 100))
        run = Run(config, tmp_path / "follow.log", "--follow")
        try:
            assert run.is_struck("checkpoints/publish-hourly/commits/[0-9]*", lambda run: True), run.text()
            sent.produce(brokers, range(100, 200))
            assert run.is_struck("silver/data/compaction-*", told(number)), run.text()
            assert run.process.wait() == 0, run.text()
            assert "StackOverflowError" not in run.text()
        finally:
            run.end()
        (folder,) = (tmp_path / "out" / "runs").iterdir()
        assert f"charts: {folder / 'summary.png'}" in run.text().splitlines()
        documents = [json.loads(line) for line in (folder / "progress.jsonl").read_text().splitlines()]
        assert {one["name"] for one in documents} == {
            *("ingest-shop", "decode-shop", "dead-letters", "aggregate-hourly", "publish-hourly"),
            *("aggregate-as-sql", "publish-as-sql"),
        }
        done = command("run", str(config), "--no-charts")
        assert done.returncode == 0, done.stdout + done.stderr
        evidence.check(tmp_path / "out", brokers, sent)
        assert evidence.newest(evidence.records(brokers, "orders-as-sql")) == sent.windows()
