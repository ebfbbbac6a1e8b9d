"""The logs of Spark's file sink and file source: which files bronze holds, and which of them were read.

A log is a folder of numbered files: ``v1``, then a JSON document for each Parquet file; ``N.compact`` has all up to N.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow.parquet as pq

__all__ = ["unread_rows"]


def unread_rows(manifest: Path, checkpoint: Path) -> int:
    """Rows of the files that a sink's ``manifest`` names and the query of a ``checkpoint`` has not committed."""
    done = [int(path.name) for path in (checkpoint / "commits").glob("*") if path.name.isdigit()]
    last = -1
    if done:
        last = json.loads((checkpoint / "offsets" / str(max(done))).read_text().splitlines()[-1])["logOffset"]
    read = {_name(one) for one in _documents(checkpoint / "sources" / "0") if one["batchId"] <= last}
    unread = {_name(one): one for one in _documents(manifest)}
    return sum(pq.read_metadata(_path(one)).num_rows for name, one in unread.items() if name not in read)


def _documents(log: Path) -> list[dict[str, Any]]:
    joined = max((int(path.stem) for path in log.glob("*.compact") if path.stem.isdigit()), default=-1)
    files = [log / f"{joined}.compact"] if joined >= 0 else []
    files += [path for path in log.glob("*") if path.name.isdigit() and int(path.name) > joined]
    return [json.loads(line) for path in files for line in path.read_text().splitlines()[1:]]


def _path(document: dict[str, Any]) -> str:
    return unquote(urlsplit(document["path"]).path)


def _name(document: dict[str, Any]) -> str:
    """No two of Spark's files share one."""
    return Path(_path(document)).name
