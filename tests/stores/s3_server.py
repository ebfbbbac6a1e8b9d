"""Moto's S3 server.  ``python -m tests.stores.s3_server`` prints its port, and ends with its standard input.

Moto checks the condition of a request and writes later; at Amazon both are one step.  So here requests that write run
one after the other.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server


class Quiet(WSGIRequestHandler):
    """HTTP/1.1, so that clients keep their connections; no line for each request."""

    protocol_version = "HTTP/1.1"

    def log_request(self, *_: object) -> None:
        """Nothing is printed."""


def _one_writer(application: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
    lock = threading.Lock()

    def answered(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] in ("GET", "HEAD"):
            return application(environ, start_response)
        with lock:
            return list(application(environ, start_response))

    return answered


def main() -> None:
    application = _one_writer(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=Quiet)
    print(server.server_port, flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()  # ends with the process that started this one


if __name__ == "__main__":
    main()
