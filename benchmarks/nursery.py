"""Where a player's turns come from: a process that has its client imported (``worker.py``) and forks one for each."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.brokers import REPOSITORY
from benchmarks.jobs import Task

__all__ = ["Nursery", "TurnFailed", "describe"]


class TurnFailed(Exception):
    """A turn ended with an error, or counted wrong."""


class Nursery:
    """Of one client and way; ``tree`` holds a compiled package.  Ready when it is made; to be closed."""

    def __init__(self, client: str, way: str, tree: Path | None = None) -> None:
        command = [sys.executable, "-m", "benchmarks.worker", client, way, *([str(tree)] if tree else [])]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=REPOSITORY,
            text=True,
        )
        self._read_line()

    def turn(self, task: Task) -> dict[str, Any]:
        """What the turn told; TurnFailed if it failed or took too long."""
        stdin = self._process.stdin
        assert stdin is not None
        try:
            stdin.write(task.to_json() + "\n")
            stdin.flush()
        except BrokenPipeError:
            pass  # told when its answer is read
        line = self._read_line()
        told: dict[str, Any] = json.loads(line) if line else {"failed": "its process ended"}
        if "failed" in told:
            raise TurnFailed(told["failed"])
        return told

    def close(self) -> None:
        """End it; a turn that still runs ends by itself."""
        self._process.kill()
        self._process.communicate()

    def _read_line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


def describe(client: str) -> dict[str, Any]:
    """Version, settings and ways of a client."""
    command = [sys.executable, "-m", "benchmarks.worker", "describe", client]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, check=False)
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()
        return {"version": f"not usable: {last[-1] if last else ''}", "settings": "", "ways": {}}
    described: dict[str, Any] = json.loads(done.stdout)
    return described
