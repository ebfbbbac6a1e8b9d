"""The log of a table as a stream: format ``pykafka08-table``, rows of the files that each entry of new rows brings.

Its offset is the version of the newest entry read, so a batch that is replayed has the same files: exactly once.
Compactions are passed over, and backfills unless they are asked for: the rows they hold were read before.

Options: ``path`` (the table's folder), ``part``, ``kinds`` (of entries whose rows are read, default ``batch``),
``inOrder`` (``true``: one task reads all files in the log's order).
The user gives the schema; columns that a file lacks are null.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from pykafka08.spark.pipeline.arrow_rows import fitted
from pykafka08.spark.pipeline.table import Table

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
else:
    try:
        from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
    except ImportError:  # PySpark 4.0 and 4.1
        SupportsTriggerAvailableNow = object

__all__ = ["NEW_ROWS", "TableDataSource"]

NEW_ROWS = "batch"
"""The kind of entry whose rows nobody has read before."""
ROWS_PER_BATCH = 32_768
FILES_PER_TASK = 8


@dataclass
class Files(InputPartition):
    """What one task reads."""

    paths: tuple[str, ...]


class TableDataSource(DataSource):
    """See the module."""

    @classmethod
    def name(cls) -> str:
        return "pykafka08-table"

    def streamReader(self, schema: StructType) -> TableStreamReader:
        options = {key.lower(): value for key, value in self.options.items()}
        kinds = tuple(options.get("kinds", NEW_ROWS).split(","))
        return TableStreamReader(options["path"], options["part"], kinds, options.get("inorder") == "true", schema)


class TableStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets are ``{"version": n}``, of the newest entry that was read.

    Without ``SupportsTriggerAvailableNow`` a query with that trigger is one batch: after a crash the one that is
    replayed, and what is new would wait for the next run.
    """

    def __init__(self, path: str, part: str, kinds: tuple[str, ...], is_in_order: bool, schema: StructType) -> None:
        self._kinds = kinds
        self._path = path
        self._part = part
        self._is_in_order = is_in_order
        self._schema = to_arrow_schema(schema, timezone="UTC")
        self._last: int | None = None
        """Where a query with Trigger.AvailableNow ends."""

    def initialOffset(self) -> dict[str, Any]:
        return {"version": -1}

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, Any]:
        """The newest entry, or the one at which the query ends; entries are never taken back."""
        return {"version": Table(Path(self._path)).version if self._last is None else self._last}

    def prepareForTriggerAvailableNow(self) -> None:
        """The entries that are there now are read, and none that come meanwhile."""
        self._last = Table(Path(self._path)).version

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        table = Table(Path(self._path))
        paths = table.paths(table.files_since(self._part, self._kinds, start["version"], end["version"]))
        size = max(1, len(paths)) if self._is_in_order else FILES_PER_TASK
        return [Files(tuple(paths[at : at + size])) for at in range(0, len(paths), size)]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        for path in getattr(partition, "paths", ()):
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(ROWS_PER_BATCH):
                    yield fitted(batch, self._schema)
