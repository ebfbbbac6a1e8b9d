"""Addresses of a pipeline's ``folder``, and ``[storage]`` as options for Spark and deltalake.

A setting of ``[storage]`` has another name in Hadoop's configuration, which Spark uses, and another one in deltalake's
options.  Hadoop's names contain the bucket or account of the folder.  Without settings, both libraries look for
credentials like the cloud's own tools: in the environment, or from the machine or pod.

Workers import this module, so it does not use pydantic.
"""

from __future__ import annotations

import re
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
    "CATALOG_SECRETS",
    "FORMATS",
    "Address",
    "Catalog",
    "Storage",
    "address_of",
    "check_path",
    "errors_of",
    "options_for_delta",
    "options_for_hadoop",
    "with_catalog_file",
    "with_file",
]

Options = dict[str, str]
STORES = ("s3a", "hdfs", "abfss", "gs")
"""Schemes of object stores and HDFS, as Spark writes them."""
SCHEMES = {"": "file", "s3": "s3a"}
"""Scheme in the settings → Spark's scheme, where they differ."""
LOGIN = "https://login.microsoftonline.com/{}/oauth2/token"
"""The token endpoint of an Azure tenant."""
TOKENS = "org.apache.hadoop.fs.azurebfs.oauth2.ClientCredsTokenProvider"
FAILOVER = "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
"""Hadoop's class that finds the active name node."""

SECRETS = ("secret_key", "session_token", "account_key", "sas_token", "client_secret")
"""Settings of ``[storage]`` whose values no error, log or plan shows."""


CATALOG_SECRETS = ("uri", "credential", "token")
"""Settings of ``[storage.catalog]`` whose values no error, log or plan shows; the address may have a password."""


@dataclass(frozen=True)
class Catalog:
    """A catalog of Iceberg tables."""

    type: str
    """``sql`` or ``rest``."""
    uri: str = field(repr=False)
    """SQL: the address of the database in SQLAlchemy's form (``sqlite:////data/catalog.db``); REST: of the server."""
    name: str = "default"
    """The name of the catalog.  The rows of a SQL catalog contain it, so other programs must use the same name."""
    namespace: str = ""
    """The namespace of the tables; default: the name of the pipeline."""
    warehouse: str = ""
    """REST: the warehouse in the server, if it has several."""
    credential: str = field(default="", repr=False)
    """REST: ``ID:SECRET`` of an OAuth client."""
    token: str = field(default="", repr=False)
    """REST: a bearer token."""
    properties: str = ""
    """A properties file with some or all of the settings above, and further properties of pyiceberg."""
    options: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    """Further properties of pyiceberg's catalogs."""

    def __post_init__(self) -> None:
        for name in CATALOG_SECRETS:
            object.__setattr__(self, name, HiddenText(getattr(self, name)))
        object.__setattr__(self, "options", {name: HiddenText(value) for name, value in self.options.items()})


@dataclass(frozen=True)
class Storage:
    """Connection and credentials of the store that has the folder, and the format of the tables."""

    properties: str = ""
    """A properties file with some or all of the settings below; it may refer to config providers."""
    endpoint: str = ""
    """S3: the server's address, such as ``http://minio:9000``; default: Amazon's."""
    region: str = ""
    """S3: the region of the bucket."""
    access_key: str = ""
    """S3: the id of an access key."""
    secret_key: str = field(default="", repr=False)
    """S3: the secret of the access key."""
    session_token: str = field(default="", repr=False)
    """S3: the session token of temporary credentials."""
    path_style: Literal[True, False] | None = None
    """S3: whether the bucket is in the path, not in the host name; default: true with an endpoint."""
    account_key: str = field(default="", repr=False)
    """Azure: the key of the storage account."""
    sas_token: str = field(default="", repr=False)
    """Azure: a shared access signature."""
    tenant_id: str = ""
    """Azure: the directory of a service principal."""
    client_id: str = ""
    """Azure: the service principal."""
    client_secret: str = field(default="", repr=False)
    """Azure: the secret of the service principal."""
    service_account: str = ""
    """Google: the key file of a service account; every machine needs it at this path."""
    namenodes: tuple[str, ...] = ()
    """HDFS: ``HOST:PORT`` of each name node, if the folder's address names a service of several."""
    options: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    """Further options of the ``object_store`` library; on HDFS Hadoop's properties, also for Spark."""
    format: str = "delta"
    """The format of the tables: ``delta`` or ``iceberg``."""
    catalog: Catalog | None = None
    """The catalog of Iceberg tables."""

    def __post_init__(self) -> None:
        for name in SECRETS:
            object.__setattr__(self, name, HiddenText(getattr(self, name)))
        object.__setattr__(self, "namenodes", tuple(self.namenodes))
        object.__setattr__(self, "options", {name: HiddenText(value) for name, value in self.options.items()})

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Storage:
        """The settings in a document that ``dataclasses.asdict`` has made."""
        catalog = document.get("catalog")
        return cls(**{**document, "catalog": None if catalog is None else Catalog(**catalog)})


@dataclass(frozen=True)
class Address:
    """The address of a folder, without a slash at the end."""

    scheme: str
    """``file`` or one of :data:`STORES`."""
    authority: str
    """Bucket, name node or container; empty on this machine."""
    path: str
    """A path of this machine; on a store it begins with a slash, or is empty."""

    @property
    def is_local(self) -> bool:
        return self.scheme == "file"

    @property
    def spark(self) -> str:
        """The address for Spark."""
        return self.path if self.is_local else f"{self.scheme}://{self.authority}{self.path}"

    @property
    def delta(self) -> str:
        """The address for deltalake."""
        return f"s3://{self.authority}{self.path}" if self.scheme == "s3a" else self.spark

    def below(self, *names: str) -> Address:
        """The address of a folder or file below it."""
        return Address(self.scheme, self.authority, "/".join([self.path.rstrip("/"), *names]))


def address_of(text: str, folder: Path) -> Address:
    """The address in a text.  A relative path counts from ``folder``.

    Raises:
        ConfigError: the scheme is unknown, a part is missing or wrong, or the address has credentials.
    """
    try:
        parts = urlsplit(text)
    except ValueError as error:
        raise ConfigError(f"folder: {error}") from None
    scheme = SCHEMES.get(parts.scheme, parts.scheme)
    if scheme not in ("file", *STORES):
        raise ConfigError(f"folder: {scheme}: is not one of file:, s3:, {', '.join(f'{one}:' for one in STORES)}")
    if scheme == "file":
        if parts.scheme and parts.netloc not in ("", "localhost"):
            raise ConfigError(f"folder: {text!r} names the host {parts.netloc}; write file:///PATH with three slashes")
        path = text if not parts.scheme else unquote(parts.path)
        return Address("file", "", str(folder / path))
    if parts.password is not None or (parts.username is not None and scheme != "abfss"):
        raise ConfigError("folder: the address has credentials; move them to settings of [storage]")
    shown = re.split("[?#]", text)[0]  # a query may be a shared access signature
    if parts.query or parts.fragment:
        raise ConfigError(f"folder: {shown!r} is followed by a query or a fragment; use settings of [storage] instead")
    if not parts.hostname or (scheme == "abfss" and not parts.username):
        raise ConfigError(f"folder: {shown!r} is not of the form {EXAMPLES[scheme]}")
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
"""Setting → deltalake's option, and the part of Hadoop's name that is the same for all accounts."""
OF_SCHEME = {
    "file": (),
    "s3a": (*S3, "path_style", "options"),
    "abfss": (*AZURE, "options"),
    "gs": ("service_account", "options"),
    "hdfs": ("namenodes", "options"),
}
"""Scheme → the settings of ``[storage]`` that apply."""
OF_EVERY_FOLDER = ("format", "catalog", "properties")
"""Settings of ``[storage]`` that apply to each scheme."""
FORMATS = ("delta", "iceberg")
CATALOG_TYPES = ("sql", "rest")
TOGETHER = {"access_key": "secret_key", "secret_key": "access_key", "session_token": "access_key"}
TOGETHER.update({"client_id": "client_secret", "client_secret": "tenant_id", "tenant_id": "client_id"})
"""Setting → another setting that it needs."""


def errors_of(address: Address, storage: Storage) -> Iterator[tuple[str, str]]:
    """Key and error of each setting that does not apply to this address, or needs another one."""
    yield from _errors_of_format(storage)
    known = OF_SCHEME[address.scheme]
    for one in fields(Storage):
        if one.name in OF_EVERY_FOLDER or not _is_set(storage, one.name):
            continue
        if one.name not in known:
            there = f"use {', '.join(known)}" if known else "remove it, since a local folder needs no [storage]"
            yield f"storage.{one.name}", f"does not apply to a folder on {address.scheme}:; {there}"
        elif one.name in TOGETHER and not _is_set(storage, TOGETHER[one.name]):
            yield f"storage.{one.name}", f"needs storage.{TOGETHER[one.name]}, too"
    if storage.namenodes and ":" in address.authority:
        yield (
            "storage.namenodes",
            f"the folder names the name node {address.authority}; use the name of the service there, or remove this",
        )


def _errors_of_format(storage: Storage) -> Iterator[tuple[str, str]]:
    catalog = storage.catalog
    if storage.format not in FORMATS:
        yield "storage.format", f"{storage.format!r} is not one of {', '.join(FORMATS)}"
    elif catalog is None:
        if storage.format == "iceberg":
            yield "storage.catalog", "needed for storage.format = 'iceberg'"
    elif storage.format != "iceberg":
        yield "storage.catalog", "requires storage.format = 'iceberg'"
    elif catalog.type not in CATALOG_TYPES:
        yield "storage.catalog.type", f"{catalog.type!r} is not one of {', '.join(CATALOG_TYPES)}"
    elif catalog.type == "sql":
        for name in ("warehouse", "credential", "token"):
            if getattr(catalog, name):
                yield f"storage.catalog.{name}", "applies to type = 'rest' only; remove it"


def _is_set(storage: Storage, name: str) -> bool:
    value = getattr(storage, name)
    return value is not None and bool(value or value is False)


def with_file(table: dict[str, Any], folder: Path) -> None:
    """Add the settings of the file ``storage.properties`` to the table, in place; the table's own settings win."""
    file = table.get("properties")
    if not isinstance(file, str) or not file:
        return
    known = {one.name for one in fields(Storage) if one.type == "str"} - set(OF_EVERY_FOLDER)
    for name, value in resolved(read_client_properties(folder / file)).items():
        key = name.replace(".", "_").replace("-", "_")
        if key not in known:
            raise ConfigError(f"{folder / file}: {name}: unknown; known are {', '.join(sorted(known))}")
        table.setdefault(key, value.reveal() if isinstance(value, Secret) else value)


def with_catalog_file(table: dict[str, Any], folder: Path) -> None:
    """Add the settings of the file ``storage.catalog.properties`` to the table, in place; its own settings win.

    Properties that are no settings of ``[storage.catalog]`` become ``options``.
    """
    file = table.get("properties")
    if not isinstance(file, str) or not file:
        return
    settings = {one.name for one in fields(Catalog)} - {"options", "properties"}
    options = table.setdefault("options", {})
    for name, value in resolved(read_client_properties(folder / file)).items():
        text = value.reveal() if isinstance(value, Secret) else value
        if name in settings:
            table.setdefault(name, text)
        elif isinstance(options, dict):
            options.setdefault(name, text)


def options_for_delta(address: Address, storage: Storage) -> Options:
    """The options for deltalake, and for other programs on the library ``object_store``."""
    return {**_DELTA[address.scheme](address, storage), **storage.options}


def options_for_hadoop(address: Address, storage: Storage) -> Options:
    """Hadoop's properties, for Spark."""
    return _HADOOP[address.scheme](address, storage)


def _none(address: Address, storage: Storage) -> Options:
    return {}


def _s3_for_delta(address: Address, storage: Storage) -> Options:
    """Commits are conditional writes (``If-None-Match``), so that one of two writers is refused."""
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
    """The name nodes of a service.  deltalake uses Hadoop's own names."""
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
