"""Small files in a pipeline's folder, on this machine, on an object store or on HDFS.

Each file has one writer at a time, or is written by :meth:`Files.write_once`, where one of several writers succeeds.
Readers see the whole text or no file.  No call needs Spark or Java.

The package ``obstore`` reads and writes object stores, ``hdfs-native`` HDFS.  deltalake is built on the same libraries,
so the same settings work for tables and for these files.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline.addresses import Address, Storage, options_for_delta

__all__ = ["Files", "Folder", "files_of", "first_line", "local_folder"]

EXTRA = "pip install 'pykafka08[stores]'"
DRAFT = ".draft-"
"""The prefix of files that are still being written."""
NO_BUCKET = ("NoSuchBucket", "ContainerNotFound", "The specified bucket does not exist")
"""Errors of Amazon, Azure and Google for a file in a bucket that does not exist."""
CAUSES = re.compile(r"<Message>([^<\n]+)</Message>")
"""The error message in the XML of an object store's answer."""
ATTEMPTS = "dfs.client.failover.max.attempts"
"""The number of attempts to reach name nodes.  Hadoop's default takes minutes, and is kept for a service of several."""


class Files(Protocol):
    """The small files in a folder.  Names are relative to it, with ``/`` between the parts."""

    def read(self, name: str) -> str:
        """The text of a file.  Raises FileNotFoundError if it does not exist."""
        ...

    def exists(self, name: str) -> bool:
        """Whether the file exists; False for a folder."""
        ...

    def names(self, folder: str) -> list[str]:
        """The sorted names of the files and folders in a folder; empty if it does not exist."""
        ...

    def write(self, name: str, text: str) -> None:
        """Write or replace a file."""
        ...

    def write_once(self, name: str, text: str) -> bool:
        """Write a file.  If it exists, leave it unchanged and return False."""
        ...

    def delete(self, name: str) -> None:
        """Delete a file, or a folder and its content, if it exists."""
        ...


@dataclass(frozen=True)
class Folder:
    """A folder or file of a pipeline, with the methods of a path."""

    address: Address
    storage: Storage = field(default_factory=Storage, repr=False, compare=False)
    place: str = field(default="", compare=False)
    """The path below the pipeline's folder, from which a catalog's name of a table is made; empty for that folder."""

    def __truediv__(self, name: str) -> Folder:
        place = f"{self.place}/{name}" if self.place else name
        return Folder(self.address.below(name), self.storage, place)

    def __str__(self) -> str:
        return self.address.spark

    def __fspath__(self) -> str:
        if not self.is_local:
            raise TypeError(f"{self} is on a store, not a path of this machine")
        return self.address.path

    @property
    def name(self) -> str:
        return self.address.path.rpartition("/")[2]

    @property
    def is_local(self) -> bool:
        return self.address.is_local

    def read_text(self) -> str:
        """The text of the file.  Raises FileNotFoundError if it does not exist."""
        return self._files.read(self._path)

    def exists(self) -> bool:
        """Whether the file exists; False for a folder."""
        return self._files.exists(self._path)

    def names(self) -> list[str]:
        """The sorted names of the files and folders in it; empty if it does not exist."""
        return self._files.names(self._path)

    def write_text(self, text: str) -> None:
        """Write or replace the file."""
        self._files.write(self._path, text)

    def write_once(self, text: str) -> bool:
        """Write the file.  If it exists, leave it unchanged and return False."""
        return self._files.write_once(self._path, text)

    def delete(self) -> None:
        """Delete the file, or the folder and its content, if it exists."""
        self._files.delete(self._path)

    @property
    def _files(self) -> Files:
        return _all_files(Address(self.address.scheme, self.address.authority, ""), self.storage)

    @property
    def _path(self) -> str:
        return self.address.path if self.is_local else self.address.path.lstrip("/")


def local_folder(path: str | Path) -> Folder:
    """A folder on this machine."""
    return Folder(Address("file", "", str(path)))


@lru_cache(maxsize=8)
def _all_files(address: Address, storage: Storage) -> Files:
    """The files of a bucket or file system; the object is kept with its connections."""
    return files_of(address, storage)


def files_of(address: Address, storage: Storage) -> Files:
    """The files of a folder.

    Raises:
        ConfigError: a package of the extra ``stores`` is missing, or a setting of ``[storage]`` is refused.
    """
    if address.is_local:
        return LocalFiles(Path(address.path))
    try:
        return HdfsFiles(address, storage) if address.scheme == "hdfs" else ObjectFiles(address, storage)
    except ImportError as error:
        raise ConfigError(f"folder: {address.spark}: {error}; {EXTRA}") from error


class LocalFiles:
    """Files on this machine, or on a file system that is mounted here."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __repr__(self) -> str:
        return f"LocalFiles({str(self._folder)!r})"

    def read(self, name: str) -> str:
        return (self._folder / name).read_text(encoding="utf-8")

    def exists(self, name: str) -> bool:
        return (self._folder / name).is_file()

    def names(self, folder: str) -> list[str]:
        with suppress(FileNotFoundError, NotADirectoryError):
            return sorted(one.name for one in (self._folder / folder).iterdir() if not one.name.startswith(DRAFT))
        return []

    def write(self, name: str, text: str) -> None:
        with self._draft(name, text) as draft:
            draft.replace(self._folder / name)

    def write_once(self, name: str, text: str) -> bool:
        with self._draft(name, text) as draft:
            try:
                os.link(draft, self._folder / name)
            except FileExistsError:
                return False
        return True

    def delete(self, name: str) -> None:
        path = self._folder / name
        with suppress(FileNotFoundError):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

    @contextmanager
    def _draft(self, name: str, text: str) -> Iterator[Path]:
        """A temporary file with the text, flushed to disk, in the folder of ``name``."""
        folder = (self._folder / name).parent
        folder.mkdir(parents=True, exist_ok=True)
        number, draft = tempfile.mkstemp(dir=folder, prefix=DRAFT)
        try:
            with os.fdopen(number, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            yield Path(draft)
        finally:
            Path(draft).unlink(missing_ok=True)


class ObjectFiles:
    """Files on an object store; ``write_once`` is a conditional request."""

    def __init__(self, address: Address, storage: Storage) -> None:
        import obstore

        self._obstore = obstore
        self._address = address
        with self._translated():
            self._store = _store(address, storage)

    def __repr__(self) -> str:
        return f"ObjectFiles({self._address.spark!r})"

    def read(self, name: str) -> str:
        with self._translated():
            return bytes(self._obstore.get(self._store, name).bytes()).decode()

    def exists(self, name: str) -> bool:
        try:
            with self._translated():
                self._obstore.head(self._store, name)
        except FileNotFoundError:
            return False
        return True

    def names(self, folder: str) -> list[str]:
        with self._translated():
            found = self._obstore.list_with_delimiter(self._store, folder)
        paths = [*found["common_prefixes"], *(one["path"] for one in found["objects"])]
        return sorted(path.rstrip("/").rpartition("/")[2] for path in paths)

    def write(self, name: str, text: str) -> None:
        with self._translated():
            self._obstore.put(self._store, name, text.encode(), mode="overwrite", use_multipart=False)

    def write_once(self, name: str, text: str) -> bool:
        try:
            with self._translated():
                self._obstore.put(self._store, name, text.encode(), mode="create", use_multipart=False)
        except FileExistsError:
            return False
        return True

    def delete(self, name: str) -> None:
        with self._translated():
            inside = [one["path"] for part in self._obstore.list(self._store, name) for one in part]
            for path in (*inside, name):
                with suppress(FileNotFoundError):
                    self._obstore.delete(self._store, path)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Raise the package's errors as Python's own or as ConfigError, in one line."""
        from obstore.exceptions import AlreadyExistsError, BaseError

        try:
            yield
        except AlreadyExistsError as error:
            raise FileExistsError(first_line(error)) from None
        except (BaseError, FileNotFoundError) as error:  # its text has many lines
            said = str(error)
            if isinstance(error, FileNotFoundError) and not any(one in said for one in NO_BUCKET):
                raise FileNotFoundError(first_line(error)) from None
            cause = next((match[1] for match in CAUSES.finditer(said)), first_line(error))
            raise ConfigError(f"folder: {self._address.spark}: {cause}") from None


def _store(address: Address, storage: Storage) -> Any:
    """The store of a bucket.  Options without the prefix of a cloud are for the connection."""
    from obstore.store import from_url

    options = {name.lower(): value for name, value in options_for_delta(address, storage).items()}
    of_store = {name: value for name, value in options.items() if name.startswith(("aws_", "azure_", "google_"))}
    of_client = {name: value for name, value in options.items() if name not in of_store}
    make: Any = from_url  # its types want one kind of store
    return make(address.delta, config=of_store, client_options=of_client)


def first_line(error: Exception) -> str:
    """The first line in the text of an error, without blank lines; the name of its type if the text is empty."""
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)


class HdfsFiles:
    """Files on HDFS.  A file is written under a temporary name, then renamed, which is atomic."""

    def __init__(self, address: Address, storage: Storage) -> None:
        self._address = address
        patience = {} if storage.namenodes else {ATTEMPTS: "2"}
        options = {**patience, **options_for_delta(address, storage)}
        with self._translated():
            self._client = _client(f"hdfs://{address.authority}", tuple(sorted(options.items())))

    def __repr__(self) -> str:
        return f"HdfsFiles({self._address.spark!r})"

    def read(self, name: str) -> str:
        with self._translated():
            content: bytes = self._client.read(self._path(name)).read()
        return content.decode()

    def exists(self, name: str) -> bool:
        try:
            with self._translated():
                return not self._client.get_file_info(self._path(name)).isdir
        except FileNotFoundError:
            return False

    def names(self, folder: str) -> list[str]:
        try:
            with self._translated():
                paths = [one.path for one in self._client.list_status(self._path(folder))]
        except FileNotFoundError:
            return []
        names = (path.rpartition("/")[2] for path in paths)
        return sorted(name for name in names if not name.startswith(DRAFT))

    def write(self, name: str, text: str) -> None:
        self._write(name, text, replaces=True)

    def write_once(self, name: str, text: str) -> bool:
        try:
            self._write(name, text, replaces=False)
        except FileExistsError:
            return False
        return True

    def delete(self, name: str) -> None:
        with self._translated():
            self._client.delete(self._path(name), recursive=True)

    def _write(self, name: str, text: str, *, replaces: bool) -> None:
        from hdfs_native import WriteOptions

        path = self._path(name)
        draft = f"{path.rpartition('/')[0]}/{DRAFT}{uuid.uuid4().hex}"
        with self._translated():
            try:
                with self._client.create(draft, WriteOptions(create_parent=True)) as file:
                    file.write(text.encode())
                self._client.rename(draft, path, overwrite=replaces)
            except BaseException:
                with suppress(OSError):
                    self._client.delete(draft)
                raise

    def _path(self, name: str) -> str:
        return f"{self._address.path}/{name}"

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Raise the package's errors without the name node's stack traces."""
        try:
            yield
        except FileNotFoundError as error:
            raise FileNotFoundError(first_line(error)) from None
        except FileExistsError as error:
            raise FileExistsError(first_line(error)) from None
        except (OSError, RuntimeError, ValueError) as error:
            raise ConfigError(f"folder: {self._address.spark}: {first_line(error)}") from None


@lru_cache(maxsize=8)
def _client(url: str, options: tuple[tuple[str, str], ...]) -> Any:
    """One client for all folders, because it keeps its connections."""
    from hdfs_native import Client

    return Client(url, dict(options))
