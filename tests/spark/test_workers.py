"""What a Python worker of Spark keeps from task to task."""

from __future__ import annotations

import subprocess
import sys

WORKER = """
import gc
import pyspark
from pykafka08.spark import workers
from pykafka08.spark.data_source import KafkaDataSource
from pyspark.sql.datasource import InputPartition

source = KafkaDataSource({"kafka.bootstrap.servers": "h:9092", "subscribe": "t"})
reader = source.READER(source.schema())
counts = []
for context in (None, None, None, object(), object(), object()):
    workers.TaskContext = type("TaskContext", (), {"get": staticmethod(lambda context=context: context)})
    assert list(reader.read(InputPartition(None))) == []
    counts.append(gc.get_freeze_count())
    kept = [[number] for number in range(100_000)]  # what is there from this task on, but not before
print(*counts)
"""


def frozen(reader: str) -> list[int]:
    """Objects that no collection looks at, after three reads outside of tasks and three tasks."""
    program = WORKER.replace("READER", reader)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return [int(each) for each in done.stdout.split()]


def test_what_a_worker_is_made_of_is_collected_after_its_first_task_alone() -> None:
    for reader in ("reader", "streamReader"):
        *before, second, third = frozen(reader)
        assert before == [0, 0, 0, 0]
        assert second > 10_000
        assert third <= second, "objects of later tasks are collected as ever"


WARNING = """
import sys
import types
from pykafka08.spark.data_loss import report_data_loss
from pykafka08.spark.data_source import KafkaDataSource

sys.modules["__main__"].__spec__ = SPEC
source = KafkaDataSource({"kafka.bootstrap.servers": "h:9092", "subscribe": "t"})
for _ in range(2):
    source.READER(source.schema())
report_data_loss("records 0 to 5", is_failure=False)
"""


def said(reader: str, spec: str) -> str:
    """What a process with this ``__main__.__spec__`` writes to standard error when data are lost."""
    program = WARNING.replace("READER", reader).replace("SPEC", spec)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stderr


def test_warnings_of_a_process_that_spark_started_are_heard_once() -> None:
    for reader in ("reader", "streamReader"):
        heard = said(reader, "types.SimpleNamespace(name='pyspark.daemon')")
        assert heard.splitlines() == ["spark.data_loss what='records 0 to 5' topic=None partition=None offset=None"]
        assert said(reader, "None") == "", "an application says itself what it hears"
