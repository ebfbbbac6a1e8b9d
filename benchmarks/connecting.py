"""How long a client takes to connect, over each security protocol, beside aiokafka and confluent-kafka.

    python -m benchmarks.connecting [--rounds 15] [--release 4.3.1]

A real broker is started from its jars.  A turn makes a producer, waits for the metadata of the cluster, and closes
it; the clock runs from the first step to the second.  The clients take turns in one process; the first round is not
counted.  Medians in milliseconds, with least and most.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from statistics import median

import anyio

from benchmarks.brokers import secured_broker

USER, PASSWORD = "alice", "alice-secret"
WAYS = (
    ("PLAINTEXT", None),
    ("SSL", None),
    ("SASL_SSL", "PLAIN"),
    ("SASL_SSL", "SCRAM-SHA-256"),
    ("SASL_SSL", "SCRAM-SHA-512"),
)
Connect = Callable[[str, str, "str | None", str], float]


def ours(bootstrap: str, protocol: str, mechanism: str | None, ca_file: str) -> float:
    from pykafka08 import Producer

    settings: dict[str, object] = {"security_protocol": protocol}
    if protocol != "PLAINTEXT":
        settings["ssl_cafile"] = ca_file
    if mechanism:
        settings |= {"sasl_mechanism": mechanism, "sasl_plain_username": USER, "sasl_plain_password": PASSWORD}

    async def connect() -> float:
        began = time.perf_counter()
        async with Producer(bootstrap, **settings):
            return time.perf_counter() - began

    return anyio.run(connect)


def aiokafka(bootstrap: str, protocol: str, mechanism: str | None, ca_file: str) -> float:
    from aiokafka import AIOKafkaProducer
    from aiokafka.helpers import create_ssl_context

    async def connect() -> float:
        began = time.perf_counter()
        settings: dict[str, object] = {"security_protocol": protocol}
        if protocol != "PLAINTEXT":
            settings["ssl_context"] = create_ssl_context(cafile=ca_file)
        if mechanism:
            settings |= {"sasl_mechanism": mechanism, "sasl_plain_username": USER, "sasl_plain_password": PASSWORD}
        async with AIOKafkaProducer(bootstrap_servers=bootstrap, **settings):
            return time.perf_counter() - began

    return anyio.run(connect)


def confluent(bootstrap: str, protocol: str, mechanism: str | None, ca_file: str) -> float:
    from confluent_kafka import Producer

    settings = {"bootstrap.servers": bootstrap, "security.protocol": protocol.lower(), "log_level": 0}
    if protocol != "PLAINTEXT":
        settings["ssl.ca.location"] = ca_file
    if mechanism:
        settings |= {"sasl.mechanism": mechanism, "sasl.username": USER, "sasl.password": PASSWORD}
    began = time.perf_counter()
    producer = Producer(settings)
    producer.list_topics(timeout=20)
    return time.perf_counter() - began


CLIENTS: dict[str, Connect] = {"pykafka08": ours, "aiokafka": aiokafka, "confluent-kafka": confluent}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--release", default="4.3.1")
    options = parser.parse_args()
    with secured_broker(options.release) as broker:
        for protocol, mechanism in WAYS:
            taken: dict[str, list[float]] = {name: [] for name in CLIENTS}
            for number in range(options.rounds + 1):
                names = list(CLIENTS)
                shift = number % len(names)
                for name in names[shift:] + names[:shift]:
                    seconds = CLIENTS[name](broker.listeners[protocol], protocol, mechanism, broker.ca_file)
                    if number:
                        taken[name].append(seconds * 1000)
            shown = "; ".join(
                f"{name} {median(each):.1f} ({min(each):.1f}..{max(each):.1f})" for name, each in taken.items()
            )
            print(f"{' '.join(filter(None, (protocol, mechanism))):24} {shown}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
