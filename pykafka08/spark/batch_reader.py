"""Reads Kafka in batch: ranges are planned once on the driver, and read on the executors.

Options are read by ``options``, offsets found by ``locating``, ranges read by ``reading``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from pykafka08.cluster.client import Client
from pykafka08.driver import library_logger
from pykafka08.errors import UnsupportedVersionError
from pykafka08.records.record import TopicPartition
from pykafka08.spark.columns import check_schema
from pykafka08.spark.filters import Narrowing, narrowing_of
from pykafka08.spark.locating import locate, resolve
from pykafka08.spark.options import ReadOptions
from pykafka08.spark.ranges import Range
from pykafka08.spark.reading import read_ranges
from pykafka08.spark.runtime import client, run
from pykafka08.spark.sizes import with_sizes
from pykafka08.spark.tasks import TaskPartition, task_partitions
from pykafka08.spark.workers import begin_task

if TYPE_CHECKING:
    import pyarrow

__all__ = ["FilteredBatchReader", "KafkaBatchReader"]

log = library_logger("spark")


class KafkaBatchReader(DataSourceReader):
    """Reads from ``startingOffsets`` to ``endingOffsets``, which are resolved once, when the query is planned."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._columns = check_schema(schema)
        self._options = options

    def partitions(self) -> list[InputPartition]:
        """The tasks; errors of options and of the cluster are raised here, on the driver."""
        for name in self._options.ignored:
            log.warning("spark.option_ignored", option=name, reason="batch queries have no triggers")
        ranges = self.ranges()
        tasks = task_partitions(ranges, self._options)
        if len(tasks) < len(ranges):  # some share one: that depends on how large records are
            ranges = run(with_sizes(client(self._options.client), ranges, self._options.settings))
            tasks = task_partitions(ranges, self._options)
        return tasks

    def ranges(self) -> list[Range]:
        """What is there to read."""
        present = client(self._options.client)
        return run(resolve(present, self._options))

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        """The rows of one task, on an executor."""
        begin_task()
        if isinstance(partition, TaskPartition):
            return read_ranges(partition.task, self._columns)
        return iter(())


class FilteredBatchReader(KafkaBatchReader):
    """The same, reading no more than the query's filters let pass of topics, partitions, offsets and times.

    For the option ``pushFilters`` alone, since Spark (4.3) keeps the plan of a query with filters for the next query of
    the same data frame, also if that one has none.  Spark raises DATA_SOURCE_PUSHDOWN_DISABLED for a reader that has
    ``pushFilters`` where ``spark.sql.python.filterPushdown.enabled`` is not on, hence a class of its own.
    """

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        self._narrowing = Narrowing()

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:
        """Takes the filters in; returns those that Spark is to check still."""
        self._narrowing, unchecked = narrowing_of(filters)
        return unchecked

    def ranges(self) -> list[Range]:
        """What is there to read and can pass the filters."""
        ranges = self._narrowing.apply(super().ranges())
        earliest = self._narrowing.not_before_ms
        if earliest is None or not ranges:
            return ranges
        try:
            return run(_from_time(client(self._options.client), ranges, earliest, self._options))
        except UnsupportedVersionError:  # before 0.10.1
            return ranges


async def _from_time(opened: Client, ranges: list[Range], earliest_ms: int, options: ReadOptions) -> list[Range]:
    """The ranges from their first records on that are as young."""
    found = await locate(opened, {TopicPartition(each.topic, each.partition): earliest_ms for each in ranges}, options)
    later = []
    for each in ranges:
        first = found[TopicPartition(each.topic, each.partition)]
        if 0 <= first < each.end:
            later.append(replace(each, start=max(each.start, first)))
    return later
