"""Under Spark: real brokers of every age, batch and stream; projection, filters, errors where Spark shows them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from pykafka08 import NewRecord, Producer
from pykafka08.spark.runtime import run
from tests.integration.clusters import Clusters
from tests.spark.queries import finish
from tests.spark.sinks import embedded

RELEASES = ["0.8.2.2", "0.9.0.1", "0.11.0.3", "2.8.2", "3.9.2", "4.3.1"]
FIRST_MS = 1_700_000_000_000
MIB = 1 << 20


def load(spark: SparkSession, servers: str, topic: str, **options: Any) -> DataFrame:
    given = {"kafka.bootstrap.servers": servers, "subscribe": topic, **options}
    return spark.read.format("pykafka08").options(**given).load()


def fill(servers: str, topic: str, records: list[NewRecord], **settings: Any) -> None:
    async def send() -> None:
        async with Producer(bootstrap_servers=servers, **settings) as producer:
            await producer.send_many(topic, records)

    run(send())


def samples(*, has_times: bool, has_headers: bool) -> list[NewRecord]:
    """For partitions 0 to 2 of 4: null keys and values, empty ones, headers, and values of nearly 1 MiB."""
    records = [
        NewRecord(
            None if number % 7 == 0 else b"v%d" % number * (number % 5),
            None if number % 3 == 0 else b"k%d" % number,
            (("a", b"%d" % number), ("a", None)) if has_headers and number % 4 == 0 else (),
            FIRST_MS + number if has_times else None,
            number % 3,
        )
        for number in range(3000)
    ]
    large = NewRecord(b"x" * (MIB - 50_000), b"large", (), FIRST_MS if has_times else None, 1)
    return [*records, large, large]


def check(rows: list[Row], records: list[NewRecord], topic: str) -> None:
    """All columns of all records, and no row beside them."""
    expected = [record for partition in range(3) for record in records if record.partition == partition]
    assert len(rows) == len(expected)
    places = {partition: 0 for partition in range(3)}
    for row, record in zip(rows, expected, strict=True):
        offset = places[row.partition]
        places[row.partition] += 1
        assert (row.key, row.value, row.topic) == (record.key, record.value, topic)
        assert (row.partition, row.offset) == (record.partition, offset)
        assert (row.ms, row.timestampType) == ((-1, -1) if record.timestamp_ms is None else (record.timestamp_ms, 0))
        assert [(each.key, each.value) for each in row.headers or ()] == list(record.headers)
        assert (row.headers is None) == (not record.headers)


def rows_of(frame: DataFrame) -> list[Row]:
    return frame.selectExpr("*", "unix_millis(timestamp) as ms").orderBy("partition", "offset").collect()


@pytest.mark.parametrize("release", RELEASES)
def test_rows_are_what_was_produced(spark: SparkSession, clusters: Clusters, release: str) -> None:
    """In batch and as a stream, by either clock."""
    kafka = clusters.running(release)
    topic = kafka.new_topic("batch", partitions=4)
    has_times = kafka.release >= (0, 10)
    records = samples(has_times=has_times, has_headers=kafka.release >= (0, 11))
    fill(kafka.bootstrap, topic, records)
    dated = [kafka.new_topic("dated", **{"message.timestamp.type": "LogAppendTime"})] if has_times else []
    late = [NewRecord(b"%d" % number, timestamp_ms=FIRST_MS, partition=0) for number in range(100)]
    for each in dated:
        fill(kafka.bootstrap, each, late)

    def check_all(frame: DataFrame) -> None:
        check(rows_of(frame.where(F.col("topic") == topic)), records, topic)
        for each in dated:
            rows = rows_of(frame.where(F.col("topic") == each))
            assert [row.value for row in rows] == [record.value for record in late]
            assert all(row.timestampType == 1 and row.ms > FIRST_MS for row in rows)

    topics = ",".join([topic, *dated])
    check_all(load(spark, kafka.bootstrap, topics, includeHeaders="true"))
    assert load(spark, kafka.bootstrap, topic).count() == len(records)
    options = {"kafka.bootstrap.servers": kafka.bootstrap, "subscribe": topics, "includeHeaders": "true"}
    limits = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "1200"}

    def start() -> StreamingQuery:
        rows = spark.readStream.format("pykafka08").options(**options, **limits).load()
        return rows.writeStream.format("memory").queryName("found").trigger(availableNow=True).start()

    assert len(finish(start)) == 3
    check_all(spark.table("found"))


@pytest.fixture
def pushdown(spark: SparkSession) -> Iterator[None]:
    """Spark hands filters to the readers that want them."""
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    yield
    spark.conf.unset("spark.sql.python.filterPushdown.enabled")


@pytest.mark.usefixtures("pushdown")
def test_projection_filters_and_limits(spark: SparkSession) -> None:
    with embedded(topics={"t": 3}) as cluster:
        records = [
            NewRecord(b"%d" % number, timestamp_ms=FIRST_MS + number, partition=number % 3) for number in range(30_000)
        ]
        fill(cluster.servers, "t", records)
        frame = load(spark, cluster.servers, "t")
        assert load(spark, cluster.servers, "t", columns="offset, value").columns == ["offset", "value"]
        given = spark.read.format("pykafka08").schema("value binary, partition int")
        assert given.options(**{"kafka.bootstrap.servers": cluster.servers, "subscribe": "t"}).load().count() == 30_000
        assert frame.limit(3).count() == 3
        for pushed in ("true", "false"):
            bounds = load(spark, cluster.servers, "t", pushFilters=pushed)
            bounds = bounds.where("partition = 2 and offset >= 100 and offset < 103")
            assert sorted(row.value for row in bounds.collect()) == [b"302", b"305", b"308"]
        late = load(spark, cluster.servers, "t", pushFilters="true")
        late = late.where(f"timestamp >= timestamp_millis({FIRST_MS + 29_995}) and topic in ('t', 'u')")
        assert sorted(row.value for row in late.collect()) == [b"%d" % number for number in range(29_995, 30_000)]
        assert frame.where("topic = 'u'").count() == 0
        assert load(spark, cluster.servers, "t", minPartitions="6").rdd.getNumPartitions() == 6
        latest = frame.selectExpr("max(offset) as last", "count(*) as rows").first()
        assert latest is not None
        assert (latest.last, latest.rows) == (9_999, 30_000)


def test_errors_are_raised_where_spark_shows_them(spark: SparkSession) -> None:
    with embedded(topics={"t": 1}) as cluster:
        for options, words in (
            ({"subscribe": "nowhere", "fetchOffset.numRetries": "0"}, "Unknown topic nowhere"),
            ({"startingOffsets": "latest"}, "starting offset can't be latest for batch queries on Kafka"),
            ({"startingOffsets": '{"t":{"0":'}, "startingOffsets|startingoffsets"),
            ({"startingOffsets": '{"t":{"1":0}}'}, "you must specify all"),
            ({"columns": "key,colour"}, "columns key, colour are not some of"),
            ({"nonsense": "1"}, "Unknown option"),
            ({"pushFilters": "true"}, "DATA_SOURCE_PUSHDOWN_DISABLED"),
        ):
            with pytest.raises(PySparkException, match=words):
                load(spark, cluster.servers, "t", **{"subscribe": "t", **options}).count()
        options = {"kafka.bootstrap.servers": cluster.servers, "subscribe": "t"}
        wrong = spark.read.format("pykafka08").schema("value string").options(**options).load()
        with pytest.raises(PySparkException, match="fixed schema"):
            wrong.count()
        settings = {"kafka.default.api.timeout.ms": "1000", "kafka.request.timeout.ms": "1000"}
        with pytest.raises(PySparkException, match=r"127\.0\.0\.1:1"):
            load(spark, "127.0.0.1:1", "t", **settings).count()
        fill(cluster.servers, "t", [NewRecord(b"x")])
        assert load(spark, cluster.servers, "t").count() == 1


def test_found_without_registration(spark: SparkSession) -> None:
    """A session that nobody registered the format in."""
    with embedded(topics={"t": 1}) as cluster:
        fill(cluster.servers, "t", [NewRecord(b"x")])
        other = spark.newSession()
        assert load(other, cluster.servers, "t").count() == 1
