"""No secret in anything that is shown: every mechanism, client and tool, at the level DEBUG."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from pykafka08 import Admin, AuthenticationError, ConfigError, Consumer, EmbeddedCluster, Producer
from pykafka08.broker.security.mechanisms import Principal, Refused
from tests.security.secrets_found import SecretSearch

pytestmark = pytest.mark.anyio

USER, PASSWORD, WRONG, TOKEN = "alice", "s3cret+of/alice=", "wr0ng+of/alice=", "t0ken.of.alice-and_nobody"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
MODULES = "org.apache.kafka.common.security"


def check_token(token: str) -> Principal:
    if token != TOKEN:
        raise Refused("another token")
    return Principal(USER, time.time() + 3600)


def provided() -> str:
    return TOKEN


def settings_of(cluster: EmbeddedCluster, mechanism: str, password: str = PASSWORD) -> dict[str, Any]:
    settings = {**cluster.client_settings(USER), "sasl_mechanism": mechanism}
    if mechanism == "OAUTHBEARER":
        del settings["sasl_plain_username"], settings["sasl_plain_password"]
        token = TOKEN if password == PASSWORD else password
        return {**settings, "sasl_oauth_token_provider": lambda: token}
    return {**settings, "sasl_plain_password": password}


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_clients_show_no_secret(mechanism: str) -> None:
    search = SecretSearch(PASSWORD, WRONG, TOKEN)
    async with EmbeddedCluster(
        security="SASL_SSL",
        users={USER: PASSWORD},
        check_token=check_token,
        topics={"t": 1},
        properties={"connections.max.reauth.ms": "100"},
    ) as cluster:
        with search.of_logs():
            settings = settings_of(cluster, mechanism)
            async with (
                Admin(**settings) as admin,
                Producer(**settings) as producer,
                Consumer("t", group_id="g", auto_offset_reset="earliest", **settings) as consumer,
            ):
                for number in range(20):
                    await producer.send("t", b"%d" % number)
                    await consumer.getone(timeout=10)
                    await anyio.sleep(0.01)
                await admin.list_groups()
                search.of_objects("admin", admin)
                search.of_objects("producer", producer)
                search.of_objects("consumer", consumer)
            for client in (Admin, Producer):
                with pytest.raises(AuthenticationError) as caught:
                    async with client(**settings_of(cluster, mechanism, WRONG)):
                        pass
                search.of_error(f"{client.__name__} with wrong credentials", caught.value)
    assert search.searched > 100
    assert search.found == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"ssl_cafile": "/nowhere"},
        {"sasl_plain_username": ""},
        {"linger_ms": "soon"},
        {"no_such_setting": 1},
        {"sasl_mechanism": "SCRAM-SHA-1"},
        {"sasl_jaas_config": f'{MODULES}.plain.PlainLoginModule required username="u" password="{PASSWORD}" x'},
        {"sasl_jaas_config": f'{MODULES}.plain.PlainLoginModule required user="u" password="{PASSWORD}";'},
    ],
)
async def test_refused_settings_show_no_secret(wrong: dict[str, Any]) -> None:
    search = SecretSearch(PASSWORD)
    settings = {
        "bootstrap_servers": "localhost:1",
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": USER,
        "sasl_plain_password": PASSWORD,
        "ssl_keystore_password": PASSWORD,
        "ssl_truststore_password": PASSWORD,
        "ssl_password": PASSWORD,
        "ssl_key_password": PASSWORD,
    }
    with search.of_logs(), pytest.raises(ConfigError) as caught:
        async with Producer(**{**settings, **wrong}):
            pass
    search.of_error("refused settings", caught.value)
    assert search.found == []


def run(arguments: list[str], given: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pykafka08", *arguments]
    return subprocess.run(command, input=given, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_tools_show_no_secret(tmp_path: Path) -> None:
    search = SecretSearch(PASSWORD, WRONG)
    async with EmbeddedCluster(security="SASL_SSL", users={USER: PASSWORD}, topics={"t": 1}) as cluster:
        for name, password in (("right", PASSWORD), ("wrong", WRONG)):
            login = f'{MODULES}.scram.ScramLoginModule required username="{USER}" password="{password}";'
            lines = [
                "security.protocol=SASL_SSL",
                "sasl.mechanism=SCRAM-SHA-256",
                f"sasl.jaas.config={login}",
                "ssl.truststore.type=PEM",
                f"ssl.truststore.location={cluster.ca_file}",
            ]
            file = tmp_path / f"{name}.properties"
            file.write_text("\n".join(lines))
            servers = ["--bootstrap-server", cluster.bootstrap_servers, "--command-config", str(file), "--verbose"]
            sent = await anyio.to_thread.run_sync(run, ["produce", *servers, "--topic", "t"], "one\ntwo\n")
            read = ["consume", *servers, "--topic", "t", "--from-beginning", "--max-messages", "2"]
            got = await anyio.to_thread.run_sync(run, read)
            search.of_run(f"produce, {name}", sent)
            search.of_run(f"consume, {name}", got)
            assert (sent.returncode == 0, got.returncode == 0) == (name == "right", name == "right"), sent.stderr
            assert got.stdout.splitlines() == (["one", "two"] if name == "right" else [])
            assert ("credentials" in got.stderr) is (name == "wrong")
    assert search.found == []
