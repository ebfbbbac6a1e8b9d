"""What ``async for`` goes over beside records: whole batches, and tables made of them."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

import anyio.to_thread

from pykafka08.consumer.reader import Reader
from pykafka08.consumer.tables import SHARE_OF_BUFFER, TablePlan
from pykafka08.errors import ClosedError, ConfigError
from pykafka08.records.libraries import ARROW_MISSING
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

    __slots__ = ("_max_bytes", "_max_rows", "_plan", "_reader")

    def __init__(self, reader: Reader, max_rows: int, buffer_bytes: int) -> None:
        if find_spec("pyarrow") is None or find_spec("numpy") is None:
            raise ConfigError(ARROW_MISSING)
        self._reader = reader
        self._max_rows = max_rows
        self._max_bytes = max(1, buffer_bytes // SHARE_OF_BUFFER)
        self._plan: TablePlan | None = None

    def __aiter__(self) -> Tables:
        self._reader.check_open()
        return self

    async def __anext__(self) -> pa.RecordBatch:
        if self._plan is None:
            self._plan = await self._planned()
        self._reader.check_alone()  # with no wait between this and the reading, which is when another could begin
        try:
            return await self._reader.next_table(self._plan)
        except ClosedError:
            if not self._reader.is_closed:
                raise
        raise StopAsyncIteration

    async def _planned(self) -> TablePlan:
        # It takes tenths of a second to import pyarrow for the first time in a process, and the loop goes on meanwhile.
        module = await anyio.to_thread.run_sync(import_module, "pykafka08.records.arrow")
        return TablePlan(module.rows_to_arrow, max_rows=self._max_rows, max_bytes=self._max_bytes)
