"""The same misuse of both connectors ends in the same words, and nothing is read."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from pykafka08.errors import KafkaError
from pykafka08.spark.batch_reader import KafkaBatchReader
from pykafka08.spark.columns import schema_of
from pykafka08.spark.options import read_options
from pykafka08.spark.stream_reader import KafkaStreamReader
from tests.spark.queries import failure_of, python_processes
from tests.spark.sinks import ThreadedCluster, embedded

LEAST = {"subscribe": "t", "fetchOffset.numRetries": "1", "fetchOffset.retryIntervalMs": "1"}
OFFSETS = 'Expected e.g. {"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}, got '
BATCH: list[tuple[dict[str, str], str]] = [
    ({"assign": '{"t":[0]}'}, "Only one of the following options can be specified for Kafka source: "),
    ({"subscribe": " , "}, "No topics to subscribe to as specified value for option 'subscribe' is ' , '"),
    ({"startingOffsets": "latest"}, "starting offset can't be latest for batch queries on Kafka"),
    ({"endingOffsets": "earliest"}, "ending offset can't be earliest for batch queries on Kafka"),
    ({"startingOffsets": '{"t":{"0":-1}}'}, "startingOffsets for t-0 can't be latest for batch queries on Kafka"),
    ({"endingOffsets": '{"t":{"0":-2}}'}, "ending offset for t-0 can't be earliest for batch queries on Kafka"),
    ({"startingOffsets": "{broken"}, OFFSETS + "{broken"),
    ({"startingOffsets": "tomorrow"}, OFFSETS + "tomorrow"),
    (
        {"startingTimestamp": "5", "startingOffsetsByTimestampStrategy": "skip"},
        "No value found for 'SKIP'",
    ),
    ({"startingTimestamp": "soon"}, "Expected a single long value, got soon"),
    (
        {"startingOffsets": '{"t":{"0":0}}'},
        "Partitions specified for Kafka start offsets don't match what are assigned.",
    ),
    (
        {"startingOffsets": '{"t":{"0":0,"1":0,"2":0}}'},
        "Partitions specified for Kafka start offsets don't match what are assigned.",
    ),
    ({"startingTimestamp": "99"}, "No offset matched from request of topic-partition t-"),
    ({"minPartitions": "0"}, "minPartitions must be positive"),
    ({"minPartitions": "99999999999"}, 'For input string: "99999999999"'),
    ({"maxRecordsPerPartition": "0"}, "maxrecordsperpartition must be positive"),
    ({"kafka.auto.offset.reset": "latest"}, "Kafka option 'auto.offset.reset' is not supported."),
    ({"kafka.key.deserializer": "x"}, "not supported as keys are deserialized as byte arrays"),
    ({"kafka.value.deserializer": "x"}, "not supported as values are deserialized as byte arrays"),
    ({"kafka.enable.auto.commit": "true"}, "Kafka option 'enable.auto.commit' is not supported"),
    ({"kafka.interceptor.classes": "x"}, "Kafka option 'interceptor.classes' is not supported"),
    ({"failOnDataLoss": "perhaps"}, 'For input string: "perhaps"'),
    ({"subscribe": "nowhere"}, "This server does not host this topic-partition."),
]
STREAM: list[tuple[dict[str, str], str]] = [
    (
        {"maxTriggerDelay": "5x", "minOffsetsPerTrigger": "9"},
        'minutes (m or min), hour (h), or day (d). E.g. 50s, 100ms, or 250us. Invalid suffix: "x"',
    ),
    ({"endingOffsets": "latest"}, "ending offset not valid in streaming queries"),
    (
        {"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "5"},
        "The value of minOffsetPerTrigger(9) is higher than the maxOffsetsPerTrigger(5).",
    ),
    (
        {"startingOffsets": '{"t":{"0":0}}'},
        "you must specify all TopicPartitions.",
    ),
    ({"subscribe": "nowhere"}, "This server does not host this topic-partition."),
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[ThreadedCluster]:
    with embedded(version="3.9", topics={"t": 2}, auto_create_topics=False) as cluster:
        yield cluster


def words_of(error: BaseException) -> str:
    """All that is said, in one line: the connectors break theirs in other places."""
    return " ".join(str(error).replace("\\n", " ").replace('\\"', '"').split())


def read_stream(spark: SparkSession, form: str, options: dict[str, str], checkpoint: Path) -> StreamingQuery:
    frame = spark.readStream.format(form).options(**options).load()
    return frame.writeStream.format("noop").option("checkpointLocation", str(checkpoint)).start()


def plan(options: dict[str, str], *, streaming: bool) -> None:
    """What the driver does of ours when a query is planned."""
    read, schema = read_options(options, streaming=streaming), schema_of(None, include_headers=False)
    if streaming:
        KafkaStreamReader(read, schema).initialOffset()
    else:
        KafkaBatchReader(read, schema).partitions()


def test_sparks_own_connector_says_so(spark: SparkSession, cluster: ThreadedCluster, tmp_path: Path) -> None:
    for given, words in BATCH:
        options = {"kafka.bootstrap.servers": cluster.servers, **LEAST, **given}
        with pytest.raises((PySparkException, Py4JJavaError)) as caught:  # the latter of errors in Spark's planning
            spark.read.format("kafka").options(**options).load().count()
        assert words in words_of(caught.value), given
    for number, (given, words) in enumerate(STREAM):
        options = {"kafka.bootstrap.servers": cluster.servers, **LEAST, **given}
        failure = failure_of(partial(read_stream, spark, "kafka", options, tmp_path / str(number)))
        assert words in words_of(failure), given


def test_ours_says_so(cluster: ThreadedCluster) -> None:
    for streaming, table in ((False, BATCH), (True, STREAM)):
        for given, words in table:
            options = {"kafka.bootstrap.servers": cluster.servers, **LEAST, **given}
            with pytest.raises(KafkaError) as caught:
                plan(options, streaming=streaming)
            assert words in words_of(caught.value), given


def write_stream(spark: SparkSession, rows: list[str], options: dict[str, str], folder: Path) -> StreamingQuery:
    (folder / "input").mkdir(exist_ok=True)
    (folder / "input" / "lines.txt").write_text("a\nb\n")
    frame = spark.readStream.text(str(folder / "input")).selectExpr(*rows)
    writer = frame.writeStream.format("pykafka08").options(**options).trigger(availableNow=True)
    return writer.option("checkpointLocation", str(folder / "checkpoint")).start()


def test_ours_says_so_where_spark_shows_it(spark: SparkSession, cluster: ThreadedCluster, tmp_path: Path) -> None:
    """And no process of a stream stays behind."""
    servers = {"kafka.bootstrap.servers": cluster.servers}
    hasty = {"kafka.default.api.timeout.ms": "1000", "kafka.request.timeout.ms": "1000", **LEAST}
    reads = [
        ({"subscribe": "nowhere"}, "This server does not host this topic-partition"),
        ({"startingOffsets": "{broken"}, OFFSETS + "{broken"),
        ({"kafka.bootstrap.servers": "127.0.0.1:1"}, "127.0.0.1:1"),
    ]
    for number, (given, words) in enumerate(reads):
        options = {**servers, **hasty, **given}
        with pytest.raises(PySparkException) as caught:
            spark.read.format("pykafka08").options(**options).load().count()
        assert words in words_of(caught.value), given
        start = partial(read_stream, spark, "pykafka08", options, tmp_path / str(number))
        assert words in words_of(failure_of(start)), given
    writes = [
        (["1L as value"], {"topic": "t"}, "value attribute unsupported type bigint"),
        (["value"], {}, "topic option required when no 'topic' attribute is present"),
        (["value", "cast(null as string) as topic"], {}, "contains a null topic"),
    ]
    for number, (rows, given, words) in enumerate(writes):
        folder = tmp_path / f"write-{number}"
        folder.mkdir()
        start = partial(write_stream, spark, rows, {**servers, **given}, folder)
        assert words in words_of(failure_of(start)), given
    assert cluster.values("t") == []
    while python_processes(
        "python_streaming_source_runner"
    ):  # until the test's own time-out: Spark ends them meanwhile
        time.sleep(0.05)
