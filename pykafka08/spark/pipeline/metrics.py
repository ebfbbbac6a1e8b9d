"""Metrics of a run for Prometheus: an HTTP port and a file for node_exporter.  Needs the extra ``metrics``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server, write_to_textfile
from pyspark.sql.streaming.listener import StreamingQueryListener

from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline.report import lag_of, seconds_of_batch
from pykafka08.spark.pipeline.settings import Metrics, Pipeline
from pykafka08.spark.pipeline.status import ended_at
from pykafka08.spark.pipeline.tables.model import NEW_ROWS
from pykafka08.spark.pipeline.tables.table import Table

__all__ = ["MetricsListener"]

SECONDS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800)
"""Bounds of the histogram of batch times."""


class MetricsListener(StreamingQueryListener):
    """Counts each micro-batch.

    Raises:
        ConfigError: the port cannot be opened.
    """

    def __init__(self, pipeline: Pipeline, settings: Metrics, say: Callable[[str], None]) -> None:
        self._settings = settings
        self._say = say
        self._rejects_table = Table(pipeline.rejects)
        self._version = self._rejects_table.version
        self._is_failing = False
        self.registry = CollectorRegistry()
        labels, constant = ("pipeline", "stage"), {"pipeline": pipeline.name}
        self._constant = constant

        def named(name: str) -> str:
            return f"pykafka08_pipeline_{name}"

        self._rows = Counter(named("rows"), "Rows that a stage read", labels, registry=self.registry)
        self._batches = Counter(named("batches"), "Micro-batches with rows", labels, registry=self.registry)
        self._seconds = Histogram(
            named("batch_seconds"), "Duration of a micro-batch", labels, buckets=SECONDS, registry=self.registry
        )
        self._lag = Gauge(
            named("lag_offsets"), "Offsets in Kafka that are not in bronze", labels, registry=self.registry
        )
        self._last = Gauge(
            named("last_batch_timestamp_seconds"), "When the last batch with rows ended", labels, registry=self.registry
        )
        self._rejects = Counter(
            named("rejected_rows"), "Rows that were refused", ("pipeline", "reason"), registry=self.registry
        )
        self._server: Any = None
        if settings.port:
            try:
                self._server, _ = start_http_server(settings.port, addr=settings.address, registry=self.registry)
            except OSError as error:
                raise ConfigError(f"metrics.port: {settings.address}:{settings.port}: {error.strerror}") from error

    def onQueryProgress(self, event: Any) -> None:
        self.count(json.loads(event.progress.json))

    def onQueryStarted(self, event: Any) -> None:
        """Nothing to count."""

    def onQueryIdle(self, event: Any) -> None:
        """Nothing to count."""

    def onQueryTerminated(self, event: Any) -> None:
        """Nothing to count."""

    def count(self, document: Mapping[str, Any]) -> None:
        """Count a batch by its progress document.  A file that cannot be read or written is told once."""
        stage = {**self._constant, "stage": document["name"]}
        lag = lag_of(document)
        if lag is not None:
            self._lag.labels(**stage).set(lag)
        if document["numInputRows"]:
            self._rows.labels(**stage).inc(document["numInputRows"])
            self._batches.labels(**stage).inc()
            self._seconds.labels(**stage).observe(seconds_of_batch(document))
            self._last.labels(**stage).set(ended_at(document).timestamp())
        try:
            if document["name"].startswith("decode-"):
                self._count_rejects()
            if self._settings.textfile:
                write_to_textfile(self._settings.textfile, self.registry)
        except OSError as error:
            if not self._is_failing:
                self._say(f"metrics: {error}")
            self._is_failing = True

    def _count_rejects(self) -> None:
        """By reason, from the commits that came."""
        for commit in self._rejects_table.commits(self._version):
            self._version = commit.version
            for one in commit.added if commit.kind == NEW_ROWS else ():
                for reason in self._rejects_table.read(one, ["reason"]).column("reason").to_pylist():
                    self._rejects.labels(**self._constant, reason=reason).inc()

    def close(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
