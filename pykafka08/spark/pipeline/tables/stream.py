"""A table's commits as a stream, format ``pykafka08-table``: the rows of the files that commits of new rows add.

The offset is the version of the newest commit read, so a replayed batch has the same files: exactly once.  Compactions
are skipped, and backfills unless ``kinds`` has them, because their rows were read before.

Options: ``path`` (the table's folder), ``kinds`` (kinds of commits to read, default ``batch``), ``inOrder`` (``true``:
one task reads all files in the order of the log); ``maxRowsPerTrigger``, ``maxBytesPerTrigger`` and
``maxFilesPerTrigger``: whole files up to these limits are a batch, with Trigger.AvailableNow, too; ``lease`` (a lease
as JSON; a batch begins only while the lease is valid).
The user gives the schema; columns that a file lacks are null, but for the table's partition columns.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from pykafka08.spark.pipeline.addresses import Storage, address_of
from pykafka08.spark.pipeline.arrow_rows import fitted
from pykafka08.spark.pipeline.stores import Folder
from pykafka08.spark.pipeline.tables.model import NEW_ROWS, DataFile
from pykafka08.spark.pipeline.tables.storage import located

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, SupportsTriggerAvailableNow

    from pykafka08.spark.pipeline.leasing import RemoteLease
    from pykafka08.spark.pipeline.tables.table import Table
else:
    try:
        from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
    except ImportError:  # PySpark 4.0 and 4.1
        SupportsTriggerAvailableNow = object

__all__ = ["FILES_PER_TASK", "TableDataSource", "stream_options"]

LEASE = "lease"
SECRETS = "storageSecrets"
"""The option with ``[storage]``; plans do not show options with such a name."""
PLACE = "tableName"
"""The option with the path of the table below the pipeline's folder, for a catalog."""
ROWS_PER_BATCH = 32_768
BATCH_BYTES = 16 << 20
"""The largest record batch of a stream in rows, and its approximate size in bytes."""
PIECE_ROWS = 256
"""The largest number of rows that are decoded at once.

A file has a repeated value once, in a dictionary of about 1 MiB, so the file's size does not limit the size of rows.
"""
FIRST_ROWS = 64
"""The number of rows by which the size of a file's rows is estimated."""
READ_BYTES = 4 << 20
"""The bytes that are read at a time from each column of a file."""
FILES_PER_TASK = 8


@dataclass
class Files(InputPartition):
    """The files of one task."""

    files: tuple[DataFile, ...]


class TableDataSource(DataSource):
    """The data source ``pykafka08-table``."""

    @classmethod
    def name(cls) -> str:
        return "pykafka08-table"

    def streamReader(self, schema: StructType) -> TableStreamReader:
        options = {key.lower(): value for key, value in self.options.items()}
        kinds = tuple(options.get("kinds", NEW_ROWS).split(","))
        limits = tuple(int(options.get(f"max{unit}pertrigger", 0)) for unit in ("rows", "bytes", "files"))
        folder = _folder(options)
        is_in_order = options.get("inorder") == "true"
        return TableStreamReader(folder, kinds, is_in_order, schema, limits, options.get(LEASE, ""))


def stream_options(folder: Folder, lease: RemoteLease | None = None) -> dict[str, str]:
    """The options of a stream that reads a table; with ``lease`` the stream ends with this lease."""
    options = {"path": str(folder)}
    if not folder.is_local or folder.storage.catalog is not None:
        options |= {PLACE: folder.place, SECRETS: json.dumps(asdict(folder.storage))}
    if lease is not None:
        options[LEASE] = json.dumps({"path": str(lease.folder), "owner": lease.owner, "epoch": lease.epoch})
    return options


def _folder(options: Mapping[str, str]) -> Folder:
    storage = Storage.of(json.loads(options.get(SECRETS.lower(), "{}")))
    return Folder(address_of(options["path"], Path()), storage, options.get(PLACE.lower(), ""))


class TableStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets are :class:`~pykafka08.spark.pipeline.tables.position.Position` documents.

    Without ``SupportsTriggerAvailableNow`` a query with that trigger is one batch.  After a crash that batch is the
    replayed one, so new rows would wait for the next run.
    """

    def __init__(
        self,
        folder: Folder,
        kinds: tuple[str, ...],
        is_in_order: bool,
        schema: StructType,
        limits: tuple[int, ...] = (),
        lease: str = "",
    ) -> None:
        self._lease = lease
        self._limits = limits
        """Of rows, bytes and files."""
        self._kinds = kinds
        self._folder = folder
        self._is_in_order = is_in_order
        self._schema = to_arrow_schema(schema, timezone="UTC")
        self._last: int | None = None
        """The version at which a query with Trigger.AvailableNow ends."""

    def initialOffset(self) -> dict[str, Any]:
        return {"version": -1}

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, Any]:
        """The end of the next batch: at most the newest commit, or the one at which the query ends."""
        from pykafka08.spark.pipeline.tables.position import Limits, Position, end_of_batch

        if self._lease:
            _check_lease(self._lease, self._folder.storage)
        table = table_at(self._folder)
        last = table.version if self._last is None else self._last
        begin = Position.of(start or self.initialOffset())
        return end_of_batch(table, self._kinds, begin, last, Limits(*self._limits)).document()

    def getDefaultReadLimit(self) -> ReadAllAvailable:
        """No limit for Spark: :meth:`latestOffset` applies the limits."""
        from pyspark.sql.streaming.datasource import ReadAllAvailable

        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """End the query at the commit that is the newest now."""
        self._last = table_at(self._folder).version

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        from pykafka08.spark.pipeline.tables.position import Position, files_between

        files = files_between(table_at(self._folder), self._kinds, Position.of(start), Position.of(end))
        size = max(1, len(files)) if self._is_in_order else FILES_PER_TASK
        return [Files(tuple(files[at : at + size])) for at in range(0, len(files), size)]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        location = located(self._folder)
        for one in getattr(partition, "files", ()):
            with (
                location.filesystem.open_input_file(one.path) as opened,
                # Not pre_buffer, which reads a whole row group first: hundreds of MiB if rows are large.
                pq.ParquetFile(opened, buffer_size=READ_BYTES, pre_buffer=False) as file,
            ):
                for batch in _joined(file.iter_batches(_rows_per_piece(file))):
                    yield fitted(batch, self._schema, one.values)


def _joined(pieces: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of at most ``ROWS_PER_BATCH`` rows and ``BATCH_BYTES``; a larger row is a batch."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for piece in pieces:
        for part in _split(piece):
            if held and (rows + part.num_rows > ROWS_PER_BATCH or size + part.nbytes > BATCH_BYTES):
                yield _one_of(held)
                held, rows, size = [], 0, 0
            held.append(part)
            rows, size = rows + part.num_rows, size + part.nbytes
    if held:
        yield _one_of(held)


def _split(piece: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Slices of at most ``BATCH_BYTES`` or one row."""
    if piece.num_rows <= 1 or piece.nbytes <= BATCH_BYTES:
        yield piece
        return
    half = piece.num_rows // 2
    yield from _split(piece.slice(0, half))
    yield from _split(piece.slice(half))


def _one_of(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    [joined] = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return joined


def _rows_per_piece(file: pq.ParquetFile) -> int:
    """The number of rows of about ``BATCH_BYTES``, at most ``PIECE_ROWS``, by the file's footer and its first rows.

    The footer is not enough: it counts a repeated value once.
    """
    footer = file.metadata
    sizes = [footer.row_group(group).total_byte_size for group in range(footer.num_row_groups)]
    first = next(file.iter_batches(FIRST_ROWS), None)
    if first is None:
        return PIECE_ROWS
    largest = max(sum(sizes) / max(1, footer.num_rows), first.nbytes / first.num_rows, 1)
    return max(1, min(PIECE_ROWS, int(BATCH_BYTES / largest)))


def _check_lease(lease: str, storage: Storage) -> None:
    """Raise LeaseLostError if the lease has ended."""
    from pykafka08.spark.pipeline.leasing import RemoteLease

    found = json.loads(lease)
    folder = Folder(address_of(found["path"], Path()), storage)
    RemoteLease(folder, found["owner"], found["epoch"]).check()


@cache
def table_at(folder: Folder) -> Table:
    """The table in a folder, one object for each process, since it caches the commits that it has read."""
    from pykafka08.spark.pipeline.tables.table import Table  # deltalake, which the workers need not have

    return Table(folder)
