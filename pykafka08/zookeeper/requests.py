"""The calls of the bridge as kazoo takes them, and what kazoo answers as our values and errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kazoo import exceptions as kazoo_errors
from kazoo.security import ACL, Id

from pykafka08.errors import (
    BadVersionError,
    ConfigError,
    KafkaError,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    SessionExpiredError,
    UnsupportedVersionError,
    ZooKeeperAuthError,
    ZooKeeperError,
)
from pykafka08.zookeeper.operations import (
    OPEN,
    Access,
    Acl,
    Create,
    Delete,
    Node,
    Operation,
    Permission,
    Stat,
    Write,
)
from pykafka08.zookeeper.settings import path_fault

__all__ = [
    "Request",
    "acl",
    "children",
    "create",
    "delete",
    "error_of",
    "exists",
    "full_path",
    "is_connection_loss",
    "is_sasl_failure",
    "is_servers_answer",
    "multi",
    "read",
    "sync",
    "write",
]

MOST_DATA_BYTES = 1024 * 1024 - 512
"""ZooKeeper's ``jute.maxbuffer`` is 1 MiB, and it cuts the connection of who sends more."""


@dataclass(frozen=True)
class Request:
    """``start(client, watcher)`` makes the call; ``value`` turns its result into ours."""

    start: Callable[[Any, Any], Any]
    value: Callable[[Any], Any]
    is_change: bool = False
    watches: str | None = None
    """The full path that a watch is set on if the call is answered."""
    watches_children: bool = False


def full_path(chroot: str, path: str) -> str:
    """ConfigError for what is no path."""
    fault = path_fault(path)
    if fault:
        raise ConfigError(f"{path!r} is no path of a ZooKeeper node: {fault}")
    return (chroot + path).rstrip("/") or "/"


def _stat(stat: Any) -> Stat:
    return Stat(stat.version, stat.ephemeralOwner, stat.czxid, stat.mzxid, stat.numChildren, stat.ctime, stat.mtime)


def _maybe_stat(stat: Any) -> Stat | None:
    return None if stat is None else _stat(stat)


def _node(result: Any) -> Node:
    data, stat = result
    return Node(data or b"", _stat(stat))


def _acl(result: Any) -> Acl:
    entries, _ = result
    return tuple(Access(each.id.scheme, each.id.id or "", Permission(each.perms)) for each in entries)


def read(path: str, *, watch: bool = False) -> Request:
    return Request(
        lambda client, watcher: client.get_async(path, watch=watcher if watch else None),
        _node,
        watches=path if watch else None,
    )


def exists(path: str, *, watch: bool = False) -> Request:
    return Request(
        lambda client, watcher: client.exists_async(path, watch=watcher if watch else None),
        _maybe_stat,
        watches=path if watch else None,
    )


def children(path: str, *, watch: bool = False) -> Request:
    return Request(
        lambda client, watcher: client.get_children_async(path, watch=watcher if watch else None),
        sorted,
        watches=path if watch else None,
        watches_children=True,
    )


def acl(path: str) -> Request:
    return Request(lambda client, _: client.get_acls_async(path), _acl)


def sync(path: str) -> Request:
    return Request(lambda client, _: client.sync_async(path), lambda _: None)


def _check_data(path: str, data: bytes) -> None:
    if not isinstance(data, bytes):
        raise ConfigError(f"the data for {path} is {type(data).__name__}, not bytes")
    if len(data) > MOST_DATA_BYTES:
        raise ConfigError(f"the data for {path} has {len(data)} bytes; ZooKeeper takes {MOST_DATA_BYTES}")


def _for_kazoo(entries: Acl | None) -> list[Any]:
    return [ACL(int(each.permissions), Id(each.scheme, each.identity)) for each in (entries or OPEN)]


def create(path: str, data: bytes, *, ephemeral: bool, sequence: bool, acl: Acl | None) -> Request:
    _check_data(path, data)
    return Request(
        lambda client, _: client.create_async(path, data, acl=_for_kazoo(acl), ephemeral=ephemeral, sequence=sequence),
        str,
        is_change=True,
    )


def write(path: str, data: bytes, version: int) -> Request:
    _check_data(path, data)
    return Request(lambda client, _: client.set_async(path, data, version=version), _stat, is_change=True)


def delete(path: str, version: int) -> Request:
    return Request(lambda client, _: client.delete_async(path, version=version), lambda _: None, is_change=True)


def multi(operations: Sequence[Operation], full: Callable[[str], str], default_acl: Acl | None) -> Request:
    """The error of one that fails has its path."""
    paths = [each.path for each in operations]
    full_paths = [full(path) for path in paths]
    for each in operations:
        if isinstance(each, Create | Write):
            _check_data(each.path, each.data)

    def start(client: Any, _: Any) -> Any:
        transaction = client.transaction()
        for path, each in zip(full_paths, operations, strict=True):
            if isinstance(each, Create):
                entries = _for_kazoo(each.acl if each.acl is not None else default_acl)
                transaction.create(path, each.data, acl=entries, ephemeral=each.ephemeral, sequence=each.sequence)
            elif isinstance(each, Write):
                transaction.set_data(path, each.data, each.version)
            elif isinstance(each, Delete):
                transaction.delete(path, each.version)
            else:
                transaction.check(path, each.version)
        return transaction.commit_async()

    def value(results: list[Any]) -> list[str | Stat | None]:
        for path, result in zip(paths, results, strict=False):
            # Those before and after the one that failed have errors of their own, which say only that.
            if isinstance(result, Exception) and not isinstance(
                result, kazoo_errors.RolledBackError | kazoo_errors.RuntimeInconsistency
            ):
                raise error_of(result, path)
        return [result if isinstance(result, str) else None if result is True else _stat(result) for result in results]

    return Request(start, value, is_change=True)


_TEXTS: dict[type[Exception], tuple[type[ZooKeeperError], str]] = {
    kazoo_errors.NoNodeError: (NoNodeError, "there is no such node in ZooKeeper, or its parent is missing"),
    kazoo_errors.NodeExistsError: (NodeExistsError, "the node exists in ZooKeeper already"),
    kazoo_errors.BadVersionError: (BadVersionError, "somebody else has written the node since it was read"),
    kazoo_errors.NotEmptyError: (NotEmptyError, "the node has children and cannot be deleted"),
    kazoo_errors.NoAuthError: (NoAuthError, "the node's access list does not let this client do that"),
    kazoo_errors.InvalidACLError: (NoAuthError, "the access list is not one that ZooKeeper takes from this client"),
    kazoo_errors.NoChildrenForEphemeralsError: (ZooKeeperError, "the parent is ephemeral and takes no children"),
    kazoo_errors.AuthFailedError: (ZooKeeperAuthError, "ZooKeeper refused the credentials"),
    kazoo_errors.SessionClosedRequireSaslError: (
        ZooKeeperAuthError,
        "this ZooKeeper takes nobody without SASL, or refused the credentials",
    ),
    kazoo_errors.SessionExpiredError: (SessionExpiredError, "the session is over"),
}


def is_connection_loss(error: Exception) -> bool:
    """RuntimeError: kazoo has got an answer to something else, and gives the connection up."""
    return isinstance(error, kazoo_errors.ConnectionLoss | RuntimeError)


def is_sasl_failure(error: BaseException) -> bool:
    return isinstance(error, kazoo_errors.SASLException | kazoo_errors.AuthFailedError)


def is_servers_answer(error: Exception | None) -> bool:
    """A server has heard the request: it answered it, or refused it."""
    return error is None or (
        isinstance(error, kazoo_errors.ZookeeperError)
        and not isinstance(
            error,
            kazoo_errors.ConnectionLoss | kazoo_errors.SessionExpiredError | kazoo_errors.AuthFailedError,
        )
    )


def error_of(error: Exception, path: str | None) -> KafkaError:
    """Ours for one of kazoo's."""
    if isinstance(error, KafkaError):
        return error
    if isinstance(error, kazoo_errors.UnimplementedError):
        return UnsupportedVersionError("this release of ZooKeeper does not know the call; multi() needs 3.4")
    kind, text = _TEXTS.get(type(error), (None, ""))
    if kind is None:
        if isinstance(error, kazoo_errors.SessionExpiredError):  # and ConnectionClosedError, which is one
            return SessionExpiredError("the session is over", path=path)
        return ZooKeeperError(f"ZooKeeper refused the call: {error!r}", path=path)
    return kind(text, path=path)
