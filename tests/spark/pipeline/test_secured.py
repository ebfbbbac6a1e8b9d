"""Spark's source and sink and a pipeline on a secured broker: every way in, what a missing right raises, no secrets.

One broker and the session that all tests share.  With ``PYKAFKA08_SOAK=1`` each protocol with each mechanism, and every
release with TLS or SASL; those that have the access control lists of today for the tests of rights, pipelines and
secrets.  Without a KDC, GSSAPI is left out, but with ``PYKAFKA08_REQUIRE_BROKERS=1`` it is an error.
"""

from __future__ import annotations

import json
import logging
import os
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
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
from pykafka08.spark import REDACTION, SPARKS_DEFAULT
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
from tests.brokers.properties import write_properties
from tests.integration.clusters import Clusters, RealCluster
from tests.requirements import REQUIRE, missing
from tests.security.kdc import Kdc
from tests.security.oidc_endpoint import OidcEndpoint
from tests.security.secrets_found import SecretSearch
from tests.spark.pipeline import orders
from tests.spark.queries import failure_of, finish, with_conf
from tests.spark.secured import (
    CLIENT,
    CLIENT_SECRET,
    EVERY_WAY,
    GSSAPI,
    IS_SOAK,
    OAUTHBEARER,
    SCRAM,
    WRONG_PASSWORD,
    allow,
    every_way,
    kerberos_config,
    options_of,
    secrets_of,
    security_of,
    ways,
    with_kerberos,
)
from tests.spark.secured import running as secured_cluster

RELEASES = ("2.8.2", "3.9.2", "4.3.1") if IS_SOAK else ("4.3.1",)
EVERY_RELEASE = ("0.9.0.1", "0.10.2.2", "1.1.1", *RELEASES) if IS_SOAK else RELEASES
TRANSACTIONAL = EVERY_RELEASE[2:] if IS_SOAK else RELEASES
FILES = tuple(zip(EVERY_WAY, (*EVERY_WAY[1:], EVERY_WAY[0]), strict=True)) if IS_SOAK else ((GSSAPI, OAUTHBEARER),)
"""The ways in of a pipeline's two properties files; SCRAM takes the place of GSSAPI without a KDC."""
LETTERS = "SASL_SSL PLAIN"
"""The way in of a pipeline's dead letters, unless its source has a user's password, too."""
ALIKE = () if IS_SOAK else ("SSL", "SASL_PLAINTEXT SCRAM-SHA-256")
"""Ways in whose batches another way writes in the same manner; they read, and are in the test of transactions."""
ROWS = 50
CERTIFICATE = "User:CN=client"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[OidcEndpoint]:
    with OidcEndpoint(clients={CLIENT: CLIENT_SECRET}) as started:
        yield started


@pytest.fixture(scope="module", params=RELEASES)
def cluster(
    request: pytest.FixtureRequest,
    clusters: Clusters,
    endpoint: OidcEndpoint,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[RealCluster]:
    has_kdc = os.environ.get(REQUIRE) == "1" or missing("kerberos", request.config.getoption("--brokers")) is None
    kdc: Kdc | None = request.getfixturevalue("kdc") if has_kdc else None
    started = secured_cluster(clusters, str(request.param), kdc, endpoint, tmp_path_factory.mktemp("keys"))
    if started.release >= (2, 4):
        allow(started, CERTIFICATE, "ALL topic open*", "ALL topic orders*", "ALL group *", "ALL transactional-id *")
    with with_kerberos(kdc, kerberos_config(tmp_path_factory)) if kdc else nullcontext():
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


class Carried(NamedTuple):
    """A stream that reads with each login in ``sources`` and writes with ``sink``; record keys name both."""

    sources: list[str]
    sink: str
    is_once: bool

    def key(self, source: str) -> str:
        return f"{source}, {self.sink}, {self.is_once}"

    def start(self, spark: SparkSession, cluster: RealCluster, topics: tuple[str, str], folder: Path) -> StreamingQuery:
        source, target = topics
        more = {"subscribe": source, "startingOffsets": "earliest"}
        read = [
            spark.readStream.format("pykafka08").options(**options_of(cluster, way), **more).load()
            for way in self.sources
        ]
        keyed = [
            frame.select(F.lit(self.key(way)).alias("key"), "value")
            for way, frame in zip(self.sources, read, strict=True)
        ]
        writer = union(keyed).writeStream.format("pykafka08").options(**options_of(cluster, self.sink), topic=target)
        writer = writer.option("exactlyOnce", str(self.is_once).lower()).option("checkpointLocation", str(folder))
        return writer.trigger(availableNow=True).start()


def streams(cluster: RealCluster) -> list[Carried]:
    """One from all ways, exactly once where the release can; in a long run also each kind from each way into itself."""
    given, has_transactions = ways(cluster), cluster.release >= (0, 11)
    sink = next(way for way in (GSSAPI, OAUTHBEARER, SCRAM, "SSL") if way in given)
    kinds = (False, True) if has_transactions else (False,)
    return [
        Carried(given, sink, has_transactions),
        *(Carried([way], way, is_once) for way in given for is_once in kinds if IS_SOAK),
    ]


@pytest.mark.parametrize("cluster", EVERY_RELEASE, indirect=True)
def test_batches_and_streams_with_each_protocol_and_mechanism(
    spark: SparkSession, cluster: RealCluster, tmp_path: Path
) -> None:
    """Batches write the records, streams copy them to another topic, and batches read them."""
    topics = source, target = cluster.new_topic("open-source"), cluster.new_topic("open-target")
    given, carried = ways(cluster), streams(cluster)
    writers = [way for way in given if way not in ALIKE]
    for way in writers:
        write(numbers(spark), options_of(cluster, way), source)
    all_rows = len(writers) * ROWS
    for number, one in enumerate(carried):
        finish(partial(one.start, spark, cluster, topics, tmp_path / str(number)))
    committed = {"kafka.isolation.level": "read_committed"}
    read = [load(spark, options_of(cluster, way), target, **committed) for way in given]
    by_way = union([frame.select(F.lit(way).alias("way"), "key") for way, frame in zip(given, read, strict=True)])
    found = {(row.way, row.key.decode()): row["count"] for row in by_way.groupBy("way", "key").count().collect()}
    keys = Counter(one.key(way) for one in carried for way in one.sources)
    assert found == {(way, key): times * all_rows for way in given for key, times in keys.items()}


@pytest.mark.parametrize("cluster", TRANSACTIONAL, indirect=True)
def test_transactions_take_every_way_in(cluster: RealCluster) -> None:
    topic = cluster.new_topic("open-transactions")
    rows = [pa.record_batch({"value": [b"%d" % number for number in range(ROWS)]})]
    for number, way in enumerate(every_way(cluster)):
        options = write_options({**options_of(cluster, way), "topic": topic, "exactlyOnce": "true"})
        parts = [prepare(options, Place("p", f"query-{number}", 0, task), rows) for task in range(2)]
        commit_batch(options, parts, 0)
    reader = reader_of(options_of(cluster, SCRAM), topic, **{"kafka.isolation.level": "read_committed"})
    assert rows_read(reader) == 2 * len(every_way(cluster)) * ROWS


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


def written_config(
    folder: Path, cluster: RealCluster, topics: dict[str, str], files: tuple[str, str], letters_by: str = "alice"
) -> Path:
    """The orders' pipeline: source and windows with a properties file each, dead letters with settings in the TOML."""
    for file, way in zip(("client.properties", "windows.properties"), files, strict=True):
        write_properties(folder / file, security_of(cluster, way if way in every_way(cluster) else SCRAM))
    has_password = "PLAIN" in files[0].split(" ") or "SCRAM" in files[0]
    inline = security_of(cluster, files[0] if has_password else LETTERS, user=letters_by)
    lines = [f'bootstrap_servers = "{inline.pop("bootstrap.servers")}"']
    lines += [f"{json.dumps(name)} = {json.dumps(value)}" for name, value in inline.items()]
    text = orders.CONFIG.replace(f"[dead_letters]\n{ADDRESS}", "\n".join(["[dead_letters]", *lines]))
    text = text.replace(ADDRESS, 'properties = "client.properties"', 1)
    text = text.replace(ADDRESS, 'properties = "windows.properties"')
    for name in (orders.TOPIC, orders.LETTERS, orders.TOTALS):
        text = text.replace(f'"{name}"', f'"{topics[name]}"')
    path = folder / f"by-{letters_by}.toml"
    path.write_text(text.replace(f'name = "{topics[orders.TOPIC]}"', 'name = "orders"'))
    return path


ADDRESS = 'bootstrap_servers = "BROKERS"'


@pytest.mark.parametrize("files", FILES, ids=" and ".join)
def test_a_pipeline_on_a_secured_cluster(
    spark: SparkSession,
    cluster: RealCluster,
    files: tuple[str, str],
    tmp_path: Path,
    heard: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each record arrives once; a stage that lacks a right says which, and goes on once it is given."""
    names = (orders.TOPIC, orders.LETTERS, orders.TOTALS)
    topics = {name: cluster.new_topic(name, orders.PARTITIONS) for name in names}
    config = written_config(tmp_path, cluster, topics, files)
    refused = settings.read(written_config(tmp_path, cluster, topics, files, letters_by="bob"))
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
    unread = written_config(tmp_path / "other", cluster, topics, files)
    properties = tmp_path / "other" / "client.properties"
    monkeypatch.setattr("pykafka08.spark.pipeline.running.session", None)
    for user, status, words in (
        ({"user": "bob"}, 1, f"the user may not DESCRIBE topic '{topics[orders.TOPIC]}'"),
        ({"password": WRONG_PASSWORD}, 1, "password"),
    ):
        write_properties(properties, security_of(cluster, SCRAM, **user))
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
    endpoint: OidcEndpoint,
    tmp_path: Path,
    heard: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The event log, and what the library has logged, are those of all tests of this module."""
    topic = cluster.new_topic("open-secrets")
    secured, wrong = options_of(cluster, SCRAM), options_of(cluster, SCRAM, password=WRONG_PASSWORD)
    for way in ways(cluster):
        load(spark, options_of(cluster, way), topic).explain(True)
        heard.append(repr(read_options({**options_of(cluster, way), "subscribe": topic}, streaming=False)))
        heard.append(repr(write_options({**options_of(cluster, way), "topic": topic})))

    def start() -> StreamingQuery:
        rows = spark.readStream.format("pykafka08").options(**options_of(cluster, "mutual TLS"), subscribe=topic)
        writer = rows.load().select("value").writeStream.format("pykafka08").options(**wrong, topic=topic)
        return writer.option("checkpointLocation", str(tmp_path / "stream")).trigger(availableNow=True).start()

    for way in [way for way in ways(cluster) if way not in ALIKE]:  # only SQL's plans have options
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
    search = SecretSearch(*secrets_of(cluster, endpoint))
    for name, text in texts.items():
        search.of_text(name, text)
    for error in errors:
        search.of_error("errors", error)
    assert search.found == []


def test_without_register_spark_shows_keys_and_passphrases(spark: SparkSession) -> None:
    """Spark itself hides only options whose name or value contains password, secret or token, such as JAAS."""
    login = "org.apache.kafka.common.security.{} required {};"
    hidden = {
        "kafka.sasl.jaas.config": login.format("plain.PlainLoginModule", 'username="alice" password="hidden-1"'),
        "kafka.producer.sasl.jaas.config": login.format(
            "oauthbearer.OAuthBearerLoginModule", 'clientId="app" clientSecret="hidden-2"'
        ),
        "kafka.ssl.truststore.password": "hidden-3",
    }
    shown = {"kafka.ssl.keystore.key": "shown-1", "kafka.sasl.oauthbearer.assertion.private.key.passphrase": "shown-2"}
    given = ", ".join(f"'{name}' '{value}'" for name, value in {**hidden, **shown}.items())
    statement = f"EXPLAIN EXTENDED CREATE OR REPLACE TEMPORARY VIEW v USING pykafka08 OPTIONS ({given})"
    with with_conf(spark, {REDACTION: SPARKS_DEFAULT}):
        (plan,) = spark.sql(statement).collect()
    assert (plan[0].count("hidden-"), "shown-1" in plan[0], "shown-2" in plan[0]) == (0, True, True)
    (plan,) = spark.sql(statement).collect()
    assert (plan[0].count("hidden-"), plan[0].count("shown-")) == (0, 0)
    assert plan[0].count("(redacted)") >= len(hidden) + len(shown)


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
