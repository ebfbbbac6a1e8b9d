"""Addresses that a pipeline's ``folder`` may have, and ``[storage]``: how Spark and deltalake reach what is there.

Each setting of ``[storage]`` has one name here, and other names in Hadoop's configuration, which Spark uses, and in the
options of deltalake.  Hadoop's are limited to the bucket or account of the folder.  Without settings both find
credentials where the cloud's own tools do: in the environment, or from the machine or pod that they run on.

Not here: reading and writing (:mod:`~pykafka08.spark.pipeline.stores`), and pydantic, which workers need not have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from pykafka08.errors import ConfigError
from pykafka08.kafka_properties import read_client_properties
from pykafka08.kafka_properties.providers import resolved
from pykafka08.security.hidden_text import HiddenText
from pykafka08.security.secret import Secret

__all__ = [
    "Address",
    "Storage",
    "address_of",
    "check_path",
    "errors_of",
    "options_for_delta",
    "options_for_hadoop",
    "with_file",
]

Options = dict[str, str]
ABROAD = ("s3a", "hdfs", "abfss", "gs")
"""Schemes of addresses that are not on this machine, as Spark writes them."""
ALIKE = {"": "file", "s3": "s3a"}
LOGIN = "https://login.microsoftonline.com/{}/oauth2/token"
"""Of an Azure tenant."""
TOKENS = "org.apache.hadoop.fs.azurebfs.oauth2.ClientCredsTokenProvider"
FAILOVER = "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
"""Hadoop's way to find the active name node."""

SECRETS = ("secret_key", "session_token", "account_key", "sas_token", "client_secret")


@dataclass(frozen=True)
class Storage:
    """How the folder is reached, if it is not on this machine."""

    properties: str = ""
    """A properties file with the settings below that are secrets, or all of them; config providers may be named."""
    endpoint: str = ""
    """S3: the server's address, as ``http://minio:9000``; Amazon's without."""
    region: str = ""
    """S3: of the bucket."""
    access_key: str = ""
    """S3: the id of an access key."""
    secret_key: str = field(default="", repr=False)
    """S3: its secret."""
    session_token: str = field(default="", repr=False)
    """S3: of temporary credentials."""
    path_style: Literal[True, False] | None = None
    """S3: the bucket is in the path, not in the host's name; true if there is an endpoint."""
    account_key: str = field(default="", repr=False)
    """Azure: of the storage account."""
    sas_token: str = field(default="", repr=False)
    """Azure: a shared access signature."""
    tenant_id: str = ""
    """Azure: the directory of a service principal."""
    client_id: str = ""
    """Azure: the service principal."""
    client_secret: str = field(default="", repr=False)
    """Azure: its secret."""
    service_account: str = ""
    """Google: the file with the key of a service account, on every machine."""
    namenodes: tuple[str, ...] = ()
    """HDFS: ``HOST:PORT`` of each name node, if the folder's address has the name of a service of several."""
    options: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    """Further options of the ``object_store`` library; with HDFS Hadoop's properties, for Spark as well."""

    def __post_init__(self) -> None:
        for name in SECRETS:
            object.__setattr__(self, name, HiddenText(getattr(self, name)))
        object.__setattr__(self, "namenodes", tuple(self.namenodes))
        object.__setattr__(self, "options", {name: HiddenText(value) for name, value in self.options.items()})


@dataclass(frozen=True)
class Address:
    """A folder, without a slash at its end."""

    scheme: str
    """``file`` or one of :data:`ABROAD`."""
    authority: str
    """Bucket, name node or container; empty on this machine."""
    path: str
    """Of a local folder as the system writes it; of others it begins with a slash, or is empty."""

    @property
    def is_local(self) -> bool:
        return self.scheme == "file"

    @property
    def spark(self) -> str:
        """As Spark takes it."""
        return self.path if self.is_local else f"{self.scheme}://{self.authority}{self.path}"

    @property
    def delta(self) -> str:
        """As deltalake takes it."""
        return f"s3://{self.authority}{self.path}" if self.scheme == "s3a" else self.spark

    def below(self, *names: str) -> Address:
        """A folder or file in it."""
        return Address(self.scheme, self.authority, "/".join([self.path.rstrip("/"), *names]))


def address_of(text: str, folder: Path) -> Address:
    """The address; a relative path counts from ``folder``.  ConfigError: there is no such kind, or a part is wrong."""
    try:
        parts = urlsplit(text)
    except ValueError as error:
        raise ConfigError(f"folder: {error}") from None
    scheme = ALIKE.get(parts.scheme, parts.scheme)
    if scheme not in ("file", *ABROAD):
        raise ConfigError(f"folder: {scheme}: is none of file:, s3:, {', '.join(f'{one}:' for one in ABROAD)}")
    if scheme == "file":
        path = text if not parts.scheme else unquote(parts.path)
        return Address("file", "", str(folder / path))
    if parts.password is not None or (parts.username is not None and scheme != "abfss"):
        raise ConfigError("folder: credentials in the address; settings of [storage] are the place for them")
    if not parts.hostname or parts.query or parts.fragment:
        raise ConfigError(f"folder: {text!r} is not as {EXAMPLES[scheme]}")
    if scheme == "abfss" and not parts.username:
        raise ConfigError(f"folder: {text!r} is not as {EXAMPLES[scheme]}")
    return Address(scheme, parts.netloc, parts.path.rstrip("/"))


def check_path(address: Address) -> None:
    """Raise ConfigError for a path that Spark reads as a pattern, or deltalake as percent-encoded."""
    found = sorted(set(address.path) & set(PATTERN))
    if found:
        raise ConfigError(
            f"folder: {address.path!r} has {' '.join(found)}, which Spark or deltalake would not take as it is; "
            "choose a folder without these characters"
        )


PATTERN = "*?[]{}\\%"
EXAMPLES = {
    "s3a": "s3a://BUCKET/PATH",
    "hdfs": "hdfs://HOST:PORT/PATH",
    "abfss": "abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH",
    "gs": "gs://BUCKET/PATH",
}

S3 = {
    "endpoint": ("aws_endpoint_url", "endpoint"),
    "region": ("aws_region", "endpoint.region"),
    "access_key": ("aws_access_key_id", "access.key"),
    "secret_key": ("aws_secret_access_key", "secret.key"),
    "session_token": ("aws_session_token", "session.token"),
}
AZURE = {
    "account_key": ("azure_storage_account_key", "account.key"),
    "sas_token": ("azure_storage_sas_token", "sas.fixed.token"),
    "client_id": ("azure_storage_client_id", "account.oauth2.client.id"),
    "client_secret": ("azure_storage_client_secret", "account.oauth2.client.secret"),
    "tenant_id": ("azure_storage_tenant_id", ""),
}
"""Setting → option of deltalake, and the end or the middle of Hadoop's name."""
OF_SCHEME = {
    "file": (),
    "s3a": (*S3, "path_style", "options"),
    "abfss": (*AZURE, "options"),
    "gs": ("service_account", "options"),
    "hdfs": ("namenodes", "options"),
}
"""The settings that mean something there."""
TOGETHER = {"access_key": "secret_key", "secret_key": "access_key", "session_token": "access_key"}
TOGETHER.update({"client_id": "client_secret", "client_secret": "tenant_id", "tenant_id": "client_id"})


def errors_of(address: Address, storage: Storage) -> Iterator[tuple[str, str]]:
    """Key and text of each setting that means nothing with this address, or lacks another one."""
    known = OF_SCHEME[address.scheme]
    for one in fields(Storage):
        if one.name == "properties" or not _is_set(storage, one.name):
            continue
        if one.name not in known:
            there = f"which has {', '.join(known)}" if known else "which needs none of [storage]"
            yield f"storage.{one.name}", f"means nothing for a folder on {address.scheme}:, {there}"
        elif one.name in TOGETHER and not _is_set(storage, TOGETHER[one.name]):
            yield f"storage.{one.name}", f"storage.{TOGETHER[one.name]} is needed beside it"
    if storage.namenodes and ":" in address.authority:
        yield "storage.namenodes", f"the folder names one of its own, {address.authority}; give a service there"


def _is_set(storage: Storage, name: str) -> bool:
    value = getattr(storage, name)
    return value is not None and bool(value or value is False)


def with_file(table: dict[str, Any], folder: Path) -> None:
    """Add the settings of the properties file that ``[storage]`` names, in place; the table's own come first."""
    file = table.get("properties")
    if not isinstance(file, str) or not file:
        return
    known = {one.name for one in fields(Storage) if one.type == "str"} - {"properties"}
    for name, value in resolved(read_client_properties(folder / file)).items():
        key = name.replace(".", "_").replace("-", "_")
        if key not in known:
            raise ConfigError(f"{folder / file}: {name}: unknown; there are {', '.join(sorted(known))}")
        table.setdefault(key, value.reveal() if isinstance(value, Secret) else value)


def options_for_delta(address: Address, storage: Storage) -> Options:
    """Of deltalake, and of every other program on the library ``object_store``."""
    return {**_DELTA[address.scheme](address, storage), **storage.options}


def options_for_hadoop(address: Address, storage: Storage) -> Options:
    """Hadoop's properties, by which Spark reaches the folder."""
    return _HADOOP[address.scheme](address, storage)


def _none(address: Address, storage: Storage) -> Options:
    return {}


def _s3_for_delta(address: Address, storage: Storage) -> Options:
    """Commits are made by a condition on the object (``If-None-Match``): of two writers one is refused."""
    found = {option: getattr(storage, name) for name, (option, _) in S3.items() if getattr(storage, name)}
    found["aws_conditional_put"] = "etag"
    if storage.endpoint:
        found.setdefault("aws_region", "us-east-1")
        found["allow_http"] = str(storage.endpoint.startswith("http:")).lower()
    if storage.path_style is not None:
        found["aws_virtual_hosted_style_request"] = str(not storage.path_style).lower()
    return found


def _s3_for_hadoop(address: Address, storage: Storage) -> Options:
    found = {name: getattr(storage, setting) for setting, (_, name) in S3.items() if getattr(storage, setting)}
    if storage.endpoint:
        found.setdefault("endpoint.region", "us-east-1")
        found["connection.ssl.enabled"] = str(not storage.endpoint.startswith("http:")).lower()
    if storage.endpoint or storage.path_style is not None:
        found["path.style.access"] = str(storage.path_style is not False).lower()
    return {f"fs.s3a.bucket.{address.authority}.{name}": value for name, value in found.items()}


def _azure_for_delta(address: Address, storage: Storage) -> Options:
    return {option: getattr(storage, name) for name, (option, _) in AZURE.items() if getattr(storage, name)}


def _azure_for_hadoop(address: Address, storage: Storage) -> Options:
    account = address.authority.partition("@")[2]
    found = {
        name: getattr(storage, setting) for setting, (_, name) in AZURE.items() if name and getattr(storage, setting)
    }
    if storage.sas_token:
        found["account.auth.type"] = "SAS"
    if storage.client_id:
        found["account.auth.type"] = "OAuth"
        found["account.oauth.provider.type"] = TOKENS
        found["account.oauth2.client.endpoint"] = LOGIN.format(storage.tenant_id)
    return {f"fs.azure.{name}.{account}": value for name, value in found.items()}


def _google_for_delta(address: Address, storage: Storage) -> Options:
    return {"google_service_account": storage.service_account} if storage.service_account else {}


def _google_for_hadoop(address: Address, storage: Storage) -> Options:
    if not storage.service_account:
        return {}
    keys = "fs.gs.auth.service.account.json.keyfile"
    return {"fs.gs.auth.type": "SERVICE_ACCOUNT_JSON_KEYFILE", keys: storage.service_account}


def _of_hdfs(address: Address, storage: Storage) -> Options:
    """Of a service with several name nodes: which they are.  deltalake takes Hadoop's own names."""
    if not storage.namenodes:
        return {}
    service = address.authority
    ids = {f"nn{number}": place for number, place in enumerate(storage.namenodes)}
    return {
        "dfs.nameservices": service,
        f"dfs.ha.namenodes.{service}": ",".join(ids),
        f"dfs.client.failover.proxy.provider.{service}": FAILOVER,
        **{f"dfs.namenode.rpc-address.{service}.{each}": place for each, place in ids.items()},
    }


def _hdfs_for_hadoop(address: Address, storage: Storage) -> Options:
    return {**_of_hdfs(address, storage), **storage.options}


Translation = Callable[[Address, Storage], Options]
_DELTA: Mapping[str, Translation] = {
    "file": _none,
    "s3a": _s3_for_delta,
    "abfss": _azure_for_delta,
    "gs": _google_for_delta,
    "hdfs": _of_hdfs,
}
_HADOOP: Mapping[str, Translation] = {
    "file": _none,
    "s3a": _s3_for_hadoop,
    "abfss": _azure_for_hadoop,
    "gs": _google_for_hadoop,
    "hdfs": _hdfs_for_hadoop,
}
