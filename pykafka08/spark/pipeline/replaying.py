"""Offsets of batches, which commits carry, against those in the checkpoint.

Spark's checkpoints on object stores do not exclude a second writer.  A run that was suspended while another one took
over may replace the offsets of a batch that is committed.  The commit has the right ones, which a run restores at its
start.
"""

from __future__ import annotations

from pathlib import Path

from pykafka08.spark.pipeline.checkpoints import SOURCE_LINE, offset_text
from pykafka08.spark.pipeline.stores import Folder
from pykafka08.spark.pipeline.tables.table import Table

__all__ = ["OffsetsError", "is_committed", "restore_offsets"]


class OffsetsError(RuntimeError):
    """The checkpoint's offsets of a batch are not those of the commit."""


def is_committed(table: Table, checkpoint: Folder, query: str, batch: int) -> bool:
    """Whether a batch is in the table, so that its replay commits nothing.

    Raises:
        OffsetsError: a batch with other offsets is there, or a later one.  Skipping this batch could skip records.
    """
    newest = table.newest(query)
    if batch > newest:
        return False
    if batch < newest:
        raise OffsetsError(
            f"{checkpoint}: batch {batch} of {query} is replayed, but {table.location.uri} has batch {newest}; restore "
            "the checkpoint if it was deleted or is an old copy, or choose another folder"
        )
    committed = table.offsets(query)
    if committed and committed != offset_text(checkpoint, batch):
        raise OffsetsError(
            f"{checkpoint}: the offsets of batch {batch} are not those that {table.location.uri} has of {query}; end "
            "other runs of this pipeline, then run it again, which restores the offsets"
        )
    return True


def restore_offsets(table: Table, checkpoint: Folder, query: str) -> int:
    """Replace the offsets of the newest committed batch in the checkpoint if they are of another run.

    No query may run meanwhile.  The batch whose offsets were replaced; -1 if they were right.
    """
    batch, committed = table.newest(query), table.offsets(query)
    file = checkpoint / "offsets" / str(batch)
    if batch < 0 or not committed or not file.exists() or offset_text(checkpoint, batch) == committed:
        return -1
    lines = file.read_text().splitlines()
    lines[SOURCE_LINE] = committed
    if checkpoint.is_local:  # Hadoop's checksum
        Path(checkpoint, "offsets", f".{batch}.crc").unlink(missing_ok=True)
    file.write_text("\n".join(lines))
    return batch
