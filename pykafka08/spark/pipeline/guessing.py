"""A pipeline's TOML from a sample of a topic: format, columns, event time and a key.  :func:`sample` alone reads."""

from __future__ import annotations

import asyncio
import csv
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pykafka08 import Consumer
from pykafka08.config import client_settings
from pykafka08.errors import ConfigError, RequestTimeoutError
from pykafka08.spark.pipeline.settings import Source
from pykafka08.spark.pipeline.starting import extent, read_options_of

__all__ = ["Guess", "guess", "sample", "toml_of"]

SAMPLE = 500
"""Records that are looked at."""
MOST = 0.8
"""Of the values so many are JSON objects where the format is JSON: topics have broken records, too."""
SILENT_S = 10.0
"""So long a topic may keep silent: a transactional topic may hold less records than offsets."""
TIMES = re.compile(r"(^|_)(time|timestamp|ts|at|date|when|created|updated)($|_)|(time|timestamp)$", re.IGNORECASE)
ISO = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?)?")
SIMPLE = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
OWN = {"event_time", "event_date", "day"}
"""Columns of silver that the pipeline makes, beside those that begin with ``_``."""
WIRE_BYTES = 5
"""Magic byte and schema id of a registry's wire format."""
AVRO_TYPES = {
    "boolean": "BOOLEAN", "int": "INT", "long": "BIGINT", "float": "FLOAT", "double": "DOUBLE", "string": "STRING",
    "bytes": "BINARY", "fixed": "BINARY", "enum": "STRING",
}  # fmt: skip
AVRO_LOGICAL = {"timestamp-millis": "TIMESTAMP", "timestamp-micros": "TIMESTAMP", "date": "DATE"}
EPOCHS = ((1e9, 4e9, "timestamp_seconds"), (1e12, 4e12, "timestamp_millis"), (1e15, 4e15, "timestamp_micros"))
Sampled = tuple[bytes | None, bytes | None]
"""Key and value."""


@dataclass
class Guess:
    """What the records look like."""

    format: str
    columns: dict[str, str] = field(default_factory=dict)
    """Name → type in DDL."""
    event_time: str = "_timestamp"
    key: str = ""
    """A column that differs in each record of the sample."""
    options: dict[str, str] = field(default_factory=dict)
    avro_schema: str = ""
    avro_header_bytes: int = 0
    notes: list[str] = field(default_factory=list)


def sample(source: Source) -> list[Sampled]:
    """The first records of a source.

    Raises:
        ConfigError: a topic is unknown, or there is no record.
    """
    first, end = extent(source)
    there = sum(end[tp] - first[tp] for tp in end)
    if there <= 0:
        raise ConfigError(f"topic {', '.join(source.topics)}: there is no record to look at")
    return asyncio.run(_read(source, min(there, SAMPLE)))


async def _read(source: Source, count: int) -> list[Sampled]:
    found: list[Sampled] = []
    settings = client_settings(read_options_of(source).settings.client)
    async with Consumer(*source.topics, auto_offset_reset="earliest", **settings) as consumer:
        while len(found) < count:
            try:
                records = await consumer.getmany(max_records=count - len(found), timeout=SILENT_S)
            except RequestTimeoutError:
                break
            if not records:
                break
            found += [(record.key, record.value) for record in records]
    return found


def guess(records: Iterable[Sampled], avro_schema: str = "") -> Guess:
    """The format that all records have; ``avro_schema``: a file, for Avro.

    Raises:
        ConfigError: the records are Avro and no schema is given, or the schema cannot be used.
    """
    values = [value for _, value in records if value is not None]
    is_wire = bool(values) and all(len(one) > WIRE_BYTES and one[0] == 0 for one in values)
    if avro_schema:
        return _of_avro(avro_schema, is_wire=is_wire)
    if is_wire:
        ids = sorted({int.from_bytes(one[1:WIRE_BYTES], "big") for one in values})
        raise ConfigError(
            f"the values have a schema registry's wire format, with schema {', '.join(map(str, ids))}: "
            "give the file of the Avro schema with --avro-schema, or write the file by hand with [decode] registry"
        )
    texts = [one.decode(errors="replace") for one in values]
    rows = [row for row in map(_json, texts) if row is not None]
    if rows and len(rows) >= MOST * len(texts):
        found = _of_rows("json", rows)
        if len(rows) < len(texts):
            found.notes.append(f"{len(texts) - len(rows):,} of {len(texts):,} values are no JSON objects.")
        return found
    if any("\ufffd" in one for one in texts):
        return Guess("raw", notes=["Values are not UTF-8: each such record is refused until a format fits."])
    return _of_csv(texts) or Guess("raw", notes=["The values are texts of no known format: columns are key and text."])


def _json(text: str) -> dict[str, Any] | None:
    try:
        row = json.loads(text)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None


def _of_csv(texts: Sequence[str]) -> Guess | None:
    for separator in ",;\t|":
        split = [next(csv.reader([text], delimiter=separator), []) for text in texts]
        if split and len({len(one) for one in split}) == 1 and len(split[0]) > 1:
            rows = [{f"c{number}": _typed(cell) for number, cell in enumerate(one, 1)} for one in split]
            found = _of_rows("csv", rows)
            found.options = {"sep": separator}
            found.notes.append("The columns of CSV have no names in the records: give them some.")
            return found
    return None


def _typed(cell: str) -> Any:
    """The value that a cell of CSV shows."""
    for pattern, kind in ((r"-?\d{1,18}", int), (r"-?\d+\.\d+", float)):
        if re.fullmatch(pattern, cell):
            return kind(cell)
    return cell or None


def _of_rows(form: str, rows: Sequence[Mapping[str, Any]]) -> Guess:
    found = Guess(form)
    values: dict[str, list[Any]] = {}
    for row in rows:
        for name, value in row.items():
            values.setdefault(name, []).append(value)
    known: set[str] = set()
    for name, each in values.items():
        if name.lower() in OWN or name.startswith("_") or "`" in name or name.lower() in known or not name:
            found.notes.append(f"The field {name!r} is left out: a column cannot have this name here.")
            continue
        known.add(name.lower())
        found.columns[name] = _type(each)
        if not found.key and len(each) == len(rows) > 1 and _is_key(name, each):
            found.key = name
    found.event_time = _event_time(found, values)
    return found


def _is_key(name: str, values: Sequence[Any]) -> bool:
    is_plain = all(isinstance(one, (str, int)) and not isinstance(one, bool) for one in values)
    return name.lower().endswith("id") and is_plain and len(set(values)) == len(values)


def _type(values: Iterable[Any]) -> str:
    there = [one for one in values if one is not None]
    kinds = {type(one) for one in there}
    if kinds == {bool}:
        return "BOOLEAN"
    if kinds == {int}:
        return "BIGINT" if all(abs(one) < 1 << 63 for one in there) else "DECIMAL(38,0)"
    if kinds and kinds <= {int, float}:
        return "DOUBLE"
    if kinds == {list}:
        return f"ARRAY<{_type(one for each in there for one in each)}>"
    if kinds == {str} and all(ISO.fullmatch(one) for one in there):
        return "TIMESTAMP" if all(len(one) > len("2024-01-01") for one in there) else "DATE"
    return "STRING"  # objects as well: Spark gives their JSON


def _event_time(found: Guess, values: Mapping[str, Sequence[Any]]) -> str:
    """The expression for the first column that tells a time, the one with such a name before others."""
    candidates: list[tuple[bool, str]] = []
    for name, kind in found.columns.items():
        is_named = bool(TIMES.search(name))
        if kind in ("TIMESTAMP", "DATE"):
            candidates.append((not is_named, _quoted(name)))
        elif kind == "BIGINT" and is_named:
            numbers = [one for one in values.get(name, ()) if one is not None]
            for least, most, function in EPOCHS:
                if numbers and all(least <= one < most for one in numbers):
                    candidates.append((False, f"{function}({_quoted(name)})"))
    if candidates:
        return min(candidates, key=lambda one: one[0])[1]
    found.notes.append("No field tells a time: the record's own timestamp is the event time (brokers from 0.10).")
    return "_timestamp"


def _of_avro(path: str, *, is_wire: bool) -> Guess:
    try:
        schema = json.loads(Path(path).read_text(encoding="utf-8"))
        fields = {one["name"]: one["type"] for one in schema["fields"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"--avro-schema: {path} has no record's schema: {error}") from error
    found = Guess("avro", avro_schema=path, avro_header_bytes=WIRE_BYTES if is_wire else 0)
    for name, kind in fields.items():
        if name.lower() in OWN or name.startswith("_"):
            found.notes.append(f"The field {name!r} is left out: a column cannot have this name here.")
        else:
            found.columns[name] = _avro_type(kind)
    found.event_time = _event_time(found, {})
    return found


def _avro_type(kind: Any) -> str:
    if isinstance(kind, list):
        others = [one for one in kind if one != "null"]
        return _avro_type(others[0]) if len(others) == 1 else "STRING"
    if isinstance(kind, dict):
        if kind.get("logicalType") in AVRO_LOGICAL:
            return AVRO_LOGICAL[kind["logicalType"]]
        if kind["type"] == "array":
            return f"ARRAY<{_avro_type(kind['items'])}>"
        return _avro_type(kind["type"])
    return AVRO_TYPES.get(kind, "STRING")


def _quoted(name: str) -> str:
    return name if SIMPLE.fullmatch(name) else f"`{name}`"


def toml_of(found: Guess, source: Source, folder: str, looked_at: int) -> str:
    """The commented file."""
    columns = ", ".join(f"{_quoted(name)} {kind}" for name, kind in found.columns.items())
    lines = [
        f"# Guessed by pykafka08 pipeline init from the first {looked_at:,} records; keys: docs/pipeline.md",
        *(f"# {_comment(one)}" for one in found.notes),
        f"name = {_text(source.name)}",
        f"folder = {_text(folder)}  # tables, checkpoints and reports",
        "",
        f"[sources.{source.name}]",
        f"bootstrap_servers = {_text(source.bootstrap_servers)}",
        *([f"properties = {_text(source.properties)}"] if source.properties else []),
        f"topics = [{', '.join(map(_text, source.topics))}]",
        'starting = "earliest"  # or latest, a time in ms, offsets as JSON, group:NAME',
        "max_offsets_per_trigger = 1_000_000  # of a micro-batch",
        "",
        "[decode]",
        f"format = {_text(found.format)}",
        *([f"schema = {_text(columns)}"] if columns else []),
        *([f"avro_schema = {_text(found.avro_schema)}"] if found.avro_schema else []),
        *([f"avro_header_bytes = {found.avro_header_bytes}"] if found.avro_header_bytes else []),
        f"event_time = {_text(found.event_time)}  # an SQL expression that gives a timestamp",
        *([f"options = {{ sep = {_text(found.options['sep'])} }}"] if found.options else []),
        "",
        "# [decode.rules]  # rows for which a condition is not true are refused",
        '# "a name" = "an SQL condition"',
        "",
        "# [decode.duplicates]  # one row of each key is kept",
        f"# key = [{_text(found.key or 'id')}]" + ("  # differs in each record that was looked at" * bool(found.key)),
        "",
        "# [aggregates.hourly]",
        '# watermark = "1 day"',
        '# window = "1 hour"',
        '# measures = { records = "count(*)" }',
        "# or, in the place of window and measures:",
        "# sql = \"SELECT window, count(*) AS records FROM silver GROUP BY window(event_time, '1 hour')\"",
        "",
        "[spark]",
        'master = "local[*]"',
    ]
    return "\n".join(lines) + "\n"


def _text(value: str) -> str:
    """A basic string of TOML, which JSON's strings are but for DEL."""
    return json.dumps(value, ensure_ascii=True).replace("\x7f", "\\u007f")


def _comment(text: str) -> str:
    return "".join(one if one.isprintable() else "?" for one in text)
