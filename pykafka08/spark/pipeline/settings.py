"""The TOML file of a pipeline, read as :class:`Pipeline`; every error names the key.

Pydantic checks each setting by the type of its field in ``settings_model``, then ``settings_checks`` compares settings
with each other.  All errors of a file are reported at once.  No pyspark is needed.
"""

from __future__ import annotations

import dataclasses
import re
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError

from pykafka08.errors import ConfigError
from pykafka08.kafka_properties import is_secret
from pykafka08.spark.pipeline.addresses import (
    CATALOG_SECRETS,
    Storage,
    address_of,
    check_path,
    with_catalog_file,
    with_file,
)
from pykafka08.spark.pipeline.client_files import with_properties, with_registry_properties
from pykafka08.spark.pipeline.settings_checks import CHECKS
from pykafka08.spark.pipeline.settings_model import (
    REGISTRY_SECRETS,
    Aggregate,
    Alerts,
    Compaction,
    DeadLetters,
    Decode,
    Duplicates,
    Limits,
    Lineage,
    Metrics,
    Pipeline,
    Reference,
    Registry,
    Retention,
    Rule,
    Source,
    SparkSettings,
    Uniqueness,
)
from pykafka08.spark.pipeline.stores import Folder

if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover
    import tomli as tomllib

__all__ = [
    "Aggregate",
    "Alerts",
    "Compaction",
    "DeadLetters",
    "Decode",
    "Duplicates",
    "Limits",
    "Lineage",
    "Metrics",
    "Pipeline",
    "Reference",
    "Registry",
    "Retention",
    "Rule",
    "Source",
    "SparkSettings",
    "Uniqueness",
    "parse",
    "read",
    "source_of",
]


def read(path: str | Path) -> Pipeline:
    """The pipeline of a file; relative paths in it count from its folder.

    Raises:
        ConfigError: the file cannot be read, is not TOML, or has a key or value that means nothing.
    """
    return parse(_text_of(Path(path)), Path(path).resolve().parent)


def _text_of(path: Path) -> str:
    """The text of a file.  Raises ConfigError, which names the file, if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8: {error.reason} at byte {error.start}") from error


def parse(text: str, folder: Path) -> Pipeline:
    """The pipeline of a TOML text; relative paths count from ``folder``.

    Raises:
        ConfigError: the text is not TOML, or settings are wrong: a line for each, which begins with its key.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"not TOML: {error}") from error
    sources = document.get("sources")
    if isinstance(sources, dict):
        document["sources"] = {
            name: {"name": name, **value} if isinstance(value, dict) else value for name, value in sources.items()
        }
    refused = _with_files(document, folder)
    pipeline = _built(document, refused)
    errors = [f"{where}: {text}" for check in CHECKS for where, text in check(pipeline)]
    if errors:
        raise ConfigError("\n".join(errors))
    root = Folder(address_of(pipeline.folder, folder))
    check_path(root.address)
    decode = _with_whole_paths(pipeline.decode, folder)
    aggregates = {name: _with_query(name, one, folder) for name, one in pipeline.aggregates.items()}
    metrics, lineage = pipeline.metrics, pipeline.lineage
    if metrics is not None and metrics.textfile:
        metrics = dataclasses.replace(metrics, textfile=str(folder / metrics.textfile))
    if lineage is not None and lineage.file:
        lineage = dataclasses.replace(lineage, file=str(folder / lineage.file))
    runs = str(root / "runs") if root.is_local else f"{pipeline.name}-runs"
    reports = str(folder / (pipeline.reports or runs))
    return dataclasses.replace(
        pipeline,
        folder=str(root),
        storage=_with_whole_catalog(pipeline, folder),
        reports=reports,
        decode=decode,
        aggregates=aggregates,
        metrics=metrics,
        lineage=lineage,
    )


def _with_files(document: dict[str, Any], folder: Path) -> dict[str, str]:
    """Add the settings in properties files to the tables that name the files, in place.  Returns table → error."""
    refused: dict[str, str] = {}
    for where, table in _clusters(document):
        try:
            with_properties(table, folder, is_source=where.startswith("sources."))
        except ConfigError as error:  # noqa: PERF203 - each table's own error is told
            refused[where] = f"{where}: {error.message}"
    for where, add in (
        ("storage", with_file),
        ("storage.catalog", with_catalog_file),
        ("decode.registry", with_registry_properties),
    ):
        found = _table_at(document, where)
        if found is not None:
            try:
                add(found, folder)
            except ConfigError as error:
                file = "" if where == "decode.registry" else ".properties"
                refused[where] = f"{where}{file}: {error.message}"
    return refused


def _table_at(document: Any, where: str) -> dict[str, Any] | None:
    """The table with a dotted key; None if the document does not have it."""
    for name in where.split("."):
        document = document.get(name) if isinstance(document, dict) else None
    return document if isinstance(document, dict) else None


def _with_whole_catalog(pipeline: Pipeline, folder: Path) -> Storage:
    """The storage with the catalog's namespace, and with the path of a SQLite file resolved against ``folder``."""
    storage = pipeline.storage
    if storage.catalog is None:
        return storage
    uri = str(storage.catalog.uri)
    if uri.startswith(SQLITE):
        uri = f"{SQLITE}{folder / uri.removeprefix(SQLITE)}"
    catalog = dataclasses.replace(storage.catalog, uri=uri, namespace=storage.catalog.namespace or pipeline.name)
    return dataclasses.replace(storage, catalog=catalog)


def _with_whole_paths(decode: Decode, folder: Path) -> Decode:
    schema, registry = decode.avro_schema, decode.registry
    if registry is not None and registry.ssl_ca_location:
        registry = dataclasses.replace(registry, ssl_ca_location=str(folder / registry.ssl_ca_location))
    references = tuple(dataclasses.replace(one, to=address_of(one.to, folder).spark) for one in decode.references)
    schema = str(folder / schema) if schema else ""
    return dataclasses.replace(decode, avro_schema=schema, registry=registry, references=references)


def _with_query(name: str, aggregate: Aggregate, folder: Path) -> Aggregate:
    """The aggregate with the query of its ``sql_file`` as ``sql``."""
    if not aggregate.sql_file:
        return aggregate
    path = folder / aggregate.sql_file
    try:
        text = _text_of(path)
    except ConfigError as error:
        raise ConfigError(f"aggregates.{name}.sql_file: {error.message}") from error
    return dataclasses.replace(aggregate, sql=text, sql_file=str(path))


def source_of(bootstrap_servers: str, topics: Iterable[str], properties: str, folder: Path) -> Source:
    """A source that is in no file yet, named by its first topic.  Raises ConfigError."""
    topics = tuple(topics)
    name = re.sub(r"^[^A-Za-z0-9]+|[^A-Za-z0-9_-]", "", topics[0].replace(".", "-")) or "topic"
    table: dict[str, Any] = {"name": name, "topics": list(topics)}
    if bootstrap_servers:
        table["bootstrap_servers"] = bootstrap_servers
    if properties:
        table["properties"] = str(Path(properties).resolve())
    with_properties(table, folder, is_source=True)
    document = {"name": name, "folder": "out", "sources": {name: table}, "decode": {"format": "raw", "event_time": "x"}}
    return _built(document, {}).sources[name]


def _clusters(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The tables that name a cluster, by their keys."""
    for group in ("sources", "aggregates"):
        tables = document.get(group)
        for name, table in tables.items() if isinstance(tables, dict) else ():
            if isinstance(table, dict):
                yield f"{group}.{name}", table
    if isinstance(document.get("dead_letters"), dict):
        yield "dead_letters", document["dead_letters"]


def _built(document: dict[str, Any], refused: Mapping[str, str]) -> Pipeline:
    """Each setting by its field's type.  ``refused``: of tables whose properties mean nothing, the error by key."""
    errors: list[str] = []
    pipeline: Pipeline | None = None
    try:
        pipeline = _adapter().validate_python(document)
    except ValidationError as error:
        for one in error.errors(include_url=False):
            where = ".".join(str(part) for part in one["loc"] if isinstance(part, str) and part != "[key]")
            if not any(f"{where}.".startswith(f"{table}.") for table in refused):
                errors.append(f"{where}: {_told(where, one)}")
    errors += refused.values()
    if errors or pipeline is None:
        raise ConfigError("\n".join(errors))
    return pipeline


@cache
def _adapter() -> TypeAdapter[Pipeline]:
    return TypeAdapter(Pipeline)


def _told(where: str, error: Mapping[str, Any]) -> str:
    """What an error of pydantic's says, in this package's words."""
    kind = error["type"]
    if kind == "missing":
        return "missing"
    if kind == "unexpected_keyword_argument":
        return f"unknown; there are {', '.join(_keys(error['loc'][:-1]))}"
    if kind == "value_error":
        return str(error["ctx"]["error"])
    if kind == "greater_than_equal":
        return "may not be negative"
    shown = "***" if is_secret(where) or where.rpartition(".")[2] in HIDDEN else repr(error["input"])
    return f"{WANTED[kind]} is wanted, not {shown}" if kind in WANTED else str(error["msg"])


SQLITE = "sqlite:///"
"""The address of a SQLite database begins with this text; the path of its file follows."""
HIDDEN = {*REGISTRY_SECRETS, *CATALOG_SECRETS}
WANTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "literal_error": "true or false",
    "tuple_type": "a list",
    "dict_type": "a table",
    "mapping_type": "a table",
    "dataclass_type": "a table",
}
"""Pydantic's types of errors."""


def _keys(loc: Iterable[Any]) -> list[str]:
    """The keys of the section there."""
    hint: Any = Pipeline
    for part in loc:
        if isinstance(part, int):
            hint = get_args(hint)[0]
            continue
        hint = get_args(hint)[1] if get_origin(hint) is Mapping else get_type_hints(hint)[part]
        if get_origin(hint) in (Union, types.UnionType):
            hint = get_args(hint)[0]
    return [one.name for one in dataclasses.fields(hint)]
