"""Batches of records onto standard output, counted."""

from __future__ import annotations

from itertools import islice
from typing import Protocol

from pykafka08.cli.formats import Batch, RecordFormat
from pykafka08.cli.notes import note
from pykafka08.cli.progress import Progress
from pykafka08.cli.streams import Output
from pykafka08.errors import KafkaError

__all__ = ["Printer"]


class PrintPlan(Protocol):
    """What the options say of printing."""

    @property
    def limit(self) -> float: ...
    @property
    def record_format(self) -> RecordFormat: ...
    @property
    def skips_errors(self) -> bool: ...


class Printer:
    """Writes batches to standard output, and knows how many records went there."""

    def __init__(self, plan: PrintPlan, output: Output, progress: Progress) -> None:
        self.records = 0
        self._size = 0
        self._plan = plan
        self._output = output
        self._progress = progress
        self._renderer = plan.record_format.compile(for_terminal=output.is_terminal)

    @property
    def is_done(self) -> bool:
        return self.records >= self._plan.limit

    async def print(self, batch: Batch) -> None:
        count = int(min(len(batch), self._plan.limit - self.records))
        failure = None
        try:
            text = self._renderer.batch(batch, count)
        except KafkaError:
            text, failure = self._render_singly(batch, count)
        await self._output.write(text)
        if failure is not None:
            raise failure
        self.records += count
        self._size += len(text)
        self._progress.update(self.records, self._size)

    def _render_singly(self, batch: Batch, count: int) -> tuple[bytes, KafkaError | None]:
        """A record of the batch cannot be shown: what stands before it and, if it is to be skipped, after it."""
        shown = []
        for record in islice(batch, count):
            try:  # each record fails by itself
                shown.append(self._renderer.line(record))
            except KafkaError as error:  # noqa: PERF203
                failure = KafkaError(
                    error.message, topic=record.topic, partition=record.partition, offset=record.offset
                )
                if not self._plan.skips_errors:
                    return b"".join(shown), failure
                note(f"skipped: {failure}")
        return b"".join(shown), None
