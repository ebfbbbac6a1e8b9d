"""Metrics for Prometheus and OpenLineage events, from progress documents and events; without Spark."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import pairwise
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline import settings
from pykafka08.spark.pipeline.lineage import LineageListener, datasets_of
from pykafka08.spark.pipeline.metrics import MetricsListener
from pykafka08.spark.pipeline.settings import Lineage, Metrics
from tests.spark.pipeline import orders
from tests.spark.pipeline.test_report import HOSTILE, filled

RUN = "9ecf4d4d-f751-4dd7-81a0-69062548bfbe"


def documents(run: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (run / "progress.jsonl").read_text().splitlines()]


def test_batches_are_counted_in_the_text_file(tmp_path: Path) -> None:
    run = tmp_path / "out" / "runs" / "20240301T120000.000000Z"
    run.mkdir(parents=True)
    pipeline = settings.read(orders.written_config(tmp_path, "localhost:9092"))
    target = tmp_path / "orders.prom"
    said: list[str] = []
    listener = MetricsListener(pipeline, Metrics(textfile=str(target)), said.append)
    filled(tmp_path, run)
    for one in documents(run):
        listener.count(one)
    families = text_string_to_metric_families(target.read_text())
    found = {(one.name, one.labels.get("stage", one.labels.get("reason"))): one.value for each in families for one in each.samples}  # fmt: skip  # noqa: E501
    assert found["pykafka08_pipeline_rows_total", "ingest-shop"] == 60
    assert found["pykafka08_pipeline_batches_total", "ingest-shop"] == 2
    assert found["pykafka08_pipeline_batch_seconds_sum", "ingest-shop"] == 4
    assert found["pykafka08_pipeline_lag_offsets", "ingest-shop"] == 0
    assert found["pykafka08_pipeline_last_batch_timestamp_seconds", "ingest-shop"] == 1_709_294_404
    assert found["pykafka08_pipeline_rejected_rows_total", f"rule: {HOSTILE}"] == 1
    assert said == []


def test_a_text_file_that_cannot_be_written_is_told_once(tmp_path: Path) -> None:
    run = tmp_path / "out" / "runs" / "20240301T120000.000000Z"
    run.mkdir(parents=True)
    pipeline = filled(tmp_path, run)
    said: list[str] = []
    listener = MetricsListener(pipeline, Metrics(textfile=str(tmp_path / "none" / "a.prom")), said.append)
    for one in documents(run):
        listener.count(one)
    assert [line.partition(":")[0] for line in said] == ["metrics"]


def test_a_run_answers_at_its_port_which_has_to_be_free(tmp_path: Path) -> None:
    pipeline = settings.read(orders.written_config(tmp_path, "localhost:9092"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=rf"metrics\.port: 127\.0\.0\.1:{port}: Address already in use"):
            MetricsListener(pipeline, Metrics(port=port), print)
    listener = MetricsListener(pipeline, Metrics(port=port), print)
    try:
        assert "pykafka08_pipeline_rows" in httpx.get(f"http://127.0.0.1:{port}/metrics").text
    finally:
        listener.close()


@contextmanager
def endpoint(status: int) -> Iterator[tuple[str, list[dict[str, object]]]]:
    """An address that takes JSON documents, and what came."""
    came: list[dict[str, object]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            came.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(status)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/api", came
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(("exception", "last"), [(None, "COMPLETE"), ("it broke", "FAIL")])
def test_a_stage_has_an_event_for_its_start_and_its_end(tmp_path: Path, exception: str | None, last: str) -> None:
    pipeline = settings.read(orders.written_config(tmp_path, "localhost:9092"))
    file = tmp_path / "events.jsonl"
    with endpoint(201) as (url, came):
        listener = LineageListener(pipeline, Lineage(url=url, file=str(file)), print)
        listener.onQueryStarted(SimpleNamespace(runId=RUN, name="ingest-shop"))
        listener.onQueryTerminated(SimpleNamespace(runId=RUN, exception=exception))
    assert came == [json.loads(line) for line in file.read_text().splitlines()]
    assert [one["eventType"] for one in came] == ["START", last]
    for one in came:
        assert one["job"] == {"namespace": "pykafka08", "name": "orders.ingest-shop", "facets": {}}
        assert [each["namespace"] + each["name"] for each in one["inputs"]] == ["kafka://localhost:9092orders"]  # type: ignore[attr-defined]
        assert [each["name"] for each in one["outputs"]] == [str(pipeline.bronze("shop"))]  # type: ignore[attr-defined]


def test_events_that_cannot_be_sent_are_told_once(tmp_path: Path) -> None:
    pipeline = settings.read(orders.written_config(tmp_path, "localhost:9092"))
    said: list[str] = []
    with endpoint(500) as (url, came):
        listener = LineageListener(pipeline, Lineage(url=url), said.append)
        listener.onQueryStarted(SimpleNamespace(runId=RUN, name="decode-shop"))
        listener.onQueryTerminated(SimpleNamespace(runId=RUN, exception=None))
    assert len(came) == 2
    assert said == ["lineage: events are not sent: HTTPStatusError 500"]


def test_each_stage_reads_what_another_wrote(tmp_path: Path) -> None:
    pipeline = settings.read(orders.written_config(tmp_path, "localhost:9092"))
    stages = ("ingest-shop", "decode-shop", "aggregate-hourly", "publish-hourly")
    for before, after in pairwise(stages):
        assert datasets_of(pipeline, before)[1][:1] == datasets_of(pipeline, after)[0]
    letters = datasets_of(pipeline, "dead-letters")
    assert letters == (datasets_of(pipeline, "decode-shop")[1][1:], [("kafka://localhost:9092", "orders-refused")])
