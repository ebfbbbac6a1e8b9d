"""Add up the lengths of what a topic holds, as Arrow columns (pip install 'pykafka08[arrow]').

Usage: python columns.py HOST:PORT TOPIC
"""

import sys

import anyio
import pyarrow.compute as pc

from pykafka08 import Consumer


async def main(brokers: str, topic: str) -> None:
    settings = {"auto_offset_reset": "earliest", "isolation_level": "read_committed"}  # without what was aborted
    async with Consumer(topic, bootstrap_servers=brokers, **settings) as consumer:
        ends = await consumer.end_offsets(consumer.assignment())
        tables = aiter(consumer.arrow())
        rows = size = 0
        while any([await consumer.position(tp) < end for tp, end in ends.items()]):
            with anyio.move_on_after(1):  # behind the last record there may be the marks of transactions
                table = await anext(tables)
                rows += len(table)
                size += pc.sum(pc.binary_length(table.column("value"))).as_py() or 0
        print(f"{rows} records, {size} bytes")


if len(sys.argv) != 3:
    sys.exit(__doc__)
anyio.run(main, *sys.argv[1:])
