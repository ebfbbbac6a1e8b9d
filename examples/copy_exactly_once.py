"""Copy a topic exactly once: records and offsets are committed together.  Brokers from 2.5 on.

Usage: python copy_exactly_once.py HOST:PORT FROM TO [UNTIL]

Run it several times at once, interrupt it, start it again: no record is copied twice and none is left out.  It ends
when UNTIL records were copied; without it, when it is interrupted.  What counts is what a read_committed reader sees.
"""

import sys
import uuid
from contextlib import suppress

import anyio

from pykafka08 import Consumer, PartitionRevokedError, Producer, TransactionAbortedError


async def copy(brokers: str, source: str, target: str, until: float) -> None:
    consumer = Consumer(
        source,
        bootstrap_servers=brokers,
        group_id=f"copies {source} to {target}",
        auto_offset_reset="earliest",
        enable_auto_commit=False,  # offsets are committed with the records
        isolation_level="read_committed",
    )
    # Each copier has an id of its own.  One that is to take over at once from a copier that hangs would have the same.
    producer = Producer(bootstrap_servers=brokers, transactional_id=f"copier {uuid.uuid4()}")
    copied = 0
    async with consumer, producer:
        while copied < until:
            try:
                async with producer.transaction():
                    records = await consumer.getmany(max_records=500, timeout=1)
                    for record in records:
                        await producer.ready()
                        producer.enqueue(target, record.value, key=record.key, headers=record.headers)
                    await producer.send_offsets(consumer)
            except (TransactionAbortedError, PartitionRevokedError) as aborted:  # noqa: PERF203
                print(f"again: {aborted}", flush=True)
                await consumer.seek_to_committed()
            else:
                copied += len(records)
                if records:
                    print(f"copied {copied}", flush=True)


if len(sys.argv) not in (4, 5):
    sys.exit(__doc__)
with suppress(KeyboardInterrupt):
    anyio.run(copy, *sys.argv[1:4], float((sys.argv[4:5] or ["inf"])[0]))
