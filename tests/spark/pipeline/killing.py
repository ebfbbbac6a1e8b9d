"""A run of the pipeline, and the SIGKILL that meets it: of the driver, of a Python worker, or of the broker.

The moment is not left to luck: it is when a new file appears that each stage leaves on its way.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

COMMAND = [sys.executable, "-m", "pykafka08", "pipeline"]
POLL_S = 0.02
PLACES = [
    "starts/shop.json",
    "checkpoints/ingest-shop/offsets/[0-9]*",
    "bronze/shop/data/*/topic=orders/**/*.parquet",
    "bronze/shop/_delta_log/*.json",
    "checkpoints/ingest-shop/commits/[0-9]*",
    "checkpoints/decode-shop/offsets/[0-9]*",
    "rejects/data/decode-shop-*",
    "rejects/data/decode-shop-*/**/*.parquet",
    "rejects/_delta_log/*.json",
    "silver/data/decode-shop-*",
    "silver/data/decode-shop-*/**/*.parquet",
    "silver/_delta_log/*.json",
    "checkpoints/decode-shop/commits/[0-9]*",
    "checkpoints/dead-letters/offsets/[0-9]*",
    "checkpoints/dead-letters/commits/[0-9]*",
    "checkpoints/aggregate-hourly/offsets/[0-9]*",
    "gold/hourly/data/aggregate-hourly-*/**/*.parquet",
    "gold/hourly/_delta_log/*.json",
    "checkpoints/aggregate-hourly/commits/[0-9]*",
    "checkpoints/publish-hourly/offsets/[0-9]*",
    "checkpoints/publish-hourly/commits/[0-9]*",
]
"""Files below the pipeline's folder, in the order in which a run makes them."""
BACKFILL_PLACES = [
    "silver/data/backfill-*",
    "silver/data/backfill-*/**/*.parquet",
    "silver/_delta_log/*.json",
    "gold/hourly/data/backfill-*/**/*.parquet",
    "gold/hourly/_delta_log/*.json",
]
"""Those of a backfill."""
WITH_KAFKA = [one for one in PLACES if "ingest" in one or "bronze" in one or "letters" in one or "publish" in one]
"""Where a stage has to do with a broker."""
Strike = Callable[["Run"], bool]
"""Kill it; False: there is nothing to kill yet."""


@dataclass(frozen=True)
class Kill:
    """What is killed, when the first new file of a pattern is there."""

    victim: str
    place: str


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *words], capture_output=True, text=True, check=False)


class Run:
    """``pipeline run``, or another action, in a session of its own, ended with all that it started."""

    def __init__(self, config: Path, log: Path, *words: str, action: str = "run") -> None:
        self._out = config.parent / "out"
        self._log = log
        with log.open("wb") as output:
            arguments = [action, str(config), *(words or ("--no-charts",))]
            self.process = subprocess.Popen(
                [*COMMAND, *arguments], stdout=output, stderr=output, start_new_session=True
            )

    def files(self, place: str) -> set[Path]:
        return set(self._out.glob(place))

    def is_struck(self, place: str, strike: Strike) -> bool:
        """Whether it came by the place, and the blow fell, before the run was over."""
        before = self.files(place)
        while self.process.poll() is None:
            if self.files(place) - before and strike(self):
                return True
            time.sleep(POLL_S)
        return False

    def workers(self) -> list[int]:
        """The Python processes of Spark: the daemon, and what it forks for tasks, sources and sinks."""
        mine = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if self._is_mine(pid)]
        return sorted(pid for pid in mine if b"pyspark.daemon" in _command_line(pid))

    def _is_mine(self, pid: int) -> bool:
        try:
            return os.getsid(pid) == self.process.pid
        except ProcessLookupError:
            return False

    def end(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)  # the JVM, too
        self.process.wait()

    def text(self) -> str:
        return self._log.read_text(errors="replace")


def kill_driver(run: Run) -> bool:
    run.end()
    return True


def kill_worker(chance: random.Random) -> Strike:
    def strike(run: Run) -> bool:
        workers = run.workers()
        if workers:
            os.kill(chance.choice(workers), signal.SIGKILL)
        return bool(workers)

    return strike


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
