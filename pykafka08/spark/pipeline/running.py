"""Stages of a pipeline run: one after the other until all that is there is through, or all at once for as long as told.

Each micro-batch leaves a line in ``runs/RUN/progress.jsonl``, Spark's own progress document.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener
from pyspark.sql.streaming.query import StreamingQuery

from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline.compacting import compact
from pykafka08.spark.pipeline.locking import alone_if_possible, shared
from pykafka08.spark.pipeline.session import session
from pykafka08.spark.pipeline.settings import Pipeline
from pykafka08.spark.pipeline.stages import Stage, stages
from pykafka08.spark.pipeline.status import late_updates

__all__ = ["RunLog", "follow", "run", "run_once", "select"]

ATTEMPTS = 3
NOT_STARTED = "Python worker failed to connect back"
"""Spark's words: it gives a Python process ten seconds to start; no setting changes that, a busy machine exceeds it."""
Say = Callable[[str], None]


class RunLog(StreamingQueryListener):
    """Writes each micro-batch down."""

    def __init__(self, pipeline: Pipeline) -> None:
        started = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%S.%fZ")
        self.folder = pipeline.root / "runs" / started
        self.folder.mkdir(parents=True)
        self._file = (self.folder / "progress.jsonl").open("a", encoding="utf-8")

    def onQueryProgress(self, event: Any) -> None:
        document = json.loads(event.progress.json)
        self._file.write(json.dumps(document) + "\n")
        self._file.flush()

    def onQueryStarted(self, event: Any) -> None:
        """Nothing to write: the first batch tells it."""

    def onQueryIdle(self, event: Any) -> None:
        """Nothing to write."""

    def onQueryTerminated(self, event: Any) -> None:
        """Nothing to write: the run tells it."""

    def close(self) -> None:
        self._file.close()


def select(pipeline: Pipeline, names: Sequence[str]) -> list[Stage]:
    """The stages with these names, all without; ConfigError for one that is not there."""
    every = stages(pipeline)
    unknown = set(names) - {one.name for one in every}
    if unknown:
        raise ConfigError(f"stage {', '.join(sorted(unknown))}: there are {', '.join(one.name for one in every)}")
    return [one for one in every if not names or one.name in names]


def run(
    pipeline: Pipeline,
    names: Sequence[str],
    *,
    is_following: bool = False,
    compacts: bool = True,
    draws: bool = True,
    say: Say = print,
) -> bool:
    """A whole run in a session of its own: stages, compaction, charts; False if a stage failed, which was said."""
    chosen = select(pipeline, names)
    with shared(pipeline.root):
        log = _logged_run(pipeline, chosen, is_following=is_following, say=say)
    if log is None:
        return False
    if compacts and not is_following:
        with alone_if_possible(pipeline.root) as is_alone:
            made = compact(pipeline, is_alone=is_alone)
        for table, (before, after, deleted) in made.items():
            say(f"compaction of {table}: {before} files, now {after}; {deleted} deleted")
    if draws:
        from pykafka08.spark.pipeline.charts import draw

        say(f"charts: {draw(pipeline, log)}")
    return True


def _logged_run(pipeline: Pipeline, chosen: Sequence[Stage], *, is_following: bool, say: Say) -> Path | None:
    """The folder with the run's progress; None if a stage failed, which was said."""
    spark = session(pipeline)
    log = RunLog(pipeline)
    spark.streams.addListener(log)
    try:
        (follow if is_following else run_once)(spark, pipeline, chosen, say)
    except StreamingQueryException as error:
        say(f"failed: {error}")
        return None
    finally:
        spark.stop()  # the listener has heard of every batch then
        log.close()
    return log.folder


def run_once(spark: SparkSession, pipeline: Pipeline, chosen: Sequence[Stage], say: Say) -> None:
    """Each stage until it has read all that its input holds when it starts.

    Raises:
        pyspark.errors.StreamingQueryException: a stage failed; those before it are done.
    """
    for stage in chosen:
        query = _finished(spark, pipeline, stage, say)
        done = [one for one in query.recentProgress if one["numInputRows"]]
        late = late_updates(done)
        missing = f"; {late:,} updates of windows came later than the watermark and were left out" if late else ""
        say(f"{stage.name}: {sum(one['numInputRows'] for one in done):,} rows in {len(done)} batches{missing}")


def _finished(spark: SparkSession, pipeline: Pipeline, stage: Stage, say: Say) -> StreamingQuery:
    """A stage that is through; begun again where Spark gave up on a process of its own that was slow to start."""
    for _ in range(ATTEMPTS - 1):
        query = stage.start(spark, pipeline, {"availableNow": True})
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            if NOT_STARTED not in str(error):
                raise
            say(f"{stage.name}: {NOT_STARTED}; begun again")
        else:
            return query
    query = stage.start(spark, pipeline, {"availableNow": True})
    query.awaitTermination()
    return query


def follow(spark: SparkSession, pipeline: Pipeline, chosen: Sequence[Stage], say: Say) -> None:
    """All stages at once, until interrupted or one fails; none is left running."""
    queries: list[StreamingQuery] = []
    try:
        for stage in chosen:
            queries.append(stage.start(spark, pipeline, {"processingTime": pipeline.trigger}))
            say(f"{stage.name}: started")
        spark.streams.awaitAnyTermination()
    finally:
        for stage, query in zip(chosen, queries, strict=False):  # not all may have started
            _stop(query, stage, say)


def _stop(query: StreamingQuery, stage: Stage, say: Say) -> None:
    try:
        query.stop()
    except Exception as error:  # noqa: BLE001  (the cause is on its way up already; the others are to end, too)
        say(f"{stage.name}: not stopped: {error}")
