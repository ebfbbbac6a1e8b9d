"""``Consumer.arrow``: tables over many batches, positions as exact as with batches."""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import Any

import anyio
import pytest

from pykafka08 import (
    ConfigError,
    Consumer,
    CorruptRecordError,
    EmbeddedCluster,
    LocalProtocolError,
    NewRecord,
    Producer,
    TopicPartition,
)
from pykafka08.consumer import batches
from pykafka08.consumer.handing import HandedOut
from pykafka08.consumer.tables import TablePlan
from pykafka08.records.arrow import rows_to_arrow
from pykafka08.records.batch import patch_crc
from pykafka08.records.batch_packing import encode_batch
from pykafka08.records.compression import Codec
from pykafka08.records.reader import FetchedBatch, read_batches
from tests.consumer.embedded import DEADLINE_S, fill, log_of, numbers, read_values, store, values
from tests.consumer.groups import committed_in, until
from tests.consumer.groups import consumer as group_member
from tests.consumer.world import batch_bytes

pytestmark = pytest.mark.anyio

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def consumer_of(cluster: EmbeddedCluster, *topics: str, **settings: Any) -> Consumer:
    return Consumer(
        *topics,
        bootstrap_servers=cluster.bootstrap_servers,
        auto_offset_reset="earliest",
        retry_backoff_ms=10,
        **settings,
    )


async def tables_until(consumer: Consumer, rows: int, **how: int) -> list[Any]:
    """The next tables that have so many rows together."""
    tables = []
    with anyio.fail_after(DEADLINE_S):
        async for table in consumer.arrow(**how):
            tables.append(table)
            rows -= len(table)
            if rows <= 0:
                return tables
    raise AssertionError("the consumer was closed")


def offsets(*tables: Any) -> list[int]:
    return [offset for table in tables for offset in table.column("offset").to_pylist()]


def damaged(base: int, count: int) -> bytes:
    """A batch with a right checksum, and bytes that are no records."""
    data = bytearray(batch_bytes(base, list(range(base, base + count))))
    data[-6] = 0x7E  # the length of the last value lies
    patch_crc(data)
    return bytes(data)


@pytest.mark.parametrize("package", ["pyarrow", "numpy"])
async def test_what_is_not_installed_is_told_at_once(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, consumer_of(cluster, "t") as consumer:
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(ConfigError, match=r"pykafka08\[arrow\]"):
            consumer.arrow()


async def test_the_loop_goes_on_while_pyarrow_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = []

    def noted(name: str) -> ModuleType:
        threads.append(threading.get_ident())
        return import_module(name)

    monkeypatch.setattr(batches, "import_module", noted)
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 3))
        async with consumer_of(cluster, "t") as consumer:
            assert offsets(*await tables_until(consumer, 3)) == [0, 1, 2]
    assert threads
    assert threading.get_ident() not in threads


async def test_small_batches_are_one_table_with_every_column() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        for number in range(20):
            store(cluster, "t", batch_bytes(number * 2, [number * 2, number * 2 + 1]), number * 2 + 1)
        async with Producer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            sent = NewRecord(None, key=b"k", headers=(("h", b"x"), ("i", None)), timestamp_ms=1234)
            await producer.send_many("t", [sent])
        async with consumer_of(cluster, "t") as consumer:
            (table,) = await tables_until(consumer, 41)
            assert offsets(table) == list(range(41))
            assert numbers(table.column("value").to_pylist()[:40]) == list(range(40))
            row = table.slice(40).to_pylist()[0]
            assert row.pop("timestamp").timestamp() == 1.234
            headers = [{"key": "h", "value": b"x"}, {"key": "i", "value": None}]
            expected = {"offset": 40, "key": b"k", "value": None, "headers": headers, "topic": "t", "partition": 0}
            assert row == expected
            assert await consumer.position(T0) == 41


@pytest.mark.parametrize("max_rows", [1, 7, 300, 1000])
async def test_rows_that_are_too_many_come_with_the_next_table(max_rows: int) -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 700))
        async with consumer_of(cluster, "t") as consumer:
            seen: list[int] = []
            with anyio.fail_after(DEADLINE_S):
                async for table in consumer.arrow(max_rows=max_rows):
                    assert 0 < len(table) <= max_rows
                    seen += offsets(table)
                    assert await consumer.position(T0) == seen[-1] + 1
                    if len(seen) == 700:
                        break
            assert seen == list(range(700))


async def test_what_is_left_of_a_table_is_read_in_any_other_way() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 100))
        async with consumer_of(cluster, "t") as consumer:
            assert offsets(*await tables_until(consumer, 10, max_rows=10)) == list(range(10))
            assert numbers(await read_values(consumer, 5)) == list(range(10, 15))
            assert offsets(*await tables_until(consumer, 20, max_rows=20)) == list(range(15, 35))
            assert (await consumer.getone(timeout=30)).offset == 35
            assert offsets(*await tables_until(consumer, 4, max_rows=4)) == list(range(36, 40))
            assert (await anext(consumer.batches())).records()[0].offset == 40


async def test_a_table_has_one_topic_and_all_its_partitions() -> None:
    async with EmbeddedCluster(topics={"t": 2, "u": 1}) as cluster:
        for partition in (0, 1):
            await fill(cluster, "t", values(0, 30), partition=partition)
        await fill(cluster, "u", values(0, 30))
        async with consumer_of(cluster, "t", "u") as consumer:
            read: dict[tuple[str, int], list[int]] = {}
            for table in await tables_until(consumer, 90):
                rows = table.select(["topic", "partition", "offset"]).to_pylist()
                assert len({row["topic"] for row in rows}) == 1
                for row in rows:
                    read.setdefault((row["topic"], row["partition"]), []).append(row["offset"])
            assert read == {place: list(range(30)) for place in [("t", 0), ("t", 1), ("u", 0)]}


@pytest.mark.parametrize(
    "error", [MemoryError(), LocalProtocolError("too many bytes"), CorruptRecordError("no records")]
)
async def test_rows_of_a_table_that_could_not_be_made_are_not_lost(error: Exception) -> None:
    failures = [error, error]

    def to_arrow_at_last(batches: Any) -> Any:
        if failures and len(batches) > len(failures):
            raise failures.pop()
        return rows_to_arrow(batches)

    plan = TablePlan(to_arrow_at_last, max_rows=25, max_bytes=1 << 20)
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        for number in range(0, 60, 10):
            store(cluster, "t", batch_bytes(number, list(range(number, number + 10))), number + 9)
        async with consumer_of(cluster, "t") as consumer:
            read: list[int] = []
            with anyio.fail_after(DEADLINE_S):
                while len(read) < 60:
                    try:
                        read += offsets(await consumer._reader.next_table(plan))
                    except type(error):
                        assert await consumer.position(T0) == len(read)
            assert read == list(range(60))
            assert not failures


async def test_one_batch_of_many_partitions_after_the_other() -> None:
    """Fetched bytes of several partitions take turns in a table, which must not grow with what lies between them."""
    count = 2000
    async with EmbeddedCluster(topics={"t": 2}) as cluster:
        for partition in (0, 1):
            for offset in range(count):
                store(cluster, "t", batch_bytes(offset, [offset], size=100), offset, partition=partition)
        async with consumer_of(cluster, "t") as consumer:
            read: dict[int, list[int]] = {0: [], 1: []}
            for table in await tables_until(consumer, 2 * count):
                for partition, offset in zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True):
                    read[partition].append(offset)
            assert read == {0: list(range(count)), 1: list(range(count))}


async def test_a_group_commits_only_tables_that_are_finished() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 50))
        async with consumer_of(cluster, "t", group_id="g", auto_commit_interval_ms=10) as consumer:
            tables = consumer.arrow(max_rows=20)
            with anyio.fail_after(DEADLINE_S):
                assert offsets(await anext(tables)) == list(range(20))
                assert consumer._member is not None
                assert {tp: each.offset for tp, each in consumer._member.commits.finished(None).items()} in (
                    {},
                    {T0: 0},
                )
                second = await anext(tables)
                assert offsets(second) == list(range(20, 40))
                await until(lambda: _committed(cluster) == 20)
                consumer.acknowledge(second)
                await until(lambda: _committed(cluster) == 40)
        assert await committed_in(cluster, [T0]) == {0: 40}, "the third was never handed out"


async def test_rows_of_a_log_that_is_lost_are_not_acknowledged() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 50))
        async with consumer_of(cluster, "t", group_id="g", enable_auto_commit=False) as consumer:
            (table,) = await tables_until(consumer, 50)
            await consumer.seek(T0, 10)
            consumer.acknowledge(table)
            assert consumer._reader.finished(T0) == 10
            with pytest.raises(ConfigError):
                consumer.acknowledge([table])  # type: ignore[arg-type]


async def test_what_this_consumer_has_not_handed_out_is_not_acknowledged() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 50))
        async with (
            consumer_of(cluster, "t", group_id="g", enable_auto_commit=False) as consumer,
            consumer_of(cluster, "t", group_id="h", enable_auto_commit=False) as other,
        ):
            with anyio.fail_after(DEADLINE_S):
                tables = consumer.arrow(max_rows=20)
                first, second = await anext(tables), await anext(tables)
                (foreign,) = await tables_until(other, 50)
                for wrong in (second.slice(0, 5), second.select(["offset", "value"]), foreign):
                    with pytest.raises(ValueError, match="very object that arrow"):
                        consumer.acknowledge(wrong)
                consumer.acknowledge(first)  # the second was asked for, so that it is finished already
                assert consumer._reader.finished(T0) == 20
                consumer.acknowledge(second)
                assert consumer._reader.finished(T0) == 40
                await other.seek(T0, 0)
                batch = await anext(other.batches())
                with pytest.raises(ValueError, match="not handed out by this consumer"):
                    consumer.acknowledge(batch)
                assert consumer._reader.finished(T0) == 40
                other.acknowledge(batch)
                assert other._reader.finished(T0) == 50


def _committed(cluster: EmbeddedCluster) -> int | None:
    found = cluster._state.groups.offsets("g").get(T0)
    return None if found is None else found.offset


@pytest.mark.parametrize("how", ["seek", "pause"])
async def test_the_rest_of_a_table_goes_with_its_partition(how: str) -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 50))
        async with consumer_of(cluster, "t") as consumer:
            tables = consumer.arrow(max_rows=10)
            with anyio.fail_after(DEADLINE_S):
                assert offsets(await anext(tables)) == list(range(10))
                if how == "seek":
                    await consumer.seek(T0, 44)
                else:
                    consumer.pause(T0)
                    assert await consumer.position(T0) == 10
                    consumer.resume(T0)
                first = 44 if how == "seek" else 10
                assert offsets(await anext(tables))[0] == first


@pytest.mark.parametrize("max_rows", [3, 1000])
async def test_damage_stands_behind_the_rows_before_it(max_rows: int) -> None:
    """Nothing of it is lost, and one can go on behind it, in tables of one batch and of many."""
    async with EmbeddedCluster(topics={"t": 2}) as cluster:
        store(cluster, "t", batch_bytes(0, [0, 1, 2]), 2)
        store(cluster, "t", damaged(3, 4), 6)
        store(cluster, "t", batch_bytes(7, [7, 8]), 8)
        await fill(cluster, "t", values(0, 9), partition=1)
        async with consumer_of(cluster, "t") as consumer:
            read: dict[int, list[int]] = {0: [], 1: []}
            caught: list[CorruptRecordError] = []
            with anyio.fail_after(DEADLINE_S):
                while len(read[0]) < 5 or len(read[1]) < 9:
                    try:
                        async for table in consumer.arrow(max_rows=max_rows):
                            for row in table.select(["partition", "offset"]).to_pylist():
                                read[row["partition"]].append(row["offset"])
                            if len(read[0]) == 5 and len(read[1]) == 9:
                                break
                    except CorruptRecordError as error:
                        assert read[0] == [0, 1, 2]
                        caught.append(error)
                        await consumer.seek(T0, error.next_offset or 0)
            assert read == {0: [0, 1, 2, 7, 8], 1: list(range(9))}
            (error,) = caught
            assert (error.topic, error.partition, error.offset, error.next_offset) == ("t", 0, 3, 7)


@pytest.mark.parametrize("max_rows", [1, 4, 1000])
async def test_damaged_headers_are_damage_and_reading_goes_on_behind_them(max_rows: int) -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        store(cluster, "t", batch_bytes(0, [0, 1, 2]), 2)
        headers = [(), (("name", b"x"),), ()]
        data = bytearray(
            encode_batch(
                Codec.NONE, timestamps=[5] * 3, keys=[None] * 3, values=[b"v"] * 3, headers=headers, base_offset=3
            )
        )
        data[data.index(b"name") - 1] = 80  # the length of the name lies
        patch_crc(data)
        store(cluster, "t", bytes(data), 5)
        store(cluster, "t", batch_bytes(6, [6, 7]), 7)
        async with consumer_of(cluster, "t") as consumer:
            store(cluster, "t", damaged(8, 4), 11)  # found first, as all batches are read at once
            read = offsets(*await tables_until(consumer, 4, max_rows=max_rows))
            assert read == [0, 1, 2, 3], "the rows before it are there, those of its own batch too"
            with pytest.raises(CorruptRecordError) as caught:
                await tables_until(consumer, 1, max_rows=max_rows)
            error = caught.value
            assert (error.topic, error.partition, error.offset, error.next_offset) == ("t", 0, 4, 5)
            assert await consumer.position(T0) == 4
            await consumer.seek(T0, error.next_offset)
            assert offsets(*await tables_until(consumer, 3, max_rows=max_rows)) == [5, 6, 7]
            with pytest.raises(CorruptRecordError) as caught:
                await tables_until(consumer, 1, max_rows=max_rows)
            assert (caught.value.offset, caught.value.next_offset) == (8, 12)


async def test_damage_is_told_though_the_broker_may_hold_fetches_back_for_long() -> None:
    """Half a minute: the partition is asked for once more before it is told."""
    async with EmbeddedCluster(topics={"t": 2}) as cluster:
        store(cluster, "t", damaged(0, 4), 3)
        async with consumer_of(cluster, "t", fetch_max_wait_ms=30_000_000) as consumer:
            with anyio.fail_after(DEADLINE_S), pytest.raises(CorruptRecordError):
                await anext(consumer.arrow())


async def test_aborted_transactions_and_control_batches_are_left_out() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        async with Producer(bootstrap_servers=cluster.bootstrap_servers, transactional_id="x") as producer:
            with suppress(ZeroDivisionError):
                async with producer.transaction():
                    await producer.send("t", b"0")
                    raise ZeroDivisionError
            async with producer.transaction():
                await producer.send("t", b"1")
        async with consumer_of(cluster, "t", isolation_level="read_committed") as consumer:
            (table,) = await tables_until(consumer, 1)
            assert table.column("value").to_pylist() == [b"1"]


@pytest.mark.parametrize("max_rows", [3, 1000])
async def test_a_group_shares_tables_while_members_come_and_go(max_rows: int) -> None:
    """Every record of a committed transaction is read, none of an aborted one, and all is committed at the end."""
    async with EmbeddedCluster(topics={"t": 4}) as cluster:
        async with Producer(bootstrap_servers=cluster.bootstrap_servers, transactional_id="x") as producer:
            for number in range(8):
                with suppress(ZeroDivisionError):
                    async with producer.transaction():
                        records = [NewRecord(b"%d" % number, partition=each % 4) for each in range(24)]
                        await producer.send_many("t", records)
                        if number % 2:
                            raise ZeroDivisionError
        ends = {number: 0 for number in range(4)}
        seen: list[tuple[int, int]] = []

        async def read(member: Consumer, most: int) -> None:
            """Until ``most`` rows have come, or all have been seen by somebody."""
            async for table in member.arrow(max_rows=max_rows):
                assert set(table["value"].to_pylist()) <= {b"0", b"2", b"4", b"6"}
                places = list(zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True))
                seen.extend(places)
                for partition, offset in places:
                    ends[partition] = max(ends[partition], offset + 1)
                member.acknowledge(table)
                most -= len(table)
                if most <= 0 or len(set(seen)) == 96:
                    break

        async def come_and_go() -> None:
            for _ in range(2):
                async with group_member(cluster, "t", **settings) as guest:
                    with anyio.move_on_after(0.2):
                        await read(guest, 10)

        settings: dict[str, Any] = {"isolation_level": "read_committed", "auto_commit_interval_ms": 10}
        with anyio.fail_after(DEADLINE_S):
            async with group_member(cluster, "t", **settings) as member:
                await read(member, 10)
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(come_and_go)
                    while len(set(seen)) < 96:
                        with anyio.move_on_after(0.2):
                            await read(member, 96)
        assert len(set(seen)) == 96
        committed = await committed_in(cluster, [TopicPartition("t", number) for number in ends])
        for number, end in ends.items():  # what is hidden behind the last row may be passed over already
            assert end <= committed[number] <= log_of(cluster, "t", number).end_offset


@pytest.mark.parametrize("max_rows", [0, -1, True, 1.5, None])
async def test_a_number_of_rows_that_is_none_is_refused(max_rows: Any) -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, consumer_of(cluster, "t") as consumer:
        with pytest.raises(ConfigError):
            consumer.arrow(max_rows=max_rows)


# Which batches are one table


def pieces(*of: tuple[str, int]) -> list[HandedOut]:
    """Batches of a topic, of so many records of 10 bytes each."""
    return [HandedOut(TopicPartition(topic, 0), batch_of(count), 0) for topic, count in of]


def batch_of(count: int) -> FetchedBatch:
    (batch,) = read_batches(batch_bytes(0, list(range(count))), topic="t", partition=0, fetch_offset=0)
    return batch


@pytest.mark.parametrize(
    ("of", "taken"),
    [
        ([("t", 5), ("t", 5)], 2),
        ([("t", 5), ("t", 4), ("t", 9), ("t", 1)], 3),
        ([("t", 100), ("t", 1)], 1),
        ([("t", 5), ("u", 1), ("t", 1)], 1),
        ([("t", 1)] * 30, 10),
    ],
)
def test_which_batches_are_one_table(of: list[tuple[str, int]], taken: int) -> None:
    plan = TablePlan(list, max_rows=10, max_bytes=10_000)
    count = plan.count()
    for each in pieces(*of):
        count.add(each)
    assert count.batches == taken


def test_a_table_is_bounded_by_bytes_but_for_one_batch() -> None:
    size = batch_of(10).unpacked_bytes
    for most, taken in ((1, 1), (size, 1), (2 * size - 1, 1), (2 * size, 2), (3 * size + 1, 3)):
        count = TablePlan(list, max_rows=10_000, max_bytes=most).count()
        for each in pieces(*[("t", 10)] * 5):
            count.add(each)
        assert count.batches == taken
        assert count.is_full


@pytest.mark.parametrize("bad", [0, 1, 2, 5, 8])
def test_the_first_batch_that_is_no_records_is_found(bad: int) -> None:
    all_pieces = pieces(*[("t", 1)] * 9)
    broken = {id(all_pieces[each].batch) for each in (bad, 8)}

    def to_list(batches: Any) -> tuple[list[int], None]:
        if any(id(each) in broken for each in batches):
            raise CorruptRecordError("no records")
        return [id(each) for each in batches], None

    table, good, error = TablePlan(to_list, max_rows=100, max_bytes=10_000).make(all_pieces)
    assert good == bad
    assert (table or []) == [id(each.batch) for each in all_pieces[:bad]]
    assert error is not None


async def test_times_that_records_do_not_have_are_null_and_can_be_sent_on() -> None:
    """-1 in the formats that have timestamps, as of what a client of Kafka 0.8 wrote."""
    async with EmbeddedCluster(topics={"t": 1, "u": 1}) as cluster:
        async with Producer(cluster.bootstrap_servers) as producer, consumer_of(cluster, "t") as consumer:
            await producer.enqueue_columns("t", 0, [b"a", b"b", b"c"], timestamps_ms=[-1, 7, -2])
            await producer.flush()
            assert [record.timestamp_ms for record in cluster.records("t", 0)] == [-1, 7, -2]
            [table] = await tables_until(consumer, 3)
            table.validate(full=True)
            assert table.column("timestamp").null_count == 1
            assert [record.timestamp_ms for record in cluster.records("t", 0)][1:] == [
                int(each.timestamp() * 1000) for each in table.column("timestamp").to_pylist()[1:]
            ]
            await producer.send_arrow("u", table.select(["value", "key", "headers", "timestamp"]).slice(0, 2))
            sent = cluster.records("u", 0)
            assert [record.value for record in sent] == [b"a", b"b"]
            assert (sent[0].timestamp_ms > 7, sent[1].timestamp_ms) == (True, 7)
