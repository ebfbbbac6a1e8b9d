"""OpenLineage events of a run: START, COMPLETE or FAIL of each stage, with its topics and tables.

Events go to a file, a line each, or to an HTTP endpoint.  Needs the extra ``lineage``.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import httpx
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.serde import Serde
from pyspark.sql.streaming.listener import StreamingQueryListener

from pykafka08.spark.pipeline.settings import Lineage, Pipeline
from pykafka08.spark.pipeline.stores import Folder

__all__ = ["LineageListener", "datasets_of"]

PRODUCER = "urn:pykafka08:pipeline"
TIMEOUT_S = 3.0
"""Of one event: Spark waits for the listener when a query starts."""
Dataset = tuple[str, str]
"""Namespace and name, as OpenLineage's naming rules say."""


class LineageListener(StreamingQueryListener):
    """Sends the events.  One that cannot be sent is left out; the first such failure is told, without the address."""

    def __init__(self, pipeline: Pipeline, settings: Lineage, say: Callable[[str], None]) -> None:
        self._pipeline = pipeline
        self._settings = settings
        self._say = say
        self._names: dict[str, str] = {}
        self._is_failing = False

    def onQueryStarted(self, event: Any) -> None:
        self.send(str(event.runId), str(event.name), RunState.START)

    def onQueryProgress(self, event: Any) -> None:
        """Nothing to send: START and COMPLETE frame the batches."""

    def onQueryIdle(self, event: Any) -> None:
        """Nothing to send."""

    def onQueryTerminated(self, event: Any) -> None:
        self.send(str(event.runId), "", RunState.COMPLETE if event.exception is None else RunState.FAIL)

    def send(self, run: str, stage: str, state: RunState) -> None:
        """Send an event of a query's run; ``stage`` is empty for a run whose START had it."""
        name = self._names.setdefault(run, stage)
        inputs, outputs = datasets_of(self._pipeline, name)
        event = RunEvent(
            eventType=state,
            eventTime=datetime.now(timezone.utc).isoformat(),
            run=Run(runId=run),
            job=Job(namespace=self._settings.namespace, name=f"{self._pipeline.name}.{name}"),
            producer=PRODUCER,
            inputs=[InputDataset(namespace=space, name=one) for space, one in inputs],
            outputs=[OutputDataset(namespace=space, name=one) for space, one in outputs],
        )
        try:
            self._deliver(Serde.to_json(event))
        except (OSError, httpx.HTTPError, httpx.InvalidURL) as error:
            if not self._is_failing:
                status = f" {error.response.status_code}" if isinstance(error, httpx.HTTPStatusError) else ""
                self._say(f"lineage: events are not sent: {type(error).__name__}{status}")
            self._is_failing = True

    def _deliver(self, text: str) -> None:
        if self._settings.file:
            with Path(self._settings.file).open("a", encoding="utf-8") as file:
                file.write(text + "\n")
        if self._settings.url:
            headers = {"Content-Type": "application/json"}
            httpx.post(self._settings.url, content=text, headers=headers, timeout=TIMEOUT_S).raise_for_status()


def datasets_of(pipeline: Pipeline, stage: str) -> tuple[list[Dataset], list[Dataset]]:
    """What a stage reads and writes.  Of a source with a pattern the pattern is the name."""
    kind, _, name = stage.partition("-")
    silver, rejects = [_table(pipeline.silver)], [_table(pipeline.rejects)]
    if kind == "ingest":
        source = pipeline.sources[name]
        read = [_topic(source.bootstrap_servers, topic) for topic in source.topics or (source.pattern,)]
        return read, [_table(pipeline.bronze(name))]
    if kind == "decode":
        return [_table(pipeline.bronze(name))], [*silver, *rejects]
    if stage == "dead-letters" and pipeline.dead_letters is not None:
        return rejects, [_topic(pipeline.dead_letters.bootstrap_servers, pipeline.dead_letters.topic)]
    if kind == "aggregate":
        return silver, [_table(pipeline.gold(name))]
    if kind == "publish":
        aggregate = pipeline.aggregates[name]
        return [_table(pipeline.gold(name))], [_topic(aggregate.bootstrap_servers, aggregate.topic)]
    return [], []


def _topic(servers: str, topic: str) -> Dataset:
    return f"kafka://{servers.split(',')[0].rpartition('//')[2].strip()}", topic


def _table(folder: Folder) -> Dataset:
    """The namespace of a table on a store is the store, and the name is the path there."""
    address = folder.address
    return ("file", address.path) if folder.is_local else (f"{address.scheme}://{address.authority}", address.path)
