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

from tests.security.kdc import running_kdc
from tests.security.oauth_broker import unsigned_properties

__all__ = ["Broker", "SecuredBroker", "broker_for", "secured_broker"]

USER = "alice"
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
    """A real broker with all listeners, by security protocol, the PEM file of its CA, and its KDC's environment."""

    listeners: dict[str, str]
    ca_file: str
    environment: dict[str, str]


@contextmanager
def secured_broker(release: str) -> Iterator[SecuredBroker]:
    """Kafka ``release`` with TLS and every mechanism; its user is alice, with the password alice-secret, and a ticket.

    Tokens of OAUTHBEARER are unsigned.
    """
    mechanisms = "plain,scram-sha-256,scram-sha-512,gssapi"
    props = [
        f"sasl.enabled.mechanisms={mechanisms.upper()},OAUTHBEARER",
        *unsigned_properties(("sasl_plaintext", "sasl_ssl")),
    ]
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder, running_kdc(Path(folder)) as kdc:
        kdc.kinit(USER, password=f"{USER}-secret")
        options = ["--ssl", "--sasl", mechanisms, "--kerberos", folder]
        options += [word for prop in props for word in ("--prop", prop)]
        with _started(release, *options) as cluster:
            yield _secured(cluster, kdc.environment)


def _secured(cluster: dict[str, Any], environment: dict[str, str]) -> SecuredBroker:
    listeners = {
        "PLAINTEXT": cluster["bootstrap"],
        "SSL": cluster["bootstrap_ssl"],
        "SASL_PLAINTEXT": cluster["bootstrap_sasl"],
        "SASL_SSL": cluster["bootstrap_sasl_ssl"],
    }
    return SecuredBroker(listeners, cluster["ssl"]["ca"], environment)


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
