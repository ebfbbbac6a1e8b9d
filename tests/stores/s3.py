"""An S3 server: moto's, in a process of its own.  ``python -m tests.stores.s3`` prints its port.

Its conditional requests look first and write then; Amazon's are atomic.  So here one request to write follows another.
"""

from __future__ import annotations

import secrets
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import boto3
from botocore.config import Config
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

BUCKET = "lake"
REGION = "eu-central-1"


@dataclass(frozen=True)
class S3:
    """A running server with one bucket."""

    endpoint: str
    access_key: str
    secret_key: str

    def client(self) -> Any:
        """Amazon's own client, to look at the bucket."""
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
            region_name=REGION,
            config=Config(retries={"max_attempts": 1}),
        )

    def keys(self, prefix: str = "") -> list[str]:
        """The keys of all objects in the bucket."""
        pages = self.client().get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        return [one["Key"] for page in pages for one in page.get("Contents", ())]


@contextmanager
def s3_server() -> Iterator[S3]:
    """Run a server with its bucket."""
    command = [sys.executable, "-m", "tests.stores.s3"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        port = process.stdout.readline().decode().strip()
        assert port, "the server did not start"
        server = S3(f"http://127.0.0.1:{port}", f"AK{secrets.token_hex(8)}", f"sk-{secrets.token_hex(16)}")
        server.client().create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
        yield server
        process.communicate()


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
    sys.stdin.read()  # the end of whoever started this


if __name__ == "__main__":
    main()
