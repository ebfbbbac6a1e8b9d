"""Four letters instead of a request: the server says how it is, and closes."""

from __future__ import annotations

from collections.abc import Callable

from pykafka08.broker.zookeeper.service import Service

__all__ = ["WORDS", "answer_word"]

SINCE_COUNT = (3, 4)
SINCE_WHITELIST = (3, 5)
DEFAULT_WHITELIST = frozenset({"srvr"})


def _summary(service: Service) -> str:
    connections = f"Connections: {len(service.connections)}\n" if service.numbers >= SINCE_COUNT else ""
    return (
        f"Zookeeper version: {service.release}-pykafka08, built on 01/01/2015 00:00 GMT\n"
        "{clients}Latency min/avg/max: 0/0/0\n"
        f"Received: {service.requests_served}\nSent: {service.requests_served}\n"
        f"{connections}Outstanding: 0\n"
        f"Zxid: {service.tree.zxid:#x}\nMode: standalone\nNode count: {len(service.tree.nodes)}\n"
    )


def _srvr(service: Service) -> str:
    return _summary(service).replace("{clients}", "")


def _stat(service: Service) -> str:
    clients = "".join(f" /{each.peer}[1](queued=0,recved=1,sent=1)\n" for each in service.connections)
    return _summary(service).replace("{clients}", f"Clients:\n{clients}\n")


def _mntr(service: Service) -> str:
    facts: dict[str, object] = {
        "version": f"{service.release}-pykafka08",
        "num_alive_connections": len(service.connections),
        "server_state": "standalone",
        "znode_count": len(service.tree.nodes),
        "watch_count": len(service.watches),
        "ephemerals_count": sum(1 for node in service.tree.nodes.values() if node.owner),
    }
    return "".join(f"zk_{name}\t{value}\n" for name, value in facts.items())


def _dump(service: Service) -> str:
    lines = ["SessionTracker dump:", f"Sessions ({len(service.sessions)}):"]
    lines += [f"{each.id:#x}" for each in service.sessions]
    owners = [each.id for each in service.sessions if service.tree.ephemerals(each.id)]
    lines += ["ephemeral nodes dump:", f"Sessions with Ephemerals ({len(owners)}):"]
    for session_id in owners:
        lines += [f"{session_id:#x}:", *(f"\t{path}" for path in service.tree.ephemerals(session_id))]
    return "\n".join(lines) + "\n"


def _envi(service: Service) -> str:
    return f"Environment:\nzookeeper.version={service.release}-pykafka08, built on 01/01/2015 00:00 GMT\n"


WORDS: dict[bytes, Callable[[Service], str]] = {
    b"ruok": lambda _: "imok",
    b"srvr": _srvr,
    b"stat": _stat,
    b"mntr": _mntr,
    b"dump": _dump,
    b"envi": _envi,
    b"isro": lambda _: "rw",
}


def answer_word(service: Service, word: bytes) -> bytes:
    allowed = service.allowed_words
    if allowed is None:
        allowed = DEFAULT_WHITELIST if service.numbers >= SINCE_WHITELIST else frozenset(map(bytes.decode, WORDS))
    if word.decode() not in allowed:
        return f"{word.decode()} is not executed because it is not in the whitelist.\n".encode()
    return WORDS[word](service).encode()
