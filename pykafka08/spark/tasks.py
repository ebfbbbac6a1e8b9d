"""Tasks as Spark carries them from the driver to the executors."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql.datasource import InputPartition

from pykafka08.spark.options import ReadOptions
from pykafka08.spark.ranges import Range, ReadTask, plan_tasks

__all__ = ["TaskPartition", "task_partitions"]


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
    )
    return [TaskPartition(ReadTask(each, options.settings)) for each in tasks]
