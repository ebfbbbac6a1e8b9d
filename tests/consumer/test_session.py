"""Fetch sessions: after any history, what the broker reads is what we want.

The broker's half is that of the embedded broker; requests travel as messages.
"""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from pykafka08.broker.fetch_sessions import FetchSessions, PartitionKey
from pykafka08.consumer.actions import FetchAsk, SendFetch
from pykafka08.consumer.requests import FetchCall
from pykafka08.consumer.session import LAST_EPOCH, FetchSession
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.fetch import FetchRequest, FetchResponse
from pykafka08.protocol.schema import ZERO_UUID, VersionRange
from pykafka08.protocol.versions import BrokerVersions
from pykafka08.records.record import TopicPartition

PARTITIONS = [TopicPartition(topic, number) for topic in "ab" for number in range(3)]
IDS = [UUID(int=number) for number in range(1, 5)]


def ask(tp: TopicPartition, offset: int = 0, topic_id: UUID | None = None) -> FetchAsk:
    return FetchAsk(tp, offset, 100, leader_epoch=1, topic_id=topic_id)


def test_a_full_fetch_then_only_what_changed() -> None:
    session = FetchSession()
    a, b, c = (ask(tp) for tp in PARTITIONS[:3])
    assert session.step([a, b], uses_ids=False) == (0, 0, (a, b), ())
    session.answered(7)
    assert session.step([a, b], uses_ids=False) == (7, 1, (), ())
    session.answered(7)
    moved = b._replace(offset=5)
    assert session.step([moved, c], uses_ids=False) == (7, 2, (moved, c), (a,))
    session.answered(7)
    assert session.step([c, moved], uses_ids=False) == (7, 3, (), ())


def test_a_failure_closes_the_session_and_opens_another() -> None:
    session = FetchSession()
    asks = [ask(PARTITIONS[0])]
    session.step(asks, uses_ids=False)
    session.answered(7)
    session.step(asks, uses_ids=False)
    session.failed()
    assert session.step(asks, uses_ids=False) == (7, 0, tuple(asks), ())
    session.answered(8)
    assert session.step(asks, uses_ids=False) == (8, 1, (), ())


def test_a_broker_without_room_is_asked_in_full_each_time() -> None:
    session = FetchSession()
    asks = [ask(PARTITIONS[0])]
    for _ in range(3):
        assert session.step(asks, uses_ids=False) == (0, 0, tuple(asks), ())
        session.answered(0)


def test_a_topic_made_again_is_forgotten_by_its_old_id() -> None:
    session = FetchSession()
    old, new = ask(PARTITIONS[0], 9, IDS[0]), ask(PARTITIONS[0], 0, IDS[1])
    session.step([old], uses_ids=True)
    session.answered(7)
    assert session.step([new], uses_ids=True) == (7, 1, (new,), (old,))
    assert session.name_of(IDS[1]) == "a"
    assert session.name_of(IDS[2]) == ""


def test_ids_and_names_do_not_share_a_session() -> None:
    session = FetchSession()
    with_id = ask(PARTITIONS[0], 0, IDS[0])
    session.step([with_id], uses_ids=True)
    session.answered(7)
    assert session.step([with_id], uses_ids=False).epoch == 0
    session.answered(8)
    assert session.step([with_id], uses_ids=False).epoch == 1
    session.answered(8)
    assert session.step([with_id], uses_ids=True).epoch == 0


def test_epochs_go_round_without_zero() -> None:
    session = FetchSession()
    session.step([], uses_ids=False)
    session.answered(7)
    session._epoch = LAST_EPOCH
    session.step([], uses_ids=False)
    session.answered(7)
    assert session.step([], uses_ids=False).epoch == 1


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    ],
)
def test_an_error_of_the_session_is_no_error_of_a_partition(code: ErrorCode) -> None:
    session = FetchSession()
    fetch = SendFetch(1, (ask(PARTITIONS[0]),), 1000, 0.5)
    versions = BrokerVersions({1: VersionRange(0, 12)}, "test")

    def call() -> FetchCall:
        made = FetchCall(fetch, session, min_bytes=1, is_committed_only=False)
        made(versions)
        return made

    call().read(FetchResponse(session_id=7))
    second = call()
    assert second.read(FetchResponse(error_code=code)) == []
    assert second.is_partial
    # A broker that refuses the full fetch as well is in trouble, and its partitions with it.
    third = call()
    assert [answer.error_code for answer in third.read(FetchResponse(error_code=code))] == [code]
    assert not third.is_partial


class Sessions(RuleBasedStateMachine):
    """One reader and one broker, with everything in between that may go wrong."""

    @initialize(version=st.sampled_from([7, 12, 13, 18]))
    def begin(self, version: int) -> None:
        self.version = version
        self.has_ids = True
        self.session = FetchSession()
        self.broker = FetchSessions()
        self.ids = {"a": IDS[0], "b": IDS[1]}
        self.wanted: dict[TopicPartition, int] = {PARTITIONS[0]: 0}

    @rule(tp=st.sampled_from(PARTITIONS), offset=st.integers(0, 3))
    def want(self, tp: TopicPartition, offset: int) -> None:
        self.wanted[tp] = offset

    @rule(tp=st.sampled_from(PARTITIONS))
    def want_no_more(self, tp: TopicPartition) -> None:
        if len(self.wanted) > 1:
            self.wanted.pop(tp, None)

    @rule(topic=st.sampled_from("ab"), topic_id=st.sampled_from(IDS))
    def make_topic_again(self, topic: str, topic_id: UUID) -> None:
        if topic_id not in self.ids.values():
            self.ids[topic] = topic_id

    @rule(has_ids=st.booleans())
    def learn_or_lose_ids(self, has_ids: bool) -> None:
        self.has_ids = has_ids

    @rule()
    def restart_broker(self) -> None:
        self.broker = FetchSessions()

    @rule()
    def evict(self) -> None:
        self.broker._sessions.clear()

    @rule(fate=st.sampled_from(["answered", "answered", "request lost", "answer lost", "no room"]))
    def fetch(self, fate: str) -> None:
        asks = tuple(
            ask(tp, offset, self.ids[tp.topic] if self.has_ids else None) for tp, offset in self.wanted.items()
        )
        call = FetchCall(SendFetch(1, asks, 1000, 0.5), self.session, min_bytes=1, is_committed_only=False)
        versions = BrokerVersions({1: VersionRange(0, self.version)}, "test")
        request = call(versions)
        version = versions.pick(type(request))
        request = FetchRequest.decode(request.encode(version), version)
        if fate == "request lost":
            call.fail()
            return
        session, is_incremental, code = self.broker.resolve(request, uses_ids=version >= 13)
        if fate == "answer lost":
            call.fail()
            return
        if code:
            assert is_incremental, "a full fetch is refused by nobody"
            assert call.read(FetchResponse(error_code=code)) == []
            return
        assert session is not None
        if fate == "no room" and not is_incremental:
            del self.broker._sessions[session.session_id]
            call.read(FetchResponse(session_id=0))
            return
        call.read(FetchResponse(session_id=session.session_id))
        uses_ids = version >= 13
        expected = {}
        for each in asks:
            name = ("", each.topic_id) if uses_ids else (each.tp.topic, ZERO_UUID)
            assert name[1] is not None
            expected[PartitionKey(name[0], name[1], each.tp.partition)] = each.offset
        assert {key: asked.fetch_offset for key, asked in session.partitions.items()} == expected
        assert all(self.session.name_of(each.topic_id) == each.tp.topic for each in asks if each.topic_id)


TestSessions = Sessions.TestCase
TestSessions.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
