"""Leaders of one topic that check the numbers of idempotent producers, with a wire that loses and delays; no I/O.

The logs are what a test judges: each record once, in order, and where its acknowledgement says.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from pykafka08.error_codes import ErrorCode
from pykafka08.errors import RequestTimeoutError, TransportError
from pykafka08.producer.actions import Send
from pykafka08.producer.machine import ProducerMachine
from pykafka08.producer.reactions import Outcome
from pykafka08.producer.sequences import LAST_EPOCH

OK = ErrorCode.NONE
AFTER_APPEND = {
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""Codes that a leader may say of a batch that it has written."""


@dataclass
class Written:
    """A batch as it stands on the wire."""

    partition: int
    producer_id: int
    epoch: int
    base_sequence: int
    values: tuple[bytes | None, ...]

    @property
    def last_sequence(self) -> int:
        return self.base_sequence + len(self.values) - 1


@dataclass
class Request:
    """``written`` is None until the connection is open; ``outcomes`` until the broker has taken it."""

    send: Send
    written: list[Written] | None = None
    outcomes: list[Outcome] | None = None


@dataclass
class Remembered:
    epoch: int
    batches: deque[tuple[Written, int]]


@dataclass
class Log:
    values: list[bytes | None] = field(default_factory=list)
    producers: dict[int, Remembered] = field(default_factory=dict)
    start: int = 0


class ModelCluster:
    """Three brokers over the same logs, each with one connection of the producer.

    ``produce_version`` 3 is 0.11, which remembers one batch of a producer; since 1.0 it is five.  A broker that has
    ``strict_memory`` refuses a producer that it has forgotten, as until 2.4; later ones take it at any number.
    """

    def __init__(
        self,
        machine: ProducerMachine,
        *,
        produce_version: int = 9,
        strict_memory: bool = False,
        most_records: int = 1000,
    ) -> None:
        self.machine = machine
        self.produce_version = produce_version
        self.strict_memory = strict_memory
        self.most_records = most_records
        self.logs: dict[int, Log] = {}
        self.connections: dict[int, deque[Request]] = {node: deque() for node in range(3)}
        self.is_open = dict.fromkeys(range(3), True)
        self.late: list[Written] = []
        """What lies in the sockets of connections that the producer has given up."""

    # --- the wire -----------------------------------------------------------------------------------------------------

    def take(self, send: Send, now: float) -> None:
        """The producer submits a request; it is written when the connection is open."""
        request = Request(send)
        self.connections[send.node_id].append(request)
        if self.is_open[send.node_id]:
            self._write(request, now)

    def open(self, node: int, now: float) -> None:
        self.is_open[node] = True
        for request in list(self.connections[node]):
            if request.written is None:
                self._write(request, now)

    def _write(self, request: Request, now: float) -> None:
        send = request.send
        self.machine.broker_known(send.node_id, self.produce_version)
        batches = [batch for batch in send.batches if not batch.is_done]
        if not batches:
            self.connections[send.node_id].remove(request)
            self.machine.request_failed(send, RequestTimeoutError("all records had ended"), now)
            return
        request.written = []
        for batch in batches:
            if self.machine.is_numbered(batch):
                self.machine.number(batch)
                assert batch.base_sequence >= 0
            batch.unpack()
            request.written.append(
                Written(
                    batch.partition, batch.producer_id, batch.producer_epoch, batch.base_sequence, tuple(batch.values)
                )
            )

    def process(self, node: int, codes: dict[int, ErrorCode], *, after: bool = False) -> None:
        """The broker takes the next request; ``codes`` are said, by partition, instead of appending or ``after`` it."""
        request = next((each for each in self.connections[node] if each.outcomes is None and each.written), None)
        if request is None:
            return
        assert request.written is not None
        answered = {}
        for written in request.written:
            code = codes.get(written.partition, OK)
            if code == ErrorCode.INVALID_PRODUCER_EPOCH:
                self.fence(written)
            if code != OK and not (after and code in AFTER_APPEND):
                answered[written.partition] = Outcome(code)
                continue
            outcome = self.append(written)
            answered[written.partition] = outcome if code == OK else Outcome(code)
        # A batch that ended before the request was written is not in it, and nobody cares what is said of it.
        request.outcomes = [answered.get(batch.partition, Outcome(OK, 0)) for batch in request.send.batches]

    def answer(self, node: int, now: float) -> bool:
        """The answer to the oldest request arrives."""
        line = self.connections[node]
        if not line or line[0].outcomes is None:
            return False
        request = line.popleft()
        assert request.outcomes is not None
        self.machine.request_answered(request.send, request.outcomes, now)
        return True

    def cut(self, node: int, reaching: int, now: float) -> None:
        """The connection ends; of what is written, the broker still gets so many requests, later."""
        line, self.connections[node] = self.connections[node], deque()
        self.is_open[node] = False
        unread = [request for request in line if request.outcomes is None and request.written]
        self.late += [written for request in unread[:reaching] for written in request.written or ()]
        for request in line:
            self.machine.request_failed(request.send, TransportError("cut"), now)

    def late_arrives(self) -> None:
        """Brokers read to the end what their sockets hold."""
        late, self.late = self.late, []
        for written in late:
            self.append(written)

    # --- a leader -----------------------------------------------------------------------------------------------------

    def append(self, written: Written) -> Outcome:
        if len(written.values) > self.most_records:
            return Outcome(ErrorCode.MESSAGE_TOO_LARGE)
        log = self.logs.setdefault(written.partition, Log())
        known = log.producers.get(written.producer_id)
        if written.producer_id >= 0:
            refusal = self._check(log, known, written)
            if refusal is not None:
                return refusal
            if known is None or known.epoch != written.epoch:
                known = Remembered(written.epoch, deque(maxlen=1 if self.produce_version < 4 else 5))
                log.producers[written.producer_id] = known
            known.batches.append((written, len(log.values)))
        offset = len(log.values)
        log.values += written.values
        return Outcome(OK, offset)

    def _check(self, log: Log, known: Remembered | None, written: Written) -> Outcome | None:
        if known is None:
            if written.base_sequence and self.strict_memory:
                return Outcome(ErrorCode.UNKNOWN_PRODUCER_ID, log_start_offset=log.start)
            return None
        if written.epoch < known.epoch:
            return Outcome(ErrorCode.INVALID_PRODUCER_EPOCH)
        if written.epoch > known.epoch:
            return Outcome(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER) if written.base_sequence else None
        for batch, offset in known.batches:
            if (batch.base_sequence, batch.last_sequence) == (written.base_sequence, written.last_sequence):
                assert batch.values == written.values, "numbers used again for other records"
                return Outcome(OK, offset)
        if written.base_sequence != known.batches[-1][0].last_sequence + 1:
            return Outcome(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
        return None

    def fence(self, written: Written) -> None:
        """Somebody has used the producer id with the last epoch."""
        log = self.logs.setdefault(written.partition, Log())
        log.producers[written.producer_id] = Remembered(LAST_EPOCH + 1, deque())

    def forget(self, partition: int) -> None:
        """Old segments are deleted, and what was known of their producers with them."""
        log = self.logs.setdefault(partition, Log())
        log.producers.clear()
        log.start = len(log.values)
