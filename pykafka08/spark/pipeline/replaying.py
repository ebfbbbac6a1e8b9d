"""Offsets of batches in commits and in checkpoints: compare them at a replay, restore them at the start of a run.

Spark's checkpoints on object stores do not exclude a second writer.  A run that was suspended while another run took
over may replace the offsets of a committed batch in the checkpoint.  The commit still has the right offsets.
"""

from __future__ import annotations

from pathlib import Path

from pykafka08.spark.pipeline.checkpoints import SOURCE_LINE, offset_text
from pykafka08.spark.pipeline.stores import Folder
from pykafka08.spark.pipeline.tables.table import Table

__all__ = ["OffsetsError", "is_committed", "restore_offsets"]


class OffsetsError(RuntimeError):
    """The offsets of a batch differ between the checkpoint and the commit."""


def is_committed(table: Table, checkpoint: Folder, query: str, batch: int) -> bool:
    """Whether the table has a batch, so that its replay commits nothing.

    Raises:
        OffsetsError: the table has the batch with other offsets, or a later batch.  Skipping it could skip records.
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
            f"{checkpoint}: the offsets of batch {batch} differ from those that {query} has committed to "
            f"{table.location.uri}; stop other runs of this pipeline, then run it again, which restores the offsets"
        )
    return True


def restore_offsets(table: Table, checkpoint: Folder, query: str) -> int:
    """Write the offsets of the newest commit to the checkpoint if another run has replaced them.

    Returns the batch whose offsets were restored; -1 if they were right.  No query may run meanwhile.
    """
    batch, committed = table.newest(query), table.offsets(query)
    file = checkpoint / "offsets" / str(batch)
    if batch < 0 or not committed or not file.exists() or offset_text(checkpoint, batch) == committed:
        return -1
    lines = file.read_text().splitlines()
    lines[SOURCE_LINE] = committed
    if checkpoint.is_local:  # Hadoop's checksum of the old text
        Path(checkpoint, "offsets", f".{batch}.crc").unlink(missing_ok=True)
    file.write_text("\n".join(lines))
    return batch
