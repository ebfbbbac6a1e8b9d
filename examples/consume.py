"""Read a topic from its beginning until interrupted.  Usage: python consume.py HOST:PORT TOPIC"""

import os
import sys

import anyio

from pykafka08 import Consumer


async def main(brokers: str, topic: str) -> None:
    async with Consumer(topic, bootstrap_servers=brokers, auto_offset_reset="earliest") as consumer:
        async for record in consumer:
            print(record.partition, record.offset, record.key, record.value, flush=True)


if len(sys.argv) != 3:
    sys.exit(__doc__)
try:
    anyio.run(main, *sys.argv[1:])
except KeyboardInterrupt:
    pass
except BrokenPipeError:  # whoever read the output has gone, as in "| head -1"; nothing is left to be written on exit
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
