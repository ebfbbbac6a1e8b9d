"""Files of one log: a directory ``<topic>-<partition>`` with a file for each segment, in Kafka's layout.

A file is named after its segment's base offset and has the batches in their wire format.  Appends are written but not
synced before they are acknowledged, so they survive a crash of the process, but not of the machine.  A torn end is
truncated when the log is loaded.
"""

from __future__ import annotations

import os
import shutil
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path

from pykafka08.broker.journal import Note, write_whole
from pykafka08.broker.log import ENTRY_HEADER, MAGIC_AT, PartitionLog, StoredBatch
from pykafka08.errors import CorruptRecordError
from pykafka08.records.batch import HEADER, HEADER_SIZE, is_crc_right
from pykafka08.records.message_set import CODEC_MASK, SMALLEST_MESSAGE
from pykafka08.records.reader import ControlType, read_produced
from pykafka08.wire import INT32, Buffer

__all__ = ["OpenFiles", "SegmentFiles", "load_log"]

MOST_OPEN_FILES = 200
SEGMENT_NAMES = "[0-9]" * 20 + ".log"
LARGEST_RUN = 64 << 10  # bytes of uncompressed messages in one stored batch
CODEC_AT = 17  # of magic 0 and 1
APPEND_TIME_BIT, TRANSACTIONAL_BIT, CONTROL_BIT = 8, 16, 32


class OpenFiles:
    """Descriptors of the files with the most recent appends."""

    def __init__(self) -> None:
        self._open: OrderedDict[Path, int] = OrderedDict()

    def append(self, path: Path, data: Buffer) -> None:
        """Append all of ``data`` or, with an OSError, nothing."""
        file = self._open.get(path)
        if file is None:
            path.parent.mkdir(exist_ok=True)
            file = self._open[path] = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            if len(self._open) > MOST_OPEN_FILES:
                os.close(self._open.popitem(last=False)[1])
        else:
            self._open.move_to_end(path)
        write_whole(file, data)

    def close(self, path: Path) -> None:
        file = self._open.pop(path, None)
        if file is not None:
            os.close(file)

    def close_all(self) -> None:
        for path in tuple(self._open):
            self.close(path)


class SegmentFiles:
    """The files of one log below ``directory``; ``note`` stores its start offset."""

    def __init__(self, directory: Path, log: PartitionLog, files: OpenFiles, note: Note) -> None:
        self._directory = directory
        self._topic, self._partition = log.topic, log.partition
        self._files = files
        self._note = note
        self._started_at = log.start_offset

    def _path(self, segment_offset: int) -> Path:
        return self._directory / f"{segment_offset:020}.log"

    def append(self, segment_offset: int, data: Buffer) -> None:
        self._files.append(self._path(segment_offset), data)

    def replace(self, kept: Sequence[int], changed: Sequence[tuple[int, Sequence[Buffer]]]) -> None:
        """Delete the segments that are not in ``kept``, and rewrite the changed ones."""
        self._drop(kept)
        for segment_offset, contents in changed:
            path = self._path(segment_offset)
            fresh = path.with_suffix(".new")
            try:
                with fresh.open("wb") as file:
                    file.writelines(contents)
            except OSError:
                fresh.unlink(missing_ok=True)
                raise
            self._files.close(path)
            os.replace(fresh, path)

    def _drop(self, kept: Sequence[int]) -> None:
        """Delete the files of all segments but ``kept``."""
        wanted = {self._path(segment_offset) for segment_offset in kept}
        for path in self._directory.glob(SEGMENT_NAMES):
            if path not in wanted:
                self._files.close(path)
                path.unlink()

    def started_at(self, offset: int) -> None:
        if offset != self._started_at:
            self._started_at = offset
            self._note("start", self._topic, self._partition, offset)

    def delete(self) -> None:
        for path in self._directory.glob(SEGMENT_NAMES):
            self._files.close(path)
        shutil.rmtree(self._directory, ignore_errors=True)


# -- loading


def load_log(log: PartitionLog, directory: Path, start_offset: int) -> int:
    """Fill an empty log from its files; returns the number of damaged bytes that were cut off.

    Everything after the damage is cut off too, as in Kafka.
    """
    lost = 0
    for path in sorted(directory.glob(SEGMENT_NAMES)):
        if lost:
            lost += path.stat().st_size
            path.unlink()
            continue
        modified_ms = path.stat().st_mtime_ns // 1_000_000
        data, end = path.read_bytes(), 0
        for stored in _stored_batches(log, data, modified_ms):
            log.load(stored, is_new_segment=end == 0)
            if end == 0:
                log.segments[-1].base_offset = int(path.stem)
            _remember_producer(log, stored)
            end += len(stored.data)
        if end < len(data):
            lost += len(data) - end
            os.truncate(path, end)
        if end == 0:
            path.unlink()
    log.end_offset = max(log.end_offset, start_offset)
    log.trim(start_offset)
    return lost


def _stored_batches(log: PartitionLog, data: bytes, modified_ms: int) -> Iterator[StoredBatch]:
    """The batches of a file up to the first damage."""
    position, expected = 0, log.end_offset
    while position < len(data):
        end = _end_of_batch(data, position)
        if end is None:
            return
        piece = data[position:end]
        found = _range_of(piece)
        if found is None or found[0] < expected:
            return
        base_offset, last_offset, greatest, epoch = found
        yield StoredBatch(
            base_offset,
            last_offset,
            piece,
            max_timestamp_ms=greatest,
            appended_at_ms=modified_ms,
            leader_epoch=epoch,
        )
        position, expected = end, last_offset + 1


def _end_of_batch(data: bytes, start: int) -> int | None:
    """The end of the batch, or of the uncompressed messages, at ``start``; None if the first one is incomplete."""
    position, end = start, None
    while position + MAGIC_AT + 2 <= len(data) and position - start < LARGEST_RUN:
        after = position + ENTRY_HEADER + int(INT32.unpack_from(data, position + 8)[0])
        magic = data[position + MAGIC_AT]
        smallest = HEADER_SIZE if magic >= 2 else ENTRY_HEADER + SMALLEST_MESSAGE[magic]
        if not position + smallest <= after <= len(data):
            return end
        is_plain = magic < 2 and not data[position + CODEC_AT] & CODEC_MASK
        if end is None:
            first_magic = magic
            end = after
            if not is_plain:
                return end
        elif not is_plain or magic != first_magic:
            return end
        position = end = after
    return end


def _range_of(piece: bytes) -> tuple[int, int, int, int] | None:
    """Base offset, last offset, largest timestamp and leader epoch; None if the batch is damaged."""
    if piece[MAGIC_AT] == 2:
        base_offset, _, epoch, _, _, _, last_delta, _, greatest = HEADER.unpack_from(piece)[:9]
        if last_delta < 0 or not is_crc_right(piece, 0, len(piece)):
            return None
        return base_offset, base_offset + last_delta, greatest, epoch
    try:
        batches = [batch for _, _, batch in read_produced(piece)]
    except CorruptRecordError:
        return None
    if not batches:
        return None
    return batches[0].base_offset, batches[-1].last_offset, max(each.max_timestamp_ms for each in batches), 0


def _remember_producer(log: PartitionLog, stored: StoredBatch) -> None:
    """Restore the sequences and open transactions that the batch changed when it was appended."""
    if stored.data[MAGIC_AT] < 2:
        return
    base_offset, _, _, _, _, attributes, last_delta, _, greatest, producer_id, epoch, sequence, _ = HEADER.unpack_from(
        stored.data
    )
    if producer_id < 0:
        return
    if attributes & CONTROL_BIT:
        for _, _, batch in read_produced(stored.data):
            kind = batch.control_type()
            log.sequences.epoch_ended(producer_id, epoch)
            log.transactions.ended(producer_id, base_offset, is_commit=kind is ControlType.COMMIT)
        return
    stamped = greatest if attributes & APPEND_TIME_BIT else -1
    log.sequences.appended(producer_id, epoch, sequence, last_delta + 1, base_offset, stamped)
    if attributes & TRANSACTIONAL_BIT:
        log.transactions.written(producer_id, base_offset)
