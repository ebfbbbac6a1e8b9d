"""Nothing that the bridge and the embedded ZooKeeper show has a credential in it, at any level of any logger."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import trustme
from kazoo.protocol.connection import ConnectionHandler

from pykafka08 import LegacyConsumer, Mirror
from pykafka08.broker.zookeeper import EmbeddedZooKeeper
from pykafka08.cli.zk import settings_of_zookeeper, zk_parser
from pykafka08.config import SETTING_NAMES
from pykafka08.errors import ConfigError, NoAuthError, ZooKeeperAuthError, ZooKeeperConnectionError, ZooKeeperError
from pykafka08.security.secret import Secret
from pykafka08.zookeeper import ZooKeeperAdmin
from pykafka08.zookeeper.bridge import ZooKeeper
from pykafka08.zookeeper.events import Connected, Suspended
from pykafka08.zookeeper.migration import GroupMigration
from pykafka08.zookeeper.operations import CREATOR_ONLY
from pykafka08.zookeeper.settings import ZooKeeperConfig
from tests.security.secrets_found import SecretSearch
from tests.zookeeper.bridge.tls_front import TlsFront, client_files
from tests.zookeeper.bridge.waiting import LONG_SESSION_MS, event_of

PASSWORD = "s3cret-of-bob"
DIGEST = {"auth": [("digest", f"bob:{PASSWORD}")]}
SASL = {"sasl_mechanism": "DIGEST-MD5", "sasl_username": "bob", "sasl_password": PASSWORD}
FAULTY = "s3cret-\ud800-of-bob"


@pytest.fixture
def search() -> SecretSearch:
    return SecretSearch(PASSWORD)


@pytest.mark.anyio
@pytest.mark.parametrize("credentials", [DIGEST, SASL], ids=["digest", "sasl"])
async def test_a_session_with_credentials(search: SecretSearch, credentials: Mapping[str, Any]) -> None:
    with search.of_logs():
        async with EmbeddedZooKeeper(users={"bob": PASSWORD}) as server:
            zk = ZooKeeper(server.address, session_timeout_ms=LONG_SESSION_MS, **credentials)
            async with zk:
                await event_of(zk, Connected)
                await zk.create("/mine", b"1", acl=CREATOR_ONLY)
                search.of_objects("the client", zk)
                search.of_objects("the server", server)
                server.cut(zk.session_id)
                await event_of(zk, Suspended)
                await event_of(zk, Connected)
                assert (await zk.read("/mine")).data == b"1"
            search.of_objects("the closed client", zk)
            async with ZooKeeper(server.address) as other:
                with pytest.raises(NoAuthError) as refused:
                    await other.read("/mine")
            search.of_error("another's node", refused.value)
    assert search.found == []
    assert search.searched > 500


@pytest.mark.anyio
async def test_credentials_that_are_refused(search: SecretSearch) -> None:
    with search.of_logs():
        async with EmbeddedZooKeeper(users={"bob": "other"}) as server:
            zk = ZooKeeper(server.address, **SASL)
            with pytest.raises(ZooKeeperAuthError) as refused:
                await zk.__aenter__()
            search.of_error("wrong password", refused.value)
            search.of_objects("the client", zk)
    assert search.found == []


@pytest.mark.anyio
async def test_an_error_inside_kazoo(search: SecretSearch, monkeypatch: pytest.MonkeyPatch) -> None:
    """kazoo logs it with a traceback, in whose frames the packet is that has the credentials."""
    write = ConnectionHandler._write

    def fail(handler: ConnectionHandler, packet: bytes, timeout: float) -> None:
        if PASSWORD.encode() in packet:
            raise RuntimeError("broken")
        write(handler, packet, timeout)

    monkeypatch.setattr(ConnectionHandler, "_write", fail)
    with search.of_logs():
        async with EmbeddedZooKeeper() as server:
            with pytest.raises(ZooKeeperError) as failed:
                await ZooKeeper(server.address, connection_timeout_ms=300, **DIGEST).__aenter__()
            search.of_error("broken", failed.value)
    assert search.found == []


@pytest.mark.anyio
async def test_a_client_certificate_whose_key_has_a_passphrase(search: SecretSearch, tmp_path: Path) -> None:
    ca = trustme.CA()
    files = client_files(tmp_path, ca, PASSWORD)
    settings: dict[str, Any] = {"tls": True, **files}
    with search.of_logs():
        async with EmbeddedZooKeeper() as server:
            with TlsFront(server.port, ca.issue_cert("localhost"), client_ca=ca) as front:
                address = f"localhost:{front}"
                async with ZooKeeper(address, tls_key_password=PASSWORD, **settings) as zk:
                    assert await zk.children("/") == ["zookeeper"]
                    search.of_objects("the client", zk)
                del settings["tls_certificate_file"], settings["tls_key_file"]
                with pytest.raises(ZooKeeperConnectionError):
                    await ZooKeeper(address, connection_timeout_ms=1000, **settings).__aenter__()
        settings.update(files)
        for wrong, text in ((f"{PASSWORD}-not", "tls_key_password is wrong"), (None, "set tls_key_password")):
            with pytest.raises(ConfigError, match=text) as refused:
                ZooKeeper("h", tls_key_password=wrong, **settings)
            search.of_error("wrong passphrase", refused.value)
    assert search.found == []


WRONG: list[dict[str, Any]] = [
    {"auth": f"digest:bob:{PASSWORD}"},
    {"auth": [f"digest:bob:{PASSWORD}"]},
    {"auth": [["digest", f"bob:{PASSWORD}"], ["digest"]]},
    {"auth": [("digest", f"bob:{PASSWORD}"), ("digest", FAULTY)]},
    {**DIGEST, "session_timeout_ms": 0},
    {**DIGEST, "no_such_setting": 1},
    {"sasl_password": PASSWORD},
    {**SASL, "sasl_mechanism": "PLAIN"},
    {**SASL, **DIGEST, "sasl_password": FAULTY},
    {"tls": True, "tls_key_password": PASSWORD, "tls_check_hostname": False},
]


@pytest.mark.parametrize("wrong", WRONG)
def test_settings_that_are_refused(search: SecretSearch, wrong: dict[str, Any]) -> None:
    makers = [
        lambda: ZooKeeper("h", **wrong),
        lambda: ZooKeeperConfig(servers="h", **wrong),
        lambda: ZooKeeperAdmin("h", **wrong),
        lambda: GroupMigration("h", "h", "g", zookeeper_settings=wrong),
        lambda: LegacyConsumer("t", zookeeper="h", group_id="g", zookeeper_settings=wrong),
        lambda: Mirror("h", "h", topics=["t"], zookeeper="h", zookeeper_groups=["g"], zookeeper_settings=wrong),
    ]
    for number, make in enumerate(makers):
        with pytest.raises((ConfigError, TypeError)) as refused:
            make()
        if number != 1:  # a dataclass keeps its arguments as they are until they are checked
            search.of_error(str(number), refused.value)
    assert search.found == []
    assert search.searched > 10


def test_objects_made_with_credentials(search: SecretSearch) -> None:
    settings = {**DIGEST, **SASL}
    search.of_objects("settings", ZooKeeperConfig(servers="h", tls=True, tls_key_password=PASSWORD, **settings))
    search.of_objects("admin", ZooKeeperAdmin("h", **settings))
    search.of_objects("migration", GroupMigration("h", "h", "g", zookeeper_settings=settings))
    search.of_objects("consumer", LegacyConsumer("t", zookeeper="h", group_id="g", zookeeper_settings=settings))
    mirror = Mirror("h", "h", topics=["t"], zookeeper="h", zookeeper_groups=["g"], zookeeper_settings=settings)
    search.of_objects("mirror", mirror)
    assert search.found == []


def test_the_command_takes_credentials_from_a_file(search: SecretSearch, tmp_path: Path) -> None:
    file = tmp_path / "zookeeper.properties"
    file.write_text(f"auth=digest:bob:{PASSWORD}\nzookeeper.session.timeout.ms=7000\n")
    options = zk_parser().parse_args(["tree", "-z", "h", "--zookeeper-config", str(file)])
    settings, others = settings_of_zookeeper(options)
    assert settings == {"servers": "h", "session_timeout_ms": 7000, "auth": (("digest", Secret(f"bob:{PASSWORD}")),)}
    assert others.keys() == {SETTING_NAMES}
    search.of_objects("settings", settings)
    assert search.found == []


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (["--auth", f":{PASSWORD}"], "SCHEME:CREDENTIAL"),
        (["--zookeeper-property", "nonsense=1"], "nonsense"),
        (["--zookeeper-property", "ssl.nonsense=1"], "ssl.nonsense"),
    ],
)
def test_the_command_warns_of_credentials_among_its_arguments(
    search: SecretSearch, wrong: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    right = ["tree", "-z", "h", "--auth", f"digest:bob:{PASSWORD}", "--zookeeper-property", f"sasl.password={PASSWORD}"]
    settings, _ = settings_of_zookeeper(zk_parser().parse_args(right))
    search.of_objects("settings", settings)
    told = capsys.readouterr().err
    assert "--auth ***: other users see arguments in the list of processes" in told
    assert "--zookeeper-property sasl.password=***: other users" in told
    with pytest.raises(ConfigError, match=why) as caught:
        settings_of_zookeeper(zk_parser().parse_args([*right, *wrong]))
    search.of_error("refused arguments", caught.value)
    search.of_text("stderr", told + capsys.readouterr().err)
    assert search.found == []


def test_a_host_check_that_is_switched_off_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    ZooKeeper("h", tls=True, tls_insecure_skip_hostname_check=True)
    (record,) = caplog.records
    assert (record.levelname, record.servers) == ("WARNING", "h:2181")  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match="tls_insecure_skip_hostname_check=True"):
        ZooKeeper("h", tls=True, tls_check_hostname=False)
