"""What a record may be made of: everything that an application passes is checked here, before it is queued.

A value that slipped through would fail the whole batch, and the records of others in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized
from typing import Any

from pykafka08.config import ProducerConfig
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import KafkaError, LocalProtocolError, RecordTooLargeError, RecordTypeError, broker_error
from pykafka08.producer.batch import BATCH_OVERHEAD
from pykafka08.records.record import Headers, NewRecord
from pykafka08.records.topic_name import topic_name_fault

__all__ = [
    "as_bytes",
    "as_headers",
    "check_keys",
    "check_partition",
    "check_timestamp",
    "check_timestamps",
    "check_topic",
    "too_large",
]

_INT64_MAX = 2**63 - 1


def check_topic(topic: object) -> None:
    """A name that Kafka allows; asking for another one's metadata would make brokers 0.8 answer errors for all."""
    if not isinstance(topic, str):
        raise RecordTypeError(f"a topic's name is a str, not {type(topic).__name__}: {topic!r:.100}")
    fault = topic_name_fault(topic)
    if fault is not None:
        raise broker_error(ErrorCode.INVALID_TOPIC_EXCEPTION, fault, topic=topic)


def as_bytes(data: Any, what: str, topic: str) -> bytes:
    """A copy of a bytes-like object, so that a later change by the application does no harm."""
    if type(data) is bytes:
        return data
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data)
    hint = "; encode it first, as with .encode()" if isinstance(data, str) else ""
    raise RecordTypeError(
        f"topic {topic!r}: the {what} of a record is bytes-like or None, not {type(data).__name__}{hint}", topic=topic
    )


def as_headers(headers: Iterable[tuple[str, Any]], topic: str) -> Headers:
    """Pairs of a name and bytes or None."""
    made = []
    try:
        pairs = [(name, value) for name, value in headers]
    except (TypeError, ValueError) as error:
        raise RecordTypeError(
            f"topic {topic!r}: headers are pairs of a name and bytes, not {headers!r:.100}", topic=topic
        ) from error
    for name, value in pairs:
        if not isinstance(name, str):
            raise RecordTypeError(
                f"topic {topic!r}: the name of a header is a str, not {type(name).__name__}", topic=topic
            )
        try:
            name.encode()
        except UnicodeEncodeError as error:
            raise LocalProtocolError(f"the name of a header is not Unicode text: {name!r:.100}", topic=topic) from error
        made.append((name, None if value is None else as_bytes(value, f"header {name!r}", topic)))
    return tuple(made)


def check_keys(keys: object, records: Iterable[object], topic: str) -> None:
    """As many as there are records, as far as these can be told without taking them."""
    if not isinstance(keys, Sequence) or isinstance(keys, (str, bytes, bytearray, memoryview)):
        raise RecordTypeError(f"topic {topic!r}: keys are a list of keys, not {type(keys).__name__}", topic=topic)
    if isinstance(records, Sized) and len(keys) != len(records):
        raise RecordTypeError(
            f"topic {topic!r}: keys are given for as many values: {len(keys)} for {len(records)}", topic=topic
        )
    if isinstance(records, (list, tuple)) and NewRecord in {*map(type, records)}:
        raise RecordTypeError(f"topic {topic!r}: keys are given for values, not for NewRecord", topic=topic)


def check_partition(partition: object, topic: str) -> None:
    if isinstance(partition, bool) or not isinstance(partition, int):
        raise RecordTypeError(f"topic {topic!r}: a partition is an int, not {type(partition).__name__}", topic=topic)
    if not 0 <= partition < 2**31:
        raise broker_error(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"topic {topic!r} has no partition {partition}",
            topic=topic,
            partition=partition,
        )


def check_timestamp(timestamp_ms: object, topic: str) -> None:
    if isinstance(timestamp_ms, bool) or not isinstance(timestamp_ms, int):
        kind = type(timestamp_ms).__name__
        raise RecordTypeError(f"topic {topic!r}: timestamp_ms is an int of milliseconds, not {kind}", topic=topic)
    if not 0 <= timestamp_ms <= _INT64_MAX:
        raise LocalProtocolError(f"timestamp_ms={timestamp_ms} is not in 0..2**63-1", topic=topic)


def check_timestamps(timestamps_ms: Sequence[int], topic: str) -> None:
    """Whether they can be written together: whoever copies records has times below 0, too."""
    kinds = {*map(type, timestamps_ms)} - {int}
    if any(kind is bool or not issubclass(kind, int) for kind in kinds):
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise RecordTypeError(f"topic {topic!r}: timestamps_ms are ints of milliseconds, not {names}", topic=topic)
    least, most = min(timestamps_ms, default=0), max(timestamps_ms, default=0)
    if least < -_INT64_MAX or most > _INT64_MAX or most - least > _INT64_MAX:
        raise LocalProtocolError(f"timestamps from {least} to {most} do not fit one batch", topic=topic)


def too_large(size: int, config: ProducerConfig, topic: str, partition: int | None) -> KafkaError:
    """The error of a record that does not fit into ``max_request_size``, or not even into ``buffer_memory``."""
    setting = "buffer_memory" if config.buffer_memory < config.max_request_size else "max_request_size"
    largest = getattr(config, setting)
    return RecordTooLargeError(
        f"a record of about {size + BATCH_OVERHEAD} bytes is larger than {config.setting_names[setting]}={largest}",
        topic=topic,
        partition=partition,
    )
