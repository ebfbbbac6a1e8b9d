"""Rows of one task through a producer: record batches in, and back when all of them are acknowledged.

The producer lives in the worker's ``runtime``, whose clock stands still while Spark makes the next rows.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import pyarrow as pa

from pykafka08.producer.delivery import SentRecords
from pykafka08.producer.producer import Producer
from pykafka08.spark.client_properties import PREFIX
from pykafka08.spark.options import WriteOptions
from pykafka08.spark.runtime import runtime
from pykafka08.spark.sink.encoding import runs_of

__all__ = ["DEFAULTS", "Totals", "drop_producer", "kept_producer", "send_rows", "settings_of"]

DEFAULTS: Mapping[str, Any] = {"batch_size": 512 * 1024, "linger_ms": 1000}
"""Of the sink's producers, where the user says nothing: nobody waits for a single row, and a task's end sends what
lingers."""


def settings_of(options: WriteOptions, transactional_id: str | None = None) -> dict[str, Any]:
    """The keyword arguments of a task's producer."""
    settings = {
        each.name: getattr(config, each.name)
        for config in (options.client, options.producer)
        for each in fields(config)
    }
    settings["bootstrap_servers"] = ",".join(f"[{host}]:{port}" for host, port in options.client.bootstrap_servers)
    settings["transactional_id"] = transactional_id
    unsaid = {name: value for name, value in DEFAULTS.items() if PREFIX + name.replace("_", ".") not in options.given}
    return {**settings, **unsaid}


@dataclass(frozen=True, slots=True)
class Totals:
    """What a task has written: rows, and the bytes of their keys and values as they came."""

    rows: int = 0
    bytes: int = 0


def kept_producer(settings: Mapping[str, Any]) -> Producer:
    """The producer with these settings, which this worker keeps from task to task; a new one if that has failed."""
    return runtime().keep(_name(settings), lambda: Producer(**settings))


def drop_producer(settings: Mapping[str, Any]) -> None:
    """Close it: something has failed, and rows of that task may be under way."""
    runtime().drop(_name(settings))


def _name(settings: Mapping[str, Any]) -> Hashable:
    return ("producer", *sorted(settings.items()))


def send_rows(producer: Producer, batches: Iterable[pa.RecordBatch], topic: str | None) -> Totals:
    """Write the rows of all ``batches``; returns when every one is acknowledged.

    ``topic`` takes the place of the column.  NullTopicError, ValueError as :func:`runs_of`; what the first row that
    failed ended with, a KafkaError that names broker, topic and partition as far as they are known.
    """
    loop = runtime()
    pending: list[SentRecords] = []
    rows = size = 0
    for batch in batches:
        for run in runs_of(batch, topic):
            pending.append(loop.run(producer.enqueue_arrow(run.topic, run.rows, run.partition)))
            rows += run.rows.num_rows
            size += _content_bytes(run.rows)
        pending = [each for each in pending if not _has_ended(each)]
    if pending:
        loop.run(producer.flush())
        for each in pending:
            each.raise_first_error()
    return Totals(rows, size)


def _has_ended(sent: SentRecords) -> bool:
    """False while rows are under way; raises what the first that failed ended with."""
    if not sent.is_done:
        return False
    sent.raise_first_error()
    return True


def _content_bytes(rows: pa.RecordBatch) -> int:
    return sum(rows.column(name).nbytes for name in ("key", "value") if name in rows.schema.names)
