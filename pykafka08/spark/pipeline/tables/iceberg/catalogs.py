"""The catalog of ``[storage.catalog]``: the names of its tables, and its errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import lru_cache

from pydantic import ValidationError as InvalidAnswerError
from pyiceberg.catalog import Catalog as IcebergCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    CommitStateUnknownException,
    NoSuchNamespaceError,
    NoSuchTableError,
    RESTError,
)
from requests import RequestException, Timeout
from sqlalchemy.exc import SQLAlchemyError

from pykafka08.spark.pipeline.addresses import CATALOG_SECRETS, Address, Storage
from pykafka08.spark.pipeline.stores import Folder, first_line
from pykafka08.spark.pipeline.tables.iceberg.files import STORAGE
from pykafka08.spark.pipeline.tables.table_log import CatalogError

__all__ = [
    "NOT_COMMITTED",
    "NOT_FOUND",
    "catalog_errors",
    "catalog_of",
    "check_catalog",
    "identifier_of",
    "location_of",
]

FILES = "pykafka08.spark.pipeline.tables.iceberg.files.StoreFiles"
TOKENS = "oauth2-server-uri"
"""The property with the address that gives tokens for a credential; by default the catalog's own."""
NOT_FOUND = (NoSuchTableError, NoSuchNamespaceError)
NOT_COMMITTED = (CommitFailedException,)
"""Errors of a commit if another writer has committed first."""
SHORTEST_SECRET = 6
"""Characters of the shortest value that errors hide; a shorter value, such as ``true``, may be a part of a word."""
ERRORS = (RESTError, RequestException, SQLAlchemyError, InvalidAnswerError, NotImplementedError)


def catalog_of(storage: Storage) -> IcebergCatalog:
    """The catalog of ``[storage.catalog]``, one object for each process.

    Raises:
        CatalogError: the catalog does not answer, or refuses the credentials.
    """
    try:
        return _opened(storage)
    except (*ERRORS, ImportError, ValueError) as error:
        raise CatalogError(f"storage.catalog: {_without_secrets(storage, error)}") from None


@lru_cache(maxsize=8)
def _opened(storage: Storage) -> IcebergCatalog:
    settings = storage.catalog
    assert settings is not None
    named = {name: str(getattr(settings, name)) for name in ("uri", "warehouse", "credential", "token")}
    properties = {name: value for name, value in named.items() if value}
    properties |= {name: str(value) for name, value in settings.options.items()}
    own = {"py-io-impl": FILES, STORAGE: json.dumps(asdict(replace(storage, catalog=None)))}
    # pyiceberg's load_catalog would add settings of the user's home and environment.
    if settings.type == "sql":
        from pyiceberg.catalog.sql import SqlCatalog

        return SqlCatalog(settings.name, **properties, **own)
    from pykafka08.spark.pipeline.tables.iceberg.rest import FolderRestCatalog

    if settings.credential:  # pyiceberg warns if it has to guess this address
        properties.setdefault(TOKENS, f"{str(settings.uri).rstrip('/')}/v1/oauth/tokens")
    return FolderRestCatalog(settings.name, own, **properties)


def check_catalog(storage: Storage) -> str:
    """Ask the catalog whether it has the namespace; a line with the answer.

    Raises:
        CatalogError: the catalog does not answer, or refuses the request.
    """
    settings, catalog = storage.catalog, catalog_of(storage)
    assert settings is not None
    with catalog_errors(storage):
        there = catalog.namespace_exists(tuple(settings.namespace.split(".")))
    return f"storage.catalog: {settings.type}, namespace {settings.namespace}{'' if there else ' (will be created)'}"


def identifier_of(folder: Folder) -> tuple[str, ...]:
    """The parts of the namespace, and the table's name: ``bronze_SOURCE``, ``silver``, ``rejects`` or ``gold_NAME``."""
    settings = folder.storage.catalog
    assert settings is not None
    return *settings.namespace.split("."), (folder.place or folder.name).replace("/", "_")


def location_of(address: Address) -> str:
    """The address of a folder or file for Iceberg."""
    return f"file://{address.path}" if address.is_local else address.delta


@contextmanager
def catalog_errors(storage: Storage) -> Iterator[None]:
    """Raise errors of the catalog as CatalogError, in one line and without secrets."""
    try:
        yield
    except CommitStateUnknownException as error:
        raise CatalogError(
            f"storage.catalog: {_without_secrets(storage, error)}; the commit may be in the table; "
            "run this again: a run looks for it first"
        ) from None
    except Timeout as error:
        raise CatalogError(
            f"storage.catalog: {_without_secrets(storage, error)}; if this was a commit, it may be in the table; "
            "run this again: a run looks for it first"
        ) from None
    except ERRORS as error:
        raise CatalogError(f"storage.catalog: {_without_secrets(storage, error)}") from None


def _without_secrets(storage: Storage, error: Exception) -> str:
    """The first line of an error, without values of settings that may be secrets."""
    text, settings = first_line(error), storage.catalog
    assert settings is not None
    secrets = [getattr(settings, name) for name in CATALOG_SECRETS]
    for secret in (*secrets, settings.credential.partition(":")[2], *settings.options.values()):
        if len(secret) >= SHORTEST_SECRET:
            text = text.replace(str(secret), "***")
    return text
