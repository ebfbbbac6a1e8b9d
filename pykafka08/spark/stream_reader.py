"""Reads Kafka as a stream: offsets are those of Spark's own connector, so that either continues the other's checkpoint.

Spark makes several of these: one lives in a process beside the driver and says where micro-batches end; others are sent
to the executors and read.  Nothing that the first learns reaches the others but in their tasks.  Each process is new to
this package when it makes one, so that what brokers are asked (``stream_offsets``) and what reads rows (``reading``)
are imported by those that do it.

What is read in a micro-batch is a pure function of its two offsets and the options (:meth:`KafkaStreamReader.ranges`):
a batch that is run again after a crash has the same tasks with the same rows.  A partition that the start does not name
is new and begins at 0; that its first offset is another by now is noticed where it is read.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from pykafka08.errors import ConfigError
from pykafka08.logs import library_logger
from pykafka08.records.record import TopicPartition
from pykafka08.spark.admission import Delay, prorated
from pykafka08.spark.columns import check_schema
from pykafka08.spark.data_loss import FAIL_INSTRUCTIONS, OTHER_CHECKPOINT, report_data_loss
from pykafka08.spark.offsets_json import Document, document, offsets_of
from pykafka08.spark.options import ReadOptions
from pykafka08.spark.ranges import Range
from pykafka08.spark.tasks import TaskPartition, task_partitions
from pykafka08.spark.workers import begin_task

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
else:
    try:
        from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
    except ImportError:  # PySpark 4.0 and 4.1, where Trigger.AvailableNow is one batch of everything
        SupportsTriggerAvailableNow = object

__all__ = ["KafkaStreamReader"]

log = library_logger("spark")

Offsets = dict[TopicPartition, int]


class KafkaStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Micro-batches of the partitions that the options choose, also of those that come later.

    ``now_ms`` is a monotonic clock in milliseconds.  On PySpark 4.0 and 4.1 :meth:`latestOffset` is not told where the
    batch starts: it goes by the last end that it knows of, and the first batch after a restart has no upper limit.
    """

    def __init__(
        self, options: ReadOptions, schema: StructType, now_ms: Callable[[], float] = lambda: time.monotonic() * 1000
    ) -> None:
        self._options = options
        self._columns = check_schema(schema)
        self._now_ms = now_ms
        self._delay: Delay | None = None
        if options.min_offsets_per_trigger is not None:
            self._delay = Delay(options.min_offsets_per_trigger, options.max_trigger_delay_ms)
        self._initial: Document | None = None
        self._last_end: Document | None = None
        self._latest: Offsets | None = None
        self._topic_ids: dict[str, UUID] = {}
        self._is_available_now = False
        self._target: Offsets | None = None
        """Where a query with Trigger.AvailableNow ends."""

    def __getstate__(self) -> dict[str, Any]:
        """What an executor needs, which is not the clock."""
        return {"_options": self._options, "_columns": self._columns}

    # --- where batches start and end ----------------------------------------------------------------------------------

    def initialOffset(self) -> Document:
        """Where a query without a checkpoint starts; the same whenever it is asked."""
        if self._initial is None:
            from pykafka08.spark.stream_offsets import start_offsets

            self._initial = document(start_offsets(self._options))
            self._last_end = self._initial
        return self._initial

    def getDefaultReadLimit(self) -> ReadLimit:
        """What of the limits Spark is told; both bounds and the delay are kept in :meth:`latestOffset`."""
        from pyspark.sql.streaming import datasource

        options = self._options
        if options.max_offsets_per_trigger is not None:
            return datasource.ReadMaxRows(options.max_offsets_per_trigger)
        if options.min_offsets_per_trigger is not None:
            return datasource.ReadMinRows(options.min_offsets_per_trigger)
        return datasource.ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None) -> dict[str, Any]:
        """Where the next micro-batch ends; ``start`` itself if there is to be none yet."""
        before = start if start is not None else self._last_end
        known = _checked(before) if before is not None else {}
        if not self._is_available_now:
            latest = self._latest = self._find_latest(known)
        else:
            if self._target is None:
                self._target = self._latest = self._find_latest(known)
            latest = {**self._target, **{tp: end for tp, end in known.items() if tp not in self._target}}
        takes_all = limit is not None and type(limit).__name__ == "ReadAllAvailable"
        ends = latest if takes_all or before is None else self._admitted(known, latest)
        if before is not None and ends == known:
            return before
        self._last_end = document(ends)
        return self._last_end

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """The latest offsets as they were last looked up, for the lag in the query's progress."""
        return document(self._latest) if self._latest is not None else None

    def prepareForTriggerAvailableNow(self) -> None:
        """Nothing counts that comes after the next look-up, and ``minOffsetsPerTrigger`` holds nothing back."""
        self._is_available_now = True

    def _admitted(self, known: Offsets, latest: Offsets) -> Offsets:
        delay = None if self._is_available_now else self._delay
        if delay is not None and delay.is_waiting(known, latest, self._now_ms()):
            log.debug("spark.batch_delayed", least=self._options.min_offsets_per_trigger)
            return known
        if self._options.max_offsets_per_trigger is None:
            return latest
        from pykafka08.spark.stream_offsets import earliest_offsets

        starts = {**earliest_offsets(self._options, latest.keys() - known.keys()), **known}
        return prorated(starts, latest, self._options.max_offsets_per_trigger)

    def _find_latest(self, known: Offsets) -> Offsets:
        """The latest offsets of all partitions there are; of those that are gone the known ones, if that may be."""
        from pykafka08.spark.stream_offsets import latest_offsets

        latest, gone, topic_ids, not_chosen = latest_offsets(self._options, known)
        if deleted := sorted(gone.keys() - not_chosen):
            self._report(f"Partitions {_shown(deleted)} have been deleted", deleted[0])
        if not_chosen:
            self._report_not_chosen(sorted(not_chosen))
        self._compare_ids(topic_ids)
        return {**latest, **gone}

    def _compare_ids(self, partitions: Any) -> None:
        """A topic with another id under the same name is another topic (Kafka 2.8 and later)."""
        for tp, topic_id in partitions.items():
            if topic_id is None:
                continue
            before = self._topic_ids.get(tp.topic)
            self._topic_ids[tp.topic] = topic_id
            if before is not None and before != topic_id:
                self._report(f"Topic {tp.topic} was deleted and made again", tp)

    def _report_not_chosen(self, partitions: Sequence[TopicPartition]) -> None:
        topics = ", ".join(dict.fromkeys(tp.topic for tp in partitions))
        what = (
            f"The checkpoint is of topics {topics}, which the query no longer reads (partitions {_shown(partitions)})"
        )
        self._report(what, partitions[0], instructions=OTHER_CHECKPOINT)

    def _report(
        self, what: str, tp: TopicPartition, offset: int | None = None, instructions: str = FAIL_INSTRUCTIONS
    ) -> None:
        is_failure = self._options.fail_on_data_loss
        report_data_loss(
            what,
            is_failure=is_failure,
            topic=tp.topic,
            partition=tp.partition,
            offset=offset,
            instructions=instructions,
        )

    # --- one batch ----------------------------------------------------------------------------------------------------

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """The tasks from ``start`` to before ``end``."""
        self._last_end = end
        return task_partitions(self.ranges(start, end), self._options)

    def ranges(self, start: dict[str, Any], end: dict[str, Any]) -> list[Range]:
        """What a micro-batch reads, without asking anybody; DataLossError by ``failOnDataLoss``."""
        starts, ends = _checked(start), _checked(end)
        gone = sorted(starts.keys() - ends.keys())
        if gone:
            self._report(f"Partitions {_shown(gone)} have been deleted", gone[0])
        result = []
        for tp, until in sorted(ends.items()):
            since = starts.get(tp, 0)
            if until < since:
                what = (
                    f"Partition {tp.topic}-{tp.partition}'s offset was changed from {since} to {until}. This could be "
                    "either 1) a user error that the start offset is set beyond available offset when starting query, "
                    "or 2) the kafka topic-partition is deleted and re-created"
                )
                self._report(what, tp, since)
            elif until > since:
                result.append(Range(tp.topic, tp.partition, since, until, topic_id=self._topic_ids.get(tp.topic)))
        return result

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        """The rows of one task, on an executor."""
        from pykafka08.spark.reading import read_ranges

        begin_task()
        if isinstance(partition, TaskPartition):
            return read_ranges(partition.task, self._columns)
        return iter(())

    def commit(self, end: dict[str, Any]) -> None:
        """All before ``end`` is processed: the group of ``commitGroup`` is told, one batch late and never of the last.

        The checkpoint has the offsets, so that a failure is only logged.  ``listener`` tells groups of each batch.
        """
        options = self._options
        if options.commit_group is not None:
            from pykafka08.spark.group_commits import commit_or_warn  # here: admin and ZooKeeper come with it

            commit_or_warn(options.client, options.commit_group, offsets_of(end))


def _checked(found: Any) -> Offsets:
    """Offsets that Spark has from a checkpoint; ConfigError if they are those of another kind of source."""
    try:
        return offsets_of(found)
    except ValueError:
        raise ConfigError(
            f"The offset in the checkpoint ({json.dumps(found)}) is not one of a Kafka source: "
            "is this checkpointLocation another query's?"
        ) from None


def _shown(partitions: Any) -> str:
    return ", ".join(f"{tp.topic}-{tp.partition}" for tp in sorted(partitions))
