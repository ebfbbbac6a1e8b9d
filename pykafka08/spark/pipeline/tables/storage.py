"""Addresses of a table for Spark and deltalake, and a file system for its log and footers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pyarrow import fs

from pykafka08.spark.pipeline.addresses import options_for_delta
from pykafka08.spark.pipeline.stores import Folder

__all__ = ["Location", "located"]


@dataclass(frozen=True)
class Location:
    """A table's folder.  Paths of its files are relative to it."""

    uri: str
    """The address for Spark."""
    delta_uri: str
    """The address for deltalake."""
    filesystem: fs.FileSystem = field(compare=False, repr=False)
    """A file system whose root is the folder."""
    storage_options: dict[str, str] = field(default_factory=dict, compare=False, repr=False)
    """The options for deltalake."""

    def of(self, path: str) -> str:
        """The address of a file for Spark."""
        return f"{self.uri}/{path}"

    def files(self, folder: str, *, is_recursive: bool = True) -> Iterator[fs.FileInfo]:
        """Files and folders below a folder, sorted by path; empty if the folder does not exist."""
        selector = fs.FileSelector(folder, allow_not_found=True, recursive=is_recursive)
        yield from sorted(self.filesystem.get_file_info(selector), key=lambda one: one.path)

    def read(self, path: str) -> bytes:
        """The content of a file.  Raises FileNotFoundError if it does not exist."""
        with self.filesystem.open_input_stream(path) as file:
            content: bytes = file.read()
        return content


def located(folder: Folder) -> Location:
    """The location of a table's folder."""
    if folder.is_local:
        path = str(folder)
        return Location(path, path, fs.SubTreeFileSystem(path, fs.LocalFileSystem()))
    from deltalake.fs import DeltaStorageHandler

    address = folder.address
    options = options_for_delta(address, folder.storage)
    filesystem = fs.PyFileSystem(DeltaStorageHandler(address.delta, options))
    return Location(address.spark, address.delta, filesystem, options)
