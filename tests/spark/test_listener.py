"""Progress of queries as listeners hear of it, and processed offsets that are committed to groups."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from pyspark.sql import SparkSession

from pykafka08 import Admin, EmbeddedZooKeeper, Producer, TopicPartition
from pykafka08.errors import ConfigError, KafkaError
from pykafka08.spark.committed_group import CommittedGroup, parse_group
from pykafka08.spark.group_commits import GroupCommits, commit_offsets
from pykafka08.spark.listener import ProgressListener
from pykafka08.spark.options import write_options
from pykafka08.spark.progress import QueryProgress, read_progress
from pykafka08.spark.record_sizes import RecordSizes
from pykafka08.spark.runtime import runtime
from tests.spark.sinks import embedded

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
WAIT_S = 240
"""For a query that ends by itself: the machine may be busy."""


def progress_text(**source: Any) -> str:
    found = {"startOffset": {"t": {"0": 1, "1": 0}}, "numInputRows": 4, "processedRowsPerSecond": 2.5, **source}
    return json.dumps(
        {
            "id": "11-22",
            "runId": "33",
            "name": "mine",
            "batchId": 7,
            "durationMs": {"triggerExecution": 120},
            "sources": [found, {"endOffset": {"logOffset": 3}, "numInputRows": 9}, {"endOffset": "17"}],
        }
    )


# --- progress ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("as_text", [True, False])
def test_lag_is_told_by_partition_and_by_the_names_of_spark(as_text: bool) -> None:
    end: Any = {"t": {"0": 5, "1": 0}}
    latest: Any = {"t": {"0": 8, "1": 1, "2": 4}}
    if as_text:
        end, latest = json.dumps(end), json.dumps(latest)
    progress = read_progress(progress_text(endOffset=end, latestOffset=latest))
    (source,) = progress.sources
    assert source.lag == {T0: 3, T1: 1, TopicPartition("t", 2): 4}
    assert source.metrics == {
        "minOffsetsBehindLatest": 1,
        "maxOffsetsBehindLatest": 4,
        "avgOffsetsBehindLatest": pytest.approx(8 / 3),
    }
    assert (progress.batch_id, progress.rows, progress.duration_ms, progress.name) == (7, 4, 120, "mine")
    assert progress.ends == {T0: 5, T1: 0}


def test_a_source_that_does_not_say_where_the_logs_end_has_no_lag() -> None:
    (source,) = read_progress(progress_text(endOffset={"t": {"0": 5}}, latestOffset=None)).sources
    assert source.lag == {}
    assert source.metrics == {}


def test_what_is_no_progress_is_an_error() -> None:
    for text in ("", "{", "nothing"):
        with pytest.raises(ValueError, match=r"."):
            read_progress(text)


# --- groups -----------------------------------------------------------------------------------------------------------


def test_groups_are_named_with_where_they_are() -> None:
    assert parse_group("g") == CommittedGroup("g")
    assert parse_group("zookeeper:g@a:2181,b:2181/c") == CommittedGroup("g", "a:2181,b:2181/c")
    for text in ("", "zookeeper:g", "zookeeper:@a:1", "zookeeper:g@"):
        with pytest.raises(ConfigError):
            parse_group(text)


@pytest.mark.parametrize("version", ["0.8.2", "0.10.2", "4.3"])
def test_offsets_are_committed_to_kafka(version: str) -> None:
    with embedded(version=version, topics={"t": 2}) as cluster:
        client = write_options({"kafka.bootstrap.servers": cluster.servers}).client
        commit_offsets(client, CommittedGroup("g"), {})
        commit_offsets(client, CommittedGroup("g"), {T0: 5, T1: 7})
        commit_offsets(client, CommittedGroup("g"), {T0: 6})
        assert committed(cluster.servers) == {T0: 6, T1: 7}


def committed(servers: str) -> dict[TopicPartition, int]:
    async def ask() -> dict[TopicPartition, int]:
        async with Admin(servers) as admin:
            found = await admin.list_group_offsets("g", [T0, T1])
            return {tp: each.offset for tp, each in found.items()}

    return runtime().run(ask())


def test_offsets_are_committed_to_zookeeper() -> None:
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(EmbeddedZooKeeper()) as zookeeper:
        client = write_options({"kafka.bootstrap.servers": "localhost:1"}).client  # nobody asks it
        group = parse_group(f"zookeeper:g@{zookeeper.address}")
        try:
            for offset in (5, 6):
                commit_offsets(client, group, {T0: offset, T1: 7})
        finally:
            runtime().close()
        data = [portal.call(zookeeper.read, f"/consumers/g/offsets/t/{number}") for number in range(2)]
        assert data == [b"6", b"7"]


def test_a_commit_that_fails_is_noted_and_the_next_is_tried() -> None:
    with embedded(topics={"t": 1}) as cluster:
        commits = GroupCommits({"kafka.bootstrap.servers": cluster.servers}, "g")
        commits.commit({TopicPartition("t", 3): 1}).result(WAIT_S)
        assert isinstance(commits.error, KafkaError)
        commits.commit({T0: 4}).result(WAIT_S)
        assert commits.error is None
        assert commits.committed == {T0: 4}
        commits.close()


def fill(servers: str, values: list[bytes]) -> None:
    """Into each of two partitions."""

    async def send() -> None:
        async with Producer(servers) as producer:
            for number in range(2):
                await producer.enqueue_columns("t", number, values)

    runtime().run(send())


# --- the listener -----------------------------------------------------------------------------------------------------


def told(listener: ProgressListener, text: str) -> None:
    listener.onQueryProgress(SimpleNamespace(progress=SimpleNamespace(json=text)))  # type: ignore[arg-type]


def test_a_listener_hears_of_its_query_and_commits_once_more_at_the_end() -> None:
    with embedded(topics={"t": 2}) as cluster:
        commits = GroupCommits({"kafka.bootstrap.servers": cluster.servers}, "g")
        heard: list[QueryProgress] = []
        listener = ProgressListener(heard.append, query="mine", commits=commits)
        other = ProgressListener(heard.append, query="other")
        text = progress_text(endOffset={"t": {"0": 5, "1": 0}}, latestOffset={"t": {"0": 8, "1": 1}})
        told(listener, text)
        told(other, text)
        told(listener, json.dumps({**json.loads(text), "sources": []}))
        assert [each.batch_id for each in heard] == [7]
        assert listener.last["11-22"].ends == {T0: 5, T1: 0}
        listener.onQueryTerminated(SimpleNamespace(id="11-22"))  # type: ignore[arg-type]
        commits.close()
        assert committed(cluster.servers) == {T0: 5, T1: 0}


def test_a_listener_tells_about_how_many_bytes() -> None:
    with embedded(topics={"t": 2}) as cluster:
        options = {"kafka.bootstrap.servers": cluster.servers}
        fill(cluster.servers, [bytes(1000)] * 500)
        heard: list[QueryProgress] = []
        sizes = RecordSizes(options)
        text = progress_text(endOffset={"t": {"0": 101, "1": 300}})
        told(ProgressListener(heard.append, sizes=sizes), text)
        told(ProgressListener(heard.append), text)
        sizes.close()
    assert [each.sources[0].starts for each in heard] == [{T0: 1, T1: 0}] * 2
    assert 400 * 1000 < (heard[0].estimated_bytes or 0) < 400 * 1030
    assert heard[1].estimated_bytes is None


@pytest.mark.timeout(300)
def test_a_stream_under_spark_is_seen_by_lag_tools(spark: SparkSession, tmp_path: Path) -> None:
    with embedded(topics={"t": 2}) as cluster:
        fill(cluster.servers, [b"v"] * 500)
        options = {"kafka.bootstrap.servers": cluster.servers}
        commits, sizes = GroupCommits(options, "g"), RecordSizes(options)
        heard: list[QueryProgress] = []
        is_over = Event()

        def hear(progress: QueryProgress) -> None:
            heard.append(progress)
            if sum(progress.ends.values()) == 1000:
                is_over.set()

        listener = ProgressListener(hear, query="seen", commits=commits, sizes=sizes)
        spark.streams.addListener(listener)
        try:
            query = (
                spark.readStream.format("pykafka08")
                .options(subscribe="t", startingOffsets="earliest", maxOffsetsPerTrigger="400", **options)
                .load()
                .writeStream.queryName("seen")
                .format("noop")
                .option("checkpointLocation", str(tmp_path))
                .trigger(availableNow=True)
                .start()
            )
            assert query.awaitTermination(WAIT_S)
            assert is_over.wait(WAIT_S)
        finally:
            spark.streams.removeListener(listener)
            commits.close()
            sizes.close()
        assert sum(each.rows for each in heard) == 1000
        assert all(7 * each.rows < (each.estimated_bytes or 0) < 11 * each.rows for each in heard if each.rows)
        assert [sum(each.sources[0].lag.values()) for each in heard if each.rows] == [600, 200, 0]
        assert committed(cluster.servers) == {T0: 500, T1: 500}
