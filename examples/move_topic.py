"""Copy a topic, and a group's place in it, from one cluster to another.

Usage: python move_topic.py FROM_HOST:PORT TO_HOST:PORT TOPIC [GROUP [NEW_NAME]]

Run it again, also after it was interrupted: it goes on where it was, and no record is copied twice.
"""

import sys

import anyio

from pykafka08 import KafkaError, Mirror, MirrorReport


def tell(report: MirrorReport) -> None:
    print(f"{report.records:,} records copied, {report.lag:,} to go", flush=True)


async def move(source: str, target: str, topic: str, group: str = "", new_name: str = "") -> None:
    groups = [group] if group else []
    async with Mirror(source, target, topics=[topic], groups=groups, rename={topic: new_name or topic}) as mirror:
        for plan in await mirror.plan():
            print(f"{plan.source} goes to {plan.target}: {plan.partitions} partitions{plan.problem or ''}", flush=True)
        report = await mirror.run(on_progress=tell)
        for each in report.groups:
            print(f"{each.group_id}: {each.source_offset} is {each.target_offset} in partition {each.target.partition}")


if len(sys.argv) not in (4, 5, 6):
    sys.exit(__doc__)
try:
    anyio.run(move, *sys.argv[1:])
except KafkaError as error:
    sys.exit(f"{error}")
