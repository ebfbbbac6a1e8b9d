"""Changes that lose nobody else's: what was read and edited is written back only if it is still the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pykafka08.errors import AdminRefusedError, BadVersionError, NodeExistsError, NoNodeError
from pykafka08.zookeeper.bridge import ZooKeeper
from pykafka08.zookeeper.nodes.document import Node

__all__ = ["change"]

N = TypeVar("N", bound=Node)

ATTEMPTS = 20


async def change(
    zk: ZooKeeper, kind: type[N], path: str, edit: Callable[[N | None], N | None]
) -> tuple[N | None, N | None]:
    """Let ``edit`` make what is there (None: nothing) into what shall be there (None: nothing); both.

    ``edit`` is called again if somebody else was quicker, and may raise to change nothing.
    """
    for _ in range(ATTEMPTS):
        try:
            data, stat = await zk.read(path)
        except NoNodeError:
            after = edit(None)
            if after is None:
                return None, None
            try:
                await zk.create(path, after.encode(), make_parents=True)
            except NodeExistsError:
                continue
            return None, after
        before = kind.decode(data, path)
        after = edit(before)
        try:
            if after is None:
                await zk.delete(path, version=stat.version)
            elif after != before:
                await zk.write(path, after.encode(), version=stat.version)
        except (BadVersionError, NoNodeError):
            continue
        return before, after
    raise AdminRefusedError(
        f"others changed the node {ATTEMPTS} times while it was to be changed; try again", path=path
    )
