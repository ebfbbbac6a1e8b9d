"""How long a client takes to connect, over each security protocol, beside aiokafka and confluent-kafka.

    python -m benchmarks.connecting [--rounds 15] [--release 4.3.1]

A real broker is started from its jars, with a KDC.  A turn makes a producer, waits for the metadata of the cluster, and
closes it; the clock runs from the first step to the second.  The clients take turns in one process; the first round is
not counted.  Medians in milliseconds, with minimum and maximum.  With OAUTHBEARER every client sends the same unsigned
token, with GSSAPI a ticket of kinit; the wheels of confluent-kafka are built without GSSAPI.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import sys
import time
from collections.abc import Callable
from statistics import median

import anyio

from benchmarks.brokers import secured_broker

USER, PASSWORD = "alice", "alice-secret"
TOKEN_S = 3600
PASSWORDS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
WAYS = (
    ("PLAINTEXT", None),
    ("SSL", None),
    *(("SASL_SSL", mechanism) for mechanism in (*PASSWORDS, "OAUTHBEARER", "GSSAPI")),
)
Connect = Callable[[str, str, "str | None", str], float]


def _token() -> tuple[str, float]:
    """An unsigned token, and when it expires (Unix time)."""
    now = time.time()
    parts = {"alg": "none"}, {"sub": USER, "iat": now - 1, "exp": now + TOKEN_S}
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts]
    return f"{'.'.join(encoded)}.", now + TOKEN_S


TOKEN, TOKEN_EXPIRY = _token()


def login(mechanism: str | None) -> dict[str, object]:
    """The settings that ours and aiokafka have in common."""
    settings: dict[str, object] = {}
    if mechanism:
        settings["sasl_mechanism"] = mechanism
    if mechanism in PASSWORDS:
        settings |= {"sasl_plain_username": USER, "sasl_plain_password": PASSWORD}
    if mechanism == "GSSAPI":
        settings["sasl_kerberos_domain_name"] = "localhost"
    return settings


def ours(bootstrap: str, protocol: str, mechanism: str | None, ca_file: str) -> float:
    from pykafka08 import Producer

    settings = {"security_protocol": protocol, **login(mechanism)}
    if protocol != "PLAINTEXT":
        settings["ssl_cafile"] = ca_file
    if mechanism == "OAUTHBEARER":
        settings["sasl_oauth_token_provider"] = lambda: TOKEN

    async def connect() -> float:
        began = time.perf_counter()
        async with Producer(bootstrap, **settings):
            return time.perf_counter() - began

    return anyio.run(connect)


def aiokafka(bootstrap: str, protocol: str, mechanism: str | None, ca_file: str) -> float:
    from aiokafka import AIOKafkaProducer
    from aiokafka.abc import AbstractTokenProvider
    from aiokafka.helpers import create_ssl_context

    class Tokens(AbstractTokenProvider):  # type: ignore[misc] - the package has no types
        async def token(self) -> str:
            return TOKEN

    async def connect() -> float:
        began = time.perf_counter()
        settings = {"security_protocol": protocol, **login(mechanism)}
        if protocol != "PLAINTEXT":
            settings["ssl_context"] = create_ssl_context(cafile=ca_file)
        if mechanism == "OAUTHBEARER":
            settings["sasl_oauth_token_provider"] = Tokens()
        async with AIOKafkaProducer(bootstrap_servers=bootstrap, **settings):
            return time.perf_counter() - began

    return anyio.run(connect)


def confluent(bootstrap: str, protocol: str, mechanism: str | None, ca_file: str) -> float:
    from confluent_kafka import Producer

    settings: dict[str, object] = {
        "bootstrap.servers": bootstrap,
        "security.protocol": protocol.lower(),
        "log_level": 0,
    }
    if protocol != "PLAINTEXT":
        settings["ssl.ca.location"] = ca_file
    if mechanism:
        settings["sasl.mechanism"] = mechanism
    if mechanism in PASSWORDS:
        settings |= {"sasl.username": USER, "sasl.password": PASSWORD}
    if mechanism == "OAUTHBEARER":
        settings["oauth_cb"] = lambda _: (TOKEN, TOKEN_EXPIRY)
    began = time.perf_counter()
    producer = Producer(settings)
    producer.poll(0)  # calls oauth_cb
    producer.list_topics(timeout=20)
    return time.perf_counter() - began


CLIENTS: dict[str, Connect] = {"pykafka08": ours, "aiokafka": aiokafka, "confluent-kafka": confluent}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--release", default="4.3.1")
    options = parser.parse_args()
    with secured_broker(options.release) as broker:
        os.environ.update(broker.environment)
        for protocol, mechanism in WAYS:
            clients = [name for name in CLIENTS if (name, mechanism) != ("confluent-kafka", "GSSAPI")]
            taken: dict[str, list[float]] = {name: [] for name in clients}
            for number in range(options.rounds + 1):
                shift = number % len(clients)
                for name in clients[shift:] + clients[:shift]:
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
