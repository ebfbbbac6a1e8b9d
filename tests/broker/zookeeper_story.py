"""One conversation in ZooKeeper's protocol, held over plain sockets with any server; what was answered, comparable.

Its answers from real servers are in ``data/zookeeper-RELEASE.json``; the embedded server must give the same.  Written
against the protocol alone: it shares no line with the embedded server and none with the bridge.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from typing import Any

__all__ = ["tell"]

PATIENCE = 60.0
ROOT = "/story"
WORLD = [(31, "world", "anyone")]
CREATE, DELETE, EXISTS, GET, SET, GET_ACL, SET_ACL, CHILDREN, SYNC, PING, CHILDREN2 = 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12
CHECK, MULTI, CREATE2, AUTH, SET_WATCHES, CLOSE = 13, 14, 15, 100, 101, -11
EPHEMERAL, SEQUENCE = 1, 2
EVENTS = {1: "created", 2: "deleted", 3: "changed", 4: "children"}


def text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return struct.pack(">i", len(data)) + data


def acl(entries: list[tuple[int, str, str]]) -> bytes:
    return struct.pack(">i", len(entries)) + b"".join(
        struct.pack(">i", permissions) + text(scheme) + text(name) for permissions, scheme, name in entries
    )


def creation(path: str, data: bytes = b"", flags: int = 0, entries: list[tuple[int, str, str]] | None = None) -> bytes:
    return text(path) + text(data) + acl(WORLD if entries is None else entries) + struct.pack(">i", flags)


def watched(path: str, watch: bool = False) -> bytes:
    return text(path) + (b"\1" if watch else b"\0")


def versioned(path: str, version: int = -1) -> bytes:
    return text(path) + struct.pack(">i", version)


def writing(path: str, data: bytes, version: int = -1) -> bytes:
    return text(path) + text(data) + struct.pack(">i", version)


def strings(*paths: str) -> bytes:
    return struct.pack(">i", len(paths)) + b"".join(map(text, paths))


def several(*operations: tuple[int, bytes]) -> bytes:
    parts = [struct.pack(">ibi", kind, 0, -1) + body for kind, body in operations]
    return b"".join(parts) + struct.pack(">ibi", -1, 1, -1)


class Answer:
    """Read from the front."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def take(self, layout: str) -> Any:
        size = struct.calcsize(layout)
        values = struct.unpack(layout, self.data[:size])
        self.data = self.data[size:]
        return values[0] if len(values) == 1 else values

    def text(self) -> str:
        size = max(0, self.take(">i"))
        value, self.data = self.data[:size], self.data[size:]
        return value.decode()

    def stat(self) -> dict[str, Any]:
        czxid, mzxid, _, _, version, cversion, aversion, owner, size, children, pzxid = self.take(">qqqqiiiqiiq")
        return {
            "version": version,
            "children's version": cversion,
            "acl's version": aversion,
            "ephemeral": owner != 0,
            "size": size,
            "children": children,
            "written since": mzxid > czxid,
            "children since": pzxid > czxid,
        }


class Client:
    """Says one thing at a time; what it hears in between, events, is kept."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address, timeout=PATIENCE)
        self.xid = 0
        self.events: list[str] = []
        self.session, self.password, self.zxid = 0, bytes(16), 0

    def greet(self, session: int = 0, password: bytes = bytes(16), seen: int = 0) -> str:
        body = struct.pack(">iqiq", 0, seen, 30_000, session) + text(password) + b"\0"
        self.socket.sendall(struct.pack(">i", len(body)) + body)
        try:
            answer = Answer(self.frame())
        except ConnectionError:
            return "closed"
        _, timeout, self.session = answer.take(">iiq")
        self.password = answer.data[4:20]
        kind = "refused" if timeout == 0 else "resumed" if self.session == session else "opened"
        return f"{kind}, {len(answer.data)} bytes"

    def frame(self) -> bytes:
        size = struct.unpack(">i", self._read(4))[0]
        return self._read(size)

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                raise ConnectionError("closed")
            data += part
        return data

    def send(self, kind: int, body: bytes = b"", xid: int | None = None) -> int:
        self.xid += 1
        number = self.xid if xid is None else xid
        frame = struct.pack(">ii", number, kind) + body
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)
        return number

    def ask(self, kind: int, body: bytes = b"", xid: int | None = None) -> tuple[int, Answer]:
        number = self.send(kind, body, xid)
        while True:
            answer = Answer(self.frame())
            got, zxid, error = answer.take(">iqi")
            if got == -1:
                event, _ = answer.take(">ii")
                self.events.append(f"{EVENTS[event]} {answer.text()}")
                continue
            assert got == number, (got, number)
            self.zxid = max(self.zxid, zxid)
            return error, answer

    def told(self) -> list[str]:
        """The events so far; a ping makes sure that those on their way have come."""
        self.ask(PING, xid=-2)
        events, self.events = self.events, []
        return events

    def is_closed(self) -> bool:
        with contextlib.suppress(ConnectionError):
            while True:
                self.frame()
        self.socket.close()
        return True

    def close(self) -> None:
        with contextlib.suppress(OSError, ConnectionError):
            self.ask(CLOSE)
        self.socket.close()


class Story:
    def __init__(self, address: tuple[str, int], release: tuple[int, int]) -> None:
        self.address = address
        self.release = release
        self.lines: list[list[Any]] = []
        self.clients: list[Client] = []
        self.one = self.client()
        self.note("greeting", self.one.greet())
        self.two = self.client()
        self.two.greet()

    def client(self) -> Client:
        client = Client(self.address)
        self.clients.append(client)
        return client

    def close(self) -> None:
        self.one.close()
        self.two.close()
        for client in self.clients:
            client.socket.close()

    def note(self, what: str, *answers: Any) -> None:
        self.lines.append([what, *answers])

    def change(self, what: str, kind: int, body: bytes, client: Client | None = None) -> None:
        error, answer = (client or self.one).ask(kind, body)
        if error:
            self.note(what, error)
        elif kind == CREATE:
            self.note(what, answer.text())
        elif kind == CREATE2:
            self.note(what, answer.text(), answer.stat())
        elif kind in (SET, SET_ACL, EXISTS):
            self.note(what, answer.stat())
        elif kind == GET:
            self.note(what, answer.text(), answer.stat())
        elif kind in (CHILDREN, CHILDREN2):
            names = sorted(answer.text() for _ in range(answer.take(">i")))
            self.note(what, names, *([answer.stat()] if kind == CHILDREN2 else []))
        elif kind == GET_ACL:
            entries = [(answer.take(">i"), answer.text(), answer.text()) for _ in range(answer.take(">i"))]
            self.note(what, [list(each) for each in entries], answer.stat())
        else:
            self.note(what, "ok")
        assert error or not answer.data, what

    def several(self, what: str, *operations: tuple[int, bytes]) -> None:
        error, answer = self.one.ask(MULTI, several(*operations))
        results: list[Any] = [error]
        while not error:
            kind, is_done, code = answer.take(">ibi")
            if is_done:
                break
            if kind == -1:
                results.append([code, answer.take(">i")])
            elif kind in (CREATE, CREATE2):
                results.append([answer.text(), *([answer.stat()] if kind == CREATE2 else [])])
            else:
                results.append(answer.stat() if kind == SET else "ok")
        assert not answer.data
        self.note(what, *results)

    # -- chapters

    def nodes(self) -> None:
        self.change("create", CREATE, creation(ROOT))
        self.change("create again", CREATE, creation(ROOT))
        self.change("create below nothing", CREATE, creation(ROOT + "/a/b"))
        for path in ("story", ROOT + "/", ROOT + "//x", ROOT + "/../x", ROOT + "/.", ROOT + "/n\0n"):
            self.change(f"create {path!r}", CREATE, creation(path))
        self.change("create with data", CREATE, creation(ROOT + "/a", b"one"))
        self.change("read", GET, watched(ROOT + "/a"))
        self.change("write", SET, writing(ROOT + "/a", b"three", 0))
        self.change("write an old version", SET, writing(ROOT + "/a", b"x", 0))
        self.change("write nothing", SET, writing(ROOT + "/none", b"x"))
        self.change("stat", EXISTS, watched(ROOT + "/a"))
        self.change("stat of nothing", EXISTS, watched(ROOT + "/none"))
        self.change("read nothing", GET, watched(ROOT + "/none"))
        self.change("children", CHILDREN, watched(ROOT))
        self.change("children and stat", CHILDREN2, watched(ROOT))
        self.change("children of nothing", CHILDREN, watched(ROOT + "/none"))
        self.change("delete with children", DELETE, versioned(ROOT))
        self.change("delete another version", DELETE, versioned(ROOT + "/a", 7))
        self.change("delete nothing", DELETE, versioned(ROOT + "/none"))
        self.change("delete the root", DELETE, versioned("/"))
        self.change("delete", DELETE, versioned(ROOT + "/a", 1))
        self.change("stat of the parent", EXISTS, watched(ROOT))
        self.note("sync", self.one.ask(SYNC, text(ROOT))[1].text())

    def numbers(self) -> None:
        self.change("a parent", CREATE, creation(ROOT + "/n"))
        self.change("first", CREATE, creation(ROOT + "/n/s-", flags=SEQUENCE))
        self.change("another", CREATE, creation(ROOT + "/n/plain"))
        self.change("third", CREATE, creation(ROOT + "/n/s-", flags=SEQUENCE | EPHEMERAL))
        self.change("delete one", DELETE, versioned(ROOT + "/n/plain"))
        if self.release >= (3, 4):  # 3.3 counts deletions too
            self.change("fourth", CREATE, creation(ROOT + "/n/s-", flags=SEQUENCE))
            self.change("a number alone", CREATE, creation(ROOT + "/n/", flags=SEQUENCE))
            self.change("stat of the parent", EXISTS, watched(ROOT + "/n"))
        self.change("ephemeral", CREATE, creation(ROOT + "/e", b"1", EPHEMERAL))
        self.change("stat of it", EXISTS, watched(ROOT + "/e"))
        self.change("below it", CREATE, creation(ROOT + "/e/x"))

    def watches(self) -> None:
        one, two = self.one, self.two
        for path in ("/w", "/w/data"):
            self.change("create", CREATE, creation(ROOT + path))
        for kind, path in ((GET, "/w/data"), (EXISTS, "/w/data"), (EXISTS, "/w/new"), (CHILDREN, "/w"), (GET, "/w/no")):
            two.ask(kind, watched(ROOT + path, watch=True))
        one.ask(SET, writing(ROOT + "/w/data", b"1"))
        one.ask(SET, writing(ROOT + "/w/data", b"2"))
        one.ask(CREATE, creation(ROOT + "/w/new"))
        one.ask(CREATE, creation(ROOT + "/w/no"))
        self.note("events", two.told())
        for kind in (GET, CHILDREN, EXISTS):
            two.ask(kind, watched(ROOT + "/w/new", watch=True))
        two.ask(CHILDREN, watched(ROOT + "/w", watch=True))
        one.ask(SET_ACL, text(ROOT + "/w/new") + acl(WORLD) + struct.pack(">i", -1))
        self.note("an access list is no event", two.told())
        one.ask(DELETE, versioned(ROOT + "/w/new"))
        self.note("a deletion is told once", two.told())
        two.ask(GET, watched(ROOT + "/w/no", watch=True))
        two.ask(DELETE, versioned(ROOT + "/w/no"))
        self.note("one's own change", two.told())

    def several_at_once(self) -> None:
        base = ROOT + "/m"
        self.change("create", CREATE, creation(base))
        self.several(
            "all",
            (CREATE, creation(base + "/a", b"1")),
            (SET, writing(base + "/a", b"22", 0)),
            (CHECK, versioned(base + "/a", 1)),
            (CREATE, creation(base + "/s-", flags=SEQUENCE)),
            (DELETE, versioned(base + "/a", 1)),
        )
        self.two.ask(CHILDREN, watched(base, watch=True))
        self.several(
            "none",
            (CREATE, creation(base + "/b", b"1")),
            (SET, writing(base, b"x", 9)),
            (DELETE, versioned(base + "/none")),
        )
        self.several("a check", (CHECK, versioned(base, 4)), (CREATE, creation(base + "/c")))
        self.several("nothing")
        self.note("no event", self.two.told())
        self.change("stat", EXISTS, watched(base))
        self.change("next number", CREATE, creation(base + "/s-", flags=SEQUENCE))

    def access(self) -> None:
        base, mine = ROOT + "/acl", [(31, "auth", "")]
        self.change("create", CREATE, creation(base))
        for entries in ([], mine, [(31, "nonsense", "x")], [(31, "digest", "nocolon")]):
            self.change(f"create with {entries}", CREATE, creation(base + "/x", entries=entries))
        error, _ = self.one.ask(AUTH, struct.pack(">i", 0) + text("digest") + text("me:secret"), xid=-4)
        self.note("credentials", error)
        self.change("mine", CREATE, creation(base + "/mine", b"1", entries=mine))
        self.change("its list", GET_ACL, text(base + "/mine"))
        self.change("read", GET, watched(base + "/mine"))
        for what, kind, body in (
            ("read", GET, watched(base + "/mine")),
            ("stat", EXISTS, watched(base + "/mine")),
            ("write", SET, writing(base + "/mine", b"")),
            ("children", CHILDREN, watched(base + "/mine")),
            ("create", CREATE, creation(base + "/mine/x")),
            ("list", SET_ACL, text(base + "/mine") + acl(WORLD) + struct.pack(">i", -1)),
        ):
            self.change(f"another's {what}", kind, body, self.two)
        only_reading = [(1, "world", "anyone"), *mine]
        self.change("a list", SET_ACL, text(base + "/mine") + acl(only_reading) + struct.pack(">i", 0))
        self.change("its list", GET_ACL, text(base + "/mine"))
        self.change("another's read", GET, watched(base + "/mine"), self.two)
        self.change("below", CREATE, creation(base + "/mine/x"))
        self.change("another's delete", DELETE, versioned(base + "/mine/x"), self.two)
        self.change("an old list", SET_ACL, text(base + "/mine") + acl(WORLD) + struct.pack(">i", 0))
        stranger = self.client()
        stranger.greet()
        error, _ = stranger.ask(AUTH, struct.pack(">i", 0) + text("nonsense") + text("x"), xid=-4)
        self.note("credentials that nobody knows", error, stranger.is_closed())

    def sessions(self) -> None:
        base = ROOT + "/life"
        self.change("create", CREATE, creation(base))
        guest = self.client()
        guest.greet()
        self.change("ephemeral", CREATE, creation(base + "/guest", b"1", EPHEMERAL), guest)
        self.two.ask(GET, watched(base + "/guest", watch=True))
        guest.socket.close()
        thief = self.client()
        self.note("a wrong password", thief.greet(guest.session, b"x" * 16), thief.is_closed())
        again = self.client()
        self.note("taken up", again.greet(guest.session, guest.password, guest.zxid))
        self.change("it is there", GET, watched(base + "/guest"), again)
        moved = self.client()
        self.note("from elsewhere", moved.greet(guest.session, guest.password), again.is_closed())
        future = self.client()
        self.note("who has seen the future", future.greet(seen=2**62), future.is_closed())
        error, _ = moved.ask(CLOSE)
        self.note("end", error, moved.is_closed())
        self.note("its node goes", self.two.told())
        late = self.client()
        self.note("over", late.greet(guest.session, guest.password))
        self.change("no more", EXISTS, watched(base + "/guest"))

    def missed(self) -> None:
        """A client that sets its watches again hears what it has missed."""
        base = ROOT + "/again"
        for path in ("", "/same", "/changed", "/gone"):
            self.change("create", CREATE, creation(base + path))
        seen = self.one.zxid
        self.one.ask(SET, writing(base + "/changed", b"1"))
        self.one.ask(DELETE, versioned(base + "/gone"))
        self.one.ask(CREATE, creation(base + "/new"))
        body = struct.pack(">q", seen)
        body += strings(base + "/same", base + "/changed", base + "/gone") + strings(base + "/new", base + "/never")
        body += strings(base, base + "/same", base + "/gone")
        self.note("set again", self.two.ask(SET_WATCHES, body, xid=-8)[0])
        self.note("missed", sorted(self.two.told()))
        self.one.ask(SET, writing(base + "/same", b"1"))
        self.one.ask(CREATE, creation(base + "/never"))
        self.note("set", self.two.told())

    def manners(self) -> None:
        if self.release >= (3, 4):
            pioneer = self.client()
            pioneer.greet()
            self.note("an unknown request", pioneer.ask(77)[0], pioneer.is_closed())
        if self.release >= (3, 5):
            self.change("create and stat", CREATE2, creation(ROOT + "/two", b"12"))
            self.several("create and stat among others", (CREATE2, creation(ROOT + "/three", b"123")))
        for what, data in (("too large", struct.pack(">i", 2**30)), ("negative", struct.pack(">i", -5))):
            rude = self.client()
            rude.greet()
            rude.socket.sendall(data)
            self.note(what, rude.is_closed())
        asker = self.client()
        asker.socket.sendall(b"srvr")
        said = b""
        while part := asker.socket.recv(4096):
            said += part
        asker.socket.close()
        self.note("srvr", [line.split(b":")[0].decode() for line in said.splitlines()])

    def clear(self) -> None:
        """What is left of an earlier telling; as its owner."""
        self.one.ask(AUTH, struct.pack(">i", 0) + text("digest") + text("me:secret"), xid=-4)
        self._remove(ROOT)

    def _remove(self, path: str) -> None:
        error, answer = self.one.ask(CHILDREN, watched(path))
        for name in [] if error else [answer.text() for _ in range(answer.take(">i"))]:
            self._remove(f"{path}/{name}")
        self.one.ask(DELETE, versioned(path))


def tell(address: str, release: tuple[int, int]) -> list[list[Any]]:
    """The answers, in order.  ``release``: of the server, for what only later ones have."""
    host, _, port = address.rpartition(":")
    sweeper = Story((host, int(port)), release)
    sweeper.clear()
    sweeper.close()
    story = Story((host, int(port)), release)
    try:
        story.nodes()
        story.numbers()
        story.watches()
        if release >= (3, 4):
            story.several_at_once()
        story.sessions()
        story.missed()
        story.manners()
        story.access()
        story.clear()
    finally:
        story.close()
    return story.lines
