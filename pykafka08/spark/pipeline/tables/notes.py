"""A Delta table without rows, whose commits hold JSON documents.  Only one writer can commit each version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deltalake import CommitProperties, DeltaTable, Field, Schema
from deltalake.exceptions import CommitFailedError, TableNotFoundError
from deltalake.schema import PrimitiveType

from pykafka08.spark.pipeline.stores import Folder
from pykafka08.spark.pipeline.tables.delta_commits import NOTE, note_at
from pykafka08.spark.pipeline.tables.storage import located

__all__ = ["NoteLog"]

CONFIGURATION = {"delta.logRetentionDuration": "interval 1 hours"}
"""Old commits may be deleted early, because only the newest document is read."""


class NoteLog:
    """The documents in a folder.  Not thread-safe."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self._location = located(folder)
        self._table: DeltaTable | None = None
        """The table at the version that was read last."""

    @property
    def uri(self) -> str:
        """The address of the folder."""
        return self._location.uri

    def prepare(self) -> None:
        """Create the table, if it does not exist."""
        if self._updated() is None:
            DeltaTable.create(
                self._location.delta_uri,
                Schema([Field("none", PrimitiveType("string"))]),
                mode="ignore",
                configuration=CONFIGURATION,
                storage_options=self._location.storage_options,
            )

    def newest(self) -> tuple[int, Mapping[str, Any]]:
        """The newest version and its document, which may be empty; version -1 if there is no table."""
        table = self._updated()
        return (-1, {}) if table is None else (table.version(), note_at(self._location, table.version()))

    def append(self, version: int, note: Mapping[str, Any]) -> bool:
        """Commit a document as this version; False if that version exists."""
        table = self._updated()
        if table is None or table.version() != version - 1:
            return False
        once = CommitProperties(custom_metadata={NOTE: dict(note)}, max_commit_retries=0)
        try:
            table.create_write_transaction([], "append", table.schema(), [], commit_properties=once)
        except CommitFailedError:
            if self.newest()[0] >= version:
                return False
            raise
        return True

    def _updated(self) -> DeltaTable | None:
        if self._table is not None:
            self._table.update_incremental()
            return self._table
        try:
            self._table = DeltaTable(self._location.delta_uri, storage_options=self._location.storage_options)
        except TableNotFoundError:
            return None
        return self._table
