"""What clients and tools do on a listener of a secured cluster, with the properties file of Kafka's own tools."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio

from pykafka08 import Admin, Consumer, GroupMigration, LegacyConsumer, Mirror, NewTopic, Producer, TopicPartition
from pykafka08.kafka_properties import arguments_from, read_client_properties
from pykafka08.security.secret import Secret
from tests.cli.console import Finished, console, console_here
from tests.integration.clusters import RealCluster
from tests.integration.reading import read_records
from tests.security.secrets_found import SecretSearch, everything_is_sent

__all__ = ["CLIENTS", "DEADLINE_S", "PATIENT", "check_clients", "check_tools", "client_file"]

RECORDS = 100
VALUES = [b"%d" % number for number in range(RECORDS)]
LINES = b"".join(value + b"\n" for value in VALUES)
DEADLINE_S = 60
PATIENT: dict[str, Any] = {"socket_connection_setup_timeout_ms": 4 * DEADLINE_S * 1000}
"""Settings with which an error that came only at the end of the set-up time would come too late for a test."""


def client_file(cluster: RealCluster, protocol: str, mechanism: str | None) -> Path:
    """The file that ``kafka-up`` has written for that listener; with TLS it has a client certificate too."""
    name = protocol.removeprefix("MUTUAL_").lower().replace("_", "-").removesuffix("-plaintext")
    words = ["client", name, mechanism and mechanism.lower()]
    return cluster.folder / "conf" / ("-".join(filter(None, words)) + ".properties")


class Place:
    """A listener of a cluster, a topic with ``VALUES`` in it, and the search for secrets there.

    The search is for the passwords in the file and that of the user alice, and for what ``search`` looks for already.
    """

    def __init__(
        self,
        cluster: RealCluster,
        protocol: str,
        mechanism: str | None,
        file: Path | None,
        search: SecretSearch | None,
    ) -> None:
        self.cluster = cluster
        self.servers = cluster.listener(protocol)
        self.file = file or client_file(cluster, protocol, mechanism)
        self.topic = cluster.new_topic(f"{protocol}-{mechanism}".lower().replace("_", "-"))
        self.tp = TopicPartition(self.topic, 0)
        self.search = search or SecretSearch("alice-secret")
        self.search.add("alice-secret", *passwords_in(self.file))

    async def search_objects(self, name: str, client: object) -> None:
        """Search a client that has authenticated."""
        await everything_is_sent()
        self.search.of_objects(name, client)

    def topic_for(self, what: str) -> str:
        """A topic that a client may make by itself, where the brokers can be asked for that."""
        return f"{self.topic}-{what}" if self.cluster.release >= (0, 10, 1) else self.cluster.new_topic(what)

    async def values_of(self, topic: str, count: int = RECORDS) -> list[bytes | None]:
        reading = {"bootstrap_servers": self.servers, "auto_offset_reset": "earliest"}
        isolation = {"isolation_level": "read_committed"}
        async with Consumer.from_properties(self.file, topic, **reading, **isolation) as consumer:
            return [record.value for record in await read_records(consumer, count)]


async def _administer(place: Place) -> None:
    """Each call of the administrator that the release has."""
    release, group = place.cluster.release, f"{place.topic}-admin"
    async with Admin.from_properties(place.file, bootstrap_servers=place.servers) as admin:
        assert place.topic in await admin.list_topics()
        assert len(await admin.list_brokers()) == 1
        assert await admin.alter_group_offsets(group, {place.tp: 7}) == {}
        assert (await admin.list_group_offsets(group, [place.tp]))[place.tp].offset == 7
        if release >= (0, 10, 1):
            new = place.topic_for("new")
            assert await admin.create_topics([NewTopic(new, 1, 1)]) == {}
            if release >= (0, 11):
                await admin.alter_topic_configs(new, {"retention.ms": "123456"})
                with anyio.fail_after(DEADLINE_S):
                    # Brokers with KRaft show a changed config a moment later, and no event tells when.
                    while (await admin.describe_topic_configs([new]))[new]["retention.ms"].value != "123456":  # noqa: ASYNC110
                        await anyio.sleep(0.05)
            if release >= (1, 0):
                assert await admin.create_partitions({new: 2}) == {}
            assert await admin.delete_topics([new]) == {}
        if release >= (1, 1):
            assert list(await admin.describe_groups([group])) == [group]
            assert await admin.delete_groups([group]) == {}
        await place.search_objects("admin", admin)


async def _transact(place: Place) -> None:
    """A transaction that is aborted, and one that copies records and commits the offsets of a group with them."""
    if place.cluster.release < (0, 11):
        return
    group, copy = f"{place.topic}-copier", place.topic_for("transacted")
    async with Producer.from_properties(
        place.file, bootstrap_servers=place.servers, transactional_id=group
    ) as producer:
        try:
            async with producer.transaction():
                await producer.send(copy, b"aborted")
                raise KeyError
        except KeyError:
            pass
        async with producer.transaction():
            await producer.send_many(copy, VALUES)
            await producer.send_offsets({place.tp: RECORDS}, group_id=group)
        await place.search_objects("transactional producer", producer)
    assert await place.values_of(copy) == VALUES
    async with Admin.from_properties(place.file, bootstrap_servers=place.servers) as admin:
        with anyio.fail_after(DEADLINE_S):
            # Brokers before 4.0 show a transaction's offsets some time after its end, and no event tells when.
            while not await admin.list_group_offsets(group, [place.tp]):  # noqa: ASYNC110
                await anyio.sleep(0.05)


async def _mirror(place: Place) -> None:
    """Copy a topic, and carry a group over."""
    group, copy = f"{place.topic}-mirrored", place.topic_for("mirrored")
    servers = {"bootstrap_servers": place.servers}
    async with Admin.from_properties(place.file, **servers) as admin:
        assert await admin.alter_group_offsets(group, {place.tp: 30}) == {}
    async with Mirror.from_properties(
        place.file, place.file, topics=[place.topic], rename={place.topic: copy}, groups=[group], name=group,
        source_settings=servers, target_settings=servers,
    ) as mirror:  # fmt: skip
        report = await mirror.run()
        await place.search_objects("mirror", mirror)
    assert (report.records, [move.target_offset for move in report.groups]) == (RECORDS, [30])
    assert await place.values_of(copy) == VALUES


async def _consume_with_zookeeper(place: Place) -> None:
    """Read in an old group with offsets in ZooKeeper, read on as another member, and move the offsets to Kafka."""
    zookeeper, group = place.cluster.zookeeper, f"{place.topic}-old"
    if zookeeper is None:
        return
    got = []
    for _ in range(2):
        async with LegacyConsumer.from_properties(
            place.file, place.topic, zookeeper=zookeeper, group_id=group, auto_offset_reset="smallest"
        ) as consumer:
            got += [(await consumer.getone(timeout=DEADLINE_S)).value for _ in range(RECORDS // 2)]
            assert await consumer.commit() == {}
            await place.search_objects("old consumer", consumer)
    assert got == VALUES
    settings = arguments_from(place.file, {"bootstrap_servers": place.servers})
    async with GroupMigration(zookeeper, group_id=group, **settings) as migration:
        assert (await migration.run()).is_in_kafka
        await place.search_objects("migration", migration)


CLIENTS: dict[str, Callable[[Place], Awaitable[None]]] = {
    "admin": _administer,
    "transactions": _transact,
    "mirror": _mirror,
    "old consumer": _consume_with_zookeeper,
}


def passwords_in(file: Path) -> set[str]:
    properties = read_client_properties(file)
    secrets = {value.reveal() for value in properties.values() if isinstance(value, Secret)}
    return {found for each in secrets for found in re.findall(PASSWORD, each)}


PASSWORD = r'(?<=password=")[^"]{8,}|^[^\s"]{8,}$'
"""In a login configuration, or by itself."""


async def check_clients(
    cluster: RealCluster,
    protocol: str,
    mechanism: str | None,
    *,
    file: Path | None = None,
    search: SecretSearch | None = None,
) -> None:
    """Each of ``CLIENTS`` on that listener, as far as the release has what it is for; none shows a secret."""
    place = Place(cluster, protocol, mechanism, file, search)
    search = place.search
    with search.of_logs():
        async with Producer.from_properties(place.file, bootstrap_servers=place.servers) as producer:
            await producer.send_many(place.topic, VALUES)
            await place.search_objects("producer", producer)
        for check in CLIENTS.values():
            await check(place)
    assert search.searched > RECORDS
    assert search.found == []


async def check_tools(
    cluster: RealCluster,
    protocol: str,
    mechanism: str | None,
    *,
    file: Path | None = None,
    is_short: bool = False,
    is_here: bool = False,
    search: SecretSearch | None = None,
) -> None:
    """The command line tools on that listener, each with the option that Kafka's own tools have for the file.

    ``is_short`` leaves out those that move an old group, whose options are the same.  Each tells every step, and shows
    no secret.  With ``is_here`` the tools run in this process, where ``search`` may learn of their tokens.
    """
    place = Place(cluster, protocol, mechanism, file, search)
    search = place.search

    async def run(*words: str, given: bytes = b"") -> Finished:
        tool = console_here if is_here else console
        ran = await tool(*words, "-vv", given=given)
        search.of_text(words[0], ran.out)
        search.of_text(words[0], ran.err)
        return ran

    topic, group, copy, config = place.topic, f"{place.topic}-tools", place.topic_for("copied"), str(place.file)
    servers = ("--bootstrap-server", place.servers)
    reading = ("--topic", topic, "--from-beginning", "--max-messages", str(RECORDS))
    sent = await run("produce", *servers, "--topic", topic, "--producer.config", config, given=LINES)
    assert sent.status == 0, sent.err
    read = await run("consume", *servers, *reading, "--group", group, "--consumer.config", config)
    assert (read.status, read.out) == (0, LINES), read.err
    ends = ("--from", place.servers, "--to", place.servers, "--from-config", config, "--to-config", config)
    what = ("--topics", topic, "--rename", f"{topic}={copy}", "--group", group, "--name", group)
    mirrored = await run("mirror", *ends, *what, "--json")
    assert mirrored.status == 0, mirrored.err
    report = json.loads(mirrored.out)
    assert [each["copied"] for each in report["partitions"]] == [RECORDS]
    assert [each["target_offset"] for each in report["groups"]] == [RECORDS]
    assert search.found == []
    if cluster.zookeeper is None:
        return
    old = ("--zookeeper", cluster.zookeeper)
    read = await run("consume", *old, *reading, "--group", group, "--consumer.config", config)
    assert (read.status, read.out) == (0, LINES), read.err
    assert search.found == []
    if is_short:
        return
    lag = await run("zk", "lag", *old, "--group", group, *servers, "--command-config", config)
    assert lag.status == 0, lag.err
    moved = await run("migrate", "group", group, *old, *servers, "--command-config", config)
    assert moved.status == 0, moved.err
    assert search.found == []
