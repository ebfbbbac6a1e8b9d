"""The data source ``pykafka08`` of Spark's Python Data Source API: which class reads and writes what.

Spark makes an instance of it in several processes, with the options of the query; all work is done by what it returns.
Such a process is often new, and needs one reader or writer alone: modules are imported where they are used, since all
of them would take it longer than its work.
"""

from __future__ import annotations

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from pykafka08.spark.columns import schema_of

__all__ = ["KafkaDataSource"]


class KafkaDataSource(DataSource):
    """``spark.read.format("pykafka08")``; rows and options are those of Spark's own ``kafka`` source."""

    @classmethod
    def name(cls) -> str:
        """The format's name; ``kafka`` itself cannot be taken."""
        return "pykafka08"

    def schema(self) -> StructType:
        """All columns, or those of the option ``columns``, in the order of Spark's own source."""
        columns = self.options.get("columns")
        names = [name.strip() for name in columns.split(",") if name.strip()] if columns is not None else None
        return schema_of(names, include_headers=self.options.get("includeHeaders", "").lower() == "true")

    def reader(self, schema: StructType) -> DataSourceReader:
        """Reads in batch the columns of ``schema``."""
        from pykafka08.spark.batch_reader import FilteredBatchReader, KafkaBatchReader
        from pykafka08.spark.options import read_options
        from pykafka08.spark.workers import hear_warnings

        hear_warnings()
        options = read_options(self.options, streaming=False)
        return FilteredBatchReader(options, schema) if options.pushes_filters else KafkaBatchReader(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Reads as a stream the columns of ``schema``."""
        from pykafka08.spark.options import read_options
        from pykafka08.spark.stream_reader import KafkaStreamReader
        from pykafka08.spark.workers import hear_warnings

        hear_warnings()
        return KafkaStreamReader(read_options(self.options, streaming=True), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Writes a batch; the query has to say ``mode("append")``."""
        from pykafka08.spark.options import write_options
        from pykafka08.spark.sink.writer import KafkaWriter

        return KafkaWriter(write_options(self.options), schema, is_overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Writes a stream, in every output mode."""
        from pykafka08.spark.options import write_options
        from pykafka08.spark.sink.stream_writer import KafkaStreamWriter

        return KafkaStreamWriter(write_options(self.options), schema)
