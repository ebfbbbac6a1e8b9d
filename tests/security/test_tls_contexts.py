"""TLS contexts: which certificates are accepted, every format of stores, changes on disk, and wrong settings."""

from __future__ import annotations

import datetime
import logging
import os
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jks
import pytest
import truststore
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12

from pykafka08.errors import CertificateError, ConfigError, TlsError
from pykafka08.security import client_key
from pykafka08.security.tls import TlsContexts
from tests.security.authority import Authority, Issued
from tests.security.handshakes import ADDRESS, HOST, config, handshake, refused

PASSWORD, KEY_PASSWORD = "store-secret", "key-secret"
DAY = datetime.timedelta(days=1)


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def client(authority: Authority) -> Issued:
    return authority.issue("a client", is_for_clients=True)


@pytest.fixture(scope="module")
def server(authority: Authority) -> Issued:
    return authority.issue(HOST)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Path:
    path = tmp_path_factory.mktemp("tls")
    (path / "ca.pem").write_bytes(authority.own.pem)
    return path


@pytest.mark.parametrize(
    ("reason", "made"),
    [
        ("expired", lambda ca: ca.issue(HOST, begins=-3 * DAY, ends=-DAY)),
        ("not yet valid", lambda ca: ca.issue(HOST, begins=DAY, ends=2 * DAY)),
        ("wrong host", lambda ca: ca.issue("other.example.com")),
        ("self-signed", lambda ca: ca.issue(HOST, is_self_signed=True)),
        ("unknown CA", lambda ca: Authority("another CA").issue(HOST)),
        ("wrong purpose", lambda ca: ca.issue(HOST, is_for_clients=True)),
    ],
)
def test_a_bad_certificate_is_refused_with_its_reason(
    reason: str, made: Callable[[Authority], Issued], authority: Authority, folder: Path
) -> None:
    error = refused(config(ssl_cafile=str(folder / "ca.pem")), made(authority).server_context(folder))
    assert isinstance(error, CertificateError)
    assert error.reason == reason
    assert f"({reason})" in str(error)
    assert ADDRESS in str(error)


def test_an_address_must_be_in_the_certificate(authority: Authority, folder: Path, server: Issued) -> None:
    settings = config(ssl_cafile=str(folder / "ca.pem"))
    error = refused(settings, server.server_context(folder), "127.0.0.1")
    assert isinstance(error, CertificateError)
    assert error.reason == "wrong host"
    assert "not for '127.0.0.1' but for kafka.example.com; " in str(error)
    assert "'IP' entry" in str(error)
    handshake(TlsContexts(settings).current(), authority.issue("127.0.0.1").server_context(folder), "127.0.0.1")


def test_a_revoked_certificate_is_refused(authority: Authority, folder: Path, server: Issued) -> None:
    good, bad = server, authority.issue(HOST)
    (folder / "crl.pem").write_bytes(authority.revoke(bad))
    settings = config(ssl_cafile=str(folder / "ca.pem"), ssl_crlfile=str(folder / "crl.pem"))
    handshake(TlsContexts(settings).current(), good.server_context(folder))
    error = refused(settings, bad.server_context(folder))
    assert isinstance(error, CertificateError)
    assert error.reason == "revoked"


def test_a_revoked_intermediate_ca_is_refused_with_a_context_of_the_application(
    authority: Authority, folder: Path, tmp_path: Path
) -> None:
    """``ssl_crlfile`` is about the broker's own certificate, as docs/settings.md says."""
    between = Authority("an intermediate CA", authority)
    server = between.issue(HOST).server_context(folder, below=between.own)
    lists = tmp_path / "crl.pem"
    lists.write_bytes(authority.revoke(between.own) + between.revoke())
    handshake(TlsContexts(config(ssl_cafile=str(folder / "ca.pem"), ssl_crlfile=str(lists))).current(), server)
    checks_all = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    checks_all.load_verify_locations(lists)
    checks_all.verify_flags |= ssl.VerifyFlags.VERIFY_CRL_CHECK_CHAIN
    error = refused(config(ssl_context=checks_all), server)
    assert isinstance(error, CertificateError)
    assert error.reason == "revoked"


def jks_trust(authority: Authority) -> bytes:
    entry = jks.TrustedCertEntry.new("ca", authority.own.der)
    saved: bytes = jks.KeyStore.new("jks", [entry]).saves(PASSWORD)
    return saved


def jks_key(client: Issued, authority: Authority) -> bytes:
    entry = jks.PrivateKeyEntry.new("me", [client.der, authority.own.der], client.key_der, "pkcs8")
    entry.encrypt(KEY_PASSWORD)
    saved: bytes = jks.KeyStore.new("jks", [entry]).saves(PASSWORD)
    return saved


def pkcs12_key(client: Issued, authority: Authority) -> bytes:
    lock = serialization.BestAvailableEncryption(PASSWORD.encode())
    return pkcs12.serialize_key_and_certificates(
        b"me", client.key, client.certificate, [authority.own.certificate], lock
    )


def pkcs12_trust(authority: Authority) -> bytes:
    lock = serialization.BestAvailableEncryption(PASSWORD.encode())
    return pkcs12.serialize_key_and_certificates(None, None, None, [authority.own.certificate], lock)


@pytest.mark.parametrize("kind", [None, "right"])
@pytest.mark.parametrize("trust", ["JKS", "PKCS12", "PEM", "inline"])
@pytest.mark.parametrize("own", ["JKS", "PKCS12", "PEM", "PEM locked", "inline", "inline locked", "files"])
def test_every_format_of_stores_gives_a_mutual_handshake(
    kind: str | None, trust: str, own: str, authority: Authority, client: Issued, server: Issued, folder: Path
) -> None:
    settings: dict[str, Any] = {}
    if trust == "inline":
        settings["ssl_truststore_certificates"] = authority.own.pem.decode()
        settings["ssl_truststore_type"] = "PEM" if kind else None
    else:
        data = {"JKS": jks_trust, "PKCS12": pkcs12_trust, "PEM": lambda ca: ca.own.pem}[trust](authority)
        path = folder / f"trust.{trust}"
        path.write_bytes(data)
        settings |= {"ssl_truststore_location": str(path), "ssl_truststore_type": trust if kind else None}
        if trust != "PEM":
            settings["ssl_truststore_password"] = PASSWORD
    name, _, locked = own.partition(" ")
    key = client.encrypted_key(KEY_PASSWORD) if locked else client.key_pem
    if name == "inline":
        settings["ssl_keystore_key"] = key.decode()
        settings["ssl_keystore_certificate_chain"] = (client.pem + authority.own.pem).decode().strip()
    elif name == "files":
        (folder / "own.pem").write_bytes(client.pem)
        (folder / "own.key").write_bytes(client.encrypted_key(KEY_PASSWORD))
        settings |= {"ssl_certfile": str(folder / "own.pem"), "ssl_keyfile": str(folder / "own.key")}
        settings["ssl_password"] = KEY_PASSWORD
    else:
        data = key + client.pem
        if name != "PEM":
            data = {"JKS": jks_key, "PKCS12": pkcs12_key}[name](client, authority)
        path = folder / f"own.{name}"
        path.write_bytes(data)
        settings |= {"ssl_keystore_location": str(path), "ssl_keystore_type": name if kind else None}
        if name != "PEM":
            settings["ssl_keystore_password"] = PASSWORD
    if locked or name == "JKS":
        settings["ssl_key_password"] = KEY_PASSWORD
    context = TlsContexts(config(**settings)).current()
    side = handshake(context, server.server_context(folder, client_ca=authority.own))
    certificate = side.getpeercert()
    assert certificate is not None
    assert certificate["subject"] == ((("commonName", "a client"),),)


SEPARATORS = [b" ", b"\r", b"\r\n", b" \n    ", b"\t"]


@pytest.mark.parametrize("separator", SEPARATORS)
@pytest.mark.parametrize("is_inline", [False, True], ids=["file", "inline"])
@pytest.mark.parametrize("is_locked", [False, True], ids=["open", "locked"])
def test_any_white_space_separates_the_lines_of_pem(
    separator: bytes,
    is_inline: bool,
    is_locked: bool,
    authority: Authority,
    client: Issued,
    server: Issued,
    folder: Path,
) -> None:
    """As in Java, so that a property may be continued over several lines."""
    key = client.encrypted_key(KEY_PASSWORD) if is_locked else client.key_pem
    trusted, chain, key = (text.replace(b"\n", separator) for text in (authority.own.pem, client.pem, key))
    settings: dict[str, Any] = {"ssl_key_password": KEY_PASSWORD} if is_locked else {}
    if is_inline:
        settings["ssl_truststore_certificates"] = trusted.decode()
        settings |= {"ssl_keystore_key": key.decode(), "ssl_keystore_certificate_chain": chain.decode()}
    else:
        for name, data in (("truststore", trusted), ("keystore", key + chain)):
            (folder / f"{name}.pem").write_bytes(data)
            settings[f"ssl_{name}_location"] = str(folder / f"{name}.pem")
    context = TlsContexts(config(**settings)).current()
    assert handshake(context, server.server_context(folder, client_ca=authority.own)).getpeercert()


def test_a_missing_client_certificate_says_what_to_set(authority: Authority, server: Issued, folder: Path) -> None:
    error = refused(config(ssl_cafile=str(folder / "ca.pem")), server.server_context(folder, client_ca=authority.own))
    assert type(error) is TlsError
    assert str(error).endswith("the broker demands a client certificate: set ssl_certfile or ssl_keystore_location")


def test_changed_files_are_used_and_broken_ones_are_not(
    authority: Authority, folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "ca.pem"
    path.write_bytes(authority.own.pem)
    other = Authority("the next CA")
    contexts = TlsContexts(config(ssl_cafile=str(path)))
    first = contexts.current()
    assert contexts.is_current
    assert contexts.current() is first
    path.write_bytes(other.own.pem[:100])
    with caplog.at_level(logging.WARNING):
        assert not contexts.is_current
        assert contexts.current() is first
        assert contexts.current() is first
    assert len(caplog.records) == 1
    path.write_bytes(other.own.pem)
    assert contexts.current() is not first
    assert contexts.is_current
    handshake(contexts.current(), other.issue(HOST).server_context(folder))


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"ssl_cafile": "/nowhere/ca.pem"}, "ssl_cafile='/nowhere/ca.pem' cannot be read: No such file"),
        ({"ssl_cadata": "no certificate"}, "ssl_cadata"),
        ({"ssl_truststore_location": "/nowhere/t.jks"}, "ssl_truststore_location='/nowhere/t.jks' cannot be read"),
        ({"ssl_keyfile": "/nowhere/key.pem"}, "ssl_keyfile without ssl_certfile"),
        ({"ssl_keystore_key": "x"}, "go together"),
        ({"ssl_truststore_password": "x"}, "ssl_truststore_password is given without ssl_truststore_location"),
        ({"ssl_keystore_password": "x"}, "ssl_keystore_password is given without ssl_keystore_location"),
        ({"ssl_endpoint_identification_algorithm": "ldaps"}, "neither 'https' nor empty"),
        ({"ssl_enabled_protocols": "TLSv1.1"}, "ssl_enabled_protocols"),
        (
            {"ssl_enabled_protocols": "TLSv1.3,tlsv1.2"},
            "ssl_enabled_protocols='TLSv1.3,tlsv1.2' has an unknown TLS version",
        ),
        ({"ssl_protocol": "SSLv3"}, "ssl_protocol='SSLv3'"),
        ({"ssl_protocol": "TLSv1.2", "ssl_enabled_protocols": "TLSv1.3"}, "no TLS version in common"),
        ({"ssl_cipher_suites": "TLS_AES_128_GCM_SHA256"}, "name all cipher suites of TLS 1.3 or none"),
        ({"ssl_cipher_suites": "SSL_RSA_WITH_RC4_128_MD5"}, "ssl_cipher_suites"),
        ({"ssl_ciphers": "NO-SUCH-CIPHER"}, "ssl_ciphers"),
        ({"ssl_context": ssl.create_default_context(), "ssl_cafile": "x"}, "leave out ssl_cafile"),
        ({"ssl_context": ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)}, "ssl_context is a context for servers"),
    ],
)
def test_settings_that_cannot_be_used_are_named(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text.replace("(", r"\(")):
        TlsContexts(config(**settings))


@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
def test_a_wrong_password_is_named_and_not_shown(kind: str, authority: Authority, client: Issued, folder: Path) -> None:
    data = {"JKS": jks_key, "PKCS12": pkcs12_key}[kind](client, authority)
    (folder / "wrong").write_bytes(data)
    for password in (None, "not-the-password"):
        with pytest.raises(ConfigError, match="ssl_keystore_password") as caught:
            TlsContexts(config(ssl_keystore_location=str(folder / "wrong"), ssl_keystore_password=password))
        assert "not-the-password" not in str(caught.value)


def test_a_key_of_another_certificate_is_named(client: Issued, server: Issued, folder: Path) -> None:
    (folder / "mixed.pem").write_bytes(client.pem + server.key_pem)
    with pytest.raises(ConfigError, match="does not belong to the certificate"):
        TlsContexts(config(ssl_certfile=str(folder / "mixed.pem")))


@pytest.mark.parametrize(
    "settings", [{"ssl_insecure_skip_hostname_check": True}, {"ssl_endpoint_identification_algorithm": ""}]
)
def test_without_the_host_check_the_ca_is_checked_all_the_same(
    settings: dict[str, Any], server: Issued, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        contexts = TlsContexts(config(ssl_cafile=str(folder / "ca.pem"), **settings))
        handshake(contexts.current(), server.server_context(folder), "another.host")
    assert [record.getMessage().split()[0] for record in caplog.records] == ["security.hosts_not_checked"]
    error = refused(
        config(ssl_cafile=str(folder / "ca.pem"), **settings), Authority().issue(HOST).server_context(folder)
    )
    assert isinstance(error, CertificateError)


def test_without_any_check_everything_is_accepted_with_a_warning(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        contexts = TlsContexts(config(ssl_insecure_skip_verify=True))
    handshake(contexts.current(), Authority().issue("x").server_context(folder))
    assert [record.getMessage().split()[0] for record in caplog.records] == ["security.certificates_not_checked"]


def unchecked(*, host: bool) -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    if not host:
        context.verify_mode = ssl.CERT_NONE
    return context


@pytest.mark.parametrize(
    ("context", "event"),
    [
        (unchecked(host=True), "security.hosts_not_checked"),
        (unchecked(host=False), "security.certificates_not_checked"),
        (ssl.create_default_context(), None),
    ],
)
def test_an_ssl_context_without_checks_logs_a_warning(
    context: ssl.SSLContext, event: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        TlsContexts(config(ssl_context=context))
    assert [record.getMessage().split()[0] for record in caplog.records] == ([] if event is None else [event])


def test_versions_and_cipher_suites_are_chosen(server: Issued, folder: Path) -> None:
    ca = {"ssl_cafile": str(folder / "ca.pem")}
    for settings, version in (
        ({}, "TLSv1.3"),
        ({"ssl_enabled_protocols": "TLSv1.2"}, "TLSv1.2"),
        ({"ssl_protocol": "TLSv1.2"}, "TLSv1.2"),
        ({"ssl_protocol": "tlsv1.2"}, "TLSv1.2"),
        ({"ssl_enabled_protocols": "TLSv1,TLSv1.1,TLSv1.2"}, "TLSv1.2"),
        ({"ssl_cipher_suites": "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"}, "TLSv1.2"),
        ({"ssl_cipher_suites": "TLS_AES_256_GCM_SHA384,TLS_AES_128_GCM_SHA256"}, "TLSv1.3"),
    ):
        side = handshake(TlsContexts(config(**ca, **settings)).current(), server.server_context(folder))
        assert side.version() == version
        if "ssl_cipher_suites" in settings and version == "TLSv1.2":
            cipher = side.cipher()
            assert cipher is not None
            assert cipher[0] == "ECDHE-RSA-AES256-GCM-SHA384"
    old = server.server_context(folder)
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    error = refused(config(**ca, ssl_enabled_protocols="TLSv1.3"), old)
    assert "ssl_enabled_protocols" in str(error)


def test_suites_of_one_version_leave_that_version_alone(server: Issued, folder: Path) -> None:
    newest = "TLS_AES_256_GCM_SHA384,TLS_AES_128_GCM_SHA256,TLS_EMPTY_RENEGOTIATION_INFO_SCSV"
    context = TlsContexts(config(ssl_cafile=str(folder / "ca.pem"), ssl_cipher_suites=newest)).current()
    assert context.minimum_version == ssl.TLSVersion.TLSv1_3
    with pytest.raises(ConfigError, match="no suite for the TLS versions"):
        TlsContexts(config(ssl_cipher_suites=newest, ssl_enabled_protocols="TLSv1.2"))


def test_a_key_on_disk_is_encrypted_and_removed(
    authority: Authority, client: Issued, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[bytes, int]] = []
    load = client_key._load

    def looked_at(context: ssl.SSLContext, path: str, *rest: Any) -> None:
        seen.append((Path(path).read_bytes(), os.stat(path).st_mode & 0o777))
        load(context, path, *rest)

    monkeypatch.delattr(os, "memfd_create", raising=False)
    monkeypatch.setattr(client_key, "_load", looked_at)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (folder / "left.p12").write_bytes(pkcs12_key(client, authority))
    (folder / "left.jks").write_bytes(jks_key(client, authority))
    inline: dict[str, Any] = {"ssl_keystore_certificate_chain": client.pem.decode()}
    for settings in (
        {"ssl_keystore_location": str(folder / "left.p12"), "ssl_keystore_password": PASSWORD},
        {"ssl_keystore_location": str(folder / "left.jks"), "ssl_key_password": KEY_PASSWORD},
        {"ssl_keystore_key": client.key_pem.decode(), **inline},
        {"ssl_keystore_key": client.encrypted_key(KEY_PASSWORD).decode(), "ssl_key_password": KEY_PASSWORD, **inline},
    ):
        TlsContexts(config(**settings))
    assert len(seen) == 4
    assert all(b"BEGIN ENCRYPTED PRIVATE KEY" in data and mode == 0o600 for data, mode in seen)
    with pytest.raises(ConfigError, match="does not belong"):
        TlsContexts(config(ssl_keystore_key=authority.own.key_pem.decode(), **inline))
    with pytest.raises(ConfigError, match="ssl_keystore_key has a private key that cannot be read"):
        TlsContexts(config(ssl_keystore_key="no key", **inline))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ssl_cafile", "ca.pem"),
        ("ssl_certfile", "own.pem"),
        ("ssl_truststore_location", "ca.jks"),
        ("ssl_ciphers", "HIGH"),
        ("ssl_insecure_skip_hostname_check", True),
        ("ssl_endpoint_identification_algorithm", ""),
    ],
)
def test_an_own_context_takes_no_other_setting_of_tls(name: str, value: object) -> None:
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    assert TlsContexts(config(ssl_context=own)).current() is own
    with pytest.raises(ConfigError, match=f"ssl_context has its own certificates: leave out {name}"):
        TlsContexts(config(ssl_context=own, **{name: value}))


def test_a_pem_store_whose_key_has_a_password_of_its_own_says_so(client: Issued, tmp_path: Path) -> None:
    store = tmp_path / "own.pem"
    store.write_bytes(client.pem + client.encrypted_key(KEY_PASSWORD))
    settings: dict[str, Any] = {"ssl_keystore_location": str(store)}
    with pytest.raises(ConfigError, match="the private key is encrypted: set ssl_key_password"):
        TlsContexts(config(**settings))
    with pytest.raises(ConfigError, match="ssl_keystore_password does not open the private key: set ssl_key_password"):
        TlsContexts(config(ssl_keystore_password=PASSWORD, **settings))
    TlsContexts(config(ssl_keystore_password=PASSWORD, ssl_key_password=KEY_PASSWORD, **settings))


def test_a_trusted_certificate_need_not_be_a_root(authority: Authority, server: Issued, folder: Path) -> None:
    settings = config(ssl_truststore_certificates=server.pem.decode())
    handshake(TlsContexts(settings).current(), server.server_context(folder))
    assert isinstance(refused(settings, authority.issue(HOST).server_context(folder)), CertificateError)


def test_a_changed_client_certificate_is_used(
    authority: Authority, client: Issued, server: Issued, folder: Path, tmp_path: Path
) -> None:
    demanding = server.server_context(folder, client_ca=authority.own)
    store, cert, key = tmp_path / "own.p12", tmp_path / "own.pem", tmp_path / "own.key"
    store.write_bytes(pkcs12_key(client, authority))
    cert.write_bytes(client.pem)
    key.write_bytes(client.key_pem)
    ca = {"ssl_cafile": str(folder / "ca.pem")}
    of_store = TlsContexts(config(ssl_keystore_location=str(store), ssl_keystore_password=PASSWORD, **ca))
    of_files = TlsContexts(config(ssl_certfile=str(cert), ssl_keyfile=str(key), **ca))
    following = authority.issue("the next client", is_for_clients=True)
    cert.write_bytes(following.pem)  # the key is not yet there: the last pair stays in use
    assert _subject(handshake(of_files.current(), demanding)) == "a client"
    key.write_bytes(following.key_pem)
    store.write_bytes(pkcs12_key(following, authority))
    for contexts in (of_store, of_files):
        assert _subject(handshake(contexts.current(), demanding)) == "the next client"


def _subject(side: ssl.SSLObject) -> object:
    certificate = side.getpeercert()
    assert certificate is not None
    subject: Any = certificate["subject"]
    return subject[0][0][1]


def test_a_list_of_revoked_certificates_that_changes_is_read_again(
    authority: Authority, server: Issued, folder: Path, tmp_path: Path
) -> None:
    path = tmp_path / "crl.pem"
    path.write_bytes(authority.revoke())
    contexts = TlsContexts(config(ssl_cafile=str(folder / "ca.pem"), ssl_crlfile=str(path)))
    handshake(contexts.current(), server.server_context(folder))
    path.write_bytes(authority.revoke(server))
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(contexts.current(), server.server_context(folder))


def test_client_key_files_that_cannot_be_used_are_named(
    authority: Authority, client: Issued, folder: Path, tmp_path: Path
) -> None:
    for name, data in (
        ("cert", client.pem),
        ("locked", client.encrypted_key(KEY_PASSWORD)),
        ("damaged", client.pem.replace(b"M", b"N")),
        ("empty", b""),
        ("crl", authority.revoke()),
        ("ca", authority.own.pem),
    ):
        (tmp_path / name).write_bytes(data)
    at = {path.name: str(path) for path in tmp_path.iterdir()}
    locked = {"ssl_certfile": at["cert"], "ssl_keyfile": at["locked"]}
    cases: list[tuple[dict[str, Any], str]] = [
        (locked, "locked'.*encrypted: set ssl_password"),
        ({**locked, "ssl_password": "not-the-password"}, "locked'.*ssl_password is wrong"),
        ({"ssl_certfile": at["cert"]}, "ssl_certfile='.*cert' has no private key in PEM; give it in ssl_keyfile"),
        ({"ssl_certfile": at["cert"], "ssl_keyfile": at["empty"]}, "ssl_keyfile='.*empty' has no private key"),
        ({"ssl_certfile": at["cert"], "ssl_keyfile": "/nowhere/k"}, "ssl_keyfile='/nowhere/k' cannot be read: No such"),
        ({"ssl_certfile": at["cert"], "ssl_keyfile": str(tmp_path)}, "ssl_keyfile='.*' cannot be read: Is a directory"),
        ({"ssl_certfile": at["empty"]}, "ssl_certfile='.*empty' has no certificate"),
        ({"ssl_cafile": at["locked"]}, "ssl_cafile='.*locked' has no certificate"),
        ({"ssl_cafile": at["damaged"]}, "ssl_cafile='.*damaged' has no certificate, or a damaged one"),
        ({"ssl_crlfile": at["ca"]}, "ssl_crlfile='.*ca' has certificates, which belong in ssl_cafile"),
        ({"ssl_crlfile": at["empty"]}, "ssl_crlfile='.*empty' has no revocation list"),
        ({"ssl_keystore_location": at["cert"]}, "ssl_keystore_location='.*cert' lacks a private key"),
        ({**locked, "ssl_keystore_location": at["cert"]}, "ssl_certfile and ssl_keystore_location exclude each other"),
    ]
    for settings, text in cases:
        with pytest.raises(ConfigError, match=text) as caught:
            TlsContexts(config(**settings))
        assert "not-the-password" not in str(caught.value)


def test_without_certificates_of_openssl_the_system_is_asked(
    server: Issued, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ssl, "get_default_verify_paths", lambda: ssl.DefaultVerifyPaths(None, None, "", "", "", ""))
    assert isinstance(TlsContexts(config()).current(), truststore.SSLContext)
    assert isinstance(refused(config(), server.server_context(folder)), CertificateError)
