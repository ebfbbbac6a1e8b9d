"""The logs of Spark's file sink and file source: which files bronze holds, and which of them were read.

A log is a folder of numbered files: ``v1``, then a JSON document for each Parquet file; ``N.compact`` has all up to N.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

__all__ = ["last_commit", "unread_files"]


def last_commit(checkpoint: Path) -> int:
    """The newest batch of a query that is committed; -1: there is none."""
    return max(_numbers(checkpoint / "commits"), default=-1)


def unread_files(manifest: Path, checkpoint: Path, done: int) -> list[str]:
    """Those that the ``manifest`` names and no batch up to ``done`` of the query of a ``checkpoint`` has read."""
    last = _last_read(checkpoint, done)
    read = {_name(one) for one in _documents(checkpoint / "sources" / "0") if one["batchId"] <= last}
    named = {_name(one): _path(one) for one in _documents(manifest)}
    return [path for name, path in named.items() if name not in read]


def _last_read(checkpoint: Path, done: int) -> int:
    """The newest entry of the source's log that a batch has read.

    Spark deletes what its oldest batches had planned; batches without rows may have followed ``done``.
    """
    planned = [one for one in _numbers(checkpoint / "offsets") if one >= done >= 0]
    if not planned:
        return -1
    text = (checkpoint / "offsets" / str(min(planned))).read_text()
    return int(json.loads(text.splitlines()[-1])["logOffset"])


def _numbers(folder: Path) -> list[int]:
    return [int(path.name) for path in folder.glob("*") if path.name.isdigit()]


def _documents(log: Path) -> list[dict[str, Any]]:
    joined = max((int(path.stem) for path in log.glob("*.compact") if path.stem.isdigit()), default=-1)
    files = [log / f"{joined}.compact"] if joined >= 0 else []
    files += [log / str(number) for number in _numbers(log) if number > joined]
    return [json.loads(line) for path in files for line in path.read_text().splitlines()[1:]]


def _path(document: dict[str, Any]) -> str:
    return unquote(urlsplit(document["path"]).path)


def _name(document: dict[str, Any]) -> str:
    """No two of Spark's files share one."""
    return Path(_path(document)).name
