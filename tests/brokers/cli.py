"""The commands kafka-up, kafka-down, kafka-broker, kafka-tool: arguments in, JSON lines out, one message on failure."""

from __future__ import annotations

import argparse
import functools
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from tests.brokers import control
from tests.brokers.containers import fill_context
from tests.brokers.jars import TOOL_CLASSES, resolve
from tests.brokers.model import PORTS_PER_CLUSTER, ClusterError, Property, load
from tests.brokers.processes import is_alive
from tests.brokers.releases import ALIASES, TOOLS_OF, full_version
from tests.brokers.start import Plan, start
from tests.brokers.tools import tool_command
from tests.brokers.topics import parse_topic


def command(main: Callable[[], int]) -> Callable[[], int]:
    """Turn what goes wrong into a message and an exit status."""

    @functools.wraps(main)
    def run() -> int:
        signal.signal(signal.SIGTERM, _terminated)
        try:
            return main()
        except ClusterError as error:
            print(f"{Path(sys.argv[0]).name}: {error}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            return 130

    return run


def _terminated(_number: int, _frame: object) -> NoReturn:
    sys.exit(143)


def parse_prop(text: str) -> Property:
    """[BROKER_ID:]KEY=VALUE"""
    key, equals, value = text.partition("=")
    broker, colon, rest = key.partition(":")
    if not equals or not key or (colon and not broker.isdecimal()):
        raise ClusterError(f"--prop is [BROKER_ID:]KEY=VALUE, not {text}")
    return Property(int(broker), rest, value) if colon else Property(None, key, value)


def _up_parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(
        prog="kafka-up", description="Start a real Kafka cluster; prints one JSON line about it."
    )
    p.add_argument("version", help="2.8.2, say, or a short form: " + ", ".join(ALIASES))
    p.add_argument("--dir", type=Path, help="folder for its files (empty, or an earlier stopped cluster's)")
    p.add_argument("--brokers", type=int, default=1, help="1 to 9, with the ids 1..N (default 1)")
    p.add_argument(
        "--base-port",
        type=int,
        default=0,
        help=f"first of a block of {PORTS_PER_CLUSTER} ports (default: a free block): +0 ZooKeeper or the KRaft "
        "controller, +ID plaintext, +10+ID SASL, +20+ID SSL, +30+ID SASL over SSL, +40+ID mutual SSL",
    )
    p.add_argument("--topic", action="append", default=[], metavar="NAME[:PARTITIONS[:REPLICAS[:k=v,...]]]")
    p.add_argument("--prop", action="append", default=[], metavar="[ID:]KEY=VALUE", help="a broker property")
    p.add_argument(
        "--sasl", default="", metavar="MECHANISMS", help="plain,scram-sha-256,scram-sha-512,gssapi: adds a listener"
    )
    p.add_argument("--kerberos", type=Path, help="with --sasl gssapi: folder of a KDC (tests/security/kdc.py)")
    p.add_argument(
        "--ssl", action="store_true", help="adds an SSL listener (with --sasl SASL_SSL), with a CA of its own"
    )
    p.add_argument(
        "--mutual-ssl", action="store_true", help="with --ssl: adds the listener MUTUAL_SSL, which demands certificates"
    )
    p.add_argument(
        "--certificates",
        type=Path,
        help="with --ssl: a folder with a CA and certificates for several clusters; created if missing",
    )
    p.add_argument("--kraft", action="store_true", help="without ZooKeeper (3.3 and later; 4.x always)")
    p.add_argument("--docker", action="store_true", help="containers instead of processes (docker/README.md)")
    p.add_argument("--feature", action="append", default=[], metavar="NAME=LEVEL", help="a KRaft feature level")
    p.add_argument("--chroot", default="", metavar="/PATH", help="keep the cluster under this path in ZooKeeper")
    p.add_argument("--heap", default="384m", help="heap of each broker (default 384m)")
    p.add_argument("--peak", action="store_true", help="for benchmarks: full JIT and G1, not small and quick to start")
    p.add_argument("--jvm", default="", metavar="FLAGS", help="more JVM flags, in one string: --jvm='-Dx=y -Xint'")
    p.add_argument("--timeout", type=float, default=120, help="seconds to wait for the brokers (default 120)")
    p.add_argument("--fetch-only", action="store_true", help="only bring the jars into the cache")
    return p


@command
def kafka_up() -> int:
    args = _up_parser().parse_args()
    if args.fetch_only:
        version = full_version(args.version)
        jars = resolve(version)
        if version in TOOLS_OF:
            resolve(TOOLS_OF[version])
        print(json.dumps({"version": version, "jars": str(jars)}))
        return 0
    if args.dir is None:
        raise ClusterError("--dir is needed")
    plan = Plan(
        version=args.version,
        folder=args.dir,
        brokers=args.brokers,
        topics=[parse_topic(text, args.brokers) for text in args.topic],
        props=[parse_prop(text) for text in args.prop],
        sasl=[name.lower() for name in args.sasl.split(",") if name],
        kerberos=args.kerberos,
        ssl=args.ssl,
        mutual_ssl=args.mutual_ssl,
        certificates=args.certificates,
        kraft=args.kraft,
        docker=args.docker,
        features=args.feature,
        chroot=args.chroot,
        base_port=args.base_port,
        heap=args.heap,
        peak=args.peak,
        jvm=args.jvm.split(),
        timeout=args.timeout,
    )
    print(json.dumps(start(plan).summary()), flush=True)
    return 0


@command
def fetch_jars() -> int:
    p = argparse.ArgumentParser(
        prog="fetch-jars", description="Bring releases' jars to where docker/Dockerfile wants them."
    )
    p.add_argument("version", nargs="+", help="2.8.2, say, or a short form: " + ", ".join(ALIASES))
    for version in p.parse_args().version:
        print(fill_context(full_version(version)))
    return 0


@command
def kafka_down() -> int:
    p = argparse.ArgumentParser(prog="kafka-down", description="End the processes recorded in DIR, by pid.")
    p.add_argument("dir", type=Path)
    p.add_argument("--now", action="store_true", help="SIGKILL at once")
    p.add_argument("--rm", action="store_true", help="remove the cluster's files too")
    p.add_argument("--timeout", type=float, default=20, help="seconds for an orderly end before SIGKILL (default 20)")
    args = p.parse_args()
    control.take_down(args.dir, at_once=args.now, remove=args.rm, timeout=args.timeout)
    return 0


@command
def kafka_broker() -> int:
    actions = ("stop", "kill", "pause", "resume", "start", "restart", "status", "log")
    p = argparse.ArgumentParser(
        prog="kafka-broker", description="Act on one process of a cluster, by its recorded pid."
    )
    p.add_argument("dir", type=Path)
    p.add_argument("action", choices=actions)
    p.add_argument("id", nargs="?", help="broker id, or 'zookeeper' / 'controller' (not needed for status)")
    p.add_argument("--timeout", type=float, default=60)
    p.add_argument("--no-wait", action="store_true", help="start: don't wait until it answers")
    args = p.parse_args()
    cluster = load(args.dir)
    if args.action == "status":
        for row in control.status(cluster):
            if args.id in (None, row["id"]):
                print(json.dumps(row))
        return 0
    if not args.id:
        raise ClusterError(f"{args.action} wants a broker id")
    if args.action == "log":
        print(control.log(cluster, args.id), end="")
        return 0
    if args.action not in ("start", "restart") and not is_alive(cluster.process(args.id)):
        raise ClusterError(f"{args.id} is not running")
    if args.action in ("pause", "resume"):
        control.set_paused(cluster, args.id, args.action == "pause")
    if args.action in ("stop", "kill", "restart"):
        number = signal.SIGKILL if args.action == "kill" else signal.SIGTERM
        control.end_process(cluster, args.id, number, args.timeout)
    if args.action in ("start", "restart"):
        process = control.start_process(args.dir.resolve(), args.id, args.timeout, wait=not args.no_wait)
        print(json.dumps({"id": args.id, "pid": process.pid}))
    return 0


@command
def kafka_tool() -> int:
    p = argparse.ArgumentParser(
        prog="kafka-tool",
        description="Run a class from the cluster's jars, known by its name or as one of: " + ", ".join(TOOL_CLASSES),
        epilog="{bootstrap}, {zookeeper} and {dir} in an argument are filled in. KAFKA_TOOL_JVM holds more JVM flags.",
    )
    p.add_argument("dir", type=Path)
    p.add_argument("tool", metavar="CLASS")
    p.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGUMENT")
    args = p.parse_args()
    words = tool_command(load(args.dir), args.tool, *args.arguments)
    os.execv(shutil.which(words[0]) or words[0], words)  # noqa: S606 - takes no shell
