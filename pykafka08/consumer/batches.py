"""What ``async for`` goes over beside records: whole batches, and tables made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka08.consumer.reader import Reader
from pykafka08.consumer.tables import SHARE_OF_BUFFER, TablePlan
from pykafka08.errors import ClosedError
from pykafka08.records.reader import FetchedBatch

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Batches", "Tables"]


class Batches:
    """The batches of a consumer, without end, until it is closed."""

    __slots__ = ("_reader",)

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def __aiter__(self) -> Batches:
        self._reader.check_open()
        return self

    async def __anext__(self) -> FetchedBatch:
        reader = self._reader
        reader.check_alone()
        try:
            # Mostly the next one is there, and a call that may wait costs as much as all else.
            batch = reader.next_batch_nowait()
            return batch if batch is not None else await reader.next_batch()
        except ClosedError:
            if not reader.is_closed:
                raise
        raise StopAsyncIteration


class Tables:
    """The records of a consumer as pyarrow RecordBatches, without end, until it is closed."""

    __slots__ = ("_plan", "_reader")

    def __init__(self, reader: Reader, max_rows: int, buffer_bytes: int) -> None:
        from pykafka08.records.arrow import rows_to_arrow  # an extra: only who asks for tables needs it

        self._reader = reader
        self._plan = TablePlan(rows_to_arrow, max_rows=max_rows, max_bytes=max(1, buffer_bytes // SHARE_OF_BUFFER))

    def __aiter__(self) -> Tables:
        self._reader.check_open()
        return self

    async def __anext__(self) -> pa.RecordBatch:
        self._reader.check_alone()
        try:
            return await self._reader.next_table(self._plan)
        except ClosedError:
            if not self._reader.is_closed:
                raise
        raise StopAsyncIteration
