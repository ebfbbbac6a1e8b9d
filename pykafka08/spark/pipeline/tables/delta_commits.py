"""Commits of a table, read from ``_delta_log/N.json`` and its ``commitInfo``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from pykafka08.spark.pipeline.tables.model import COMPACTION, Commit, DataFile, Totals
from pykafka08.spark.pipeline.tables.storage import Location

__all__ = ["NOTE", "commit_of", "last_checkpoint", "note_at", "note_of", "totals_at", "versions"]

FOLDER = "_delta_log"
NOTE = "pykafka08"
"""The key of ``commitInfo`` that holds kind, query, batch, counts and totals."""
Actions = list[dict[str, Any]]


def versions(location: Location) -> list[int]:
    """The versions whose commit files exist, in order."""
    names = (one.base_name for one in location.files(FOLDER, is_recursive=False))
    return [int(name.removesuffix(".json")) for name in names if name.removesuffix(".json").isdigit()]


def commit_of(location: Location, version: int) -> Commit:
    """The commit of a version.  Raises FileNotFoundError if its file was cleaned up."""
    actions = _actions(location, version)
    added = tuple(_added(one["add"]) for one in actions if "add" in one)
    removed = tuple(unquote(one["remove"]["path"]) for one in actions if "remove" in one)
    info = _info(actions)
    note, at = info.get(NOTE), info.get("timestamp", 0) / 1000
    if note is None:
        return Commit(version, _foreign_kind(info, actions), "", -1, added, removed, at=at)
    return Commit(version, note["kind"], note["query"], note["batch"], added, removed, note["counts"], at=at)


def last_checkpoint(location: Location) -> int:
    """The version of the newest checkpoint, which replaces the commits before it; -1 without a checkpoint."""
    try:
        return int(json.loads(location.read(f"{FOLDER}/_last_checkpoint"))["version"])
    except FileNotFoundError:
        return -1


def note_of(commit: Commit, totals: Totals) -> dict[str, Any]:
    """The pipeline's part of ``commitInfo``."""
    own = {"kind": commit.kind, "query": commit.query, "batch": commit.batch, "counts": dict(commit.counts)}
    return {**own, "totals": totals.document()}


def note_at(location: Location, version: int) -> Mapping[str, Any]:
    """The pipeline's part of a version's ``commitInfo``; empty if another program committed the version."""
    note: Mapping[str, Any] = _info(_actions(location, version)).get(NOTE, {})
    return note


def totals_at(location: Location, version: int) -> Totals:
    """The totals in the pipeline's newest commit up to a version; commits of other programs have no totals."""
    for note in _notes(location, version):
        return Totals(**note["totals"])
    return Totals()


def _notes(location: Location, version: int) -> Iterator[Mapping[str, Any]]:
    """The pipeline's parts of ``commitInfo``, the newest first, down to the oldest commit that exists."""
    try:
        for number in range(version, -1, -1):
            note = _info(_actions(location, number)).get(NOTE)
            if note is not None:
                yield note
    except FileNotFoundError:
        return


def _actions(location: Location, version: int) -> Actions:
    text = location.read(f"{FOLDER}/{version:020d}.json").decode()
    return [json.loads(line) for line in text.splitlines() if line]


def _info(actions: Actions) -> dict[str, Any]:
    return next((one["commitInfo"] for one in actions if "commitInfo" in one), {})


def _foreign_kind(info: Mapping[str, Any], actions: Actions) -> str:
    files = [one.get("add") or one.get("remove") or {} for one in actions]
    is_change = any(one.get("dataChange") for one in files)
    return str(info.get("operation", "")).lower() if is_change else COMPACTION


def _added(action: Mapping[str, Any]) -> DataFile:
    stats = action.get("stats") or "{}"
    values = {name: value or "" for name, value in action.get("partitionValues", {}).items()}
    return DataFile(unquote(action["path"]), json.loads(stats).get("numRecords", 0), action["size"], values)
