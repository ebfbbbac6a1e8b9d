"""The ZooKeeper side of old clusters: layout, bridge to kazoo, consumers, administration, the way out.

From the inside out: ``nodes`` and ``paths`` (what lies where, pure), ``bridge`` (a session on any event loop),
``reading`` and ``inspection`` (a cluster seen through its nodes), ``admin``, ``legacy_consumer``, ``migration``.
docs/zookeeper.md is the guide.

Names are imported on first use, so that kazoo is loaded by those who need it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOME = {
    "Acl": "nodes.acls",
    "LegacyConsumer": "legacy_consumer",
    "Move": "admin.partitions",
    "ZooKeeper": "bridge",
    "ZooKeeperAdmin": "admin.admin",
    "ZooKeeperConfig": "settings",
    "entity_path": "admin.configs",
}

__all__ = [
    "Acl",
    "LegacyConsumer",
    "Move",
    "ZooKeeper",
    "ZooKeeperAdmin",
    "ZooKeeperConfig",
    "entity_path",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'pykafka08.zookeeper' has no attribute {name!r}")
    value = getattr(import_module(f"pykafka08.zookeeper.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})


if TYPE_CHECKING:
    from pykafka08.zookeeper.admin.admin import ZooKeeperAdmin
    from pykafka08.zookeeper.admin.configs import entity_path
    from pykafka08.zookeeper.admin.partitions import Move
    from pykafka08.zookeeper.bridge import ZooKeeper
    from pykafka08.zookeeper.legacy_consumer import LegacyConsumer
    from pykafka08.zookeeper.nodes.acls import Acl
    from pykafka08.zookeeper.settings import ZooKeeperConfig
