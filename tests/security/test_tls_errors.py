"""Errors of TLS handshakes: the cause, and the setting to change."""

from __future__ import annotations

import datetime
import ssl
from pathlib import Path

import pytest

from pykafka08.errors import CertificateError, TlsError
from pykafka08.security.settings import SecurityConfig
from pykafka08.security.tls_errors import alert_error, informed_error, tls_error
from tests.security.authority import Authority, Issued
from tests.security.handshakes import ADDRESS, HOST, config, handshake, refused

DAY = datetime.timedelta(days=1)


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def server(authority: Authority) -> Issued:
    return authority.issue(HOST)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Path:
    path = tmp_path_factory.mktemp("tls")
    (path / "ca.pem").write_bytes(authority.own.pem)
    return path


def test_a_certificate_of_other_hosts_is_refused_with_their_names(authority: Authority, folder: Path) -> None:
    names = [f"b{number}.example.com" for number in range(12)]
    other = authority.issue(*names, "10.0.0.1").server_context(folder)
    error = refused(config(ssl_cafile=str(folder / "ca.pem")), other)
    assert isinstance(error, CertificateError)
    assert f"not for '{HOST}' but for {', '.join(names[:10])}, 3 more; connect by a name" in str(error)


def test_names_of_a_hostile_certificate_have_an_end(authority: Authority, folder: Path) -> None:
    other = authority.issue("b.example.com", "x\n\x1b[31m" + "y" * 60_000 + ".example.com").server_context(folder)
    text = str(refused(config(ssl_cafile=str(folder / "ca.pem")), other))
    assert "but for b.example.com, x[31myyy" in text
    assert len(text) < 1000
    assert text.isprintable()


def test_names_that_are_not_known_are_not_claimed(authority: Authority, server: Issued, folder: Path) -> None:
    plain = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # a context of the application
    plain.load_verify_locations(cadata=authority.own.pem.decode())
    with pytest.raises(ssl.SSLCertVerificationError) as caught:
        handshake(plain, server.server_context(folder), "other.example.com")
    error = tls_error(caught.value, "other.example.com", ADDRESS, config())
    assert isinstance(error, CertificateError)
    assert error.reason == "wrong host"
    assert "but for" not in str(error)
    assert "other.example.com" in str(error)


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (lambda ca: Authority("another CA").revoke(), "ssl_crlfile has no revocation list"),
        (lambda ca: ca.revoke(ends=-DAY), "ssl_crlfile has expired"),
    ],
)
def test_a_revocation_list_that_cannot_be_used_is_no_revoked_certificate(
    made: object, text: str, authority: Authority, server: Issued, folder: Path
) -> None:
    (folder / "crl.pem").write_bytes(made(authority))  # type: ignore[operator]
    settings = config(ssl_cafile=str(folder / "ca.pem"), ssl_crlfile=str(folder / "crl.pem"))
    error = refused(settings, server.server_context(folder))
    assert isinstance(error, CertificateError)
    assert error.reason == "other"
    assert text in str(error)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_client_certificate_that_the_server_refuses_names_its_settings(
    version: ssl.TLSVersion, authority: Authority, server: Issued, folder: Path
) -> None:
    own = Authority("another CA").issue("a client", is_for_clients=True)
    (folder / "own.pem").write_bytes(own.key_pem + own.pem)
    demanding = server.server_context(folder, client_ca=authority.own)
    demanding.maximum_version = version
    error = refused(config(ssl_cafile=str(folder / "ca.pem"), ssl_certfile=str(folder / "own.pem")), demanding)
    assert type(error) is TlsError
    assert f"in ssl_certfile={str(folder / 'own.pem')!r}" in str(error)


@pytest.mark.parametrize(
    "error",
    [
        ssl.SSLError(1, "[SSL] record layer failure (_ssl.c:1006)"),
        ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:997)"),
        ssl.SSLError(1, "packet length too long (_ssl.c:1000)"),
    ],
)
def test_a_peer_without_tls_is_told_apart_by_the_text_alone(error: ssl.SSLError) -> None:
    if "WRONG" in str(error):
        error.reason = "WRONG_VERSION_NUMBER"
    found = tls_error(error, HOST, ADDRESS, config())
    assert "does not speak TLS" in str(found)
    assert "security_protocol to PLAINTEXT" in str(found)


@pytest.mark.parametrize(
    "error",
    [
        ssl.SSLEOFError(8, "EOF occurred in violation of protocol (_ssl.c:997)"),
        ssl.SSLZeroReturnError(6, "TLS/SSL connection has been closed (EOF) (_ssl.c:997)"),
        ssl.SSLError(1, "[SSL] unexpected eof while reading (_ssl.c:997)"),
        ConnectionResetError("reset"),
        EOFError(),
    ],
)
def test_a_peer_that_closes_may_not_use_tls(error: BaseException) -> None:
    outer = OSError("wrapped")
    outer.__cause__ = error
    for each in (error, outer):
        found = tls_error(each, HOST, ADDRESS, config())
        assert f"{ADDRESS} closed the connection" in str(found)


OF_CERTIFICATES = (
    "tlsv13 alert certificate required",
    "sslv3 alert bad certificate",
    "sslv3 alert certificate unknown",
    "tlsv1 alert unknown ca",
    "tlsv1 alert access denied",
)


@pytest.mark.parametrize("alert", OF_CERTIFICATES)
@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({}, "the broker demands a client certificate: set ssl_certfile or ssl_keystore_location"),
        ({"ssl_certfile": "/own.pem"}, "client's certificate in ssl_certfile='/own.pem'"),
        ({"ssl_keystore_location": "/own.jks"}, "client's certificate in ssl_keystore_location='/own.jks'"),
        ({"ssl_keystore_certificate_chain": "---"}, "client's certificate in ssl_keystore_certificate_chain"),
    ],
)
def test_an_alert_about_the_clients_certificate_knows_if_there_was_one(
    alert: str, settings: dict[str, str], text: str
) -> None:
    cause = ssl.SSLError(1, f"[SSL] {alert} (_ssl.c:2559)")
    assert str(tls_error(cause, HOST, ADDRESS, config(**settings))).endswith(text)
    opened = alert_error(cause)
    opened.__cause__ = cause
    informed = informed_error(opened, config(**settings))
    assert str(informed).endswith(text)
    assert informed.__cause__ is cause


@pytest.mark.parametrize("settings", [{}, {"ssl_certfile": "/own.pem"}])
def test_a_failed_handshake_may_have_two_causes(settings: dict[str, str]) -> None:
    cause = ssl.SSLError(1, "[SSL] sslv3 alert handshake failure (_ssl.c:2559)")
    text = str(tls_error(cause, HOST, ADDRESS, config(**settings)))
    assert "no common cipher suite" in text
    assert ("set ssl_certfile or ssl_keystore_location" in text) != bool(settings)
    assert ("'/own.pem'" in text) == bool(settings)


def test_a_ca_that_does_not_sign_the_brokers_certificate_is_named(server: Issued, folder: Path) -> None:
    path = folder / "other.pem"
    path.write_bytes(Authority("another CA").own.pem)
    lacks = "does not contain the CA of the broker's certificate"
    context = server.server_context(folder)
    assert f"; ssl_cafile={str(path)!r} {lacks}" in str(refused(config(ssl_cafile=str(path)), context))
    assert f"; ssl_cadata {lacks}" in str(refused(config(ssl_cadata=path.read_text()), context))
    assert f"; ssl_truststore_location={str(path)!r} {lacks}" in str(
        refused(config(ssl_truststore_location=str(path)), context)
    )
    assert f"; the system's trust store, in use without ssl_cafile and ssl_truststore_location, {lacks}" in str(
        refused(config(), context)
    )


def test_a_peer_with_tls_wants_sasl_over_tls_from_a_client_with_sasl() -> None:
    told = TlsError("the peer answered with a TLS alert: set security_protocol to SSL or SASL_SSL")
    assert informed_error(told, SecurityConfig()) is told
    with_sasl = informed_error(told, SecurityConfig(security_protocol="SASL_PLAINTEXT"))
    assert str(with_sasl).endswith("set security_protocol to SASL_SSL")


def test_an_alert_after_the_handshake_names_what_to_set() -> None:
    error = ssl.SSLError(1, "[SSL] tlsv13 alert certificate required (_ssl.c:2559)")
    assert "(TLSV13_ALERT_CERTIFICATE_REQUIRED): the broker demands a client certificate: set ssl_certfile" in str(
        alert_error(error, config())
    )


@pytest.mark.parametrize(
    "text", ["sslv3 alert unexpected message", "unexpected message", "decryption failed or bad record mac"]
)
def test_repeated_bytes_are_a_certificate_that_an_old_broker_refuses(text: str) -> None:
    error = ssl.SSLError(1, f"[SSL] {text} (_ssl.c:2559)")
    assert "the broker demands a client certificate: set ssl_certfile" in str(alert_error(error, config()))
