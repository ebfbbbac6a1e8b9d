"""What ``codec.py`` measures: decoding, encoding, packing and unpacking, with no client and no broker around them.

Each job has two callables that do the same, ours and aiokafka's; ``check`` makes sure of that before anything is timed.
The records are those of all benchmarks, about 100 bytes each.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from aiokafka import codec as theirs_codec
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords

from benchmarks.codec_producing import Enqueuing, encoded_table, table_of
from benchmarks.payload import keys_of, pool_of, repeated
from pykafka08.records.compression import Codec, compress, decompress
from pykafka08.records.reader import read_batches
from pykafka08.records.writer import encode_batch

__all__ = ["Job", "jobs"]

RECORD_BYTES = 100
RECORDS = {"large": 8000, "small": 100}  # of a batch: close to 1 MiB, and what a quick linger makes
PACKED_SIZES = (1 << 10, 16 << 10, 128 << 10, 1 << 20)
TIMESTAMP_MS = 1_700_000_000_000

_PACK = {
    Codec.GZIP: theirs_codec.gzip_encode,
    Codec.SNAPPY: theirs_codec.snappy_encode,
    Codec.LZ4: theirs_codec.lz4_encode,
    Codec.ZSTD: theirs_codec.zstd_encode,
}
_UNPACK = {
    Codec.GZIP: theirs_codec.gzip_decode,
    Codec.SNAPPY: theirs_codec.snappy_decode,
    Codec.LZ4: theirs_codec.lz4_decode,
    Codec.ZSTD: theirs_codec.zstd_decode,
}


class Job(NamedTuple):
    """One thing that both can do; ``units`` of it (records, or KiB) are done by one call of either."""

    name: str
    ours: Callable[[], object]
    theirs: Callable[[], object]
    units: int
    unit: str

    def check(self) -> None:
        """RuntimeError unless both come to the same."""
        ours, theirs = self.ours(), self.theirs()
        if ours != theirs:
            raise RuntimeError(f"{self.name}: ours and theirs do not come to the same: {ours!r}, {theirs!r}"[:500])


def jobs() -> Iterator[Job]:
    """All jobs, each made when it is its turn."""
    for magic in (2, 1, 0):
        for size, count in RECORDS.items():
            for keyed in (False, True) if magic == 2 and size == "large" else (False,):
                yield from _record_jobs(magic, count, keyed, f"magic {magic} {size}{' keyed' if keyed else ''}")
    for codec in _PACK:
        for size in PACKED_SIZES:
            yield from _packing_jobs(codec, size)


def _record_jobs(magic: int, count: int, keyed: bool, words: str) -> Iterator[Job]:
    records = _Records(magic, count, keyed)
    yield Job(f"decode records {words}", records.our_records, records.their_records, count, "record")
    yield Job(f"decode values {words}", records.our_values, records.their_values, count, "record")
    if importlib.util.find_spec("pyarrow") is not None:
        yield Job(f"decode arrow {words}", records.our_table, records.their_table, count, "record")
    yield Job(f"encode {words}", records.our_batch, records.their_batch, count, "record")
    if magic != 2:
        return
    one_by_one = Enqueuing(records.values, records.keys_or_none)
    yield Job(f"enqueue {words}", one_by_one.batch, records.their_count, count, "record")
    if importlib.util.find_spec("pyarrow") is not None:
        records.stamps = [TIMESTAMP_MS] * count
        table = table_of(records.values, records.keys_or_none)
        ours, theirs = partial(encoded_table, table, records.stamps), partial(records.their_batch_of_rows, table)
        yield Job(f"encode arrow {words}", ours, theirs, count, "record")


class _Records:
    """Records as columns and as the bytes of one batch, and what can be done with them."""

    def __init__(self, magic: int, count: int, keyed: bool) -> None:
        self.magic = magic
        self.values = repeated(pool_of(RECORD_BYTES, 1000), count)
        self.keys_or_none = keys_of(count) if keyed else None
        self.keys: list[bytes | None] = list(self.keys_or_none or [None] * count)
        self.stamps = [TIMESTAMP_MS + number // 20 for number in range(count)]
        self.data = bytes(self._encode())

    def _encode(self) -> bytes | bytearray:
        return encode_batch(self.magic, Codec.NONE, timestamps=self.stamps, keys=self.keys, values=self.values)

    def our_records(self) -> int:
        size = 0
        for batch in read_batches(self.data, topic="t", partition=0, fetch_offset=0):
            for chunk in batch.chunks():
                for record in chunk:
                    size += record.offset + record.timestamp_ms + len(record.value or b"") + len(record.key or b"")
        return size

    def their_records(self) -> int:
        size = 0
        for batch in _their_batches(self.data):
            for record in batch:
                timestamp = -1 if record.timestamp is None else record.timestamp
                size += record.offset + timestamp + len(record.value or b"") + len(record.key or b"")
        return size

    def our_values(self) -> int:
        batches = read_batches(self.data, topic="t", partition=0, fetch_offset=0)
        return sum(len(batch.values()) for batch in batches)

    def their_values(self) -> int:
        return sum(len([record.value for record in batch]) for batch in _their_batches(self.data))

    def our_table(self) -> int:
        batches = read_batches(self.data, topic="t", partition=0, fetch_offset=0)
        return sum(batch.to_arrow().num_rows for batch in batches)

    def their_table(self) -> int:
        """As an application makes one of their records, without headers."""
        import pyarrow

        kinds = {"offset": pyarrow.int64(), "timestamp": pyarrow.timestamp("ms"), "key": pyarrow.binary()}
        kinds["value"] = pyarrow.binary()
        batches = _their_batches(self.data)
        rows = [(each.offset, each.timestamp, each.key, each.value) for batch in batches for each in batch]
        columns = zip(*rows, strict=True)
        arrays = [pyarrow.array(column, kind) for column, kind in zip(columns, kinds.values(), strict=True)]
        return int(pyarrow.RecordBatch.from_arrays(arrays, list(kinds)).num_rows)

    def our_batch(self) -> int:
        return len(self._encode())

    def their_batch(self) -> int:
        return self._built(self.keys, self.values)

    def their_batch_of_rows(self, table: Any) -> int:
        keys = table.column("key").to_pylist() if "key" in table.schema.names else self.keys
        return self._built(keys, table.column("value").to_pylist())

    def their_count(self) -> int:
        return len(self.values) if self.their_batch() else 0

    def _built(self, keys: list[bytes | None], values: list[bytes]) -> int:
        rows = enumerate(zip(self.stamps, keys, values, strict=True))
        if self.magic == 2:
            builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 30)
            for number, (stamp, key, value) in rows:
                builder.append(number, stamp, key, value, [])
        else:
            builder = LegacyRecordBatchBuilder(self.magic, 0, 1 << 30)
            for number, (stamp, key, value) in rows:
                builder.append(number, stamp, key, value)
        return len(builder.build())


def _their_batches(data: bytes) -> Iterator[Any]:
    source = MemoryRecords(data)
    while source.has_next():
        batch = source.next_batch()
        if not batch.validate_crc():
            raise RuntimeError("wrong checksum")
        yield batch


def _packing_jobs(codec: Codec, size: int) -> Iterator[Job]:
    count = size // RECORD_BYTES + 1
    values = repeated(pool_of(RECORD_BYTES, 20_000), count * 2)
    stamps = [TIMESTAMP_MS] * len(values)
    batch = encode_batch(2, Codec.NONE, timestamps=stamps, keys=[None] * len(values), values=values)
    plain = bytes(batch[61 : 61 + size])  # behind the header
    packed, foreign = memoryview(compress(codec, plain)), memoryview(_PACK[codec](plain))
    their_pack, their_unpack = _PACK[codec], _UNPACK[codec]

    def ours_and_back() -> bool:
        return decompress(codec, compress(codec, plain)) == plain

    words = f"{codec.label} {size >> 10} KiB"
    Job(words, ours_and_back, lambda: their_unpack(their_pack(plain)) == plain, 0, "").check()
    yield Job(
        f"pack {words}",
        lambda: len(compress(codec, plain)) > 0,
        lambda: len(their_pack(plain)) > 0,
        size >> 10,
        "KiB",
    )
    # What either reads, half of it packed by ourselves and half by the other.
    yield Job(
        f"unpack {words}",
        lambda: decompress(codec, packed) + decompress(codec, foreign),
        lambda: their_unpack(packed) + their_unpack(foreign),
        size >> 9,
        "KiB",
    )
