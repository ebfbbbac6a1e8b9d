"""Produce and consume with this client, aiokafka and kafka-python, turn by turn against one broker.

    python benchmarks/run.py

Every turn is a process of its own; the order of the clients changes with each round; a first round is not counted; the
figures are medians.  Counts and sizes are verified each time: those of a producer by the broker's own log end offset.
That is read by librdkafka, which also fills the topics that are consumed.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

from benchmarks.brokers import broker_for  # noqa: E402
from benchmarks.jobs import BATCH_BYTES, JOBS, Job, Measured, values_of  # noqa: E402
from benchmarks.worker import WARM_UP_RECORDS  # noqa: E402

CLIENTS = ("pykafka08", "aiokafka", "kafka_python")
REFERENCE = "aiokafka"
TURN_TIMEOUT_S = 300


@dataclass
class Case:
    """One job at one size, and what each client needed for it in each round."""

    job: Job
    size: int
    records: int
    turns: dict[str, list[Measured]] = field(default_factory=lambda: defaultdict(list))


def main() -> int:
    options = _parser().parse_args()
    descriptions = {client: _worker(client, "describe", "-", "-", 0, 0) for client in options.clients}
    with broker_for(options.bootstrap_server, options.release) as broker:
        _print_setting(broker.what, options, descriptions)
        cases = [
            Case(job, size, records)
            for size, records in ((100, options.small), (1024, options.large))
            for job in JOBS
            if job.name in options.jobs
        ]
        for size in sorted({case.size for case in cases if case.job.kind == "consume"}):
            _fill(broker.bootstrap, _filled(size), size, max(case.records for case in cases if case.size == size))
        for round_number in range(options.rounds + 1):
            for case in cases:
                _play(case, round_number, broker.bootstrap, descriptions)
            if round_number == 0:  # the broker's own code was still being compiled
                for case in cases:
                    case.turns.clear()
            print(f"round {round_number} of {options.rounds} done", file=sys.stderr, flush=True)
    for case in cases:
        _print_case(case, descriptions)
    if options.json:
        _write_json(options.json, broker.what, descriptions, cases)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--bootstrap-server", metavar="HOST:PORT", help="use this broker; it must create topics by itself")
    add("--release", default="4.3.1", help="start this release of Kafka where Java and Maven are there; default 4.3.1")
    add("--rounds", type=int, default=5)
    add("--small", type=int, default=200_000, metavar="N", help="records of 100 bytes in a turn")
    add("--large", type=int, default=50_000, metavar="N", help="records of 1 KiB in a turn")
    add("--jobs", nargs="+", default=[job.name for job in JOBS], choices=[job.name for job in JOBS])
    add("--clients", nargs="+", default=list(CLIENTS), choices=CLIENTS)
    add("--json", type=Path, metavar="FILE", help="write every turn's figures there")
    return parser


def _worker(client: str, job: str, bootstrap: str, topic: str, records: int, size: int) -> dict[str, Any]:
    words = [client, job, bootstrap, topic, str(records), str(size)]
    turn = subprocess.run(
        [sys.executable, "-m", "benchmarks.worker", *words],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        timeout=TURN_TIMEOUT_S,
        check=True,
    )
    described: dict[str, Any] = json.loads(turn.stdout)
    return described


def _filled(size: int) -> str:
    return f"benchmark-read-{size}"


def _fill(bootstrap: str, topic: str, size: int, records: int) -> None:
    """The topic that every client reads, written by a client that is not measured."""
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": 1,
            "linger.ms": 50,
            "batch.size": BATCH_BYTES,
            "batch.num.messages": 10**6,
        }
    )
    for index, value in enumerate(values_of(records, size)):
        producer.produce(topic, value, partition=0)
        if index % 10_000 == 0:
            producer.flush()
    producer.flush()
    if _end_offset(bootstrap, topic) != records:
        raise SystemExit(f"{topic} was not filled with {records} records: has the broker kept it from an earlier run?")


def _end_offset(bootstrap: str, topic: str) -> int:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "benchmark", "log_level": 0})
    try:
        metadata = consumer.list_topics(timeout=10)
        if topic not in metadata.topics:
            return 0
        return int(consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)[1])
    finally:
        consumer.close()


def _play(case: Case, round_number: int, bootstrap: str, descriptions: dict[str, Any]) -> None:
    clients = [client for client in descriptions if case.job.name in descriptions[client]["ways"]]
    turn = round_number % len(clients)
    for client in clients[turn:] + clients[:turn]:
        reads = case.job.kind == "consume"
        topic = _filled(case.size) if reads else f"benchmark-written-{case.size}"
        before = 0 if reads else _end_offset(bootstrap, topic)
        measured = Measured(**_worker(client, case.job.name, bootstrap, topic, case.records, case.size))
        if not reads:
            written = _end_offset(bootstrap, topic) - before
            if written != case.records + min(WARM_UP_RECORDS, case.records):
                raise SystemExit(f"{client} wrote {written} records in {case.job.name}, not {case.records}")
        if (measured.records, measured.size) != (case.records, case.records * case.size):
            raise SystemExit(f"{client} counted {measured.records} records of {measured.size} bytes in {case.job.name}")
        case.turns[client].append(measured)


def _print_setting(what: str, options: argparse.Namespace, descriptions: dict[str, Any]) -> None:
    print(f"broker:  {what}")
    print(f"machine: {_processor()}, Python {platform.python_version()}, {platform.system()} {platform.release()}")
    print(f"turns:   {options.rounds} rounds; topic with one partition; no compression")
    print(f"figures: medians; speed and CPU are ratios to {REFERENCE} in the same round")
    for client, description in descriptions.items():
        print(f"{client} {description['version']}: {description['settings']}")
    sys.stdout.flush()


def _processor() -> str:
    import os

    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    return f"{os.cpu_count()} cores, {model}"


def _print_case(case: Case, descriptions: dict[str, Any]) -> None:
    print(f"\n{case.job.name}, {case.records:,} records of {case.size:,} bytes: {case.job.meaning}")
    print(f"  {'client':13} {'records/s':>10} {'slowest..fastest':>21} {'CPU s/M':>8} {'speed':>7} {'CPU':>6}  how")
    for client in (client for client in CLIENTS if client in case.turns):
        turns = case.turns[client]
        speeds, costs = _speeds(turns), _costs(turns)
        spread = f"{min(speeds):,.0f}..{max(speeds):,.0f}"
        ratios = "-", "-"
        if REFERENCE in case.turns:
            reference = case.turns[REFERENCE]
            ratios = _ratio(speeds, _speeds(reference)), _ratio(costs, _costs(reference))
        figures = f"{median(speeds):>10,.0f} {spread:>21} {median(costs):>8.2f} {ratios[0]:>7} {ratios[1]:>6}"
        print(f"  {client:13} {figures}  {descriptions[client]['ways'][case.job.name]}")


def _speeds(turns: list[Measured]) -> list[float]:
    return [turn.records / turn.seconds for turn in turns]


def _costs(turns: list[Measured]) -> list[float]:
    """Seconds of processor time for a million records."""
    return [turn.cpu_s / turn.records * 1e6 for turn in turns]


def _ratio(ours: list[float], theirs: list[float]) -> str:
    """The median over the rounds: what ran side by side is compared."""
    return f"{median(one / other for one, other in zip(ours, theirs, strict=True)):.2f}x"


def _write_json(path: Path, what: str, descriptions: dict[str, Any], cases: list[Case]) -> None:
    figures = [
        {
            "job": case.job.name,
            "size": case.size,
            "turns": {client: [turn._asdict() for turn in turns] for client, turns in case.turns.items()},
        }
        for case in cases
    ]
    facts = {"broker": what, "machine": _processor(), "clients": descriptions, "cases": figures}
    path.write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
