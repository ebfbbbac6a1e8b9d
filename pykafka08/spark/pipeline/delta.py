"""A part of a table as a Delta table: ``_delta_log`` beside the table's own log, for any reader of that format.

The entries of the log become commits one by one, from the first that has rows of the part on.  A commit holds the files
that come and go, and as ``txn`` the query and the batch that the entry is of.  It is made whole or not at all, under
the entry's own number: so an entry is a commit once, whoever writes it and however often; one that a crash has left out
is made by the next call.  Days are the partitions.

Source: the Delta transaction log protocol, reader version 1.  Not here: a Delta library; rows are not copied.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow.parquet as pq

from pykafka08.spark.pipeline.table import Added, Entry, Table, write_once

__all__ = ["follow"]

SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
"""Where Spark's Parquet files keep their columns; Delta writes columns down in the same form."""
DAY = "day"
Action = dict[str, Any]


def follow(table: Table, part: str) -> int:
    """Make the commits that are missing; the version up to which there are commits, or none are needed."""
    state = table.state()
    if part not in state.first:
        return state.version
    log, first = table.folder / "_delta_log", state.first[part]
    done = first + len(list(log.glob("*.json"))) - 1
    if done < first and not state.live(part):
        return done  # it has no columns to show, either
    entries = table.entries(done, state.version)
    there = {one.path: one for one in table.live(part, done)} if any(one.removed for one in entries) else {}
    there.update((one.path, one) for entry in entries for one in _of(entry, part))
    for entry in entries:
        actions = _actions(table, part, entry, there)
        write_once(_path(log, entry.version - first), "".join(json.dumps(one) + "\n" for one in actions))
    return max(done, state.version)


def _path(log: Path, number: int) -> Path:
    return log / f"{number:020d}.json"


def _of(entry: Entry, part: str) -> list[Added]:
    return [one for one in entry.added if one.part == part]


def _actions(table: Table, part: str, entry: Entry, there: Mapping[str, Added]) -> Iterator[Action]:
    at = int((table.folder / "log" / f"{entry.version:020d}.json").stat().st_mtime * 1000)
    yield {"commitInfo": {"timestamp": at, "operation": entry.kind, "operationMetrics": dict(entry.counts)}}
    log = table.folder / "_delta_log"
    if not _path(log, 0).exists():
        yield {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
    before = _newest_schema(log)
    schema = _schema(table, part) or before
    if schema != before:
        yield {"metaData": _metadata(table, schema, at)}
    yield {"txn": {"appId": entry.query, "version": entry.batch, "lastUpdated": at}}
    is_new = entry.kind != "compaction"
    for path in entry.removed:
        if path in there:
            yield {"remove": {**_file(there[path]), "deletionTimestamp": at, "dataChange": is_new}}
    for one in _of(entry, part):
        stats = json.dumps({"numRecords": one.rows})
        yield {"add": {**_file(one), "modificationTime": at, "dataChange": is_new, "stats": stats}}


def _file(one: Added) -> Action:
    return {"path": quote(one.path, safe="/="), "partitionValues": {DAY: one.day}, "size": one.bytes}


def _schema(table: Table, part: str) -> str | None:
    """The columns of the newest file, and the day; None: there is no file."""
    live = table.live(part)
    if not live:
        return None
    columns = json.loads(pq.read_schema(table.folder / live[-1].path).metadata[SPARK_SCHEMA])["fields"]
    columns.append({"name": DAY, "type": "date", "metadata": {}})
    return json.dumps({"type": "struct", "fields": [{**one, "nullable": True} for one in columns]})


def _metadata(table: Table, schema: str | None, at: int) -> Action:
    return {
        "id": str(uuid.uuid5(uuid.NAMESPACE_URL, table.folder.as_uri())),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema,
        "partitionColumns": [DAY],
        "configuration": {},
        "createdTime": at,
    }


def _newest_schema(log: Path) -> str | None:
    found = filter(None, map(_schema_of, sorted(log.glob("*.json"), reverse=True)))
    return next(found, None)


@cache
def _schema_of(commit: Path) -> str | None:
    """Commits never change."""
    actions = map(json.loads, commit.read_text().splitlines())
    return next((one["metaData"]["schemaString"] for one in actions if "metaData" in one), None)
