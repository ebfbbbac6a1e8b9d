"""The interface to the log of a table: its versions and commits, in the format of Delta or Iceberg.

:class:`~pykafka08.spark.pipeline.tables.table.Table` has the rules of commits, which are the same for both formats.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline.stores import Folder
from pykafka08.spark.pipeline.tables.column_types import Wider
from pykafka08.spark.pipeline.tables.model import Commit, DataFile, FileBounds, Totals

__all__ = ["EXTRA", "CatalogError", "TableLog", "Version", "log_of"]

EXTRA = "pip install 'pykafka08[iceberg]'"
"""The command that installs the packages for Iceberg tables."""


class CatalogError(ConfigError):
    """The catalog of Iceberg tables does not answer, or has refused a request."""


class Version(Protocol):
    """A table at a version."""

    @property
    def number(self) -> int:
        """The version."""
        ...

    def totals(self) -> Totals:
        """The sums over all commits up to this version.

        Raises:
            LookupError: the log no longer has them.
        """
        ...

    def transaction(self, query: str) -> int | None:
        """The last committed batch of a query; None without one."""
        ...

    def live(self, days: Collection[str] | None = None) -> tuple[DataFile, ...]:
        """The live files in the order of their commits; with ``days``, only of these days."""
        ...

    def bounded(self, columns: Sequence[str]) -> list[FileBounds]:
        """The live files with the smallest and largest values of columns."""
        ...

    def columns(self) -> tuple[str, list[str]]:
        """The schema in the JSON of Spark, and the partition columns."""
        ...


class TableLog(Protocol):
    """The log of one table.  Other processes may commit; each call reads the newest version."""

    has_partitions_in_files: bool
    """Whether data files have the partition columns, too."""
    wider: Wider
    """Type → wider types that a column of this type may get.  All files are then rewritten."""

    @property
    def attempts_kept_s(self) -> float:
        """Seconds for which the files of an attempt stay.  A commit may arrive late if the answer to it was lost."""
        ...

    def newest(self) -> Version | None:
        """The newest version; None if the table does not exist yet."""
        ...

    def at(self, version: int) -> Version:
        """An older version of a table that exists.

        Raises:
            LookupError: it was cleaned up.
        """
        ...

    def commit_at(self, version: int) -> Commit:
        """The commit that made a version.

        Raises:
            LookupError: it was cleaned up.
        """
        ...

    def versions(self) -> list[int]:
        """The versions whose commits were not cleaned up, in order."""
        ...

    def prepare(self, schema: str, partition_by: Collection[str]) -> None:
        """Create the table, or add the columns that it lacks.  ``schema`` is the JSON of Spark's StructType."""
        ...

    def changes(self, schema: str) -> dict[str, tuple[str, str]]:
        """Column → its type in the table and in ``schema``, if these types differ; empty without a table."""
        ...

    def append(
        self, newest: Version, commit: Commit, totals: Totals, batches: Mapping[str, int], schema: str | None
    ) -> bool:
        """Commit right after the newest version; False if another writer has made that version.

        ``batches``: query → its batch, for :meth:`Version.transaction`.  ``schema``: the JSON of the new schema of the
        table; with it the commit removes all files, whatever ``commit.removed`` is.

        Raises:
            ConfigError: a number in an added file has another type than in the table.
        """
        ...

    def keep_commits(self, seconds: float, check: Callable[[], None]) -> None:
        """Keep commits for at least this time.  ``check`` is called before a change."""
        ...

    def clean_up(self, before: int, seconds: float, *, with_attempts: bool) -> None:
        """Delete commits that no reader needs: those below a version that are older than ``seconds``.

        ``with_attempts``: also delete files of commits that failed, which is safe only if no process writes.
        """
        ...


def log_of(folder: Folder) -> TableLog:
    """The log of the table in a folder, in the format of the setting ``storage.format``.

    Raises:
        ConfigError: a package of the extra ``iceberg`` is missing, or a setting of ``[storage.catalog]`` is refused.
    """
    if folder.storage.catalog is None:
        from pykafka08.spark.pipeline.tables.delta_log import DeltaLog

        return DeltaLog(folder)
    try:
        from pykafka08.spark.pipeline.tables.iceberg.log import IcebergLog
    except ImportError as error:
        raise ConfigError(f"storage.format: {error}; {EXTRA}") from error
    return IcebergLog(folder)
