"""Clients are used in the thread, event loop and process that opened them; elsewhere each call raises an error."""

from __future__ import annotations

import asyncio
import os
import threading
import warnings
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import anyio
import anyio.to_thread
import pytest

from pykafka08 import (
    Admin,
    Consumer,
    EmbeddedCluster,
    NewTopic,
    Producer,
    TopicPartition,
    WrongEventLoopError,
)

TP = TopicPartition("t", 0)

PRODUCER_CALLS: dict[str, Callable[[Producer], Awaitable[object]]] = {
    "send": lambda producer: producer.send("t", b"v"),
    "send_many": lambda producer: producer.send_many("t", [b"v"]),
    "enqueue_columns": lambda producer: producer.enqueue_columns("t", 0, [b"v"]),
    "flush": lambda producer: producer.flush(),
    "partitions": lambda producer: producer.partitions("t"),
    "aclose": lambda producer: producer.aclose(),
}

CONSUMER_CALLS: dict[str, Callable[[Consumer], Awaitable[object]]] = {
    "getone": lambda consumer: consumer.getone(),
    "getmany": lambda consumer: consumer.getmany(),
    "iteration": lambda consumer: anext(aiter(consumer)),
    "batches": lambda consumer: anext(consumer.batches()),
    "seek": lambda consumer: consumer.seek(TP, 0),
    "position": lambda consumer: consumer.position(TP),
    "end_offsets": lambda consumer: consumer.end_offsets([TP]),
    "commit": lambda consumer: consumer.commit(),
    "aclose": lambda consumer: consumer.aclose(),
}

PLAIN_CONSUMER_CALLS: dict[str, Callable[[Consumer], object]] = {
    "pause": lambda consumer: consumer.pause(TP),
    "resume": lambda consumer: consumer.resume(TP),
}


async def refused(call: Callable[..., Awaitable[object]], *args: Any) -> str:
    """The text of the error, which must be raised at once."""
    with anyio.fail_after(5), pytest.raises(WrongEventLoopError) as raised:
        await call(*args)
    return str(raised.value)


async def all_refused(producer: Producer, consumer: Consumer, admin: Admin) -> set[str]:
    texts = {await refused(call, producer) for call in PRODUCER_CALLS.values()}
    texts |= {await refused(call, consumer) for call in CONSUMER_CALLS.values()}
    texts |= {await refused(admin.list_topics), await refused(admin.create_topics, [NewTopic("u")])}
    texts |= {await refused(admin.aclose)}
    for plain in PLAIN_CONSUMER_CALLS.values():
        with pytest.raises(WrongEventLoopError):
            plain(consumer)
    return texts


def run_in_thread(run: Callable[[], Coroutine[Any, Any, set[str]]]) -> set[str]:
    """Run in a new event loop in another thread."""
    found: list[set[str]] = []
    thread = threading.Thread(target=lambda: found.append(asyncio.run(run())))
    thread.start()
    thread.join(30)
    return found[0]


@pytest.mark.anyio
@pytest.mark.parametrize("topic", ["t", "unknown"])
async def test_enqueue_from_another_thread_is_refused(topic: str) -> None:
    """With and without an open batch for the record; asyncio's debug mode is off."""
    async with (
        EmbeddedCluster(topics={"t": 1}) as cluster,
        Producer(cluster.bootstrap_servers, linger_ms=60_000) as producer,
    ):
        await producer.partitions("t")
        producer.enqueue("t", b"first")  # the batch is open

        def enqueue() -> None:
            with pytest.raises(WrongEventLoopError, match="another thread"):
                producer.enqueue(topic, b"v")

        await anyio.to_thread.run_sync(enqueue)
        assert producer.counters.in_buffer == 1
        await producer.flush()
        assert [record.value for record in cluster.records("t", 0)] == [b"first"]


def test_calls_from_another_thread_are_refused_at_once() -> None:
    async def main() -> None:
        async with EmbeddedCluster(topics={"t": 1}) as cluster:
            servers = cluster.bootstrap_servers
            async with (
                Producer(servers) as producer,
                Consumer("t", bootstrap_servers=servers, group_id="g") as consumer,
                Admin(servers) as admin,
            ):
                await producer.send("t", b"mine")
                texts = await anyio.to_thread.run_sync(run_in_thread, lambda: all_refused(producer, consumer, admin))
                assert len(texts) == 1
                assert "opened in another thread" in texts.pop()
                assert (await consumer.getone(timeout=30)).value == b"mine"
                await producer.send("t", b"still mine")

    asyncio.run(main())


def test_calls_from_another_event_loop_of_the_thread_are_refused_at_once() -> None:
    home, other = asyncio.new_event_loop(), asyncio.new_event_loop()
    try:
        cluster = home.run_until_complete(EmbeddedCluster(topics={"t": 1}).__aenter__())
        servers = cluster.bootstrap_servers
        producer = home.run_until_complete(Producer(servers).__aenter__())
        consumer = home.run_until_complete(Consumer("t", bootstrap_servers=servers, group_id="g").__aenter__())
        admin = home.run_until_complete(Admin(servers).__aenter__())

        async def enqueue() -> None:
            producer.enqueue("t", b"v")

        assert "in another event loop" in other.run_until_complete(refused(enqueue))
        texts = other.run_until_complete(all_refused(producer, consumer, admin))
        assert len(texts) == 1
        assert "in another event loop" in texts.pop()

        delivery = producer.enqueue("t", b"while no event loop runs")
        consumer.pause(TP)
        consumer.resume(TP)
        assert home.run_until_complete(_outcome(delivery)).offset == 0
        for client in (producer, consumer, admin, cluster):
            home.run_until_complete(client.aclose())  # type: ignore[attr-defined]
    finally:
        home.close()
        other.close()


async def _outcome(delivery: Any) -> Any:
    return await delivery


def test_the_client_that_a_forked_child_inherits_raises_at_once() -> None:
    """Otherwise it would write to the parent's connections.  The parent's client stays usable."""

    def in_child(producer: Producer, consumer: Consumer, admin: Admin) -> set[str]:
        with pytest.raises(WrongEventLoopError) as raised:
            producer.enqueue("t", b"child's")
        return {str(raised.value), *asyncio.run(all_refused(producer, consumer, admin))}

    async def main() -> None:
        async with EmbeddedCluster(topics={"t": 1}) as cluster:
            servers = cluster.bootstrap_servers
            async with (
                Producer(servers, linger_ms=0) as producer,
                Consumer("t", bootstrap_servers=servers, group_id="g") as consumer,
                Admin(servers) as admin,
            ):
                await producer.send("t", b"before")
                text = forked(lambda: in_child(producer, consumer, admin))
                assert f"opened in process {os.getpid()}" in text
                assert "create a client in each process" in text
                assert "|" not in text
                await producer.send("t", b"after")
                values = [(await consumer.getone(timeout=30)).value for _ in range(2)]
                assert values == [b"before", b"after"]

    asyncio.run(main())


def forked(run: Callable[[], set[str]]) -> str:
    """The result or exception of ``run()`` in a forked child."""
    ours, theirs = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # raised by fork() because pytest and anyio have threads
        child = os.fork()
    if child == 0:
        try:
            text = "|".join(run())
        except BaseException as error:  # noqa: BLE001 - sent to the parent
            text = f"|{error!r}"
        os.write(theirs, text.encode())
        os._exit(0)
    os.close(theirs)
    with open(ours, "rb") as told:
        text = told.read().decode()
    os.waitpid(child, 0)
    return text
