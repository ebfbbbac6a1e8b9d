"""The blocks of docs/clouds.md, and what stands here for the names, credentials and files that they have."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeVar

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509 import load_pem_x509_certificate, load_pem_x509_certificates

from pykafka08 import Admin, Consumer, Producer

__all__ = ["KERBEROS", "PAIRS", "Block", "Pair", "replaced", "write_files", "write_kerberos_files"]

PAGE = Path(__file__).parents[2] / "docs" / "clouds.md"
KERBEROS = "Cloudera, and other clusters with Kerberos"

ENVIRONMENT = {
    "API_KEY": "KEY",
    "API_SECRET": "SECRET",
    "MSK_USER": "USER",
    "MSK_PASSWORD": "PASSWORD",
    "EVENT_HUBS_CONNECTION_STRING": "CONNECTION_STRING",
    "CLIENT_ID": "ID",
    "CLIENT_SECRET": "SECRET",
    "AIVEN_PASSWORD": "PASSWORD",
    "REDPANDA_USER": "USER",
    "REDPANDA_PASSWORD": "PASSWORD",
}
"""Variables that the Python blocks read; the values are those in the properties beside them."""
PASSWORDS = {"ca": b"CA_PASSWORD", "client": b"STORE_PASSWORD", "service": b"STORE_PASSWORD", "user": b"STORE_PASSWORD"}
"""Passwords of the stores in the properties, by the stem of the file's name."""
ADDRESS = re.compile(r"[\w.-]+:\d+(?=[\"\n])")
CERTIFICATES = ("client.pem", "service.cert", "etc/user/user.crt")
KEYS = ("client.key", "service.key", "etc/user/user.key")
KEY_STORES = ("client.p12", "service.p12", "etc/user/user.p12")
AUTHORITIES = ("ca.pem", "etc/cluster-ca/ca.crt", "etc/ssl/cluster-ca.pem")
KEYTAB = "etc/security/keytabs/reader.keytab"
TRUST_STORE = "etc/cluster-ca/ca.p12"

Client = TypeVar("Client", Admin, Consumer, Producer)


class Block(NamedTuple):
    """One block: its language, ``python`` or ``properties``, and its text."""

    language: str
    text: str

    def settings(self) -> dict[str, Any]:
        """The settings that a Python block assigns."""
        names: dict[str, Any] = {"os": SimpleNamespace(environ=ENVIRONMENT)}
        exec(self.text, names)  # noqa: S102 - the project's own page
        found: dict[str, Any] = names["settings"]
        return found

    def client(self, kind: type[Client], folder: Path, *topics: str, **more: Any) -> Client:
        """A client with these settings; a properties block goes through a file in ``folder``."""
        if self.language == "python":
            return kind(*topics, **{**self.settings(), **more})
        file = folder / "client.properties"
        file.write_text(self.text)
        return kind.from_properties(file, *topics, **more)


class Pair(NamedTuple):
    """The two blocks for one way to log in, under the heading of a service."""

    heading: str
    number: int
    python: Block
    properties: Block

    @property
    def name(self) -> str:
        return f"{self.heading} {self.number}"


def _pairs() -> list[Pair]:
    found = []
    for section in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        heading = section.partition("\n")[0]
        blocks = [Block(*each) for each in re.findall(r"^```(\w+)\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)]
        languages = [block.language for block in blocks]
        assert languages == ["python", "properties"] * (len(blocks) // 2), (heading, languages)
        found += [Pair(heading, number, *blocks[number * 2 :][:2]) for number in range(len(blocks) // 2)]
    return found


PAIRS = _pairs()


def replaced(block: Block, address: str, folder: Path, more: Mapping[str, str] | None = None) -> Block:
    """The block with another address of the brokers, with absolute paths in ``folder``, and with ``more`` texts."""
    text, count = ADDRESS.subn(address, block.text)
    assert count == 1
    text = text.replace("/etc/", f"{folder}/etc/")
    for old, new in (more or {}).items():
        assert old in text
        text = text.replace(old, new)
    return Block(block.language, text)


def write_files(folder: Path, ca_file: str, client_file: str | None) -> None:
    """Every file of the page, in its format, out of PEM files of a CA and of a client's key and chain."""
    ca = Path(ca_file).read_bytes()
    authority = load_pem_x509_certificate(ca)
    lock = serialization.BestAvailableEncryption(PASSWORDS["ca"])
    files = dict.fromkeys(AUTHORITIES, ca)
    files[TRUST_STORE] = pkcs12.serialize_java_truststore([pkcs12.PKCS12Certificate(authority, b"ca")], lock)
    if client_file is not None:
        files.update(_client_files(Path(client_file).read_bytes()))
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def write_kerberos_files(folder: Path, ca_file: str, keytab: Path) -> None:
    """The files of the page's section on Kerberos."""
    write_files(folder, ca_file, None)
    target = folder / KEYTAB
    target.parent.mkdir(parents=True)
    target.write_bytes(keytab.read_bytes())


def _client_files(client: bytes) -> dict[str, bytes]:
    chain = load_pem_x509_certificates(client)
    key: Any = serialization.load_pem_private_key(client, None)
    plain = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    files = dict.fromkeys(CERTIFICATES, b"".join(each.public_bytes(plain[0]) for each in chain))
    files.update(dict.fromkeys(KEYS, key.private_bytes(*plain)))
    for name in KEY_STORES:
        lock = serialization.BestAvailableEncryption(PASSWORDS[Path(name).stem])
        files[name] = pkcs12.serialize_key_and_certificates(b"me", key, chain[0], chain[1:], lock)
    return files
