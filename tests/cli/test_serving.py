"""``pykafka08 broker`` as a process of its own: its first line, what it serves, and what ends it."""

from __future__ import annotations

import signal
import socket
import subprocess
from pathlib import Path

import anyio
import pytest
from kazoo.client import KazooClient

from pykafka08.protocol.messages.produce import PartitionProduceResponse
from tests.broker.raw import Raw, batch, produce
from tests.brokers.readiness import free_base_port
from tests.cli.console import command, run_here, start


async def produce_one(servers: str, records: bytes) -> PartitionProduceResponse:
    """The answer for one batch that is sent to partition 1 of ``orders``."""
    host, _, port = servers.partition(":")
    async with await anyio.connect_tcp(host, int(port)) as stream:
        return await produce(Raw(stream), records, 9, topic="orders", partition=1)


def first_line(process: subprocess.Popen[bytes]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline().decode()
    assert line.startswith("BROKERS=127.0.0.1:")
    assert line.endswith("\n")
    return line[len("BROKERS=") : -1]


def test_it_serves_until_its_input_closes() -> None:
    with start("broker", "--brokers", "2", "--version", "2.8", "--topic", "orders:3", "--no-auto-create") as broker:
        servers = first_line(broker)
        assert servers.count(",") == 1
        sent = run_here("produce", "-b", servers, "-t", "orders", "-p", "2", given=b"one\n")
        assert sent.status == 0, sent.err
        read = run_here("consume", "-b", servers.split(",")[1], "-t", "orders", "-p", "2", "-o", "0", "-n", "1")
        assert (read.status, read.out) == (0, b"one\n")
        _, err = broker.communicate()
        assert broker.returncode == 0
        assert b"as Kafka 2.8" in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("given", [subprocess.DEVNULL, None])
def test_without_input_it_goes_on_until_a_signal(number: signal.Signals, given: int | None) -> None:
    streams = {} if given is None else {"stdin": given}
    with start("broker", **streams) as broker:
        servers = first_line(broker)
        sent = run_here("produce", "-b", servers, "-t", "made-on-demand", given=b"one\n")
        assert sent.status == 0, sent.err
        broker.send_signal(number)
        assert broker.wait() == 128 + number


def test_a_closed_descriptor_as_input_does_not_end_it() -> None:
    line = " ".join(command("broker"))
    with subprocess.Popen(["bash", "-c", f"exec {line} <&-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as broker:
        servers = first_line(broker)
        assert run_here("produce", "-b", servers, "-t", "t", given=b"one\n").status == 0
        broker.terminate()
        assert broker.wait() == 143


def test_zookeeper_beside_an_old_release() -> None:
    with start("broker", "--version", "0.8.2", "--topic", "t:2", "--zookeeper-port", "0") as broker:
        first_line(broker)
        assert broker.stdout is not None
        line = broker.stdout.readline().decode()
        assert line.startswith("ZOOKEEPER=127.0.0.1:")
        zookeeper = KazooClient(line.strip().partition("=")[2])
        zookeeper.start()
        try:
            assert zookeeper.get_children("/brokers/ids") == ["0"]
            assert zookeeper.get_children("/brokers/topics") == ["t"]
        finally:
            zookeeper.stop()
            zookeeper.close()
        broker.communicate()
        assert broker.returncode == 0
    refused = run_here("broker", "--zookeeper-port", "0")
    assert refused.status == 2
    assert "has no ZooKeeper" in refused.err


def test_an_address_of_another_machine_is_refused_with_the_option_to_change() -> None:
    ran = run_here("broker", "--host", "192.0.2.1")
    assert (ran.status, ran.out) == (1, b"")
    assert "cannot listen at 192.0.2.1" in ran.err
    assert "as --host" in ran.err


def test_a_port_can_be_chosen_but_not_taken_twice() -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
        taken = run_here("broker", "--port", str(port))
    assert (taken.status, taken.out) == (1, b"")
    assert taken.err.count("\n") == 1
    assert str(port) in taken.err
    assert "give another --port" in taken.err
    free, lock = free_base_port()
    with lock, start("broker", "--port", str(free)) as broker:
        assert first_line(broker) == f"127.0.0.1:{free}"
        broker.communicate()


def test_a_killed_broker_restores_its_log_dir(tmp_path: Path) -> None:
    words = ["--log-dir", str(tmp_path / "kept"), "--property", "log.retention.ms=-1"]
    with start("broker", *words, "--topic", "orders:2:1:cleanup.policy=compact,delete,segment.bytes=2000000") as broker:
        servers = first_line(broker)
        anyio.run(produce_one, servers, batch(b"one"))
        broker.kill()
        broker.communicate()
    with start("broker", *words) as broker:
        answer = anyio.run(produce_one, first_line(broker), batch(b"two"))
        assert (answer.error_code, answer.base_offset) == (0, 1)
        _, err = broker.communicate()
        assert f"kept in {tmp_path / 'kept'}".encode() in err


def test_other_machines_can_connect_only_with_an_option_and_a_warning() -> None:
    with start("broker", "--host", "0.0.0.0", "--advertised-host", "localhost") as broker:
        assert broker.stdout is not None
        line = broker.stdout.readline().decode()
        assert line.startswith("BROKERS=localhost:")
        _, err = broker.communicate()
        assert b"open to other machines" in err


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        (["--version", "0.7"], "0.7"),
        (["--brokers", "0"], "not a whole number above 0"),
        (["--topic", "t:x"], "NAME[:PARTITIONS"),
        (["--topic", "t:1:0"], "NAME[:PARTITIONS"),
        (["--topic", "t:1:2"], "replication_factor=2 needs 2 brokers; the cluster has 1"),
        (["--topic", "t:99999999999"], "topic 't': partitions=99999999999"),
        (["--topic", "t:"], "partitions '' is not a number"),
        (["--topic", "a.b", "--topic", "a_b"], "collides"),
        (["--max-memory", "9" * 30], "is above 9223372036854775807"),
        (["--topic", "t:1:1:x"], "CONFIG=VALUE"),
        (["--topic", "t:1:1:no.such=1"], "no.such"),
        (["--topic", "t:1:1:retention.ms=soon"], "retention.ms"),
        (["--property", "no.such=1"], "no.such"),
        (["--host", "0.0.0.0"], "advertised_host"),
        (["--host", "not a host"], "not a host"),
        (["--log-dir", "/dev/null"], "log_dir"),
        (["--log-dir", ""], "log_dir='' does not name a directory"),
        (["--topic", "t:3", "--topic", "t:6"], "twice"),
        (["--topic", "a b"], "a b"),
        (["--port", "70000"], "70000"),
        (["--acl", "User:alice READ"], "acls: 'User:alice READ' is not of the form"),
        (["--acl", "User:alice READ topic t", "--version", "0.8.2"], "has no ACLs; set version"),
    ],
)
def test_wrong_usage(words: list[str], cause: str) -> None:
    ran = run_here("broker", *words)
    assert (ran.status, ran.out) == (2, b"")
    assert cause in ran.err


def lines_of(process: subprocess.Popen[bytes], *names: str) -> list[str]:
    """The values of the next ``NAME=value`` lines."""
    assert process.stdout is not None
    values = []
    for expected in names:
        name, _, value = process.stdout.readline().decode().rstrip("\n").partition("=")
        assert name == expected
        values.append(value)
    return values


def test_a_secured_broker_writes_a_properties_file_for_each_user(tmp_path: Path) -> None:
    users = tmp_path / "users.properties"
    users.write_text('alice=its "\\u00fc\\uD83D\\uDE00\\\\n, secret\\=\n')
    acls = ["--acl=User:alice ALL topic t", "--acl=deny User:alice READ topic t", "--acl", "User:bob READ topic t"]
    with start("broker", "--security", "sasl_ssl", "--users-file", str(users), "--user", "bob", *acls) as broker:
        servers = first_line(broker)
        ca, alice, bob = lines_of(broker, "CA_FILE", "CLIENT_PROPERTIES", "CLIENT_PROPERTIES")
        assert Path(ca).read_text().startswith("-----BEGIN CERTIFICATE-----")
        assert Path(alice).stat().st_mode & 0o777 == 0o600
        sent = run_here("produce", "-b", servers, "-t", "t", "--command-config", alice, given=b"one\n")
        assert sent.status == 0, sent.err
        read = run_here("consume", "-b", servers, "-t", "t", "--from-beginning", "-n", "1", "--command-config", bob)
        assert (read.status, read.out) == (0, b"one\n"), read.err
        refused = run_here("consume", "-b", servers, "-t", "t", "-n", "1", "--command-config", alice)
        assert refused.status == 1
        assert "the user may not READ topic 't'" in refused.err
        broker.communicate()
        assert broker.returncode == 0
    assert not any(Path(each).exists() for each in (ca, alice, bob))


def test_a_broker_takes_tokens_without_users() -> None:
    with start("broker", "--security", "SASL_PLAINTEXT", "--mechanism", "OAUTHBEARER") as broker:
        servers = first_line(broker)
        [client] = lines_of(broker, "CLIENT_PROPERTIES")
        sent = run_here("produce", "-b", servers, "-t", "t", "--command-config", client, given=b"one\n")
        assert sent.status == 0, sent.err
        broker.communicate()


def test_a_broker_with_two_listeners_names_both() -> None:
    listeners = ("--listener", "INTERNAL=plaintext", "--listener", "EXTERNAL=SASL_PLAINTEXT")
    with start("broker", *listeners, "--user", "bob", "--advertised-host", "EXTERNAL=localhost") as broker:
        servers = first_line(broker)
        internal, external, bob = lines_of(broker, "LISTENER_INTERNAL", "LISTENER_EXTERNAL", "CLIENT_PROPERTIES")
        assert servers == internal
        assert external.startswith("localhost:")
        sent = run_here("produce", "-b", external, "-t", "t", "--command-config", bob, given=b"one\n")
        assert sent.status == 0, sent.err
        read = run_here("consume", "-b", internal, "-t", "t", "--from-beginning", "-n", "1")
        assert (read.status, read.out) == (0, b"one\n"), read.err
        broker.communicate()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--user", "alice"], "need --security SASL_SSL"),
        (["--security", "SASL_SSL"], "needs --user or --users-file"),
        (["--security", "SASL_SSL", "--user", "a", "--user", "a"], "named twice"),
        (["--security", "SASL_SSL", "--user", ""], "--user '' is not the name of a user"),
        (["--listener", "A=PLAINTEXT", "--user", "a"], "need --security SASL_SSL"),
        (["--listener", "A=PLAINTEXT", "--listener", "B=sasl_ssl"], "--listener SASL_SSL needs --user"),
        (["--security", "SASL_SSL", "--users-file", "/nonexistent"], "cannot be read"),
    ],
)
def test_users_and_their_protocol_belong_together(words: list[str], text: str) -> None:
    ran = run_here("broker", *words)
    assert ran.status == 2
    assert text in ran.err
