"""What each operation does: one function each, from the request's body to the answer's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from pykafka08.broker.zookeeper.access import ADMIN, READ, Entry, Identity, check_access
from pykafka08.broker.zookeeper.codes import ErrorCode, EventType, Fault, Operation
from pykafka08.broker.zookeeper.jute import Reader, Writer
from pykafka08.broker.zookeeper.service import Service
from pykafka08.broker.zookeeper.tree import MultiFault
from pykafka08.broker.zookeeper.watches import Watcher

__all__ = ["CHANGES", "Client", "serve"]

SINCE_ACL_IS_GUARDED = (3, 5)
SINCE_STAT_IS_GUARDED = (3, 7)
SINCE_CREATED = (3, 4)
"""3.3 tells a node that was made while a client was away as changed."""
MULTI_END = -1
MULTI_ERROR = -1


class Client(Watcher, Protocol):
    """Who asks."""

    @property
    def session_id(self) -> int: ...

    @property
    def identities(self) -> list[Identity]: ...


Serve = Callable[[Service, Client, Reader, Writer], None]
Step = Callable[[], Callable[[Writer], object]]
"""Part of a change; what it gives writes its answer once all of it is done."""


def _acl(reader: Reader) -> list[Entry]:
    return reader.vector(lambda: Entry(reader.int32(), reader.string(), reader.string()))


# -- changes


def _nothing(_: Writer) -> None:
    """Deletions and checks have no answer of their own."""


def _create(service: Service, client: Client, reader: Reader, *, with_stat: bool = False) -> Step:
    path, data, acl, flags = reader.string(), reader.buffer() or b"", _acl(reader), reader.int32()

    def step() -> Callable[[Writer], object]:
        made = service.tree.create(path, data, acl, flags, client.session_id, client.identities)
        stat = service.tree.nodes[made].stat if with_stat else b""
        return lambda writer: writer.string(made).raw(stat)

    return step


def _create2(service: Service, client: Client, reader: Reader) -> Step:
    return _create(service, client, reader, with_stat=True)


def _delete(service: Service, client: Client, reader: Reader) -> Step:
    path, version = reader.string(), reader.int32()

    def step() -> Callable[[Writer], object]:
        service.tree.delete(path, version, client.identities)
        return _nothing

    return step


def _set_data(service: Service, client: Client, reader: Reader) -> Step:
    path, data, version = reader.string(), reader.buffer() or b"", reader.int32()

    def step() -> Callable[[Writer], object]:
        stat = service.tree.write(path, data, version, client.identities).stat
        return lambda writer: writer.raw(stat)

    return step


def _set_acl(service: Service, client: Client, reader: Reader) -> Step:
    path, acl, version = reader.string(), _acl(reader), reader.int32()

    def step() -> Callable[[Writer], object]:
        stat = service.tree.set_acl(path, acl, version, client.identities).stat
        return lambda writer: writer.raw(stat)

    return step


def _check(service: Service, _: Client, reader: Reader) -> Step:
    path, version = reader.string(), reader.int32()

    def step() -> Callable[[Writer], object]:
        service.tree.check(path, version)
        return _nothing

    return step


CHANGES: dict[int, Callable[[Service, Client, Reader], Step]] = {
    Operation.CREATE: _create,
    Operation.CREATE2: _create2,
    Operation.DELETE: _delete,
    Operation.SET_DATA: _set_data,
    Operation.SET_ACL: _set_acl,
}
_IN_MULTI = {**CHANGES, Operation.CHECK: _check}


def _multi(service: Service, client: Client, reader: Reader, writer: Writer) -> None:
    kinds, steps = [], []
    while True:
        kind, is_done, _ = reader.int32(), reader.boolean(), reader.int32()
        if is_done:
            break
        if kind not in _IN_MULTI:
            raise Fault(ErrorCode.UNIMPLEMENTED)
        kinds.append(kind)
        steps.append(_IN_MULTI[kind](service, client, reader))
    try:
        results = service.stamp().change_all(steps)
    except MultiFault as fault:
        for index in range(len(steps)):
            code = ErrorCode.OK if index < fault.index else ErrorCode.RUNTIME_INCONSISTENCY
            code = fault.code if index == fault.index else code
            writer.int32(MULTI_ERROR).boolean(False).int32(code).int32(code)
    else:
        for kind, write in zip(kinds, results, strict=True):
            writer.int32(kind).boolean(False).int32(ErrorCode.OK)
            write(writer)
    writer.int32(MULTI_END).boolean(True).int32(-1)


# -- reads


def _exists(service: Service, client: Client, reader: Reader, writer: Writer) -> None:
    path, watch = reader.string(), reader.boolean()
    if watch:
        service.watches.add(path, client)
    node = service.tree.find(path)
    if service.numbers >= SINCE_STAT_IS_GUARDED:
        check_access(node.acl, READ, client.identities)
    writer.raw(node.stat)


def _get_data(service: Service, client: Client, reader: Reader, writer: Writer) -> None:
    path, watch = reader.string(), reader.boolean()
    node = service.tree.find(path)
    check_access(node.acl, READ, client.identities)
    if watch:
        service.watches.add(path, client)
    writer.buffer(node.data).raw(node.stat)


def _get_children(service: Service, client: Client, reader: Reader, writer: Writer) -> None:
    path, watch = reader.string(), reader.boolean()
    node = service.tree.find(path)
    check_access(node.acl, READ, client.identities)
    if watch:
        service.watches.add_of_children(path, client)
    writer.strings(sorted(node.children))


def _get_children2(service: Service, client: Client, reader: Reader, writer: Writer) -> None:
    at = reader.string(), reader.boolean()
    _get_children(service, client, Reader(bytes(Writer().string(at[0]).boolean(at[1]))), writer)
    writer.raw(service.tree.find(at[0]).stat)


def _get_acl(service: Service, client: Client, reader: Reader, writer: Writer) -> None:
    node = service.tree.find(reader.string())
    if service.numbers >= SINCE_ACL_IS_GUARDED:
        check_access(node.acl, READ | ADMIN, client.identities)
    writer.int32(len(node.acl))
    for each in node.acl:
        writer.int32(each.permissions).string(each.scheme).string(each.id)
    writer.raw(node.stat)


def _sync(_: Service, __: Client, reader: Reader, writer: Writer) -> None:
    writer.string(reader.string())


def _set_watches(service: Service, client: Client, reader: Reader, _: Writer) -> None:
    """A client that is back sets its watches again; what they have missed is told at once."""
    seen = reader.int64()
    nodes = service.tree.nodes
    for path in reader.vector(reader.string):
        if path not in nodes:
            client.notify(EventType.DELETED, path)
        elif nodes[path].mzxid > seen:
            client.notify(EventType.CHANGED, path)
        else:
            service.watches.add(path, client)
    for path in reader.vector(reader.string):
        if path in nodes:
            client.notify(EventType.CREATED if service.numbers >= SINCE_CREATED else EventType.CHANGED, path)
        else:
            service.watches.add(path, client)
    for path in reader.vector(reader.string):
        if path not in nodes:
            client.notify(EventType.DELETED, path)
        elif nodes[path].pzxid > seen:
            client.notify(EventType.CHILDREN, path)
        else:
            service.watches.add_of_children(path, client)


_OTHERS: dict[int, Serve] = {
    Operation.EXISTS: _exists,
    Operation.GET_DATA: _get_data,
    Operation.GET_CHILDREN: _get_children,
    Operation.GET_CHILDREN2: _get_children2,
    Operation.GET_ACL: _get_acl,
    Operation.SYNC: _sync,
    Operation.SET_WATCHES: _set_watches,
    Operation.MULTI: _multi,
    Operation.PING: lambda *_: None,
}


def serve(service: Service, client: Client, kind: int, reader: Reader, writer: Writer) -> None:
    """Carry a request out; Fault if it is refused."""
    if kind in CHANGES:
        service.stamp().change(CHANGES[kind](service, client, reader))(writer)
    elif kind in _OTHERS:
        _OTHERS[kind](service, client, reader, writer)
    else:
        raise Fault(ErrorCode.UNIMPLEMENTED)
