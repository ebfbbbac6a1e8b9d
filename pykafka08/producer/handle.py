"""The handle of one record under way: a batch and an index.

No future, no task and no event per record.  One waiter per batch is made, by the first one who awaits.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from mypy_extensions import mypyc_attr

from pykafka08.producer.batch import Batch, Span
from pykafka08.producer.waits import RecordMetadata, outcome

__all__ = ["Delivery"]


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
        return outcome(self._batch, self._index).__await__()

    def __repr__(self) -> str:
        batch, index = self._batch.follow(self._index)
        where = f"{batch.topic}[{batch.partition if batch.partition >= 0 else '?'}]"
        if not batch.is_done:
            return f"<Delivery to {where}, under way>"
        error = batch.error_of(index)
        return f"<Delivery to {where}, {f'offset {batch.offset_of(index)}' if error is None else repr(error)}>"
