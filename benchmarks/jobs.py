"""One turn of one client: what it is told, what it reports, and the settings that all clients share."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.payload import repeated
from benchmarks.topics import BATCH_BYTES, Profile, ReadTopic, partitions_of

__all__ = [
    "ACKS",
    "BATCH_BYTES",
    "BUFFER_BYTES",
    "FETCH_BYTES",
    "LINGER_MS",
    "PARTITION_FETCH_BYTES",
    "TURN_TIMEOUT_S",
    "UNACKNOWLEDGED",
    "WARM_UP_RECORDS",
    "Measured",
    "Missing",
    "Stopwatch",
    "Task",
    "peak_rss",
]

ACKS = 1
LINGER_MS = 5
PARTITION_FETCH_BYTES = 1024 * 1024
FETCH_BYTES = 50 * 1024 * 1024
BUFFER_BYTES = 64 * 1024 * 1024
"""What a client may hold: fetched and unread, or enqueued and unacknowledged."""
UNACKNOWLEDGED = 1_000_000
"""Records that a producer may hold, where it counts them."""
WARM_UP_RECORDS = 20_000
TURN_TIMEOUT_S = 120


class Missing(Exception):
    """The client, as it is installed here, does not have what a turn asks for."""


@dataclass(frozen=True)
class Task:
    """``way`` is a key of the client's ``MEANINGS``, ``loop`` asyncio or uvloop; ``tree`` holds a compiled package.

    ``warm_topic`` is what a consumer reads before the clock runs, and empty for all others.
    """

    client: str
    way: str
    bootstrap: str
    topic: str
    warm_topic: str
    records: int
    warm_up: int
    profile: Profile
    loop: str = "asyncio"
    tree: str | None = None
    rate: int = 0
    """Records per second of a turn that measures latency."""
    ca_file: str = ""
    """PEM file of the server's CA; empty where the server does not speak TLS."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Task:
        fields: dict[str, Any] = json.loads(text)
        return cls(**{**fields, "profile": Profile(**fields["profile"])})

    def produced(self, records: int) -> tuple[list[bytes], list[bytes] | None]:
        """So many values, and keys if the profile has them."""
        values, keys = self.profile.pool()
        return repeated(values, records), None if keys is None else repeated(keys, records)

    @property
    def is_read(self) -> bool:
        return bool(self.warm_topic)

    def partitions(self, topic: str) -> range:
        """Of the topic itself, or of the one that warms up."""
        return range(partitions_of(topic))

    @property
    def warm_topic_records(self) -> int:
        return ReadTopic.from_name(self.warm_topic).records


@dataclass(frozen=True)
class Measured:
    """What a turn did: its own count of records and of their values' bytes, seconds of the clock and of its processor.

    ``peak_rss`` in bytes is the process's, imports and all.  ``latencies_us`` are sorted microseconds.
    """

    records: int
    value_bytes: int
    seconds: float
    cpu_s: float
    peak_rss: int = 0
    latencies_us: tuple[int, ...] = ()

    def to_json(self) -> str:
        return json.dumps(asdict(self))


class Stopwatch:
    """Seconds of the clock and of this process's processor time, all its threads included, since it was made."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def stop(self, records: int, value_bytes: int) -> Measured:
        seconds, cpu_s = time.perf_counter() - self._wall, time.process_time() - self._cpu
        return Measured(records, value_bytes, seconds, cpu_s, peak_rss())


def peak_rss() -> int:
    """The most memory, in bytes, that this process has had so far; 0 where the system does not tell.

    Not from getrusage: its figure begins with that of the process that started this one.
    """
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0)
