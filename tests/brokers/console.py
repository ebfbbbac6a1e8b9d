"""A release's own Java console producer and consumer, with the options spelled as that release wants them."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass

from tests.brokers.releases import Version, version_tuple
from tests.brokers.tools import release_tool_command

TIMEOUT_S = 120
IDLE_MS = 60_000
"""How long the consumer waits for one more record before it gives up."""


class ConsoleError(Exception):
    """A console tool failed or did not end; the text has the end of what it said."""


@dataclass(frozen=True)
class Console:
    """The console tools of a release, aimed at an address; `zookeeper` is wanted by the consumers before 0.9."""

    version: str
    bootstrap: str
    zookeeper: str | None = None

    @property
    def release(self) -> Version:
        return version_tuple(self.version)

    @property
    def codecs(self) -> tuple[str, ...]:
        """The codecs this release's producer can be told to use."""
        if self.release < (0, 8, 2):
            return ("none", "gzip")
        return ("none", "gzip", "snappy", "lz4") + (("zstd",) if self.release >= (2, 1) else ())

    def produce(self, topic: str, lines: list[str], *, codec: str = "none", key_separator: str | None = None) -> None:
        """Send each line as a record, acknowledged; with a key separator what stands before it is the key."""
        where = "--bootstrap-server" if self.release >= (2, 5) else "--broker-list"
        words = [where, self.bootstrap, "--topic", topic, "--request-required-acks", "1"]
        if self.release < (0, 8, 2):
            words += ["--compress"] if codec == "gzip" else []
        else:
            words += ["--compression-codec", codec]
        if key_separator is not None:
            option = "--reader-property" if self.release >= (4, 2) else "--property"
            words += [option, "parse.key=true", option, f"key.separator={key_separator}"]
        self._run("console-producer", words, "".join(line + "\n" for line in lines))

    def consume(
        self,
        topic: str,
        max_messages: int,
        *,
        print_key: bool = False,
        through_zookeeper: bool | None = None,
        isolation_level: str | None = None,
    ) -> list[str]:
        """The first records of a topic, a line each; before 0.9 through ZooKeeper unless told otherwise.

        An isolation level needs 0.11.
        """
        if through_zookeeper is None:
            through_zookeeper = self.release < (0, 9)
        where = ["--zookeeper", str(self.zookeeper)] if through_zookeeper else ["--bootstrap-server", self.bootstrap]
        if not through_zookeeper and self.release < (0, 10, 1):
            where.append("--new-consumer")
        words = [*where, "--topic", topic, "--from-beginning", "--max-messages", str(max_messages)]
        if self.release >= (0, 9):
            words += ["--timeout-ms", str(IDLE_MS)]
        if isolation_level is not None:
            words += ["--isolation-level", isolation_level]
        if print_key:
            option = "--formatter-property" if self.release >= (4, 2) else "--property"
            words += [option, "print.key=true"]
        lines = self._run("console-consumer", words, "").split("\n")
        return lines[:-1]

    def _run(self, tool: str, words: list[str], text: str) -> str:
        command = release_tool_command(self.version, tool, *words)
        try:
            run = subprocess.run(command, input=text, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired as late:
            said = (late.stderr or b"")[-1500:].decode(errors="replace")
            raise ConsoleError(f"{tool} of {self.version} did not end in {TIMEOUT_S} s:\n{said}") from None
        if run.returncode:
            raise ConsoleError(f"{tool} of {self.version} failed ({run.returncode}):\n{run.stderr[-1500:]}")
        return run.stdout
