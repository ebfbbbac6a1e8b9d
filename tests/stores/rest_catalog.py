"""A catalog server with the REST API of Iceberg, over a SQL catalog.

It answers the requests for configuration, OAuth tokens, namespaces and tables, and requires a token for all but the
first two.  The server commits, so of two clients at once it refuses one, as other servers do.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from pyiceberg.catalog.rest import CreateTableRequest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.table import CommitTableRequest, Table

__all__ = ["CREDENTIAL", "CatalogServer", "rest_catalog"]

CREDENTIAL = "pipeline:cr3dential"
TOKEN = "t0ken-of-the-catalog"
STATUS = {
    CommitFailedException: 409,
    NamespaceAlreadyExistsError: 409,
    TableAlreadyExistsError: 409,
    NoSuchNamespaceError: 404,
    NoSuchTableError: 404,
    PermissionError: 401,
}
SEPARATOR = "\x1f"
"""The character between the parts of a namespace in a path."""


@dataclass(frozen=True)
class CatalogServer:
    """A running server."""

    uri: str
    catalog: SqlCatalog
    """The catalog behind it."""


@contextmanager
def rest_catalog(folder: Path, properties: Mapping[str, str]) -> Iterator[CatalogServer]:
    """A server, with a database in ``folder``.  ``properties``: pyiceberg's properties for the store of the tables."""
    catalog = SqlCatalog("server", uri=f"sqlite:///{folder}/server.db", **properties)
    handler = type("Handler", (_Handler,), {"catalog": catalog})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield CatalogServer(f"http://127.0.0.1:{server.server_address[1]}", catalog)
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    catalog: SqlCatalog
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer("GET")

    def do_HEAD(self) -> None:
        self._answer("HEAD")

    def do_POST(self) -> None:
        self._answer("POST")

    def log_message(self, format: str, *args: Any) -> None:
        """Write no line for each request."""

    def _answer(self, method: str) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        try:
            status, document = 200, self._document(method, body)
        except tuple(STATUS) as error:
            status = STATUS[type(error)]
            document = {"error": {"message": str(error), "type": type(error).__name__, "code": status}}
        content = b"" if method == "HEAD" else json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _document(self, method: str, body: str) -> dict[str, Any]:
        parts = [unquote(one) for one in urlsplit(self.path).path.strip("/").split("/")][1:]
        if parts == ["config"]:
            return {"defaults": {}, "overrides": {}}
        if parts == ["oauth", "tokens"]:
            given = parse_qs(body)
            if f"{given['client_id'][0]}:{given['client_secret'][0]}" != CREDENTIAL:
                raise PermissionError("unknown client")
            return {"access_token": TOKEN, "token_type": "bearer", "expires_in": 3600}
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            raise PermissionError("a token is wanted")
        if parts == ["namespaces"]:
            wanted = json.loads(body)
            self.catalog.create_namespace(tuple(wanted["namespace"]))
            return {"namespace": wanted["namespace"], "properties": {}}
        namespace = tuple(parts[1].split(SEPARATOR))
        if len(parts) == 2:
            return {"namespace": namespace, "properties": dict(self.catalog.load_namespace_properties(namespace))}
        if len(parts) == 3:
            return self._created(namespace, CreateTableRequest.model_validate_json(body))
        table = self.catalog.load_table((*namespace, parts[3]))
        if method == "POST":
            asked = CommitTableRequest.model_validate_json(body)
            made = self.catalog.commit_table(table, asked.requirements, asked.updates)
            return json.loads(made.model_dump_json())
        return _document_of(table)

    def _created(self, namespace: tuple[str, ...], asked: CreateTableRequest) -> dict[str, Any]:
        assert asked.partition_spec is not None
        table = self.catalog.create_table(
            (*namespace, asked.name),
            asked.table_schema,
            asked.location,
            asked.partition_spec,
            properties=asked.properties,
        )
        return _document_of(table)


def _document_of(table: Table) -> dict[str, Any]:
    metadata = json.loads(table.metadata.model_dump_json())
    return {"metadata-location": table.metadata_location, "metadata": metadata, "config": {}}
