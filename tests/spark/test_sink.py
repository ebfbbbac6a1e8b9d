"""Rows through the sink onto an embedded broker, without Spark: runs by topic and partition, columns, failures."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from pyspark.sql.types import StringType, StructField, StructType

from pykafka08.errors import ConfigError, KafkaError
from pykafka08.producer.murmur2 import unsigned_murmur2
from pykafka08.producer.partitioners import murmur2_partition
from pykafka08.spark.options import OptionError, write_options
from pykafka08.spark.runtime import runtime
from pykafka08.spark.sink.encoding import NullTopicError, runs_of
from pykafka08.spark.sink.key_partitions import LONG, murmur2_of
from pykafka08.spark.sink.markers import Place
from pykafka08.spark.sink.row_schema import RowSchemaError, check_columns, check_mode
from pykafka08.spark.sink.sending import drop_producer, kept_producer, send_rows, settings_of
from pykafka08.spark.sink.stream_writer import KafkaStreamWriter
from pykafka08.spark.sink.totals import Totals
from pykafka08.spark.sink.two_phase import commit_batch, prepare
from pykafka08.spark.sink.writer import KafkaWriter
from tests.security.oauth_broker import CLASSES
from tests.spark.sinks import embedded

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def rows(**columns: object) -> pa.RecordBatch:
    return pa.record_batch(columns)


# --- columns ----------------------------------------------------------------------------------------------------------

VALUE = ("value", "binary")
REFUSED = [
    ([VALUE], "topic option required when no 'topic' attribute is present. Use the topic option for setting a topic."),
    ([("topic", "string")], "Required attribute 'value' not found"),
    ([("topic", "string"), ("value", "int")], "value attribute unsupported type int. value must be a(n) string or b"),
    ([("topic", "string"), VALUE, ("key", "bigint")], "key attribute unsupported type bigint. key must be a(n) str"),
    ([("topic", "binary"), VALUE], "topic attribute unsupported type binary. topic must be a(n) string"),
    ([("topic", "string"), VALUE, ("partition", "bigint")], "partition attribute unsupported type bigint. partition"),
    (
        [("topic", "string"), VALUE, ("headers", "map<string,binary>")],
        "headers attribute unsupported type map<string,binary>. headers must be a(n) "
        "array<struct<key:string,value:binary>>",
    ),
]


@pytest.mark.parametrize(("columns", "words"), REFUSED)
def test_columns_are_refused_in_the_words_of_spark(columns: list[tuple[str, str]], words: str) -> None:
    with pytest.raises(RowSchemaError) as raised:
        check_columns(columns, None)
    assert words in str(raised.value)


def test_columns_that_are_not_written_may_be_anything() -> None:
    check_columns([("topic", "int"), ("value", "string"), ("offset", "bigint")], "t")


def test_only_append_is_allowed() -> None:
    check_mode(is_overwrite=False)
    with pytest.raises(RowSchemaError, match=r'\.mode\("append"\)'):
        check_mode(is_overwrite=True)


# --- runs -------------------------------------------------------------------------------------------------------------


def test_one_topic_without_partitions_is_one_run_of_the_same_memory() -> None:
    batch = rows(value=[b"a", b"b"], topic=["t", "t"], key=pa.array([None, None], pa.binary()), other=[1, 2])
    (run,) = runs_of(batch, None)
    assert (run.topic, run.partition, run.rows.schema.names) == ("t", None, ["value"])
    assert run.rows.column(0).buffers()[2].address == batch.column(0).buffers()[2].address


def test_rows_are_grouped_by_topic_and_partition_in_their_order() -> None:
    batch = rows(
        value=["a", "b", "c", "d", "e", "f"],
        topic=["u", "t", "u", "t", "u", "t"],
        partition=pa.array([1, None, 0, 0, 1, None], pa.int32()),
    )
    found = {(run.topic, run.partition): run.rows.column("value").to_pylist() for run in runs_of(batch, None)}
    assert found == {("u", 1): ["a", "e"], ("t", None): ["b", "f"], ("u", 0): ["c"], ("t", 0): ["d"]}
    by_option = {(run.topic, run.partition): run.rows.num_rows for run in runs_of(batch, "v")}
    assert by_option == {("v", None): 2, ("v", 0): 2, ("v", 1): 2}


def test_keys_are_hashed_as_one_by_one() -> None:
    chance = random.Random(5)
    keys = [None if number % 17 == 0 else chance.randbytes(number % 40) for number in range(2000)]
    keys += [chance.randbytes(LONG + number) for number in range(9)]
    expected = [0 if key is None else unsigned_murmur2(key) & 0x7FFFFFFF for key in keys]
    for kind in (pa.binary(), pa.large_binary()):
        assert murmur2_of(pa.array(keys, kind)).tolist() == expected
        assert murmur2_of(pa.array(keys, kind).slice(7, 100)).tolist() == expected[7:107]
    assert murmur2_of(pa.array(["", "21", "foobar", "é"])).tolist() == [
        unsigned_murmur2(each) & 0x7FFFFFFF for each in (b"", b"21", b"foobar", "é".encode())
    ]
    assert murmur2_of(pa.array([None, None], pa.binary())).tolist() == [0, 0]


def test_keys_choose_where_no_partition_is_given() -> None:
    batch = rows(
        value=["a", "b", "c", "d", "e"],
        key=["k1", "k2", None, "k1", ""],
        topic=["t", "u", "t", "u", "t"],
        partition=pa.array([None, None, None, 7, None], pa.int32()),
    )
    topics = {"t": (0, 1, 2), "u": (0, 5)}
    found = {
        value: (run.topic, run.partition)
        for run in runs_of(batch, None, topics.__getitem__)
        for value in run.rows.column("value").to_pylist()
    }
    assert found == {
        "a": ("t", murmur2_partition(b"k1", 3)),
        "b": ("u", topics["u"][murmur2_partition(b"k2", 2)]),
        "c": ("t", None),
        "d": ("u", 7),
        "e": ("t", murmur2_partition(b"", 3)),
    }


def test_the_highest_partition_is_a_partition() -> None:
    (run,) = runs_of(rows(value=["a"], partition=pa.array([2**31 - 1], pa.int32())), "t")
    assert run.partition == 2**31 - 1


def test_a_null_topic_is_an_error_in_the_words_of_spark() -> None:
    batch = rows(value=[b"a", b"b"], topic=["t", None])
    with pytest.raises(NullTopicError, match="contains a null topic"):
        list(runs_of(batch, None))
    assert [run.topic for run in runs_of(batch, "t")] == ["t"]


def test_a_partition_below_zero_is_an_error() -> None:
    batch = rows(value=[b"a"], partition=pa.array([-2], pa.int32()))
    with pytest.raises(ValueError, match="Invalid partition: -2"):
        list(runs_of(batch, "t"))


def test_no_rows_are_no_runs() -> None:
    assert list(runs_of(rows(value=pa.array([], pa.binary())), "t")) == []


# --- onto a broker ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["0.8.2", "0.10.2", "4.3"])
def test_rows_are_acknowledged_when_the_call_returns(version: str) -> None:
    values = [b"v%d" % number for number in range(25_000)]
    with embedded(version=version, topics={"t": 3}) as cluster:
        producer = kept_producer({"bootstrap_servers": cluster.servers})
        batches = [rows(value=values[start : start + 10_000]) for start in range(0, 25_000, 10_000)]
        assert send_rows(producer, batches, "t").rows == 25_000
        assert cluster.values("t") == sorted(values)
        assert send_rows(producer, [], "t") == Totals()


def test_small_batches_of_rows_are_written_in_their_order() -> None:
    """They are gathered; one with other columns, or with no rows, among them."""
    with embedded(topics={"t": 3, "u": 1}) as cluster:
        places = pa.array([row % 3 for row in range(200)], pa.int32())
        parts = [[b"%d" % row for row in range(start, start + 200)] for start in range(0, 2000, 200)]
        batches = [rows(value=part, partition=places, topic=["t"] * 200) for part in parts]
        batches[5:5] = [rows(value=[b"u"], topic=["u"]), batches[0].slice(0, 0)]
        totals = send_rows(kept_producer({"bootstrap_servers": cluster.servers}), iter(batches), None)
        assert totals == Totals(2001, sum(len(value) for part in parts for value in part) + 1)
        for number, log in enumerate(cluster.records("t")):
            assert [record.value for record in log] == [value for part in parts for value in part[number::3]]
        assert cluster.values("u") == [b"u"]


def test_keys_choose_partitions_as_in_java_and_headers_go_along() -> None:
    with embedded(topics={"t": 3, "u": 2}) as cluster:
        batch = rows(
            value=["a", None, "c", "d"],
            key=["k1", "k2", None, "k1"],
            topic=["t", "t", "u", "t"],
            partition=pa.array([None, None, 1, 2], pa.int32()),
            headers=pa.array([[{"key": "h", "value": b"x"}], None, [], None], HEADERS),
        )
        send_rows(kept_producer({"bootstrap_servers": cluster.servers}), [batch], None)
        found = [
            (topic, number, record.key, record.value, tuple(record.headers))
            for topic in "tu"
            for number, log in enumerate(cluster.records(topic))
            for record in log
        ]
    placed = {(key, value): (topic, number) for topic, number, key, value, _ in found}
    assert placed[None, b"c"] == ("u", 1)
    assert placed[b"k1", b"d"] == ("t", 2)
    assert placed[b"k1", b"a"][0] == placed[b"k2", None][0] == "t"
    assert {value: headers for _, _, _, value, headers in found}[b"a"] == (("h", b"x"),)


def test_what_the_cluster_refuses_fails_the_task_and_the_next_has_a_new_producer() -> None:
    with embedded(topics={"t": 2}) as cluster:
        settings = {"bootstrap_servers": cluster.servers, "max_block_ms": 500}
        first = kept_producer(settings)
        assert kept_producer(settings) is first
        with pytest.raises(KafkaError, match=r"no partition 7") as raised:
            send_rows(first, [rows(value=["a"], partition=pa.array([7], pa.int32()))], "t")
        assert "'t'" in str(raised.value)
        drop_producer(settings)
        assert kept_producer(settings) is not first


def test_clients_are_kept_by_settings_with_mappings() -> None:
    """Of unsigned tokens: each batch finds the producer of the last one, and the sink's Admin and Client too."""
    login = 'unsecuredLoginStringClaim_sub="alice"'
    with embedded(topics={"t": 1}, security="SASL_PLAINTEXT", mechanisms=["OAUTHBEARER"]) as cluster:
        given = {
            "kafka.bootstrap.servers": cluster.servers,
            "kafka.security.protocol": "SASL_PLAINTEXT",
            "kafka.sasl.mechanism": "OAUTHBEARER",
            "kafka.sasl.jaas.config": f"{CLASSES}OAuthBearerLoginModule required {login};",
            "topic": "t",
        }
        options, same = write_options(given), write_options(given)
        for number in range(2):
            place = Place("p", "query", number, 0)
            commit_batch(options, [prepare(options, place, [rows(value=["a"])])], number)
        assert runtime().client(options.client) is runtime().client(same.client)
        kept = kept_producer(settings_of(options))
        assert kept_producer(settings_of(same)) is kept


# --- what is refused on the driver ------------------------------------------------------------------------------------

TEXT = StructType([StructField("value", StringType())])


def test_settings_that_cannot_be_honoured_are_refused_before_any_task() -> None:
    given = {"kafka.bootstrap.servers": "localhost:1", "topic": "t"}
    with pytest.raises(OptionError, match=r"'transactional\.id' is not supported"):
        write_options({**given, "kafka.transactional.id": "x"})
    with pytest.raises(OptionError, match="Unknown option"):
        write_options({**given, "commitGroup": "g"})
    exactly_once = {**given, "exactlyOnce": "true"}
    with pytest.raises(OptionError, match="exactlyOnce is for streams"):
        KafkaWriter(write_options(exactly_once), TEXT, is_overwrite=False)
    with pytest.raises(ConfigError, match="acks='all'"):
        KafkaStreamWriter(write_options({**exactly_once, "kafka.acks": "1"}), TEXT)
    KafkaStreamWriter(write_options(exactly_once), TEXT)


def test_the_sink_has_large_batches_unless_the_user_wants_others() -> None:
    given = {"kafka.bootstrap.servers": "h:9093,[::1]:1", "topic": "t"}
    settings = settings_of(write_options(given))
    assert (settings["batch_size"], settings["linger_ms"], settings["acks"]) == (524_288, 1000, "all")
    assert settings["bootstrap_servers"] == "[h]:9093,[::1]:1"
    settings = settings_of(write_options({**given, "kafka.batch.size": "16384", "kafka.acks": "1"}), "x")
    assert (settings["batch_size"], settings["acks"], settings["transaction_timeout_ms"]) == (16_384, 1, 900_000)
