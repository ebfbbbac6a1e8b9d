"""Processes by their recorded pid, or container: started, looked at, signalled, waited for. Never by a name.

A pid alone may be another process by now, so each is recorded with its start time and both must agree.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

from tests.brokers import containers
from tests.brokers.model import ClusterError, Process


def start_time(pid: int) -> str | None:
    """What tells this process from a later one with the same pid; None when it is gone, or a zombie."""
    fields = _stat(pid)
    return None if fields is None or fields[0] in "ZX" else fields[19]


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat from the state on (the name before it may hold anything)."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text.rsplit(")", 1)[1].split()


def is_alive(process: Process) -> bool:
    if process.container is not None:
        return containers.state(process.container) in ("running", "paused")
    return process.pid is not None and process.started is not None and start_time(process.pid) == process.started


def is_paused(process: Process) -> bool:
    if process.container is not None:
        return containers.state(process.container) == "paused"
    fields = _stat(process.pid) if process.pid is not None else None
    return fields is not None and fields[0] == "T"


def rss_mib(process: Process) -> int | None:
    """Resident memory in MiB; None when the process is gone, or a container's."""
    if process.container is not None or not is_alive(process):
        return None
    try:
        status = Path(f"/proc/{process.pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    found = re.search(r"VmRSS:\s+(\d+)", status)
    return int(found[1]) // 1024 if found else None


def launch(process: Process, folder: Path) -> subprocess.Popen[bytes] | None:
    """Start it in a session of its own, so that a terminal's Ctrl-C does not reach it; None for a container."""
    if process.container is not None:
        containers.start(process.container)
        return None
    with Path(process.log).open("ab") as log:
        child = subprocess.Popen(
            process.command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=folder,
            start_new_session=True,
            env={**os.environ, "LC_ALL": "C.UTF-8"},
        )
    process.pid = child.pid
    process.started = start_time(child.pid)
    return child


def send_signal(process: Process, number: int) -> None:
    if process.container is not None:
        containers.send_signal(process.container, number)
    elif is_alive(process) and process.pid is not None:
        with contextlib.suppress(ProcessLookupError):  # it ended in between, which is what counts
            os.kill(process.pid, number)


def wait_gone(processes: Iterable[Process], timeout: float) -> bool:
    """Whether all have ended within the time (seconds)."""
    watched = list(processes)
    end = time.monotonic() + timeout
    while any(is_alive(process) for process in watched):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def end_all(processes: Iterable[Process], *, at_once: bool, timeout: float) -> None:
    """SIGTERM, and SIGKILL to what is there after the time; with `at_once` SIGKILL at once. Paused ones as well."""
    watched = list(processes)
    for process in watched:
        send_signal(process, signal.SIGKILL if at_once else signal.SIGTERM)
        send_signal(process, signal.SIGCONT)
    if wait_gone(watched, timeout):
        return
    for process in watched:
        send_signal(process, signal.SIGKILL)
    if not wait_gone(watched, 10):
        raise ClusterError(f"still there after SIGKILL: {[process.pid for process in watched if is_alive(process)]}")


def run_quietly(command: list[str], what: str, timeout: float = 120) -> str:
    """Run to the end and return what it printed; anything but success is a ClusterError with the end of that."""
    try:
        run = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
            check=False,
        )
    except FileNotFoundError:
        raise ClusterError(f"{what}: {command[0]} is not installed") from None
    except subprocess.TimeoutExpired:
        raise ClusterError(f"{what}: no end after {timeout:.0f} s") from None
    if run.returncode:
        raise ClusterError(f"{what} failed ({run.returncode}):\n{run.stdout[-3000:]}")
    return run.stdout


def log(process: Process) -> str:
    """All that it has logged."""
    if process.container is not None:
        return containers.log(process.container)
    return Path(process.log).read_text(errors="replace")


def tail(process: Process, lines: int = 60) -> str:
    """The end of its log."""
    try:
        return "\n".join(log(process).splitlines()[-lines:])
    except FileNotFoundError:
        return "(no log)"
