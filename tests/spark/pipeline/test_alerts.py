"""Bounds that are passed: which, what is printed and sent, and the exit status."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from pykafka08.cli.main import main
from pykafka08.spark.pipeline.alerts import Alert, over_bounds, send
from pykafka08.spark.pipeline.settings import Alerts, read
from pykafka08.spark.pipeline.status import StageStatus
from tests.spark.pipeline import orders
from tests.spark.pipeline.test_report import filled
from tests.spark.pipeline.test_telemetry import endpoint

NOW = datetime(2024, 3, 1, 12, tzinfo=timezone.utc)


def stage(name: str, *, behind: int | None = 0, age: float | None = 0.0) -> StageStatus:
    at = None if age is None else NOW - timedelta(seconds=age)
    return StageStatus(name, 0, at, None, "not known" if behind is None else f"{behind} rows", behind, 0)


@pytest.mark.parametrize(
    ("bounds", "one", "passed"),
    [
        (Alerts(max_lag=10), stage("decode-a", behind=10), None),
        (Alerts(max_lag=10), stage("decode-a", behind=11), ("max_lag", 11)),
        (Alerts(max_lag=0), stage("ingest-a", behind=None), ("max_lag", None)),
        (Alerts(max_age_seconds=60), stage("ingest-a", age=60.0), None),
        (Alerts(max_age_seconds=60), stage("ingest-a", age=61.0), ("max_age_seconds", 61.0)),
        (Alerts(max_age_seconds=60), stage("ingest-a", age=None), ("max_age_seconds", None)),
        (Alerts(max_age_seconds=60), stage("dead-letters", age=None), None),
        (Alerts(), stage("ingest-a", behind=None, age=None), None),
    ],
)
def test_a_bound_is_passed_by_more_than_it_allows(
    bounds: Alerts, one: StageStatus, passed: tuple[str, Any] | None
) -> None:
    found = list(over_bounds(bounds, [one], {}, NOW))
    assert [(each.bound, each.value) for each in found] == ([] if passed is None else [passed])
    assert all(each.stage == one.stage for each in found)


def test_a_ratio_of_refused_rows_is_of_a_stage() -> None:
    bounds = Alerts(max_reject_ratio=0.1)
    (found,) = over_bounds(bounds, [], {"decode-a": 0.1, "decode-b": 0.25}, NOW)
    assert (found.stage, found.value) == ("decode-b", 0.25)
    assert found.text == "25.00% of the newest run's rows refused, at most 10.00%"


def with_alerts(folder: Path, text: str) -> Path:
    config = folder / "orders.toml"
    config.write_text(config.read_text().replace("[spark]\n", f"[alerts]\n{text}\n[spark]\n", 1))
    return config


def test_a_check_prints_what_is_passed_tells_the_webhook_and_ends_with_3(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "out" / "runs" / "20240301T120000.000000Z"
    run.mkdir(parents=True)
    with orders.broker() as brokers, endpoint(200) as (url, came):
        filled(tmp_path, run)
        config = orders.written_config(tmp_path, brokers)
        config = with_alerts(tmp_path, f'max_lag = 1000\nmax_reject_ratio = 0.01\nwebhook = "{url}"')
        progress = run / "progress.jsonl"
        progress.write_text("".join(line for line in progress.read_text().splitlines(True) if "decode-" in line))
        progress.write_text(progress.read_text().replace('"durationMs"', '"stateOperators": [], "durationMs"'))
        assert main(["pipeline", "status", str(config)]) == 0
        assert came == []
        assert main(["pipeline", "status", "--check", str(config)]) == 3
        assert main(["pipeline", "status", "--check", str(relaxed(config))]) == 0
    text = "3.33% of the newest run's rows refused, at most 1.00%"
    assert f"ALERT decode-shop: {text} (alerts.max_reject_ratio)\n" in capsys.readouterr().out
    (document,) = came
    assert document["pipeline"] == "orders"
    assert document["alerts"] == [
        {"bound": "max_reject_ratio", "stage": "decode-shop", "value": 1 / 30, "limit": 0.01, "text": text}
    ]


def relaxed(config: Path) -> Path:
    config.write_text(config.read_text().replace("max_reject_ratio = 0.01", "max_reject_ratio = 0.5"))
    return config


def test_a_webhook_that_fails_is_told_without_its_address(tmp_path: Path) -> None:
    pipeline = read(orders.written_config(tmp_path, "localhost:9092"))
    passed = [Alert("max_lag", "decode-a", 2, 1, "lag 2 rows, at most 1")]
    with endpoint(500) as (url, came):
        assert send(replace(pipeline, alerts=Alerts(webhook=f"{url}?token=hidden")), passed) == (
            "alerts.webhook: status 500"
        )
    assert len(came) == 1
    closed = replace(pipeline, alerts=Alerts(webhook=f"{url}?token=hidden"))
    assert send(closed, passed) == "alerts.webhook: ConnectError"
    assert "hidden" not in repr(closed)
