"""Packing columns into a record batch of magic 2; its layout and the way back are in ``batch``.

Tables of varints, few parts per record, one join for all: that is what interpreted Python does fastest.  Where this
module is compiled, ``batch_writer`` makes the same bytes, several times as fast as that.
"""

from __future__ import annotations

import itertools
import struct
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from operator import add, ne
from types import FunctionType

from pykafka08.errors import LocalProtocolError
from pykafka08.records.batch import FAR_APART, HEAD, HEADER_SIZE, SUMMED
from pykafka08.records.checksums import crc32c
from pykafka08.records.compression import Codec, compress
from pykafka08.records.record import Headers
from pykafka08.wire import Buffer, encode_varint, varint_size

__all__ = ["NOT_ENCODED", "encode_batch", "encode_parts", "largest_record_size", "pack_records", "records_of"]

_SMALL = 8192  # varints below take one or two bytes
_MOST_KEPT = 1 << 16
_NO_HEADERS = b"\x00"
_NOTHING_YET = bytes(3)  # attributes, and the deltas of the first record's timestamp and offset
_MOST_AROUND = 32  # bytes of a record beside its key and value
_PIECE = 96 << 10
NOT_ENCODED = (TypeError, AttributeError, ValueError, OverflowError, struct.error)
"""What is raised for a record that cannot be encoded."""
_LONG_RUN = 32  # records of one timestamp from which on tables made for them alone pay
_MOST_HEADS = 8  # heads of a table for each record of its run, up to which the table costs less than a lookup by size


def _varint(value: int) -> bytes:
    return _SMALL_VARINTS[value] if 0 <= value < _SMALL else _long_varint(value)


def _long_varint(value: int) -> bytes:
    raw = value << 1 if value >= 0 else (-value << 1) - 1
    if raw >> 28:
        return encode_varint(value)
    if raw >> 21:
        return bytes((raw & 127 | 128, raw >> 7 & 127 | 128, raw >> 14 & 127 | 128, raw >> 21))
    return bytes((raw & 127 | 128, raw >> 7 & 127 | 128, raw >> 14)) if raw >> 14 else encode_varint(value)


def _span(size: int) -> int:
    """Of so many bytes and the length before them."""
    return size + len(_varint(size))


class _Stamps(dict[int, bytes]):
    """A record's attributes, of which none is in use, and its timestamp delta, by delta."""

    def __missing__(self, delta: int) -> bytes:
        if not -(1 << 63) <= delta < 1 << 63:
            raise ValueError(FAR_APART)
        return b"\x00" + _long_varint(delta)


_SMALL_VARINTS = [encode_varint(value) for value in range(_SMALL)]
_NULL_LENGTH = encode_varint(-1)
_SPANS = [value + len(_SMALL_VARINTS[value]) for value in range(_SMALL)]  # of so many bytes and the length before them
_STAMPS = _Stamps([(delta, b"\x00" + varint) for delta, varint in enumerate(_SMALL_VARINTS)])
_stamp = _STAMPS.__getitem__
_FIRST_HEADS = [_NO_HEADERS + varint + _STAMPS[0] for varint in _SMALL_VARINTS]
# Offset deltas, alone and with the length of a null key behind them.  They grow with the largest batch that was packed.
_OFFSETS = _SMALL_VARINTS.copy()
_KEYLESS_OFFSETS = [varint + _NULL_LENGTH for varint in _OFFSETS]


def _kept_offsets(count: int, kept: list[bytes], suffix: bytes) -> list[bytes]:
    """Offset deltas 0, 1, ... below ``count``, each with ``suffix``, from the table ``kept``."""
    if count > _MOST_KEPT:
        return [_varint(delta) + suffix for delta in range(count)]
    if count > len(kept):
        kept.extend([_varint(delta) + suffix for delta in range(len(kept), count)])
    return kept[:count]


def encode_batch(
    codec: Codec,
    *,
    timestamps: Sequence[int],
    keys: Sequence[bytes | None] | None,
    values: Sequence[bytes | None],
    headers: Sequence[Headers] | None = None,
    offset_deltas: Sequence[int] | None = None,
    base_offset: int = 0,
    level: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    is_transactional: bool = False,
    is_control: bool = False,
    log_append_time_ms: int | None = None,
    leader_epoch: int = -1,
) -> bytearray:
    """:func:`encode_parts`, joined."""
    parts = encode_parts(
        codec,
        timestamps=timestamps,
        keys=keys,
        values=values,
        headers=headers,
        offset_deltas=offset_deltas,
        base_offset=base_offset,
        level=level,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        is_transactional=is_transactional,
        is_control=is_control,
        log_append_time_ms=log_append_time_ms,
        leader_epoch=leader_epoch,
    )
    return bytearray().join(parts)


def encode_parts(
    codec: Codec,
    *,
    timestamps: Sequence[int],
    keys: Sequence[bytes | None] | None,
    values: Sequence[bytes | None],
    headers: Sequence[Headers] | None = None,
    offset_deltas: Sequence[int] | None = None,
    packed: Sequence[Buffer] | None = None,
    base_offset: int = 0,
    level: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    is_transactional: bool = False,
    is_control: bool = False,
    log_append_time_ms: int | None = None,
    leader_epoch: int = -1,
) -> list[Buffer]:
    """One batch of magic 2 in pieces, the header being the first, so that no joining copies them.

    Columns of one length, at least one record; ``keys`` and ``headers`` None: no record has one.  ``offset_deltas``
    default to 0, 1, 2, ...  ``packed`` has the records themselves, in place of all columns but ``timestamps``.
    LocalProtocolError for what cannot be encoded.
    """
    count = len(values) if packed is None else len(timestamps)
    lengths = [len(column) for column in (keys, timestamps, headers, offset_deltas) if column is not None]
    if not count or lengths.count(count) != len(lengths):
        raise LocalProtocolError("a batch needs columns of one length with at least one record")
    attributes = codec | is_transactional << 4 | is_control << 5
    try:
        largest_timestamp = _largest(timestamps)
        if log_append_time_ms is not None:
            attributes |= 8
            largest_timestamp = log_append_time_ms
        parts: list[Buffer] = [*(packed or records_of(timestamps, keys, values, headers, offset_deltas))]
        if codec:
            parts = [compress(codec, b"".join(parts), level=level)]
        size = HEADER_SIZE + sum(map(len, parts))
        summed = SUMMED.pack(
            attributes, count - 1 if offset_deltas is None else offset_deltas[-1], timestamps[0], largest_timestamp,
            producer_id, producer_epoch, base_sequence, count,
        )  # fmt: skip
        crc = crc32c(summed)
        for part in parts:
            crc = crc32c(part, crc)
        return [HEAD.pack(base_offset, size - 12, leader_epoch, 2, crc) + summed, *parts]
    except NOT_ENCODED as error:
        raise LocalProtocolError(f"a record cannot be encoded: {error}") from error


def _largest(timestamps: Sequence[int]) -> int:
    """Mostly all are the same object, which counting finds out several times as fast as comparing."""
    last = timestamps[-1]
    if isinstance(timestamps, list) and timestamps.count(last) == len(timestamps):
        return last
    return max(timestamps)


def _joined_records(
    timestamps: Sequence[int],
    keys: Sequence[bytes | None] | None,
    values: Sequence[bytes | None],
    headers: Sequence[Headers] | None,
    deltas: Sequence[int] | None,
) -> list[bytes]:
    """The records in few pieces: a checksum over each of the small ones would cost more than joining them."""
    if len(values) == 1 and deltas is None:
        return [_pack_alone(keys[0] if keys else None, values[0], headers[0] if headers else ())]
    pieces = pack_records(timestamps, keys, values, headers, deltas)
    return pieces if len(pieces) * _LONG_RUN <= len(values) else [b"".join(pieces)]


def _pack_alone(key: bytes | None, value: bytes | None, headers: Headers) -> bytes:
    """The only record of its batch, as awaited sends make them: no table is worth its while."""
    parts: tuple[bytes, ...] = (
        _NOTHING_YET,
        _NULL_LENGTH if key is None else _varint(len(key)),
        key or b"",
        _NULL_LENGTH if value is None else _varint(len(value)),
        value or b"",
        _pack_headers(headers),
    )
    record = b"".join(parts)
    return _varint(len(record)) + record


def pack_records(
    timestamps: Sequence[int],
    keys: Sequence[bytes | None] | None,
    values: Sequence[bytes | None],
    headers: Sequence[Headers] | None,
    deltas: Sequence[int] | None,
) -> list[bytes]:
    """The records in pieces, to be joined: what :func:`encode_parts` does where it is interpreted."""
    base, count = timestamps[0], len(values)
    if keys is not None and not any(keys) and keys.count(None) == count:
        keys = None
    if count >= _LONG_RUN and headers is None and deltas is None and all(values) and (keys is None or all(keys)):
        ends = _ends_of_runs(timestamps)
        if len(ends) * _LONG_RUN <= count:
            return _pack_runs(timestamps, ends, keys, values)  # type: ignore[arg-type]
    if keys is None:
        keys = [None] * count
    stamps = map(_stamp, [timestamp - base for timestamp in timestamps])
    offsets = _kept_offsets(count, _OFFSETS, b"") if deltas is None else map(_varint, deltas)
    tails = itertools.repeat(_NO_HEADERS, count) if headers is None else map(_pack_headers, headers)
    small, spans = _SMALL_VARINTS, _SPANS
    parts: list[bytes] = []
    for stamp, offset, key, value, tail in zip(stamps, offsets, keys, values, tails, strict=True):
        size = len(stamp) + len(offset) + len(tail)
        if key is None:
            key_length = _NULL_LENGTH
            size += 1
        elif (key_size := len(key)) < _SMALL:
            key_length = small[key_size]
            size += spans[key_size]
        else:
            key_length = _varint(key_size)
            size += len(key_length) + key_size
        if value is None:
            value_length = _NULL_LENGTH
            size += 1
        elif (value_size := len(value)) < _SMALL:
            value_length = small[value_size]
            size += spans[value_size]
        else:
            value_length = _varint(value_size)
            size += len(value_length) + value_size
        parts += (
            small[size] if size < _SMALL else _varint(size),
            stamp, offset, key_length, key or b"", value_length, value or b"", tail,
        )  # fmt: skip
    return parts


def _ends_of_runs(timestamps: Sequence[int]) -> list[int]:
    """Where each run of equal timestamps ends, or where the first ones do if that is too many already."""
    count = len(timestamps)
    ends: list[int] = []
    start = 0
    # Nearly always they grow, and the end can be guessed: counting a run costs less than comparing its neighbours.
    while start < count and len(ends) * _LONG_RUN <= count:
        end = bisect_right(timestamps, timestamps[start], start)
        if timestamps[start:end].count(timestamps[start]) != end - start:
            return [*itertools.compress(range(1, count), map(ne, timestamps[1:], timestamps)), count]
        ends.append(end)
        start = end
    return ends


def _pack_runs(
    timestamps: Sequence[int], ends: Iterable[int], keys: Sequence[bytes] | None, values: Sequence[bytes]
) -> list[bytes]:
    """The same for the commonest case, at less than half the price: no header, no null value, no gap, every record has
    a key or none has, and runs of records with one timestamp that stop at ``ends``.

    Nothing is interpreted for each record.  The pieces are joined already, and each is small enough to come from the
    allocator's own memory: a fresh mapping for a whole batch costs more, in page faults, than writing it.
    """
    count = len(values)
    sizes = list(map(len, values))
    key_sizes = [] if keys is None else list(map(len, keys))
    largest = max(sizes) + max(key_sizes, default=0)
    # Lists where they reach, which is nearly always.
    is_small = largest + _MOST_AROUND < _SMALL
    varint: Callable[[int], bytes] = _SMALL_VARINTS.__getitem__ if is_small else _varint
    span: Callable[[int], int] = _SPANS.__getitem__ if is_small else _span
    columns: list[tuple[Sequence[bytes], Sequence[bytes]]] = [(list(map(varint, sizes)), values)]
    around, bodies = len(_NO_HEADERS), sizes
    if keys is None:
        offsets = _kept_offsets(count, _KEYLESS_OFFSETS, _NULL_LENGTH)
    else:
        offsets = _kept_offsets(count, _OFFSETS, b"")
        if len(set(key_sizes)) == 1:
            around += span(key_sizes[0])
            columns.insert(0, ([varint(key_sizes[0])] * count, keys))
        else:
            columns.insert(0, (list(map(varint, key_sizes)), keys))
            bodies = list(map(add, map(span, key_sizes), map(span, sizes)))
    heads: list[bytes] = []
    for end in ends:
        start = len(heads)
        stamp = _stamp(timestamps[start] - timestamps[0])
        while start < end:
            width = len(offsets[start])
            until = bisect_right(offsets, width, start, end, key=len)  # they grow longer at 64 and at 8,192
            rest = around + width + len(stamp)
            run = bodies[start:until]
            most = max(run)
            table: list[bytes] | dict[int, bytes]
            if is_small and (stamp == _STAMPS[0] or most < _MOST_HEADS * len(run)):
                table = _heads(rest, stamp, most, is_value=bodies is sizes)
            else:
                spans = {body: span(body) if bodies is sizes else body for body in set(run)}
                table = {body: _NO_HEADERS + varint(rest + size) + stamp for body, size in spans.items()}
            heads += map(table.__getitem__, run)
            start = until
    step = max(_LONG_RUN, _PIECE * count // (sum(sizes) + sum(key_sizes) + 3 * count))
    parts_each = 2 + 2 * len(columns)
    pieces = []
    for start in range(0, count, step):
        stop = min(start + step, count)
        # A head begins with the end of the record before, which costs one part less for each.
        parts = [_NO_HEADERS] * (parts_each * (stop - start) + 1)
        parts[0:-1:parts_each] = heads[start:stop]
        parts[0] = parts[0][len(_NO_HEADERS) :]
        parts[1::parts_each] = offsets[start:stop]
        for place, (lengths, column) in enumerate(columns):
            parts[2 + 2 * place :: parts_each] = lengths[start:stop]
            parts[3 + 2 * place :: parts_each] = column[start:stop]
        pieces.append(b"".join(parts))
    return pieces


def _heads(rest: int, stamp: bytes, most: int, *, is_value: bool) -> list[bytes]:
    """By the bytes of a record's body, none to ``most``: the end of the record before, its size, and ``stamp``.

    The body is the value (``is_value``) or whole, with its lengths; ``rest`` bytes more count.  For small records.
    """
    known = _FIRST_HEADS if stamp == _STAMPS[0] else _SMALL_VARINTS
    heads = known[rest : rest + most + 1]
    if is_value:  # the length before it takes a second byte from 64 on
        heads = known[rest + 1 : rest + 65] + known[rest + 66 : rest + most + 3]
    return heads if known is _FIRST_HEADS else [_NO_HEADERS + size + stamp for size in heads]


def _pack_headers(headers: Headers) -> bytes:
    if not headers:
        return _NO_HEADERS
    parts = [_varint(len(headers))]
    for name, value in headers:
        encoded = name.encode()
        parts += (_varint(len(encoded)), encoded)
        parts += (_NULL_LENGTH,) if value is None else (_varint(len(value)), value)
    return b"".join(parts)


def largest_record_size(key: bytes | None, value: bytes | None, headers: Headers = ()) -> int:
    """Most bytes that one record adds to a batch that is not compressed."""
    # length 5, attributes 1, timestamp 10, offset 5, key length 5, value length 5, header count 5
    size = 36 + (len(key) if key else 0) + (len(value) if value else 0)
    for name, content in headers:
        name_size = len(name.encode())
        size += varint_size(name_size) + name_size
        size += 1 if content is None else varint_size(len(content)) + len(content)
    return size


def _chosen_form() -> Callable[..., list[bytes]]:
    """What makes the records, decided once: which of the two is faster depends on what this module runs as."""
    if isinstance(encode_parts, FunctionType):
        return _joined_records
    from pykafka08.records.batch_writer import write_records

    return write_records


records_of = _chosen_form()
