"""Folders of earlier versions, whose tables were not Delta tables; only :mod:`converting` reads them.

Silver and gold had ``log/N.json``, an entry for each change, and ``snapshots/N.json``, the sum of all entries up to N.
Spark's file sink wrote bronze, and its file source read it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline.settings import Pipeline

__all__ = [
    "OldEntry",
    "OldFile",
    "OldState",
    "check_layout",
    "entries",
    "is_at_work",
    "is_old",
    "is_unnamed",
    "last_batch",
    "manifest",
    "source_log",
    "state_at",
]

MANIFEST = "_spark_metadata"
MADE, KEPT = ".converting", ".before-conversion"
"""Suffixes of the folder that a conversion makes, and of the old folder at its end."""


@dataclass(frozen=True)
class OldFile:
    """A file of an entry, as the log has it."""

    path: str
    part: str
    day: str
    rows: int
    bytes: int


@dataclass(frozen=True)
class OldEntry:
    """A change of a table."""

    version: int
    kind: str
    query: str
    batch: int
    added: tuple[OldFile, ...]
    removed: tuple[str, ...]
    counts: Mapping[str, int]


@dataclass
class OldState:
    """The state of an old table after some entries."""

    version: int = -1
    files: dict[str, OldFile] = field(default_factory=dict)
    newest: dict[str, int] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    brought: dict[str, Counter[str]] = field(default_factory=dict)
    """Kind of entry → part → rows."""

    def add(self, entry: OldEntry) -> None:
        """Apply the next entry."""
        self.version = entry.version
        self.newest[entry.query] = entry.batch
        self.counts.update(entry.counts)
        for path in entry.removed:
            self.files.pop(path, None)
        for one in entry.added:
            self.files[one.path] = one
            self.brought.setdefault(entry.kind, Counter())[one.part] += one.rows


def is_old(pipeline: Pipeline) -> bool:
    """Whether a table of the pipeline has a log of its own, or bronze the manifest of Spark's file sink."""
    if not pipeline.root.is_local:
        return False  # earlier versions had local folders only
    if is_unnamed(pipeline):
        return True
    tables = [Path(pipeline.silver), *(Path(pipeline.gold(name)) for name in pipeline.aggregates)]
    manifests = [Path(pipeline.bronze(name), MANIFEST) for name in pipeline.sources]
    return any(path.exists() for path in (*manifests, *(one / "log" for one in tables)))


def is_unnamed(pipeline: Pipeline) -> bool:
    """Whether a conversion was killed after the old folder lost its name, before the new folder got it."""
    root = Path(pipeline.root)
    return not root.exists() and all(root.with_name(root.name + suffix).exists() for suffix in (MADE, KEPT))


def is_at_work(root: Path) -> bool:
    """Whether a process of an earlier version writes to a folder; such a process locks the file ``.lock``."""
    import fcntl  # Windows has no fcntl

    try:
        with (root / ".lock").open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False


def check_layout(pipeline: Pipeline) -> None:
    """Raise ConfigError if the tables must be converted first, or have another format than the settings."""
    if is_old(pipeline):
        raise ConfigError(
            f"folder: {pipeline.root} has tables of an earlier version; `pykafka08 pipeline convert CONFIG.toml` makes "
            "Delta tables of them"
        )
    other, there = ("iceberg", "metadata") if pipeline.storage.format == "delta" else ("delta", "_delta_log")
    for table in (pipeline.silver, *(pipeline.bronze(name) for name in pipeline.sources)):
        if (table / there).names():
            raise ConfigError(
                f"storage.format: {table} is a table of the format {other!r}, not {pipeline.storage.format!r}; set "
                f"storage.format to {other!r}, or choose another folder"
            )


def entries(table: Path, after: int) -> list[OldEntry]:
    """The entries after a version, in order."""
    found = sorted((table / "log").glob("*.json"))
    return [_entry(json.loads(path.read_text())) for path in found if int(path.stem) > after]


def state_at(table: Path, version: int) -> OldState:
    """The table at a version.  Raises ConfigError if an entry is missing."""
    folded = max((one for one in _numbers(table / "snapshots") if one <= version), default=-1)
    state = _snapshot(table, folded) if folded >= 0 else OldState()
    for entry in entries(table, folded):
        if entry.version <= version:
            if entry.version != state.version + 1:
                raise ConfigError(
                    f"folder: {table / 'log'} lacks entry {state.version + 1}; restore the folder from a copy"
                )
            state.add(entry)
    return state


def manifest(bronze: Path) -> list[str]:
    """The files that Spark's sink has committed, relative to the folder."""
    paths = (unquote(urlsplit(one["path"]).path) for one in _documents(bronze / MANIFEST))
    return [Path(path).relative_to(bronze.resolve()).as_posix() for path in paths]


def last_batch(bronze: Path) -> int:
    """The newest batch of the sink; -1 without one."""
    names = (one.name.removesuffix(".compact") for one in (bronze / MANIFEST).glob("*"))
    return max((int(name) for name in names if name.isdigit()), default=-1)


def source_log(checkpoint: Path) -> dict[str, int]:
    """Name of each file that a query has planned to read → its batch in the log of the file source."""
    documents = _documents(checkpoint / "sources" / "0")
    return {Path(unquote(urlsplit(one["path"]).path)).name: one["batchId"] for one in documents}


def _entry(document: Mapping[str, Any]) -> OldEntry:
    added = tuple(OldFile(**one) for one in document["added"])
    return OldEntry(**{**document, "added": added, "removed": tuple(document["removed"])})


def _snapshot(table: Path, version: int) -> OldState:
    document = json.loads((table / "snapshots" / f"{version:020d}.json").read_text())
    files = {one["path"]: OldFile(**one) for one in document["files"]}
    brought = {kind: Counter(rows) for kind, rows in document["brought"].items()}
    return OldState(document["version"], files, document["newest"], Counter(document["counts"]), brought)


def _documents(log: Path) -> Iterator[dict[str, Any]]:
    """The documents in a log of Spark: ``N.compact`` has all up to N, and one file has each later batch."""
    joined = max((int(one.stem) for one in log.glob("*.compact") if one.stem.isdigit()), default=-1)
    single = sorted(number for number in _numbers(log, "*") if number > joined)
    for path in ([log / f"{joined}.compact"] if joined >= 0 else []) + [log / str(number) for number in single]:
        yield from map(json.loads, path.read_text().splitlines()[1:])


def _numbers(folder: Path, pattern: str = "*.json") -> Iterable[int]:
    names = (one.name.removesuffix(".json") for one in folder.glob(pattern))
    return [int(name) for name in names if name.isdigit()]
