"""Whatever happens in whatever order, the machine skips no record and hands out none twice.

Hypothesis plays the brokers, the network and the application; a model knows which record of each partition comes next.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pykafka08.consumer.actions import FetchedPartition, SendEpochs, SendFetch, SendListOffsets
from pykafka08.consumer.standing import fetch_ask
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import CorruptRecordError, KafkaError, RequestTimeoutError, TransportError
from pykafka08.records.batch import patch_crc
from pykafka08.records.record import TopicPartition
from tests.consumer.world import World

PARTITIONS = [TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)]
BROKERS = [1, 2]
PASSING_CODES = [
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.KAFKA_STORAGE_ERROR,
]
which = st.integers(0, 1000)
partitions = st.sampled_from(PARTITIONS)


class Readers(RuleBasedStateMachine):
    @initialize(limit=st.sampled_from([80, 200, 1 << 20]), bound=st.sampled_from([300, 1 << 20]))
    def begin(self, limit: int, bound: int) -> None:
        self.world = World({tp: 1 for tp in PARTITIONS}, max_partition_fetch_bytes=limit, fetch_buffer_bytes=bound)
        self.expected = dict.fromkeys(PARTITIONS, 0)
        self.world.start()

    # The cluster

    @rule(tp=partitions, count=st.integers(1, 4), gaps=st.sets(st.integers(0, 3)))
    def produce(self, tp: TopicPartition, count: int, gaps: set[int]) -> None:
        self.world.logs[tp].append(count, gaps=gaps)

    @rule(tp=partitions)
    def compact_to_an_empty_batch(self, tp: TopicPartition) -> None:
        log = self.world.logs[tp]
        log.append(3)
        log.offsets = log.offsets[:-3]
        base, last, data = log.batches[-1]
        empty = bytearray(data[:61])
        empty[8:12] = (49).to_bytes(4, "big")
        empty[57:61] = bytes(4)
        patch_crc(empty)
        log.batches[-1] = (base, last, bytes(empty))

    @rule(tp=partitions, broker=st.sampled_from(BROKERS), is_known=st.booleans())
    def move_leader(self, tp: TopicPartition, broker: int, is_known: bool) -> None:
        self.world.move_leader(tp, broker)
        if is_known:
            self.world.refresh()
            self.world.poll()

    @rule(tp=partitions)
    def lose_leader(self, tp: TopicPartition) -> None:
        self.world.move_leader(tp, -1)
        self.world.refresh()
        self.world.poll()

    @rule()
    def refresh(self) -> None:
        self.world.refresh()
        self.world.poll()

    @rule(tp=partitions, part=st.floats(0, 1))
    def retain(self, tp: TopicPartition, part: float) -> None:
        log = self.world.logs[tp]
        log.start = max(log.start, int(log.end * part))

    # The network

    @rule(index=which, is_capped=st.booleans(), is_partial=st.booleans())
    def answer(self, index: int, is_capped: bool, is_partial: bool) -> None:
        if self.world.flights:
            flight = self.world.flights[index % len(self.world.flights)]
            self.world.answer(flight, is_capped=is_capped or is_partial, is_partial=is_partial)

    @rule(index=which, broker=st.sampled_from(BROKERS))
    def send_to_a_follower(self, index: int, broker: int) -> None:
        fetches = self.world.fetches()
        if fetches:
            self.world.redirect(fetches[index % len(fetches)], broker)

    @rule(tp=partitions)
    def a_follower_falls_behind(self, tp: TopicPartition) -> None:
        self.world.logs[tp].followers.clear()

    @rule(index=which, code=st.sampled_from(PASSING_CODES))
    def refuse(self, index: int, code: ErrorCode) -> None:
        if self.world.flights:
            self.world.answer(self.world.flights[index % len(self.world.flights)], code=int(code))

    @rule(index=which, error=st.sampled_from([TransportError("reset"), RequestTimeoutError("late")]))
    def lose(self, index: int, error: KafkaError) -> None:
        if not self.world.flights:
            return
        flight = self.world.flights.pop(index % len(self.world.flights))
        if isinstance(flight, SendFetch):
            self.world.machine.fetch_failed(flight, error, self.world.now)
        elif isinstance(flight, SendEpochs):
            self.world.machine.epochs_failed(flight, error, self.world.now)
        else:
            self.world.machine.listing_failed(flight, error, self.world.now)
        self.world.poll()

    @rule(index=which, byte=st.integers(0, 300), is_cut=st.booleans())
    def damage(self, index: int, byte: int, is_cut: bool) -> None:
        """One answer is damaged on the way; the next will be whole."""
        fetches = self.world.fetches()
        if not fetches:
            return
        fetch = fetches[index % len(fetches)]
        self.world.flights.remove(fetch)
        answers = []
        for ask in fetch.asks:
            answer = self.world.fetched(fetch.node_id, ask.tp, ask.offset, ask.max_bytes)
            if answer.records:
                data = bytearray(answer.records)
                if is_cut:
                    del data[byte:]
                else:
                    # Inside what the first batch's checksum covers.
                    data[21 + byte % (int.from_bytes(data[8:12], "big") - 9)] ^= 0x55
                answer = FetchedPartition(ask.tp, 0, memoryview(bytes(data)))
            answers.append(answer)
        self.world.machine.fetch_answered(fetch, answers, self.world.now, is_capped=True)
        self.world.poll()

    @rule(seconds=st.sampled_from([0.01, 0.11, 1.3]))
    def wait(self, seconds: float) -> None:
        self.world.wait(seconds)

    # The application

    @rule(tp=partitions, part=st.floats(0, 1))
    def seek(self, tp: TopicPartition, part: float) -> None:
        log = self.world.logs[tp]
        self.expected[tp] = int(log.end * part)
        self.world.machine.assignment.seek(tp, self.expected[tp])
        self.world.poll()

    @rule(tp=partitions)
    def pause(self, tp: TopicPartition) -> None:
        assignment = self.world.machine.assignment
        assignment.pause(tp, self.world.machine.position(tp))

    @rule(tp=partitions)
    def resume(self, tp: TopicPartition) -> None:
        self.world.machine.assignment.resume(tp)
        self.world.poll()

    @rule()
    def read(self) -> None:
        self.read_one()

    @rule(tp=partitions)
    def ask_for_the_position(self, tp: TopicPartition) -> None:
        position = self.world.machine.position(tp)
        log = self.world.logs[tp]
        if position is not None:
            between = [offset for offset in log.offsets if self.expected[tp] <= offset < position]
            assert all(offset < log.start for offset in between)

    def read_one(self) -> bool:
        world = self.world
        try:
            batch = world.next_batch()
        except CorruptRecordError:
            world.poll()
            return True  # met twice at one place; it is fetched again
        except KafkaError:
            world.poll()
            return True
        if batch is None:
            return False
        tp = TopicPartition(batch.topic, batch.partition)
        assert tp not in world.machine.assignment.paused()
        log = world.logs[tp]
        for record in batch:
            assert record.offset >= self.expected[tp], "handed out twice"
            skipped = [offset for offset in log.offsets if self.expected[tp] <= offset < record.offset]
            assert all(offset < log.start for offset in skipped), "skipped"
            assert record.value == b"%04d" % record.offset
            self.expected[tp] = record.offset + 1
        return True

    @invariant()
    def one_fetch_per_broker(self) -> None:
        if hasattr(self, "world"):
            nodes = [fetch.node_id for fetch in self.world.fetches()]
            assert len(nodes) == len(set(nodes))

    @invariant()
    def standing_fetches_are_what_a_new_plan_would_ask(self) -> None:
        if not hasattr(self, "world"):
            return
        machine, now = self.world.machine, self.world.now
        planner, states = machine._planner, machine.assignment.states
        if not planner._is_steady or machine.assignment.is_shaken:
            return
        asked = {tp: node_id for node_id, each in planner._standing.items() for tp in each.asks}
        assert asked == {tp: state.source for tp, state in states.items() if not state.is_quiet}
        for state in states.values():
            assert (state.is_being_located, state.is_halted, state.failures) == (False, False, 0)
            assert state.retry_at <= now
        for each in planner._standing.values():
            for tp, ask in each.asks.items():
                state = states[tp]
                assert fetch_ask(state) == ask or tp in each._renewed
                assert state.follower is None or each.until <= state.follower_until
                assert state.is_in_flight or tp in each._renewed
                assert not state.buffer or state in each.buffered

    def teardown(self) -> None:
        """When all is well again, everything that is left comes."""
        if not hasattr(self, "world"):
            return
        world = self.world
        for tp in PARTITIONS:
            world.machine.assignment.resume(tp)
            if world.logs[tp].leader < 0:
                world.move_leader(tp, 1)
        world.refresh()
        for _ in range(300):
            while self.read_one():
                pass
            if all(self._is_done(tp) for tp in PARTITIONS):
                break
            world.wait(1.3)
            world.answer_all(SendListOffsets)
            world.answer_all()
        for tp in PARTITIONS:
            assert self._is_done(tp), f"{tp} is stuck at {world.machine.position(tp)} of {world.logs[tp].end}"

    def _is_done(self, tp: TopicPartition) -> bool:
        return self.world.machine.position(tp) == self.world.logs[tp].end


TestReaders = Readers.TestCase
TestReaders.settings = settings(max_examples=100, stateful_step_count=60, deadline=None)
