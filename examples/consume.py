"""Read a topic from its beginning until interrupted.  Usage: python consume.py HOST:PORT TOPIC"""

import sys

import anyio

from pykafka08 import Consumer


async def main(brokers: str, topic: str) -> None:
    async with Consumer(topic, bootstrap_servers=brokers, auto_offset_reset="earliest") as consumer:
        async for record in consumer:
            print(record.partition, record.offset, record.key, record.value, flush=True)


anyio.run(main, *sys.argv[1:3])
