"""A JVM's old consumer, as a process: the console consumer of a release with ``--zookeeper``, in a group."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import anyio.to_thread
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from tests.brokers.releases import version_tuple
from tests.brokers.tools import release_tool_command

__all__ = ["JavaMember", "java_member"]

KILL_AFTER_S = 30
REGISTERED_WITHIN_S = 120
COMMIT_MS = "500"


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


@asynccontextmanager
async def java_member(
    version: str, zookeeper: str, group: str, name: str, *what: str, properties: Mapping[str, str] | None = None
) -> AsyncIterator[JavaMember]:
    """A console consumer of that release; ``what`` is what it reads: ``"--topic", "t"`` or ``"--whitelist", ".."``.

    It begins at the end, whatever the properties say, but for ``--from-beginning``; that a group with offsets refuses,
    and up to 0.8.1 it deletes the group.  These take no properties and no name either: their member is called
    after the host and the hour, and is waited for here.
    """
    with tempfile.TemporaryDirectory() as folder:
        has_properties = version_tuple(version) >= (0, 8, 2)
        words = ["--zookeeper", zookeeper, *what]
        if has_properties:
            words += ["--consumer.config", _config(Path(folder), {"group.id": group, "consumer.id": name}, properties)]
        else:
            assert not properties, f"{version} takes none"
            words += ["--group", group, "--autocommit.interval.ms", COMMIT_MS]
        before = set() if has_properties else await anyio.to_thread.run_sync(_members, zookeeper, group)
        member = _start(release_tool_command(version, "console-consumer", *words), Path(folder), f"{group}_{name}")
        try:
            if not has_properties:
                member.member_id = await anyio.to_thread.run_sync(_new_member, zookeeper, group, before)
            yield member
        finally:
            member.kill()


def _config(folder: Path, own: Mapping[str, str], more: Mapping[str, str] | None) -> str:
    settings = {**own, "auto.commit.interval.ms": COMMIT_MS, **(more or {})}
    config = folder / "consumer.properties"
    config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()), encoding="utf-8")
    return str(config)


def _start(command: list[str], folder: Path, member_id: str) -> JavaMember:
    output, log = folder / "out", folder / "err"
    with output.open("wb") as out, log.open("wb") as err:
        environment = {**os.environ, "LC_ALL": "C.UTF-8"}
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment)
    return JavaMember(process, output, log, member_id)


def _members(zookeeper: str, group: str) -> set[str]:
    client = KazooClient(zookeeper)
    client.start(timeout=REGISTERED_WITHIN_S)
    try:
        return set(client.get_children(f"/consumers/{group}/ids"))
    except NoNodeError:
        return set()
    finally:
        client.stop()
        client.close()


def _new_member(zookeeper: str, group: str, before: set[str]) -> str:
    end = time.monotonic() + REGISTERED_WITHIN_S
    while not (found := _members(zookeeper, group) - before):
        assert time.monotonic() < end, f"no JVM member in group {group} within {REGISTERED_WITHIN_S} s"
        time.sleep(0.2)
    (member,) = found
    return member
