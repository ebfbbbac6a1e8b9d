"""Reads Kafka in batch: ranges are planned once on the driver, and read on the executors.

Options are read by ``options``, offsets found by ``locating``, ranges read by ``reading``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from pykafka08.driver import library_logger
from pykafka08.spark.columns import check_schema
from pykafka08.spark.locating import resolve
from pykafka08.spark.options import ReadOptions
from pykafka08.spark.ranges import Range, ReadTask, plan_tasks
from pykafka08.spark.reading import read_ranges
from pykafka08.spark.runtime import client, run

if TYPE_CHECKING:
    import pyarrow

__all__ = ["KafkaBatchReader", "TaskPartition", "task_partitions"]

log = library_logger("spark")


class TaskPartition(InputPartition):
    """One task, with all that an executor needs to know."""

    def __init__(self, task: ReadTask) -> None:
        super().__init__(None)
        self.task = task


def task_partitions(ranges: Sequence[Range], options: ReadOptions) -> list[InputPartition]:
    """The tasks of a batch or a micro-batch; Spark makes one of None where there is none."""
    tasks = plan_tasks(
        ranges,
        min_partitions=options.min_partitions,
        max_records_per_partition=options.max_records_per_partition,
        target_records_per_task=options.target_records_per_task,
        target_bytes=options.target_bytes,
    )
    return [TaskPartition(ReadTask(each, options.settings)) for each in tasks]


class KafkaBatchReader(DataSourceReader):
    """Reads from ``startingOffsets`` to ``endingOffsets``, which are resolved once, when the query is planned."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._columns = check_schema(schema)
        self._options = options

    def partitions(self) -> list[InputPartition]:
        """The tasks; errors of options and of the cluster are raised here, on the driver."""
        for name in self._options.ignored:
            log.warning("spark.option_ignored", option=name, reason="batch queries have no triggers")
        return task_partitions(self.ranges(), self._options)

    def ranges(self) -> list[Range]:
        """What is there to read."""
        present = client(self._options.client)
        return run(resolve(present, self._options))

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        """The rows of one task, on an executor."""
        if isinstance(partition, TaskPartition):
            return read_ranges(partition.task, self._columns)
        return iter(())
