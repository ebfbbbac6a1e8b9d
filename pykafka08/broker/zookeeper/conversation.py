"""One client's connection to the embedded ZooKeeper: bytes in, bytes out, no sockets.

A connection begins with a greeting, which opens a session or takes one up again, or with a four-letter word.
"""

from __future__ import annotations

from pykafka08.broker.session import Output
from pykafka08.broker.zookeeper import access
from pykafka08.broker.zookeeper.codes import ErrorCode, EventType, Fault, Operation
from pykafka08.broker.zookeeper.four_letters import WORDS, answer_word
from pykafka08.broker.zookeeper.jute import Reader, Writer
from pykafka08.broker.zookeeper.requests import serve
from pykafka08.broker.zookeeper.sasl import DigestMd5
from pykafka08.broker.zookeeper.service import Service

__all__ = ["Conversation"]

READ_BYTES = 65_536
MOST_FRAME_BYTES = 1024 * 1024
"""``jute.maxbuffer``: who sends more is disconnected."""
EVENT_XID = -1
CONNECTED_STATE = 3
GREETING_BYTES_BEFORE_READ_ONLY = 44
NO_PASSWORD = bytes(16)
KNOWN = frozenset(Operation)


class Conversation:
    def __init__(self, service: Service, peer: str, output: Output) -> None:
        self._service = service
        self._output = output
        self.peer = peer
        self.session_id = 0
        self.identities: list[access.Identity] = [("ip", peer)]
        self._room = bytearray(READ_BYTES)
        self._pending = bytearray()
        self._held: list[bytes] = []
        self._sasl: DigestMd5 | None = None
        self._is_greeted = False
        self._is_over = False
        service.connections[self] = None

    # -- what the listener calls

    def next_buffer(self, _: int) -> memoryview:
        return memoryview(self._room)

    def bytes_received(self, size: int) -> None:
        self._pending += self._room[:size]
        self.work()

    def output_filled(self) -> None:
        """Answers are small; what a client does not read waits."""

    def output_drained(self) -> None:
        """See output_filled."""

    def closed(self) -> None:
        self._is_over = True
        self._service.connections.pop(self, None)
        self._service.watches.drop(self)

    # -- what the service calls

    def work(self) -> None:
        """Serve what has come; nothing while the server is paused."""
        while not self._service.is_paused and not self._is_over:
            frame = self._next_frame()
            if frame is None:
                return
            try:
                (self._request if self._is_greeted else self._greeting)(frame)
            except (ValueError, UnicodeDecodeError):
                self.close()

    def close(self) -> None:
        """The client's side sees the end of the connection; its session stays."""
        if not self._is_over:
            self._is_over = True
            self._output.close()
            self.closed()

    def notify(self, kind: EventType, path: str) -> None:
        event = Writer().int32(EVENT_XID).int64(-1).int32(ErrorCode.OK).int32(kind).int32(CONNECTED_STATE).string(path)
        self._send(bytes(event))

    def release(self) -> None:
        """Send what was held back."""
        held, self._held = self._held, []
        for frame in held:
            self._send(frame)

    # -- frames

    def _next_frame(self) -> bytes | None:
        if len(self._pending) < 4:
            return None
        head = bytes(self._pending[:4])
        if not self._is_greeted and head in WORDS:
            self._output.write(answer_word(self._service, head))
            self.close()
            return None
        size = int.from_bytes(head, "big", signed=True)
        if not 0 <= size <= MOST_FRAME_BYTES:
            self.close()
            return None
        if len(self._pending) < 4 + size:
            return None
        frame = bytes(self._pending[4 : 4 + size])
        del self._pending[: 4 + size]
        return frame

    def _send(self, frame: bytes) -> None:
        if self._is_over:
            return
        if self._service.is_holding:
            self._held.append(frame)
        else:
            self._output.write(len(frame).to_bytes(4, "big") + frame)

    def _greeting(self, frame: bytes) -> None:
        service, reader = self._service, Reader(frame)
        _, seen, timeout_ms, session_id = reader.int32(), reader.int64(), reader.int32(), reader.int64()
        password = reader.buffer() or b""
        if seen > service.tree.zxid or service.is_cut_off(session_id):
            self.close()
            return
        self._is_greeted = True
        now = service.now()
        service.expire_due()
        if session_id:
            session = service.sessions.resume(session_id, password, now)
        else:
            session = service.sessions.open(timeout_ms / 1000, now)
            service.tree.zxid += 1
        # Whether a session was refused is in the time-out alone.
        timeout, number, secret = (
            (0, 0, NO_PASSWORD) if session is None else (round(session.timeout * 1000), session.id, session.password)
        )
        answer = Writer().int32(0).int32(timeout).int64(number).buffer(secret)
        if len(frame) > GREETING_BYTES_BEFORE_READ_ONLY and service.numbers >= (3, 4):
            answer.boolean(False)
        if session is not None:
            for other in service.connections_of(session.id):
                other.close()  # the client has moved
            self.session_id = session.id
        self._send(bytes(answer))
        if session is None:
            self.close()
        service.touched()

    def _request(self, frame: bytes) -> None:
        service, reader, writer = self._service, Reader(frame), Writer()
        xid, kind = reader.int32(), reader.int32()
        service.requests_served += 1
        service.sessions.touch(self.session_id, service.now())
        if kind == Operation.AUTH:
            self._authenticate(xid, reader)
        elif kind == Operation.SASL:
            self._sasl_step(xid, reader.buffer() or b"")
        elif kind == Operation.CLOSE:
            self._answer(xid, ErrorCode.OK)
            service.end_session(self.session_id)
            self.close()
        elif kind not in KNOWN or not service.knows(Operation(kind)):
            if service.numbers >= (3, 4):  # 3.3 drops the request, and the client waits for ever
                self._answer(xid, ErrorCode.UNIMPLEMENTED)
                self.close()
        else:
            code = ErrorCode.OK
            try:
                serve(service, self, kind, reader, writer)
            except Fault as fault:
                code = fault.code
            if kind in service.lost_answers:
                service.lost_answers.remove(Operation(kind))
                self.close()
            else:
                self._answer(xid, code, bytes(writer) if code == ErrorCode.OK else b"")

    def _answer(self, xid: int, code: ErrorCode, body: bytes = b"") -> None:
        self._send(bytes(Writer().int32(xid).int64(self._service.tree.zxid).int32(code).raw(body)))

    def _sasl_step(self, xid: int, token: bytes) -> None:
        if not token or self._sasl is None:
            self._sasl = DigestMd5(self._service.passwords)
        answer = None if "sasl" in self._service.refused_schemes else self._sasl.step(token)
        if answer is None:
            self._answer(xid, ErrorCode.AUTH_FAILED)
            self.close()
            return
        self._answer(xid, ErrorCode.OK, bytes(Writer().buffer(answer)))
        if self._sasl.user is not None:
            self.identities.append(("sasl", self._sasl.user))

    def _authenticate(self, xid: int, reader: Reader) -> None:
        _, scheme, credential = reader.int32(), reader.string(), (reader.buffer() or b"").decode()
        if scheme == "digest" and scheme not in self._service.refused_schemes:
            self.identities.append((scheme, access.digest(credential)))
            self._answer(xid, ErrorCode.OK)
        elif scheme in ("world", "ip") and scheme not in self._service.refused_schemes:
            self._answer(xid, ErrorCode.OK)
        else:
            self._answer(xid, ErrorCode.AUTH_FAILED)
            self.close()
