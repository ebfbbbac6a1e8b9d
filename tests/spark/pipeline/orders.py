"""A small pipeline over an embedded broker: orders as JSON, of which some are broken, refused or sent twice."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio

from pykafka08 import Producer
from tests.spark.queries import SHORT_LIVED

TOPIC, LETTERS, TOTALS = "orders", "orders-refused", "orders-hourly"
PARTITIONS = 3
CONFIG = """
name = "orders"
folder = "out"

[sources.shop]
bootstrap_servers = "BROKERS"
topics = ["orders"]
max_offsets_per_trigger = 150

[decode]
format = "json"
schema = "id BIGINT, kind STRING, amount INT, at TIMESTAMP"
event_time = "at"
rules = { "the amount is positive" = "amount > 0" }
duplicates = { key = ["id"] }

[dead_letters]
bootstrap_servers = "BROKERS"
topic = "orders-refused"

[aggregates.hourly]
window = "1 hour"
watermark = "30 days"
group_by = ["kind"]
measures = { orders = "count(*)", amount = "sum(amount)" }
bootstrap_servers = "BROKERS"
topic = "orders-hourly"

[spark]
master = "local[2]"

[spark.conf]
"spark.driver.memory" = "700m"
"spark.driver.extraJavaOptions" = "SHORT_LIVED"  # runs of seconds: less CPU by half
"spark.sql.shuffle.partitions" = "2"
"spark.sql.codegen.wholeStage" = "false"  # of a query with a few rows the code costs more than the rows
"spark.sql.codegen.factoryMode" = "NO_CODEGEN"
""".replace("SHORT_LIVED", SHORT_LIVED)


@contextmanager
def broker() -> Iterator[str]:
    """The address of an embedded broker in a process of its own, which ends with this one."""
    command = [sys.executable, "-m", "pykafka08", "broker", "--topic", f"{TOPIC}:{PARTITIONS}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        yield process.stdout.readline().decode().strip().removeprefix("BROKERS=")
        process.communicate()


def written_config(folder: Path, brokers: str, *, writes_to_kafka: bool = True) -> Path:
    """The file; ``writes_to_kafka=False``: without the dead letters' topic and the windows'."""
    text = CONFIG.replace("BROKERS", brokers)
    if not writes_to_kafka:
        text = text.replace(
            f'''[dead_letters]
bootstrap_servers = "{brokers}"
topic = "{LETTERS}"
''',
            "",
        ).replace(
            f'''bootstrap_servers = "{brokers}"
topic = "{TOTALS}"
''',
            "",
        )
    path = folder / "orders.toml"
    path.write_text(text)
    return path


def order(number: int) -> dict[str, Any]:
    """A good one; they spread over two days."""
    at = f"2024-03-{1 + number % 2:02d}T{number % 24:02d}:{number % 60:02d}:00Z"
    return {"id": number, "kind": "abc"[number % 3], "amount": 1 + number % 9, "at": at}


def values(numbers: Iterable[int]) -> Iterator[bytes]:
    """Every tenth order is refused by the rule, every fifteenth comes broken instead, every seventh twice."""
    for number in numbers:
        one = order(number)
        if number % 10 == 0:
            one["amount"] = -1
        value = b"{broken %d" % number if number % 15 == 0 else json.dumps(one).encode()
        yield value
        if number % 7 == 0:
            yield value


def is_accepted(number: int) -> bool:
    return number % 10 != 0 and number % 15 != 0


def refused(numbers: Iterable[int]) -> int:
    """Each record that is refused is told, also the second of two that are alike."""
    return sum(1 + (number % 7 == 0) for number in numbers if not is_accepted(number))


def produce(brokers: str, numbers: Iterable[int]) -> int:
    """How many records."""
    sent = list(values(numbers))

    async def send() -> None:
        async with Producer(bootstrap_servers=brokers) as producer:
            for place, value in enumerate(sent):
                await producer.ready()
                producer.enqueue(TOPIC, value, partition=place % PARTITIONS, key=b"k%d" % place)
            await producer.flush()

    anyio.run(send)
    return len(sent)
