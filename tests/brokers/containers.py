"""Containers in the place of processes: a release's image, and what Docker is asked to do with one container.

Needed: the docker program and an engine whose published ports are this machine's. What goes into the image and what a
container's environment says is in `docker/` of the project. Not here: which containers make a cluster (pod).
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

from tests.brokers.jars import resolve
from tests.brokers.model import ClusterError, Process

CONTEXT = Path(__file__).resolve().parents[2] / "docker"
LABEL = "pykafka08.brokers"
"""Every container has it: `docker ps --all --filter label=pykafka08.brokers`."""
BUILD_TIMEOUT_S = 600
DOCKER_TIMEOUT_S = 60


def docker(*words: str, timeout: float = DOCKER_TIMEOUT_S) -> str:
    """What a docker command printed; ClusterError with what it said when it fails."""
    try:
        run = subprocess.run(
            ["docker", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout, check=False
        )
    except FileNotFoundError:
        raise ClusterError("docker is not installed; Debian's package is called docker.io") from None
    except subprocess.TimeoutExpired:
        raise ClusterError(f"docker {words[0]}: no end after {timeout:.0f} s") from None
    if run.returncode:
        raise ClusterError(f"docker {' '.join(words)} failed ({run.returncode}):\n{(run.stdout + run.stderr)[-3000:]}")
    return run.stdout


def no_engine() -> str | None:
    """Why no engine can be used; None when one answers."""
    if shutil.which("docker") is None:
        return "there is no docker on PATH"
    try:
        docker("version", "--format", "{{.Server.Version}}", timeout=20)
    except ClusterError:
        return f"no Docker engine answers at {os.environ.get('DOCKER_HOST') or 'its usual socket'}"
    return None


def fill_context(version: str) -> Path:
    """The release's jars in the build context of the image; links where the file system has them, else copies."""
    folder = CONTEXT / "jars" / version
    draft = folder.with_name(f".{version}-{os.getpid()}")
    source = resolve(version)
    if folder.is_dir() and _sizes(folder) == _sizes(source):
        return folder
    shutil.rmtree(draft, ignore_errors=True)
    shutil.copytree(source, draft, copy_function=_link)
    shutil.rmtree(folder, ignore_errors=True)
    draft.rename(folder)
    return folder


def _sizes(folder: Path) -> dict[str, int]:
    return {file.name: file.stat().st_size for file in folder.iterdir()}


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)


def image(version: str) -> str:
    """The name of the release's image, built from `docker/`; what has not changed since comes from Docker's cache."""
    fill_context(version)
    name = f"pykafka08/kafka:{version}"
    arguments = [f"KAFKA_VERSION={version}"]
    if base := os.environ.get("BASE_IMAGE"):
        arguments.append(f"BASE_IMAGE={base}")
    words = [word for argument in arguments for word in ("--build-arg", argument)]
    docker("build", "--quiet", "--tag", name, *words, str(CONTEXT), timeout=BUILD_TIMEOUT_S)
    return name


def create(image_name: str, *options: str, **environment: str) -> str:
    """A container that is not started yet; its id. Its readiness is looked after from outside: no health check."""
    variables = [word for name, value in environment.items() for word in ("--env", f"{name}={value}")]
    return docker("create", "--no-healthcheck", "--label", LABEL, *options, *variables, image_name).strip()


def start(container: str) -> None:
    """Start it, also once more after its end; its files are still there."""
    docker("start", container)


def state(container: str) -> str:
    """Docker's word: created, running, paused, exited; gone when there is no such container."""
    run = subprocess.run(
        ["docker", "inspect", "--format", "{{.State.Status}}", container],
        capture_output=True,
        text=True,
        timeout=DOCKER_TIMEOUT_S,
        check=False,
    )
    if run.returncode and "no such" not in run.stderr.lower():
        raise ClusterError(f"docker inspect {container} failed: {run.stderr}")
    return "gone" if run.returncode else run.stdout.strip()


def send_signal(container: str, number: int) -> None:
    """SIGSTOP and SIGCONT become pause and unpause of the whole container."""
    now = state(container)
    if number == signal.SIGCONT:
        if now == "paused":
            docker("unpause", container)
    elif number == signal.SIGSTOP:
        if now == "running":
            docker("pause", container)
    elif now in ("running", "paused"):
        try:
            docker("kill", "--signal", signal.Signals(number).name, container)
        except ClusterError:
            if state(container) in ("running", "paused"):  # else it ended in between, which is what counts
                raise


def log(container: str) -> str:
    """All that it has printed."""
    run = subprocess.run(
        ["docker", "logs", container],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=DOCKER_TIMEOUT_S,
        check=False,
    )
    return run.stdout


def remove(processes: list[Process]) -> None:
    """Remove the containers among these processes, running or not."""
    if containers := [process.container for process in processes if process.container is not None]:
        docker("rm", "--force", "--volumes", *containers)
