"""Transactions on embedded clusters: all or nothing, one producer at a time, whatever happens to brokers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, nullcontext, suppress
from typing import Any

import anyio
import pytest

from pykafka08 import (
    BrokerError,
    ClosedError,
    ConfigError,
    Consumer,
    EmbeddedCluster,
    ErrorCode,
    KafkaError,
    PartitionRevokedError,
    Producer,
    ProducerFencedError,
    RequestTimeoutError,
    TopicPartition,
    TransactionAbortedError,
    TransactionStateError,
    TransportError,
    UnsupportedVersionError,
)
from pykafka08.acl_operations import REFUSALS
from pykafka08.errors import AuthorizationError, ClientFailedError
from tests.consumer.groups import until
from tests.producer.clusters import FAST

pytestmark = pytest.mark.anyio

RELEASES = ["4.3", "3.9", "2.8", "2.4", "0.11"]
T = "t"
ID = "the-id"


@asynccontextmanager
async def opened(cluster: EmbeddedCluster, **settings: Any) -> AsyncIterator[Producer]:
    async with Producer(cluster.bootstrap_servers, transactional_id=ID, linger_ms=0, **settings) as producer:
        yield producer


def stored(cluster: EmbeddedCluster, *, committed: bool = True, topic: str = T) -> list[bytes | None]:
    return [
        record.value
        for partition in range(cluster.topics[topic])
        for record in cluster.records(topic, partition, committed=committed)
    ]


def ends_in(kind: type[BaseException], match: str | None = None) -> Any:
    """A block that ends with that exception."""
    return pytest.raises(kind, match=match)


def apis(cluster: EmbeddedCluster) -> list[str]:
    return [request.api for request in cluster.requests]


# --- all or nothing -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", RELEASES)
async def test_a_block_commits_at_its_end(release: str) -> None:
    async with EmbeddedCluster(3, release, {T: 3}) as cluster, opened(cluster) as producer:
        for number in range(3):
            async with producer.transaction():
                await producer.send_many(T, [b"%d-%d" % (number, index) for index in range(50)])
                producer.enqueue(T, b"%d-last" % number, partition=1)
                assert len(stored(cluster)) == 51 * number
            assert len(stored(cluster)) == 51 * (number + 1)
        assert cluster.transactions == {ID: "CompleteCommit"}


@pytest.mark.parametrize("release", RELEASES)
async def test_an_exception_aborts(release: str) -> None:
    async with EmbeddedCluster(2, release, {T: 2}) as cluster, opened(cluster) as producer:
        with ends_in(ZeroDivisionError):
            async with producer.transaction():
                await producer.send(T, b"sent")
                raise ZeroDivisionError
        async with producer.transaction():
            await producer.send(T, b"next")
        assert stored(cluster) == [b"next"]
        assert sorted(map(bytes, filter(None, stored(cluster, committed=False)))) == [b"next", b"sent"]


async def test_what_is_not_sent_yet_is_not_sent_after_an_abort() -> None:
    async with EmbeddedCluster(1, topics={T: 1}) as cluster, opened(cluster) as producer:
        cluster.faults.delay("Produce", 0.2, times=1)
        with ends_in(ZeroDivisionError):
            async with producer.transaction():
                deliveries = [producer.enqueue(T, b"x" * 100_000) for _ in range(20)]
                raise ZeroDivisionError
        outcomes = []
        for delivery in deliveries:
            try:
                await delivery
                outcomes.append("acknowledged")
            except TransactionAbortedError:
                outcomes.append("aborted")
        assert "aborted" in outcomes
        assert stored(cluster) == []
        async with producer.transaction():
            await producer.send(T, b"next")
        assert stored(cluster) == [b"next"]
        counters = producer.counters
        assert counters.enqueued == counters.acknowledged + counters.failed == 21


async def test_a_block_with_nothing_in_it_asks_nobody() -> None:
    async with EmbeddedCluster(1, topics={T: 1}) as cluster, opened(cluster) as producer:
        async with producer.transaction():
            pass
        assert "EndTxn" not in apis(cluster)


@pytest.mark.parametrize("release", ["4.3", "2.8", "0.11"])
async def test_a_cancelled_block_aborts(release: str) -> None:
    async with EmbeddedCluster(1, release, {T: 1}) as cluster, opened(cluster) as producer:
        with anyio.CancelScope() as scope:
            async with producer.transaction():
                await producer.send(T, b"cancelled")
                scope.cancel()
                await anyio.sleep_forever()
        assert scope.cancelled_caught
        assert cluster.transactions == {ID: "CompleteAbort"}
        async with producer.transaction():
            await producer.send(T, b"next")
        assert stored(cluster) == [b"next"]


async def test_offsets_count_with_the_records() -> None:
    async with EmbeddedCluster(2, topics={T: 1}) as cluster, opened(cluster) as producer:
        tp = TopicPartition(T, 0)
        async with Consumer(
            bootstrap_servers=cluster.bootstrap_servers, group_id="g", enable_auto_commit=False
        ) as consumer:
            for offset, fails in ((3, False), (7, True)):
                try:
                    async with producer.transaction():
                        await producer.send(T, b"v")
                        await producer.send_offsets({tp: offset}, group_id="g")
                        if fails:
                            raise ZeroDivisionError
                except ZeroDivisionError:
                    pass
                committed = (await consumer.committed([tp]))[tp]
                assert committed is not None
                assert committed.offset == 3


@pytest.mark.parametrize("release", ["4.3", "2.8", "0.11"])
async def test_readers_of_committed_records_see_exactly_them(release: str) -> None:
    async with EmbeddedCluster(2, release, {T: 1}) as cluster:
        settings = {"bootstrap_servers": cluster.bootstrap_servers, "auto_offset_reset": "earliest"}
        async with (
            opened(cluster) as producer,
            Consumer(T, isolation_level="read_committed", **settings) as committed,
            Consumer(T, **settings) as everything,
        ):
            for number in range(6):
                try:
                    async with producer.transaction():
                        await producer.send_many(T, [b"%d" % number] * 10)
                        if number % 2:
                            raise ZeroDivisionError
                except ZeroDivisionError:
                    pass
            read = [await committed.getone(timeout=20) for _ in range(30)]
            assert [record.value for record in read] == [b"%d" % number for number in (0, 2, 4) for _ in range(10)]
            assert len([await everything.getone(timeout=20) for _ in range(60)]) == 60
            async with producer.transaction():
                await producer.send(T, b"open")
                assert (await everything.getone(timeout=20)).value == b"open"
                assert await committed.getmany(timeout=0.2) == []
            assert (await committed.getone(timeout=20)).value == b"open"


# --- one producer at a time -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", RELEASES)
async def test_a_zombie_is_fenced(release: str) -> None:
    async with EmbeddedCluster(2, release, {T: 2}) as cluster, opened(cluster) as zombie:
        with ends_in(ProducerFencedError, match=ID):
            async with zombie.transaction():
                await zombie.send(T, b"old", partition=0)
                async with opened(cluster) as successor, successor.transaction():
                    await successor.send(T, b"new", partition=0)
        assert stored(cluster) == [b"new"]
        for _ in range(2):
            with ends_in(ProducerFencedError):
                async with zombie.transaction():
                    await zombie.send(T, b"again")
        with ends_in(ProducerFencedError):
            zombie.enqueue(T, b"again")
        async with opened(cluster) as successor, successor.transaction():
            await successor.send(T, b"newer", partition=0)
        assert stored(cluster) == [b"new", b"newer"]


@pytest.mark.parametrize("release", [*RELEASES, "1.1"])
@pytest.mark.parametrize("cause", ["no such partition", "cut off"])
async def test_an_id_that_another_has_is_not_taken_back(release: str, cause: str) -> None:
    async def cut(*_: Any, **__: Any) -> None:
        raise TransportError("cut")

    settings = {"max_block_ms": 30_000, "delivery_timeout_ms": 1_000, "request_timeout_ms": 1_000}
    async with EmbeddedCluster(1, release, {T: 1}) as cluster, opened(cluster, **FAST, **settings) as zombie:
        async with zombie.transaction():
            await zombie.send(T, b"first")
        connections = zombie._client._connections
        dial = connections._dial
        if cause == "cut off":
            connections._dial = cut  # type: ignore[assignment]
            for each in list(connections):
                await each.aclose()
            zombie._transactions._max_block = 0.5
            with ends_in(KafkaError):
                async with zombie.transaction():
                    await zombie.send(T, b"second")
            zombie._transactions._max_block = 30
        async with opened(cluster) as successor:
            async with successor.transaction():
                await successor.send(T, b"second")
            connections._dial = dial
            if cause == "no such partition":
                with ends_in(KafkaError):
                    async with zombie.transaction():
                        await zombie.send(T, b"second", partition=7)
            with ends_in(ProducerFencedError):
                async with zombie.transaction():
                    await zombie.send(T, b"second")
            async with successor.transaction():
                await successor.send(T, b"third")
        assert stored(cluster) == [b"first", b"second", b"third"]


@pytest.mark.parametrize("release", ["4.3", "2.8"])
async def test_a_fenced_producer_says_so_where_a_send_failed(release: str) -> None:
    async with EmbeddedCluster(1, release, {T: 1}) as cluster, opened(cluster) as zombie:
        with ends_in(ProducerFencedError) as raised:
            async with zombie.transaction():
                await zombie.send(T, b"old")
                async with opened(cluster):
                    pass
                await zombie.send(T, b"late")
        assert isinstance(raised.value.__cause__, KafkaError)
        assert stored(cluster) == []


@pytest.mark.parametrize("release", ["3.9", "2.8", "0.11"])
@pytest.mark.parametrize("late", ["nothing", "send", "send_offsets"])
async def test_a_transaction_time_out_ends_the_producer_before_kip_890(release: str, late: str) -> None:
    async with EmbeddedCluster(1, release, {T: 1}) as cluster, opened(cluster) as producer:
        with ends_in(ProducerFencedError, match="transaction_timeout_ms"):
            async with producer.transaction():
                await outlive(cluster, producer, late)
        assert stored(cluster) == []
        with ends_in(ProducerFencedError):
            async with producer.transaction():
                await producer.send(T, b"next")


@pytest.mark.parametrize(
    ("late", "error"), [("nothing", TransactionAbortedError), ("send", BrokerError), ("send_offsets", KafkaError)]
)
async def test_the_next_transaction_can_begin_after_a_time_out(late: str, error: type[KafkaError]) -> None:
    async with EmbeddedCluster(1, "4.3", {T: 1}) as cluster, opened(cluster) as producer:
        with ends_in(error) as raised:
            async with producer.transaction():
                await outlive(cluster, producer, late)
        assert not isinstance(raised.value, ProducerFencedError)
        async with producer.transaction():
            await producer.send(T, b"next")
        assert stored(cluster) == [b"next"]
        if late == "nothing":
            assert "transaction_timeout_ms" in str(raised.value)
            assert ID in str(raised.value)
            assert getattr(raised.value.__cause__, "broker", None) is not None


async def outlive(cluster: EmbeddedCluster, producer: Producer, late: str) -> None:
    """In a transaction: let it time out, and then send one more request."""
    await producer.send(T, b"late")
    cluster.expire_transaction(ID)
    if late == "send":
        await producer.send(T, b"later")
    elif late == "send_offsets":
        await producer.send_offsets({TopicPartition(T, 0): 1}, "g")


async def test_the_time_out_is_the_coordinators() -> None:
    async with (
        EmbeddedCluster(1, topics={T: 1}) as cluster,
        opened(cluster, transaction_timeout_ms=200) as producer,
    ):
        with ends_in(TransactionAbortedError, match="transaction_timeout_ms"):
            async with producer.transaction():
                await producer.send(T, b"late")
                await until(lambda: cluster.transactions[ID] == "CompleteAbort")
        assert stored(cluster) == []


# --- calls that have no place ---------------------------------------------------------------------------------------


async def test_records_go_into_blocks_and_nowhere_else() -> None:
    async with EmbeddedCluster(1, topics={T: 1}) as cluster, opened(cluster) as producer:
        for _ in range(2):
            for call in (producer.send(T, b"v"), producer.send_many(T, [b"v"]), producer.send_offsets({}, "g")):
                if "send_offsets" in call.__qualname__:
                    await call  # nothing to commit
                    continue
                with ends_in(TransactionStateError, match="transaction"):
                    await call
            with ends_in(TransactionStateError, match="transaction"):
                producer.enqueue(T, b"v")
            with ends_in(TransactionStateError, match="transaction"):
                await producer.send_offsets({TopicPartition(T, 0): 1}, "g")
            await producer.flush()
            async with producer.transaction():
                await producer.send(T, b"good")
        assert stored(cluster) == [b"good"] * 2


async def test_one_at_a_time() -> None:
    async with EmbeddedCluster(1, topics={T: 1}) as cluster, opened(cluster) as producer:
        async with producer.transaction():
            with ends_in(TransactionStateError, match="one at a time"):
                async with producer.transaction():
                    raise AssertionError
            await producer.send(T, b"v")
        assert stored(cluster) == [b"v"]


async def test_a_producer_without_an_id_has_no_transactions() -> None:
    async with EmbeddedCluster(1, topics={T: 1}) as cluster:
        async with Producer(cluster.bootstrap_servers) as producer:
            with ends_in(TransactionStateError, match="transactional_id"):
                producer.transaction()
            with ends_in(TransactionStateError, match="transactional_id"):
                await producer.send_offsets({TopicPartition(T, 0): 1}, "g")
        with ends_in(ClosedError):
            producer.transaction()
    for settings in ({"enable_idempotence": False}, {"acks": 1}):
        with ends_in(ConfigError, match="transactional_id"):
            Producer("localhost:1", transactional_id=ID, **settings)


@pytest.mark.parametrize("release", ["0.10.2", "0.9.0", "0.8.2"])
async def test_below_0_11_there_are_none(release: str) -> None:
    async with EmbeddedCluster(1, release, {T: 1}) as cluster:
        with ends_in(UnsupportedVersionError, match=r"transactions need Kafka 0\.11"):
            async with opened(cluster):
                raise AssertionError


async def test_a_time_out_that_the_brokers_refuse() -> None:
    async with EmbeddedCluster(1, topics={T: 1}) as cluster:
        with ends_in(BrokerError) as raised:
            async with opened(cluster, transaction_timeout_ms=3_600_000):
                raise AssertionError
        assert raised.value.code is ErrorCode.INVALID_TRANSACTION_TIMEOUT
        assert "transaction_timeout_ms is above" in str(raised.value)


async def test_what_offsets_need() -> None:
    async with EmbeddedCluster(1, topics={T: 1}) as cluster, opened(cluster) as producer:
        servers = cluster.bootstrap_servers
        with ends_in(ConfigError, match="group_id"):
            await producer.send_offsets({TopicPartition(T, 0): 1})
        async with Consumer(T, bootstrap_servers=servers, group_id="g") as consumer:
            with ends_in(ConfigError, match="enable_auto_commit"):
                await producer.send_offsets(consumer)
            with ends_in(ConfigError, match="group_id"):
                await producer.send_offsets(consumer, "g")
        async with Consumer(T, bootstrap_servers=servers) as consumer:
            with ends_in(ConfigError, match="group_id"):
                await producer.send_offsets(consumer)


# --- trouble --------------------------------------------------------------------------------------------------------

WAYS_OF_LOSING = ["close_before", "close_after", "drop_answer"]


def losses() -> Iterator[tuple[str, str]]:
    for api in ("InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn", "Produce"):
        for way in WAYS_OF_LOSING:
            yield api, way


@pytest.mark.parametrize("release", ["4.3", "2.8"])
@pytest.mark.parametrize(("api", "way"), list(losses()))
async def test_a_lost_answer_changes_nothing(release: str, api: str, way: str) -> None:
    async with EmbeddedCluster(2, release, {T: 2}) as cluster:
        getattr(cluster.faults, way)(api)
        async with opened(cluster, request_timeout_ms=1_500, delivery_timeout_ms=30_000) as producer:
            for number in range(3):
                async with producer.transaction():
                    await producer.send(T, b"%d" % number, partition=number % 2)
                    await producer.send_offsets({TopicPartition(T, 0): number}, "g")
        assert sorted(filter(None, stored(cluster))) == [b"0", b"1", b"2"]
        assert cluster.transactions == {ID: "CompleteCommit"}


RETRIABLE = [
    ("InitProducerId", ErrorCode.CONCURRENT_TRANSACTIONS),
    ("InitProducerId", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
    ("FindCoordinator", ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ("AddPartitionsToTxn", ErrorCode.CONCURRENT_TRANSACTIONS),
    ("AddPartitionsToTxn", ErrorCode.NOT_COORDINATOR),
    ("AddOffsetsToTxn", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
    ("TxnOffsetCommit", ErrorCode.NOT_COORDINATOR),
    ("TxnOffsetCommit", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
    ("EndTxn", ErrorCode.CONCURRENT_TRANSACTIONS),
    ("EndTxn", ErrorCode.NOT_COORDINATOR),
    ("Produce", ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ("Produce", ErrorCode.NOT_ENOUGH_REPLICAS),
]


@pytest.mark.parametrize("release", ["4.3", "2.8"])
@pytest.mark.parametrize(("api", "code"), RETRIABLE)
async def test_errors_that_pass(release: str, api: str, code: ErrorCode) -> None:
    async with EmbeddedCluster(2, release, {T: 2}) as cluster:
        cluster.faults.answer(api, code, times=2)
        async with opened(cluster) as producer:
            for number in range(2):
                async with producer.transaction():
                    await producer.send(T, b"%d" % number)
                    await producer.send_offsets({TopicPartition(T, 0): number}, "g")
        assert sorted(filter(None, stored(cluster))) == [b"0", b"1"]


ABORTABLE = [
    ("Produce", ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 2),
    ("Produce", ErrorCode.TRANSACTION_ABORTABLE, 1),
    ("Produce", ErrorCode.INVALID_TXN_STATE, 1),
    ("Produce", ErrorCode.INVALID_RECORD, 1),
    ("TxnOffsetCommit", ErrorCode.ILLEGAL_GENERATION, 1),
    ("TxnOffsetCommit", ErrorCode.GROUP_AUTHORIZATION_FAILED, 1),
    ("AddPartitionsToTxn", ErrorCode.TOPIC_AUTHORIZATION_FAILED, 1),
]


@pytest.mark.parametrize("release", ["4.3", "2.8", "0.11"])
@pytest.mark.parametrize(("api", "code", "times"), ABORTABLE)
async def test_errors_that_abort_let_the_next_one_begin(release: str, api: str, code: ErrorCode, times: int) -> None:
    async with EmbeddedCluster(1, release, {T: 1}) as cluster, opened(cluster) as producer:
        async with producer.transaction():
            await producer.send(T, b"before")
        cluster.faults.answer(api, code, times=times)
        is_asked = api != "AddPartitionsToTxn" or release != "4.3"
        # A transaction that was refused is not to be tried again, as others that were aborted.
        expected = AuthorizationError if code in REFUSALS.values() else TransactionAbortedError
        with ends_in(expected) if is_asked else nullcontext() as raised:
            async with producer.transaction():
                producer.enqueue(T, b"bad")
                await producer.send_offsets({TopicPartition(T, 0): 1}, "g")
        if is_asked:
            assert getattr(raised.value.__cause__ or raised.value, "code", None) is code
        async with producer.transaction():
            await producer.send(T, b"after")
        assert stored(cluster) == [b"before", *([] if is_asked else [b"bad"]), b"after"]


async def test_a_spoilt_transaction_refuses_more() -> None:
    async with EmbeddedCluster(1, topics={T: 1}) as cluster, opened(cluster) as producer:
        cluster.faults.answer("Produce", ErrorCode.INVALID_RECORD)
        with ends_in(TransactionAbortedError):
            async with producer.transaction():
                with ends_in(BrokerError):
                    await producer.send(T, b"bad")
                with ends_in(TransactionAbortedError, match="INVALID_RECORD"):
                    producer.enqueue(T, b"more")
                with ends_in(TransactionAbortedError, match="INVALID_RECORD"):
                    await producer.send_offsets({TopicPartition(T, 0): 1}, "g")
        assert stored(cluster) == []


@pytest.mark.parametrize(
    ("release", "api", "code"),
    [
        ("3.9", "EndTxn", ErrorCode.INVALID_TXN_STATE),
        ("4.3", "EndTxn", ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        ("4.3", "TxnOffsetCommit", ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT),
    ],
)
async def test_errors_that_end_the_producer(release: str, api: str, code: ErrorCode) -> None:
    async with EmbeddedCluster(1, release, {T: 1}) as cluster, opened(cluster) as producer:
        cluster.faults.answer(api, code)
        for _ in range(2):
            with ends_in(BrokerError) as raised:
                async with producer.transaction():
                    await producer.send(T, b"v")
                    await producer.send_offsets({TopicPartition(T, 0): 1}, "g")
            assert raised.value.code is code
            assert raised.value.broker is not None
            assert ID in str(raised.value)


async def test_repeated_error_codes_are_not_reported_as_silence() -> None:
    async with EmbeddedCluster(1, topics={T: 1}) as cluster, opened(cluster, max_block_ms=300, **FAST) as producer:
        cluster.faults.answer("EndTxn", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, times=None)
        with ends_in(RequestTimeoutError, match="COORDINATOR_LOAD_IN_PROGRESS") as raised:
            async with producer.transaction():
                await producer.send(T, b"v")
        text = str(raised.value)
        assert ID in text
        assert "max_block_ms" in text
        assert str(cluster.brokers[0].port) in text
        assert "did not answer" not in text
        assert raised.value.may_be_written
        cause = raised.value.__cause__
        assert isinstance(cause, BrokerError)
        assert (cause.api, cause.code) == ("EndTxn", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        cluster.faults.clear()


@pytest.mark.parametrize("release", ["4.3", "2.8"])
async def test_leaders_and_coordinators_move(release: str) -> None:
    async with EmbeddedCluster(3, release, {T: 2}) as cluster, opened(cluster) as producer:
        for number in range(12):
            async with producer.transaction():
                await producer.send(T, b"%d" % number, partition=number % 2)
                cluster.move_leader(T, number % 2, number % 3)
                cluster.move_coordinator(ID, (number + 1) % 3)
                cluster.move_coordinator("g", (number + 2) % 3)
                await producer.send(T, b"%d" % number, partition=number % 2)
                await producer.send_offsets({TopicPartition(T, 0): number}, "g")
        assert sorted(filter(None, stored(cluster))) == sorted([b"%d" % number for number in range(12)] * 2)


@pytest.mark.parametrize("release", ["4.3", "2.8"])
async def test_markers_that_come_late(release: str) -> None:
    async with (
        EmbeddedCluster(1, release, {T: 1}, transaction_marker_delay_ms=60) as cluster,
        opened(cluster) as producer,
    ):
        for number in range(4):
            async with producer.transaction():
                await producer.send(T, b"%d" % number)
        await until(lambda: cluster.transactions[ID] == "CompleteCommit")
        assert stored(cluster) == [b"0", b"1", b"2", b"3"]


async def test_kafka_4_before_the_cluster_has_agreed_on_kip_890() -> None:
    async with EmbeddedCluster(1, "4.3", {T: 1}, transaction_version=0) as cluster, opened(cluster) as producer:
        async with producer.transaction():
            await producer.send(T, b"v")
            await producer.send_offsets({TopicPartition(T, 0): 1}, "g")
        used = {request.api: request.version for request in cluster.requests}
        wanted = {"Produce": 11, "EndTxn": 4, "TxnOffsetCommit": 4, "AddPartitionsToTxn": 3}
        assert {api: used[api] for api in wanted} == wanted
        assert stored(cluster) == [b"v"]


async def test_kafka_4_adds_partitions_by_writing_to_them() -> None:
    async with EmbeddedCluster(1, "4.3", {T: 1}) as cluster, opened(cluster) as producer:
        for _ in range(2):
            async with producer.transaction():
                await producer.send(T, b"v")
                await producer.send_offsets({TopicPartition(T, 0): 1}, "g")
        assert not {"AddPartitionsToTxn", "AddOffsetsToTxn"} & set(apis(cluster))
        assert apis(cluster).count("InitProducerId") == 1


async def test_a_commit_that_nobody_confirms_is_settled_before_the_next() -> None:
    async with (
        EmbeddedCluster(1, "2.8", {T: 1}) as cluster,
        opened(cluster, max_block_ms=2_000, request_timeout_ms=1_500) as producer,
    ):
        cluster.faults.drop_answer("EndTxn", times=2)
        with ends_in(RequestTimeoutError, match="no end was confirmed"):
            async with producer.transaction():
                await producer.send(T, b"maybe")
        begun = False
        while not begun:
            try:
                async with producer.transaction():
                    begun = True
                    await producer.send(T, b"next")
            except RequestTimeoutError:
                assert not begun
        assert stored(cluster) == [b"maybe", b"next"]
        assert apis(cluster).count("InitProducerId") == 2


async def test_nobody_answers() -> None:
    async with EmbeddedCluster(1, topics={T: 1}) as cluster, opened(cluster, max_block_ms=300) as producer:
        async with producer.transaction():
            await producer.send(T, b"v")
        await cluster.stop_broker(0)
        with ends_in(KafkaError):
            async with producer.transaction():
                await producer.send_offsets({TopicPartition(T, 0): 1}, "g")
        await cluster.start_broker(0)
        assert stored(cluster) == [b"v"]


@pytest.mark.parametrize("release", ["4.3", "2.8", "0.11"])
@pytest.mark.parametrize("is_inside", [True, False])
async def test_a_producer_that_is_closed_aborts_its_transaction(release: str, is_inside: bool) -> None:
    async with EmbeddedCluster(2, release, {T: 1}) as cluster, opened(cluster) as producer:
        async with anyio.create_task_group() as tasks:
            with ends_in(ClosedError, match="closed in the midst"):
                async with producer.transaction():
                    await producer.send(T, b"v")
                    if is_inside:
                        await producer.aclose(timeout=20)
                    else:
                        tasks.start_soon(producer.aclose)
                        await until(lambda: cluster.transactions == {ID: "CompleteAbort"})
        assert cluster.transactions == {ID: "CompleteAbort"}
        assert stored(cluster) == []
        async with opened(cluster) as successor, successor.transaction():
            await successor.send(T, b"next")
        assert stored(cluster) == [b"next"]


async def test_nobody_waits_for_a_producer_that_is_closed() -> None:
    async with EmbeddedCluster(2, topics={T: 1}) as cluster, opened(cluster, max_block_ms=3_600_000) as producer:
        with ends_in(ClosedError):
            async with producer.transaction():
                await producer.send(T, b"v")
                for node_id in range(2):
                    await cluster.stop_broker(node_id)
                producer.enqueue(T, b"w")
                await producer.aclose(timeout=0.5)


async def test_closed_while_a_block_ends_it_waits() -> None:
    async with EmbeddedCluster(1, topics={T: 1}) as cluster, opened(cluster) as producer:
        cluster.faults.delay("Produce", 0.3, times=1)
        async with anyio.create_task_group() as tasks:
            async with producer.transaction():
                delivery = producer.enqueue(T, b"v")
                requests = len(cluster.requests)
                tasks.start_soon(closed_later, producer, cluster, requests)
        assert (await delivery).offset == 0
        assert cluster.transactions == {ID: "CompleteCommit"}
        assert stored(cluster) == [b"v"]


async def closed_later(producer: Producer, cluster: EmbeddedCluster, requests: int) -> None:
    await until(lambda: "Produce" in apis(cluster)[requests:])
    await producer.aclose()


@pytest.mark.parametrize("release", ["4.3", "2.8"])
@pytest.mark.parametrize("way", ["closed", "left", "dead"])
async def test_a_commit_that_is_not_waited_for_is_in_doubt(release: str, way: str) -> None:
    async def end(producer: Producer, cluster: EmbeddedCluster) -> None:
        await until(lambda: "EndTxn" in apis(cluster))
        if way == "closed":
            await producer.aclose(timeout=0)
        elif way == "left":
            await producer._close()
        else:
            producer._tasks.start("a task that dies", dies)

    async def dies() -> None:
        raise RuntimeError("died")

    async with EmbeddedCluster(1, release, {T: 1}) as cluster:
        cluster.faults.drop_answer("EndTxn", times=100)
        with suppress(ClientFailedError):
            async with opened(cluster) as producer, anyio.create_task_group() as tasks:
                tasks.start_soon(end, producer, cluster)
                with ends_in(ClientFailedError if way == "dead" else ClosedError, match="may or may not") as raised:
                    async with producer.transaction():
                        await producer.send(T, b"v")
                assert raised.value.may_be_written
        assert stored(cluster) == [b"v"]


async def test_what_is_in_doubt_is_so_in_its_own_block_only() -> None:
    async with EmbeddedCluster(1, "2.8", {T: 1}) as cluster, opened(cluster) as producer:
        cluster.faults.close_after("EndTxn")
        cluster.faults.answer("EndTxn", ErrorCode.PRODUCER_FENCED, skip=1)
        with ends_in(ProducerFencedError) as raised:
            async with producer.transaction():
                await producer.send(T, b"v")
        assert raised.value.may_be_written
        for _ in range(2):
            with ends_in(ProducerFencedError) as raised:
                async with producer.transaction():
                    raise AssertionError
            assert not raised.value.may_be_written
        with ends_in(ProducerFencedError) as raised:
            producer.enqueue(T, b"w")
        assert not raised.value.may_be_written
        assert stored(cluster) == [b"v"]


# --- copying --------------------------------------------------------------------------------------------------------


def reader(cluster: EmbeddedCluster, *, is_member: bool = True, **settings: Any) -> Consumer:
    return Consumer(
        *["in"] * is_member,
        bootstrap_servers=cluster.bootstrap_servers,
        group_id="copiers",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
        session_timeout_ms=6000,
        **settings,
    )


async def copy_some(consumer: Consumer, producer: Producer) -> None:
    """One transaction of a copy job; what was aborted is read again."""
    try:
        async with producer.transaction():
            for record in await consumer.getmany(max_records=25, timeout=0.2):
                producer.enqueue("out", record.value, partition=record.partition)
            await producer.send_offsets(consumer)
    except (TransactionAbortedError, PartitionRevokedError):
        await consumer.seek_to_committed()


async def filled(cluster: EmbeddedCluster, count: int) -> None:
    async with Producer(cluster.bootstrap_servers) as producer:
        for number in range(count):
            producer.enqueue("in", b"%d" % number, partition=number % 4)


def assert_copied(cluster: EmbeddedCluster) -> None:
    for partition in range(4):
        copied = [record.value for record in cluster.records("out", partition, committed=True)]
        assert copied == [record.value for record in cluster.records("in", partition)]


@pytest.mark.parametrize("release", ["4.3", "2.8", "0.11"])
@pytest.mark.parametrize("seed", [1, 2])
async def test_a_copy_is_exact_on_connections_that_die(release: str, seed: int) -> None:
    count = 1500
    async with EmbeddedCluster(3, release, {"in": 4, "out": 4}) as cluster:
        await filled(cluster, count)
        is_member = release != "0.11"  # which cannot fence members
        async with opened(cluster) as producer, reader(cluster, is_member=is_member) as consumer:
            if not is_member:
                consumer.assign(TopicPartition("in", partition) for partition in range(4))
            cluster.faults.connection_lives(0.5, 1.5, seed=seed)
            while len(stored(cluster, topic="out")) < count:
                await copy_some(consumer, producer)
        assert_copied(cluster)


@pytest.mark.parametrize("release", ["4.3", "2.8"])
async def test_two_copiers_share_the_work(release: str) -> None:
    count = 1000

    async def copier(name: str) -> None:
        async with (
            reader(cluster) as consumer,
            Producer(cluster.bootstrap_servers, transactional_id=name) as producer,
        ):
            while len(stored(cluster, topic="out")) < count:
                await copy_some(consumer, producer)

    async with EmbeddedCluster(3, release, {"in": 4, "out": 4}) as cluster:
        await filled(cluster, count)
        async with anyio.create_task_group() as copiers:
            copiers.start_soon(copier, "first")
            copiers.start_soon(copier, "second")
        assert_copied(cluster)


async def test_records_of_a_partition_that_went_are_not_committed() -> None:
    async with EmbeddedCluster(1, "2.8", {"in": 4, "out": 4}) as cluster:
        await filled(cluster, 40)
        async with reader(cluster) as consumer, opened(cluster) as producer:
            with ends_in(PartitionRevokedError):
                async with producer.transaction():
                    producer.enqueue("out", (await consumer.getone(timeout=20)).value)
                    before = consumer.assignment()
                    cluster.expire_sessions("copiers")
                    await until(lambda: consumer.assignment() != before)
                    await producer.send_offsets(consumer)
            assert stored(cluster, topic="out") == []


async def lose_partitions(cluster: EmbeddedCluster, consumer: Consumer) -> None:
    """They go, and come back."""
    before, requests = consumer.assignment(), len(cluster.requests)
    cluster.expire_sessions("copiers")
    await until(lambda: "SyncGroup" in apis(cluster)[requests:] and consumer.assignment() == before)


async def test_what_is_read_again_after_an_abort_is_not_committed_once_its_partition_went() -> None:
    async with EmbeddedCluster(1, "2.8", {"in": 1, "out": 4}) as cluster:
        async with Producer(cluster.bootstrap_servers) as filler:
            await filler.send_many("in", [b"v"] * 10)
        async with reader(cluster) as consumer, opened(cluster) as producer:

            async def copy(*, fails: bool = False) -> None:
                async with producer.transaction():
                    for record in records:
                        producer.enqueue("out", record.value)
                    await producer.send_offsets(consumer)
                    if fails:
                        raise ZeroDivisionError

            for _ in range(2):
                records = await consumer.getmany(timeout=20)
                assert len(records) == 10
                with ends_in(ZeroDivisionError):
                    await copy(fails=True)
                await consumer.seek_to_committed()
            records = await consumer.getmany(timeout=20)
            await lose_partitions(cluster, consumer)
            with ends_in(PartitionRevokedError):
                await copy()
            assert stored(cluster, topic="out") == []
            records = await consumer.getmany(timeout=20)
            await copy()
            await lose_partitions(cluster, consumer)
            records = []
            await copy()  # all that was handed out is committed
            assert len(stored(cluster, topic="out")) == 10


async def test_a_partition_that_goes_in_a_transaction_that_has_it_goes_with_an_abort() -> None:
    async with EmbeddedCluster(1, "2.8", {"in": 1, "out": 4}) as cluster:
        async with Producer(cluster.bootstrap_servers) as filler:
            await filler.send_many("in", [b"v"] * 10)
        async with reader(cluster) as consumer, opened(cluster) as producer:
            await consumer.getmany(timeout=20)
            with ends_in(ZeroDivisionError):
                async with producer.transaction():
                    await producer.send_offsets(consumer)
                    await lose_partitions(cluster, consumer)
                    raise ZeroDivisionError
            with ends_in(TransactionAbortedError):
                async with producer.transaction():
                    with ends_in(PartitionRevokedError):
                        await producer.send_offsets(consumer)
            async with producer.transaction():
                await producer.send_offsets(consumer)


@pytest.mark.parametrize("is_by_hand", [False, True])
async def test_partitions_of_which_nothing_is_uncommitted_may_go(is_by_hand: bool) -> None:
    async with EmbeddedCluster(1, "2.8", {"in": 4, "out": 4}) as cluster:
        await filled(cluster, 40)
        async with reader(cluster) as consumer, opened(cluster) as producer:
            if is_by_hand:
                while len(cluster.records("in", 0)) * 4 > sum(
                    [await consumer.position(tp) for tp in consumer.assignment()]
                ):
                    await consumer.getmany(timeout=20)
                assert await consumer.commit() == {}
            await lose_partitions(cluster, consumer)
            async with producer.transaction():
                await producer.send_offsets(consumer)


@pytest.mark.parametrize("release", ["2.4", "0.11"])
async def test_where_members_cannot_be_fenced_their_offsets_are_refused(release: str) -> None:
    async with EmbeddedCluster(2, release, {"in": 4, "out": 4}) as cluster:
        await filled(cluster, 40)
        async with opened(cluster) as producer:
            async with reader(cluster) as member:
                records = await member.getmany(timeout=20)
                with ends_in(UnsupportedVersionError, match=r"Kafka 2\.5.*assign\(\).*transactional_id"):
                    async with producer.transaction():
                        producer.enqueue("out", records[0].value)
                        await producer.send_offsets(member)
                assert cluster.transactions == {ID: "CompleteAbort"}
                async with producer.transaction():
                    producer.enqueue("out", b"by hand")
                    await producer.send_offsets({TopicPartition("in", 0): 3}, "copiers")
            async with reader(cluster, is_member=False) as consumer:
                consumer.assign([TopicPartition("in", 0)])
                assert (await consumer.getone(timeout=20)).offset == 3
                async with producer.transaction():
                    await producer.send_offsets(consumer)
                found = await consumer.committed([TopicPartition("in", 0)])
                assert [each and each.offset for each in found.values()] == [4]
        assert stored(cluster, topic="out") == [b"by hand"]


@pytest.mark.parametrize("release", ["4.3", "2.8"])
@pytest.mark.parametrize("patience", [0.0, 50.0])
async def test_partitions_that_go_while_a_block_has_their_offsets(
    release: str, patience: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rebalance waits for the block, for a while; their next owner waits for the transaction in any case."""
    monkeypatch.setattr("pykafka08.consumer.member.PATIENCE", patience)
    async with EmbeddedCluster(1, release, {"in": 4, "out": 4}) as cluster:
        await filled(cluster, 40)
        async with reader(cluster, heartbeat_interval_ms=100) as consumer, opened(cluster) as producer:
            mine, other = consumer.assignment(), reader(cluster, default_api_timeout_ms=10_000)
            async with anyio.create_task_group() as tasks:
                async with producer.transaction():
                    done = 0
                    while done < 40:
                        for record in await consumer.getmany(timeout=20):
                            producer.enqueue("out", record.value, partition=record.partition)
                            done += 1
                    await producer.send_offsets(consumer)
                    assert await consumer.getmany(timeout=0.1) == []  # nothing is in hand
                    tasks.start_soon(other.__aenter__)
                    if patience:
                        states = consumer._assignment.states
                        await until(lambda: any(state.is_held for state in states.values()))
                        await anyio.sleep(0.2)
                        assert consumer.assignment() == mine
                    else:
                        await until(lambda: 0 < len(consumer.assignment()) < 4)
                await until(lambda: 0 < len(consumer.assignment()) < 4)
            assert [await other.position(tp, timeout=20) for tp in other.assignment()] == [10, 10]
            await other.__aexit__()
        assert_copied(cluster)
