"""Who else writes to a pipeline's folder: so that nobody deletes what another is about to add.

Runs and backfills share a lock for as long as they write.  Who holds it alone may take files that no entry names for
nobody's.  The system gives the lock back when its holder ends, however that was.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from pykafka08.errors import ConfigError

__all__ = ["Lock", "alone_if_possible", "is_at_work", "shared"]


class Lock:
    """A shared lock that is held."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def is_alone_now(self) -> bool:
        """Whether nobody else writes, from now on; if somebody does, the lock stays shared."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(self._file, fcntl.LOCK_SH)  # the attempt may have given the shared lock back
            return False
        return True


@contextmanager
def shared(root: Path) -> Iterator[Lock]:
    """Write beside others; waits while somebody is alone."""
    with _opened(root) as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield Lock(file)


@contextmanager
def alone_if_possible(root: Path) -> Iterator[bool]:
    """Whether nobody else writes, for as long as this lasts; if somebody does, beside them."""
    with _opened(root) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(file, fcntl.LOCK_SH)
            yield False
        else:
            yield True


def is_at_work(root: Path) -> bool:
    """Whether a run or a backfill writes to the folder just now."""
    try:
        with (root / ".lock").open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False


def _opened(root: Path) -> IO[bytes]:
    try:
        root.mkdir(parents=True, exist_ok=True)
        return (root / ".lock").open("wb")
    except OSError as error:
        raise ConfigError(f"folder: {error.filename}: {error.strerror}") from error
