"""Produce ten records and see where each one went.  Usage: python produce.py HOST:PORT TOPIC"""

import sys
from contextlib import suppress

import anyio

from pykafka08 import Producer


async def main(brokers: str, topic: str) -> None:
    async with Producer(bootstrap_servers=brokers) as producer:
        for number in range(10):
            metadata = await producer.send(topic, b"hello %d" % number, key=b"key %d" % number)
            print(f"{metadata.topic} partition {metadata.partition} offset {metadata.offset}")


if len(sys.argv) != 3:
    sys.exit(__doc__)
with suppress(KeyboardInterrupt):
    anyio.run(main, *sys.argv[1:])
