"""A folder of a pipeline on each kind of store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pykafka08.spark.pipeline.addresses import Address, Storage, address_of
from tests.stores.hdfs import hdfs
from tests.stores.s3 import BUCKET, REGION, s3_server


@dataclass(frozen=True)
class Place:
    """A store, or a folder of this machine."""

    root: str
    storage: Storage = field(default_factory=Storage)
    unreachable: str = ""
    """An address of the same kind that no server has."""
    toml: str = ""
    """The table ``[storage]``."""

    @property
    def secret(self) -> str:
        """The secret that no text may show."""
        return str(self.storage.secret_key) or "it has no secret"

    def address(self, name: str) -> Address:
        """The address of a folder with this name."""
        return address_of(f"{self.root}/{name}", Path("/"))


@contextmanager
def place(scheme: str, folder: Path) -> Iterator[Place]:
    """Run a store of the kind ``file``, ``s3a`` or ``hdfs``."""
    if scheme == "file":
        yield Place(folder.as_uri())
    elif scheme == "s3a":
        with s3_server() as server:
            given = {"endpoint": server.endpoint, "region": REGION}
            given |= {"access_key": server.access_key, "secret_key": server.secret_key}
            toml = "[storage]\n" + "".join(f'{name} = "{value}"\n' for name, value in given.items())
            yield Place(f"s3a://{BUCKET}/pipelines", Storage(**given), "s3a://nowhere/x", toml)
    else:
        with hdfs(folder) as namenode:
            yield Place(f"hdfs://{namenode}/pipelines", unreachable="hdfs://127.0.0.1:1/x")
