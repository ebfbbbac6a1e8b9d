"""``kafka.*`` options of Spark's source and sink as settings of this client.  Pure.

Kafka's own property names, of a consumer for the source and of a producer for the sink.  What cannot be honoured is an
error that says so; the few that change nothing in Spark's own connector either are listed with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from pykafka08.config import SETTING_NAMES, ClientConfig, ConsumerConfig, ProducerConfig, build, setting_fields
from pykafka08.errors import ConfigError
from pykafka08.kafka_properties import settings_of, written_names
from pykafka08.kafka_properties.conversion import check_refused
from pykafka08.kafka_properties.tables import OF_CONSUMERS, OF_PRODUCERS, REFUSED
from pykafka08.kafka_properties.tables import WITHOUT_EFFECT as EVERYWHERE_WITHOUT_EFFECT
from pykafka08.security.settings import SecurityConfig
from pykafka08.setting_hints import hint
from pykafka08.spark.option_values import OptionError, boolean, whole

__all__ = [
    "CONSUMER_PROPERTIES",
    "PREFIX",
    "PRODUCER_PROPERTIES",
    "consumer_settings",
    "producer_settings",
]

PREFIX = "kafka."

INSTEAD_OF_RESET = (
    "Kafka option 'auto.offset.reset' is not supported. Instead set the source option 'startingoffsets' to 'earliest' "
    "or 'latest' to specify where to start. Structured Streaming manages which offsets are consumed internally, rather "
    "than relying on the kafkaConsumer to do it. This will ensure that no data is missed when new topics/partitions "
    "are dynamically subscribed. Note that 'startingoffsets' only applies when a new Streaming query is started, and "
    "that resuming will always pick up from where the query left off. See the docs for more details."
)
REFUSED_BY_SOURCE = {
    "auto.offset.reset": INSTEAD_OF_RESET,
    "key.deserializer": "Kafka option 'key.deserializer' is not supported as keys are deserialized as byte arrays with "
    "ByteArrayDeserializer. Use DataFrame operations to explicitly deserialize the keys.",
    "value.deserializer": "Kafka option 'value.deserializer' is not supported as values are deserialized as byte "
    "arrays with ByteArrayDeserializer. Use DataFrame operations to explicitly deserialize the values.",
    "enable.auto.commit": "Kafka option 'enable.auto.commit' is not supported",
    "interceptor.classes": "Kafka option 'interceptor.classes' is not supported",
}
REFUSED_BY_SINK = {
    "key.serializer": "Kafka option 'key.serializer' is not supported as keys are serialized with ByteArraySerializer.",
    "value.serializer": "Kafka option 'value.serializer' is not supported as value are serialized with "
    "ByteArraySerializer.",
    "transactional.id": "Kafka option 'transactional.id' is not supported: each task of a stream has one of its own. "
    "Instead set the sink option 'exactlyOnce', and 'transactionalIdPrefix' where ids must have a certain beginning.",
}
"""As Spark's KafkaSourceProvider says it, but for the last."""

NO_GROUP = "partitions are assigned, nobody joins a group"
WITHOUT_EFFECT = {
    "allow.auto.create.topics": "a reader creates no topics",
    "auto.commit.interval.ms": "offsets are in the checkpoint, and in a group at the end of a batch (commitGroup)",
    "group.instance.id": NO_GROUP,
    "group.protocol": NO_GROUP,
    "group.remote.assignor": NO_GROUP,
    "heartbeat.interval.ms": NO_GROUP,
    "max.poll.interval.ms": NO_GROUP,
    "partition.assignment.strategy": NO_GROUP,
    "session.timeout.ms": NO_GROUP,
    "max.poll.records": "rows come in Arrow batches, whatever the size of a poll",
}
"""Of a consumer: what changes no row that Spark's connector reads, and none here."""
OF_THE_OTHER_KIND = {"consumer": OF_PRODUCERS, "producer": OF_CONSUMERS}
"""Properties that only the other kind of client has: a job may give one set of options to its source and its sink."""

Convert = Callable[[str, str], Any]


def _text(_: str, value: str) -> str:
    return value


def _partitioner(name: str, value: str) -> str:
    raise OptionError(name, value, "a partitioner that is a Java class cannot be used; write a column 'partition'")


def _acks(_: str, value: str) -> int | str:
    return int(value) if value.lstrip("-").isdigit() else value


def _codec(option: str, value: str) -> str:
    from pykafka08.records.compression import Codec  # here: processes that send nothing need no codecs

    try:
        return Codec.parse(value).label
    except ConfigError:
        names = ", ".join(each.label for each in Codec)
        raise OptionError(option, value, f"Kafka option 'compression.type' is none of {names}") from None


def _level(codec: str, level: int) -> int:
    from pykafka08.records.compression import Codec, check_level

    try:
        check_level(Codec.parse(codec), level)
    except ConfigError as error:
        raise OptionError(f"{PREFIX}compression.{codec}.level", str(level), error.message) from error
    return level


OF_CLIENT: Mapping[str, Convert] = {
    "bootstrap.servers": _text,
    "client.id": _text,
    "broker.version": _text,
    "request.timeout.ms": whole,
    "default.api.timeout.ms": whole,
    "retry.backoff.ms": whole,
    "retry.backoff.max.ms": whole,
    "reconnect.backoff.ms": whole,
    "reconnect.backoff.max.ms": whole,
    "socket.connection.setup.timeout.ms": whole,
    "connections.max.idle.ms": whole,
    "metadata.max.age.ms": whole,
    "receive.message.max.bytes": whole,
}
OF_CONSUMER: Mapping[str, Convert] = {
    "group.id": _text,
    "fetch.min.bytes": whole,
    "fetch.max.wait.ms": whole,
    "fetch.max.bytes": whole,
    "max.partition.fetch.bytes": whole,
    "check.crcs": boolean,
    "isolation.level": lambda _, value: value.lower(),
    "max.unpacked.bytes": whole,
    "client.rack": _text,
}
OF_PRODUCER: Mapping[str, Convert] = {
    "acks": _acks,
    "enable.idempotence": boolean,
    "transaction.timeout.ms": whole,
    "linger.ms": whole,
    "batch.size": whole,
    "compression.type": _codec,
    "compression.gzip.level": whole,
    "compression.lz4.level": whole,
    "compression.zstd.level": whole,
    "delivery.timeout.ms": whole,
    "buffer.memory": whole,
    "max.block.ms": whole,
    "max.request.size": whole,
    "max.in.flight.requests.per.connection": whole,
    "partitioner.class": _partitioner,
}
SECURITY = ("security.", "ssl.", "sasl.", "config.providers")
"""Beginnings of names that mean the same in every client."""
SECURITY_PROPERTIES = frozenset(each.name.replace("_", ".") for each in fields(SecurityConfig))
CONSUMER_PROPERTIES = frozenset({*OF_CLIENT, *OF_CONSUMER, *SECURITY_PROPERTIES})
PRODUCER_PROPERTIES = frozenset({*OF_CLIENT, *OF_PRODUCER, *SECURITY_PROPERTIES})
"""Names without the prefix."""


def consumer_settings(options: Mapping[str, str], client_id: str) -> tuple[ClientConfig, ConsumerConfig]:
    """The ``kafka.*`` options among ``options`` for the source; OptionError for what cannot be honoured.

    Brokers know the client by ``kafka.client.id``, else by ``kafka.group.id``, since nothing else tells them of the
    group (quotas and request logs go by it), else by ``client_id``.
    """
    properties = _properties(options, "consumer", {**OF_CLIENT, **OF_CONSUMER}, REFUSED_BY_SOURCE)
    properties.setdefault("client_id", properties.get("group_id") or client_id)
    client, consumer = _built(properties, ClientConfig, ConsumerConfig)
    return client, consumer


def producer_settings(options: Mapping[str, str], client_id: str) -> tuple[ClientConfig, ProducerConfig]:
    """The ``kafka.*`` options among ``options`` for the sink; OptionError for what cannot be honoured."""
    properties = _properties(options, "producer", {**OF_CLIENT, **OF_PRODUCER}, REFUSED_BY_SINK)
    levels = {name: properties.pop(name) for name in list(properties) if name.endswith("_level")}
    codec = properties.get("compression_type", "none")
    if (level := levels.get(f"compression_{codec}_level")) is not None:
        properties["compression_level"] = _level(codec, level)
    properties.setdefault("client_id", client_id)
    client, producer = _built(properties, ClientConfig, ProducerConfig)
    return client, producer


def _properties(
    options: Mapping[str, str], side: str, known: Mapping[str, Convert], refused: Mapping[str, str]
) -> dict[str, Any]:
    if not options.get(f"{PREFIX}bootstrap.servers"):
        what = f"Option 'kafka.bootstrap.servers' must be specified for configuring Kafka {side}"
        raise OptionError("kafka.bootstrap.servers", None, what)
    given = {option: value for option, value in options.items() if option.startswith(PREFIX)}
    result = _security(given)
    for option, value in given.items():
        name = option.removeprefix(PREFIX)
        if name.startswith(SECURITY):
            continue
        if name in refused:
            raise OptionError(option, value, refused[name])
        if name in known:
            result[name.replace(".", "_")] = known[name](option, value)
        elif name in REFUSED and name not in OF_THE_OTHER_KIND[side]:
            _check_refused(option, value)
        elif not _is_without_effect(name, side):
            raise OptionError(option, value, _unknown(name, known))
    return result


def _is_without_effect(name: str, side: str) -> bool:
    if name in EVERYWHERE_WITHOUT_EFFECT or name in OF_THE_OTHER_KIND[side]:
        return True
    return side == "consumer" and name in WITHOUT_EFFECT


def _check_refused(option: str, value: str) -> None:
    name = option.removeprefix(PREFIX)
    try:
        check_refused(name, name, value)
    except ConfigError as error:
        raise OptionError(option, value, f"Kafka option {error.message}") from None


def _security(given: Mapping[str, str]) -> dict[str, Any]:
    """TLS and SASL, by the rules of every client."""
    own = {option.removeprefix(PREFIX): value for option, value in given.items()}
    own = {name: value for name, value in own.items() if name.startswith(SECURITY)}
    try:
        return settings_of(own).settings
    except ConfigError as error:
        name = next((each for each in own if error.message.startswith(each)), None)
        if name is None:
            raise
        # An unknown name may be a misspelled secret: its value is not shown.
        value = own[name] if name in SECURITY_PROPERTIES else None
        raise OptionError(PREFIX + name, value, error.message) from None


def _unknown(name: str, known: Mapping[str, Convert]) -> str:
    meant = hint(name, [each.replace(".", "_") for each in known], lambda each: PREFIX + each.replace("_", "."))
    return f"Kafka option '{name}' is not supported" + (f" ({meant})" if meant else "")


def _built(properties: dict[str, Any], *kinds: type) -> list[Any]:
    names = written_names({}, *kinds, prefix=PREFIX)
    try:
        return build({**properties, SETTING_NAMES: names}, *kinds)
    except ConfigError as error:
        settings = [name for kind in kinds for name in _names(kind)]
        setting = next((each for each in settings if error.message.startswith(names[each])), None)
        if setting is None:
            raise
        raise OptionError(names[setting], str(properties.get(setting)), error.message) from error


def _names(kind: type) -> list[str]:
    return sorted(setting_fields(kind), key=len, reverse=True)
