"""Known answers of both checksums."""

from __future__ import annotations

import pytest

from pykafka08.records.checksums import crc32, crc32c

CHECK = b"123456789"  # the input that catalogues of checksums give the answer for


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_known_answers(kind: type) -> None:
    assert crc32(kind(CHECK)) == 0xCBF43926
    assert crc32c(kind(CHECK)) == 0xE3069283


def test_a_slice_of_a_view_is_enough() -> None:
    view = memoryview(b"..." + CHECK + b"...")
    assert crc32(view[3:-3]) == 0xCBF43926
    assert crc32c(view[3:-3]) == 0xE3069283
