"""Bounds on the size of unpacked data, and the error above them."""

from __future__ import annotations

from typing import Final

from pykafka08.errors import RecordTooLargeError

__all__ = ["NO_LIMIT", "PART", "too_large"]

NO_LIMIT: Final = 1 << 62

#: Large data is unpacked in parts of about this many bytes.
PART: Final = 1 << 20


def too_large(codec: str, limit: int, advice: str = "") -> RecordTooLargeError:
    """The error of ``codec`` data that unpacks to more than ``limit`` bytes at a time."""
    return RecordTooLargeError(
        f"{codec} data unpacks to more than max_unpacked_bytes={limit}; raise that setting to read it{advice}"
    )
