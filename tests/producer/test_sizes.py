"""Bytes of columns: both ways of measuring them say the same, and see what is no bytes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka08.producer.batch import RECORD_OVERHEAD, headers_size
from pykafka08.producer.sizes import (
    bounds_by_loop,
    bounds_by_maps,
    measured,
    measured_by_loop,
    measured_by_maps,
    record_sizes,
)

CONTENT = st.none() | st.binary(max_size=300)
HEADERS = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=9)), max_size=2).map(tuple)


@given(rows=st.lists(st.tuples(CONTENT, CONTENT), min_size=1, max_size=40), has_keys=st.booleans())
def test_sizes_of_all_and_of_the_largest(rows: list[tuple[bytes | None, bytes | None]], has_keys: bool) -> None:
    values = [value for value, _ in rows]
    keys = [key for _, key in rows] if has_keys else None
    sizes = [RECORD_OVERHEAD + len(value or b"") + (len(key or b"") if has_keys else 0) for value, key in rows]
    assert measured_by_maps(values, keys) == measured_by_loop(values, keys) == (sum(sizes), max(sizes))
    assert record_sizes(values, keys, None) == sizes


@given(
    rows=st.lists(st.tuples(CONTENT, CONTENT, HEADERS), max_size=40), has_keys=st.booleans(), has_headers=st.booleans()
)
def test_bounds_from_none_to_all(rows: list[tuple[Any, Any, Any]], has_keys: bool, has_headers: bool) -> None:
    values = [value for value, _, _ in rows]
    keys = [key for _, key, _ in rows] if has_keys else None
    headers = [each for _, _, each in rows] if has_headers else None
    expected, total = [0], 0
    for value, key, each in rows:
        total += RECORD_OVERHEAD + len(value or b"")
        total += len(key or b"") if has_keys else 0
        total += headers_size(each) if has_headers else 0
        expected.append(total)
    assert bounds_by_maps(values, keys, headers) == bounds_by_loop(values, keys, headers) == expected


@pytest.mark.parametrize("measure", [measured, measured_by_maps, measured_by_loop])
@pytest.mark.parametrize("odd", ["text", bytearray(b"changes"), memoryview(b"v"), 5, ("a",)])
def test_what_is_not_bytes_is_seen(measure: Any, odd: Any) -> None:
    assert measure([b"a", odd], None) is None
    assert measure([odd], [b"k"]) is None
    assert measure([b"a", None], [b"k", odd]) is None
