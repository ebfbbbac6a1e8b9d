"""No repeated answer makes a client send requests without pauses, whatever its reaction table says.

Each case is one API and one answer: an error code or a closed connection.  The embedded broker always gives that
answer, a whole client runs against it for a while of virtual time, and the requests in each second are counted.
The reaction tables give the codes: one for each reaction of each API, so that new rows are covered too.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import anyio
import anyio.to_thread
import pytest

from pykafka08 import Admin, Consumer, EmbeddedCluster, ErrorCode, KafkaError, NewTopic, Producer
from pykafka08.admin.asking import MOVED
from pykafka08.consumer.reactions import reaction_to as reaction_of_consumer
from pykafka08.errors import broker_error
from pykafka08.group.modern.reactions import reaction_to_beat
from pykafka08.group.reactions import Api
from pykafka08.group.reactions import reaction_to as reaction_of_group
from pykafka08.producer.reactions import reaction_to_code as reaction_of_producer
from pykafka08.producer.transactions import actions as calls
from pykafka08.producer.transactions.reactions import REACTIONS as REACTIONS_OF_TRANSACTIONS
from tests.virtual_loop import VirtualLoop

SECONDS = 12.0
"""Duration of a run in virtual time."""
MOST_IN_A_SECOND = 40
"""Maximum requests in one second: a client that opens sends several at once."""
MOST_AT_LENGTH = 10.0
"""Maximum requests a second in the second half before the close, long polls and heartbeats included."""

ONLY_BEFORE_KIP_890 = frozenset({"AddPartitionsToTxn", "AddOffsetsToTxn"})
"""APIs that a producer does not use where the cluster has agreed on ``transaction.version=2``."""

CODES = [code for code in ErrorCode if code != ErrorCode.NONE]
Play = Callable[[EmbeddedCluster], Awaitable[None]]


async def read(cluster: EmbeddedCluster, **settings: Any) -> None:
    async with Consumer("t", bootstrap_servers=cluster.bootstrap_servers, **settings) as consumer:
        async for _ in consumer:
            pass


async def read_in_group(cluster: EmbeddedCluster) -> None:
    await read(cluster, group_id="g", auto_commit_interval_ms=1000, auto_offset_reset="earliest")


async def read_in_new_group(cluster: EmbeddedCluster) -> None:
    await read(cluster, group_id="g", group_protocol="consumer", auto_offset_reset="earliest")


async def read_alone(cluster: EmbeddedCluster) -> None:
    await read(cluster, auto_offset_reset="earliest")


async def produce(cluster: EmbeddedCluster) -> None:
    async with Producer(cluster.bootstrap_servers) as producer:
        while True:
            await producer.send("t", b"x")
            await anyio.sleep(1)


async def produce_without_ids(cluster: EmbeddedCluster) -> None:
    async with Producer(cluster.bootstrap_servers, enable_idempotence=False) as producer:
        while True:
            await producer.send("t", b"x")
            await anyio.sleep(1)


async def produce_in_transactions(cluster: EmbeddedCluster) -> None:
    """Each transaction also commits the offsets of a consumer."""
    async with (
        Producer(cluster.bootstrap_servers, transactional_id="p") as producer,
        Consumer(
            "t",
            bootstrap_servers=cluster.bootstrap_servers,
            group_id="g",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        ) as consumer,
    ):
        await consumer.getone()
        async with producer.transaction():
            await producer.send("u", b"x")
            await producer.send_offsets(consumer)


async def administer(cluster: EmbeddedCluster) -> None:
    async with Admin(cluster.bootstrap_servers) as admin:
        await admin.create_topics([NewTopic("new", 1)])
        await admin.describe_groups(["g"])
        await admin.list_groups()


class Case(NamedTuple):
    """A client, an API, and its answer: an error code or the name of another fault."""

    play: Play
    api: str
    answer: ErrorCode | str

    def __str__(self) -> str:
        answer = self.answer if isinstance(self.answer, str) else self.answer.name
        return f"{self.play.__name__}-{self.api}-{answer}"


def reaction_of_beat(code: ErrorCode, *, is_joining: bool) -> object:
    return reaction_to_beat(broker_error(code), is_joining=is_joining)


def one_of_each(reaction_to: Callable[[ErrorCode], object]) -> list[ErrorCode]:
    found: dict[object, ErrorCode] = {}
    for code in CODES:
        found.setdefault(reaction_to(code), code)
    return list(found.values())


def cases() -> Iterator[Case]:
    def of(play: Play, api: str, codes: Iterable[ErrorCode]) -> Iterator[Case]:
        return (Case(play, api, answer) for answer in (*dict.fromkeys(codes), "cut_answer"))

    for api in Api:
        if api is Api.CONSUMER_GROUP_HEARTBEAT:
            for is_joining in (True, False):
                codes = one_of_each(partial(reaction_of_beat, is_joining=is_joining))
                yield from of(read_in_new_group, api.value, codes)
        elif api is not Api.ANY:
            yield from of(read_in_group, api.value, one_of_each(partial(reaction_of_group, api)))
    for name in ("Fetch", "ListOffsets"):
        yield from of(read_alone, name, one_of_each(reaction_of_consumer))
    for name in ("Produce", "InitProducerId"):
        yield from of(produce, name, one_of_each(reaction_of_producer))
    yield from of(produce_without_ids, "Produce", one_of_each(reaction_of_producer))
    names = {
        calls.FindCoordinator: "FindCoordinator",
        calls.InitProducer: "InitProducerId",
        calls.AddPartitions: "AddPartitionsToTxn",
        calls.AddOffsets: "AddOffsetsToTxn",
        calls.CommitOffsets: "TxnOffsetCommit",
        calls.EndTransaction: "EndTxn",
    }
    assert names.keys() == REACTIONS_OF_TRANSACTIONS.keys()
    for call, table in REACTIONS_OF_TRANSACTIONS.items():
        first = {reaction: code for code, reaction in reversed(table.items()) if code != ErrorCode.NONE}
        retried = [ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
        yield from of(produce_in_transactions, names[call], [*first.values(), *retried])
    for name in ("CreateTopics", "DescribeGroups", "ListGroups", "FindCoordinator"):
        yield from of(administer, name, [*MOVED, ErrorCode.REQUEST_TIMED_OUT])
    for play in (read_alone, produce, administer):
        yield from of(play, "Metadata", [ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION])


async def requests_of(case: Case) -> list[tuple[float, str]]:
    """Time and API of each request."""
    release = "3.9" if case.api in ONLY_BEFORE_KIP_890 else "4.3"
    async with EmbeddedCluster(version=release, topics={"t": 2, "u": 1}) as cluster:
        async with Producer(cluster.bootstrap_servers) as producer:
            await producer.send("t", b"first", partition=0)
        cluster.requests.clear()
        if isinstance(case.answer, ErrorCode):
            cluster.faults.answer(case.api, case.answer, times=None)
        else:
            cluster.faults.cut_answer(case.api, 6, times=None)
        # An error may end the client, which is not a storm.
        with anyio.move_on_after(SECONDS), contextlib.suppress(KafkaError):
            await case.play(cluster)
        return [(each.time, each.api) for each in cluster.requests]


async def at_once(call: Callable[..., Any], *args: Any, **_: Any) -> Any:
    """Replaces a worker thread, for which virtual time would not wait."""
    return call(*args)


def play(case: Case) -> list[tuple[float, str]]:
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(requests_of(case))
    finally:
        loop.close()


CASES = list(dict.fromkeys(cases()))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_repeated_answer_causes_a_request_storm(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anyio.to_thread, "run_sync", at_once)
    requests = play(case)
    assert case.api in {api for _, api in requests}
    began = requests[0][0]
    apis = [(moment - began, api) for moment, api in requests]
    for second in sorted({int(moment) for moment, _ in apis}):
        inside = [api for moment, api in apis if second <= moment < second + 1]
        assert len(inside) <= MOST_IN_A_SECOND, (second, inside[:12])
    late = [api for moment, api in apis if SECONDS / 2 <= moment < SECONDS]
    assert len(late) <= MOST_AT_LENGTH * SECONDS / 2, late[:12]
