"""Properties by librdkafka's names: what a configuration of confluent-kafka has beside Kafka's own names.

Tables, as those of ``tables``.  Source: librdkafka's CONFIGURATION.md, release 2.16.
"""

from __future__ import annotations

from collections.abc import Mapping

from pykafka08.kafka_properties.tables import Refused
from pykafka08.setting_hints import NAMES_IN_LIBRDKAFKA

__all__ = ["CALLBACKS", "NAMES", "REFUSED", "VALUES", "WITHOUT_EFFECT"]

NAMES: Mapping[str, str] = {
    **NAMES_IN_LIBRDKAFKA,
    "auto_commit_enable": "enable_auto_commit",
    "message_send_max_retries": "retries",
    "sasl_oauthbearer_assertion_jwt_template_file": "sasl_oauthbearer_assertion_template_file",
    "sasl_oauthbearer_grant_type": "sasl_oauthbearer_jwt_retriever_class",
}
"""Property in snake_case -> the setting of this client, or Kafka's property."""

VALUES: Mapping[tuple[str, str], str] = {
    ("auto_offset_reset", "beginning"): "earliest",
    ("auto_offset_reset", "end"): "latest",
    ("auto_offset_reset", "error"): "none",
    ("compression_level", "-1"): "",
    ("compression_type", "inherit"): "none",
    ("partitioner", "murmur2_random"): "murmur2",
    ("sasl_oauthbearer_jwt_retriever_class", "client_credentials"): "ClientCredentialsJwtRetriever",
    ("sasl_oauthbearer_jwt_retriever_class", "urn:ietf:params:oauth:grant-type:jwt-bearer"): "JwtBearerJwtRetriever",
    ("ssl_cafile", "probe"): "",
    ("ssl_endpoint_identification_algorithm", "none"): "",
}
"""Setting and its value -> the value here; an empty one of a setting that may be None is its default."""

_OPENSSL = "it is for librdkafka's OpenSSL; give ssl_context="
_SYSTEM = "the operating system's defaults are used"
_LOG = "this client logs through the module logging"
_QUEUE = "buffer.memory and batch.size bound what waits"
_FETCHED = "max.partition.fetch.bytes and fetch.max.bytes bound what is read ahead"
_VERSIONS = "the versions of every broker are always asked for"
_PEOPLE = "it is about statistics; see health()"

REFUSED: Mapping[str, Refused] = {
    "enable.auto.offset.store": Refused(
        "what getone() and getmany() return counts as consumed; to choose offsets set enable.auto.commit=false, and "
        "call commit()",
        ("", "true"),
    ),
    "enable.gapless.guarantee": Refused("a record that cannot be delivered fails alone", ("", "false")),
    "enable.partition.eof": Refused("the end of a partition is no event; see end_offsets()", ("", "false")),
    "enable.sasl.oauthbearer.unsecure.jwt": Refused("give sasl_oauthbearer_unsecured_login=", ("", "false")),
    "enable.ssl.certificate.verification": Refused(
        "to accept every certificate set ssl_insecure_skip_verify=true", ("", "true")
    ),
    "group.protocol.type": Refused("groups are of consumers", ("", "consumer")),
    "https.ca.location": Refused("give sasl_oauthbearer_ssl={'ssl_cafile': ...}"),
    "https.ca.pem": Refused("give sasl_oauthbearer_ssl={'ssl_cadata': ...}"),
    "interceptors": Refused("plug-ins of librdkafka cannot be used here"),
    "offset.store.method": Refused("offsets are kept by the brokers", ("", "broker")),
    "plugin.library.paths": Refused("plug-ins of librdkafka cannot be used here"),
    "queuing.strategy": Refused("records of a partition are sent in order", ("", "fifo")),
    "sasl.oauthbearer.assertion.private.key.pem": Refused(
        "write it to a file, and give sasl.oauthbearer.assertion.private.key.file"
    ),
    "sasl.oauthbearer.config": Refused("give sasl_oauthbearer_unsecured_login= or a sasl_oauth_token_provider="),
    "sasl.oauthbearer.metadata.authentication.type": Refused("give a sasl_oauth_token_provider=", ("", "none")),
    "sasl.oauthbearer.method": Refused("it is none of default, oidc", ("", "default", "oidc")),
    "ssl.ca.certificate.stores": Refused(_OPENSSL, ("", "root")),
    "ssl.curves.list": Refused(_OPENSSL),
    "ssl.engine.id": Refused(_OPENSSL, ("", "dynamic")),
    "ssl.engine.location": Refused(_OPENSSL),
    "ssl.providers": Refused(_OPENSSL),
    "ssl.sigalgs.list": Refused(_OPENSSL),
    "topic.blacklist": Refused("name the topics that are wanted"),
}

WITHOUT_EFFECT: Mapping[str, str] = {
    "api.version.fallback.ms": _VERSIONS,
    "api.version.request": _VERSIONS,
    "api.version.request.timeout.ms": _VERSIONS,
    "batch.num.messages": "batch.size bounds a batch",
    "broker.address.family": "every address of a host name is tried",
    "broker.address.ttl": "a host name is looked up for every connection",
    "broker.version.fallback": _VERSIONS,
    "builtin.features": "it says what librdkafka was built with",
    "consume.callback.max.messages": "there are no callbacks; see getmany(max_records=)",
    "coordinator.query.interval.ms": "a coordinator is looked up again when it says that it is none",
    "debug": _LOG,
    "delivery.report.only.error": "await producer.send(...) tells of every record",
    "enabled_events": "there are no events",
    "enable.random.seed": "random numbers are seeded by the system",
    "fetch.error.backoff.ms": "retry.backoff.ms and retry.backoff.max.ms are the pauses",
    "fetch.queue.backoff.ms": _FETCHED,
    "internal.termination.signal": "this client has no threads to end",
    "log.connection.close": _LOG,
    "log.queue": _LOG,
    "log.thread.name": _LOG,
    "log_level": _LOG,
    "message.copy.max.bytes": "values are passed on without a copy where that is possible",
    "offset.store.path": "offsets are kept by the brokers",
    "offset.store.sync.interval.ms": "offsets are kept by the brokers",
    "produce.offset.report": "await producer.send(...) returns the offset",
    "queue.buffering.backpressure.threshold": _QUEUE,
    "queue.buffering.max.kbytes": _QUEUE,
    "queue.buffering.max.messages": _QUEUE,
    "queued.max.messages.kbytes": _FETCHED,
    "queued.min.messages": _FETCHED,
    "reconnect.backoff.jitter.ms": "pauses have a random part",
    "socket.blocking.max.ms": "no call blocks",
    "socket.keepalive.enable": _SYSTEM,
    "socket.max.fails": "a connection ends with its first time-out",
    "socket.nagle.disable": "Nagle's algorithm is off",
    "socket.receive.buffer.bytes": _SYSTEM,
    "socket.send.buffer.bytes": _SYSTEM,
    "statistics.interval.ms": _PEOPLE,
    "sticky.partitioning.linger.ms": "a batch without keys stays with its partition until it is full",
    "topic.metadata.propagation.max.ms": "a new topic is waited for within max.block.ms",
    "topic.metadata.refresh.fast.cnt": "retry.backoff.ms is the pause",
    "topic.metadata.refresh.fast.interval.ms": "retry.backoff.ms is the pause",
    "topic.metadata.refresh.sparse": "only metadata of topics in use is asked for",
}

CALLBACKS: Mapping[str, str] = {
    "default.topic.config": "put what it has beside the other properties",
    "error_cb": "errors are raised by the calls that they concern",
    "logger": _LOG,
    "oauth_cb": "give sasl_oauth_token_provider=",
    "on_commit": "commit() returns when the offsets are committed",
    "on_delivery": "give a delivery's outcome from await producer.send(...)",
    "stats_cb": _PEOPLE,
    "throttle_cb": "throttling is in health()",
}
"""Functions in a configuration of confluent-kafka, and what is there instead."""
