"""The lock of a local folder, so that a process does not delete files that another one is about to commit.

Runs and backfills share the lock while they write.  A process that holds it alone may delete files that no commit
names.  The system releases the lock when its holder ends, also by a signal.  Stores have no locks: files that no commit
names stay there.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline.stores import Folder

__all__ = ["Lock", "alone_if_possible", "is_at_work", "shared"]


class Lock:
    """A shared lock that this process holds; without a file, on a store, it never becomes exclusive."""

    def __init__(self, file: IO[bytes] | None) -> None:
        self._file = file

    def make_exclusive(self) -> bool:
        """Make the lock exclusive; False, and the lock stays shared, if another process holds it."""
        if self._file is None:
            return False
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(self._file, fcntl.LOCK_SH)  # the attempt may have given the shared lock back
            return False
        return True


@contextmanager
def shared(root: Folder) -> Iterator[Lock]:
    """Hold the shared lock; waits while another process holds it alone."""
    if not root.is_local:
        yield Lock(None)
        return
    with _opened(root) as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield Lock(file)


@contextmanager
def alone_if_possible(root: Folder) -> Iterator[bool]:
    """Hold the lock alone and yield True, or shared and yield False; on a store without a lock, yield False."""
    if not root.is_local:
        yield False
        return
    with _opened(root) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(file, fcntl.LOCK_SH)
            yield False
        else:
            yield True


def is_at_work(root: Folder) -> bool | None:
    """Whether a run or a backfill writes to the folder now; None on a store, where this is unknown."""
    if not root.is_local:
        return None
    try:
        with Path(root / ".lock").open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False


def _opened(root: Folder) -> IO[bytes]:
    try:
        Path(root).mkdir(parents=True, exist_ok=True)
        return Path(root / ".lock").open("wb")
    except OSError as error:
        raise ConfigError(f"folder: {error.filename}: {error.strerror}") from error
