"""Properties of Kafka's Java clients that are not settings of the same name here.

Every client property of Kafka 4.3.1 is a setting, or is in one of these tables; a test asks the release's own classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = [
    "ASSIGNORS",
    "OBJECTS",
    "OF_CONSUMERS",
    "OF_PRODUCERS",
    "OTHER_VALUES",
    "PARTITIONERS",
    "REFUSED",
    "WITHOUT_EFFECT",
    "Refused",
]


class Refused(NamedTuple):
    """A property that cannot be honoured, but for the values that ask for what this client does anyway."""

    why: str
    harmless: tuple[str, ...] = ("",)
    """Values that are passed over; of names of Java classes the last part."""


OTHER_VALUES: Mapping[tuple[str, str], str] = {
    ("auto_offset_reset", "smallest"): "earliest",
    ("auto_offset_reset", "largest"): "latest",
}

ASSIGNORS: Mapping[str, str] = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "StickyAssignor": "sticky",
    "CooperativeStickyAssignor": "cooperative-sticky",
}
"""Java's classes and what they call themselves."""

PARTITIONERS: Mapping[str, str] = {
    "DefaultPartitioner": "murmur2",
    "UniformStickyPartitioner": "murmur2",
    "RoundRobinPartitioner": "round_robin",
}
"""Java's classes and what does the same here."""

OBJECTS: Mapping[str, str] = {
    "ssl_context": "an ssl.SSLContext is an object of the application",
    "sasl_oauth_token_provider": "a token provider is an object of the application",
}
"""Settings that no text can give."""

_NO_METRICS = "this client keeps no metrics of Java's kind; see health()"
_SYSTEM = "the operating system sizes the buffers"
_OF_BROKERS = "it is a property of brokers"
_JAVA = "it belongs to Java's TLS; Python's ssl module is used here"
_TICKETS = "the Kerberos library renews tickets"
_TOKENS = "the broker checks the claims of tokens"
_SHARE = "it is for share groups, which this client does not have"
_PARTITIONER = "the partitioner of this client prefers partitions with short queues"

WITHOUT_EFFECT: Mapping[str, str] = {
    "allow.auto.create.topics": "a consumer of this client creates no topics",
    "config.providers": "it names providers of values; they are replaced before",
    "default.key.serde": "it is for Kafka Streams",
    "enable.metrics.push": _NO_METRICS,
    "internal.throw.on.fetch.stable.offset.unsupported": "it is internal to Java's consumer",
    "max.poll.records": "give getmany(max_records=)",
    "metadata.max.idle.ms": "a producer keeps the topics that it writes",
    "metadata.recovery.rebootstrap.trigger.ms": "this client asks the bootstrap servers again when no broker answers",
    "metadata.recovery.strategy": "this client asks the bootstrap servers again when no broker answers",
    "metric.reporters": _NO_METRICS,
    "metrics.num.samples": _NO_METRICS,
    "metrics.recording.level": _NO_METRICS,
    "metrics.sample.window.ms": _NO_METRICS,
    "partitioner.adaptive.partitioning.enable": _PARTITIONER,
    "partitioner.availability.timeout.ms": _PARTITIONER,
    "receive.buffer.bytes": _SYSTEM,
    "retries": "delivery.timeout.ms and default.api.timeout.ms bound them",
    "sasl.enabled.mechanisms": _OF_BROKERS,
    "sasl.kerberos.kinit.cmd": _TICKETS,
    "sasl.kerberos.min.time.before.relogin": _TICKETS,
    "sasl.kerberos.ticket.renew.jitter": _TICKETS,
    "sasl.kerberos.ticket.renew.window.factor": _TICKETS,
    "sasl.mechanism.inter.broker.protocol": _OF_BROKERS,
    "sasl.oauthbearer.clock.skew.seconds": _OF_BROKERS,
    "sasl.oauthbearer.expected.audience": _OF_BROKERS,
    "sasl.oauthbearer.expected.issuer": _OF_BROKERS,
    "sasl.oauthbearer.jwks.endpoint.refresh.ms": _OF_BROKERS,
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": _OF_BROKERS,
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": _OF_BROKERS,
    "sasl.oauthbearer.jwks.endpoint.url": _OF_BROKERS,
    "sasl.oauthbearer.scope.claim.name": _TOKENS,
    "sasl.oauthbearer.sub.claim.name": _TOKENS,
    "security.inter.broker.protocol": _OF_BROKERS,
    "security.providers": _JAVA,
    "send.buffer.bytes": _SYSTEM,
    "share.acknowledgement.mode": _SHARE,
    "share.acquire.mode": _SHARE,
    "socket.connection.setup.timeout.max.ms": "socket.connection.setup.timeout.ms applies to each attempt",
    "ssl.client.auth": _OF_BROKERS,
    "ssl.keymanager.algorithm": _JAVA,
    "ssl.principal.mapping.rules": _OF_BROKERS,
    "ssl.provider": _JAVA,
    "ssl.secure.random.implementation": _JAVA,
    "ssl.trustmanager.algorithm": _JAVA,
}
"""Properties that change nothing that this client does; the reason is for people."""

_BYTES = "keys and values are bytes here: leave it out, and convert them in the application"
_BYTES_SERIALIZERS = ("", "ByteArraySerializer", "ByteBufferSerializer", "BytesSerializer", "StringSerializer")
_BYTES_DESERIALIZERS = (
    "",
    "ByteArrayDeserializer",
    "ByteBufferDeserializer",
    "BytesDeserializer",
    "StringDeserializer",
)
_CLASS = "Java classes cannot be used here"
_CALLBACKS = f"{_CLASS}; give a password function or a token provider in Python"

REFUSED: Mapping[str, Refused] = {
    "bootstrap.controllers": Refused("this client asks brokers: give bootstrap.servers"),
    "client.dns.lookup": Refused(
        "the client tries every address of a host name, as with use_all_dns_ips",
        ("", "default", "use_all_dns_ips"),
    ),
    "exclude.internal.topics": Refused("a pattern never matches internal topics: name them", ("", "true")),
    "interceptor.classes": Refused(f"{_CLASS}: an interceptor may change records"),
    "key.deserializer": Refused(_BYTES, _BYTES_DESERIALIZERS),
    "key.serializer": Refused(_BYTES, _BYTES_SERIALIZERS),
    "partitioner.ignore.keys": Refused("partitioner=round_robin ignores keys", ("", "false")),
    "sasl.login.class": Refused(_CALLBACKS, ("", "DefaultLogin", "KerberosLogin", "OAuthBearerRefreshingLogin")),
    "sasl.oauthbearer.jwt.validator.class": Refused(_CLASS, ("", "DefaultJwtValidator", "ClientJwtValidator")),
    "ssl.engine.factory.class": Refused(f"{_CLASS}; give ssl_context=", ("", "DefaultSslEngineFactory")),
    "transaction.two.phase.commit.enable": Refused("this client ends its transactions itself", ("", "false")),
    "value.deserializer": Refused(_BYTES, _BYTES_DESERIALIZERS),
    "value.serializer": Refused(_BYTES, _BYTES_SERIALIZERS),
}
"""Properties that are an error, since what the client does would not be what the file says."""

OF_PRODUCERS = frozenset(
    [
        "acks",
        "batch.size",
        "buffer.memory",
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.type",
        "compression.zstd.level",
        "delivery.timeout.ms",
        "enable.idempotence",
        "key.serializer",
        "linger.ms",
        "max.block.ms",
        "max.in.flight.requests.per.connection",
        "max.request.size",
        "partitioner.class",
        "partitioner.ignore.keys",
        "retries",
        "transaction.timeout.ms",
        "transaction.two.phase.commit.enable",
        "transactional.id",
        "value.serializer",
    ]
)
OF_CONSUMERS = frozenset(
    [
        "auto.commit.interval.ms",
        "auto.offset.reset",
        "check.crcs",
        "client.rack",
        "enable.auto.commit",
        "exclude.internal.topics",
        "fetch.max.bytes",
        "fetch.max.wait.ms",
        "fetch.min.bytes",
        "group.id",
        "group.instance.id",
        "group.protocol",
        "group.remote.assignor",
        "heartbeat.interval.ms",
        "isolation.level",
        "key.deserializer",
        "max.partition.fetch.bytes",
        "max.poll.interval.ms",
        "partition.assignment.strategy",
        "session.timeout.ms",
        "value.deserializer",
    ]
)
"""Properties that one kind of client has alone: files that several clients share may have both."""
