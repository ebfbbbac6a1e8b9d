"""``send_arrow``, and ``send_many`` with keys: columns of any records, whatever partitions they go to."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
import pytest

from pykafka08 import (
    ClosedError,
    EmbeddedCluster,
    LocalProtocolError,
    NewRecord,
    Producer,
    RecordTooLargeError,
    RecordTypeError,
    UnknownTopicError,
    UnsupportedVersionError,
)
from pykafka08.errors import BrokerError
from pykafka08.producer.partitioners import murmur2_partition

from .clusters import logs, producing

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("version", ["0.8.2", "0.10.0", "4.3"])
async def test_values_in_order(version: str) -> None:
    values = [b"v%d" % number for number in range(9000)]
    async with producing(version=version, batch_size=30_000) as (cluster, producer):
        sent = await producer.send_arrow("t", pa.table({"value": pa.array(values, pa.binary())}))
        assert [each.offset for each in sent] == list(range(9000))
        assert [record.value for record in logs(cluster)[0]] == values
        assert producer.counters[:5] == (9000, 9000, 0, 0, 0)


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("is_known", [True, False])
async def test_keys_choose_the_partition(partitions: int, is_known: bool) -> None:
    values = [None if number % 7 == 0 else b"v%d" % number for number in range(5000)]
    keys = [b"k%d" % (number % 50) for number in range(5000)]
    async with producing(topics={"t": partitions}) as (cluster, producer):
        if is_known:
            await producer.send("t", b"first", b"k0", partition=0)
        sent = await producer.send_arrow("t", pa.table({"key": pa.array(keys), "value": pa.array(values, pa.binary())}))
        found = logs(cluster)
        rows = [found[each.partition][each.offset] for each in sent]
        assert [(row.key, row.value) for row in rows] == list(zip(keys, values, strict=True))
        assert [each.partition for each in sent] == [murmur2_partition(key, partitions) for key in keys]
        again = await producer.send_many("t", values, keys)
        found = logs(cluster)
        rows = [found[each.partition][each.offset] for each in again]
        assert [(row.key, row.value) for row in rows] == list(zip(keys, values, strict=True))


async def test_keyed_records_of_any_size_keep_their_order() -> None:
    """More than the room at once, records of very different sizes, batches that end within a chunk."""
    values = [b"%d:" % number + b"x" * (number * 37 % 5000) for number in range(600)]
    keys = [b"k%d" % (number * number % 31) for number in range(600)]
    names = pa.array([[("n", b"%d" % number)] if number % 3 else [] for number in range(600)], pa.map_("str", "binary"))
    settings = {"batch_size": 20_000, "buffer_memory": 100_000, "max_request_size": 60_000}
    async with producing(topics={"t": 4}, **settings) as (cluster, producer):
        await producer.send("t", b"first", b"k0", partition=0)
        sent = await producer.send_arrow(
            "t", pa.table({"key": pa.array(keys), "value": pa.array(values), "headers": names})
        )
        found = logs(cluster)
        rows = [found[each.partition][each.offset] for each in sent]
        assert [(row.key, row.value) for row in rows] == list(zip(keys, values, strict=True))
        assert [row.headers for row in rows] == [
            (("n", b"%d" % number),) if number % 3 else () for number in range(600)
        ]
        for partition in range(4):
            offsets = [each.offset for each in sent if each.partition == partition]
            assert offsets == sorted(offsets)
        assert producer.counters[:5] == (601, 601, 0, 0, 0)


@pytest.mark.parametrize("batch_size", [20_000, 131_072])
@pytest.mark.parametrize("way", ["values", "keys", "rows"])
async def test_a_record_that_never_fits_keeps_back_none_before_it(way: str, batch_size: int) -> None:
    values = [b"v"] * 100 + [b"x" * 70_000, b"after"]
    keys = [b"k%d" % number for number in range(len(values))]
    table = pa.record_batch({"value": pa.array(values, pa.binary())})
    async with producing(topics={"t": 4}, batch_size=batch_size, max_request_size=60_000) as (cluster, producer):
        await producer.send("t", b"first", b"k0", partition=0)
        listed = producer.send_many("t", values, keys if way == "keys" else None)
        sending = producer.send_arrow("t", table) if way == "rows" else listed
        with pytest.raises(RecordTooLargeError):
            await sending
        listed.close()
        await producer.flush()
        assert sum(map(len, logs(cluster))) == 101


async def test_keys_that_are_empty_or_missing_go_where_single_records_would() -> None:
    keys = [b"", None, b"k"] * 100
    async with producing(topics={"t": 3}) as (cluster, producer):
        await producer.send("t", b"first", b"k0", partition=0)
        sent = await producer.send_many("t", [b"v"] * 300, keys)
        found = logs(cluster)
        assert [found[each.partition][each.offset].key for each in sent] == keys
        assert {each.partition for each in sent[0::3]} == {murmur2_partition(b"", 3)}
        assert {each.partition for each in sent[2::3]} == {murmur2_partition(b"k", 3)}


async def test_every_column() -> None:
    when = datetime(2026, 1, 2, 3, 4, 5, 6000, tzinfo=timezone.utc)
    header = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    batch = pa.record_batch(
        {
            "value": pa.array(["text", None, "more"]),
            "key": pa.array([b"a", None, b""], pa.large_binary()),
            "headers": pa.array([[{"key": "h", "value": b"1"}, {"key": "n", "value": None}], [], None], header),
            "partition": pa.array([1, 0, None], pa.int64()),
            "timestamp": pa.array([when, None, when], pa.timestamp("us", tz="UTC")),
        }
    )
    async with producing(topics={"t": 2}) as (cluster, producer):
        sent = await producer.send_arrow("t", batch)
        found = logs(cluster)
        rows = [found[each.partition][each.offset] for each in sent]
        assert [each.partition for each in sent] == [1, 0, murmur2_partition(b"", 2)]
        assert [(row.value, row.key) for row in rows] == [(b"text", b"a"), (None, None), (b"more", b"")]
        assert [row.headers for row in rows] == [(("h", b"1"), ("n", None)), (), ()]
        stamp = int(when.timestamp() * 1000)
        assert [row.timestamp_ms == stamp for row in rows] == [True, False, True]


async def test_maps_are_headers_and_dictionaries_are_text() -> None:
    table = pa.table(
        {
            "value": pa.array(["a", "b", "a"]).dictionary_encode(),
            "headers": pa.array([[("h", "1")], [], [("h", "2")]], pa.map_(pa.string(), pa.string())),
            "timestamp": [5, 6, 7],
        }
    )
    async with producing() as (cluster, producer):
        await producer.send_arrow("t", table)
        assert [(row.value, row.headers, row.timestamp_ms) for row in logs(cluster)[0]] == [
            (b"a", (("h", b"1"),), 5),
            (b"b", (), 6),
            (b"a", (("h", b"2"),), 7),
        ]


WRONG: dict[str, Any] = {
    "no table": [b"v"],
    "no column value": pa.table({"key": [b"k"]}),
    "a column of another name": pa.table({"value": [b"v"], "offset": [1]}),
    "values of numbers": pa.table({"value": [5]}),
    "values of lists": pa.table({"value": [[b"v"]]}),
    "partitions of text": pa.table({"value": [b"v"], "partition": ["1"]}),
    "partitions beyond 32 bits": pa.table({"value": [b"v"], "partition": [1 << 40]}),
    "times of text": pa.table({"value": [b"v"], "timestamp": ["now"]}),
    "headers of numbers": pa.table({"value": [b"v"], "headers": [[{"key": "h", "value": 5}]]}),
    "headers without a name": pa.table({"value": [b"v"], "headers": [[{"value": b"v"}]]}),
    "headers that look like pairs": pa.table({"value": [b"v"], "headers": [["ab"]]}),
    "headers that are lists of lists": pa.table({"value": [b"v"], "headers": [[["a", "b"]]]}),
    "headers of text": pa.table({"value": [b"v"], "headers": ["ab"]}),
    "headers that are one pair": pa.table({"value": [b"v"], "headers": [{"key": "h", "value": b"v"}]}),
    "headers with binary keys": pa.table(
        {"value": [b"v"], "headers": pa.array([[(b"h", b"v")]], pa.map_("binary", "binary"))}
    ),
    "a header that is null": pa.table({"value": [b"v"], "headers": [[{"key": "h", "value": b"v"}, None]]}),
    "a header whose key is null": pa.table(
        {"value": [b"v"], "headers": [[{"key": "h", "value": b"v"}, {"key": None}]]}
    ),
    "a header whose key is no text": pa.table(
        {
            "value": [b"v"],
            "headers": pa.array([[(b"\xff", b"v")]], pa.map_("binary", "binary")).view(pa.map_("string", "binary")),
        }
    ),
    "seconds that are too many milliseconds": pa.table(
        {"value": [b"v"], "timestamp": pa.array([1 << 62], pa.timestamp("s"))}
    ),
}


@pytest.mark.parametrize("table", WRONG.values(), ids=WRONG)
async def test_what_is_no_such_table_is_told(table: Any) -> None:
    async with producing() as (_, producer):
        with pytest.raises(RecordTypeError, match="topic 't'"):
            await producer.send_arrow("t", table)
        assert producer.counters.enqueued == 0


@pytest.mark.parametrize(
    ("records", "keys"),
    [
        ([b"v"] * 9000, [b"k"] * 9001),
        ([b"v"] * 9000, [b"k"] * 8999),
        ([b"v"] * 9000, (b"k" for _ in range(9000))),
        ([b"v"] * 2, b"kk"),
        ([b"v"] * 8999 + [NewRecord(b"v")], [b"k"] * 9000),
    ],
)
async def test_keys_that_do_not_fit_are_refused_first(records: Any, keys: Any) -> None:
    async with producing() as (_, producer):
        with pytest.raises(RecordTypeError, match="topic 't': keys are"):
            await producer.send_many("t", records, keys)
        assert producer.counters.enqueued == 0


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("headers", pa.array([[]] * 9999 + [[7]])),
        (
            "headers",
            pa.array(
                [[]] * 9999 + [[{"key": None, "value": b"v"}]], pa.list_(pa.struct({"key": "str", "value": "binary"}))
            ),
        ),
        ("timestamp", pa.array([1] * 9999 + [-5])),
        ("timestamp", pa.array([1] * 9999 + [1 << 62], pa.timestamp("s"))),
        ("partition", pa.array([0] * 9999 + [-1])),
    ],
)
async def test_nothing_is_taken_before_the_last_row_is_checked(name: str, column: Any) -> None:
    async with producing() as (_, producer):
        with pytest.raises((RecordTypeError, LocalProtocolError, UnknownTopicError), match="topic"):
            await producer.send_arrow("t", pa.table({"value": [b"v"] * 10_000, name: column}))
        assert producer.counters.enqueued == 0


async def test_headers_of_every_kind_that_are_taken() -> None:
    pairs = pa.struct([("value", pa.large_binary()), ("key", pa.large_string())])
    columns = [
        (pa.array([[{"key": "a", "value": b"1"}, {"key": "b", "value": None}], None], pa.large_list(pairs)), b"1"),
        (pa.array([[("a", "1"), ("b", None)], []], pa.map_("string", "large_string")), b"1"),
        (pa.array([[("a", None), ("b", None)], []], pa.map_("string", pa.null())), None),
        (pa.array([[], [{"key": "a", "value": b"1"}, {"key": "b", "value": None}], []], pa.list_(pairs))[1:], b"1"),
    ]
    async with producing() as (cluster, producer):
        for column, value in columns:
            await producer.send_arrow("t", pa.table({"value": [b"v", b"w"], "headers": column}))
            assert [row.headers for row in logs(cluster)[0][-2:]] == [(("a", value), ("b", None)), ()]
        for column in (pa.array([[], None]), pa.nulls(2), pa.array([[], []], pa.list_(pairs))):
            await producer.send_arrow("t", pa.table({"value": [b"v", b"w"], "headers": column}))
            assert [row.headers for row in logs(cluster)[0][-2:]] == [(), ()]


async def test_parts_of_a_millisecond_are_cut_off() -> None:
    async with producing() as (cluster, producer):
        for unit, number in (("ns", 5_999_999), ("us", 5_999), ("ms", 5)):
            await producer.send_arrow(
                "t", pa.table({"value": [b"v"], "timestamp": pa.array([number], pa.timestamp(unit))})
            )
        assert [row.timestamp_ms for row in logs(cluster)[0]] == [5] * 3


async def test_what_else_may_go_wrong() -> None:
    table = pa.table({"value": [b"v"], "partition": [9]})
    async with producing() as (_, producer):
        with pytest.raises(BrokerError, match="no partition 9"):
            await producer.send_arrow("t", table)
        assert len(await producer.send_arrow("t", table.slice(0, 0))) == 0
        with pytest.raises(RecordTypeError, match="keys are given for"):
            await producer.send_many("t", [b"v"], [b"k", b"k"])
        with pytest.raises(RecordTypeError, match="keys are given for"):
            await producer.send_many("t", [NewRecord(b"v")], [b"k"])
        with pytest.raises(RecordTypeError, match="bytes-like"):
            await producer.send_many("t", [b"v"], ["k"])  # type: ignore[list-item]
    with pytest.raises(ClosedError):
        await producer.send_arrow("t", table)


async def test_a_topic_is_text() -> None:
    async with producing() as (_, producer):
        for table in (pa.table({"value": [b"v"]}), pa.table({"value": [b"v"], "key": [b"k"]})):
            for call in (producer.send_arrow, producer.enqueue_arrow):
                with pytest.raises(RecordTypeError, match="a topic's name is a str"):
                    await call(["t"], table)  # type: ignore[arg-type]


async def test_headers_need_a_broker_that_has_them() -> None:
    header = pa.map_(pa.string(), pa.binary())
    table = pa.table({"value": [b"v", b"w"], "headers": pa.array([[("h", b"1")], []], header)})
    async with producing(version="0.10.2") as (cluster, producer):
        with pytest.raises(UnsupportedVersionError, match=r"headers of records need Kafka 0\.11"):
            await producer.send_arrow("t", table)
        assert [row.value for row in logs(cluster)[0]] == [b"w"]


async def test_in_a_transaction() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        async with Producer(cluster.bootstrap_servers, transactional_id="x") as producer:
            async with producer.transaction():
                await producer.send_arrow("t", pa.table({"value": [b"a", b"b"], "key": [b"k", None]}))
        assert [row.value for row in cluster.records("t", 0, committed=True)] == [b"a", b"b"]


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("kind", ["values", "keys", "times", "one partition", "partitions", "headers", "nulls"])
async def test_new_records_go_as_they_would_one_by_one(partitions: int, kind: str) -> None:
    """Whichever way the list takes: the same place, time, key and headers as each of them sent alone."""

    def made(number: int) -> NewRecord:
        is_keyed = kind != "values" and (kind != "nulls" or number % 2 == 0)
        return NewRecord(
            None if kind == "nulls" and number % 3 == 0 else b"v%d" % number,
            b"k%d" % (number % 40) if is_keyed else None,
            (("h", b"%d" % number),) if kind == "headers" and number % 5 == 0 else (),
            1_600_000_000_000 + number if kind in ("times", "nulls") else None,
            {"one partition": 0, "partitions": number % partitions}.get(kind),
        )

    records = [made(number) for number in range(2500)]
    async with producing(topics={"t": partitions}, batch_size=20_000) as (cluster, producer):
        await producer.send("t", b"first", b"k0")  # the topic is known from here on
        sent = await producer.send_many("t", records)
        found = logs(cluster)
        rows = [found[each.partition][each.offset] for each in sent]
    assert [(row.value, row.key) for row in rows] == [(each.value, each.key) for each in records]
    assert [row.headers for row in rows] == [each.headers for each in records]
    for row, place, each in zip(rows, sent, records, strict=True):
        assert row.timestamp_ms == place.timestamp_ms
        assert each.timestamp_ms in (None, row.timestamp_ms)
        if each.partition is not None:
            assert place.partition == each.partition
        elif each.key is not None:
            assert place.partition == murmur2_partition(each.key, partitions)


@pytest.mark.parametrize(
    ("odd", "error"),
    [
        (NewRecord("text", b"k"), RecordTypeError),  # type: ignore[arg-type]
        (NewRecord(b"v", "text"), RecordTypeError),  # type: ignore[arg-type]
        (NewRecord(b"v", b"k", 5), RecordTypeError),  # type: ignore[arg-type]
        (NewRecord(b"v", b"k", (), -1), LocalProtocolError),
        (NewRecord(b"v", b"k", (), True), RecordTypeError),
        (NewRecord(b"v", b"k", (), None, True), RecordTypeError),
        (NewRecord(b"v", b"k", (), None, -1), UnknownTopicError),
        (NewRecord(bytes(1 << 21), b"k"), RecordTooLargeError),
    ],
)
async def test_a_new_record_that_is_refused_keeps_back_none_before_it(odd: NewRecord, error: type[Exception]) -> None:
    async with producing() as (cluster, producer):
        await producer.send("t", b"first")
        with pytest.raises(error):
            await producer.send_many("t", [*[NewRecord(b"v", b"k", (), 5)] * 20, odd, NewRecord(b"after")])
        await producer.flush()
        assert [record.value for record in logs(cluster)[0]] == [b"first", *[b"v"] * 20]


@pytest.mark.parametrize("topics", [{"t": 1}, {"t": 3}], ids=["one partition", "three"])
@pytest.mark.parametrize("is_keyed", [True, False])
@pytest.mark.parametrize("sizes", [(0,), (0, 1), (1, 0), (1, 0, 2), (0, 0, 3, 0, 0, 1, 0)], ids=str)
async def test_chunks_without_rows(topics: dict[str, int], is_keyed: bool, sizes: tuple[int, ...]) -> None:
    """Filters and joined tables leave them, wherever they like."""
    rows = [b"%d" % number for number in range(sum(sizes))]
    starts = [sum(sizes[:index]) for index in range(len(sizes))]
    chunks = [pa.array(rows[start : start + size], pa.binary()) for start, size in zip(starts, sizes, strict=True)]
    column = pa.chunked_array(chunks)
    table = pa.table({"value": column, "key": column} if is_keyed else {"value": column})
    async with producing(topics=topics) as (cluster, producer):
        for _ in range(2):  # the topic is known from the second time on
            sent = await producer.send_arrow("t", table)
            found = logs(cluster)
            assert [found[each.partition][each.offset].value for each in sent] == rows
        assert len(await producer.enqueue_arrow("t", table, 0)) == len(rows)
        await producer.flush()
        assert sum(map(len, logs(cluster))) == 3 * len(rows)


async def test_columns_of_nulls_without_a_type() -> None:
    nulls = pa.nulls(3)
    table = pa.table(
        {"value": [b"a", b"b", b"c"], **dict.fromkeys(("key", "headers", "partition", "timestamp"), nulls)}
    )
    async with producing() as (cluster, producer):
        first = (await producer.send("t", b"first")).timestamp_ms
        for _ in range(2):
            await producer.send_arrow("t", table)
        found = logs(cluster)[0][1:]
        assert [(row.value, row.key, row.headers) for row in found] == [(b"%c" % each, None, ()) for each in b"abcabc"]
        assert all(row.timestamp_ms >= first for row in found)
        await producer.send_arrow("t", pa.table({"value": nulls}))
        assert [row.value for row in logs(cluster)[0][7:]] == [None] * 3
