"""The address of a table: for Spark, for Delta, and as a file system for logs and footers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pyarrow import fs

__all__ = ["Location", "located"]


@dataclass(frozen=True)
class Location:
    """A table's folder.  Paths of its files are relative to it."""

    uri: str
    """As Spark takes it."""
    delta_uri: str
    """As deltalake takes it."""
    filesystem: fs.FileSystem = field(compare=False, repr=False)
    """Of the files in the folder."""
    storage_options: dict[str, str] = field(default_factory=dict, compare=False, repr=False)
    """Of deltalake."""

    def of(self, path: str) -> str:
        """The address of a file for Spark."""
        return f"{self.uri}/{path}"

    def files(self, folder: str, *, is_recursive: bool = True) -> Iterator[fs.FileInfo]:
        """Files and folders below a folder, by their paths; none if there is no such folder."""
        selector = fs.FileSelector(folder, allow_not_found=True, recursive=is_recursive)
        yield from sorted(self.filesystem.get_file_info(selector), key=lambda one: one.path)

    def read(self, path: str) -> bytes:
        """A whole file.  FileNotFoundError if it does not exist."""
        with self.filesystem.open_input_stream(path) as file:
            content: bytes = file.read()
        return content


def located(folder: str | Path) -> Location:
    """The location of a local folder."""
    path = str(folder)
    return Location(path, path, fs.SubTreeFileSystem(path, fs.LocalFileSystem()))
