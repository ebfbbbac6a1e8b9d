"""The nodes: pure.  Every change has a number (zxid), refused ones too; what changed is told after it is complete."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from pykafka08.broker.zookeeper.access import (
    ADMIN,
    CREATE,
    DELETE,
    OPEN,
    WRITE,
    Entry,
    Identity,
    check_access,
    resolve,
)
from pykafka08.broker.zookeeper.codes import ErrorCode, EventType, Fault

__all__ = ["EPHEMERAL", "SEQUENCE", "MultiFault", "Tree", "ZNode"]

T = TypeVar("T")

EPHEMERAL, SEQUENCE = 1, 2
ANY_VERSION = -1
NOBODY: tuple[Identity, ...] = ()
_STAT = struct.Struct(">qqqqiiiqiiq")


@dataclass
class ZNode:
    data: bytes
    acl: tuple[Entry, ...]
    owner: int = 0
    """The session of an ephemeral node."""
    czxid: int = 0
    mzxid: int = 0
    pzxid: int = 0
    created_ms: int = 0
    modified_ms: int = 0
    version: int = 0
    creations: int = 0
    """Of children, ever: what the next sequence number is."""
    acl_version: int = 0
    children: set[str] = field(default_factory=set)

    @property
    def stat(self) -> bytes:
        """As answers carry it; the children's version counts creations and deletions."""
        return _STAT.pack(
            self.czxid,
            self.mzxid,
            self.created_ms,
            self.modified_ms,
            self.version,
            2 * self.creations - len(self.children),
            self.acl_version,
            self.owner,
            len(self.data),
            len(self.children),
            self.pzxid,
        )


class MultiFault(Fault):
    """One of several operations was refused, and none was done."""

    def __init__(self, index: int, code: ErrorCode) -> None:
        super().__init__(code)
        self.index = index


class Tree:
    """``changed`` hears of each change after it is complete, in order."""

    def __init__(self, changed: Callable[[EventType, str], None]) -> None:
        self._changed = changed
        self.nodes: dict[str, ZNode] = {path: ZNode(b"", OPEN) for path in ("/", "/zookeeper", "/zookeeper/quota")}
        self.nodes["/"].children.add("zookeeper")
        self.nodes["/zookeeper"].children.add("quota")
        self.zxid = 0
        self.now_ms = 0
        """The wall clock, set by whoever asks for a change."""
        self._ephemerals: dict[int, set[str]] = {}
        self._undo: list[Callable[[], object]] = []
        self._news: list[tuple[EventType, str]] = []

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self.nodes))

    def find(self, path: str) -> ZNode:
        _check_path(path)
        node = self.nodes.get(path)
        if node is None:
            raise Fault(ErrorCode.NO_NODE)
        return node

    def ephemerals(self, session_id: int) -> list[str]:
        return sorted(self._ephemerals.get(session_id, ()))

    # -- changes

    def change(self, step: Callable[[], T]) -> T:
        """One operation as one change."""
        try:
            return self.change_all([step])[0]
        except MultiFault as fault:
            raise Fault(fault.code) from None

    def change_all(self, steps: Sequence[Callable[[], T]]) -> list[T]:
        """All or none; MultiFault."""
        self.zxid += 1
        self._undo, self._news = [], []
        results: list[T] = []
        try:
            for step in steps:
                results.append(step())  # noqa: PERF401 - how many were done matters if one is refused
        except Fault as fault:
            for undo in reversed(self._undo):
                undo()
            raise MultiFault(len(results), fault.code) from None
        news, self._news = self._news, []
        for kind, path in news:
            self._changed(kind, path)
        return results

    def create(
        self,
        path: str,
        data: bytes,
        acl: Sequence[Entry],
        flags: int,
        session_id: int,
        identities: Sequence[Identity] = NOBODY,
    ) -> str:
        """Inside of :meth:`change`; the path made."""
        if not path.startswith("/") or "\0" in path:
            raise Fault(ErrorCode.BAD_ARGUMENTS)
        kept = resolve(acl, identities)
        above = path.rpartition("/")[0] or "/"
        parent = self.nodes.get(above)
        if parent is None:
            raise Fault(ErrorCode.NO_NODE)
        check_access(parent.acl, CREATE, identities)
        if flags & SEQUENCE:
            path += f"{parent.creations:010d}"
        _check_path(path)
        if path in self.nodes:
            raise Fault(ErrorCode.NODE_EXISTS)
        if parent.owner:
            raise Fault(ErrorCode.NO_CHILDREN_FOR_EPHEMERALS)
        owner = session_id if flags & EPHEMERAL else 0
        node = ZNode(data, kept, owner, self.zxid, self.zxid, self.zxid, self.now_ms, self.now_ms)
        self._undo.append(_restore(parent, creations=parent.creations, pzxid=parent.pzxid))
        parent.creations += 1
        parent.pzxid = self.zxid
        self._link(path, node)
        self._undo.append(lambda: self._unlink(path))
        self._news += [(EventType.CREATED, path), (EventType.CHILDREN, above)]
        return path

    def delete(self, path: str, version: int, identities: Sequence[Identity] = NOBODY) -> None:
        if path == "/" or path.startswith("/zookeeper"):
            raise Fault(ErrorCode.BAD_ARGUMENTS)
        above = path.rpartition("/")[0] or "/"
        node = self.find(path)
        check_access(self.nodes[above].acl, DELETE, identities)
        _check_version(node.version, version)
        if node.children:
            raise Fault(ErrorCode.NOT_EMPTY)
        self._remove(path)

    def write(self, path: str, data: bytes, version: int, identities: Sequence[Identity] = NOBODY) -> ZNode:
        node = self.find(path)
        check_access(node.acl, WRITE, identities)
        _check_version(node.version, version)
        self._undo.append(
            _restore(node, data=node.data, version=node.version, mzxid=node.mzxid, modified_ms=node.modified_ms)
        )
        node.data, node.version, node.mzxid, node.modified_ms = data, node.version + 1, self.zxid, self.now_ms
        self._news.append((EventType.CHANGED, path))
        return node

    def check(self, path: str, version: int) -> None:
        _check_version(self.find(path).version, version)

    def set_acl(self, path: str, acl: Sequence[Entry], version: int, identities: Sequence[Identity]) -> ZNode:
        node = self.find(path)
        check_access(node.acl, ADMIN, identities)
        _check_version(node.acl_version, version)
        node.acl, node.acl_version = resolve(acl, identities), node.acl_version + 1
        return node

    def drop_session(self, session_id: int) -> None:
        """Its ephemeral nodes go."""
        for path in self.ephemerals(session_id):
            self._remove(path)

    def _remove(self, path: str) -> None:
        above = path.rpartition("/")[0] or "/"
        node, parent = self.nodes[path], self.nodes[above]
        self._undo.append(_restore(parent, pzxid=parent.pzxid))
        parent.pzxid = self.zxid
        self._unlink(path)
        self._undo.append(lambda: self._link(path, node))
        self._news += [(EventType.DELETED, path), (EventType.CHILDREN, above)]

    def _link(self, path: str, node: ZNode) -> None:
        above, _, name = path.rpartition("/")
        self.nodes[path] = node
        self.nodes[above or "/"].children.add(name)
        if node.owner:
            self._ephemerals.setdefault(node.owner, set()).add(path)

    def _unlink(self, path: str) -> None:
        above, _, name = path.rpartition("/")
        node = self.nodes.pop(path)
        self.nodes[above or "/"].children.discard(name)
        if node.owner:
            self._ephemerals[node.owner].discard(path)


def _restore(node: ZNode, **values: object) -> Callable[[], None]:
    def restore() -> None:
        for name, value in values.items():
            setattr(node, name, value)

    return restore


def _check_version(version: int, asked: int) -> None:
    if asked not in (ANY_VERSION, version):
        raise Fault(ErrorCode.BAD_VERSION)


def _check_path(path: str) -> None:
    parts = path.split("/")[1:]
    is_root = path == "/"
    if not path.startswith("/") or (not is_root and ("" in parts or "." in parts or ".." in parts)) or "\0" in path:
        raise Fault(ErrorCode.BAD_ARGUMENTS)
