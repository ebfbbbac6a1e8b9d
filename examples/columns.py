"""Add up the lengths of what a topic holds, as Arrow columns (pip install 'pykafka08[arrow]').

Usage: python columns.py HOST:PORT TOPIC
"""

import sys

import anyio
import pyarrow.compute as pc

from pykafka08 import Consumer


async def main(brokers: str, topic: str) -> None:
    async with Consumer(topic, bootstrap_servers=brokers, auto_offset_reset="earliest") as consumer:
        left = sum((await consumer.end_offsets(consumer.assignment())).values())
        rows = size = 0
        async for table in consumer.arrow():
            rows += len(table)
            size += pc.sum(pc.binary_length(table.column("value"))).as_py() or 0
            if rows >= left:
                break
        print(f"{rows} records, {size} bytes")


if len(sys.argv) != 3:
    sys.exit(__doc__)
anyio.run(main, *sys.argv[1:])
