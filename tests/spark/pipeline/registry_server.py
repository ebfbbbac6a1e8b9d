"""A small schema registry for tests, with the requests of Confluent's serializers and of the pipeline."""

from __future__ import annotations

import json
import re
import ssl
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit


@dataclass
class RegistryServer:
    """The schemas of the registry, and the requests that it got."""

    url: str = ""
    schemas: dict[int, dict[str, Any]] = field(default_factory=dict)
    subjects: dict[str, list[int]] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)
    """Method and path with query → number of requests."""
    authorization: str = ""
    """The required ``Authorization`` header; empty: none is required."""
    failing: list[int] = field(default_factory=list)
    """Statuses of the next answers, in place of the usual ones."""

    def register(self, subject: str, schema: str, kind: str = "AVRO", references: Any = ()) -> int:
        document = {"schema": schema, "schemaType": kind, "references": list(references)}
        known = [number for number, one in self.schemas.items() if one == document]
        number = known[0] if known else 100 + len(self.schemas)
        self.schemas[number] = document
        versions = self.subjects.setdefault(subject, [])
        if number not in versions:
            versions.append(number)
        return number

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        parts = [unquote(one) for one in urlsplit(path).path.strip("/").split("/")]
        if parts == ["schemas", "types"]:
            return 200, ["JSON", "PROTOBUF", "AVRO"]
        if parts[:2] == ["schemas", "ids"]:
            found = self.schemas.get(int(parts[2]))
            return (200, found) if found else (404, {"error_code": 40403, "message": "Schema not found"})
        if method == "POST" and parts[0] == "subjects":
            number = self.register(
                parts[1], body["schema"], body.get("schemaType", "AVRO"), body.get("references") or ()
            )
            return 200, self._version(parts[1], self.subjects[parts[1]].index(number) + 1)
        if len(parts) == 4 and re.fullmatch(r"\d+", parts[3]) and parts[1] in self.subjects:
            return 200, self._version(parts[1], int(parts[3]))
        return 404, {"error_code": 40401, "message": "Subject not found"}

    def _version(self, subject: str, version: int) -> dict[str, Any]:
        number = self.subjects[subject][version - 1]
        return {"subject": subject, "version": version, "id": number, "guid": None, **self.schemas[number]}


@contextmanager
def registry_server(tls: ssl.SSLContext | None = None) -> Iterator[RegistryServer]:
    """A registry on a thread of this process."""
    server = RegistryServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer(None)

        def do_POST(self) -> None:
            self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _answer(self, body: Any) -> None:
            server.asked[f"{self.command} {self.path}"] += 1
            if server.failing:
                status, document = server.failing.pop(0), {"error_code": 50001, "message": "failing"}
            elif server.authorization and self.headers["Authorization"] != server.authorization:
                status, document = 401, {"error_code": 401, "message": "Unauthorized"}
            else:
                status, document = server.answer(self.command, self.path, body)
            content = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            """The tests look at :attr:`RegistryServer.asked`."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        http.daemon_threads = True
        if tls is not None:
            http.socket = tls.wrap_socket(http.socket, server_side=True)
        server.url = f"{'https' if tls else 'http'}://127.0.0.1:{http.server_address[1]}"
        thread = threading.Thread(target=http.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()
