"""Certificates of every kind for the tests, good and bad, made with the ``cryptography`` library."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from pathlib import Path
from typing import Any, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

__all__ = ["Authority", "Issued"]

DAY = datetime.timedelta(days=1)


class Issued(NamedTuple):
    """A certificate and its key."""

    key: Any
    certificate: Any

    @property
    def key_pem(self) -> bytes:
        return self.encrypted_key(None)

    def encrypted_key(self, password: str | None) -> bytes:
        lock = serialization.BestAvailableEncryption(password.encode()) if password else serialization.NoEncryption()
        encoded: bytes = self.key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, lock)
        return encoded

    @property
    def key_der(self) -> bytes:
        encoded: bytes = self.key.private_bytes(
            serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return encoded

    @property
    def pem(self) -> bytes:
        encoded: bytes = self.certificate.public_bytes(serialization.Encoding.PEM)
        return encoded

    @property
    def der(self) -> bytes:
        encoded: bytes = self.certificate.public_bytes(serialization.Encoding.DER)
        return encoded

    def server_context(
        self, folder: Path, *, client_ca: Issued | None = None, below: Issued | None = None
    ) -> ssl.SSLContext:
        """A context that presents this certificate and its CA's, and demands one of ``client_ca``."""
        path = folder / f"server-{self.certificate.serial_number}.pem"
        path.write_bytes(self.key_pem + self.pem + (below.pem if below is not None else b""))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        if client_ca is not None:
            context.load_verify_locations(cadata=client_ca.pem.decode())
            context.verify_mode = ssl.CERT_REQUIRED
        return context


class Authority:
    """A root CA, or an intermediate CA below ``issuer``."""

    def __init__(self, name: str = "test CA", issuer: Authority | None = None) -> None:
        # Java's JKS and old PKCS #12 readers know RSA everywhere.
        key = rsa.generate_private_key(65537, 2048)
        above = (name, key) if issuer is None else (issuer._name, issuer._key)
        self.own = Issued(key, self._signed(name, key, *above, is_ca=True))
        self._name: str = name
        self._key: Any = key

    @classmethod
    def loaded(cls, folder: Path) -> Authority:
        """The CA of a real cluster, from its folder ``ssl``."""
        key: Any = serialization.load_pem_private_key((folder / "ca.key").read_bytes(), None)
        own = Issued(key, x509.load_pem_x509_certificate((folder / "ca.pem").read_bytes()))
        loaded = cls.__new__(cls)
        loaded.own, loaded._key = own, key
        (name,) = own.certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
        loaded._name = str(name.value)
        return loaded

    def issue(
        self,
        *hosts: str,
        begins: datetime.timedelta = -DAY,
        ends: datetime.timedelta = DAY,
        is_for_clients: bool = False,
        is_self_signed: bool = False,
    ) -> Issued:
        """A certificate for these host names and addresses, valid from now + ``begins`` to now + ``ends``."""
        key = rsa.generate_private_key(65537, 2048)
        name = hosts[0] if hosts else "nobody"
        issuer, issuer_key = (name, key) if is_self_signed else (self._name, self._key)
        return Issued(
            key,
            self._signed(name, key, issuer, issuer_key, hosts, begins=begins, ends=ends, is_for_clients=is_for_clients),
        )

    def revoke(self, *issued: Issued, ends: datetime.timedelta = DAY) -> bytes:
        """A revocation list with these certificates, as PEM; valid until now + ``ends``."""
        now = datetime.datetime.now(datetime.timezone.utc)
        builder = x509.CertificateRevocationListBuilder().issuer_name(_named(self._name))
        builder = builder.last_update(now - 2 * DAY).next_update(now + ends)
        for each in issued:
            entry = x509.RevokedCertificateBuilder().serial_number(each.certificate.serial_number)
            builder = builder.add_revoked_certificate(entry.revocation_date(now - DAY).build())
        return builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def _signed(
        self,
        subject: str,
        key: Any,
        issuer: str,
        issuer_key: Any,
        hosts: tuple[str, ...] = (),
        *,
        is_ca: bool = False,
        begins: datetime.timedelta = -DAY,
        ends: datetime.timedelta = DAY,
        is_for_clients: bool = False,
    ) -> Any:
        now = datetime.datetime.now(datetime.timezone.utc)
        builder = (
            x509.CertificateBuilder()
            .subject_name(_named(subject))
            .issuer_name(_named(issuer))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + begins)
            .not_valid_after(now + ends)
            .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
        )
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName(list(map(_alternative, hosts))), critical=False)
        if not is_ca:
            purpose = ExtendedKeyUsageOID.CLIENT_AUTH if is_for_clients else ExtendedKeyUsageOID.SERVER_AUTH
            builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        return builder.sign(issuer_key, hashes.SHA256())


def _named(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
