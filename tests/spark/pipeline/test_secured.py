"""Spark's source and sink and a pipeline on a secured broker: every way in, what a missing right raises, no secrets.

One broker and the session that all tests share.  Other releases with ``PYKAFKA08_SOAK=1``.
"""

from __future__ import annotations

import json
import logging
import os
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from pykafka08 import NewRecord, Producer
from pykafka08.cli.main import main
from pykafka08.errors import AuthorizationError
from pykafka08.logs import ROOT
from pykafka08.spark.batch_reader import KafkaBatchReader
from pykafka08.spark.columns import schema_of
from pykafka08.spark.locating import OffsetsMismatchError
from pykafka08.spark.options import read_options, write_options
from pykafka08.spark.pipeline import running, settings, verifying
from pykafka08.spark.runtime import run as run_here
from pykafka08.spark.runtime import runtime
from pykafka08.spark.sink.markers import Place
from pykafka08.spark.sink.two_phase import commit_batch, prepare
from pykafka08.spark.sink.writer import write_task
from tests.integration.clusters import Clusters, RealCluster
from tests.spark.pipeline import orders
from tests.spark.queries import failure_of, finish
from tests.spark.secured import EVERY_WAY, WAYS, WRONG_PASSWORD, allow, options_of, secrets_of, security_of
from tests.spark.secured import running as secured_cluster

RELEASES = ("2.8.2", "3.9.2", "4.3.1") if os.environ.get("PYKAFKA08_SOAK") else ("4.3.1",)
SCRAM = "SASL_SSL SCRAM-SHA-512"
ROWS = 50
CERTIFICATE = "User:CN=client"


@pytest.fixture(scope="module", params=RELEASES)
def cluster(request: pytest.FixtureRequest, clusters: Clusters) -> Iterator[RealCluster]:
    started = secured_cluster(clusters, str(request.param))
    allow(started, CERTIFICATE, "ALL topic open*", "ALL group *", "ALL transactional-id *")
    yield started
    runtime().close()


@pytest.fixture(scope="module", autouse=True)
def heard() -> Iterator[list[str]]:
    """All that the library logs in this process while the module's tests run, with tracebacks."""
    lines: list[str] = []
    handler = logging.Handler(logging.DEBUG)
    handler.emit = lambda record: lines.append(logging.Formatter().format(record) + repr(record.__dict__))  # type: ignore[method-assign]
    root = logging.getLogger(ROOT)
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield lines
    root.removeHandler(handler)
    root.setLevel(before)


def load(spark: SparkSession, options: dict[str, str], topic: str, **more: str) -> DataFrame:
    return spark.read.format("pykafka08").options(**options, subscribe=topic, **more).load()


def write(frame: DataFrame, options: dict[str, str], topic: str) -> None:
    frame.write.format("pykafka08").mode("append").options(**options, topic=topic).save()


def numbers(spark: SparkSession, count: int = ROWS) -> DataFrame:
    return spark.range(0, count, 1, 1).selectExpr("cast(id as string) as value")


def union(frames: list[DataFrame]) -> DataFrame:
    whole = frames[0]
    for each in frames[1:]:
        whole = whole.unionByName(each)
    return whole


def test_batches_and_streams_take_every_way_in(spark: SparkSession, cluster: RealCluster, tmp_path: Path) -> None:
    """Written in batches, carried on by a stream that writes exactly once, and read in batches."""
    source, target = cluster.new_topic("open-source"), cluster.new_topic("open-target")
    for way in WAYS:
        write(numbers(spark), options_of(cluster, way), source)
    all_rows = len(WAYS) * ROWS

    def start() -> StreamingQuery:
        reader = spark.readStream.format("pykafka08")
        more = {"subscribe": source, "startingOffsets": "earliest"}
        read = [
            reader.options(**options_of(cluster, way), **more).load().select(F.lit(way).alias("key"), "value")
            for way in WAYS
        ]
        writer = union(read).writeStream.format("pykafka08").options(**options_of(cluster, SCRAM), topic=target)
        writer = writer.option("exactlyOnce", "true").option("checkpointLocation", str(tmp_path / "checkpoint"))
        return writer.trigger(availableNow=True).start()

    finish(start)
    committed = {"kafka.isolation.level": "read_committed"}
    read = [load(spark, options_of(cluster, way), target, **committed) for way in WAYS]
    by_way = union([frame.select(F.lit(way).alias("way"), "key") for way, frame in zip(WAYS, read, strict=True)])
    found = {(row.way, row.key.decode()): row["count"] for row in by_way.groupBy("way", "key").count().collect()}
    assert found == {(way, key): all_rows for way in WAYS for key in WAYS}


def test_transactions_take_every_way_in(cluster: RealCluster) -> None:
    topic = cluster.new_topic("open-transactions")
    rows = [pa.record_batch({"value": [b"%d" % number for number in range(ROWS)]})]
    for number, way in enumerate(EVERY_WAY):
        options = write_options({**options_of(cluster, way), "topic": topic, "exactlyOnce": "true"})
        parts = [prepare(options, Place("p", f"query-{number}", 0, task), rows) for task in range(2)]
        commit_batch(options, parts, 0)
    reader = reader_of(options_of(cluster, SCRAM), topic, **{"kafka.isolation.level": "read_committed"})
    assert rows_read(reader) == 2 * len(EVERY_WAY) * ROWS


def reader_of(options: dict[str, str], topic: str, **more: str) -> KafkaBatchReader:
    given = read_options({**options, "subscribe": topic, **more}, streaming=False)
    return KafkaBatchReader(given, schema_of(["value"], include_headers=False))


def rows_read(reader: KafkaBatchReader) -> int:
    return sum(batch.num_rows for each in reader.partitions() for batch in reader.read(each))


# --- rights -----------------------------------------------------------------------------------------------------------


def refusal(action: Callable[[], object]) -> tuple[str, str | None, str | None]:
    with pytest.raises(AuthorizationError) as caught:
        action()
    error = caught.value
    assert f"may not {error.operation}" in str(error)
    return str(error.operation), error.resource_type, error.resource_name


def test_a_missing_right_is_one_error_that_names_it(spark: SparkSession, cluster: RealCluster) -> None:
    """Rights are given one by one; each error names the next one that is missing."""
    topic, target = cluster.new_topic("closed"), cluster.new_topic("closed-target")
    write(numbers(spark), options_of(cluster, SCRAM), topic)
    bob = options_of(cluster, SCRAM, user="bob")
    place = Place("sink", "query", 0, 0)
    once = write_options({**bob, "topic": target, "exactlyOnce": "true"})
    rows = [pa.record_batch({"value": [b"x"]})]

    def read() -> object:
        return rows_read(reader_of(bob, topic))

    def read_from_group() -> object:
        return rows_read(reader_of(bob, topic, startingGroup="closed-group"))

    def append() -> object:
        return write_task(write_options({**bob, "topic": target}), iter(rows))

    def transact() -> object:
        part = prepare(once, place, rows)
        return commit_batch(once, [part], 0)

    steps: list[tuple[Callable[[], object], str]] = [
        (read, f"DESCRIBE topic {topic}"),
        (read, f"READ topic {topic}"),
        (read_from_group, "DESCRIBE group closed-group"),
        (append, f"DESCRIBE topic {target}"),
        (append, f"WRITE topic {target}"),
        (transact, f"DESCRIBE transactional-id {place.transactional_id}"),
        (transact, f"WRITE transactional-id {place.transactional_id}"),
        (transact, f"DESCRIBE group {place.transactional_id}"),
        (transact, f"READ group {place.transactional_id}"),
        (transact, f"READ topic {target}"),
        (transact, f"DESCRIBE group {place.query}"),
        (transact, f"READ group {place.query}"),
    ]
    for action, right in steps:
        operation, kind, name = right.split(" ")
        found = refusal(action)
        assert found == (operation, kind.replace("-", " "), name)
        allow(cluster, "User:bob", right)
    for action in (read, append, transact):
        action()
    with pytest.raises(OffsetsMismatchError):
        read_from_group()  # it may; the group has committed nothing


def test_spark_shows_the_missing_right(spark: SparkSession, cluster: RealCluster, tmp_path: Path) -> None:
    """Of a task that reads, and of one that writes a stream."""
    topic = cluster.new_topic("shown")
    write(numbers(spark), options_of(cluster, SCRAM), topic)
    certificate = options_of(cluster, "mutual TLS")
    allow(cluster, CERTIFICATE, f"DESCRIBE topic {topic}")
    with pytest.raises(PySparkException, match=f"AuthorizationError: the user may not READ topic '{topic}'"):
        load(spark, certificate, topic).collect()

    def start() -> StreamingQuery:
        rows = spark.readStream.format("pykafka08").options(**options_of(cluster, SCRAM), subscribe=topic)
        rows = rows.option("startingOffsets", "earliest").load().select("value")
        writer = rows.writeStream.format("pykafka08").options(**certificate, topic=topic, exactlyOnce="true")
        return writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()

    assert f"AuthorizationError: the user may not WRITE topic '{topic}'" in str(failure_of(start))


# --- a pipeline -------------------------------------------------------------------------------------------------------


def written_config(folder: Path, cluster: RealCluster, topics: dict[str, str], letters_by: str = "alice") -> Path:
    """The orders' pipeline: source and windows with a properties file, dead letters with settings in the TOML."""
    of_file = security_of(cluster, SCRAM)
    (folder / "client.properties").write_text("".join(f"{name}={value}\n" for name, value in of_file.items()))
    inline = security_of(cluster, "SASL_SSL PLAIN", user=letters_by)
    lines = [f'bootstrap_servers = "{inline.pop("bootstrap.servers")}"']
    lines += [f"{json.dumps(name)} = {json.dumps(value)}" for name, value in inline.items()]
    text = orders.CONFIG.replace(f"[dead_letters]\n{ADDRESS}", "\n".join(["[dead_letters]", *lines])).replace(
        ADDRESS, 'properties = "client.properties"'
    )
    for name in (orders.TOPIC, orders.LETTERS, orders.TOTALS):
        text = text.replace(f'"{name}"', f'"{topics[name]}"')
    path = folder / f"by-{letters_by}.toml"
    path.write_text(text.replace(f'name = "{topics[orders.TOPIC]}"', 'name = "orders"'))
    return path


ADDRESS = 'bootstrap_servers = "BROKERS"'


def test_a_pipeline_on_a_secured_cluster(
    spark: SparkSession,
    cluster: RealCluster,
    tmp_path: Path,
    heard: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each record arrives once; a stage that lacks a right says which, and goes on once it is given."""
    names = (orders.TOPIC, orders.LETTERS, orders.TOTALS)
    topics = {name: cluster.new_topic(name, orders.PARTITIONS) for name in names}
    config = written_config(tmp_path, cluster, topics)
    refused = settings.read(written_config(tmp_path, cluster, topics, letters_by="bob"))
    produce(cluster, topics[orders.TOPIC], list(orders.values(range(1, 60))))
    pipeline = settings.read(config)
    said: list[str] = []

    def run(given: settings.Pipeline, *stages: str) -> None:
        running.run_once(spark, given, running.select(given, stages), said.append)

    assert main(["pipeline", "plan", str(config)]) == 0
    run(pipeline, "ingest-shop", "decode-shop")
    with pytest.raises(PySparkException) as caught:
        run(refused, "dead-letters")
    assert "AuthorizationError: the user may not DESCRIBE transactional id 'spark-kafka-sink-" in str(caught.value)
    run(pipeline, "dead-letters", "aggregate-hourly", "publish-hourly")
    assert [one for one in verifying.verify(spark, pipeline) if not one.is_right] == []
    assert [line.split(":")[0] for line in said] == [one.name for one in running.select(pipeline, [])]
    assert main(["pipeline", "status", str(config)]) == 0
    # What ends a run before Spark starts.
    (tmp_path / "other").mkdir()
    unread = written_config(tmp_path / "other", cluster, topics)
    properties = tmp_path / "other" / "client.properties"
    monkeypatch.setattr("pykafka08.spark.pipeline.running.session", None)
    for user, status, words in (
        ({"user": "bob"}, 1, f"the user may not DESCRIBE topic '{topics[orders.TOPIC]}'"),
        ({"password": WRONG_PASSWORD}, 1, "password"),
    ):
        given = security_of(cluster, SCRAM, **user)
        properties.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
        for action in ("plan", "run", "validate"):
            assert main(["pipeline", action, str(unread)]) == status
            told = capsys.readouterr()
            assert words in told.err
            heard.append(told.out + told.err)
    heard.extend([*said, str(caught.value), repr(pipeline), repr(refused)])


def produce(cluster: RealCluster, topic: str, values: list[bytes]) -> None:
    async def send() -> None:
        async with Producer(cluster.bootstrap) as producer:
            await producer.send_many(
                topic, [NewRecord(value, partition=number % orders.PARTITIONS) for number, value in enumerate(values)]
            )

    run_here(send())


# --- secrets ----------------------------------------------------------------------------------------------------------


SHOWN = {
    "plans": "*********(redacted)",
    "event log": "*********(redacted)",
    "errors": "AuthenticationError",
    "Java's log": "AuthenticationError",
    "our log": "sasl_jaas_config=***",
}
"""What shows that each text is what was looked for."""


def test_no_secret_is_in_plans_logs_and_errors(
    spark: SparkSession,
    cluster: RealCluster,
    tmp_path: Path,
    heard: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The event log, and what the library has logged, are those of all tests of this module."""
    topic = cluster.new_topic("open-secrets")
    secured, wrong = options_of(cluster, SCRAM), options_of(cluster, SCRAM, password=WRONG_PASSWORD)
    for way in WAYS:
        load(spark, options_of(cluster, way), topic).explain(True)
        heard.append(repr(read_options({**options_of(cluster, way), "subscribe": topic}, streaming=False)))
        heard.append(repr(write_options({**options_of(cluster, way), "topic": topic})))

    def start() -> StreamingQuery:
        rows = spark.readStream.format("pykafka08").options(**options_of(cluster, "mutual TLS"), subscribe=topic)
        writer = rows.load().select("value").writeStream.format("pykafka08").options(**wrong, topic=topic)
        return writer.option("checkpointLocation", str(tmp_path / "stream")).trigger(availableNow=True).start()

    for way in ("mutual TLS", SCRAM):  # only SQL's plans have options
        given = ", ".join(f"'{name}' '{value}'" for name, value in options_of(cluster, way).items())
        statement = f"CREATE OR REPLACE TEMPORARY VIEW secured USING pykafka08 OPTIONS ({given}, 'subscribe' '{topic}')"
        spark.sql(statement)
        spark.sql(f"EXPLAIN EXTENDED {statement}").show(truncate=False)
    errors = []
    with java_log(spark, tmp_path / "java.log"):
        write(numbers(spark), secured, topic)
        for action in (load(spark, wrong, topic).collect, lambda: write(numbers(spark), wrong, topic)):
            with pytest.raises(PySparkException, match="AuthenticationError") as caught:
                action()
            errors.append(caught.value)
        query = start()
        with pytest.raises(PySparkException, match="AuthenticationError") as caught:
            query.awaitTermination()
        errors.append(caught.value)
        query.explain(True)
    folder = Path(urlsplit(spark.sparkContext.getConf().get("spark.eventLog.dir") or "").path)
    texts = {
        "plans": capsys.readouterr().out,
        "errors": "".join("".join(traceback.format_exception(each)) for each in errors),
        "Java's log": (tmp_path / "java.log").read_text(),
        "our log": "\n".join(heard),
        "event log": "".join(path.read_text() for path in folder.rglob("events*") if path.is_file()),
    }
    for name, text in texts.items():
        assert SHOWN[name] in text, name
    hits = [(name, secret) for name, text in texts.items() for secret in secrets_of(cluster) if secret in text]
    assert hits == []


@contextmanager
def java_log(spark: SparkSession, path: Path) -> Iterator[None]:
    """All that the JVM logs at DEBUG: the driver and, in this session, the tasks."""
    jvm: Any = spark._jvm
    log4j = jvm.org.apache.logging.log4j
    appender = log4j.core.appender.FileAppender.newBuilder().withFileName(str(path)).setName("secrets")
    appender = appender.setLayout(log4j.core.layout.PatternLayout.createDefaultLayout()).build()
    appender.start()
    root = log4j.LogManager.getContext(False).getConfiguration().getRootLogger()
    others = {name: root.getAppenders().get(name) for name in list(root.getAppenders().keySet())}
    for name in others:
        root.removeAppender(name)
    root.addAppender(appender, None, None)
    spark.sparkContext.setLogLevel("DEBUG")
    try:
        yield
    finally:
        spark.sparkContext.setLogLevel("ERROR")
        root.removeAppender("secrets")
        for other in others.values():
            root.addAppender(other, None, None)
        appender.stop()
