"""Bytes of columns: both ways of measuring them say the same, and see what is no bytes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka08.producer.batch import RECORD_OVERHEAD
from pykafka08.producer.sizes import measured, measured_by_loop, measured_by_maps, record_sizes

CONTENT = st.none() | st.binary(max_size=300)


@given(rows=st.lists(st.tuples(CONTENT, CONTENT), min_size=1, max_size=40), has_keys=st.booleans())
def test_sizes_of_all_and_of_the_largest(rows: list[tuple[bytes | None, bytes | None]], has_keys: bool) -> None:
    values = [value for value, _ in rows]
    keys = [key for _, key in rows] if has_keys else None
    sizes = [RECORD_OVERHEAD + len(value or b"") + (len(key or b"") if has_keys else 0) for value, key in rows]
    assert measured_by_maps(values, keys) == measured_by_loop(values, keys) == (sum(sizes), max(sizes))
    assert record_sizes(values, keys, None) == sizes


@pytest.mark.parametrize("measure", [measured, measured_by_maps, measured_by_loop])
@pytest.mark.parametrize("odd", ["text", bytearray(b"changes"), memoryview(b"v"), 5, ("a",)])
def test_what_is_not_bytes_is_seen(measure: Any, odd: Any) -> None:
    assert measure([b"a", odd], None) is None
    assert measure([odd], [b"k"]) is None
    assert measure([b"a", None], [b"k", odd]) is None
