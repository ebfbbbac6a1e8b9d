"""One of docker/'s compose files, brought up as a user does it, under a project name and on ports of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.brokers.containers import CONTEXT, docker, fill_context
from tests.brokers.model import ClusterError
from tests.brokers.processes import start_time
from tests.brokers.readiness import free_base_port

UP_S = 300
"""Building the images the first time counts too."""
HEALTHY_S = 120
SESSION = "pykafka08"
PROJECT = "com.docker.compose.project"
"""Compose's own label, on all that belongs to a project."""


def compose_command() -> list[str]:
    """Compose as a part of docker, else the older program."""
    part = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False)
    if part.returncode == 0:
        return ["docker", "compose"]
    if shutil.which("docker-compose") is None:
        raise ClusterError("neither docker compose nor docker-compose is installed")
    return ["docker-compose"]


@contextmanager
def free_ports(count: int) -> Iterator[list[int]]:
    """Ports that nobody listens on and that the system gives to nobody; other clusters of ours keep off them."""
    base, lock = free_base_port()
    with lock:
        yield [base + number for number in range(count)]


class Composition:
    """A compose file with one of its profiles; `variables` are what the file takes from the environment."""

    def __init__(self, file: str, profile: str, **variables: str) -> None:
        project = f"{SESSION}-{os.getpid()}-{start_time(os.getpid())}-{profile}".replace(".", "-")
        self._command = [*compose_command(), "--file", str(CONTEXT / file), "--project-name", project]
        self._command += ["--profile", profile]
        self._environment = {**os.environ, **variables}

    def run(self, *words: str, timeout: float = UP_S) -> str:
        """What a compose command printed; ClusterError with what it said when it fails."""
        run = subprocess.run(
            [*self._command, *words],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if run.returncode:
            raise ClusterError(f"compose {words[0]} failed ({run.returncode}):\n{(run.stdout + run.stderr)[-3000:]}")
        return run.stdout

    def wait_healthy(self) -> None:
        """Until each container's health check is content; ClusterError with their logs when one is not in time."""
        containers = self.run("ps", "--quiet").split()
        end = time.monotonic() + HEALTHY_S
        while True:
            told = docker("inspect", "--format", "{{.State.Health.Status}}", *containers).split()
            if told == ["healthy"] * len(containers):
                return
            if time.monotonic() > end or "unhealthy" in told:
                raise ClusterError(f"health: {told}\n{self.run('logs', '--tail', '40')}")
            time.sleep(0.5)


def end_leftovers() -> None:
    """Remove the containers and networks of sessions that are gone: they are told by the pid in the project's name."""
    for kind, all_of_them, by_force in (("container", ["--all"], ["--force"]), ("network", [], [])):
        words = [kind, "ls", *all_of_them, "--filter", f"label={PROJECT}"]
        for line in docker(*words, "--format", '{{.ID}} {{.Label "' + PROJECT + '"}}').splitlines():
            ident, project = line.split()
            session, pid, started, *_ = [*project.split("-"), "", "", ""]
            if session == SESSION and pid.isdecimal() and start_time(int(pid)) != started:
                docker(kind, "rm", *by_force, ident)


@contextmanager
def composed(file: str, profile: str, version: str, **variables: str) -> Iterator[Composition]:
    """Up and healthy; down at the end, with all that belongs to it but the images."""
    end_leftovers()
    fill_context(version)
    composition = Composition(file, profile, **variables)
    try:
        composition.run("up", "--detach", "--build")
        composition.wait_healthy()
        yield composition
    finally:
        composition.run("down", "--volumes", "--timeout", "2")
