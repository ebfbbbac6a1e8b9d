"""The longest time without a record of some partition, while the brokers of a group are killed, paused and restarted.

    python -m benchmarks.stalls                              # this client, both protocols, and aiokafka
    python -m benchmarks.stalls --clients pykafka08,aiokafka,java --rounds 2
    python -m benchmarks.stalls --session-ms 45000           # one session time-out for all, not each client's default

Groups of every client read one topic of a real Kafka with three brokers at the same time, each member in its own
process, and a producer writes to every partition four times a second.  In each round every broker is killed and
restarted, then paused and resumed; right after each fault one member of each group is closed in the documented way and
replaced.  A stall is the time between two records of one partition that any member of a group has read.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import IO, NamedTuple

from benchmarks.brokers import REPOSITORY, TOOLS

TOPIC = "stalls"
PARTITIONS = 6
WRITE_EVERY = 0.25
DOWN_SECONDS = 10.0
"""Seconds for which a broker stays killed or paused; the controller moves its partitions after 6 s."""
UP_SECONDS = 10.0
"""Seconds between the return of one broker and the next fault."""


class Player(NamedTuple):
    """A client and its group protocol."""

    client: str
    protocol: str

    @property
    def name(self) -> str:
        return f"{self.client}, {self.protocol}"

    @property
    def group_id(self) -> str:
        return f"stalls-{self.client}-{self.protocol}"


# --- one member, in its own process


async def read_with_pykafka08(bootstrap: str, group_id: str, protocol: str, session_ms: int) -> AsyncIterator[int]:
    from pykafka08 import Consumer

    settings = {"session_timeout_ms": session_ms} if session_ms and protocol == "classic" else {}
    async with Consumer(
        TOPIC, bootstrap_servers=bootstrap, group_id=group_id, group_protocol=protocol, **settings
    ) as consumer:
        async for record in consumer:
            yield record.partition


async def read_with_aiokafka(bootstrap: str, group_id: str, _: str, session_ms: int) -> AsyncIterator[int]:
    from aiokafka import AIOKafkaConsumer

    settings = {"session_timeout_ms": session_ms} if session_ms else {}
    consumer = AIOKafkaConsumer(TOPIC, bootstrap_servers=bootstrap, group_id=group_id, **settings)
    await consumer.start()
    try:
        async for record in consumer:
            yield record.partition
    finally:
        await consumer.stop()


READERS: dict[str, Callable[[str, str, str, int], AsyncIterator[int]]] = {
    "pykafka08": read_with_pykafka08,
    "aiokafka": read_with_aiokafka,
}


async def be_member(client: str, bootstrap: str, group_id: str, protocol: str, session_ms: int) -> None:
    """Print the partition of each record until SIGTERM, then close the consumer."""

    async def read() -> None:
        records = READERS[client](bootstrap, group_id, protocol, session_ms)
        try:
            async for partition in records:
                print(f"Partition:{partition}", flush=True)
        finally:
            await records.aclose()  # type: ignore[attr-defined]

    reading = asyncio.ensure_future(read())
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, reading.cancel)
    with suppress(asyncio.CancelledError):
        await reading


async def write(bootstrap: str) -> None:
    """Send a record to every partition four times a second, without waiting for earlier records."""
    from pykafka08 import Producer

    async with Producer(bootstrap, linger_ms=0, delivery_timeout_ms=20_000) as producer:
        while True:
            for partition in range(PARTITIONS):
                with suppress(Exception):
                    producer.enqueue(TOPIC, b"x", partition=partition)
            await asyncio.sleep(WRITE_EVERY)


# --- the groups


class Group:
    """The members of one player, and the times at which any of them read from each partition."""

    def __init__(self, player: Player, cluster: dict[str, str], session_ms: int, logs: Path | None) -> None:
        self.player = player
        self.read_at: dict[int, list[float]] = defaultdict(list)
        self._cluster = cluster
        self._session_ms = session_ms
        self._logs = logs
        self._started = 0
        self._members: list[subprocess.Popen[str]] = []
        self._closing: list[subprocess.Popen[str]] = []

    def add(self) -> None:
        """Start a member."""
        with self._open_log() as log:
            process = subprocess.Popen(self._command(), stdout=subprocess.PIPE, stderr=log, text=True, cwd=REPOSITORY)
        self._members.append(process)
        threading.Thread(target=self._note, args=(process,), daemon=True).start()

    def _open_log(self) -> IO[bytes]:
        self._started += 1
        if self._logs is None:
            return open(os.devnull, "wb")
        self._logs.mkdir(parents=True, exist_ok=True)
        return (self._logs / f"{self.player.group_id}-{self._started}.log").open("wb")

    def _command(self) -> list[str]:
        player, bootstrap, session = self.player, self._cluster["bootstrap"], self._session_ms
        if player.client != "java":
            member = [player.client, bootstrap, player.group_id, player.protocol, str(session)]
            return [sys.executable, "-m", "benchmarks.stalls", "--member", *member]
        settings = [f"group.protocol={player.protocol}"]
        if session and player.protocol == "classic":
            settings.append(f"session.timeout.ms={session}")
        return [
            *(sys.executable, str(TOOLS / "kafka-tool"), self._cluster["dir"], "console-consumer"),
            *("--bootstrap-server", bootstrap, "--topic", TOPIC, "--group", player.group_id),
            *("--property", "print.partition=true"),
            *(part for each in settings for part in ("--consumer-property", each)),
        ]

    def _note(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            found = re.search(r"Partition:(\d+)", line)
            if found is not None:
                self.read_at[int(found[1])].append(time.monotonic())

    def replace_one(self) -> None:
        """Close the oldest member, and start another."""
        oldest = self._members.pop(0)
        oldest.send_signal(signal.SIGTERM)
        self._closing.append(oldest)
        self.add()

    def end(self) -> None:
        for process in (*self._members, *self._closing):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in (*self._members, *self._closing):
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()

    @property
    def is_reading(self) -> bool:
        return len(self.read_at) == PARTITIONS

    def stalls(self, began: float, ended: float) -> list[tuple[float, float, int]]:
        """The longest stall of each partition, longest first: length, start and partition."""
        found = []
        for partition in range(PARTITIONS):
            times = [began, *(at for at in self.read_at[partition] if began <= at <= ended), ended]
            gaps = [(later - earlier, earlier - began, partition) for earlier, later in pairwise(times)]
            found.append(max(gaps))
        return sorted(found, reverse=True)


# --- the run


def faults(folder: str, rounds: int, groups: list[Group]) -> None:
    """Kill, restart, pause and resume each broker in turn, and replace a member of each group after each fault."""

    def broker(action: str, node: int, *options: str) -> None:
        command = [sys.executable, str(TOOLS / "kafka-broker"), folder, action, str(node), *options]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    for _ in range(rounds):
        for begin, end in (("kill", "start"), ("pause", "resume")):
            for node in (1, 2, 3):
                print(f"# {begin} broker {node}", file=sys.stderr, flush=True)
                broker(begin, node)
                for group in groups:
                    group.replace_one()
                time.sleep(DOWN_SECONDS)
                broker(end, node)
                time.sleep(UP_SECONDS)


def run(
    players: list[Player], release: str, members: int, rounds: int, session_ms: int, logs: Path | None = None
) -> None:
    folder = Path(tempfile.mkdtemp(prefix="stalls-")) / "cluster"
    start = [
        *(sys.executable, str(TOOLS / "kafka-up"), release, "--dir", str(folder), "--brokers", "3"),
        *("--topic", f"{TOPIC}:{PARTITIONS}:3", "--prop", "min.insync.replicas=1"),
    ]
    groups: list[Group] = []
    writer: subprocess.Popen[bytes] | None = None
    try:
        started = subprocess.run(start, stdout=subprocess.PIPE, check=True)
        cluster = json.loads(started.stdout.splitlines()[-1])
        cluster["dir"] = str(folder)
        writer = subprocess.Popen([sys.executable, "-m", "benchmarks.stalls", "--write", cluster["bootstrap"]])
        groups = [Group(player, cluster, session_ms, logs) for player in players]
        for group in groups:
            for _ in range(members):
                group.add()
        ready_by = time.monotonic() + 90
        while not all(group.is_reading for group in groups) and time.monotonic() < ready_by:
            time.sleep(0.5)
        time.sleep(5)
        began = time.monotonic()
        faults(str(folder), rounds, groups)
        ended = time.monotonic()
        seconds = ended - began
        print(f"Kafka {release}, {members} members in each group, {rounds} rounds, {seconds:.0f} s")
        for group in groups:
            stalls = group.stalls(began, ended)
            count = sum(len(times) for times in group.read_at.values())
            shown = ", ".join(f"{length:.1f} s (partition {part}, from {at:.0f} s)" for length, at, part in stalls[:3])
            print(f"{group.player.name:22} longest {shown}; {count} records")
    finally:
        for group in groups:
            group.end()
        if writer is not None:
            writer.kill()
            writer.wait()
        subprocess.run([sys.executable, str(TOOLS / "kafka-down"), str(folder), "--now", "--rm"], check=False)
        shutil.rmtree(folder.parent, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", default="pykafka08,aiokafka", help="of pykafka08, aiokafka, java")
    parser.add_argument("--protocols", default="classic,consumer", help="aiokafka has the classic one only")
    parser.add_argument("--release", default="4.3.1")
    parser.add_argument("--members", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--session-ms", type=int, default=0, help="of classic groups; 0 for each client's default")
    parser.add_argument("--logs", type=Path, help="a directory for the members' logs")
    parser.add_argument("--member", nargs=5, help=argparse.SUPPRESS)
    parser.add_argument("--write", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.member is not None:
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
        *who, session_ms = options.member
        asyncio.run(be_member(*who, int(session_ms)))
    elif options.write is not None:
        asyncio.run(write(options.write))
    else:
        clients, protocols = options.clients.split(","), options.protocols.split(",")
        players = [Player(client, protocol) for client in clients for protocol in protocols]
        players = [each for each in players if each != Player("aiokafka", "consumer")]
        run(players, options.release, options.members, options.rounds, options.session_ms, options.logs)


if __name__ == "__main__":
    main()
