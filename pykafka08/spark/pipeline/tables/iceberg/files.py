"""Metadata files of Iceberg tables, on the stores of a pipeline's folder and with the settings of ``[storage]``."""

from __future__ import annotations

import json
from functools import lru_cache

from pyarrow import fs
from pyiceberg.io import FileIO, InputFile, OutputFile
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowLocalFileSystem
from pyiceberg.typedef import EMPTY_DICT, Properties

from pykafka08.spark.pipeline.addresses import SCHEMES, Address, Storage
from pykafka08.spark.pipeline.stores import Folder
from pykafka08.spark.pipeline.tables.storage import located

__all__ = ["STORAGE", "StoreFiles"]

STORAGE = "pykafka08.storage"
"""The property of a catalog that has ``[storage]`` as JSON; it is not sent to a server."""


class StoreFiles(FileIO):
    """Files opened as the data files are, so that one set of credentials serves both."""

    def __init__(self, properties: Properties = EMPTY_DICT) -> None:
        super().__init__(properties)
        self._storage = Storage.of(json.loads(properties.get(STORAGE, "{}")))

    def new_input(self, location: str) -> InputFile:
        return self._file(location)

    def new_output(self, location: str) -> OutputFile:
        return self._file(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        file = self._file(location if isinstance(location, str) else location.location)
        file._filesystem.delete_file(file._path)

    def _file(self, location: str) -> PyArrowFile:
        scheme, _, rest = location.rpartition("://")
        authority, _, path = rest.partition("/")
        scheme = SCHEMES.get(scheme, scheme)
        if scheme == "file":
            return PyArrowFile(location, f"/{path}", PyArrowLocalFileSystem())
        return PyArrowFile(location, path, _filesystem(scheme, authority, self._storage))


@lru_cache(maxsize=8)
def _filesystem(scheme: str, authority: str, storage: Storage) -> fs.FileSystem:
    """The file system of a bucket, or of HDFS."""
    return located(Folder(Address(scheme, authority, ""), storage)).filesystem
