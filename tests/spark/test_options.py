import pickle
from typing import Any

import pytest

from pykafka08.errors import ConfigError
from pykafka08.records.record import TopicPartition
from pykafka08.spark.committed_group import CommittedGroup
from pykafka08.spark.offsets_json import EARLIEST, LATEST
from pykafka08.spark.option_names import SPELLINGS
from pykafka08.spark.options import (
    OF_READ,
    OF_WRITE,
    STRATEGIES,
    OptionError,
    ReadOptions,
    read_options,
    write_options,
)

LEAST = {"kafka.bootstrap.servers": "h:9092", "subscribe": "t"}


def batch(**options: str) -> ReadOptions:
    return read_options({**LEAST, **options}, streaming=False)


def stream(**options: str) -> ReadOptions:
    return read_options({**LEAST, **options}, streaming=True)


class TestHonoured:
    def test_what_stands_for_an_option_that_is_not_given(self) -> None:
        options = batch()
        assert (options.starting.point, options.ending.point) == (EARLIEST, LATEST)
        assert (stream().starting.point, options.fail_on_data_loss) == (LATEST, True)
        assert (options.settings.poll_timeout_ms, options.num_retries, options.retry_interval_ms) == (120_000, 3, 1000)
        assert options.client.client_id == "spark-kafka-source"

    def test_names_in_any_case(self) -> None:
        assert batch(FailOnDataLoss="FALSE").fail_on_data_loss is False

    def test_they_can_be_sent_to_an_executor(self) -> None:
        settings = batch(includeHeaders="true", fetchBytes="1000").settings
        assert pickle.loads(pickle.dumps(settings)) == settings

    @pytest.mark.parametrize(
        ("text", "expected"),
        [("t", ("t",)), (" a , b,,a", ("a", "b"))],
    )
    def test_topics(self, text: str, expected: tuple[str, ...]) -> None:
        assert batch(subscribe=text).selection.topics == expected

    def test_a_pattern_is_sought_anywhere_in_a_name(self) -> None:
        selection = read_options(
            {"kafka.bootstrap.servers": "h", "subscribePattern": r"la[\p{Lower}&&[^z]]"}, streaming=False
        ).selection
        assert selection.pattern is not None
        assert [name for name in ("plain", "pl-n", "laz") if selection.pattern.search(name)] == ["plain"]

    def test_partitions(self) -> None:
        given = {"kafka.bootstrap.servers": "h", "assign": ' {"t":[0,2]}'}
        expected = {TopicPartition("t", 0), TopicPartition("t", 2)}
        assert read_options(given, streaming=True).selection.partitions == expected

    def test_a_time_for_all_before_times_before_offsets(self) -> None:
        by_partition = {"startingOffsetsByTimestamp": '{"t":{"0":5}}', "startingOffsets": "latest"}
        assert batch(**by_partition).starting.timestamps == {TopicPartition("t", 0): 5}
        assert batch(**by_partition, startingTimestamp="7").starting.timestamp_ms == 7

    @pytest.mark.parametrize(
        ("text", "expected"), [("15m", 900_000), ("10s", 10_000), ("7", 7), ("2min", 120_000), ("1h", 3_600_000)]
    )
    def test_durations(self, text: str, expected: int) -> None:
        assert stream(maxTriggerDelay=text).max_trigger_delay_ms == expected

    def test_a_group_before_all_other_starts(self) -> None:
        starting = batch(startingGroup="zookeeper:g@z:2181/kafka", startingTimestamp="7").starting
        assert (starting.group, starting.timestamp_ms) == (CommittedGroup("g", "z:2181/kafka"), None)
        for option in ("startingGroup", "commitGroup"):
            with pytest.raises(OptionError, match="is not of the form zookeeper:GROUP"):
                stream(**{option: "zookeeper:g"})

    def test_client_properties(self) -> None:
        given = {
            "kafka.isolation.level": "read_committed",
            "kafka.group.id": "g",
            "kafka.request.timeout.ms": "5000",
            "kafka.check.crcs": "false",
            "kafka.session.timeout.ms": "10000",
            "kafka.security.protocol": "PLAINTEXT",
        }
        options = batch(**given)
        assert options.is_committed_only
        assert (options.consumer.group_id, options.consumer.check_crcs) == ("g", False)
        assert options.client.request_timeout_ms == 5000

    def test_brokers_know_a_client_by_its_group(self) -> None:
        assert batch(groupIdPrefix="mine").client.client_id == "mine"
        assert batch(groupIdPrefix="mine", **{"kafka.group.id": "g"}).client.client_id == "g"
        assert batch(**{"kafka.group.id": "g", "kafka.client.id": "c"}).client.client_id == "c"

    def test_a_level_is_that_of_its_codec_in_any_case(self) -> None:
        given = {"kafka.compression.type": "GZIP", "kafka.compression.gzip.level": "9"}
        producer = write_options({"kafka.bootstrap.servers": "h", **given}).producer
        assert (producer.compression_type, producer.compression_level) == ("gzip", 9)

    def test_a_batch_names_the_options_of_streams_that_it_was_given(self) -> None:
        assert batch(maxOffsetsPerTrigger="5").ignored == ("maxOffsetsPerTrigger",)
        assert stream(maxOffsetsPerTrigger="5").ignored == ()

    def test_of_the_sink(self) -> None:
        given = {
            "kafka.bootstrap.servers": "h",
            "topic": "t",
            "exactlyOnce": "true",
            "kafka.acks": "all",
            "kafka.linger.ms": "7",
            "kafka.compression.type": "zstd",
            "kafka.compression.zstd.level": "3",
            "kafka.compression.gzip.level": "9",
            "checkpointLocation": "/x",
        }
        options = write_options(given)
        assert (options.topic, options.is_exactly_once) == ("t", True)
        producer = options.producer
        assert (producer.acks, producer.linger_ms, producer.compression_level) == ("all", 7, 3)


HARMLESS = {
    "client.dns.lookup": "use_all_dns_ips",
    "connections.max.idle.ms": "540000",
    "exclude.internal.topics": "true",
    "group.protocol": "classic",
    "metric.reporters": "com.example.Reporter",
    "metrics.num.samples": "3",
    "metrics.recording.level": "DEBUG",
    "metrics.sample.window.ms": "30000",
    "receive.buffer.bytes": "65536",
    "retries": "2147483647",
    "send.buffer.bytes": "131072",
}
"""Properties that jobs often have, and that have no effect here."""


def test_properties_without_effect_keep_no_job_from_its_start() -> None:
    of_consumers = {"auto.commit.interval.ms": "5000", "max.poll.records": "500", "session.timeout.ms": "10000"}
    of_producers = {"batch.size": "1000", "linger.ms": "5", "acks": "all"}
    given = {f"kafka.{name}": value for name, value in {**HARMLESS, **of_consumers, **of_producers}.items()}
    consumer = batch(**given).consumer
    producer = write_options({"kafka.bootstrap.servers": "h", **given, "kafka.batch.size": "1000"})
    assert consumer.auto_offset_reset == "latest"
    assert producer.producer.batch_size == 1000


REFUSED: list[tuple[bool, dict[str, str], str]] = [
    (False, {"startingOffsets": "latest"}, "starting offset can't be latest for batch queries on Kafka"),
    (
        False,
        {"startingOffsets": '{"t":{"0":-1}}'},
        "startingOffsets for t-0 can't be latest for batch queries on Kafka",
    ),
    (False, {"endingOffsets": "earliest"}, "ending offset can't be earliest for batch queries on Kafka"),
    (False, {"endingOffsets": '{"t":{"0":-2}}'}, "ending offset for t-0 can't be earliest for batch queries on Kafka"),
    (True, {"endingOffsets": "latest"}, "ending offset not valid in streaming queries"),
    (True, {"endingOffsetsByTimestamp": "{}"}, "ending offset not valid in streaming queries"),
    (True, {"endingTimestamp": "1"}, "ending timestamp not valid in streaming queries"),
    (False, {"assign": '{"t":[0]}'}, "Only one of the following options can be specified for Kafka source"),
    (False, {"subscribe": " , "}, "No topics to subscribe to as specified value for option 'subscribe' is ' , '"),
    (False, {"startingOffsets": "{"}, 'Expected e.g. {"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}, got {'),
    (False, {"startingOffsets": '{"t":{"0":-3}}'}, 'Expected e.g. {"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}, got'),
    (False, {"startingOffsetsByTimestamp": "[]"}, 'Expected e.g. {"topicA": {"0": 123456789, "1": 123456789}'),
    (False, {"startingTimestamp": "soon"}, "Expected a single long value, got soon"),
    (
        False,
        {"startingOffsetsByTimestampStrategy": "skip"},
        "No value found for 'SKIP': it is not one of error, latest",
    ),
    (False, {"minPartitions": "0"}, "minPartitions must be positive"),
    (False, {"minPartitions": "99999999999"}, 'For input string: "99999999999": does not fit in 32 bits'),
    (False, {"maxRecordsPerPartition": "-1"}, "maxrecordsperpartition must be positive"),
    (True, {"maxRecordsPerPartition": "0"}, "maxrecordsperpartition must be positive"),
    (True, {"maxOffsetsPerTrigger": "-5"}, "maxOffsetsPerTrigger must be positive"),
    (True, {"maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger must be positive"),
    (False, {"maxOffsetsPerTrigger": "-5"}, "maxOffsetsPerTrigger must be positive"),
    (True, {"maxOffsetsPerTrigger": "9" * 5000}, "does not fit in 64 bits"),
    (True, {"minOffsetsPerTrigger": "-5"}, "minOffsetsPerTrigger must not be negative"),
    (False, {"kafkaConsumer.pollTimeoutMs": "-1"}, "kafkaConsumer.pollTimeoutMs must not be negative"),
    (False, {"fetchBytes": "3000000000"}, "does not fit in 32 bits"),
    (False, {"failOnDataLoss": "1"}, 'For input string: "1"'),
    (True, {"maxOffsetsPerTrigger": "many"}, 'For input string: "many"'),
    (
        True,
        {"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "5"},
        "The value of minOffsetPerTrigger(9) is higher than the maxOffsetsPerTrigger(5).",
    ),
    (True, {"maxTriggerDelay": "soon"}, "or 250us. Failed to parse time string: soon"),
    (True, {"maxTriggerDelay": "5x"}, "Time must be specified as seconds (s), milliseconds (ms), "),
    (True, {"maxTriggerDelay": "5x"}, 'Invalid suffix: "x"'),
    (True, {"maxTriggerDelay": "-5s"}, "Failed to parse time string: -5s"),
    (False, {"fetchOffset.numRetries": "-1"}, "fetchOffset.numRetries must not be negative"),
    (False, {"startingTimestamp": "-1"}, "Expected a single long value from 0, got -1"),
    (False, {"startingOffsetsByTimestamp": '{"t":{"0":-1}}'}, 'Expected e.g. {"topicA": {"0": 123456789'),
    (False, {"startingOffsets": '{"t":{"0":99999999999999999999}}'}, "99999999999999999999 for t-0 does not fit in 64"),
    (False, {"kafka.auto.offset.reset": "earliest"}, "Kafka option 'auto.offset.reset' is not supported."),
    (False, {"kafka.key.deserializer": "x"}, "not supported as keys are deserialized as byte arrays"),
    (False, {"kafka.value.deserializer": "x"}, "not supported as values are deserialized as byte arrays"),
    (False, {"kafka.enable.auto.commit": "true"}, "Kafka option 'enable.auto.commit' is not supported"),
    (False, {"kafka.interceptor.classes": "x"}, "Kafka option 'interceptor.classes' is not supported"),
    (False, {"kafka.bootstrap.servers": ""}, "Option 'kafka.bootstrap.servers' must be specified"),
    (False, {"kafka.fetch.min.byte": "1"}, "(did you mean kafka.fetch.min.bytes?)"),
    (False, {"startingOfsets": "earliest"}, "Unknown option (did you mean startingOffsets?)"),
    (False, {"bootstrap.servers": "h:1"}, "Unknown option (did you mean kafka.bootstrap.servers?)"),
    (False, {"bootstrap.server": "h:1"}, "Unknown option (did you mean kafka.bootstrap.servers?)"),
    (True, {"isolation.level": "read_committed"}, "Unknown option (did you mean kafka.isolation.level?)"),
    (False, {"kafka.fetch.min.bytes": "-1"}, "is not a whole number from 0"),
    (False, {"kafka.security.protocol": "TLS"}, "is not one of"),
    (False, {"startingOffset": "earliest"}, "Unknown option (did you mean startingOffsets?)"),
]


@pytest.mark.parametrize(("streaming", "given", "words"), REFUSED, ids=lambda each: str(each)[:60])
def test_refused_in_words_that_name_option_and_value(streaming: bool, given: dict[str, str], words: str) -> None:
    with pytest.raises(ValueError) as caught:
        read_options({**LEAST, **given}, streaming=streaming)
    assert words in str(caught.value)
    error: Any = caught.value
    assert isinstance(error, OptionError)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "One of the following options must be specified for Kafka source"),
        ({"assign": "t"}, "No topicpartitions to assign as specified value for option 'assign' is 't'"),
        ({"assign": '{"t":0}'}, 'Expected e.g. {"topicA":[0,1],"topicB":[0,1]}, got {"t":0}'),
        ({"subscribePattern": " "}, "Pattern to subscribe is empty"),
        ({"subscribePattern": "(a"}, "a group is not closed"),
    ],
)
def test_exactly_one_way_to_choose_partitions(given: dict[str, str], words: str) -> None:
    with pytest.raises(OptionError) as caught:
        read_options({"kafka.bootstrap.servers": "h", **given}, streaming=False)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"kafka.key.serializer": "x"}, "not supported as keys are serialized with ByteArraySerializer"),
        ({"kafka.value.serializer": "x"}, "not supported as value are serialized with ByteArraySerializer"),
        ({"subscribe": "t"}, "Unknown option"),
        ({"kafka.ack": "1"}, "Kafka option 'ack' is not supported (did you mean kafka.acks?)"),
        ({"acks": "1"}, "Unknown option (did you mean kafka.acks?)"),
        ({"exactlyOnse": "true"}, "Unknown option (did you mean exactlyOnce?)"),
        ({"kafka.partitioner.class": "x"}, "write a column 'partition'"),
        ({"kafka.fetch.min.byte": "1"}, "Kafka option 'fetch.min.byte' is not supported"),
        ({"kafka.client.dns.lookup": "none"}, "client.dns.lookup='none': the client tries every address"),
        ({"kafka.transaction.two.phase.commit.enable": "true"}, "this client ends its transactions itself"),
        ({"kafka.compression.type": "foo"}, "'compression.type' is none of none, gzip, snappy, lz4, zstd"),
        (
            {"kafka.compression.type": "gzip", "kafka.compression.gzip.level": "10"},
            "compression level 10 of gzip is not in 1..9 [option 'kafka.compression.gzip.level', value '10']",
        ),
    ],
)
def test_refused_by_the_sink(given: dict[str, str], words: str) -> None:
    with pytest.raises(OptionError) as caught:
        write_options({"kafka.bootstrap.servers": "h", **given})
    assert words in str(caught.value)


def test_each_option_has_the_spelling_of_users() -> None:
    assert set(SPELLINGS) == {*OF_READ, *OF_WRITE, *STRATEGIES}


SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
HIDDEN = "Tr0ub4dor-hidden"
SECURED = {
    "kafka.security.protocol": "SASL_SSL",
    "kafka.sasl.mechanism": "SCRAM-SHA-512",
    "kafka.sasl.jaas.config": f'{SCRAM} required username="u" password="{HIDDEN}";',
    "kafka.ssl.truststore.location": "/t.jks",
    "kafka.ssl.truststore.password": HIDDEN,
    "kafka.ssl.endpoint.identification.algorithm": "",
    "kafka.metric.reporters": "",
}


def test_security_of_source_and_sink() -> None:
    options = batch(**SECURED)
    written = write_options({"kafka.bootstrap.servers": "h", **SECURED})
    for client in (options.client, written.client):
        security = client.security
        assert (security.security_protocol, security.sasl_plain_username) == ("SASL_SSL", "u")
        assert (security.ssl_truststore_location, security.ssl_endpoint_identification_algorithm) == ("/t.jks", "")
        assert pickle.loads(pickle.dumps(client)) == client
    assert HIDDEN not in repr(options) + repr(written)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"kafka.sasl.jaas.config": HIDDEN}, "sasl.jaas.config: it does not begin with the class of a login module"),
        ({"kafka.sasl.passwort": HIDDEN}, "sasl.passwort: no such security property is known"),
        ({"kafka.ssl.truststore.pasword": HIDDEN}, "did you mean ssl.truststore.password?"),
        ({"kafka.ssl.engine.factory.class": "a.B"}, "Java classes cannot be used here"),
        ({"kafka.basic.auth.secret": HIDDEN}, "is not supported"),
    ],
)
def test_errors_show_no_secret(given: dict[str, str], words: str) -> None:
    for read in (lambda options: read_options({**LEAST, **options}, streaming=False), write_options):
        with pytest.raises(ConfigError) as caught:
            read({"kafka.bootstrap.servers": "h", **SECURED, **given})
        assert words in str(caught.value)
        assert HIDDEN not in str(caught.value) + repr(caught.value.__dict__)
