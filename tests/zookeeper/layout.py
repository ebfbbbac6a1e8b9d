"""The ZooKeeper of a real cluster, filled with what its own tools and consumers can make, as a dump.

`python -m tests.zookeeper.layout VERSION FILE` records one; the tests read `data/layout-*.json` and dump live clusters.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from pykafka08 import Producer
from tests.brokers.tools import release_tool_command
from tests.integration.clusters import Clusters, RealCluster

RELEASES = ("0.8.2.2", "0.9.0.1", "0.10.2.2", "2.8.2", "3.9.2")
DATA = Path(__file__).parent / "data"
WAIT_S = 120

Dump = dict[str, str]
"""Path -> data, as text."""


def properties_of(version: str) -> tuple[str, ...]:
    """Broker properties with which a release has ACLs and lets everybody do everything all the same.

    They make it a cluster that no other test shares: its broker is paused for longer than its session.
    """
    release = tuple(int(part) for part in version.split("."))
    if release < (0, 9):
        return ("num.replica.fetchers=1",)
    name = "kafka.security.auth.SimpleAclAuthorizer" if release < (2, 4) else "kafka.security.authorizer.AclAuthorizer"
    return (f"authorizer.class.name={name}", "super.users=User:ANONYMOUS", "allow.everyone.if.no.acl.found=true")


@contextmanager
def client(address: str) -> Iterator[KazooClient]:
    zookeeper = KazooClient(address)
    zookeeper.start(timeout=WAIT_S)
    try:
        yield zookeeper
    finally:
        zookeeper.stop()
        zookeeper.close()


def dump(zookeeper: KazooClient, path: str = "/") -> Dump:
    """Everything below a path, except ZooKeeper's own."""
    found: Dump = {}
    waiting = [path]
    while waiting:
        path = waiting.pop()
        try:
            data, _ = zookeeper.get(path)
            children = zookeeper.get_children(path)
        except NoNodeError:
            continue
        found[path] = (data or b"").decode()
        waiting += [f"{path.rstrip('/')}/{name}" for name in children if path != "/" or name != "zookeeper"]
    return dict(sorted(found.items()))


def wait(is_so: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < end, f"{what}: not within {WAIT_S} s"
        time.sleep(0.05)


def fill_and_dump(cluster: RealCluster, *, asks_controller: bool = True) -> Dump:
    """Use what the release has: topics, settings, ACLs, quotas, SCRAM, an old group, partitions that move.

    Without `asks_controller` the last are left out: each tool is a JVM.
    """
    topic = cluster.new_topic("layout", 3, **{"retention.ms": "86400000"})
    for tool, words in _commands(cluster, topic):
        cluster.tool(tool, *words, timeout=WAIT_S)
    anyio.run(_produce, cluster.bootstrap, topic)
    assert cluster.zookeeper is not None
    with client(cluster.zookeeper) as zookeeper:
        found = _with_a_group(cluster, zookeeper, topic)
        return found | (_while_the_controller_sleeps(cluster, zookeeper, topic) if asks_controller else {})


async def _produce(bootstrap: str, topic: str) -> None:
    async with Producer(bootstrap_servers=bootstrap) as producer:
        for value in (b"one", b"two"):
            await producer.send(topic, value, partition=1)


def _commands(cluster: RealCluster, topic: str) -> Iterator[tuple[str, list[str]]]:
    release = cluster.release
    where = ["--zookeeper", "{zookeeper}"] if release < (3,) else ["--bootstrap-server", "{bootstrap}"]
    if release < (0, 9):
        yield "topics", [*where, "--alter", "--topic", topic, "--config", "max.message.bytes=900000"]
        return
    alter = [*where, "--alter", "--entity-type"]
    yield "configs", [*alter, "topics", "--entity-name", topic, "--add-config", "max.message.bytes=900000"]
    yield "configs", [*alter, "clients", "--entity-name", "some-client", "--add-config", "producer_byte_rate=1048576"]
    acl = ["--authorizer-properties", "zookeeper.connect={zookeeper}"] if release < (3,) else where
    add = [*acl, "--add", "--allow-principal", "User:alice", "--operation", "Read"]
    yield "acls", [*add, "--topic", topic]
    yield "acls", [*add, "--group", "*"]
    if release >= (2,):
        yield "acls", [*add, "--topic", "lay", "--resource-pattern-type", "prefixed"]
    if release >= (0, 10, 2):
        user = ["--entity-type", "users", "--entity-name", "CN=alice,O=a b/c"]
        yield "configs", [*where, "--alter", *user, "--add-config", "SCRAM-SHA-256=[password=alice-secret]"]
        both = [*user, "--entity-type", "clients", "--entity-default" if release >= (1,) else "--entity-name"]
        both += [] if release >= (1,) else ["other"]
        yield "configs", [*where, "--alter", *both, "--add-config", "consumer_byte_rate=2048"]
    if release >= (3,):
        yield "configs", [*alter, "brokers", "--entity-name", "1", "--add-config", "log.cleaner.threads=1"]
        yield "configs", [*alter, "ips", "--entity-name", "10.0.0.1", "--add-config", "connection_creation_rate=10"]


def _with_a_group(cluster: RealCluster, zookeeper: KazooClient, topic: str) -> Dump:
    """The dump while a console consumer of the old kind reads; one of 1.1.1, the last, where the release has none."""
    version = cluster.version if cluster.release < (2,) else "1.1.1"
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "consumer.properties"
        config.write_text("group.id=layout-group\nauto.commit.interval.ms=100\n")
        words = ["--zookeeper", str(cluster.zookeeper), "--topic", topic, "--from-beginning"]
        command = release_tool_command(version, "console-consumer", *words, "--consumer.config", str(config))
        with (
            (Path(folder) / "output").open("wb") as output,
            subprocess.Popen(command, stdout=output, stderr=output) as consumer,
        ):
            try:
                offsets = f"/consumers/layout-group/offsets/{topic}"
                wait(lambda: _read(zookeeper, f"/consumers/layout-group/owners/{topic}/2") != "", "the group's owners")
                wait(lambda: sum(int(_read(zookeeper, f"{offsets}/{p}") or 0) for p in range(3)) == 2, "its offsets")
                return dump(zookeeper)
            finally:
                consumer.terminate()
                consumer.wait(WAIT_S)


def _while_the_controller_sleeps(cluster: RealCluster, zookeeper: KazooClient, topic: str) -> Dump:
    """What the tools ask the controller for, which deletes it at once when awake."""
    if cluster.release >= (3,):  # its tools ask the brokers
        return {}
    partitions = json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0}]})
    moves = json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 1, "replicas": [1]}]})
    where = ["--zookeeper", "{zookeeper}"]
    with tempfile.TemporaryDirectory() as folder:
        election, moving = Path(folder) / "election.json", Path(folder) / "moving.json"
        election.write_text(partitions)
        moving.write_text(moves)
        asked = []
        if cluster.release < (2, 4):
            asked.append(("preferred-election", [*where, "--path-to-json-file", str(election)]))
        if cluster.release < (2, 8):
            asked.append(("reassign-partitions", [*where, "--reassignment-json-file", str(moving), "--execute"]))
        asked.append(("topics", [*where, "--delete", "--topic", topic]))
        cluster.pause(1)
        try:
            for tool, words in asked:
                cluster.tool(tool, *words, timeout=WAIT_S)
            return dump(zookeeper, "/admin")
        finally:
            cluster.resume(1)


def _read(zookeeper: KazooClient, path: str) -> str:
    try:
        return str(zookeeper.get(path)[0].decode())
    except NoNodeError:
        return ""


def recorded(version: str) -> Dump:
    found: Dump = json.loads((DATA / f"layout-{version}.json").read_text(encoding="utf-8"))
    return found


def _record(version: str, file: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        clusters = Clusters(Path(folder) / "clusters")
        try:
            found = fill_and_dump(clusters.running(version, props=properties_of(version)))
        finally:
            clusters.take_down()
    kept = {path: data for path, data in found.items() if "/__consumer_offsets/partitions/" not in path}
    file.write_text(json.dumps(kept, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    _record(sys.argv[1], Path(sys.argv[2]))
