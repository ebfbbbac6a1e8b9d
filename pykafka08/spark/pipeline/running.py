"""Runs of a pipeline: one stage after the other until all input is read, or all at once until a signal.

Each micro-batch leaves a line in ``runs/RUN/progress.jsonl``, Spark's own progress document; of a decode stage with the
number of rows that broke each expectation.
"""

from __future__ import annotations

import json
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from deltalake.exceptions import DeltaError
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener, StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline.compacting import compact, delete_attempts, versions
from pykafka08.spark.pipeline.connect import stop_queries
from pykafka08.spark.pipeline.definitions import write_definitions
from pykafka08.spark.pipeline.expectations import with_counts
from pykafka08.spark.pipeline.leasing import Lease, leased
from pykafka08.spark.pipeline.replaying import restore_offsets
from pykafka08.spark.pipeline.retaining import retain
from pykafka08.spark.pipeline.session import session, stop_logging, without_stack
from pykafka08.spark.pipeline.settings import Pipeline
from pykafka08.spark.pipeline.stages import Stage, stages
from pykafka08.spark.pipeline.status import PROGRESS, late_updates
from pykafka08.spark.pipeline.stores import Folder, first_line
from pykafka08.spark.pipeline.tables.table import Fence, LeaseLostError, Table
from pykafka08.spark.pipeline.tables.table_log import CatalogError
from pykafka08.spark.pipeline.validating import check_starts, validate
from pykafka08.spark.pipeline.verifying import DECODE
from pykafka08.spark.pipeline.widening import widen

__all__ = ["RunLog", "follow", "run", "run_once", "select", "validated"]

TABLE_ERRORS = (DeltaError, CatalogError)
"""Errors of commits to tables, and of reading them."""

ATTEMPTS = 3
NOT_STARTED = "Python worker failed to connect back"
"""Spark's error if a Python process takes more than ten seconds to start; no setting changes this limit."""
STARTS = 10
"""Attempts to start a query.  A start that fails loses no work."""
LINES_PER_PART = 200
WRITE_S = 5
"""Seconds between writes of the log on a store; a killed run may lose the progress of this time."""
EVENTS_S = 10
"""The longest wait, in seconds, for the events of ended queries from a Spark Connect server."""
LOOK_S = 1
"""Seconds between checks for a signal in a run with ``--follow``."""
Say = Callable[[str], None]


class RunLog(StreamingQueryListener):
    """Writes the progress of each micro-batch into a file of the run."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        started = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%S.%fZ")
        self.folder = pipeline.root / "runs" / started
        Path(pipeline.reports, started).mkdir(parents=True, exist_ok=True)
        self._active: set[str] = set()
        """The runs of queries that have not ended."""
        self._changed = threading.Condition()
        self._log = _Grown(Path(self.folder)) if self.folder.is_local else _Parts(self.folder)

    def onQueryProgress(self, event: Any) -> None:
        document = with_counts(self._pipeline, json.loads(event.progress.json))
        self._log.append(json.dumps(document) + "\n")

    def onQueryStarted(self, event: Any) -> None:
        with self._changed:
            self._active.add(str(event.runId))

    def onQueryIdle(self, event: Any) -> None:
        """Nothing to write."""

    def onQueryTerminated(self, event: Any) -> None:
        """Note that the query has ended; the run reports its error."""
        with self._changed:
            self._active.discard(str(event.runId))
            self._changed.notify_all()

    def wait_until_ended(self, seconds: float) -> None:
        """Wait at most ``seconds`` for the last event of each started query."""
        with self._changed:
            self._changed.wait_for(lambda: not self._active, seconds)

    def close(self) -> None:
        self._log.close()


class _Grown:
    """A log in one file on this machine."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = (folder / f"{PROGRESS}.jsonl").open("a", encoding="utf-8")

    def append(self, line: str) -> None:
        self._file.write(line)
        self._file.flush()

    def close(self) -> None:
        self._file.close()


class _Parts:
    """A log on a store, whose files cannot grow: its last part is replaced, at most every :data:`WRITE_S` seconds."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._lines: list[str] = []
        self._number = 0
        self._written = 0.0

    def append(self, line: str) -> None:
        self._lines.append(line)
        if len(self._lines) >= LINES_PER_PART:
            self.close()
            self._lines, self._number = [], self._number + 1
        elif time.monotonic() - self._written >= WRITE_S:
            self.close()

    def close(self) -> None:
        """Write the lines that are not written yet."""
        if self._lines:
            (self._folder / f"{PROGRESS}-{self._number:06d}.jsonl").write_text("".join(self._lines))
        self._written = time.monotonic()


def select(pipeline: Pipeline, names: Sequence[str], fence: Fence | None = None) -> list[Stage]:
    """The stages with these names, or all stages.  Raises ConfigError for an unknown name."""
    every = stages(pipeline, fence)
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
    """Run stages, compaction and charts in a new session; False if a stage failed, whose error went to ``say``.

    The charts come however it ends, but for a signal that ends the process.
    """
    chosen = [one.name for one in select(pipeline, names)]
    with (
        leased(pipeline.root, chosen, say=say) as lease,
        _told_to_end() if is_following else nullcontext(_never) as is_to_end,
        ExitStack() as stack,
    ):
        check_starts(pipeline, chosen)
        listeners = stack.enter_context(_telemetry(pipeline, say))
        spark, pipeline = validated(pipeline)
        log = RunLog(pipeline)
        try:
            _restore_offsets(pipeline, chosen, say)
            _apply_changes(spark, pipeline, chosen, lease, say)
            for listener in (log, *listeners):
                spark.streams.addListener(listener)
            if is_following:
                if compacts:
                    _delete_attempts(pipeline, lease, say)
                follow(spark, pipeline, select(pipeline, chosen, lease), say, is_to_end, compacts=compacts, lease=lease)
            else:
                run_once(spark, pipeline, select(pipeline, chosen, lease), say)
                if compacts:
                    retain(pipeline, say=say)
                    with lease.exclusive() as is_exclusive:
                        _compact(spark, pipeline, lease, None if is_exclusive else {}, say)
        except (PySparkException, LeaseLostError, *TABLE_ERRORS) as error:  # of a query, its start, or a compaction
            say(f"failed: {without_stack(error)}")
            return False
        finally:
            _end(spark, pipeline, log, listeners)
            log.close()
            if draws:
                _draw(pipeline, log.folder, say)
    return True


@contextmanager
def _telemetry(pipeline: Pipeline, say: Say) -> Iterator[list[StreamingQueryListener]]:
    """Listeners for Prometheus and OpenLineage; ConfigError if the extra of one is not installed."""
    listeners: list[StreamingQueryListener] = []
    with ExitStack() as stack:
        if pipeline.metrics is not None:
            try:
                from pykafka08.spark.pipeline.metrics import MetricsListener
            except ImportError as error:
                raise ConfigError(f"metrics: {error}; pip install 'pykafka08[metrics]'") from error
            metrics = MetricsListener(pipeline, pipeline.metrics, say)
            stack.callback(metrics.close)
            listeners.append(metrics)
        if pipeline.lineage is not None:
            try:
                from pykafka08.spark.pipeline.lineage import LineageListener
            except ImportError as error:
                raise ConfigError(f"lineage: {error}; pip install 'pykafka08[lineage]'") from error
            listeners.append(LineageListener(pipeline, pipeline.lineage, say))
        yield listeners


def _end(spark: SparkSession, pipeline: Pipeline, log: RunLog, listeners: Sequence[StreamingQueryListener]) -> None:
    """Stop the session once the listeners have every event.  A classic session delivers them as it stops."""
    if pipeline.spark.is_connect:
        stop_queries(spark)
        log.wait_until_ended(EVENTS_S)
        for listener in (*listeners, log):
            spark.streams.removeListener(listener)
    spark.stop()


def _never() -> bool:
    """Never end: signals end runs without ``--follow`` as usual."""
    return False


def validated(pipeline: Pipeline) -> tuple[SparkSession, Pipeline]:
    """A session in which the settings were checked, and the pipeline that :func:`validate` returns.

    Raises:
        ConfigError: a setting is wrong; the session is stopped.
    """
    spark = session(pipeline)
    try:
        return spark, validate(spark, pipeline)
    except ConfigError:
        spark.stop()
        raise


def _draw(pipeline: Pipeline, folder: Folder, say: Say) -> None:
    from pykafka08.spark.pipeline import report
    from pykafka08.spark.pipeline.charts import draw

    say(f"charts: {draw(pipeline, folder)}")
    say(f"report: {report.write(pipeline, folder)}")


def _restore_offsets(pipeline: Pipeline, names: Sequence[str], say: Say) -> None:
    for stage in select(pipeline, names):
        for folder in stage.tables:
            batch = restore_offsets(Table(folder), pipeline.checkpoint(stage.name), stage.name)
            if batch >= 0:
                say(f"{stage.name}: restored the offsets of batch {batch}, which another run had replaced")


def _apply_changes(spark: SparkSession, pipeline: Pipeline, names: Sequence[str], fence: Fence, say: Say) -> None:
    """Apply changed settings to the folder: write new definitions of aggregates, and give silver its wider types."""
    write_definitions(spark, pipeline, names)
    if any(name.startswith(DECODE) for name in names):
        widened = widen(spark, pipeline, fence)
        if widened:
            say(widened)


def _delete_attempts(pipeline: Pipeline, lease: Lease, say: Say) -> None:
    with lease.exclusive() as is_exclusive:
        deleted = delete_attempts(pipeline) if is_exclusive else 0
    if deleted:
        say(f"{deleted} files of killed attempts and replaced files were deleted")


def _compact(
    spark: SparkSession, pipeline: Pipeline, fence: Fence | None, until: Mapping[str, int] | None, say: Say
) -> None:
    for table, (before, after, deleted) in compact(spark, pipeline, until=until, fence=fence).items():
        if before != after or deleted:
            say(f"compaction of {table}: {before} files, now {after}; {deleted} replaced files were deleted")


def run_once(spark: SparkSession, pipeline: Pipeline, chosen: Sequence[Stage], say: Say) -> None:
    """Run each stage until it has read the input that existed at its start.

    Raises:
        pyspark.errors.StreamingQueryException: a stage failed; those before it are done.
    """
    for stage in chosen:
        query = _finished(spark, pipeline, stage, say)
        done = [one for one in query.recentProgress if _rows_of(one)]
        late = late_updates(done)
        missing = f"; {late:,} updates of windows came later than the watermark and were left out" if late else ""
        say(f"{stage.name}: {sum(map(_rows_of, done)):,} rows in {len(done)} batches{missing}")


def _rows_of(progress: StreamingQueryProgress) -> int:
    """The rows that a batch has read: a sum over the sources, which Spark Connect 4.3 does not give."""
    return sum(one["numInputRows"] for one in progress["sources"])


def _finished(spark: SparkSession, pipeline: Pipeline, stage: Stage, say: Say) -> StreamingQuery:
    """A finished stage; it is started again if Spark did not wait long enough for its Python process."""
    for _ in range(ATTEMPTS - 1):
        query = _started(spark, pipeline, stage, {"availableNow": True}, say)
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            if NOT_STARTED not in str(error):
                raise
            say(f"{stage.name}: {NOT_STARTED}; begun again")
        else:
            return query
    query = _started(spark, pipeline, stage, {"availableNow": True}, say)
    query.awaitTermination()
    return query


def _started(
    spark: SparkSession, pipeline: Pipeline, stage: Stage, trigger: Mapping[str, Any], say: Say
) -> StreamingQuery:
    """A started query.  A start is repeated if a Spark Connect server did not wait for its Python process."""
    left = STARTS
    while True:
        left -= 1
        try:
            return stage.start(spark, pipeline, trigger)
        except PySparkException as error:
            if NOT_STARTED not in str(error) or not left:
                raise
            say(f"{stage.name}: {NOT_STARTED}; begun again")


def follow(
    spark: SparkSession,
    pipeline: Pipeline,
    chosen: Sequence[Stage],
    say: Say,
    is_to_end: Callable[[], bool],
    *,
    compacts: bool = True,
    lease: Lease | None = None,
) -> None:
    """Run all stages at once until ``is_to_end``, then stop them.

    A stage for whose Python process Spark did not wait long enough is started again.

    Raises:
        pyspark.errors.PySparkException: a stage failed, or ended though it was not stopped.
        LeaseLostError: another process has taken the lease.
    """
    running: dict[str, StreamingQuery] = {}
    attempts: Counter[str] = Counter()
    rounds = _Rounds(spark, pipeline, lease, say) if compacts and pipeline.compaction.every_seconds else None
    try:
        for stage in chosen:
            if is_to_end():
                break
            running[stage.name] = _started(spark, pipeline, stage, {"processingTime": pipeline.trigger}, say)
            say(f"{stage.name}: started")
        while not is_to_end():
            if _has_any_ended(spark):
                _start_again(spark, pipeline, chosen, running, attempts, say)
            if lease is not None:
                lease.check()
            if rounds is not None:
                rounds.go_on()
    finally:
        if is_to_end():
            stop_logging(spark)  # Spark's errors about the interrupted batches would look like failures
        for name, query in running.items():
            _stop(query, name, say)


def _has_any_ended(spark: SparkSession) -> bool:
    try:
        return bool(spark.streams.awaitAnyTermination(LOOK_S))
    except StreamingQueryException:
        return True


def _start_again(
    spark: SparkSession,
    pipeline: Pipeline,
    chosen: Sequence[Stage],
    running: dict[str, StreamingQuery],
    attempts: Counter[str],
    say: Say,
) -> None:
    """Start stages again that ended with :data:`NOT_STARTED`, fewer than :data:`ATTEMPTS` times without a batch.

    Raises:
        pyspark.errors.PySparkException: a query ended for another reason, or too often.
    """
    spark.streams.resetTerminated()  # first, so that a query that ends from now on is seen by the next look
    for stage in chosen:
        query = running[stage.name]
        if query.isActive:
            continue
        error = query.exception()
        if error is None:
            raise PySparkException(f"{stage.name} ended without an error, though it was not stopped")
        if query.lastProgress is not None:
            attempts[stage.name] = 0
        attempts[stage.name] += 1
        if NOT_STARTED not in str(error) or attempts[stage.name] == ATTEMPTS:
            raise error
        say(f"{stage.name}: {NOT_STARTED}; begun again")
        running[stage.name] = _started(spark, pipeline, stage, {"processingTime": pipeline.trigger}, say)


class _Rounds:
    """Compaction beside the stages; each round deletes the files that the round before has replaced."""

    def __init__(self, spark: SparkSession, pipeline: Pipeline, lease: Lease | None, say: Say) -> None:
        self._spark = spark
        self._lease = lease
        self._pipeline = pipeline
        self._say = say
        self._last = time.monotonic()
        self._until: dict[str, int] = {}

    def go_on(self) -> None:
        if time.monotonic() - self._last < self._pipeline.compaction.every_seconds:
            return
        try:
            retain(self._pipeline, say=self._say)
            _compact(self._spark, self._pipeline, self._lease, self._until, self._say)
            self._until = versions(self._pipeline)
        except (PySparkException, OSError, *TABLE_ERRORS) as error:  # stages continue, and the next round tries again
            self._say(f"compaction failed, and will be tried again: {first_line(error)}")
        self._last = time.monotonic()


@contextmanager
def _told_to_end() -> Iterator[Callable[[], bool]]:
    """Whether SIGINT or SIGTERM came.  No exception is raised, because it would break a call to the JVM."""
    told = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield told.is_set
        return
    before = {one: signal.signal(one, lambda *_: told.set()) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield told.is_set
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def _stop(query: StreamingQuery, name: str, say: Say) -> None:
    try:
        query.stop()
    except Exception as error:  # noqa: BLE001  (the cause is on its way up already; the others are to end, too)
        say(f"{name}: not stopped: {error}")
