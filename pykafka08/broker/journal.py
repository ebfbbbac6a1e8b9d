"""Journal: what a cluster knows beside records, as lines of a file that survive the process.

Each line is a checksum and a JSON array: the kind of the entry and its facts.  A last line that a crash cut off is
left out.  Which entries there are is in ``log_dir``.
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
"""Takes an entry: its kind and its facts."""

SMALLEST_REWRITE = 16 << 20
GROWTH = 4


class JournalDamagedError(Exception):
    """A journal whose entries cannot all be read."""


def keep_nothing(kind: str, *facts: object) -> None:
    """The note of a cluster that lives in memory."""


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
    """The entries of a journal that may not be there yet; the last line may be damaged.

    JournalDamagedError for damage before the last line, which no crash of the process leaves.
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
    """Appends to the file at ``path``, and writes it anew from ``snapshot`` when it has grown fourfold."""

    def __init__(self, path: Path, snapshot: Callable[[], Iterable[tuple[object, ...]]]) -> None:
        self._path = path
        self._snapshot = snapshot
        self._file = -1
        self._size = 0
        self._rewrite_at = 0

    def note(self, kind: str, *facts: object) -> None:
        """Append an entry; it survives the process once this returns."""
        if self._file < 0:
            return
        if self._size > self._rewrite_at:
            # Before the entry is appended: the state may not have the change yet that the entry tells of.
            self.rewrite()
        line = _line((kind, *facts))
        write_whole(self._file, line)
        self._size += len(line)

    def rewrite(self) -> None:
        """Replace the file by one with the entries of the snapshot, and append to it from now on."""
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
