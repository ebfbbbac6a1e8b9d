"""Which batches make one table for ``Consumer.arrow``, and where one that is too long is cut.

Pure; the rows themselves are made in ``records.arrow``, which needs pyarrow, an extra.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from pykafka08.consumer.handing import HandedOut
from pykafka08.errors import CorruptRecordError
from pykafka08.records.reader import FetchedBatch

__all__ = ["SHARE_OF_BUFFER", "Count", "TablePlan", "is_table"]

SHARE_OF_BUFFER = 32
"""A table takes no more than this part of ``fetch_buffer_bytes``, but for one that is a single batch."""

ToArrow = Callable[[Sequence[FetchedBatch]], "tuple[Any, CorruptRecordError | None]"]
"""``records.arrow.rows_to_arrow``: the rows before the first whose headers are none, and what is wrong with that."""


def is_table(thing: object) -> bool:
    """True for a RecordBatch of pyarrow, which whoever has one has imported."""
    pyarrow: Any = sys.modules.get("pyarrow")
    return pyarrow is not None and isinstance(thing, pyarrow.RecordBatch)


class Count:
    """Of batches that are added in their order: how much of them makes one table."""

    __slots__ = ("_max_bytes", "_max_rows", "_size", "_topic", "batches", "is_full", "rows")

    def __init__(self, max_rows: int, max_bytes: int) -> None:
        self._max_rows = max_rows
        self._max_bytes = max_bytes
        self._size = 0
        self._topic: str | None = None
        self.batches = 0
        """Those of the table: no other topic, and every row of all but the last fits."""
        self.rows = 0
        self.is_full = False
        """Nothing that may still be added belongs to it."""

    def add(self, each: HandedOut) -> None:
        size = self._size + each.batch.unpacked_bytes
        if self.is_full or (self.batches and (size > self._max_bytes or each.tp.topic != self._topic)):
            self.is_full = True
            return
        self._topic = each.tp.topic
        self._size = size
        self.batches += 1
        self.rows += len(each.batch)
        self.is_full = self.rows >= self._max_rows or size >= self._max_bytes


class TablePlan:
    """Tables of at most ``max_rows`` rows and, unpacked, ``max_bytes`` bytes; a batch is never split for its bytes."""

    __slots__ = ("_max_bytes", "_to_arrow", "max_rows")

    def __init__(self, to_arrow: ToArrow, *, max_rows: int, max_bytes: int) -> None:
        self._to_arrow = to_arrow
        self._max_bytes = max_bytes
        self.max_rows = max_rows

    def count(self) -> Count:
        return Count(self.max_rows, self._max_bytes)

    def take(self, pending: deque[HandedOut]) -> list[HandedOut]:
        """The batches of the next table, which are pending no more."""
        count = self.count()
        for each in pending:
            count.add(each)
            if count.is_full:
                break
        return [pending.popleft() for _ in range(count.batches)]

    def make(self, pieces: Sequence[HandedOut]) -> tuple[Any, int, CorruptRecordError | None]:
        """A table of the rows before the first damage, how many pieces are whole in it, and what is wrong there.

        The rows of a piece before the one whose headers are none are in the table, too; None is a table of no rows.
        """
        if not pieces:
            return None, 0, None
        try:
            table, error = self._to_arrow([each.batch for each in pieces])
        except CorruptRecordError as damage:
            if len(pieces) == 1:
                return None, 0, damage
        else:
            good = len(pieces) if error is None else _whole(pieces, len(table))
            return table if len(table) else None, good, error
        half = len(pieces) // 2
        table, good, found = self.make(pieces[:half])
        if found is None:
            second, more, found = self.make(pieces[half:])
            good += more
            ends_within = second is not None and len(second) > sum([len(each.batch) for each in pieces[half:good]])
            table, _, _ = self.make(pieces[: good + ends_within])
        return table, good, found

    def cut(self, table: Any) -> tuple[Any, Any, int]:
        """The first ``max_rows`` rows, the others, and the offset of the first of these."""
        rest = table.slice(self.max_rows)
        return table.slice(0, self.max_rows), rest, rest.column("offset")[0].as_py()


def _whole(pieces: Sequence[HandedOut], rows: int) -> int:
    """How many of the pieces are whole in the first ``rows`` rows."""
    for number, each in enumerate(pieces):
        rows -= len(each.batch)
        if rows < 0:
            return number
    return len(pieces)
