"""The transaction coordinator by itself: states, epochs, markers.  What real brokers answer: ``transaction_story``."""

from __future__ import annotations

import pytest

from pykafka08.broker.append import append
from pykafka08.broker.groups import CommittedOffset, GroupLimits, Groups
from pykafka08.broker.personality import Personality
from pykafka08.broker.server import EmbeddedCluster
from pykafka08.broker.state import NO_LEADER, Partition, Topics
from pykafka08.broker.timers import Timers
from pykafka08.broker.transaction import LARGEST_EPOCH, NO_IDENTITY, Identity, Transaction, TransactionState
from pykafka08.broker.transactions import Transactions
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import ConfigError
from tests.broker.raw import batch, connect
from tests.broker.transaction_story import tell

ID = "t-id"
KEY = ("t", 0)


class World:
    """A coordinator with one topic of two partitions, and a clock that the test moves."""

    def __init__(self) -> None:
        self.time = 0.0
        self.timers = Timers(lambda: self.time)
        self.topics = Topics(lambda: [0])
        self.topics.create("t", 2, 1)
        self.groups = Groups(self.timers, GroupLimits(1, 1000, 0))
        self.ids = iter(range(100, 200))
        self.transactions = Transactions(
            self.topics, self.groups, self.timers, new_producer_id=self.ids.__next__, now_ms=lambda: 0
        )

    def at(self, time: float) -> None:
        self.time = time
        self.timers.fire_due()

    @property
    def known(self) -> Transaction:
        found = self.transactions.find(ID)
        assert found is not None
        return found

    @property
    def partition(self) -> Partition:
        found = self.topics.find_partition(*KEY)
        assert found is not None
        return found

    def init(self, expected: Identity = NO_IDENTITY, timeout_ms: int = 60_000) -> Identity:
        identity, code = self.transactions.init_producer(ID, timeout_ms, expected)
        assert code == 0
        return identity

    def add(self, who: Identity, *, is_v2: bool = False) -> int:
        return self.transactions.add(ID, who, partitions=[KEY], groups=["g"], is_v2=is_v2)

    def end(self, who: Identity, *, is_commit: bool, is_v2: bool = False) -> tuple[Identity, int]:
        return self.transactions.end(ID, who, is_commit=is_commit, is_v2=is_v2)

    def write(self, who: Identity, value: bytes, sequence: int = 0) -> int:
        records = batch(
            value, producer_id=who.producer_id, producer_epoch=who.epoch, base_sequence=sequence, is_transactional=True
        )
        return append(self.partition, records, Personality("3.5"), version=9, now_ms=0).error_code

    def values(self, *, committed: bool) -> list[bytes | None]:
        return [record.value for record in self.partition.log.records(is_committed=committed)]


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize("is_commit", [True, False])
@pytest.mark.parametrize("is_v2", [True, False])
def test_a_transaction_is_all_or_nothing(world: World, is_commit: bool, is_v2: bool) -> None:
    who = world.init()
    assert world.add(who, is_v2=is_v2) == 0
    assert world.write(who, b"v") == 0
    world.groups.pending_offsets.add("g", *who, "t", 1, CommittedOffset(7))
    assert world.partition.log.stable_offset == 0
    assert world.groups.pending_offsets.covers("g", "t", 1)
    after, code = world.end(who, is_commit=is_commit, is_v2=is_v2)
    assert (code, after.epoch) == (0, who.epoch + is_v2)
    assert world.values(committed=True) == ([b"v"] if is_commit else [])
    assert world.values(committed=False) == [b"v"]
    assert world.groups.offsets("g") == ({("t", 1): CommittedOffset(7)} if is_commit else {})
    assert not world.groups.pending_offsets.covers("g", "t", 1)
    assert world.partition.log.stable_offset == world.partition.log.end_offset == 2
    assert len(world.partition.log.transactions.aborted(0, 2)) == (not is_commit)


def test_a_new_producer_ends_what_was_open_and_fences(world: World) -> None:
    zombie = world.init()
    world.add(zombie)
    world.write(zombie, b"old")
    identity, code = world.transactions.init_producer(ID, 60_000)
    assert (identity, code) == (NO_IDENTITY, ErrorCode.CONCURRENT_TRANSACTIONS)
    new = world.init()
    assert new.producer_id == zombie.producer_id
    assert new.epoch > zombie.epoch
    assert world.values(committed=True) == []
    assert world.add(zombie) == ErrorCode.PRODUCER_FENCED
    assert world.end(zombie, is_commit=True)[1] == ErrorCode.PRODUCER_FENCED
    assert world.write(zombie, b"late", 1) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_transaction_that_takes_too_long_is_aborted(world: World) -> None:
    who = world.init(timeout_ms=5000)
    world.at(3)
    world.add(who)
    world.write(who, b"v")
    world.at(7.9)
    assert world.known.is_ongoing
    world.at(8)
    assert world.known.state is TransactionState.COMPLETE_ABORT
    assert world.values(committed=True) == []
    assert world.end(who, is_commit=True)[1] == ErrorCode.PRODUCER_FENCED
    assert world.transactions.init_producer(ID, 5000, who)[1] == ErrorCode.PRODUCER_FENCED


def test_a_time_out_counts_for_its_own_transaction_only(world: World) -> None:
    who = world.init(timeout_ms=5000)
    world.add(who)
    world.end(who, is_commit=True)
    world.at(4)
    world.add(who)
    world.at(6)
    assert world.known.is_ongoing


def test_while_markers_are_written_everything_else_waits(world: World) -> None:
    world.transactions.marker_delay = 1.0
    who = world.init()
    world.add(who)
    world.write(who, b"v")
    assert world.end(who, is_commit=True) == (who, 0)
    concurrent = ErrorCode.CONCURRENT_TRANSACTIONS
    assert world.end(who, is_commit=True)[1] == world.add(who) == concurrent
    assert world.end(who, is_commit=False)[1] == ErrorCode.INVALID_TXN_STATE
    assert world.transactions.init_producer(ID, 60_000)[1] == concurrent
    assert world.values(committed=True) == []
    world.at(1)
    assert world.values(committed=True) == [b"v"]
    assert world.end(who, is_commit=True)[1] == 0


def test_a_v2_end_can_be_asked_again_with_the_epoch_before(world: World) -> None:
    world.transactions.marker_delay = 1.0
    who = world.init()
    world.add(who, is_v2=True)
    after, _ = world.end(who, is_commit=True, is_v2=True)
    assert world.end(who, is_commit=True, is_v2=True)[1] == ErrorCode.CONCURRENT_TRANSACTIONS
    assert world.end(after, is_commit=True, is_v2=True)[1] == ErrorCode.PRODUCER_FENCED
    world.at(1)
    assert world.end(who, is_commit=True, is_v2=True) == (after, 0)
    assert world.end(who, is_commit=False, is_v2=True)[1] == ErrorCode.INVALID_TXN_STATE
    world.add(after, is_v2=True)
    assert world.end(who, is_commit=True, is_v2=True)[1] == ErrorCode.PRODUCER_FENCED


def test_a_marker_waits_for_a_leader_and_not_for_a_deleted_topic(world: World) -> None:
    who = world.init()
    world.transactions.add(ID, who, partitions=[("t", 0), ("t", 1), ("gone", 0)])
    world.write(who, b"v")
    world.partition.lead(NO_LEADER)
    assert world.end(who, is_commit=True)[1] == 0
    assert world.known.partitions == {KEY}
    world.at(1)
    assert world.add(who) == ErrorCode.CONCURRENT_TRANSACTIONS
    world.partition.lead(0)
    world.at(2)
    assert world.values(committed=True) == [b"v"]
    assert world.add(who) == 0


@pytest.mark.parametrize("is_v2", [True, False])
def test_an_exhausted_epoch_gives_a_new_id(world: World, is_v2: bool) -> None:
    who = world.init()
    world.known.identity = last = Identity(who.producer_id, LARGEST_EPOCH - 1)
    world.add(last, is_v2=is_v2)
    after, code = world.end(last, is_commit=True, is_v2=is_v2)
    assert code == 0
    if not is_v2:
        assert after == last
        after = world.init(last)
    assert (after.producer_id != who.producer_id, after.epoch) == (True, 0)
    if is_v2:
        assert world.end(last, is_commit=True, is_v2=True) == (after, 0)


def test_fencing_an_exhausted_epoch(world: World) -> None:
    who = world.init()
    world.known.identity = last = Identity(who.producer_id, LARGEST_EPOCH - 1)
    world.add(last)
    assert world.transactions.init_producer(ID, 60_000)[1] == ErrorCode.CONCURRENT_TRANSACTIONS
    assert world.init().producer_id != who.producer_id


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("release", "uses_v2"), [("0.11", False), ("2.4", False), ("3.6", False), ("3.9", False), ("4.3", True)]
)
async def test_every_release_tells_the_story(release: str, uses_v2: bool) -> None:
    async with EmbeddedCluster(1, release, {"t": 2}) as cluster, connect(cluster) as raw:
        lines = await tell(raw, release, "t", uses_v2=uses_v2)
        assert lines[-1].startswith("in the end, isolation 1: NONE a*bc*d*e* aborted [2, 5]")
        assert [record.value for record in cluster.records("t", 0, committed=True)] == [b"a", b"e"]
        assert [record.value for record in cluster.records("t", 0)] == [b"a", b"b", b"c", b"d", b"e"]
        assert cluster.transactions == {"id of t": "CompleteCommit"}
        fenced = "PRODUCER_FENCED" if release >= "2.7" else "INVALID_PRODUCER_EPOCH"
        assert f"commit of the zombie: {fenced}" in lines
        with pytest.raises(ConfigError, match="no transaction open"):
            cluster.expire_transaction("id of t")


@pytest.mark.anyio
async def test_the_feature_can_be_withheld() -> None:
    from pykafka08.protocol.messages.api_versions import ApiVersionsRequest

    for version, level in ((None, 2), (0, None)):
        async with EmbeddedCluster(1, "4.3", transaction_version=version) as cluster, connect(cluster) as raw:
            answer = await raw.ask(ApiVersionsRequest(client_software_name="raw", client_software_version="1"), 4)
            finalized = {each.name: each.max_version_level for each in answer.finalized_features}
            assert finalized.get("transaction.version") == level
