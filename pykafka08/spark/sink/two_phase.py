"""Batches of a stream, exactly once in Kafka: tasks fill transactions, the driver ends them.  Kafka 0.11 and later.

First phase, in each task: a producer whose transactional id belongs to the task's place in the query aborts what an
earlier attempt left open, writes the rows, commits the task's marker in the same transaction, and hands it over.
Second phase, on the driver, when all tasks have ended well: the decision is committed, then each transaction is ended.

What happens when a process stops:

- before the decision: nothing is visible; the batch is run again, and its tasks abort what was left open;
- after it: the batch is run again, tasks whose marker says so write nothing, and the others write their rows again.

That holds if the batch has the same tasks with the same rows when it is run again, which is looked at: the number of
tasks, and the rows and bytes of each.  Another result is an error, since no guess could be right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

import anyio
import pyarrow as pa

from pykafka08.admin.admin import Admin
from pykafka08.config import client_settings
from pykafka08.driver import library_logger
from pykafka08.errors import KafkaError
from pykafka08.group.requests import OffsetAndMetadata
from pykafka08.producer.producer import Producer
from pykafka08.producer.transactions.handed_over import OpenTransaction, end_transaction
from pykafka08.protocol.messages.offset_fetch import OffsetFetchRequest
from pykafka08.spark.options import WriteOptions
from pykafka08.spark.runtime import runtime
from pykafka08.spark.sink.encoding import runs_of
from pykafka08.spark.sink.markers import Decision, Marker, Place, marker_partition
from pykafka08.spark.sink.sending import (
    drop_producer,
    kept_producer,
    send_rows,
    settings_of,
    totals_of,
)
from pykafka08.spark.sink.totals import Totals
from pykafka08.spark.workers import hear_warnings

__all__ = ["Prepared", "ReplayDiffersError", "TransactionLostError", "abort_batch", "commit_batch", "prepare"]

N = TypeVar("N")

log = library_logger("spark")

STABLE_OFFSETS = 7
"""The version of OffsetFetch from which a group's offsets are told only when no transaction can still change them."""
SETTLE_S = 3.0
"""How long offsets of a transaction that has ended are waited for, where brokers do not say that they are to come."""
PAUSE_S = 0.05


class ReplayDiffersError(RuntimeError):
    """A batch that is in Kafka already, in part or whole, was run again with other tasks or rows."""


class TransactionLostError(RuntimeError):
    """A task's transaction could not be committed: the batch is not whole, and has to be run again."""


@dataclass(frozen=True)
class Prepared:
    """A task's part of a batch; ``transaction`` None: there is nothing to end."""

    place: Place
    totals: Totals
    transaction: OpenTransaction | None
    topic: str | None = None
    """Beside which the marker stands."""


# --- the first phase, in a task ---------------------------------------------------------------------------------------


def prepare(options: WriteOptions, place: Place, batches: Iterable[pa.RecordBatch]) -> Prepared:
    """Write the rows into a transaction that stays open; nothing, if they are in Kafka from an earlier attempt.

    UnsupportedVersionError below Kafka 0.11, before a row is taken; ReplayDiffersError; what the first row that failed
    ended with.
    """
    settings = settings_of(options, place.transactional_id)
    producer = kept_producer(settings)  # what an earlier attempt left open is aborted by this
    try:
        rows = iter(batches)
        first = next((batch for batch in rows if batch.num_rows), None)
        rows = rows if first is None else chain([first], rows)
        marker = _marker(options, place)
        if marker is not None and marker.batch_id >= place.batch_id:
            return _replayed(place, marker, totals_of(rows, options.topic))
        if first is None:
            return Prepared(place, Totals(), None)
        topic = options.topic or next(runs_of(first, None)).topic
        return _written(options, place, producer, topic, rows)
    finally:
        drop_producer(settings)


def _written(
    options: WriteOptions, place: Place, producer: Producer, topic: str, rows: Iterable[pa.RecordBatch]
) -> Prepared:
    run = runtime().run
    block = producer.transaction()
    run(block.__aenter__())
    try:
        totals = send_rows(producer, rows, options.topic)
        marker = Marker(place.batch_id, totals.rows, totals.bytes).to_offset()
        run(producer.send_offsets({marker_partition(topic): marker}, place.transactional_id))
        transaction = run(producer.hand_over_transaction())
    except BaseException as error:
        run(block.__aexit__(type(error), error, error.__traceback__))
        raise
    return Prepared(place, totals, transaction, topic)


def _replayed(place: Place, marker: Marker, totals: Totals) -> Prepared:
    if marker.batch_id > place.batch_id:
        raise ReplayDiffersError(
            f"task {place.task} of batch {place.batch_id}: Kafka holds batch {marker.batch_id} of the query "
            f"{place.query!r} already: the checkpoint is older than what was written; use another "
            "transactionalIdPrefix to write the batches once more"
        )
    if (marker.rows, marker.bytes) != (totals.rows, totals.bytes):
        raise ReplayDiffersError(
            f"task {place.task} of batch {place.batch_id} was committed with {marker.rows} rows of {marker.bytes} "
            f"bytes, and has {totals.rows} rows of {totals.bytes} bytes now: the query is not the same in each run "
            f"(query {place.query!r})"
        )
    log.info("spark.task_was_written", query=place.query, batch=place.batch_id, task=place.task)
    return Prepared(place, totals, None)


def _marker(options: WriteOptions, place: Place) -> Marker | None:
    """The newest of this task's place, when nothing of an earlier transaction can change it any more."""
    found = _read(options, place.transactional_id, Marker.of_offset)
    if (found is not None and found.batch_id >= place.batch_id) or _tells_stable_offsets(options):
        return found
    decision = _read(options, place.query, Decision.of_offset)
    if decision is None or decision.batch_id != place.batch_id:
        return found  # no transaction of this batch can have been committed
    for _ in range(round(SETTLE_S / PAUSE_S)):
        runtime().run(anyio.sleep(PAUSE_S))
        found = _read(options, place.transactional_id, Marker.of_offset)
        if found is not None and found.batch_id >= place.batch_id:
            break
    return found


# --- the second phase, on the driver ----------------------------------------------------------------------------------


def commit_batch(options: WriteOptions, parts: Sequence[Prepared], batch_id: int) -> None:
    """Make the batch visible, once all of its tasks are prepared.

    ReplayDiffersError if it was decided on with another number of tasks: its transactions are aborted then.
    TransactionLostError for a transaction that could not be committed.
    """
    if not parts:
        return
    query = parts[0].place.query
    decision = _read(options, query, Decision.of_offset)
    if decision is not None and decision.batch_id == batch_id and decision.tasks != len(parts):
        abort_batch(options, parts)
        raise ReplayDiffersError(
            f"batch {batch_id} was committed with {decision.tasks} tasks, in part or whole, and has {len(parts)} now: "
            f"run it with the options that it had (query {query!r})"
        )
    pending = [each.transaction for each in parts if each.transaction is not None]
    topic = next((each.topic for each in parts if each.topic is not None), None)
    if topic is None:
        return
    if decision is None or decision.batch_id != batch_id:
        _commit(options, query, topic, Decision(batch_id, len(parts)).to_offset())
    failures = _end_all(options, pending, is_commit=True)
    if failures:
        first, error = failures[0]
        raise TransactionLostError(
            f"batch {batch_id}: {len(failures)} of {len(pending)} transactions could not be committed, first "
            f"{first.transactional_id!r}: {error}; the query has to be started again, which writes their rows again. "
            f"Batches must take less than kafka.transaction.timeout.ms, "
            f"{settings_of(options, first.transactional_id)['transaction_timeout_ms']} here"
        ) from error


def abort_batch(options: WriteOptions, parts: Iterable[Prepared]) -> None:
    """Nothing of the batch becomes visible; what cannot be aborted now is so by the next attempt, or the broker."""
    hear_warnings()
    pending = [each.transaction for each in parts if each.transaction is not None]
    for transaction, error in _end_all(options, pending, is_commit=False):
        log.warning("spark.abort_failed", id=transaction.transactional_id, cause=str(error))


def _end_all(
    options: WriteOptions, transactions: Sequence[OpenTransaction], *, is_commit: bool
) -> list[tuple[OpenTransaction, KafkaError]]:
    """All at once; those that failed."""
    client = runtime().client(options.client)
    timeout = options.client.default_api_timeout_ms / 1000
    failures = []

    async def end(transaction: OpenTransaction) -> None:
        try:
            await end_transaction(client, transaction, is_commit=is_commit, timeout=timeout)
        except KafkaError as error:
            failures.append((transaction, error))

    async def end_all() -> None:
        async with anyio.create_task_group() as group:
            for transaction in transactions:
                group.start_soon(end, transaction)

    runtime().run(end_all())
    return failures


# --- notes ------------------------------------------------------------------------------------------------------------


def _admin(options: WriteOptions) -> Admin:
    return runtime().keep(("admin", options.client), lambda: Admin(**client_settings(options.client)))


def _read(options: WriteOptions, group: str, convert: Callable[[OffsetAndMetadata], N]) -> N | None:
    """The newest note in that group, None if there is none."""
    wanted = None if options.topic is None else [marker_partition(options.topic)]
    found = runtime().run(_admin(options).list_group_offsets(group, wanted))
    return convert(max(found.values(), key=lambda each: each.offset)) if found else None


def _commit(options: WriteOptions, group: str, topic: str, note: OffsetAndMetadata) -> None:
    for error in runtime().run(_admin(options).alter_group_offsets(group, {marker_partition(topic): note})).values():
        raise error


def _tells_stable_offsets(options: WriteOptions) -> bool:
    """Only of partitions that are named."""
    if options.topic is None:
        return False
    client = runtime().client(options.client)
    node = next(iter(client.metadata.brokers))
    return runtime().run(client.versions(node)).pick(OffsetFetchRequest) >= STABLE_OFFSETS
