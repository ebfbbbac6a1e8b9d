"""An S3 server for tests: moto's, in a process of its own (:mod:`tests.stores.s3_server`)."""

from __future__ import annotations

import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

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
        # Imported here, because every process of a run collects tests with this module, and few start a server.
        import boto3
        from botocore.config import Config

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
    command = [sys.executable, "-m", "tests.stores.s3_server"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        port = process.stdout.readline().decode().strip()
        assert port, "the server did not start"
        server = S3(f"http://127.0.0.1:{port}", f"AK{secrets.token_hex(8)}", f"sk-{secrets.token_hex(16)}")
        server.client().create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
        yield server
        process.communicate()
