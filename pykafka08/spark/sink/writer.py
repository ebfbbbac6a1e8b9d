"""``df.write.format("pykafka08").mode("append")``: at least once, by acknowledgements of all replicas.

Where the brokers have it (0.11), the producer is idempotent: its own retries write no row twice.  A task that Spark
runs again writes its rows again, as with Spark's own connector.

Spark makes a writer in processes that write no rows, too: those that plan a query and that end a batch.  What sends is
imported where rows are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from pykafka08.spark.options import OptionError, WriteOptions
from pykafka08.spark.sink.row_schema import check_columns, check_mode
from pykafka08.spark.sink.totals import Totals
from pykafka08.spark.workers import begin_task

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

__all__ = ["KafkaWriter", "Written", "check_schema", "write_task"]


@dataclass
class Written(WriterCommitMessage):
    """What a task has written; all of it is acknowledged."""

    totals: Totals


def check_schema(schema: StructType, options: WriteOptions) -> None:
    """On the driver, before any task runs: RowSchemaError, in Spark's words, unless such rows can be written."""
    check_columns([(field.name, field.dataType.simpleString()) for field in schema.fields], options.topic)


class KafkaWriter(DataSourceArrowWriter):
    """Writes a batch."""

    def __init__(self, options: WriteOptions, schema: StructType, *, is_overwrite: bool) -> None:
        check_mode(is_overwrite=is_overwrite)
        if options.is_exactly_once:
            raise OptionError("exactlyOnce", "true", "a batch is written at least once; exactlyOnce is for streams")
        check_schema(schema, options)
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """In a task: raises what its first row that failed ended with."""
        begin_task()
        return Written(write_task(self._options, iterator))


def write_task(options: WriteOptions, iterator: Iterator[Any]) -> Totals:
    """The rows of one task, acknowledged; the producer is kept for the next, unless something failed."""
    from pykafka08.spark.sink.sending import drop_producer, kept_producer, send_rows, settings_of

    settings = settings_of(options)
    try:
        return send_rows(kept_producer(settings), iterator, options.topic)
    except BaseException:
        drop_producer(settings)
        raise
