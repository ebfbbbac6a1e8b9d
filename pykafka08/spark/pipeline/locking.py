"""Who else writes to a pipeline's folder: so that nobody deletes what another is about to add.

Runs and backfills share a lock for as long as they write.  Who holds it alone may take files that no commit names for
nobody's.  The system gives the lock back when its holder ends, however that was.  Stores have no locks: there files
that no commit names stay.
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
    """A shared lock that is held; on a store there is none, and nobody is known to be alone."""

    def __init__(self, file: IO[bytes] | None) -> None:
        self._file = file

    def is_alone_now(self) -> bool:
        """Whether nobody else writes, from now on; if somebody does, the lock stays shared."""
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
    """Write beside others; waits while somebody is alone."""
    if not root.is_local:
        yield Lock(None)
        return
    with _opened(root) as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield Lock(file)


@contextmanager
def alone_if_possible(root: Folder) -> Iterator[bool]:
    """Whether nobody else writes, for as long as this lasts; if somebody does, or that is not known, beside them."""
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
    """Whether a run or a backfill writes to the folder just now; None: that is not known."""
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
