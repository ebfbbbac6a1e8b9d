"""Rows of one task through a producer: record batches in, and back when all of them are acknowledged.

The producer lives in the worker's ``runtime``, whose clock stands still while Spark makes the next rows.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pykafka08.config import ClientConfig, ProducerConfig, build, client_settings
from pykafka08.producer.delivery import SentRecords
from pykafka08.producer.producer import Producer
from pykafka08.spark.client_properties import PREFIX
from pykafka08.spark.options import WriteOptions
from pykafka08.spark.runtime import runtime
from pykafka08.spark.sink.encoding import Run, runs_of
from pykafka08.spark.sink.totals import Totals

__all__ = [
    "DEFAULTS",
    "drop_producer",
    "kept_producer",
    "send_rows",
    "settings_of",
    "totals_of",
]

DEFAULTS: Mapping[str, Any] = {"batch_size": 512 * 1024, "linger_ms": 1000}
"""Of the sink's producers, where the user says nothing: nobody waits for a single row, and a task's end sends what
lingers."""

GATHERED = 4 << 20
"""Bytes of rows that are sorted by their partitions at once: batches of 10,000 rows would be many short runs."""

OF_TRANSACTIONS: Mapping[str, Any] = {"transaction_timeout_ms": 900_000}
"""What a broker allows by default: a transaction is open until the slowest task of its batch has ended."""


def settings_of(options: WriteOptions, transactional_id: str | None = None) -> dict[str, Any]:
    """The keyword arguments of a task's producer."""
    settings = client_settings(options.client)
    settings |= {each.name: getattr(options.producer, each.name) for each in fields(options.producer)}
    settings["transactional_id"] = transactional_id
    defaults = DEFAULTS if transactional_id is None else {**DEFAULTS, **OF_TRANSACTIONS}
    unsaid = {name: value for name, value in defaults.items() if PREFIX + name.replace("_", ".") not in options.given}
    return {**settings, **unsaid}


def kept_producer(settings: Mapping[str, Any]) -> Producer:
    """The producer with these settings, which this worker keeps from task to task; a new one if that has failed."""
    return runtime().keep(_name(settings), lambda: Producer(**settings))


def drop_producer(settings: Mapping[str, Any]) -> None:
    """Close it: something has failed, and rows of that task may be under way."""
    runtime().drop(_name(settings))


def _name(settings: Mapping[str, Any]) -> Hashable:
    return ("producer", *build(dict(settings), ClientConfig, ProducerConfig))


def send_rows(producer: Producer, batches: Iterable[pa.RecordBatch], topic: str | None) -> Totals:
    """Write the rows of all ``batches``; returns when every one is acknowledged.

    ``topic`` takes the place of the column.  NullTopicError, ValueError as :func:`runs_of`; what the first row that
    failed ended with, a KafkaError that names broker, topic and partition as far as they are known.
    """
    loop = runtime()
    pending: list[SentRecords] = []
    totals = Totals()
    known: dict[str, Sequence[int]] = {}

    def partitions_of(name: str) -> Sequence[int]:
        if name not in known:
            known[name] = loop.run(producer.partitions(name))
        return known[name]

    for batch in _gathered(batches):
        for run in runs_of(batch, topic, partitions_of):
            partitions_of(run.topic)  # rows for a topic that the producer does not know yet go one by one
            pending.append(loop.run(producer.enqueue_arrow(run.topic, run.rows, run.partition)))
            totals = _added(totals, run)
        pending = [each for each in pending if not _has_ended(each)]
    if pending:
        loop.run(producer.flush())
        for each in pending:
            each.raise_first_error()
    return totals


def totals_of(batches: Iterable[pa.RecordBatch], topic: str | None) -> Totals:
    """What :func:`send_rows` would return, though nothing is written."""
    totals = Totals()
    for batch in batches:
        for run in runs_of(batch, topic):
            totals = _added(totals, run)
    return totals


def _gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of GATHERED bytes, unless they come in larger ones."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if waiting and (size + batch.nbytes > GATHERED or batch.schema != waiting[0].schema):
            yield _as_one(waiting)
            waiting, size = [], 0
        if batch.num_rows:
            waiting.append(batch)
            size += batch.nbytes
    if waiting:
        yield _as_one(waiting)


def _as_one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def _has_ended(sent: SentRecords) -> bool:
    """False while rows are under way; raises what the first that failed ended with."""
    if not sent.is_done:
        return False
    sent.raise_first_error()
    return True


def _added(totals: Totals, run: Run) -> Totals:
    contents = [run.rows.column(name) for name in ("key", "value") if name in run.rows.schema.names]
    size = sum(pc.sum(pc.binary_length(each)).as_py() or 0 for each in contents)
    return Totals(totals.rows + run.rows.num_rows, totals.bytes + size)
