"""Key stores: what Java and OpenSSL write, damaged ones, and wrong or missing passwords."""

from __future__ import annotations

import os
import ssl
import sys
from pathlib import Path
from typing import Any

import jks as writer
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12

from pykafka08.errors import ConfigError
from pykafka08.security.client_key import load_key_in_memory
from pykafka08.security.keystores import KeyAndChain, key_in, read_store, trusted_in
from pykafka08.security.secret import Secret
from tests.security.authority import Authority, Issued
from tests.security.secrets_found import SecretSearch

PASSWORD, KEY_PASSWORD = Secret("store-secret"), Secret("key-sécret")


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def client(authority: Authority) -> Issued:
    return authority.issue("a client", is_for_clients=True)


@pytest.fixture(scope="module")
def jks_key(authority: Authority, client: Issued) -> bytes:
    entry = writer.PrivateKeyEntry.new("me", [client.der, authority.own.der], client.key_der, "pkcs8")
    entry.encrypt(KEY_PASSWORD.reveal())
    ca = writer.TrustedCertEntry.new("ca", authority.own.der)
    saved: bytes = writer.KeyStore.new("jks", [ca, entry]).saves(PASSWORD.reveal())
    return saved


class Folder:
    """Reads stores by their bytes."""

    def __init__(self, path: Path) -> None:
        self._path = path / "store"

    def trusted(self, data: bytes, password: Secret | None = None, kind: str | None = None) -> str:
        self._path.write_bytes(data)
        return trusted_in(read_store(str(self._path), "ssl_truststore_location", kind), password)

    def key(self, data: bytes, password: Secret | None = None, key_password: Secret | None = None) -> KeyAndChain:
        self._path.write_bytes(data)
        return key_in(read_store(str(self._path), "ssl_keystore_location", None), password, key_password)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_a_jks_store_gives_its_key_and_its_certificates(
    folder: Folder, jks_key: bytes, authority: Authority, client: Issued
) -> None:
    own = folder.key(jks_key, PASSWORD, KEY_PASSWORD)
    assert own.key == client.key_pem
    assert own.chain == client.pem + authority.own.pem
    assert own.password is None
    assert folder.trusted(jks_key, PASSWORD) == (authority.own.pem + client.pem).decode()  # as in Java


def test_without_a_password_the_digest_of_jks_is_not_checked(
    folder: Folder, jks_key: bytes, authority: Authority
) -> None:
    assert authority.own.pem.decode() in folder.trusted(jks_key[:-1] + b"x")
    assert folder.key(jks_key, None, KEY_PASSWORD).key


@pytest.mark.parametrize(
    ("password", "key_password", "text"),
    [
        (Secret("not-the-password"), KEY_PASSWORD, "password is wrong; see ssl_keystore_password"),
        (PASSWORD, Secret("not-the-password"), "ssl_key_password does not open the private key$"),
        (PASSWORD, None, "ssl_keystore_password does not open the private key: set ssl_key_password"),
        (None, None, "needs ssl_keystore_password or ssl_key_password"),
    ],
)
def test_a_wrong_password_of_jks_is_named_and_shown_nowhere(
    password: Secret | None, key_password: Secret | None, text: str, folder: Folder, jks_key: bytes
) -> None:
    with pytest.raises(ConfigError, match=text) as caught:
        folder.key(jks_key, password, key_password)
    search = SecretSearch("not-the-password", PASSWORD.reveal(), KEY_PASSWORD.reveal())
    search.of_error("a wrong password", caught.value)
    assert search.searched > 10
    assert search.found == []


def test_a_wrong_password_of_pkcs12_is_shown_nowhere(folder: Folder, client: Issued) -> None:
    lock = serialization.BestAvailableEncryption(PASSWORD.reveal().encode())
    data = pkcs12.serialize_key_and_certificates(b"me", client.key, client.certificate, None, lock)
    search = SecretSearch("not-the-password")
    for password in (Secret("not-the-password"), None):
        with pytest.raises(ConfigError, match="ssl_keystore_password is wrong or missing") as caught:
            folder.key(data, password)
        search.of_error("a wrong password", caught.value)
    assert search.found == []


@pytest.mark.parametrize("has_memory_files", [True, False])
def test_a_key_that_cannot_be_used_is_shown_nowhere(
    has_memory_files: bool, authority: Authority, client: Issued, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_memory_files:
        monkeypatch.delattr(os, "memfd_create", raising=False)
    other = authority.issue("another client", is_for_clients=True)
    locked = client.encrypted_key(PASSWORD.reveal())
    damaged = client.key_pem.replace(b"PRIVATE KEY-----\nM", b"PRIVATE KEY-----\nA")
    wrong, search = (
        Secret("not-the-password"),
        SecretSearch("not-the-password", client.key_pem.decode().split("\n")[1][1:]),
    )
    for own, why in (
        (KeyAndChain(client.key_pem, other.pem, None), "the private key does not belong to the certificate"),
        (KeyAndChain(damaged, client.pem, None), "damaged|cannot be read"),
        (KeyAndChain(locked, client.pem, None), "the private key is encrypted: set ssl_key_password"),
        (KeyAndChain(locked, client.pem, wrong), "ssl_key_password is wrong"),
    ):
        with pytest.raises(ConfigError, match=why) as caught:
            load_key_in_memory(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), own, "the key", "ssl_keystore_key")
        search.of_error(why, caught.value)
    assert search.found == []


def test_a_damaged_jks_store_is_a_config_error(folder: Folder, jks_key: bytes) -> None:
    for end in range(4, len(jks_key), 97):
        with pytest.raises(ConfigError, match=r"ssl_truststore_location=.* cannot be opened"):
            folder.trusted(jks_key[:end])
    for at in range(4, len(jks_key), 97):
        with pytest.raises(ConfigError, match=r"ssl_truststore_location=.* cannot be opened"):
            folder.trusted(jks_key[:at] + bytes([jks_key[at] ^ 0xFF]) + jks_key[at + 1 :], PASSWORD)


def test_a_damaged_jks_key_is_a_config_error(folder: Folder, jks_key: bytes) -> None:
    start = jks_key.index(b"\x30\x82", jks_key.index(b"me"))
    for at in range(start, start + 1200, 13):
        with pytest.raises(ConfigError, match="ssl_keystore_location="):
            folder.key(jks_key[:at] + bytes([jks_key[at] ^ 0xFF]) + jks_key[at + 1 :], None, KEY_PASSWORD)


@pytest.mark.parametrize("text", ["", "changeit"])
def test_a_pkcs12_trust_store_opens_with_its_password_even_if_empty(
    text: str, folder: Folder, authority: Authority
) -> None:
    lock: Any = serialization.BestAvailableEncryption(text.encode()) if text else serialization.NoEncryption()
    data = pkcs12.serialize_key_and_certificates(None, None, None, [authority.own.certificate], lock)
    for kind in (None, "PKCS12", "jks"):  # Java 9 and later read it under JKS too
        assert folder.trusted(data, Secret(text), kind) == authority.own.pem.decode()
    if not text:
        assert folder.trusted(data) == authority.own.pem.decode()
    with pytest.raises(ConfigError, match="ssl_truststore_password is wrong or missing"):
        folder.trusted(data, Secret("not-the-password"))


def test_a_damaged_pkcs12_store_is_a_config_error(folder: Folder, authority: Authority, client: Issued) -> None:
    lock = serialization.BestAvailableEncryption(PASSWORD.reveal().encode())
    data = pkcs12.serialize_key_and_certificates(b"me", client.key, client.certificate, None, lock)
    for end in range(1, len(data), 499):
        with pytest.raises(ConfigError, match="ssl_keystore_location="):
            folder.key(data[:end], PASSWORD)
    bare = pkcs12.serialize_key_and_certificates(None, None, None, [authority.own.certificate], lock)
    with pytest.raises(ConfigError, match="has no private key with a certificate"):
        folder.key(bare, PASSWORD)


def test_pem_may_have_comments_in_every_language(folder: Folder, authority: Authority) -> None:
    text = folder.trusted("# Főtanúsítvány\n".encode() + authority.own.pem)
    ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=text)


@pytest.mark.parametrize(
    ("data", "kind", "text"),
    [
        (b"\xce\xce\xce\xce\0\0\0\2", None, "convert JCEKS with keytool"),
        (b"", None, "is neither JKS nor PKCS #12 nor PEM"),
        (b"-----BEGIN PRIVATE KEY-----", None, "has no certificate"),
        (b"-----BEGIN CERTIFICATE-----", "JKS", "is PEM, not JKS"),
        (b"\xfe\xed\xfe\xed", "pem", "is JKS, not PEM"),
        (b"", "BKS", "ssl_truststore_type='BKS' is not one of JKS, PKCS12, PEM"),
        (b"\xfe\xed\xfe\xed\0\0\0\2\0\0\0\0" + bytes(20), None, "has no trusted certificate"),
    ],
)
def test_stores_that_cannot_be_used_are_named(data: bytes, kind: str | None, text: str, folder: Folder) -> None:
    with pytest.raises(ConfigError, match=text):
        folder.trusted(data, None, kind)


def test_only_pkcs12_needs_the_extra(
    folder: Folder, jks_key: bytes, client: Issued, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = pkcs12.serialize_key_and_certificates(None, None, None, [client.certificate], serialization.NoEncryption())
    for name in ["cryptography", "jks", *(name for name in sys.modules if name.startswith("cryptography."))]:
        monkeypatch.setitem(sys.modules, name, None)
    assert folder.key(jks_key, PASSWORD, KEY_PASSWORD).key
    with pytest.raises(ConfigError, match=r"pip install 'pykafka08\[keystores\]'"):
        folder.trusted(data)
