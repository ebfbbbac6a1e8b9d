"""The records of one partition out of one Fetch answer, kept as the bytes they came in until somebody reads them.

Here is also what an application must not see: control batches, and under ``read_committed`` the batches of
transactions that were aborted (KIP-98).  Asking for chunks and keeping them in order is the machine's business.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pykafka08.consumer.actions import Aborted
from pykafka08.errors import CorruptRecordError, RecordTooLargeError
from pykafka08.records.reader import ControlType, FetchedBatch, read_batches
from pykafka08.records.record import TopicPartition
from pykafka08.wire import Buffer

__all__ = ["Answer", "Chunk", "backward_error"]


class Answer:
    """The bytes of one Fetch answer: none of them goes before the last of its chunks is read."""

    __slots__ = ("size",)

    def __init__(self, size: int) -> None:
        self.size = size


class Chunk:
    """Undecoded entries; :meth:`next_batch` checks and unpacks one at a time.

    ``next_offset`` is the offset after the last entry, ``leader_epoch`` that of the last entry, -1 if it has none.
    ``behind`` is raised after the last batch.
    """

    __slots__ = (
        "_ahead",
        "_announced",
        "_batches",
        "_behind",
        "_cut_off",
        "_damage",
        "_reached",
        "answer",
        "leader_epoch",
        "next_offset",
        "size",
    )

    def __init__(
        self,
        records: Buffer,
        tp: TopicPartition,
        fetch_offset: int,
        next_offset: int,
        *,
        answer: Answer | None = None,
        aborted: Iterable[Aborted] = (),
        leader_epoch: int = -1,
        check_crcs: bool = True,
        max_unpacked_bytes: int,
        behind: CorruptRecordError | None = None,
    ) -> None:
        self.next_offset = next_offset
        self.leader_epoch = leader_epoch
        self.size = len(records)
        self.answer = answer or Answer(self.size)
        self._batches: Iterator[FetchedBatch] = read_batches(
            records,
            topic=tp.topic,
            partition=tp.partition,
            fetch_offset=fetch_offset,
            check_crcs=check_crcs,
            max_unpacked_bytes=max_unpacked_bytes,
            in_slices=True,
        )
        # Latest first, so that the next to begin is the last: some brokers announce them in no order.
        self._announced = sorted(aborted, reverse=True)
        self._cut_off: set[int] = set()
        self._ahead: FetchedBatch | None = None
        self._damage: CorruptRecordError | RecordTooLargeError | None = None
        self._behind = behind
        self._reached = -1
        """The offset after the last batch that was read."""

    def next_batch(self) -> FetchedBatch | None:
        """The next batch an application may see, None at the end.

        CorruptRecordError if it is damaged, RecordTooLargeError if it exceeds ``max_unpacked_bytes``.
        """
        batch, self._ahead = self._ahead, None
        return batch if batch is not None else self._find_next()

    def is_drained(self) -> bool:
        """True if nothing visible is left; decodes up to the next visible batch, which raises where it is damaged."""
        if self._ahead is None:
            self._ahead = self._find_next()
        return self._ahead is None

    def _find_next(self) -> FetchedBatch | None:
        if self._damage is not None:
            raise self._damage
        try:
            return self._find_visible()
        except (CorruptRecordError, RecordTooLargeError) as error:
            self._damage = error
            raise

    def _find_visible(self) -> FetchedBatch | None:
        for batch in self._batches:
            if batch.base_offset < self._reached:
                # The header of a wrapper message has only the last offset.
                raise backward_error(TopicPartition(batch.topic, batch.partition), self._reached, batch.base_offset)
            self._reached = batch.next_offset
            while self._announced and self._announced[-1].first_offset <= batch.last_offset:
                self._cut_off.add(self._announced.pop().producer_id)
            if batch.is_control:
                if self._cut_off and batch.control_type() is ControlType.ABORT:
                    self._cut_off.discard(batch.producer_id)
            elif len(batch) and not (batch.is_transactional and batch.producer_id in self._cut_off):
                return batch
        if self._behind is not None:
            raise self._behind
        return None


def backward_error(tp: TopicPartition, reached: int, offset: int) -> CorruptRecordError:
    """The error of an answer in which ``offset`` comes after offset ``reached - 1``."""
    text = f"the offsets of the records go back: {offset} follows {reached - 1}"
    return CorruptRecordError(text, topic=tp.topic, partition=tp.partition, offset=offset, next_offset=reached)
