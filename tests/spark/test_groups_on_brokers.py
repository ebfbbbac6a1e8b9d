"""What a stream has processed, as real brokers show it to those who look at the group."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tests.integration.clusters import Clusters, RealCluster
from tests.integration.legacy_group import told_by_broker
from tests.spark.queries import finish


def shown(cluster: RealCluster, group: str, topic: str) -> list[int]:
    """The offset of each partition; by OffsetFetch v0, which knows ZooKeeper alone, where no tool says it."""
    if cluster.version.startswith("0.8"):
        return [each for each in told_by_broker(cluster, group, topic, 2) if isinstance(each, int)]
    text = cluster.tool("consumer-groups", "--bootstrap-server", "{bootstrap}", "--describe", "--group", group)
    lines = sorted(words for line in text.splitlines() if topic in (words := line.split()))
    assert all(int(offset) + int(lag) == int(end) for _, _, _, offset, end, lag, *_ in lines)
    return [int(words[3]) for words in lines]


@pytest.mark.parametrize(("release", "name"), [("0.8.2.2", "zookeeper:{group}@{zookeeper}"), ("4.3.1", "{group}")])
def test_a_group_is_told_of_what_is_processed_and_the_next_job_starts_there(
    spark: SparkSession, clusters: Clusters, release: str, name: str, tmp_path: Path
) -> None:
    cluster = clusters.running(release)
    topic = cluster.new_topic("groups", 2)
    cluster.java_produce(topic, [str(number) for number in range(30)])
    group = f"of-{topic}"
    where = name.format(group=group, zookeeper=cluster.zookeeper)
    options = {"kafka.bootstrap.servers": cluster.bootstrap, "subscribe": topic}

    stream = spark.readStream.format("pykafka08").options(
        **options, startingOffsets="earliest", maxOffsetsPerTrigger="10", commitGroup=where
    )

    def start() -> StreamingQuery:
        writer = stream.load().writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
        return writer.trigger(availableNow=True).start()

    finish(start)
    found = shown(cluster, group, topic)
    assert len(found) == 2
    # Spark tells a source of a batch when it plans the next, and of the last of a query not at all.
    processed = sum(found)
    assert 15 <= processed < 30
    rest = spark.read.format("pykafka08").options(**options, startingGroup=where).load()
    assert rest.count() == 30 - processed
