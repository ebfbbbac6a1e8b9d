"""A JVM's old consumer, as a process: the console consumer of a release with ``--zookeeper``, in a group."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.brokers.tools import release_tool_command

__all__ = ["JavaMember", "java_member"]

KILL_AFTER_S = 30


class JavaMember:
    """What it has printed is :meth:`lines`; ``member_id`` is its name in the group."""

    def __init__(self, process: subprocess.Popen[bytes], output: Path, log: Path, member_id: str) -> None:
        self.process = process
        self.member_id = member_id
        self._output = output
        self._log = log

    def lines(self) -> list[str]:
        return self._output.read_text(encoding="utf-8", errors="replace").splitlines()

    @property
    def log(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def thread(self, number: int) -> str:
        return f"{self.member_id}-{number}"

    def kill(self) -> None:
        """SIGKILL: its nodes stay until its session ends."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """SIGTERM: it commits, and closes its session."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(KILL_AFTER_S)
            except subprocess.TimeoutExpired:
                self.kill()


@contextmanager
def java_member(
    version: str, zookeeper: str, group: str, name: str, *what: str, properties: Mapping[str, str] | None = None
) -> Iterator[JavaMember]:
    """A console consumer of that release; ``what`` is what it reads: ``"--topic", "t"`` or ``"--whitelist", ".."``.

    It begins at the end, whatever the properties say, but for ``--from-beginning``; that a group with offsets refuses.
    """
    with tempfile.TemporaryDirectory() as folder:
        config, output, log = Path(folder, "consumer.properties"), Path(folder, "out"), Path(folder, "err")
        settings = {
            "group.id": group,
            "consumer.id": name,
            "auto.commit.interval.ms": "500",
            **(properties or {}),
        }
        config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()), encoding="utf-8")
        words = ["--zookeeper", zookeeper, *what, "--consumer.config", str(config)]
        command = release_tool_command(version, "console-consumer", *words)
        with output.open("wb") as out, log.open("wb") as err:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env={**os.environ, "LC_ALL": "C.UTF-8"}
            )
        member = JavaMember(process, output, log, f"{group}_{name}")
        try:
            yield member
        finally:
            member.kill()
