"""The sink under Spark: a batch, its errors, and a stream whose driver fails between two commits; embedded brokers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from pykafka08.error_codes import ErrorCode
from tests.spark.queries import failure_of, finish, kill_workers
from tests.spark.sinks import ThreadedCluster, embedded

pytestmark = pytest.mark.timeout(300)  # a session's start counts too


def write(frame: DataFrame, cluster: ThreadedCluster, mode: str = "append", **options: Any) -> None:
    frame.write.format("pykafka08").mode(mode).options(**{"kafka.bootstrap.servers": cluster.servers, **options}).save()


@pytest.mark.parametrize("version", ["0.8.2", "4.3"])
def test_a_batch_is_written_with_its_columns(spark: SparkSession, version: str) -> None:
    with embedded(version=version, topics={"t": 3, "u": 1}) as cluster:
        frame = spark.range(0, 30_000, 1, 3).selectExpr(
            "case when id % 2 = 0 then 't' else 'u' end as topic",
            "cast(id as string) as value",
            "case when id % 5 > 0 then cast(id % 7 as string) end as key",
            "case when id % 2 = 0 then cast(id % 3 as int) end as partition",
            "id as ignored",
        )
        write(frame, cluster)
        for topic, parity in (("t", 0), ("u", 1)):
            found = [(number, each) for number, log in enumerate(cluster.records(topic)) for each in log]
            assert sorted(int(each.value or b"") for _, each in found) == list(range(parity, 30_000, 2))
            for number, each in found:
                row = int(each.value or b"")
                assert each.key == (b"%d" % (row % 7) if row % 5 else None)
                assert topic == "u" or number == row % 3


def test_misuse_is_said_as_spark_says_it_and_where_spark_says_it(spark: SparkSession) -> None:
    with embedded(topics={"t": 1}) as cluster:
        frame = spark.range(3)
        text = frame.selectExpr("cast(id as string) as value")
        wrong = [
            (frame.selectExpr("id as value"), {"topic": "t"}, "append", "value attribute unsupported type bigint"),
            (frame, {"topic": "t"}, "append", "Required attribute 'value' not found"),
            (text, {}, "append", "topic option required when no 'topic' attribute is present"),
            (text, {"topic": "t"}, "overwrite", "Save mode overwrite not allowed for Kafka"),
            (text, {"topic": "t"}, "error", "UNSUPPORTED_DATA_SOURCE_SAVE_MODE"),
            (text, {"topic": "t", "kafka.acks": "2"}, "append", "acks"),
            (text, {"topic": "t", "kafka.key.serializer": "x"}, "append", "'key.serializer' is not supported"),
            (text, {"topic": "t", "topics": "u"}, "append", "Unknown option"),
            (text.selectExpr("value", "cast(null as string) as topic"), {}, "append", "contains a null topic"),
            (text.selectExpr("value", "cast(7 as int) as partition"), {"topic": "t"}, "append", "no partition 7"),
        ]
        for rows, options, mode, words in wrong:
            with pytest.raises(PySparkException) as raised:
                write(rows, cluster, mode, **options)
            assert words in str(raised.value)
        assert cluster.values("t") == []


def started(spark: SparkSession, folder: Path, cluster: ThreadedCluster, **options: str) -> StreamingQuery:
    rows = spark.readStream.option("maxFilesPerTrigger", 1).text(str(folder / "input")).repartition(3)
    return (
        rows.writeStream.format("pykafka08")
        .option("kafka.bootstrap.servers", cluster.servers)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .option("topic", "t")
        .options(**options)
        .trigger(availableNow=True)
        .start()
    )


@pytest.fixture
def lines(tmp_path: Path) -> list[bytes]:
    """Three files, a batch each; what is in them."""
    (tmp_path / "input").mkdir()
    for number in range(3):
        content = "".join(f"{number}-{line}\n" for line in range(1000))
        (tmp_path / "input" / f"{number}.txt").write_text(content)
    return sorted(b"%d-%d" % (number, line) for number in range(3) for line in range(1000))


def test_a_stream_is_written(spark: SparkSession, tmp_path: Path, lines: list[bytes]) -> None:
    with embedded(topics={"t": 2}) as cluster:
        finish(lambda: started(spark, tmp_path, cluster))
        assert cluster.values("t") == lines


def test_a_stream_whose_driver_fails_between_two_commits_has_each_row_once(
    spark: SparkSession, tmp_path: Path, lines: list[bytes]
) -> None:
    with embedded(topics={"t": 2}) as cluster:
        # Of the second batch's three transactions two are committed.
        cluster.faults.answer("EndTxn", ErrorCode.INVALID_TXN_STATE, skip=5)
        failure = failure_of(lambda: started(spark, tmp_path, cluster, exactlyOnce="true"))
        assert "1 of 3 transactions could not be committed" in str(failure)
        assert 1000 < len(cluster.values("t", committed=True)) < 2000
        finish(lambda: started(spark, tmp_path, cluster, exactlyOnce="true"))
        assert cluster.values("t", committed=True) == lines


def test_a_stream_whose_committing_process_is_killed_has_each_row_once(
    spark: SparkSession, tmp_path: Path, lines: list[bytes]
) -> None:
    killed: list[int] = []
    with embedded(topics={"t": 2}) as cluster:
        cluster.faults.run("EndTxn", lambda: killed.extend(kill_workers("python_streaming_sink_runner")), skip=4)
        failure_of(lambda: started(spark, tmp_path, cluster, exactlyOnce="true"))
        assert killed
        finish(lambda: started(spark, tmp_path, cluster, exactlyOnce="true"))
        assert cluster.values("t", committed=True) == lines
