"""Rows of Spark as runs of one topic and partition, by columns.  Pure; needs pyarrow and numpy.

Nothing is made for each row: codes of topic and partition are sorted, and the rows taken in that order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pykafka08.spark.sink.key_partitions import murmur2_of

__all__ = ["NullTopicError", "Run", "runs_of"]

_SENT = ("value", "key", "headers")
_ANY = -1
"""The code of a row whose partition the producer chooses."""


class NullTopicError(ValueError):
    """A row without a topic."""

    def __init__(self) -> None:
        super().__init__(
            "The Kafka message data sent to the producer contains a null topic. "
            "Use the `topic` option for setting a default topic."
        )


class Run(NamedTuple):
    """Rows for one topic, in their order; ``partition`` None leaves the choice to the partitioner."""

    topic: str
    partition: int | None
    rows: pa.RecordBatch
    """Columns ``value`` and, where there are such, ``key`` and ``headers``; nothing else."""


def runs_of(
    batch: pa.RecordBatch, topic: str | None, partitions_of: Callable[[str], Sequence[int]] | None = None
) -> Iterator[Run]:
    """The rows of ``batch``, those for one topic and partition together; ``topic`` takes the place of the column.

    With ``partitions_of``, which tells a topic's partitions, keys choose among them as in the Java producer.
    NullTopicError for a row without one; ValueError for a partition below 0.
    """
    if not batch.num_rows:
        return
    names = batch.schema.names
    rows = batch.select([name for name in _SENT if name in names])
    if "key" in names and batch.column("key").null_count == batch.num_rows:
        rows = rows.select([name for name in rows.schema.names if name != "key"])
    topics, topic_codes = _topics(batch, topic)
    partitions = _partitions(batch) if "partition" in names else None
    if partitions_of is not None and "key" in rows.schema.names:
        partitions = _by_key(rows.column("key"), partitions, topics, topic_codes, partitions_of)
    if topic_codes is None and partitions is None:
        yield Run(topics[0], None, rows)
        return
    codes = np.zeros(batch.num_rows, np.int64)
    if topic_codes is not None:
        codes += topic_codes.astype(np.int64) << 32
    codes += _ANY if partitions is None else partitions
    codes -= _ANY  # so that the lower half is never negative
    order = np.argsort(codes.astype(np.uint16) if codes.max() < 1 << 16 else codes, kind="stable")  # by digits: O(n)
    ordered = codes[order]
    bounds = [0, *(np.flatnonzero(np.diff(ordered)) + 1).tolist(), batch.num_rows]
    if len(bounds) > 2:
        rows = rows.take(pa.array(order))
    for start, end in pairwise(bounds):
        code = int(ordered[start])
        partition = (code & 0xFFFFFFFF) + _ANY
        yield Run(topics[code >> 32], None if partition == _ANY else partition, rows.slice(start, end - start))


def _topics(batch: pa.RecordBatch, topic: str | None) -> tuple[list[str], Any]:
    """The topics, and for each row the index of its own; None for the latter where there is one topic."""
    if topic is not None:
        return [topic], None
    column = batch.column("topic")
    if column.null_count:
        raise NullTopicError
    encoded = column.dictionary_encode()
    topics = encoded.dictionary.to_pylist()
    return topics, encoded.indices.to_numpy() if len(topics) > 1 else None


def _partitions(batch: pa.RecordBatch) -> Any:
    """The partition of each row, _ANY for null; None if all are null."""
    column = batch.column("partition")
    if column.null_count == batch.num_rows:
        return None
    least = pc.min(column).as_py()
    if least < 0:
        raise ValueError(f"Invalid partition: {least}. Partition number should always be non-negative or null.")
    return column.fill_null(_ANY).to_numpy()


def _by_key(
    keys: pa.Array, partitions: Any, topics: list[str], topic_codes: Any, partitions_of: Callable[[str], Sequence[int]]
) -> Any:
    """``partitions``, with those that keys choose where a row has a key and no partition."""
    is_open = keys.is_valid().to_numpy(zero_copy_only=False)
    chosen = np.full(len(keys), _ANY, np.int64)
    if partitions is not None:
        chosen[:] = partitions
        is_open &= chosen == _ANY
    if not is_open.any():
        return partitions
    hashes = murmur2_of(keys)
    if topic_codes is None and is_open.all():
        return _chosen(hashes, partitions_of(topics[0]))
    for code, topic in enumerate(topics):
        rows = is_open if topic_codes is None else is_open & (topic_codes == code)
        if rows.any():
            chosen[rows] = _chosen(hashes[rows], partitions_of(topic))
    return chosen


def _chosen(hashes: Any, choices: Sequence[int]) -> Any:
    return np.asarray(choices, np.int64)[hashes % len(choices)]
