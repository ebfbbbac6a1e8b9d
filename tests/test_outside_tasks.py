"""asyncio calls protocols, timers and done-callbacks outside any task, where anyio and sniffio must not be used.

Some versions of anyio work there without sniffio.  In these tests each such use fails, with every version.
"""

from __future__ import annotations

import ast
import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio._backends import _asyncio

import pykafka08
from pykafka08 import ClientFailedError, Consumer, EmbeddedCluster, Producer, TopicPartition
from pykafka08.driver import TaskTree, Waiter

PACKAGE = Path(pykafka08.__file__).parent

MAIN_THREAD_ONLY = {
    "cli/exits.py": "it runs the event loop, and its signal handlers",
    "spark/sink/two_phase.py": "Spark's tasks call it outside the event loop, and it runs a coroutine there",
}
"""Modules whose plain functions are never callbacks, and the reason."""

BOUND_S = 30


def is_in_callback() -> bool:
    return asyncio._get_running_loop() is not None and asyncio.current_task() is None


@contextmanager
def anyio_in_tasks_only() -> Iterator[list[str]]:
    """Each use of anyio outside a task fails and is added to the list; stricter than anyio 4.16 with sniffio."""
    met: list[str] = []

    def guarded(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def checked(*args: Any, **kwargs: Any) -> Any:
            if is_in_callback():
                met.append(name)
                raise AssertionError(f"{name} is used outside any task")
            return call(*args, **kwargs)

        return checked

    with pytest.MonkeyPatch.context() as patch:
        for name, module in tuple(sys.modules.items()):
            if name.startswith("anyio.") and hasattr(module, "get_async_backend"):
                patch.setattr(module, "get_async_backend", guarded(name, module.get_async_backend))
        patch.setattr(_asyncio.TaskGroup, "start_soon", guarded("start_soon", _asyncio.TaskGroup.start_soon))
        yield met


def in_tasks_only(story: Callable[[], Any]) -> None:
    """Run ``story()`` in asyncio; fail if anyio was used outside a task."""

    async def bounded() -> None:
        with anyio.fail_after(BOUND_S):
            await story()

    with anyio_in_tasks_only() as met:
        asyncio.run(bounded())
    assert met == []


async def read(consumer: Consumer, count: int) -> set[bytes | None]:
    return {(await consumer.getone()).value for _ in range(count)}


async def read_until(consumer: Consumer, wanted: set[tuple[int, bytes]]) -> None:
    """Read until all of ``wanted`` (partition, value) are read; records may be repeated."""
    while wanted:
        record = await consumer.getone()
        wanted.discard((record.partition, record.value or b""))


# --- all uses, in the source --------------------------------------------------------------------------------------


def uses_outside_coroutines(source: str) -> list[int]:
    """Lines on which a plain function or a lambda calls anyio, which a callback may reach."""
    found: list[int] = []

    def look(node: ast.AST, *, is_plain: bool) -> None:
        for child in ast.iter_child_nodes(node):
            if is_plain and isinstance(child, ast.Call) and _needs_task(child.func):
                found.append(child.lineno)
            plain = isinstance(child, (ast.FunctionDef, ast.Lambda)) and not _is_context_manager(child)
            look(child, is_plain=plain or (is_plain and not isinstance(child, ast.AsyncFunctionDef)))

    if "anyio" in source or "sniffio" in source:
        look(ast.parse(source), is_plain=False)
    return found


def _needs_task(called: ast.expr) -> bool:
    return isinstance(called, ast.Attribute) and (
        called.attr == "start_soon" or ast.unparse(called).startswith(("anyio.", "sniffio."))
    )


def _is_context_manager(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef) and any(
        ast.unparse(each) == "contextmanager" for each in node.decorator_list
    )


STARTS_WITHIN_A_TASK = {"task_tree.py": 1}
"""Number of uses in a module that first checks for a running task."""


def test_no_plain_function_calls_anyio() -> None:
    """A coroutine runs in a task; a plain function may be called by a protocol, a timer or a done-callback."""
    found = {
        path.relative_to(PACKAGE).as_posix(): uses_outside_coroutines(path.read_text())
        for path in sorted(PACKAGE.rglob("*.py"))
    }
    counted = {name: len(lines) for name, lines in found.items() if lines and name not in MAIN_THREAD_ONLY}
    assert counted == STARTS_WITHIN_A_TASK, found


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("def plain():\n    return anyio.current_time()", [2]),
        ("async def run():\n    anyio.current_time()", []),
        ("async def run():\n    wait(lambda: anyio.CancelScope())", [2]),
        ("import anyio\nasync def run():\n    def told():\n        group.start_soon(run)\n    on(told)", [4]),
    ],
)
def test_the_scan_finds_plain_functions_in_coroutines_too(source: str, lines: list[int]) -> None:
    assert uses_outside_coroutines(source) == lines


# --- the task tree --------------------------------------------------------------------------------------------------


def test_a_callback_starts_a_task() -> None:
    async def story() -> None:
        loop, ran = asyncio.get_running_loop(), Waiter[str]()

        async def run(text: str) -> None:
            ran.set_result(text)

        async with TaskTree() as tree:
            loop.call_soon(tree.start, "told", run, "ran")
            assert await ran == "ran"

    in_tasks_only(story)


def test_a_task_that_a_callback_starts_just_before_the_close_runs_to_its_end() -> None:
    """Other tasks wait for its cleanup."""

    async def story() -> None:
        loop, closing, ended = asyncio.get_running_loop(), Waiter[None](), Waiter[None]()

        async def run() -> None:
            try:
                await anyio.sleep_forever()
            finally:
                ended.set_result(None)

        def told() -> None:
            closing.set_result(None)  # the close begins before the new task does
            tree.start("late", run)

        tree = await TaskTree().__aenter__()
        loop.call_soon(told)
        await closing
        await tree.aclose()
        assert ended.is_done

    in_tasks_only(story)


def test_a_failure_in_a_callback_is_raised_in_all_waiting_tasks() -> None:
    async def story() -> None:
        loop, told = asyncio.get_running_loop(), Waiter[ClientFailedError]()
        fault = ValueError("no number")

        def refuse(_: ClientFailedError) -> None:
            raise RuntimeError("this one fails too")

        async with TaskTree() as tree:
            tree.on_failure(refuse)
            tree.on_failure(told.set_result)
            loop.call_soon(tree.fail, "the client failed on an answer", fault)
            failure = await told
            with pytest.raises(ClientFailedError, match="no number") as raised:
                tree.check()
            assert raised.value is failure
            assert failure.__cause__ is fault

    in_tasks_only(story)


# --- whole clients --------------------------------------------------------------------------------------------------


def test_a_pattern_and_a_group_join() -> None:
    """The first matching topic is in an answer, which asyncio passes to a protocol."""

    async def story() -> None:
        async with EmbeddedCluster(topics={"t-1": 1}) as cluster:
            servers = cluster.bootstrap_servers
            async with Producer(servers) as producer:
                await producer.send("t-1", b"here")
                settings: dict[str, Any] = {"group_id": "g", "auto_offset_reset": "earliest", "metadata_max_age_ms": 50}
                async with Consumer(bootstrap_servers=servers, pattern="t-.*", **settings) as consumer:
                    assert await read(consumer, 1) == {b"here"}
                    cluster.create_topic("t-2", 2)
                    await producer.send("t-2", b"later")
                    assert await read(consumer, 1) == {b"later"}
                    assert consumer.health().failure is None

    in_tasks_only(story)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_that_matches_nothing_at_first_joins_later(protocol: str) -> None:
    async def story() -> None:
        async with EmbeddedCluster(group_consumer_heartbeat_interval_ms=20) as cluster:
            servers = cluster.bootstrap_servers
            settings: dict[str, Any] = {"group_id": "g", "auto_offset_reset": "earliest", "metadata_max_age_ms": 20}
            async with (
                Producer(servers) as producer,
                Consumer(bootstrap_servers=servers, pattern="t-.*", group_protocol=protocol, **settings) as consumer,
            ):
                await producer.send("t-1", b"first")
                assert await read(consumer, 1) == {b"first"}

    in_tasks_only(story)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_connections_are_lost_and_dialled_again_by_callbacks(protocol: str) -> None:
    """Leaders and coordinators move and brokers stop, so that answers of each kind start new tasks."""

    async def story() -> None:
        async with EmbeddedCluster(brokers=3, topics={"t": 3}, group_consumer_heartbeat_interval_ms=20) as cluster:
            servers = cluster.bootstrap_servers
            quick: dict[str, Any] = {"retry_backoff_ms": 5, "reconnect_backoff_ms": 5, "metadata_max_age_ms": 50}
            group: dict[str, Any] = {"group_id": "g", "auto_offset_reset": "earliest", "group_protocol": protocol}
            async with (
                Producer(servers, transactional_id="tx", **quick) as producer,
                Producer(servers, linger_ms=0, **quick) as plain,
                Consumer("t", bootstrap_servers=servers, **group, **quick) as consumer,
            ):
                for step in range(2):
                    async with producer.transaction():
                        for partition in range(3):
                            await producer.send("t", b"%d" % step, partition=partition)
                    await plain.send("t", b"%d" % step)
                    await read_until(consumer, {(partition, b"%d" % step) for partition in range(3)})
                    for partition in range(3):
                        cluster.move_leader("t", partition, (cluster.leader("t", partition) + 1) % 3)
                    cluster.move_coordinator("g", (cluster.coordinator("g") + 1) % 3)
                    cluster.move_coordinator("tx", (cluster.coordinator("tx") + 1) % 3)
                    if step == 0:
                        cluster.expire_sessions("g")
                await cluster.stop_broker(cluster.leader("t", 0))
                await plain.send("t", b"last", partition=0)
                await read_until(consumer, {(0, b"last")})

    in_tasks_only(story)


def test_an_error_in_a_metadata_callback_is_raised_at_the_next_await() -> None:
    async def story() -> None:
        async with EmbeddedCluster(topics={"t": 1}) as cluster:
            consumer = Consumer("t", bootstrap_servers=cluster.bootstrap_servers)
            async with consumer:
                assert consumer._client is not None

                def fail(_: object) -> None:
                    raise ZeroDivisionError("in a callback")

                consumer._client.on_metadata(fail)
                consumer._client.invalidate(consumer._client.metadata.generation)
                with pytest.raises(ClientFailedError, match="in a callback"):
                    await consumer.getone()
                assert isinstance(consumer.health().failure, ClientFailedError)
                with pytest.raises(ClientFailedError, match="in a callback"):
                    await consumer.position(TopicPartition("t", 0))

    in_tasks_only(story)


def test_health_and_deadlines_work_in_a_callback() -> None:
    async def story() -> None:
        async with EmbeddedCluster(topics={"t": 1}) as cluster:
            servers = cluster.bootstrap_servers
            async with Producer(servers) as producer, Consumer("t", bootstrap_servers=servers) as consumer:
                loop, told = asyncio.get_running_loop(), Waiter[object]()
                loop.call_soon(lambda: told.set_result((producer.health(), consumer.health())))
                await told

    in_tasks_only(story)
