"""Answers with impossible fields: offsets that go back or repeat, negative numbers, unknown sessions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka08.consumer.actions import (
    Aborted,
    EpochEnd,
    FetchedPartition,
    FoundEpoch,
    ListedOffset,
    SendEpochs,
    SendFetch,
    SendListOffsets,
)
from pykafka08.consumer.chunk import Chunk, backward_error
from pykafka08.consumer.requests import FetchCall
from pykafka08.consumer.session import FetchSession
from pykafka08.errors import CorruptRecordError, KafkaError, RemoteProtocolError
from pykafka08.protocol.messages.fetch import FetchResponse, NodeEndpoint
from pykafka08.protocol.versions import BrokerVersions
from pykafka08.records.compression import Codec
from pykafka08.records.message_set import encode_message_set
from pykafka08.records.record import TopicPartition
from tests.consumer.world import World, batch_bytes

A = TopicPartition("a", 0)
MINUTE = 61.0


def messages(offsets: Sequence[int], *, magic: int, codec: Codec = Codec.NONE) -> bytes:
    count = len(offsets)
    return encode_message_set(
        magic,
        codec,
        timestamps=[1] * count,
        keys=[None] * count,
        values=[b"%d" % offset for offset in offsets],
        offsets=offsets,
    )


def one_entry(offsets: Sequence[int], form: str) -> bytes:
    """One batch, one run of messages, or one wrapper."""
    if form == "magic 2":
        return batch_bytes(min(offsets), offsets, last=max(offsets))
    magic = int(form[6])
    return messages(offsets, magic=magic, codec=Codec.GZIP if "gzip" in form else Codec.NONE)


FORMS = ("magic 0", "magic 0 gzip", "magic 1", "magic 1 gzip", "magic 2")


class Reading:
    """A world with one partition whose broker answers every fetch with ``data``."""

    def __init__(self, data: bytes) -> None:
        self.world = World({A: 1})
        self.world.start()
        self.data = data
        self.offsets: list[int] = []
        self.errors: list[KafkaError] = []
        self.positions = [0]

    def fetch(self) -> None:
        """Fetch once, and read all records of the answer."""
        world = self.world
        for fetch in world.fetches():
            world.flights.remove(fetch)
            world.machine.fetch_answered(
                fetch, [FetchedPartition(A, 0, memoryview(self.data))], world.now, is_capped=True
            )
        world.poll()
        while True:
            try:
                batch = world.next_batch()
            except KafkaError as error:
                self.errors.append(error)
                continue
            if batch is None:
                break
            try:
                for record in batch:
                    self.offsets.append(record.offset)
            except CorruptRecordError as error:
                try:
                    world.machine.records_damaged(A, batch.base_offset, error, world.now)
                except CorruptRecordError as told:
                    self.errors.append(told)
                break
            self.positions.append(world.machine.position(A) or 0)
        self.positions.append(world.machine.position(A) or 0)
        world.wait(MINUTE)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "entries",
    [[[0, 1, 2, 3], [3]], [[0, 1, 2], [1, 2]], [[0, 1, 2, 3, 4], [0]], [[4, 5], [2, 3]], [[0, 1], [0, 1], [2, 3]]],
    ids=str,
)
def test_entries_whose_offsets_go_back_or_repeat_are_corrupt(form: str, entries: list[list[int]]) -> None:
    reading = Reading(b"".join(one_entry(each, form) for each in entries))
    for _ in range(4):
        reading.fetch()
    assert reading.positions == sorted(reading.positions)
    assert reading.offsets == sorted(set(reading.offsets))
    assert reading.offsets[: len(entries[0])] == entries[0]
    assert reading.errors
    for error in reading.errors:
        assert isinstance(error, CorruptRecordError)
        assert (error.topic, error.partition) == ("a", 0)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("offsets", [[3, 4, 3], [0, 0], [5, 7, 6, 8], [*range(300), 299], [*range(256), 3]], ids=len)
def test_records_of_an_entry_whose_offsets_go_back_or_repeat_are_corrupt(form: str, offsets: list[int]) -> None:
    reading = Reading(one_entry(offsets, form))
    for _ in range(4):
        reading.fetch()
    assert reading.positions == sorted(reading.positions)
    assert reading.errors
    assert all(isinstance(error, CorruptRecordError) and error.topic == "a" for error in reading.errors)


@pytest.mark.parametrize("magic", [0, 1])
def test_overlapping_wrapper_messages_are_corrupt(magic: int) -> None:
    """The header of a wrapper message has only the last offset."""
    sets = ([0, 1, 2, 3], [2, 3, 4, 5])
    reading = Reading(b"".join(messages(each, magic=magic, codec=Codec.GZIP) for each in sets))
    reading.fetch()
    assert reading.offsets == [0, 1, 2, 3]
    assert reading.positions[-1] == 4


@given(
    st.lists(
        st.tuples(st.sampled_from(FORMS), st.lists(st.integers(0, 12), min_size=1, max_size=4)), min_size=1, max_size=5
    )
)
def test_positions_never_go_back(entries: list[tuple[str, list[int]]]) -> None:
    reading = Reading(b"".join(one_entry(offsets, form) for form, offsets in entries))
    for _ in range(4):
        reading.fetch()
    assert reading.positions == sorted(reading.positions)
    assert all(isinstance(error, CorruptRecordError) for error in reading.errors)


def test_a_chunk_ends_in_the_error_for_every_reader() -> None:
    error = backward_error(A, 3, 1)
    chunk = Chunk(memoryview(batch_bytes(0, [0, 1, 2])), A, 0, 3, max_unpacked_bytes=1 << 20, behind=error)
    assert chunk.next_batch() is not None
    with pytest.raises(CorruptRecordError, match="1 follows 2"):
        chunk.next_batch()


# Single fields


def fetched(**fields: Any) -> Callable[[World, SendFetch], None]:
    def answer(world: World, fetch: SendFetch) -> None:
        world.machine.fetch_answered(fetch, [FetchedPartition(A, 0, b"", **fields)], world.now, is_capped=True)

    return answer


def is_refused(world: World, text: str) -> None:
    """The answer is no progress and is logged; the request is repeated after a pause, and a lasting fault is raised."""
    state = world.machine.assignment.state(A)
    assert isinstance(state.trouble, RemoteProtocolError)
    assert text in str(state.trouble)
    assert (state.trouble.topic, state.trouble.partition) == ("a", 0)
    assert state.retry_at > world.now


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"end_offset": -5}, "high watermark or last stable offset is -5"),
        ({"preferred_replica": -7}, "names -7 as the replica"),
        ({"preferred_replica": 1}, "names 1 as the replica"),
        ({"aborted": (Aborted(-3, 9),)}, "producer id 9, first offset -3"),
        ({"aborted": (Aborted(3, -9),)}, "producer id -9, first offset 3"),
        ({"diverging": EpochEnd(0, 0)}, "diverge at offset 0"),
        ({"diverging": EpochEnd(-4, 0)}, "diverge at offset 0 of leader epoch -4"),
        ({"diverging": EpochEnd(0, -4)}, "diverge at offset -4"),
        ({"fault": "the answer to a fetch of session 5 is of session -1"}, "is of session -1"),
    ],
)
def test_a_fetch_answer_with_an_impossible_field_is_discarded(fields: dict[str, Any], text: str) -> None:
    world = World({A: 1})
    world.start()
    fetch = world.fetch()
    world.flights.remove(fetch)
    fetched(**fields)(world, fetch)
    world.poll()
    assert world.fetches() == []
    is_refused(world, text)
    assert world.machine.position(A) == 0


@pytest.mark.parametrize("diverging", [EpochEnd(3, 10), EpochEnd(4, 2), EpochEnd(-1, 2)])
def test_an_impossible_diverging_epoch_is_refused(diverging: EpochEnd) -> None:
    world = World({A: 1})
    world.logs[A].leader_epoch = 3
    world.logs[A].append(4)
    world.start()
    world.answer(world.fetch())
    assert world.read_offsets() == {A: [0, 1, 2, 3]}
    fetch = world.fetch()
    world.flights.remove(fetch)
    assert fetch.asks[0].last_epoch == 3
    fetched(diverging=diverging)(world, fetch)
    is_refused(world, "diverge")
    assert world.machine.position(A) == 4


def test_a_partition_missing_from_the_answer_is_named() -> None:
    world = World({A: 1})
    world.start()
    fetch = world.fetch()
    world.flights.remove(fetch)
    world.machine.fetch_answered(fetch, [], world.now, is_capped=True)
    is_refused(world, "leaves the partition out")


@pytest.mark.parametrize("offset", [-1, -5])
def test_a_negative_log_end_offset_is_refused(offset: int) -> None:
    world = World({A: 1})
    world.refresh()
    world.machine.assignment.assign(world.logs)
    world.poll()
    (listing,) = [each for each in world.flights if isinstance(each, SendListOffsets)]
    world.flights.remove(listing)
    world.machine.offsets_listed(listing, [ListedOffset(A, 0, offset)], world.now)
    is_refused(world, f"is {offset}")
    assert world.machine.assignment.state(A).position is None


@pytest.mark.parametrize("end", [EpochEnd(0, -9), EpochEnd(-2, 3), EpochEnd(9, 3)])
def test_an_impossible_end_of_a_leader_epoch_is_no_truncation(end: EpochEnd) -> None:
    world = World({A: 1})
    world.logs[A].append(4)
    world.start()
    world.answer(world.fetch())
    world.read_offsets()
    world.move_leader(A, 2)
    world.refresh()
    world.poll()
    (question,) = [each for each in world.flights if isinstance(each, SendEpochs)]
    world.flights.remove(question)
    world.machine.epochs_answered(question, [FoundEpoch(A, 0, end)], world.now)
    is_refused(world, "is said to end")
    assert world.machine.position(A) == 4
    assert world.cut_off == []


def test_replicas_that_name_each_other_are_asked_with_pauses() -> None:
    world = World({A: 1, TopicPartition("a", 1): 2})
    world.start()
    asked = 0
    for _ in range(20):
        for fetch in world.fetches():
            asked += any(ask.tp == A for ask in fetch.asks)
            world.flights.remove(fetch)
            other = 3 - fetch.node_id
            answers = [
                FetchedPartition(ask.tp, 0, b"", preferred_replica=other if ask.tp == A else -1) for ask in fetch.asks
            ]
            world.machine.fetch_answered(fetch, answers, world.now, is_capped=True)
            world.poll()
    assert asked == 2


@pytest.mark.parametrize("answered", [-1, 6])
def test_another_fetch_session_id_is_a_fault_of_every_partition(answered: int) -> None:
    session = FetchSession()
    world = World({A: 1})
    world.start()
    fetch = world.fetch()
    first = FetchCall(fetch, session, min_bytes=1, is_committed_only=False)
    first(BrokerVersions.of_release("2.8"))
    assert first.read(FetchResponse(session_id=5)) == []
    second = FetchCall(fetch, session, min_bytes=1, is_committed_only=False)
    second(BrokerVersions.of_release("2.8"))
    (answer,) = second.read(FetchResponse(session_id=answered))
    assert answer.fault == f"the answer to a fetch of session 5 is of session {answered}"
    third = FetchCall(fetch, session, min_bytes=1, is_committed_only=False)
    assert third(BrokerVersions.of_release("2.8")).session_epoch == 0


def test_brokers_without_an_address_are_ignored() -> None:
    endpoints = [
        NodeEndpoint(node_id=node_id, host=host, port=port)
        for node_id, host, port in [(-1, "h", 9092), (1, "", 9092), (2, "h", 0), (3, "h", 70_000), (4, "h", 9092)]
    ]
    call = FetchCall(SendFetch(1, (), 1, 0.5), FetchSession(), min_bytes=1, is_committed_only=False)
    _, brokers = call.leaders(FetchResponse(node_endpoints=endpoints))
    assert [each.node_id for each in brokers] == [4]
