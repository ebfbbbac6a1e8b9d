"""``df.writeStream.format("pykafka08")``: at least once, or with ``exactlyOnce`` in two phases (``two_phase``).

The two phases are imported where they are gone through, like what sends (``writer``): no other stream needs them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql import datasource
from pyspark.sql.datasource import WriterCommitMessage

from pykafka08.errors import UnsupportedVersionError
from pykafka08.logs import library_logger
from pykafka08.spark.options import WriteOptions
from pykafka08.spark.sink.writer import Written, check_schema, write_task
from pykafka08.spark.workers import begin_task

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from pykafka08.spark.sink.markers import Place
    from pykafka08.spark.sink.two_phase import Prepared

__all__ = ["KafkaStreamWriter", "Part", "arrow_batches"]

log = library_logger("spark")

ROWS = 10_000
BATCH_ID, QUERY_ID = "streaming.sql.batchId", "sql.streaming.queryId"
"""Properties that Spark gives each task of a stream."""

TAKES_ARROW = hasattr(datasource, "DataSourceStreamArrowWriter")
"""PySpark 4.0 gives stream writers rows alone."""

_said: list[str] = []

if TYPE_CHECKING or TAKES_ARROW:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter as StreamWriter
else:
    from pyspark.sql.datasource import DataSourceStreamWriter as StreamWriter


@dataclass
class Part(WriterCommitMessage):
    """A task's transaction, for the driver to end."""

    prepared: Prepared


class KafkaStreamWriter(StreamWriter):
    """Writes the batches of a stream; Spark makes one for the tasks, and one for the end of each batch."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        check_schema(schema, options)
        if options.is_exactly_once:
            _check_producer(options)
        self._options = options
        self._schema = schema

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """In a task: raises what its first row that failed ended with."""
        begin_task()
        batches = iterator if TAKES_ARROW else _as_arrow(iterator, self._schema)
        if not self._options.is_exactly_once:
            return Written(write_task(self._options, batches))
        try:
            return self._prepared(batches)
        except UnsupportedVersionError as error:
            if error.api != "InitProducerId":
                raise
            _say_once(error)
            return Written(write_task(self._options, batches))

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """On the driver, when every task has ended well; Spark runs the batch again if this fails."""
        if parts := _parts(messages):
            from pykafka08.spark.sink.two_phase import commit_batch

            commit_batch(self._options, parts, batchId)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """On the driver, when a task has failed: None stands for those that have."""
        if parts := _parts(messages):
            from pykafka08.spark.sink.two_phase import abort_batch

            abort_batch(self._options, parts)

    def _prepared(self, batches: Iterable[pa.RecordBatch]) -> Part:
        from pykafka08.spark.sink.two_phase import prepare

        return Part(prepare(self._options, self._place(), batches))

    def _place(self) -> Place:
        from pykafka08.spark.sink.markers import Place

        context = TaskContext.get()
        batch, query = (context.getLocalProperty(name) if context else None for name in (BATCH_ID, QUERY_ID))
        if context is None or batch is None or query is None:
            raise RuntimeError("exactlyOnce is for streams: the task has no batch id")
        return Place(self._options.transactional_id_prefix, query, int(batch), context.partitionId())


def _check_producer(options: WriteOptions) -> None:
    """On the driver, before any task runs: raises what the producer of a transaction would."""
    from pykafka08.config import ClientConfig, ProducerConfig, build
    from pykafka08.spark.sink.sending import settings_of

    build(settings_of(options, options.transactional_id_prefix), ClientConfig, ProducerConfig)


def _as_arrow(rows: Iterable[Any], schema: StructType) -> Iterator[pa.RecordBatch]:
    from pyspark.sql.pandas.types import to_arrow_schema

    return arrow_batches(rows, to_arrow_schema(schema))


def arrow_batches(rows: Iterable[Any], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Rows of Spark, or other tuples, as Arrow."""
    import pyarrow as pa

    source = iter(rows)
    while chunk := list(islice(source, ROWS)):
        columns = zip(*chunk, strict=True)
        yield pa.record_batch(
            [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
        )


def _parts(messages: Iterable[WriterCommitMessage | None]) -> list[Prepared]:
    return [each.prepared for each in messages if isinstance(each, Part)]


def _say_once(error: UnsupportedVersionError) -> None:
    """In each worker."""
    if not _said:
        _said.append(str(error))
        log.warning("spark.at_least_once", cause=str(error), instead="rows may be written twice after a failure")
