"""The demo: a week of real flights through Kafka and back.

Starts the embedded broker, produces each line of data/nyc-flights.csv as a record, reads all of them back with the
console consumer, and compares.  Run it with ``make demo``, or with ``python examples/demo.py`` where pykafka08 is
installed.  The data: 6,099 departures from New York in January 2013, public domain (see data/README.md).
"""

import hashlib
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import anyio

from pykafka08 import Producer

DATA = Path(__file__).parent / "data" / "nyc-flights.csv"
TOPIC = "flights"
PYKAFKA08 = [sys.executable, "-m", "pykafka08"]


@contextmanager
def embedded_broker() -> Iterator[str]:
    """A broker in a process of its own; it ends when its standard input is closed."""
    command = [*PYKAFKA08, "broker", "--topic", TOPIC]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as broker:
        first_line = broker.stdout.readline().decode().strip()
        yield first_line.removeprefix("BROKERS=")
        broker.stdin.close()


async def produce(brokers: str, lines: list[bytes]) -> None:
    """Send each line: the aircraft is the key, the hour of departure the timestamp."""
    async with Producer(bootstrap_servers=brokers) as producer:
        deliveries = []
        for line in lines:
            columns = line.decode().split(",")
            departure = datetime.fromisoformat(columns[18].replace("Z", "+00:00"))
            await producer.ready()
            deliveries.append(
                producer.enqueue(TOPIC, line, key=columns[11].encode(), timestamp_ms=int(departure.timestamp()) * 1000)
            )
        for count, delivery in enumerate(deliveries, 1):
            await delivery  # raises if the record was not acknowledged
            progress("produced", count, len(lines))


def consume(brokers: str, count: int) -> list[bytes]:
    """What the console consumer prints; it draws a progress line of its own on a terminal."""
    command = [*PYKAFKA08, "consume", "--bootstrap-server", brokers, "--topic", TOPIC, "--from-beginning"]
    command += ["--max-messages", str(count), "--timeout-ms", "30000"]
    lines = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.splitlines()
    progress("consumed", len(lines), count)
    return lines


def progress(what: str, count: int, total: int) -> None:
    """A line that grows on a terminal; elsewhere its last state alone."""
    if count == total or (count % 500 == 0 and sys.stdout.isatty()):
        print(f"\r{what} {count:,} of {total:,} records", end="\n" if count == total else "", flush=True)


def summary(what: str, lines: list[bytes], seconds: float) -> str:
    """One line about what went in or came out.  The digest covers every byte and the order."""
    size = sum(len(line) for line in lines)
    digest = hashlib.sha256(b"\n".join(lines)).hexdigest()
    print(f"{what}: {len(lines):,} records, {size:,} bytes, {len(lines) / seconds:,.0f} records/s, SHA-256 {digest}")
    return digest


def main() -> int:
    lines = DATA.read_bytes().splitlines()[1:]
    with embedded_broker() as brokers:
        print(f"embedded broker at {brokers}; {len(lines):,} records in {DATA.name}")
        start = time.monotonic()
        anyio.run(produce, brokers, lines)
        produced = time.monotonic()
        received = consume(brokers, len(lines))
        consumed = time.monotonic()
    went_in = summary("in ", lines, produced - start)
    came_out = summary("out", received, consumed - produced)
    print("the digests agree" if went_in == came_out else "THE DIGESTS DIFFER")
    return 0 if went_in == came_out else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
