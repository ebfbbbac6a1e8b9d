"""One client's connection to one broker: frames in, answers out, in order.

No sockets: bytes go out through an :class:`Output`.  Requests are served one after the other; a long poll holds up the
ones behind it and no other connection.  What one read brings is answered with one write.
"""

from __future__ import annotations

import time
from collections import deque
from functools import partial
from typing import Protocol

from pykafka08.broker.call import Call, CloseConnection
from pykafka08.broker.cluster_state import ClusterState, Node
from pykafka08.broker.dispatch import begin, encode_answer
from pykafka08.broker.faults import ConnectionLife
from pykafka08.broker.security.mechanisms import Refused
from pykafka08.broker.security.sasl_session import SaslSession
from pykafka08.broker.timers import Timer
from pykafka08.driver import Waiter
from pykafka08.errors import ClosedError, KafkaError
from pykafka08.protocol.framing import MAX_FRAME_BYTES, FrameSplitter
from pykafka08.protocol.schema import Response
from pykafka08.wire import INT32, Buffer

__all__ = ["Output", "Session"]

MOST_WAITING_FRAMES = 64
REQUEST_LIMIT, SASL_LIMIT = "socket.request.max.bytes", "sasl.server.max.receive.size"
MOST_SASL_BYTES = 524_288
"""Of a frame before authentication: Kafka's default for ``sasl.server.max.receive.size``."""
LAST_REQUEST_S = 0.2  # how long a connection whose life is over waits for the request that it is to die with


class Output(Protocol):
    """The way back to the client."""

    def write(self, data: bytes) -> None: ...

    def close(self) -> None:
        """End the connection after what was written."""

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class Session:
    """Serves one connection."""

    def __init__(self, cluster: ClusterState, node: Node, client_host: str, output: Output) -> None:
        self._cluster = cluster
        self._node = node
        self._client_host = client_host
        self._output = output
        self._splitter = FrameSplitter(setting=REQUEST_LIMIT)
        self._frames: deque[Buffer] = deque()
        self._answers: list[bytes] = []
        self._swapped: list[bytes] = []
        self._death: ConnectionLife | None = None
        self._life: Timer | None = None
        self._waiter: Waiter[Response | None] | None = None
        self._state: dict[str, object] = {}
        self._sasl = SaslSession(cluster.protection) if cluster.protection.uses_sasl else None
        if self._sasl is not None:
            # A frame's size reserves its memory, and anybody may send one before authentication.
            self._splitter.limit(MOST_SASL_BYTES, SASL_LIMIT)
        self._is_busy = False
        self._is_serving = False
        self._is_closed = False
        self._is_paused = False
        self._is_output_full = False
        life = cluster.faults.next_life()
        if life is not None:
            self._life = cluster.timers.call_after(life.seconds, partial(self._life_over, life))

    def next_buffer(self, sizehint: int) -> memoryview:
        """Where the socket is to put the next bytes."""
        return self._splitter.next_buffer(sizehint)

    def bytes_received(self, size: int) -> None:
        """``size`` bytes were put there."""
        self._splitter.bytes_received(size)
        self._take_frames()

    def _take_frames(self) -> None:
        broken: KafkaError | None = None
        try:
            self._frames.extend(self._splitter)
        except KafkaError as error:
            broken = error
        self._serve_waiting()
        if broken is not None:
            self._end(str(broken))

    def output_filled(self) -> None:
        """The client does not read fast enough: stop working for it."""
        self._is_output_full = True
        self._regulate()

    def output_drained(self) -> None:
        """There is room again."""
        self._is_output_full = False
        self._serve_waiting()

    def closed(self) -> None:
        """The connection is gone; whoever prepares an answer is told so."""
        self._is_closed = True
        self._frames.clear()
        if self._life is not None:
            self._life.cancel()
        waiter, self._waiter = self._waiter, None
        if waiter is not None:
            waiter.set_exception(ClosedError("the client's connection ended"))

    def _serve_waiting(self) -> None:
        if self._is_serving:
            return
        self._is_serving = True
        while self._frames and not (self._is_busy or self._is_closed or self._is_output_full):
            self._serve(self._frames.popleft())
        if self._sasl is not None and self._sasl.principal is not None:
            self._splitter.limit(MAX_FRAME_BYTES, REQUEST_LIMIT)
        self._is_serving = False
        self._flush()

    def _life_over(self, life: ConnectionLife) -> None:
        if not self._cluster.faults.has_lives:
            return
        if life.way == "at once":
            self._end("scripted: its life is over")
        else:
            self._death = life
            at_once = life._replace(way="at once")
            self._life = self._cluster.timers.call_after(LAST_REQUEST_S, partial(self._life_over, at_once))

    def _serve(self, frame: Buffer) -> None:
        if self._death is not None and self._death.way == "before":
            self._end("scripted: its life ended before a request was performed")
            return
        if self._sasl is not None and self._sasl.takes_bare_tokens:
            self._authenticate(self._sasl, bytes(frame))
            return
        try:
            call, reply = begin(self._cluster, self._node, frame, self._client_host, self._state, self._sasl)
        except (CloseConnection, KafkaError) as error:
            self._end(str(error))
            return
        except Exception as error:  # noqa: BLE001 - the outer edge: one client's request must not end the broker
            self._cluster.failed(error, broker=self._node.node_id)
            self._end(repr(error))
            return
        if isinstance(reply, Waiter):
            self._is_busy = True
            self._waiter = reply
            reply.add_done_callback(partial(self._replied, call))
        else:
            self._answer(call, reply)

    def _authenticate(self, sasl: SaslSession, token: bytes) -> None:
        """Take a token without a header; brokers that take such tokens close the connection to refuse one."""
        try:
            answer, _ = sasl.authenticate(token, time.time())
        except Refused as refused:
            self._end(str(refused))
            return
        self._answers.append(INT32.pack(len(answer)) + answer)

    def _replied(self, call: Call, waiter: Waiter[Response | None]) -> None:
        self._waiter = None
        self._is_busy = False
        if self._is_closed:
            return
        if waiter.error is not None:
            self._end(str(waiter.error))
            return
        self._answer(call, waiter.result())
        self._serve_waiting()

    def _answer(self, call: Call, response: Response | None) -> None:
        delay = call.script.delay()
        if delay > 0:
            self._is_busy = True
            self._cluster.timers.call_after(delay, partial(self._delayed, call, response))
            return
        self._send(call, response)

    def _delayed(self, call: Call, response: Response | None) -> None:
        self._is_busy = False
        if not self._is_closed:
            self._send(call, response)
            self._serve_waiting()

    def _send(self, call: Call, response: Response | None) -> None:
        script = call.script
        if script.takes("close_after"):
            self._end("scripted: closed after the request was performed")
        elif response is not None and not script.takes("drop_answer"):
            try:
                frame = encode_answer(call, response)
            except Exception as error:  # noqa: BLE001 - the outer edge, as above
                self._cluster.failed(error, broker=self._node.node_id, api=type(response).__name__)
                self._end(repr(error))
                return
            self._send_frame(call, frame)
        if self._sasl is not None and self._sasl.has_failed:
            self._end("authentication failed")

    def _send_frame(self, call: Call, frame: bytes) -> None:
        script, death = call.script, self._death
        cut = script.cut() if death is None else int(len(frame) * death.share) if death.way == "cut" else 0
        if cut is not None:
            self._answers.append(frame[:cut])
            self._end(f"scripted: closed at byte {cut} of the answer")
            return
        if script.takes("swap_answers"):
            self._swapped.append(frame)
            return
        self._answers.append(frame)
        if script.takes("duplicate_answer"):
            self._answers.append(frame)
        self._answers += self._swapped
        self._swapped.clear()

    def _flush(self) -> None:
        if self._is_closed:
            return
        if self._answers:
            answers, self._answers = self._answers, []
            self._output.write(answers[0] if len(answers) == 1 else b"".join(answers))
        self._regulate()

    def _regulate(self) -> None:
        """Read no more than can be worked on."""
        is_full = self._is_output_full or len(self._frames) >= MOST_WAITING_FRAMES
        if is_full != self._is_paused:
            self._is_paused = is_full
            if is_full:
                self._output.pause_reading()
            else:
                self._output.resume_reading()

    def _end(self, reason: str) -> None:
        """Send what was answered, then close."""
        if not self._is_closed:
            self._cluster.log.debug("closing a client's connection", broker=self._node.node_id, reason=reason)
            self._flush()
            self.closed()
            self._output.close()
