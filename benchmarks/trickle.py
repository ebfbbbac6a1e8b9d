"""What a consumer of many partitions costs where few of them have news: one record here, one there.

    python -m benchmarks.trickle [--partitions 2000] [--rate 100] [--seconds 10]

Processor time of each client's own process, in per cent of a core and for each record, while another process writes
``rate`` records a second, each to another partition.  The broker is a real one where Java is.  ``--tree`` names a
compiled tree, which plays too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import anyio

from benchmarks.brokers import broker_for

TOPIC = "trickle"
SETTLING_S = 5.0
"""For metadata, positions and the first fetches."""
STEP = 7919
"""From the partition of one record to that of the next."""

Played = tuple[int, float, float]
"""Records, seconds of the processor and of the clock."""


async def play_pykafka08(bootstrap: str, seconds: float) -> Played:
    from pykafka08 import Consumer

    count = 0
    async with Consumer(TOPIC, bootstrap_servers=bootstrap, auto_offset_reset="latest") as consumer:

        async def read_for(span: float) -> None:
            nonlocal count
            with anyio.move_on_after(span):
                async for _ in consumer:
                    count += 1

        await read_for(SETTLING_S)
        count, begin, begin_cpu = 0, time.perf_counter(), time.process_time()
        await read_for(seconds)
        return count, time.process_time() - begin_cpu, time.perf_counter() - begin


async def play_aiokafka(bootstrap: str, seconds: float) -> Played:
    from aiokafka import AIOKafkaConsumer

    count = 0
    consumer = AIOKafkaConsumer(TOPIC, bootstrap_servers=bootstrap, auto_offset_reset="latest")
    await consumer.start()

    async def read() -> None:
        nonlocal count
        async for _ in consumer:
            count += 1

    reader = asyncio.create_task(read())
    await asyncio.sleep(SETTLING_S)
    count, begin, begin_cpu = 0, time.perf_counter(), time.process_time()
    await asyncio.sleep(seconds)
    played = count, time.process_time() - begin_cpu, time.perf_counter() - begin
    reader.cancel()
    await consumer.stop()
    return played


async def play_confluent(bootstrap: str, seconds: float) -> Played:
    from confluent_kafka import OFFSET_END, Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "trickle", "enable.auto.commit": False})
    partitions = consumer.list_topics(TOPIC).topics[TOPIC].partitions
    consumer.assign([TopicPartition(TOPIC, number, OFFSET_END) for number in partitions])

    def read_for(span: float) -> int:
        count, end = 0, time.perf_counter() + span
        while time.perf_counter() < end:
            count += consumer.poll(0.1) is not None
        return count

    read_for(SETTLING_S)
    begin, begin_cpu = time.perf_counter(), time.process_time()
    count = read_for(seconds)
    played = count, time.process_time() - begin_cpu, time.perf_counter() - begin
    consumer.close()
    return played


CLIENTS: dict[str, Callable[..., object]] = {
    "pykafka08": play_pykafka08,
    "aiokafka": play_aiokafka,
    "confluent": play_confluent,
}


def feed(bootstrap: str, partitions: int, rate: int) -> None:
    """Write until this process is ended."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 1, "acks": 1})
    begin, count = time.perf_counter(), 0
    while True:
        while count < (time.perf_counter() - begin) * rate:
            producer.produce(TOPIC, b"x" * 100, partition=count * STEP % partitions)
            count += 1
        producer.poll(0.002)


@contextmanager
def feeding(options: argparse.Namespace, bootstrap: str) -> Iterator[None]:
    command = [sys.executable, "-m", "benchmarks.trickle", "--feed", bootstrap]
    with subprocess.Popen([*command, "--partitions", str(options.partitions), "--rate", str(options.rate)]) as feeder:
        try:
            yield
        finally:
            feeder.terminate()


async def make_topic(bootstrap: str, partitions: int) -> None:
    """With a record in each partition: all of them have leaders then, and logs."""
    from pykafka08 import Admin, NewTopic, Producer

    async with Admin(bootstrap_servers=bootstrap) as admin:
        await admin.create_topics([NewTopic(TOPIC, partitions)])
    async with Producer(bootstrap_servers=bootstrap) as producer:
        for delivery in [producer.enqueue(TOPIC, b"first", partition=number) for number in range(partitions)]:
            await delivery


def show(options: argparse.Namespace, bootstrap: str, client: str, tree: str | None = None) -> None:
    command = [sys.executable, "-m", "benchmarks.trickle", "--client", client, "--bootstrap-server", bootstrap]
    command += ["--seconds", str(options.seconds), *(("--tree", tree) if tree else ())]
    name = f"{client} compiled" if tree else client
    with feeding(options, bootstrap):
        played = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=options.seconds + 120)
    count, cpu_s, wall_s = json.loads(played.stdout)
    of_a_core, each_us = 100 * cpu_s / wall_s, 1e6 * cpu_s / max(1, count)
    print(f"{name:20} {count:7} records {of_a_core:6.1f} % of a core {each_us:7.0f} us each")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=2000)
    parser.add_argument("--rate", type=int, default=100, help="records a second")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--tree", help="a compiled tree")
    parser.add_argument("--release", default="4.3.1", help="of the real broker")
    parser.add_argument("--bootstrap-server", metavar="HOST:PORT", help="another broker; it gets the topic")
    parser.add_argument("--client", choices=CLIENTS, help=argparse.SUPPRESS)
    parser.add_argument("--feed", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.feed:
        feed(options.feed, options.partitions, options.rate)
    if options.client:
        if options.tree is not None:
            sys.path.insert(0, options.tree)
        played = anyio.run(CLIENTS[options.client], options.bootstrap_server, options.seconds)  # type: ignore[arg-type]
        print(json.dumps(played))
        return 0
    with broker_for(options.bootstrap_server, options.release) as broker:
        anyio.run(make_topic, broker.bootstrap, options.partitions)
        print(f"{options.partitions} partitions, {options.rate} records a second, {broker.what}")
        show(options, broker.bootstrap, "pykafka08")
        if options.tree is not None:
            show(options, broker.bootstrap, "pykafka08", options.tree)
        for peer in ("aiokafka", "confluent"):
            show(options, broker.bootstrap, peer)
    return 0


if __name__ == "__main__":
    sys.exit(main())
