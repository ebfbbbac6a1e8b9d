"""Reading a known number of records with a bound, and nothing beyond them."""

from __future__ import annotations

import anyio

from pykafka08 import Consumer
from pykafka08.records.record import Record

DEADLINE_S = 120


async def read_records(consumer: Consumer, count: int, deadline_s: float = DEADLINE_S) -> list[Record]:
    """The next `count` records; fails when they are not there within the time, or when more come with them."""
    records: list[Record] = []
    try:
        with anyio.fail_after(deadline_s):
            async for batch in consumer.batches():
                records.extend(batch)
                if len(records) >= count:
                    break
    except TimeoutError:
        raise AssertionError(f"{len(records)} of {count} records came within {deadline_s} s") from None
    assert len(records) == count, f"{len(records) - count} records too many"
    return records
