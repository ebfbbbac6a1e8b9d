"""Real clusters for tests: one alive at a time, each taken down as it was recorded whatever happens to the tests.

They are processes, or with `--brokers=docker` containers. Not here: a broker that was there before (addressed).

Clusters live in a folder named after the pytest process. A session that was killed leaves its own behind; the next
one that starts finds them and ends them.
"""

from __future__ import annotations

import fcntl
import itertools
import json
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from kazoo.client import KazooClient

from tests import brokers
from tests.brokers import control, probe, topics
from tests.brokers.console import Console
from tests.brokers.model import STATE, Cluster, ClusterError, Topic, load
from tests.brokers.processes import end_all, is_alive, start_time
from tests.brokers.releases import Version, version_tuple
from tests.brokers.tools import tool_command

RELEASES = (
    "0.8.0",
    "0.8.1.1",
    "0.8.2.2",
    "0.9.0.1",
    "0.10.0.1",
    "0.10.2.2",
    "0.11.0.3",
    "1.1.1",
    "2.8.2",
    "3.9.2",
    "4.3.1",
)
"""The releases that every test with the fixture `release` runs on."""

COMMANDS = Path(brokers.__file__).parent
START_TIMEOUT_S = 240
"""Room for fetching a release's jars the first time."""
ZOOKEEPER_S = 60


def codecs_of(version: str) -> tuple[str, ...]:
    """The codecs that a release's brokers and consumers know."""
    release = version_tuple(version)
    return (
        "none",
        "gzip",
        "snappy",
        *(["lz4"] if release >= (0, 8, 2) else []),
        *(["zstd"] if release >= (2, 1) else []),
    )


def run_command(name: str, *words: str) -> str:
    """One of the commands of `tests/brokers`: a process of its own, so that brokers outlive no test as its children."""
    command = [sys.executable, str(COMMANDS / name), *words]
    run = subprocess.run(command, capture_output=True, text=True, timeout=START_TIMEOUT_S, check=False)
    if run.returncode:
        raise ClusterError(run.stderr)
    return run.stdout


@dataclass
class RealCluster:
    """A running cluster, its release's console tools, and what a test may do to its brokers."""

    folder: Path
    _names: itertools.count[int] = field(default_factory=itertools.count)

    def recorded(self) -> Cluster:
        """The cluster as it is recorded now: what has been started again since has another pid."""
        return load(self.folder)

    @cached_property
    def _cluster(self) -> Cluster:
        return self.recorded()

    @property
    def version(self) -> str:
        return self._cluster.version

    @property
    def release(self) -> Version:
        return self._cluster.release

    @property
    def bootstrap(self) -> str:
        return str(self._cluster.bootstrap())

    def listener(self, security_protocol: str) -> str:
        """The bootstrap address of that listener."""
        return str(self._cluster.bootstrap(security_protocol))

    @property
    def mechanisms(self) -> list[str]:
        """The SASL mechanisms of its listeners."""
        return self._cluster.sasl

    @property
    def zookeeper(self) -> str | None:
        return self._cluster.zookeeper_address

    @property
    def codecs(self) -> tuple[str, ...]:
        return codecs_of(self.version)

    @cached_property
    def console(self) -> Console:
        return Console(self.version, self.bootstrap, self.zookeeper)

    def java_produce(self, topic: str, lines: list[str], codec: str = "none") -> None:
        """Send lines with the release's own console producer; returns when they are acknowledged."""
        self.console.produce(topic, lines, codec=codec)

    def java_consume(self, topic: str, max_messages: int) -> list[str]:
        """The first values of a topic, read by the release's own console consumer."""
        return self.console.consume(topic, max_messages)

    def new_topic(self, prefix: str, partitions: int = 1, replicas: int = 1, **configs: str) -> str:
        """A topic nobody else uses, ready; the name begins with the prefix."""
        name = f"{prefix}-{next(self._names)}"
        topics.create_topics(self._cluster, [Topic(name, partitions, replicas, configs)])
        return name

    def log(self, broker: int | str) -> str:
        """All that a broker (or `zookeeper`, `controller`) has logged."""
        return control.log(self.recorded(), str(broker))

    def leader(self, topic: str, partition: int, asked: int) -> int:
        """The leader as the broker `asked` tells it now; -1 is none, or a broker that does not answer."""
        return self.leaders(topic, asked).get(partition, -1)

    def leaders(self, topic: str, asked: int) -> dict[int, int]:
        """The same for every partition, of one answer."""
        return {view.partition: view.leader for view in self._partitions(topic, asked)}

    def controller(self) -> int | None:
        """The broker that is the controller; None in KRaft, where it is a process of its own."""
        if self.zookeeper is None:
            return None
        with self._zookeeper_client() as client:
            return int(json.loads(client.get("/controller")[0])["brokerid"])

    @contextmanager
    def _zookeeper_client(self) -> Iterator[KazooClient]:
        client = KazooClient(self.zookeeper)
        client.start(timeout=ZOOKEEPER_S)
        try:
            yield client
        finally:
            client.stop()
            client.close()

    def preferred_leader(self, topic: str, partition: int, asked: int) -> int:
        """The first of the partition's replicas."""
        return next((view.replicas[0] for view in self._partitions(topic, asked) if view.partition == partition), -1)

    def in_sync(self, topic: str) -> list[int]:
        """How many replicas of each partition are in sync, as every broker knows: the least any of them tells.

        Empty while they do not agree how many partitions there are, or one does not answer.
        """
        if self.release < (0, 9):  # its brokers are not told when a replica comes back, ZooKeeper is
            with self._zookeeper_client() as client:
                partitions = f"/brokers/topics/{topic}/partitions"
                states = [
                    f"{partitions}/{number}/state" for number in sorted(map(int, client.get_children(partitions)))
                ]
                return [len(json.loads(client.get(state)[0])["isr"]) for state in states]
        try:
            views = [
                probe.metadata(self._cluster.port(int(broker)), self.release, [topic]).topics.get(topic, [])
                for broker in self._cluster.brokers
            ]
        except (OSError, struct.error):
            return []
        sizes = [[len(one.isr) for one in sorted(view)] for view in views]
        return [min(column) for column in zip(*sizes, strict=True)] if len(set(map(len, sizes))) == 1 else []

    def _partitions(self, topic: str, asked: int) -> list[probe.PartitionView]:
        try:
            return probe.metadata(self._cluster.port(asked), self.release, [topic]).topics.get(topic, [])
        except (OSError, struct.error):
            return []

    def elect_preferred_leaders(self) -> None:
        """Give every partition back to its preferred leader, through the release's own tool."""
        if self.release < (2, 4):
            self.tool("preferred-election", "--zookeeper", "{zookeeper}")
        else:
            words = ["--bootstrap-server", "{bootstrap}", "--election-type", "preferred", "--all-topic-partitions"]
            self.tool("preferred-election", *words)

    def kill(self, broker: int) -> None:
        """SIGKILL; returns when it is gone."""
        control.end_process(self.recorded(), str(broker), signal.SIGKILL, 10)

    def stop(self, broker: int) -> None:
        """SIGTERM: it hands its partitions over first (0.8.2 and later); returns when it is gone."""
        control.end_process(self.recorded(), str(broker), signal.SIGTERM, 60)

    def start(self, broker: int) -> None:
        """Start a broker that was killed or stopped; returns when it answers."""
        run_command("kafka-broker", self.recorded().dir, "start", str(broker))

    def pause(self, broker: int) -> None:
        control.set_paused(self.recorded(), str(broker), True)

    def resume(self, broker: int) -> None:
        control.set_paused(self.recorded(), str(broker), False)

    def tool(self, name: str, *words: str, timeout: float = 60) -> str:
        """Run one of the release's command line tools; what it printed."""
        command = tool_command(self.recorded(), name, *words)
        run = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
        if run.returncode:
            raise ClusterError(f"{name} failed ({run.returncode}):\n{run.stdout}{run.stderr}")
        return run.stdout

    def is_whole(self) -> bool:
        """Whether every process lives."""
        return all(is_alive(process) for process in self.recorded().processes().values())


class Clusters:
    """Starts clusters; a new one takes the place of the one before, so that memory stays low.

    `options` are `kafka-up`'s, for each of them.
    """

    def __init__(self, folder: Path, options: Sequence[str] = ()) -> None:
        self._folder = folder
        self.options = options
        self._numbers = itertools.count()
        self._current: RealCluster | None = None
        self._arguments: tuple[str, ...] = ()

    def running(
        self, version: str, brokers: int = 1, props: Sequence[str] = (), options: Sequence[str] = ()
    ) -> RealCluster:
        """A whole cluster of this release, the current one if it is that.

        `props` are broker properties k=v, `options` are more of `kafka-up`'s.
        """
        arguments = (version, "--brokers", str(brokers), *options)
        arguments += tuple(word for prop in props for word in ("--prop", prop))
        current = self._current
        if current is not None and self._arguments == arguments and current.is_whole():
            return current
        self.take_down()
        folder = self._folder / str(next(self._numbers))
        summary = json.loads(run_command("kafka-up", *arguments, *self.options, "--dir", str(folder)))
        self._arguments, self._current = arguments, RealCluster(Path(summary["dir"]))
        return self._current

    def take_down(self) -> None:
        """End the current cluster, if there is one, and remove its files."""
        if self._current is not None:
            control.take_down(self._current.folder, at_once=True, remove=True)
            self._current = None


def session_folder(pid: int, root: Path | None = None) -> Path:
    """Where the clusters of a pytest process live; the name tells this process from a later one with its pid."""
    root = root or Path(tempfile.gettempdir()) / "pykafka08-brokers"
    return root / f"{pid}-{start_time(pid)}"


def end_leftovers(root: Path) -> list[Path]:
    """Take down the clusters of sessions that are gone; the folders that were there."""
    ended = []
    root.mkdir(parents=True, exist_ok=True)
    with (root / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the processes of a run begin together, and all look
        for session in sorted(root.glob("*-*")):
            pid, _, started = session.name.partition("-")
            if not pid.isdecimal() or start_time(int(pid)) == started:
                continue
            for state in session.glob(f"*/{STATE}"):
                end_all(load(state.parent).processes().values(), at_once=True, timeout=10)
                control.take_down(state.parent, at_once=True, remove=True)
                ended.append(state.parent)
            shutil.rmtree(session, ignore_errors=True)
    return ended
