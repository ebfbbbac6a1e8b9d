"""Where a benchmark's broker comes from: an address, real Kafka from its jars, or the embedded broker."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Broker", "SecuredBroker", "broker_for", "secured_broker"]

REPOSITORY = Path(__file__).resolve().parent.parent
TOOLS = REPOSITORY / "tests" / "brokers"


class Broker:
    """An address and what answers there."""

    def __init__(self, bootstrap: str, what: str) -> None:
        self.bootstrap = bootstrap
        self.what = what


@contextmanager
def broker_for(bootstrap: str | None, release: str) -> Iterator[Broker]:
    """The broker at ``bootstrap``; else Kafka ``release`` if Java and Maven are there; else the embedded broker."""
    if bootstrap is not None:
        yield Broker(bootstrap, f"the broker at {bootstrap}")
    elif shutil.which("java") and shutil.which("mvn"):
        with _real(release) as broker:
            yield broker
    else:
        with _embedded() as broker:
            yield broker


@contextmanager
def _real(release: str) -> Iterator[Broker]:
    with _started(release) as cluster:
        yield Broker(cluster["bootstrap"], f"Apache Kafka {cluster['version']}, one broker on this machine")


class SecuredBroker(NamedTuple):
    """A real broker with all listeners, by security protocol, and the PEM file of its CA."""

    listeners: dict[str, str]
    ca_file: str


@contextmanager
def secured_broker(release: str) -> Iterator[SecuredBroker]:
    """Kafka ``release`` with TLS, PLAIN and SCRAM; its user is alice, with the password alice-secret."""
    with _started(release, "--ssl", "--sasl", "plain,scram-sha-256,scram-sha-512") as cluster:
        listeners = {
            "PLAINTEXT": cluster["bootstrap"],
            "SSL": cluster["bootstrap_ssl"],
            "SASL_PLAINTEXT": cluster["bootstrap_sasl"],
            "SASL_SSL": cluster["bootstrap_sasl_ssl"],
        }
        yield SecuredBroker(listeners, cluster["ssl"]["ca"])


@contextmanager
def _started(release: str, *more: str) -> Iterator[dict[str, Any]]:
    """What ``kafka-up`` prints; the cluster ends with this block."""
    folder = Path(tempfile.mkdtemp(prefix="benchmark-")) / "cluster"
    options = ["--dir", str(folder), "--peak", "--heap", "1g", *more]
    try:
        command = [sys.executable, str(TOOLS / "kafka-up"), release, *options]
        started = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        yield json.loads(started.stdout.splitlines()[-1])
    finally:
        if folder.exists():
            subprocess.run([sys.executable, str(TOOLS / "kafka-down"), str(folder), "--now", "--rm"], check=False)
        shutil.rmtree(folder.parent, ignore_errors=True)


@contextmanager
def _embedded() -> Iterator[Broker]:
    command = [sys.executable, "-m", "pykafka08", "broker"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=REPOSITORY) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            bootstrap = process.stdout.readline().decode().strip().removeprefix("BROKERS=")
            yield Broker(bootstrap, "pykafka08's embedded broker (NO JAVA HERE: the broker may be what is measured)")
        finally:
            process.stdin.close()
