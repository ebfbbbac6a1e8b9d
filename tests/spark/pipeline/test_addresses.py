"""What a folder's address and ``[storage]`` come to for deltalake and for Hadoop; secrets stay hidden."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline.addresses import Storage, address_of, options_for_delta, options_for_hadoop
from pykafka08.spark.pipeline.settings import parse
from pykafka08.spark.pipeline.stores import Folder
from tests.security.secrets_found import SecretSearch
from tests.spark.pipeline.test_settings import GOOD

SECRET = "s3cret-of-the-store"
AZURE = "abfss://lake@account.dfs.core.windows.net/x"
ACCOUNT = "account.dfs.core.windows.net"


@pytest.mark.parametrize(
    ("text", "spark", "delta"),
    [
        ("out", "/home/out", "/home/out"),
        ("/srv/a b", "/srv/a b", "/srv/a b"),
        ("file:///srv/a%20b", "/srv/a b", "/srv/a b"),
        ("s3://lake/x/", "s3a://lake/x", "s3://lake/x"),
        ("s3a://lake", "s3a://lake", "s3://lake"),
        ("hdfs://host:8020/x", "hdfs://host:8020/x", "hdfs://host:8020/x"),
        (AZURE, AZURE, AZURE),
        ("gs://lake/x", "gs://lake/x", "gs://lake/x"),
    ],
)
def test_addresses(text: str, spark: str, delta: str) -> None:
    address = address_of(text, Path("/home"))
    assert (address.spark, address.delta) == (spark, delta)
    assert str(Folder(address) / "silver" / "data") == f"{spark}/silver/data"
    assert (Folder(address) / "silver").name == "silver"


@pytest.mark.parametrize(
    ("folder", "storage", "delta", "hadoop"),
    [
        ("s3://b/x", {}, {"aws_conditional_put": "etag"}, {}),
        (
            "s3://b/x",
            {"endpoint": "http://m:9", "access_key": "a", "secret_key": SECRET},
            {
                "aws_endpoint_url": "http://m:9",
                "aws_region": "us-east-1",
                "aws_access_key_id": "a",
                "aws_secret_access_key": SECRET,
                "aws_conditional_put": "etag",
                "allow_http": "true",
            },
            {
                "fs.s3a.bucket.b.endpoint": "http://m:9",
                "fs.s3a.bucket.b.endpoint.region": "us-east-1",
                "fs.s3a.bucket.b.access.key": "a",
                "fs.s3a.bucket.b.secret.key": SECRET,
                "fs.s3a.bucket.b.connection.ssl.enabled": "false",
                "fs.s3a.bucket.b.path.style.access": "true",
            },
        ),
        (
            AZURE,
            {"account_key": SECRET},
            {"azure_storage_account_key": SECRET},
            {f"fs.azure.account.key.{ACCOUNT}": SECRET},
        ),
        (
            AZURE,
            {"tenant_id": "t", "client_id": "c", "client_secret": SECRET},
            {
                "azure_storage_client_id": "c",
                "azure_storage_client_secret": SECRET,
                "azure_storage_tenant_id": "t",
            },
            {
                f"fs.azure.account.oauth2.client.id.{ACCOUNT}": "c",
                f"fs.azure.account.oauth2.client.secret.{ACCOUNT}": SECRET,
                f"fs.azure.account.auth.type.{ACCOUNT}": "OAuth",
                f"fs.azure.account.oauth.provider.type.{ACCOUNT}": (
                    "org.apache.hadoop.fs.azurebfs.oauth2.ClientCredsTokenProvider"
                ),
                f"fs.azure.account.oauth2.client.endpoint.{ACCOUNT}": (
                    "https://login.microsoftonline.com/t/oauth2/token"
                ),
            },
        ),
        (
            "gs://b/x",
            {"service_account": "/k.json"},
            {"google_service_account": "/k.json"},
            {
                "fs.gs.auth.type": "SERVICE_ACCOUNT_JSON_KEYFILE",
                "fs.gs.auth.service.account.json.keyfile": "/k.json",
            },
        ),
    ],
)
def test_one_setting_has_the_name_that_each_library_gives_it(
    folder: str, storage: dict[str, Any], delta: dict[str, str], hadoop: dict[str, str]
) -> None:
    address, settings = address_of(folder, Path("/")), Storage(**storage)
    assert options_for_delta(address, settings) == delta
    assert options_for_hadoop(address, settings) == hadoop
    assert SECRET not in repr((settings, options_for_delta(address, settings), options_for_hadoop(address, settings)))


def test_a_service_of_name_nodes_is_the_same_for_both() -> None:
    address = address_of("hdfs://lake/x", Path("/"))
    storage = Storage(namenodes=("a:8020", "b:8020"), options={"dfs.replication": "2"})
    options = options_for_delta(address, storage)
    assert options == options_for_hadoop(address, storage)
    assert options["dfs.ha.namenodes.lake"] == "nn0,nn1"
    assert options["dfs.namenode.rpc-address.lake.nn1"] == "b:8020"


def test_secrets_come_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORE_SECRET", SECRET)
    (tmp_path / "store.properties").write_text(
        "access_key=a\nsecret.key=${env:STORE_SECRET}\nconfig.providers=env\n"
        "config.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider\n"
    )
    text = GOOD.replace('folder = "out"', 'folder = "s3://b"\nstorage = { properties = "store.properties" }')
    pipeline = parse(text, tmp_path)
    assert str(pipeline.storage.secret_key) == SECRET
    search = SecretSearch(SECRET)
    search.of_objects("pipeline", pipeline)
    search.of_text("repr", repr(pipeline))
    assert search.found == []


def test_a_file_of_storage_that_is_missing_is_told_with_the_other_errors(tmp_path: Path) -> None:
    text = GOOD.replace('folder = "out"', 'folder = "s3://b"\nspeed = 3\nstorage = { properties = "none.properties" }')
    with pytest.raises(ConfigError, match=r"(?s)speed: unknown.*\nstorage\.properties: .*none\.properties"):
        parse(text, tmp_path)


@pytest.mark.parametrize("name", ["a[1]", "a{b}", "100%", "a*", "what?"])
def test_a_folder_that_spark_would_read_as_a_pattern_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^folder: .* choose a folder without these characters"):
        parse(GOOD.replace('folder = "out"', f'folder = "{name}/out"'), tmp_path)
    with pytest.raises(ConfigError, match=r"^folder: "):
        parse(GOOD, tmp_path / name)
    assert parse(GOOD.replace('folder = "out"', 'folder = "my lake/#1 = ü"'), tmp_path).root.name == "#1 = ü"


def test_an_unknown_setting_of_the_file_is_named_without_its_value(tmp_path: Path) -> None:
    (tmp_path / "store.properties").write_text(f"secret_kye={SECRET}\n")
    with pytest.raises(ConfigError, match=r"^storage.properties: .*store.properties: secret_kye: unknown") as raised:
        parse(
            GOOD.replace('folder = "out"', 'folder = "s3://b"\nstorage = { properties = "store.properties" }'), tmp_path
        )
    assert SECRET not in str(raised.value)
