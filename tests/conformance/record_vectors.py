"""Record sets that Kafka's Java classes wrote, read and written again by ours.

A line is one set: ``hex`` holds its bytes, ``batches`` what Java reads back from them.  For magic 0 and 1 Java counts
each plain message as a batch; ours come in runs, so plain messages are compared one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pykafka08.errors import KafkaError
from pykafka08.records.batch_packing import encode_batch
from pykafka08.records.compression import Codec
from pykafka08.records.message_set import encode_message_set
from pykafka08.records.reader import FetchedBatch, read_batches
from pykafka08.records.record import Record, TimestampType

__all__ = ["check_record_line"]

_TIMESTAMP_TYPES = {
    "NoTimestampType": TimestampType.NONE,
    "CreateTime": TimestampType.CREATE_TIME,
    "LogAppendTime": TimestampType.LOG_APPEND_TIME,
}


def check_record_line(line: dict[str, Any]) -> str | None:
    """None if our reader and writer agree with Java about this line, else what differs first."""
    data = bytes.fromhex(line["hex"])
    try:
        ours = list(read_batches(data, topic="t", partition=0, fetch_offset=0))
        return _compare_batches(ours, line) or _compare_writing(ours, data, line)
    except KafkaError as error:
        return f"{type(error).__name__}: {error}"


def _compare_batches(ours: list[FetchedBatch], line: dict[str, Any]) -> str | None:
    codec = Codec.parse(line["codec"])
    for batch in ours:
        if (batch.magic, batch.codec) != (line["magic"], codec):
            return f"magic {batch.magic} and codec {batch.codec.label}"
    entries = list(_entries(ours))
    if len(entries) != len(line["batches"]):
        return f"{len(entries)} batches, Java has {len(line['batches'])}"
    for (batch, facts, records), theirs in zip(entries, line["batches"], strict=True):
        for name, value in facts.items():
            if value != theirs[name]:
                return f"batch at {batch.base_offset}: {name} is {value!r}, Java has {theirs[name]!r}"
        if batch.timestamp_type != _TIMESTAMP_TYPES[theirs["timestamp_type"]]:
            return f"batch at {batch.base_offset}: timestamp type {batch.timestamp_type}"
        difference = _compare_records(records, theirs["records"])
        if difference:
            return difference
        if len(batch.values()) != len(batch) or batch.values() != [record.value for record in batch]:
            return f"batch at {batch.base_offset}: values() and records differ"
        if batch.keys() != [record.key for record in batch]:
            return f"batch at {batch.base_offset}: keys() and records differ"
    return None


def _entries(batches: list[FetchedBatch]) -> Iterator[tuple[FetchedBatch, dict[str, Any], list[Record]]]:
    """Each entry of the set, what its header says under Java's names, and its records."""
    for batch in batches:
        facts: dict[str, Any] = {
            "producer_id": batch.producer_id,
            "producer_epoch": batch.producer_epoch,
            "base_sequence": batch.base_sequence,
            "is_transactional": batch.is_transactional,
            "is_control": batch.is_control,
            "partition_leader_epoch": batch.leader_epoch,
        }
        records = batch.records()
        if batch.magic < 2 and not batch.codec:
            for record in records:
                own = {"base_offset": record.offset, "last_offset": record.offset, "max_timestamp": record.timestamp_ms}
                yield batch, facts | own, [record]
        else:
            facts["base_offset"] = batch.base_offset
            facts["last_offset"] = batch.last_offset
            facts["max_timestamp"] = batch.max_timestamp_ms
            yield batch, facts, records


def _compare_records(ours: Sequence[Record], theirs: Sequence[dict[str, Any]]) -> str | None:
    if len(ours) != len(theirs):
        return f"{len(ours)} records, Java has {len(theirs)}"
    for record, facts in zip(ours, theirs, strict=True):
        as_java = {
            "offset": record.offset,
            "timestamp": record.timestamp_ms,
            "key": None if record.key is None else record.key.hex(),
            "value": None if record.value is None else record.value.hex(),
            "headers": [[name, None if value is None else value.hex()] for name, value in record.headers],
        }
        if as_java != {name: facts[name] for name in as_java}:
            return f"record {as_java!r}, Java has {facts!r}"
    return None


def _compare_writing(ours: list[FetchedBatch], data: bytes, line: dict[str, Any]) -> str | None:
    """Write the set again: the same bytes if it is not compressed, else bytes in which we read the same."""
    again = b"".join(_write(batch) for batch in ours)
    if line["codec"] == "none" and not _has_lost_timestamps(ours):
        if again != data:
            return f"written again as {again.hex()}"
        return None
    reread = list(read_batches(again, topic="t", partition=0, fetch_offset=0))
    difference = _compare_batches(reread, line)
    return f"written again: {difference}" if difference else None


def _has_lost_timestamps(batches: list[FetchedBatch]) -> bool:
    """True if a batch of magic 2 has append time: what its records' own timestamps were, no reader can tell."""
    return any(batch.magic == 2 and batch.timestamp_type == TimestampType.LOG_APPEND_TIME for batch in batches)


def _write(batch: FetchedBatch) -> bytes | bytearray:
    records = batch.records()
    offsets = [record.offset for record in records]
    timestamps = [record.timestamp_ms for record in records]
    keys = [record.key for record in records]
    values = [record.value for record in records]
    is_append_time = batch.timestamp_type == TimestampType.LOG_APPEND_TIME
    if batch.magic < 2:
        return encode_message_set(
            batch.magic,
            batch.codec,
            timestamps=timestamps,
            keys=keys,
            values=values,
            offsets=offsets,
            log_append_time_ms=batch.max_timestamp_ms if is_append_time else None,
        )
    return encode_batch(
        batch.codec,
        timestamps=timestamps,
        keys=keys,
        values=values,
        headers=[record.headers for record in records],
        offset_deltas=[offset - batch.base_offset for offset in offsets],
        base_offset=batch.base_offset,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        is_transactional=batch.is_transactional,
        is_control=batch.is_control,
        log_append_time_ms=batch.max_timestamp_ms if is_append_time else None,
        leader_epoch=batch.leader_epoch,
    )
