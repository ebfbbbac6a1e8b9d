"""What the processes load that Spark starts for each query."""

from __future__ import annotations

import subprocess
import sys

PLANNER = """
import sys
from pykafka08.spark.data_source import KafkaDataSource

before = set(sys.modules)
source = KafkaDataSource({"kafka.bootstrap.servers": "h:9092", "subscribe": "t"})
source.streamReader(source.schema())
source.reader(source.schema())
print(*(name for name in sys.modules if name.startswith(("pykafka08.", "kazoo", "pyarrow.compute", "structlog"))))
print(*(name for name in before if name.startswith(("pykafka08.", "numpy", "pyarrow", "anyio", "structlog"))))
"""


def test_a_reader_loads_neither_what_writes_nor_what_reads_groups() -> None:
    done = subprocess.run([sys.executable, "-c", PLANNER], capture_output=True, text=True, check=True)
    of_readers, of_schema = (set(line.split()) for line in done.stdout.splitlines())
    assert {"pykafka08.spark.stream_reader", "pykafka08.spark.batch_reader"} <= of_readers
    unwanted = ("kazoo", "pyarrow.compute", "pykafka08.admin", "pykafka08.producer", "pykafka08.zookeeper.bridge")
    assert not [name for name in of_readers if name.startswith((*unwanted, "structlog"))]
    assert not {"pykafka08.spark.stream_reader", "pykafka08.spark.options", "pykafka08.cluster.client"} & of_schema
    assert not {"numpy", "pyarrow", "anyio", "structlog"} & of_schema


STREAM_PLANNER = """
import pickle
import sys
from pykafka08.spark.data_source import KafkaDataSource

source = KafkaDataSource({"kafka.bootstrap.servers": "h:9092", "subscribe": "t"})
pickle.dumps(source.streamReader(source.schema()))
print(*sys.modules)
"""


def test_a_stream_is_planned_without_a_client() -> None:
    done = subprocess.run([sys.executable, "-c", STREAM_PLANNER], capture_output=True, text=True, check=True)
    unwanted = ("anyio", "numpy", "structlog", "pykafka08.cluster", "pykafka08.connection", "pykafka08.records.arrow")
    assert not [name for name in done.stdout.split() if name.startswith(unwanted)]


FIRST_ROWS = """
import sys
from pykafka08.consumer.chunk import Chunk
from pykafka08.records.record import TopicPartition
from pykafka08.spark.rows import Rows, default_columns
from tests.consumer.world import batch_bytes

batch = Chunk(batch_bytes(0, range(9)), TopicPartition("t", 0), 0, 9, max_unpacked_bytes=1 << 20).next_batch()
print(Rows(default_columns(include_headers=True)).make([batch], 5).num_rows, "pandas" in sys.modules)
"""


def test_the_first_rows_of_a_worker_do_not_wait_for_pandas() -> None:
    done = subprocess.run([sys.executable, "-c", FIRST_ROWS], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["5", "False"]


SINK = """
import pickle
import sys
from pyspark.sql.types import StringType, StructField, StructType
from pykafka08.spark.data_source import KafkaDataSource
from pykafka08.spark.sink.totals import Totals
from pykafka08.spark.sink.writer import Written

source = KafkaDataSource({"kafka.bootstrap.servers": "h:9092", "topic": "t"})
schema = StructType([StructField("value", StringType())])
pickle.dumps(source.writer(schema, False))
stream = source.streamWriter(schema, False)
pickle.dumps(stream)
stream.commit([Written(Totals(1, 2))], 0)
stream.abort([None], 1)
print(*sys.modules)
import pykafka08.spark.sink.sending
print(*sys.modules)
"""


def test_a_sink_is_planned_and_its_batches_end_without_what_sends_and_tasks_write_without_two_phases() -> None:
    done = subprocess.run([sys.executable, "-c", SINK], capture_output=True, text=True, check=True)
    of_driver, of_tasks = (line.split() for line in done.stdout.splitlines())
    assert {"pykafka08.spark.sink.writer", "pykafka08.spark.sink.stream_writer"} <= set(of_driver)
    unwanted = ("anyio", "numpy", "pyarrow", "structlog", "pykafka08.cluster", "pykafka08.producer.producer")
    assert not [name for name in of_driver if name.startswith(unwanted)]
    of_two_phases = ("two_phase", "markers")
    assert not [name for name in of_tasks if name.startswith("pykafka08.admin") or name.endswith(of_two_phases)]
