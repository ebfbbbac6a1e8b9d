"""Journal: all state of a cluster except records, as lines of a file.

Each line is a checksum and a JSON array: the kind of the entry and its facts.  An incomplete
last line, left by a crash, is ignored.  ``log_dir`` defines the kinds of entries.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from pykafka08.wire import Buffer

__all__ = ["Journal", "JournalDamagedError", "Note", "keep_nothing", "read_journal", "write_whole"]

Note = Callable[..., None]
"""Writes an entry: its kind and its facts."""

SMALLEST_REWRITE = 16 << 20
GROWTH = 4


class JournalDamagedError(Exception):
    """A journal whose entries cannot all be read."""


def keep_nothing(kind: str, *facts: object) -> None:
    """Write no entry: the note of a cluster without ``log_dir``."""


def write_whole(file: int, data: Buffer) -> None:
    """Append all of ``data`` or, with an OSError, nothing."""
    written = os.write(file, data)
    try:
        while written < len(data):
            written += os.write(file, memoryview(data)[written:])
    except OSError:
        os.ftruncate(file, os.fstat(file).st_size - written)
        raise


def _line(entry: Iterable[object]) -> bytes:
    text = json.dumps(list(entry), separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def read_journal(path: Path) -> Iterator[list[Any]]:
    """The entries of a journal, none if the file does not exist; the last line may be damaged.

    JournalDamagedError for damage before the last line, which a crash of the process cannot cause.
    """
    if not path.exists():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            checksum, _, text = line.partition(b" ")
            if not line.endswith(b"\n") or checksum != b"%08x" % zlib.crc32(text[:-1]):
                if file.read(1):
                    raise JournalDamagedError(f"line {number} of {path.name} is damaged, and others follow it")
                return
            yield json.loads(text)


class Journal:
    """Appends to the file at ``path``, and rewrites it from ``snapshot`` when it has grown fourfold."""

    def __init__(self, path: Path, snapshot: Callable[[], Iterable[tuple[object, ...]]]) -> None:
        self._path = path
        self._snapshot = snapshot
        self._file = -1
        self._size = 0
        self._rewrite_at = 0

    def note(self, kind: str, *facts: object) -> None:
        """Append an entry; once this returns, it survives a crash of the process."""
        if self._file < 0:
            return
        if self._size > self._rewrite_at:
            # Rewritten before the append, since the state may not have the change of this entry yet.
            self.rewrite()
        line = _line((kind, *facts))
        write_whole(self._file, line)
        self._size += len(line)

    def rewrite(self) -> None:
        """Replace the file by a new one with the entries of the snapshot."""
        fresh = self._path.with_suffix(".new")
        with fresh.open("wb") as file:
            file.writelines(map(_line, self._snapshot()))
            file.flush()
            os.fsync(file.fileno())
        self.close()
        os.replace(fresh, self._path)
        self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND)
        self._size = os.fstat(self._file).st_size
        self._rewrite_at = max(SMALLEST_REWRITE, GROWTH * self._size)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
