"""Access lists: who a client is, and what its identities may do with a node."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pykafka08.broker.zookeeper.codes import ErrorCode, Fault

__all__ = [
    "ADMIN",
    "CREATE",
    "DELETE",
    "OPEN",
    "READ",
    "WRITE",
    "Entry",
    "Identity",
    "check_access",
    "digest",
    "resolve",
]

READ, WRITE, CREATE, DELETE, ADMIN = 1, 2, 4, 8, 16
ALL = 31

Identity = tuple[str, str]
"""Scheme and id: ``("digest", "user:hash")``, ``("ip", "127.0.0.1")``."""


class Entry(NamedTuple):
    permissions: int
    scheme: str
    id: str


OPEN = (Entry(ALL, "world", "anyone"),)


def digest(credential: str) -> str:
    """``user:password`` as it stands in access lists."""
    hashed = hashlib.sha1(credential.encode()).digest()  # noqa: S324 - ZooKeeper's own
    return f"{credential.partition(':')[0]}:{base64.b64encode(hashed).decode()}"


def check_access(acl: Sequence[Entry], permission: int, identities: Iterable[Identity]) -> None:
    held = {("world", "anyone"), *identities}
    if not any(each.permissions & permission and (each.scheme, each.id) in held for each in acl):
        raise Fault(ErrorCode.NO_AUTH)


def resolve(asked: Sequence[Entry], identities: Sequence[Identity]) -> tuple[Entry, ...]:
    """The list that is kept: ``auth`` stands for every identity of the creator that was proved."""
    kept: list[Entry] = []
    for each in asked:
        if each.scheme == "auth":
            proved = [identity for identity in identities if identity[0] != "ip"]
            if not proved:
                raise Fault(ErrorCode.INVALID_ACL)
            kept += [Entry(each.permissions, *identity) for identity in proved]
        elif (
            (each.scheme, each.id) == ("world", "anyone")
            or each.scheme == "ip"
            or (each.scheme in ("digest", "sasl") and (each.scheme == "sasl" or ":" in each.id))
        ):
            kept.append(each)
        else:
            raise Fault(ErrorCode.INVALID_ACL)
    if not kept:
        raise Fault(ErrorCode.INVALID_ACL)
    return tuple(dict.fromkeys(kept))
