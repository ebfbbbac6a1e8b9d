"""Progress of streaming queries: rows, bytes (estimated), lag by partition, and processed offsets committed to a group.

    listener = ProgressListener(commits=GroupCommits(options, "my-group"))
    spark.streams.addListener(listener)

A source in Python cannot put its lag among Spark's metrics, and it hears of a batch's end one batch late, and of the
last never: a listener hears of each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql.streaming.listener import StreamingQueryListener

from pykafka08.driver import library_logger
from pykafka08.spark.group_commits import GroupCommits
from pykafka08.spark.progress import QueryProgress, read_progress
from pykafka08.spark.record_sizes import RecordSizes

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

__all__ = ["ProgressListener"]

log = library_logger("spark")


class ProgressListener(StreamingQueryListener):
    """Logs each batch of each query that reads Kafka, keeps the last one, and tells ``on_progress``.

    ``query`` limits it to the query with that name or id; with ``commits`` that is wanted, since a group's offsets are
    those of one query.  With ``sizes`` a batch has about its bytes, too: for that one fetch is made in a minute.
    """

    def __init__(
        self,
        on_progress: Callable[[QueryProgress], None] | None = None,
        *,
        query: str | None = None,
        commits: GroupCommits | None = None,
        sizes: RecordSizes | None = None,
    ) -> None:
        self.last: dict[str, QueryProgress] = {}
        """By the query's id."""
        self._on_progress = on_progress
        self._query = query
        self._commits = commits
        self._sizes = sizes

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Nothing is known yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """A batch has ended."""
        progress = read_progress(event.progress.json)
        if not progress.sources or (self._query not in (None, progress.name, progress.query_id)):
            return
        if self._commits is not None:
            self._commits.commit(progress.ends)
        progress = self.last[progress.query_id] = self._with_bytes(progress)
        lags = [lag for source in progress.sources for lag in source.lag.values()]
        log.info(
            "spark.progress",
            query=progress.name or progress.query_id,
            batch=progress.batch_id,
            rows=progress.rows,
            estimated_bytes=progress.estimated_bytes,
            ms=progress.duration_ms,
            lag=sum(lags),
            max_lag=max(lags, default=0),
        )
        if self._on_progress is not None:
            self._on_progress(progress)

    def _with_bytes(self, progress: QueryProgress) -> QueryProgress:
        sizes = self._sizes
        if sizes is None:
            return progress
        sources = (
            replace(each, estimated_bytes=sizes.estimated_bytes(each.starts, each.ends, each.rows))
            for each in progress.sources
        )
        return replace(progress, sources=tuple(sources))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Nothing has changed."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """What the last batch has processed is committed once more, where that failed."""
        last = self.last.get(str(event.id))
        if last is not None and self._commits is not None:
            self._commits.commit(last.ends)
