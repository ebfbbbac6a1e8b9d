"""The handle of one record under way: a batch and an index.

No future, no task and no event per record.  One waiter per batch is made, by the first one who awaits.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NamedTuple, cast

from mypy_extensions import mypyc_attr

from pykafka08.driver import Waiter
from pykafka08.errors import KafkaError
from pykafka08.producer.batch import Batch, Span

__all__ = ["Delivery", "RecordMetadata", "metadata_of", "waiter_of"]


class RecordMetadata(NamedTuple):
    """Where a record was written.

    ``offset`` is -1 with acks=0, where the broker answers nothing.  ``timestamp_ms`` is the one in the log: the
    record's own, the broker's where the topic says so, -1 on brokers before 0.10.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


@mypyc_attr(free_list_len=1)
class Delivery:
    """A record under way: ``await`` it for its :class:`RecordMetadata`, or for the error it ended with.

    Any number of tasks may await it, or none; a cancelled one stops only its own wait, never the record.
    """

    __slots__ = ("_batch", "_index")

    def __init__(self, batch: Batch, index: int) -> None:
        self._batch = batch
        self._index = index

    @property
    def is_done(self) -> bool:
        """Acknowledged or failed: awaiting it will not wait."""
        return self._batch.follow(self._index)[0].is_done

    @property
    def place(self) -> Span:
        """As a run of one record."""
        return self._batch, self._index, 1

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        batch, index = self._batch.follow(self._index)
        while not batch.is_done:
            yield from waiter_of(batch).__await__()
            batch, index = batch.follow(index)
        return metadata_of(batch, index)

    def __repr__(self) -> str:
        batch, index = self._batch.follow(self._index)
        where = f"{batch.topic}[{batch.partition if batch.partition >= 0 else '?'}]"
        if not batch.is_done:
            return f"<Delivery to {where}, under way>"
        error = batch.error_of(index)
        return f"<Delivery to {where}, {f'offset {batch.offset_of(index)}' if error is None else repr(error)}>"


def metadata_of(batch: Batch, index: int) -> RecordMetadata:
    """The outcome of one record; raises its error, and KafkaError where the batch has not ended."""
    if not batch.is_done:
        raise KafkaError(
            "the record is under way: await flush() before asking where it was written",
            topic=batch.topic,
            partition=batch.partition if batch.partition >= 0 else None,
        )
    error = batch.error_of(index)
    if error is not None:
        # One error object serves all records of the batch: a fresh traceback keeps it from growing with each await.
        raise error.with_traceback(None)
    return RecordMetadata(batch.topic, batch.partition, batch.offset_of(index), batch.timestamp_of(index))


def waiter_of(batch: Batch) -> Waiter[None]:
    if batch.listener is None:
        batch.listener = Waiter[None]()
    return cast("Waiter[None]", batch.listener)
