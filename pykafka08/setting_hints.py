"""What to say about a keyword argument that is no setting: the right name, or what there is in its place.

Here: the names that users of other clients type.  The settings themselves are ``config``'s and ``group.settings``'.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from difflib import get_close_matches

__all__ = ["IN_THEIR_PLACE", "NAMES_IN_LIBRDKAFKA", "OTHER_NAMES", "hint"]

BYTES_ALONE = "keys and values are bytes: leave it out, and encode and decode them in the application"
LEAVE_OUT = "not needed here: leave it out"
ASKED = "not needed: each broker is asked; broker_version is a hint"
OWN_LOOP = "not needed: a client belongs to the event loop it is entered in"
CALLBACK = "await send(), or await the future of enqueue()"
COMPACT = "batch_size and buffer_memory limit bytes"
NO_PROXY = "proxies are not supported"
BY_APPLICATION = "acknowledge() marks a record as finished"
SERVICE = "give sasl_kerberos_service_name and sasl_kerberos_domain_name"

NAMES_IN_LIBRDKAFKA = {
    "compression_codec": "compression_type",
    "fetch_message_max_bytes": "max_partition_fetch_bytes",
    "fetch_wait_max_ms": "fetch_max_wait_ms",
    "max_in_flight": "max_in_flight_requests_per_connection",
    "message_max_bytes": "max_request_size",
    "message_timeout_ms": "delivery_timeout_ms",
    "metadata_broker_list": "bootstrap_servers",
    "queue_buffering_max_ms": "linger_ms",
    "request_required_acks": "acks",
    "sasl_mechanisms": "sasl_mechanism",
    "sasl_oauthbearer_client_id": "sasl_oauthbearer_client_credentials_client_id",
    "sasl_oauthbearer_client_secret": "sasl_oauthbearer_client_credentials_client_secret",
    "sasl_password": "sasl_plain_password",
    "sasl_username": "sasl_plain_username",
    "socket_timeout_ms": "request_timeout_ms",
    "ssl_ca_location": "ssl_cafile",
    "ssl_ca_pem": "ssl_cadata",
    "ssl_certificate_location": "ssl_certfile",
    "ssl_certificate_pem": "ssl_keystore_certificate_chain",
    "ssl_crl_location": "ssl_crlfile",
    "ssl_key_location": "ssl_keyfile",
    "ssl_key_pem": "ssl_keystore_key",
    "topic_metadata_refresh_interval_ms": "metadata_max_age_ms",
}
"""Property of librdkafka in snake_case -> the setting of this client."""

OTHER_NAMES = {
    **NAMES_IN_LIBRDKAFKA,
    "auto_commit": "enable_auto_commit",
    "bootstrap_server": "bootstrap_servers",
    "broker_version_fallback": "broker_version",
    "brokers": "bootstrap_servers",
    "compression": "compression_type",
    "group": "group_id",
    "hosts": "bootstrap_servers",
    "idempotence": "enable_idempotence",
    "linger": "linger_ms",
    "max_batch_size": "batch_size",
    "max_message_bytes": "max_request_size",
    "max_wait_time": "fetch_max_wait_ms",
    "oauth_cb": "sasl_oauth_token_provider",
    "rebalance_timeout_ms": "max_poll_interval_ms",
    "transaction_id": "transactional_id",
}
"""The same under another name."""

IN_THEIR_PLACE = {
    "allow_auto_create_topics": "consumers create no topics; for producers the brokers decide",
    "api_version": ASKED,
    "api_version_auto_timeout_ms": ASKED,
    "api_version_request": ASKED,
    "batch_num_messages": COMPACT,
    "bootstrap_timeout_ms": "socket_connection_setup_timeout_ms limits each connection",
    "client_dns_lookup": LEAVE_OUT,
    "consumer_timeout_ms": "give getone(timeout=) or getmany(timeout=)",
    "default_offset_commit_callback": "await commit()",
    "delivery_report_only_error": CALLBACK,
    "dr_cb": CALLBACK,
    "dr_msg_cb": CALLBACK,
    "enable_auto_offset_store": BY_APPLICATION,
    "enable_incremental_fetch_sessions": LEAVE_OUT,
    "enable_partition_eof": "end_offsets() has the end of a partition",
    "enable_ssl_certificate_verification": "ssl_insecure_skip_verify=True turns it off",
    "error_cb": "errors are raised by the calls",
    "exclude_internal_topics": "not needed: a pattern never matches internal topics",
    "kafka_client": LEAVE_OUT,
    "key_deserializer": BYTES_ALONE,
    "key_serializer": BYTES_ALONE,
    "loop": OWN_LOOP,
    "max_poll_records": "give getmany(max_records=)",
    "message_send_max_retries": "delivery_timeout_ms bounds them",
    "metric_group_prefix": LEAVE_OUT,
    "metric_reporters": LEAVE_OUT,
    "metrics_enabled": LEAVE_OUT,
    "metrics_num_samples": LEAVE_OUT,
    "metrics_sample_window_ms": LEAVE_OUT,
    "on_delivery": CALLBACK,
    "proxy_url": NO_PROXY,
    "queue_buffering_max_kbytes": COMPACT,
    "queue_buffering_max_messages": COMPACT,
    "queued_max_messages_kbytes": "fetch_buffer_bytes limits them, in bytes",
    "rebalance_listener": "give Consumer(listener=)",
    "receive_buffer_bytes": LEAVE_OUT,
    "retries": "delivery_timeout_ms bounds them",
    "sasl_kerberos_name": SERVICE,
    "selector": LEAVE_OUT,
    "send_buffer_bytes": LEAVE_OUT,
    "sock_chunk_buffer_count": LEAVE_OUT,
    "sock_chunk_bytes": LEAVE_OUT,
    "socket_options": LEAVE_OUT,
    "socks5_proxy": NO_PROXY,
    "statistics_interval_ms": "call health()",
    "stats_cb": "call health()",
    "topic": "topics are positional: Consumer('a', 'b', ...)",
    "topics": "topics are positional: Consumer('a', 'b', ...)",
    "value_deserializer": BYTES_ALONE,
    "value_serializer": BYTES_ALONE,
}
"""Not a setting here."""


def hint(name: str, known: Collection[str], shown: Callable[[str], str] = str) -> str | None:
    """What may have been meant by ``name``, which is none of the ``known``; None if nobody can guess.

    ``shown`` gives a setting's name the form in which users write it.
    """
    # Java's own spelling, out of a mapping, is the commonest one.
    name = name.lower().replace(".", "_").replace("-", "_")
    meant = name if name in known else OTHER_NAMES.get(name)
    if meant is None or meant not in known:
        if name in IN_THEIR_PLACE:
            return IN_THEIR_PLACE[name]
        meant = next(iter(get_close_matches(name, sorted(known), 1, 0.75)), None)
    return f"did you mean {shown(meant)}?" if meant else None
