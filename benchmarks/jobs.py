"""What is measured: the jobs, the settings that all clients share, and the records."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import NamedTuple

__all__ = [
    "ACKS",
    "BATCH_BYTES",
    "JOBS",
    "LINGER_MS",
    "PARTITION_FETCH_BYTES",
    "Job",
    "Measured",
    "Stopwatch",
    "Task",
    "values_of",
]

ACKS = 1
LINGER_MS = 5
BATCH_BYTES = 128 * 1024
PARTITION_FETCH_BYTES = 1024 * 1024


class Job(NamedTuple):
    """A job that each client does its own way; ``way`` says which of its interfaces is used."""

    name: str
    kind: str
    meaning: str


JOBS = (
    Job("produce", "produce", "hand over each record by a call of its own, then wait until all are acknowledged"),
    Job("produce-batch", "produce", "hand over many records by one call, where the client can"),
    Job("consume", "consume", "take each record from an iterator"),
    Job("consume-batch", "consume", "take many records by one call, then look at each"),
)


@dataclass(frozen=True)
class Task:
    """One job for one worker; ``warm_up`` records are sent before the clock starts."""

    bootstrap: str
    topic: str
    records: int
    size: int
    warm_up: int


class Measured(NamedTuple):
    """What a client did: its own count and size, the seconds of the clock and of its processor."""

    records: int
    size: int
    seconds: float
    cpu_s: float


class Stopwatch:
    """Seconds of the clock and of this process's processor time since it was made."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def stop(self, records: int, size: int) -> Measured:
        return Measured(records, size, time.perf_counter() - self._wall, time.process_time() - self._cpu)


def values_of(count: int, size: int) -> list[bytes]:
    """``count`` values of ``size`` bytes, the same for every client: a thousand different ones, over and over."""
    source = random.Random(8)
    distinct = [source.randbytes(size) for _ in range(min(count, 1000))]
    return [distinct[index % len(distinct)] for index in range(count)]
