"""Records packed from Arrow columns: the bytes of ``batch_packing``."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pykafka08.records import arrow_packing
from pykafka08.records.arrow_packing import Rows
from pykafka08.records.batch_packing import pack_records
from pykafka08.records.batch_writer import write_rows

SIZES = st.sampled_from([0, 1, 62, 63, 64, 65, 300, 8190, 8191, 8192, 20_000])
CONTENTS = st.none() | SIZES.map(bytes) | st.binary(max_size=70)
TYPES = st.sampled_from([pa.binary(), pa.large_binary()])
STAMPS = st.integers(-(1 << 62), 1 << 62) | st.integers(-100, 100)


def packed_one_by_one(
    values: list[bytes | None], keys: list[bytes | None] | None, stamps: list[int], first: int
) -> bytes:
    """By the encoder of columns of Python objects; a record before them fixes the base timestamp."""
    rest = None if keys is None else [None, *keys]
    deltas = [0, *range(first, first + len(values))]
    return b"".join(pack_records([0, *stamps], rest, [None, *values], None, deltas))[len(NULLS) :]


NULLS = b"".join(pack_records([0], None, [None], None, None))


def column(values: list[bytes | None], kind: pa.DataType, skipped: int) -> pa.Array:
    """As a slice, so that neither offsets nor bytes begin at 0."""
    return pa.array([b"skipped"] * skipped + values, kind).slice(skipped)


@pytest.fixture(params=[None, write_rows], ids=["joined", "written"])
def way(request: pytest.FixtureRequest) -> Iterator[None]:
    """Both ways to pack, whichever form runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrow_packing, "_write_rows", request.param)
        yield


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
@pytest.mark.usefixtures("way")
def test_any_columns(data: st.DataObject) -> None:
    counts = data.draw(st.lists(st.integers(1, 12), min_size=1, max_size=4))
    count = sum(counts)
    values = data.draw(st.lists(CONTENTS, min_size=count, max_size=count))
    keys = data.draw(st.none() | st.lists(CONTENTS, min_size=count, max_size=count))
    stamps = data.draw(STAMPS | st.lists(STAMPS, min_size=count, max_size=count))
    first = data.draw(st.sampled_from([0, 1, 60, 8189, 1 << 20]))
    skipped, start = data.draw(st.integers(0, 3)), data.draw(st.integers(0, 2))
    kinds = data.draw(TYPES), data.draw(TYPES)
    padding: list[bytes | None] = [b"before"] * start
    rows = Rows(
        column(padding + values, kinds[0], skipped),
        None if keys is None else column(padding + keys, kinds[1], skipped),
    )
    cuts = [start + end for end in accumulate(counts)]
    found = rows.packed(start, cuts, stamps if isinstance(stamps, int) else np.array(stamps), first)
    times = [stamps] * count if isinstance(stamps, int) else stamps
    expected = []
    for index, (begin, end) in enumerate(pairwise(accumulate(counts, initial=0))):
        part = slice(begin, end)
        known = None if keys is None else keys[part]
        expected.append(packed_one_by_one(values[part], known, times[part], 0 if index else first))
    assert [b"".join(each) for each in found] == expected


@pytest.mark.parametrize("size", [0, 1, 55, 63, 64, 120])
@pytest.mark.parametrize("key_size", [None, 0, 8, 64])
@pytest.mark.parametrize("first", [0, 63, 8000])
def test_rows_of_one_size(size: int, key_size: int | None, first: int) -> None:
    """A batch long enough to be a matrix, across the borders where offset deltas grow."""
    count = 700
    values = [bytes([index % 251]) * size for index in range(count)]
    keys = None if key_size is None else [bytes([index % 241]) * key_size for index in range(count)]
    rows = Rows(column(values, pa.binary(), 2), None if keys is None else column(keys, pa.large_binary(), 1))
    found = rows.packed(10, [300, count], 7, first)
    expected = [
        packed_one_by_one(values[part], None if keys is None else keys[part], [7] * len(values[part]), offset)
        for part, offset in ((slice(10, 300), first), (slice(300, count), 0))
    ]
    assert [b"".join(each) for each in found] == expected


def test_sizes_are_those_of_keys_and_values() -> None:
    rows = Rows(pa.array([b"abc", None, b""], pa.binary()), pa.array([None, b"k", b"key"], pa.binary()))
    assert rows.content_sizes().tolist() == [3, 1, 3]
    assert Rows(pa.array([None, b"v"], pa.binary()), pa.nulls(2, pa.binary())).content_sizes().tolist() == [0, 1]
