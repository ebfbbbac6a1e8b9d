"""Whatever happens between an idempotent producer and its brokers: no record twice, none lost, and all in order."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pykafka08.error_codes import ErrorCode
from pykafka08.producer.actions import AskIdentity, Send
from pykafka08.producer.sequences import Identity

from .model import ModelCluster
from .world import Handle, World

PARTITIONS = 2
NODES = st.integers(0, 2)
CODES = st.sampled_from(
    [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
    ]
)
REMEMBERED_S = 60.0
"""Brokers keep what they know of a producer far longer."""


class Idempotence(RuleBasedStateMachine):
    """Topic ``t`` has two partitions, each led by any of three brokers."""

    @initialize(
        batch_size=st.sampled_from([0, 200, 1000]),
        produce_version=st.sampled_from([3, 9, 9]),
        strict_memory=st.booleans(),
        most_records=st.sampled_from([1000, 3]),
        epoch=st.sampled_from([0, 32_766]),
    )
    def start(self, batch_size: int, produce_version: int, strict_memory: bool, most_records: int, epoch: int) -> None:
        self.world = World(
            {"t": [0, 1]},
            linger_ms=0,
            batch_size=batch_size,
            enable_idempotence=True,
            delivery_timeout_ms=30_000,
        )
        self.cluster = ModelCluster(
            self.world.machine, produce_version=produce_version, strict_memory=strict_memory, most_records=most_records
        )
        self.handles: list[Handle] = []
        self.next_producer_id = 0
        self.first_epoch = epoch
        self.last_ack = self.world.now
        self.poll()

    # --- what may happen ----------------------------------------------------------------------------------------------

    @rule(partition=st.integers(0, PARTITIONS - 1), many=st.integers(1, 8))
    def add(self, partition: int, many: int) -> None:
        for _ in range(many):
            self.handles.append(self.world.add(value=b"%d" % len(self.handles), partition=partition))
        self.poll()

    @rule(seconds=st.sampled_from([0.001, 0.12, 0.12, 1.2, 1.2, 16.0]))
    def pass_time(self, seconds: float) -> None:
        self.cluster.late_arrives()
        self.poll(seconds)

    @rule(leaders=st.lists(st.integers(-1, 2), min_size=PARTITIONS, max_size=PARTITIONS))
    def metadata(self, leaders: list[int]) -> None:
        self.world.metadata({"t": leaders})
        self.poll()

    @rule(node=NODES, first=CODES, second=CODES, after=st.booleans())
    def process(self, node: int, first: ErrorCode, second: ErrorCode, after: bool) -> None:
        self.cluster.process(node, {0: first, 1: second}, after=after)

    @rule(node=NODES, many=st.integers(1, 5))
    def process_well(self, node: int, many: int) -> None:
        for _ in range(many):
            self.cluster.process(node, {})

    @rule(node=NODES, many=st.integers(1, 5), polls_between=st.booleans())
    def answer(self, node: int, many: int, polls_between: bool) -> None:
        for _ in range(many):
            if self.cluster.answer(node, self.world.now):
                self.last_ack = self.world.now
            if polls_between:
                self.poll()
        self.poll()

    @rule(node=NODES, reaching=st.integers(0, 5))
    def cut(self, node: int, reaching: int) -> None:
        self.cluster.cut(node, reaching, self.world.now)
        self.poll()

    @rule(node=NODES)
    def open(self, node: int) -> None:
        self.cluster.open(node, self.world.now)
        self.poll()

    @rule(partition=st.integers(0, PARTITIONS - 1))
    def forget(self, partition: int) -> None:
        is_settled = not any(self.cluster.connections.values()) and not self.cluster.late
        is_old = self.cluster.strict_memory or self.world.now - self.last_ack > REMEMBERED_S
        if is_settled and is_old and not self.is_retry_taken_for_new(partition):
            self.cluster.forget(partition)

    @rule()
    def idle(self) -> None:
        self.pass_time(REMEMBERED_S + 1)

    def is_retry_taken_for_new(self, partition: int) -> bool:
        """Whoever has forgotten what was just written takes it again at number 0, a later release at any: no
        producer can know."""
        topic = self.world.machine.accumulator.topics.get("t")
        queue = topic.queues.get(partition) if topic is not None else None
        return queue is not None and any(
            batch.is_in_doubt and not (self.cluster.strict_memory and batch.base_sequence) for batch in queue.batches
        )

    # --- the model ----------------------------------------------------------------------------------------------------

    def poll(self, after: float = 0.0) -> None:
        for action in self.world.poll(after):
            if isinstance(action, Send):
                self.cluster.take(action, self.world.now)
            elif isinstance(action, AskIdentity):
                self.next_producer_id += 1
                identity = Identity(self.next_producer_id, self.first_epoch)
                self.world.machine.identity_given(identity, self.world.now)
        for queue in self.world.machine.accumulator.topics["t"].queues.values() if self.handles else ():
            assert len(queue.in_flight) <= (5 if self.cluster.produce_version > 3 else 1)
        if self.world.machine.wants_poll:
            self.poll()

    @invariant()
    def each_record_is_in_the_log_once_and_in_order(self) -> None:
        for log in self.cluster.logs.values() if hasattr(self, "cluster") else ():
            numbers = [int(value or b"") for value in log.values]
            assert len(numbers) == len(set(numbers))
            if self.first_epoch:
                # The first epoch of another producer id does not keep away what was sent under the one before, which
                # was raised: it may come behind others.
                numbers = [number for number in numbers if not self.handles[number].error]
            assert numbers == sorted(numbers)

    @invariant()
    def outcomes_are_true(self) -> None:
        if not hasattr(self, "handles"):
            return
        acknowledged = failed = 0
        for number, handle in enumerate(self.handles):
            if not handle.is_done:
                continue
            batch, _ = handle.now
            log = self.cluster.logs.get(batch.partition)
            if handle.is_acknowledged:
                acknowledged += 1
                assert log is not None
                assert log.values[handle.offset] == b"%d" % number
            else:
                failed += 1
                if handle.error is not None and not handle.error.may_be_written:
                    assert log is None or b"%d" % number not in log.values
        assert self.world.machine.counters[:3] == (len(self.handles), acknowledged, failed)

    def teardown(self) -> None:
        """When all is well again everything is delivered within a moment."""
        if not hasattr(self, "handles"):
            return
        self.world.metadata({"t": [0, 1]})
        fresh = len(self.handles)
        for partition in range(PARTITIONS):
            self.add(partition, 3)
        for _ in range(1000):
            if all(handle.is_done for handle in self.handles):
                break
            self.cluster.late_arrives()
            for node in range(3):
                self.open(node)
                self.process_well(node, 5)
                self.answer(node, 5, True)
            self.poll(0.02)
        self.each_record_is_in_the_log_once_and_in_order()
        self.outcomes_are_true()
        assert all(handle.is_done for handle in self.handles)
        assert all(handle.is_acknowledged for handle in self.handles[fresh:])


Idempotence.TestCase.settings = settings(
    max_examples=150, stateful_step_count=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestIdempotence = Idempotence.TestCase
