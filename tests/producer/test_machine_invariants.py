"""Whatever brokers, clocks and metadata do: each record ends once, and the log keeps the order of each partition."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pykafka08.error_codes import ErrorCode
from pykafka08.errors import (
    ClosedError,
    KafkaError,
    RequestTimeoutError,
    TransportError,
    UnsupportedVersionError,
)
from pykafka08.producer.actions import Send
from pykafka08.producer.batch import RECORD_OVERHEAD, Batch
from pykafka08.producer.reactions import Outcome

from .world import OK, Handle, World

ANSWERS = st.sampled_from(
    [
        OK,
        OK,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        None,
    ]
)
WRITTEN_ALL_THE_SAME = {ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND}
LEADERS = st.lists(st.integers(-1, 2), min_size=3, max_size=3)
TOPICS = st.sampled_from(["known", "late"])


class Machine(RuleBasedStateMachine):
    """Topic ``known`` has three partitions from the start, ``late`` gets them on the way, or never."""

    @initialize(
        linger_ms=st.sampled_from([0, 5]),
        batch_size=st.sampled_from([0, 180, 1_000, 16_384]),
        max_in_flight=st.integers(1, 3),
        partitioner=st.sampled_from(["murmur2", "round_robin", "random_sticky"]),
    )
    def start(self, linger_ms: int, batch_size: int, max_in_flight: int, partitioner: str) -> None:
        self.world = World(
            {"known": [0, 1, 2]},
            linger_ms=linger_ms,
            batch_size=batch_size,
            max_in_flight_requests_per_connection=max_in_flight,
            partitioner=partitioner,
            delivery_timeout_ms=30_000,
            max_block_ms=10_000,
        )
        self.max_in_flight = max_in_flight
        self.handles: list[Handle] = []
        self.sizes: list[int] = []
        self.outcomes: dict[int, tuple[bool, int]] = {}
        self.pending: list[Send] = []
        self.logs: dict[tuple[str, int], list[list[int]]] = {}
        self.end = 0

    # --- what may happen ----------------------------------------------------------------------------------------------

    @rule(
        topic=TOPICS,
        key=st.sampled_from([None, b"a", b"b"]),
        partition=st.sampled_from([None, 0, 0, 0, 1, 2, 5]),
        has_header=st.booleans(),
        many=st.integers(1, 12),
    )
    def add(self, topic: str, key: bytes | None, partition: int | None, has_header: bool, many: int) -> None:
        for _ in range(many):
            value = b"%d" % len(self.handles)
            headers = (("h", b"1"),) if has_header else ()
            before = self.world.machine.accumulator.buffered_bytes
            self.handles.append(self.world.add(topic, value, key, partition, headers))
            self.sizes.append(self.world.machine.accumulator.buffered_bytes - before)

    @rule(topic=TOPICS, many=st.integers(1, 40))
    def add_many(self, topic: str, many: int) -> None:
        given = [b"%d" % (len(self.handles) + i) for i in range(many)]
        spans = self.world.machine.accumulator.values_added(topic, given, 5, self.world.now)
        self.handles += [Handle(batch, first + i) for batch, first, count in spans for i in range(count)]
        self.sizes += [RECORD_OVERHEAD + len(value) for value in given]

    @rule(seconds=st.sampled_from([0.0, 0.001, 0.005, 0.1, 1.0, 3.0, 12.0]))
    def pass_time(self, seconds: float) -> None:
        self.take(self.world.sends(after=seconds))

    @rule()
    def flush(self) -> None:
        self.world.machine.release_all(self.world.now)
        self.take(self.world.sends())

    @rule(leaders=LEADERS, late=st.one_of(LEADERS, st.just(3), st.just(3), st.just(5)))
    def metadata(self, leaders: list[int], late: list[int] | int) -> None:
        self.world.metadata({"known": leaders, "late": late})

    @rule(data=st.data())
    def answer(self, data: st.DataObject) -> None:
        if self.pending:
            send = self.pending.pop(data.draw(st.integers(0, len(self.pending) - 1)))
            outcomes = []
            for batch in send.batches:
                code = data.draw(ANSWERS)
                offset = -1
                if code is not None and (code == OK or code in WRITTEN_ALL_THE_SAME):
                    offset = self.write(batch)
                outcomes.append(None if code is None else Outcome(int(code), offset if code == OK else -1))
            self.world.answer(send, *outcomes) if outcomes else self.world.fail(send, UnsupportedVersionError("empty"))

    @rule(
        data=st.data(),
        is_written=st.booleans(),
        error=st.sampled_from([TransportError("cut"), RequestTimeoutError("late"), UnsupportedVersionError("old")]),
    )
    def fail(self, data: st.DataObject, is_written: bool, error: KafkaError) -> None:
        if self.pending:
            send = self.pending.pop(data.draw(st.integers(0, len(self.pending) - 1)))
            if is_written and not isinstance(error, UnsupportedVersionError):
                for batch in send.batches:
                    self.write(batch)
            self.world.fail(send, error)

    @rule()
    def refuse_headers(self) -> None:
        for send in self.pending[-1:]:
            for batch in tuple(send.batches):
                batch.unpack()
                if batch.headers is not None and not batch.is_done and any(batch.headers):
                    error = UnsupportedVersionError("headers")
                    indices = [i for i, headers in enumerate(batch.headers) if headers]
                    self.world.machine.records_refused(send, batch, indices, error, self.world.now)

    # --- the model ----------------------------------------------------------------------------------------------------

    def take(self, sends: list[Send]) -> None:
        taken = [(batch.topic, batch.partition) for send in self.pending for batch in send.batches]
        for send in sends:
            assert send.batches
            for batch in send.batches:
                assert len(batch) > 0
                assert (batch.topic, batch.partition) not in taken, "two of a partition in flight"
                taken.append((batch.topic, batch.partition))
            self.pending.append(send)
        for node_id in range(3):
            assert sum(send.node_id == node_id for send in self.pending) <= self.max_in_flight

    def write(self, batch: Batch) -> int:
        batch.unpack()
        numbers = [int(value or b"") for value in batch.values]
        if not numbers:  # its deadline has passed: the record bytes were let go of, what was sent is not known here
            return -1
        log = self.logs.setdefault((batch.topic, batch.partition), [])
        offset = sum(map(len, log))
        log.append(numbers)
        return offset

    @invariant()
    def each_record_ends_once(self) -> None:
        if not hasattr(self, "handles"):
            return
        acknowledged = failed = buffered = 0
        for number, handle in enumerate(self.handles):
            if not handle.is_done:
                assert number not in self.outcomes
                buffered += self.sizes[number]
                continue
            outcome = (handle.is_acknowledged, handle.offset)
            assert self.outcomes.setdefault(number, outcome) == outcome
            acknowledged += outcome[0]
            failed += not outcome[0]
        counters = self.world.machine.counters
        assert counters[:3] == (len(self.handles), acknowledged, failed)
        assert counters.in_buffer == len(self.handles) - acknowledged - failed
        assert counters.buffered_bytes == buffered

    @invariant()
    def open_batches_are_counted(self) -> None:
        if hasattr(self, "world"):
            accumulator = self.world.machine.accumulator
            queues = [queue for topic in accumulator.topics.values() for queue in topic.queues.values()]
            assert accumulator._opened.count == sum(
                queue.open is not None or queue.open_rows is not None for queue in queues
            )

    @invariant()
    def the_log_is_in_order(self) -> None:
        for log in getattr(self, "logs", {}).values():
            firsts = [batch[0] for batch in log]
            assert firsts == sorted(firsts)
            assert all(batch == sorted(batch) for batch in log)

    @invariant()
    def an_offset_is_where_the_record_is(self) -> None:
        flat = {place: [n for batch in log for n in batch] for place, log in getattr(self, "logs", {}).items()}
        for number, (is_acknowledged, offset) in getattr(self, "outcomes", {}).items():
            if is_acknowledged:
                batch, _ = self.handles[number].now
                assert flat[batch.topic, batch.partition][offset] == number

    def teardown(self) -> None:
        """When brokers are well again everything is delivered; no record outlives its deadline; nothing is left."""
        if not hasattr(self, "handles"):
            return
        for _ in range(3):
            self.world.metadata({"known": [0, 1, 2], "late": [2, 1, 0]})
            self.pass_time(1.5)
            while self.pending:
                send = self.pending.pop(0)
                offsets = [self.write(batch) for batch in send.batches]
                if send.batches:
                    self.world.answer(send, *[Outcome(OK, offset) for offset in offsets])
                else:
                    self.world.fail(send, UnsupportedVersionError("empty"))
                self.take(self.world.sends())
        self.each_record_ends_once()
        self.the_log_is_in_order()
        self.an_offset_is_where_the_record_is()
        assert all(handle.is_done for handle in self.handles)
        self.add("known", b"a", 0, False, 3)
        self.add("known", None, 1, False, 3)
        self.take(self.world.sends(after=31))
        for send in self.pending:
            self.world.fail(send, TransportError("gone"))
        self.each_record_ends_once()
        assert all(handle.is_done for handle in self.handles)
        self.world.machine.close(ClosedError("closed"))
        assert self.world.machine.counters.buffered_bytes == 0
        assert self.world.sends() == []
        assert self.world.machine.next_wakeup() is None


Machine.TestCase.settings = settings(
    max_examples=150, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestMachine = Machine.TestCase
